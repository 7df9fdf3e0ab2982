// What a launch of the same kernel before has found out about its fields is used for as long as it
// holds, and no longer.
#include <array>
#include <numeric>

#include <quern/host.h>
#include <quern/runtime/observer.h>

#include "tests/end_to_end/devices.h"
#include "tests/message_of.h"

using namespace quern::lang;
using qn::test::message_of;

namespace {

constexpr int n = 96;

std::vector<int> counted(int count) {
  std::vector<int> v(static_cast<size_t>(count));
  std::iota(v.begin(), v.end(), 0);
  return v;
}

/// Each element becomes one more than `from` has where it stands by then.
const auto chain = [](qn::Field<int> from, qn::Field<int> to) {
  for (auto i : serial(range(to.dim(0)))) to[i] = from[i] + 1;
};

/// Of each launch while it lives: is it the same as one before?
struct Watch : qn::runtime::LaunchObserver {
  std::vector<bool> known;
  qn::runtime::Observation observation{*this};
  void before(const qn::runtime::LaunchEvent& event) override {
    known.push_back(event.same != qn::runtime::other_arguments);
  }
};

}  // namespace

TEST_CASE("views that are made anew for each launch overlap as they do") {
  on_every_device([](const qn::Device& device) {
    qn::Field<int> x{device, {2 * n}};
    qn::Kernel kernel = chain;
    for (int first : {n, 1, n, 2, 1, n - 1, n}) {
      INFO("written from " << first << " on");
      x.copy_from(counted(2 * n));
      std::vector<int> want = counted(2 * n);
      for (int i = 0; i < n; i++) want[size_t(first + i)] = want[size_t(i)] + 1;
      kernel(x.slice(0, 0, n), x.slice(0, first, first + n));
      CHECK(qn::to_vector(x) == want);
    }
  });
}

TEST_CASE("fields that exchange their memory for some that overlaps do overlap") {
  for (const char* name : {"cpu", "interpreter"}) {
    const qn::Device device(name);
    std::vector<int> memory(n + 1, 0);
    qn::Field<int> from{device, {n}}, to{device, {n}};
    qn::Kernel kernel = chain;
    for (int k = 0; k < 3; k++) kernel(from, to);
    CHECK(qn::to_vector(to) == std::vector<int>(n, 1));
    auto first = qn::Field<int>::wrap(device, memory.data(), {n});
    auto second = qn::Field<int>::wrap(device, memory.data() + 1, {n});
    from.swap(first);
    kernel(from, to);
    to.swap(second);
    kernel(from, to);
    CHECK(memory == counted(n + 1));
    from.swap(first);
    memory.assign(n + 1, 5);
    kernel(from, to);
    CHECK(memory == [] {
      std::vector<int> want(n + 1, 1);
      want[0] = 5;
      return want;
    }());
  }
}

TEST_CASE("a field that was released since the last launch is an error at the launch") {
  const qn::Device device("cpu");
  qn::Field<int> from{device, {n}}, to{device, {n}};
  qn::Kernel kernel = chain;
  for (int k = 0; k < 3; k++) kernel(from, to);
  from.release();
  CHECK_THAT(message_of([&] { kernel(from, to); }), contains("was released at "));
  CHECK_THAT(message_of([&] { kernel(to, from); }), contains("was released at "));
}

TEST_CASE("a snapshot in place of its field is not written") {
  const qn::Device device("cpu");
  qn::Field<int> from{device, {n}}, to{device, {n}};
  qn::Kernel kernel = chain;
  for (int k = 0; k < 3; k++) kernel(from, to);
  CHECK_THAT(message_of([&] { kernel(from, to.snapshot()); }), contains("is a snapshot"));
}

TEST_CASE(
    "scalars, elements and random numbers decide anew what a launch of the same fields does") {
  on_every_device([](const qn::Device& device) {
    qn::Field<int> x{device, {n}}, rounds{device, {1}};
    qn::Field<double> drawn{device, {n}};
    qn::Kernel by_scalar = [&](I32 first, I32 last) {
      for (auto i : range(first, last)) x[i] += 1;
    };
    qn::Kernel by_element = [&] {
      Var<int> left = rounds[0];
      While(left > 0) {
        for (auto i : x) x[i] += 1;
        left -= 1;
      }
    };
    qn::Kernel draw = [&] {
      for (auto i : drawn) drawn[i] = random<double>();
    };
    qn::Kernel sum = [&]() -> I32 {
      Var<int> all = 0;
      for (auto i : x) all += x[i];
      return all;
    };
    std::vector<int> want(n, 0);
    std::vector<std::vector<double>> seen;
    for (auto [first, last, times] :
         {std::array{0, n, 1}, std::array{0, n, 1}, std::array{3, 40, 2}, std::array{7, 7, 0},
          std::array{90, n, 3}}) {
      by_scalar(first, last);
      rounds.set(0, times);
      by_element();
      for (int i = 0; i < n; i++) want[size_t(i)] += int(i >= first && i < last) + times;
      CHECK(qn::to_vector(x) == want);
      CHECK(int(sum()) == std::accumulate(want.begin(), want.end(), 0));
      draw();
      for (const auto& before : seen) CHECK(qn::to_vector(drawn) != before);
      seen.push_back(qn::to_vector(drawn));
    }
  });
}

TEST_CASE("a launch that fails between others of the same fields is told of, and they are not") {
  on_every_device([](const qn::Device& device) {
    qn::Field<int> x{device, {n}}, limit{device, {1}};
    qn::Kernel count = [&] {
      for (auto i : x) {
        check(x[i] < limit[0], "{} is too many", x[i]);
        x[i] += 1;
      }
    };
    limit.set(0, 100);
    for (int k = 0; k < 3; k++) count();
    CHECK(qn::to_vector(x) == std::vector<int>(n, 3));
    limit.set(0, 3);
    count();
    CHECK_THAT(message_of([&] { device.synchronize(); }), contains("3 is too many"));
    limit.set(0, 100);
    x.fill(0);
    for (int k = 0; k < 3; k++) count();
    CHECK(qn::to_vector(x) == std::vector<int>(n, 3));
  });
}

TEST_CASE("launches with a snapshot are known, and read it where it lies by then") {
  on_every_device([](const qn::Device& device) {
    qn::Field<int> x{device, {n}}, y{device, {n}};
    x.copy_from(counted(n));
    qn::Kernel add = [](qn::Field<int> from, qn::Field<int> to) {
      for (auto i : to) to[i] += from[i];
    };
    const auto expect = [](const qn::Field<int>& field, int times) {
      std::vector<int> want = counted(n);
      for (int& v : want) v *= times;
      CHECK(qn::to_vector(field) == want);
    };
    const auto before = x.snapshot();
    Watch watch;
    for (int k = 0; k < 3; k++) add(before, y);
    x.fill(7);  // the snapshot has memory of its own from here on
    for (int k = 0; k < 3; k++) add(before, y);
    CHECK(watch.known == std::vector{false, true, true, true, true, true});
    expect(y, 6);
    x.copy_from(counted(n));
    for (int times : {1, 4, 16}) {
      const auto now = x.snapshot();
      for (int k = 0; k < 3; k++) add(now, x);  // the second finds it elsewhere than the first
      expect(x, 4 * times);
    }
  });
}

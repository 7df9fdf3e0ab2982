// Snapshots share a field's memory until it is written, whatever writes it.
#include <algorithm>
#include <functional>
#include <numeric>
#include <thread>

#include <quern/interop.h>

#include "quern/runtime/device.h"
#include "tests/end_to_end/devices.h"

using namespace quern::lang;

namespace {

constexpr int n = 1000;

std::vector<int> counted(int from) {
  std::vector<int> v(n);
  std::iota(v.begin(), v.end(), from);
  return v;
}

}  // namespace

TEST_CASE("a snapshot keeps what a field held, whatever writes the field") {
  on_every_device([](qn::Device& device) {
    qn::Field<int> x{device, {n}}, other{device, {n}}, seen{device, {n}};
    qn::Kernel add = [](qn::Field<int> to, I32 a) {
      for (auto i : to) to[i] = to[i] + a;
    };
    qn::Kernel copy = [](qn::Field<int> from, qn::Field<int> to) {
      for (auto i : to) to[i] = from[i];
    };
    const std::pair<const char*, std::function<void()>> writers[] = {
        {"nothing", [] {}},
        {"a launch", [&] { add(x, 5); }},
        {"two launches", [&] { add(x, 5), add(x, 1); }},
        {"the host", [&] { x.copy_from(counted(70)); }},
        {"an element", [&] { x.set(3, -1); }},
        {"a fill", [&] { x.fill(9); }},
        {"a view", [&] { x.slice(0, 10, 20).fill(9); }},
        {"what it exchanged its memory with",
         [&] {
           x.swap(other);
           add(other, 1);
         }},
        {"a release", [&] { x.release(); }},
    };
    for (const auto& [name, write] : writers) {
      INFO("written by " << name);
      x.copy_from(counted(0));
      const auto old = x.snapshot();
      write();
      CHECK(qn::to_vector(old) == counted(0));
      copy(old, seen);  // it is a field to kernels that read it
      CHECK(qn::to_vector(seen) == counted(0));
    }
  });
}

TEST_CASE("a snapshot's kernel may write the field that it is of") {
  on_every_device([](qn::Device& device) {
    qn::Field<int> x{device, {n}};
    x.copy_from(counted(0));
    const auto old = x.snapshot();
    qn::Kernel reversed = [](qn::Field<int> from, qn::Field<int> to) {
      for (auto i : to) to[i] = from[from.dim(0) - 1 - i];
    };
    reversed(old, x);
    std::vector<int> want = counted(0);
    std::reverse(want.begin(), want.end());
    CHECK(qn::to_vector(x) == want);
    CHECK(qn::to_vector(old) == counted(0));
  });
}

TEST_CASE("a snapshot takes memory when its field is written, and gives it back") {
  on_every_device([](qn::Device& device) {
    qn::Field<int> x{device, {n}};
    x.copy_from(counted(0));
    const auto runtime = qn::runtime::Device::open(device.name());
    const uint64_t before = runtime->allocated();
    {
      const auto first = x.snapshot(), again = x.snapshot();
      CHECK(runtime->allocated() == before);
      x.fill(1);
      CHECK(runtime->allocated() == before + 4 * n);  // one copy for both
      x.fill(2);
      CHECK(runtime->allocated() == before + 4 * n);
      const auto later = x.snapshot();
      CHECK(qn::to_vector(later) == std::vector<int>(n, 2));
      CHECK(qn::to_vector(again) == counted(0));
    }
    CHECK(runtime->allocated() == before);
    x.fill(3);  // nobody is left to copy for
    CHECK(runtime->allocated() == before);
  });
}

TEST_CASE("snapshots of views, of structures apart and of blocks, and fields without elements") {
  on_every_device([](qn::Device& device) {
    qn::Field<Vec<float, 3>, 2> p{device, {5, 7}, qn::blocked(2, 2)};
    qn::Field<Vec<float, 3>, 2> q{device, {5, 7}, qn::aos};
    qn::Field<int> none{device, {0}};
    p.fill({1, 2, 3});
    q.fill({4, 5, 6});
    const auto row = p.select(0, 3).snapshot();
    const auto whole = q.snapshot();
    const auto nothing = none.snapshot();
    p.fill({0, 0, 0});
    q.set(2, 3, {9, 9, 9});
    none.fill(1);
    CHECK(row.at(6)[1] == 2);
    CHECK(whole.at(2, 3)[2] == 6);
    CHECK(nothing.size() == 0);
    CHECK(qn::to_vector(nothing).empty());
  });
}

TEST_CASE("a field is restored from a snapshot") {
  on_every_device([](qn::Device& device) {
    qn::Field<int> x{device, {n}}, y{device, {n}}, small{device, {3}};
    qn::Field<float> f{device, {n}};
    x.copy_from(counted(0));
    const auto old = x.snapshot();
    x.restore(old);  // it holds that already
    CHECK(qn::to_vector(x) == counted(0));
    x.fill(4);
    const auto fours = x.snapshot();
    x.restore(old);
    CHECK(qn::to_vector(x) == counted(0));
    CHECK(qn::to_vector(fours) == std::vector<int>(n, 4));
    y.restore(fours);
    CHECK(qn::to_vector(y) == std::vector<int>(n, 4));
    x.release();
    y.restore(old);
    CHECK(qn::to_vector(y) == counted(0));
    CHECK_THAT(error_of([&] { small.restore(old); }), contains("of another kind of field"));
    CHECK_THAT(error_of([&] { y.restore(small); }), contains("what is no snapshot"));
    CHECK_THAT(error_of([&] { y.slice(0, 0, 3).restore(small.snapshot()); }),
               contains("this is a view"));
  });
}

TEST_CASE("a snapshot is read only") {
  on_every_device([](qn::Device& device) {
    qn::Field<int> x{device, {8}};
    const auto old = x.snapshot();
    qn::Kernel fill = [](qn::Field<int> to) {
      for (auto i : to) to[i] = 1;
    };
    qn::Kernel count = [](qn::Field<int> to) {
      for (auto i : to) to[0] += 1;
    };
    CHECK_THAT(error_of([&] { fill(old); }), contains("is a snapshot, which is read only"));
    CHECK_THAT(error_of([&] { count(old); }), contains("is a snapshot, which is read only"));
    CHECK_THAT(error_of([&] { old.fill(1); }), contains("snapshots are read only"));
    CHECK_THAT(error_of([&] { old.set(1, 1); }), contains("snapshots are read only"));
    CHECK_THAT(error_of([&] { x.swap(old); }), contains("exchanges its memory with none"));
    CHECK(qn::to_vector(x) == std::vector<int>(8));
  });
}

TEST_CASE("a snapshot may be read while another thread writes its field") {
  on_every_device([](qn::Device& device) {
    qn::Field<int> x{device, {n}};
    qn::Kernel add = [&] {
      for (auto i : x) x[i] = x[i] + 1;
    };
    qn::Kernel least_and_most = [](qn::Field<int> from) {
      Var<int> least = 1 << 30, most = 0;
      for (auto i : from) {
        atomic_min(least, from[i]);
        atomic_max(most, from[i]);
      }
      return result(least, most);
    };
    least_and_most(x);  // compiled before the race
    add();
    std::vector<qn::Field<int>> taken;
    for (int k = 0; k < 20; k++) {
      taken.push_back(x.snapshot());
      std::thread writer([&] { add(); });
      auto [least, most] = least_and_most(taken.back());
      writer.join();
      CHECK(least == k + 1);
      CHECK(most == k + 1);
    }
    for (int k = 0; k < 20; k++) CHECK(taken[size_t(k)].at(k) == k + 1);
  });
}

TEST_CASE("memory that other code may write is copied when the snapshot is taken") {
  on_every_device([](qn::Device& device) {
    if (!qn::runtime::Device::open(device.name())->target().host_addresses) {
      NOT_RUN(std::string("the host does not write to the memory of ") + device.name());
      return;
    }
    std::vector<int> mine = counted(0);
    auto wrapped = qn::Field<int>::wrap(device, mine.data(), {n});
    const auto old = wrapped.snapshot();
    mine[7] = -1;
    CHECK(qn::to_vector(old) == counted(0));
    CHECK(wrapped.at(7) == -1);

    qn::Field<int> x{device, {n}};
    x.copy_from(counted(0));
    const auto before = x.snapshot();  // shares, until the address is known
    int* elements = qn::interop::address(x);
    elements[7] = -1;
    const auto after = x.snapshot();
    elements[7] = -2;
    CHECK(qn::to_vector(before) == counted(0));
    CHECK(after.at(7) == -1);
    CHECK(x.at(7) == -2);
    CHECK(error_of([&] { (void)qn::interop::address(before); }).find("in a snapshot") !=
          std::string::npos);
  });
}

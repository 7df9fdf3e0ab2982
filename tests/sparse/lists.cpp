// Lists that grow: trees whose innermost level is dynamic, against vectors of the host's.
#include <quern/sparse.h>

#include <algorithm>
#include <random>

#include "tests/end_to_end/devices.h"

using namespace qn::lang;
using Catch::Matchers::Contains;

namespace {

using Lists = std::vector<std::vector<int>>;

/// What the lists of a field hold, as the host and as a loop over the field see it.
template <class F>
void compare(const qn::Device& device, const F& u, const Lists& expected, int most) {
  const int n = int(expected.size());
  qn::Field<int> lengths{device, {n}};
  qn::Field<int, 2> seen{device, {n, most}};
  qn::Kernel look = [&] {
    for (auto i : range(n)) lengths[i] = length(u, i);
    for (auto [i, k] : seen) seen(i, k) = -1;
    for (auto [i, k] : u) seen(i, k) = u(i, k);
  };
  look();
  std::vector<int> all(size_t(n) * size_t(most)), in_loop(all.size());
  u.copy_to(all);
  seen.copy_to(in_loop);
  int wrong = 0;
  for (int i = 0; i < n; i++) {
    const std::vector<int>& list = expected[size_t(i)];
    wrong += lengths.at(i) != int(list.size());
    for (int k = 0; k < most; k++) {
      const bool is_there = k < int(list.size());
      const size_t at = size_t(i * most + k);
      wrong += all[at] != (is_there ? list[size_t(k)] : 7);
      wrong += in_loop[at] != (is_there ? list[size_t(k)] : -1);
    }
  }
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("iterations that append to the same lists get a place each") {
  on_every_device([](const qn::Device& device) {
    constexpr int n = 3000, lists = 7, most = 900;
    qn::Tree<2> tree{device, {qn::dense(lists, 1), qn::dynamic(most, 16)}, {.cells = 500}};
    auto u = tree.field<int>(7);
    auto w = tree.field<vec3>();
    qn::Field<int> place{device, {n}};
    qn::Kernel fill = [&] {
      for (auto k : range(n)) {
        I32 at = append(u, k * k % lists, k);
        place[k] = at;
        w(k * k % lists, at) = vec(cast<float>(k), 0.0f, 1.0f);
      }
    };
    fill();
    std::vector<int> all(lists * most);
    u.copy_to(all);
    std::vector<int> count(lists, 0);
    int wrong = 0;
    for (int k = 0; k < n; k++) {
      const int list = k * k % lists, at = place.at(k);
      count[size_t(list)]++;
      wrong += at < 0 || at >= most || all[size_t(list * most + at)] != k;
    }
    CHECK(wrong == 0);
    CHECK(w.at(2999 * 2999 % lists, place.at(2999)).x == 2999.0f);
    qn::Kernel measure = [&](qn::Field<int> to) {
      for (auto i : to) to[i] = length(u, i);
    };
    qn::Field<int> lengths{device, {lists}};
    measure(lengths);
    CHECK(qn::to_vector(lengths) == count);
  });
}

TEST_CASE("random operations on lists do what they do to vectors") {
  on_every_device([](const qn::Device& device) {
    const bool fast = device.name() != std::string("cuda");
    constexpr int lists = 5, most = 11;
    for (uint32_t seed = 0; seed < (fast ? 6 : 2); seed++) {
      std::mt19937 random(seed);
      const auto below = [&](int n) { return int(random() % unsigned(n)); };
      const int chunk = 1 + below(5), cells = seed % 2 ? 0 : 3;
      qn::Tree<2> tree{device,
                       {qn::pointer(lists, 1), qn::dynamic(most, chunk)},
                       {.cells = seed % 3 ? cells : 100}};
      auto u = tree.field<int>(7);
      Lists model(lists);
      qn::Kernel add = [&](I32 i, I32 v) { append(u, i, v); };
      qn::Kernel put = [&](I32 i, I32 k, I32 v) { u(i, k) = v; };
      qn::Kernel wake = [&](I32 i, I32 k) { activate(u, i, k); };
      qn::Kernel cut = [&](I32 i, I32 k) { deactivate(u, i, k); };
      qn::Kernel drop_odd = [&] {
        for (auto [i, k] : u) {
          If(u(i, k) % 2 != 0) { deactivate(u, i, k); }
        }
      };
      for (int round = 0; round < 60; round++) {
        const int i = below(lists), k = below(most), v = 100 + below(50);
        std::vector<int>& list = model[size_t(i)];
        const auto reach = [&] {
          if (k >= int(list.size())) list.resize(size_t(k) + 1, 7);
        };
        switch (below(7)) {
          case 0:
            put(i, k, v);
            reach();
            list[size_t(k)] = v;
            break;
          case 1:
            wake(i, k);
            reach();
            break;
          case 2:
            cut(i, k);
            if (k < int(list.size())) list.resize(size_t(k));
            break;
          case 3: {
            drop_odd();
            for (std::vector<int>& all : model)
              all.erase(std::ranges::find_if(all, [](int x) { return x % 2 != 0; }), all.end());
            break;
          }
          default:
            if (int(list.size()) == most) break;
            add(i, v);
            list.push_back(v);
        }
        compare(device, u, model, most);
      }
    }
  });
}

TEST_CASE("a list that is full says so, and keeps what it has") {
  on_every_device([](const qn::Device& device) {
    qn::Tree<2> tree{device, {qn::pointer(3, 1), qn::dynamic(10, 4)}, {.cells = 64}};
    auto u = tree.field<int>();
    int here = 0;
    qn::Kernel fill = [&](I32 n) {
      for (auto k : range(n)) {
        here = __LINE__ + 1;
        append(u, 1, k + 1);
      }
    };
    fill(10);
    int line = 0;
    CHECK_THAT(error_of(
                   [&] {
                     fill(5);
                     device.synchronize();
                   },
                   &line),
               Contains("a list of") && Contains("is full: it has 10 elements"));
    CHECK(line == here);
    qn::Field<int> n{device, {1}};
    qn::Kernel measure = [&] { n[0] = length(u, 1); };
    measure();
    CHECK(n.at(0) == 10);
    std::vector<int> all(30);
    u.copy_to(all);
    std::sort(all.begin() + 10, all.begin() + 20);
    for (int k = 0; k < 10; k++) CHECK(all[size_t(10 + k)] == k + 1);
  });
}

TEST_CASE("one list of a whole tree, and lists below axes without an end") {
  on_every_device([](const qn::Device& device) {
    qn::Tree<1> alone{device, {qn::dynamic(1000, 16)}};
    auto found = alone.field<int>();
    qn::Tree<3> tree{device, {qn::hash(), qn::dynamic(20, 4)}};
    auto u = tree.field<float>();
    qn::Kernel search = [&] {
      for (auto k : range(2000)) {
        If(k % 7 == 3) {
          append(found, k);
          append(u, k % 5 - 1'000'000, -k % 11, cast<float>(k));
        }
      }
    };
    search();
    int expected = 0;
    long long expected_sum = 0;
    for (int k = 0; k < 2000; k++)
      if (k % 7 == 3) expected++, expected_sum += k;
    qn::Kernel count = [&]() -> I32 {
      Var<int> n = 0;
      for (auto i : found) n += 1;
      return n;
    };
    qn::Kernel sum = [&]() -> F64 {
      Var<double> s = 0.0;
      for (auto [i, j, k] : u) s += cast<double>(u(i, j, k)) + 0 * k;
      return s;
    };
    qn::Kernel longest = [&](I32 i, I32 j) -> I32 { return length(u, i, j); };
    CHECK(int(count()) == expected);
    CHECK(double(sum()) == double(expected_sum));
    int in_list = 0;
    for (int k = 0; k < 2000; k++) in_list += k % 7 == 3 && k % 5 == 3 && k % 11 == 4;
    CHECK(int(longest(3 - 1'000'000, -4)) == in_list);
    CHECK(int(longest(1000, 0)) == 0);
  });
}

TEST_CASE("lists through views, with first indices, and on a dense field") {
  on_every_device([](const qn::Device& device) {
    qn::Tree<2> tree{device, {qn::dense(4, 1), qn::dynamic(8, 2)}, {.offset = {-2, 5}}};
    auto u = tree.field<int>();
    qn::Field<int, 2> plain{device, {4, 8}};
    qn::Field<int> out{device, {5}};
    auto tail = u.slice(1, 8, 12).rebased({0, 0});  // the list's places 3 to 6
    qn::Kernel k = [&] {
      for (auto n : serial(range(5))) out[0] = append(u, -1, n * n);
      out[1] = length(u, -1);
      out[2] = length(tail, 1);
      out[3] = tail(1, 1);
      out[4] = length(plain, 2);
    };
    k();
    CHECK(qn::to_vector(out) == std::vector<int>{9, 5, 2, 16, 8});
  });
}

TEST_CASE("lists are refused where there are none") {
  qn::Device device("interpreter");
  qn::Tree<2> masked{device, {qn::pointer(4), qn::bitmasked(4)}};
  qn::Field<int, 2> plain{device, {4, 4}};
  auto u = masked.field<int>();
  qn::Kernel ask = [&] { u(0, 0) = length(u, 1); };
  CHECK_THAT(error_of([&] { ask(); }), Contains("the innermost level of its tree is not dynamic"));
  qn::Kernel add = [&] { append(plain, 0, 1); };
  CHECK_THAT(error_of([&] { add(); }), Contains("no tree with a dynamic level"));
  const auto refusal = [&](std::initializer_list<qn::TreeLevel> levels) {
    return error_of([&] { qn::Tree<2>(device, levels); });
  };
  CHECK_THAT(refusal({qn::dynamic(4), qn::dense(2)}), Contains("innermost"));
  CHECK_THAT(refusal({qn::dense(2), qn::dynamic(4)}), Contains("the extent of dense along it"));
  CHECK_THAT(refusal({qn::dense(2, 1), qn::dynamic(0)}), Contains("extent 0"));
  CHECK_THAT(refusal({qn::dense(2, 1), qn::dynamic(4, 0)}), Contains("chunks of 0 elements"));
}

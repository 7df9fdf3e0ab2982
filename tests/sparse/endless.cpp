// Operations on trees without an end, beside the same on trees of pointers.
#include <random>

#include "tests/sparse/places.h"

using namespace qn::lang;
using Catch::Matchers::Contains;

TEST_CASE("trees without an end go through the operations that others do") {
  on_every_device([](const qn::Device& device) {
    std::mt19937 random(7);
    for (bool dense : {false, true}) {
      const qn::TreeLevel leaf = dense ? qn::dense(4) : qn::bitmasked(4);
      qn::Tree<2> endless{
          device, {qn::hash(), leaf}, {.shape = {4000, 5000}, .offset = {-2048, -2560}}};
      qn::Tree<2> bounded{device, {qn::pointer(256), leaf}, {.offset = {-512, -512}}};
      qn::Field<qn::Vec<int, 2>> places{device, {100}};
      std::vector<qn::Vec<int, 2>> some(100);
      for (qn::Vec<int, 2>& p : some)
        p = qn::Vec<int, 2>(int(random() % 60) - 30, int(random() % 60) - 30);
      some[0] = qn::Vec<int, 2>(-500, 499);
      places.copy_from(some);
      endless.build_from(places);
      bounded.build_from(places);
      auto u = endless.field<int>(-7), v = bounded.field<int>(-7);
      qn::Kernel write = [](qn::Field<int, 2> x) {
        for (auto [i, j] : x) x(i, j) = 31 * i - j;
      };
      write(u);
      write(v);
      const auto check = [&](const qn::Tree<2>& a, const qn::Tree<2>& b) {
        CHECK(a.active_count() == b.active_count());
        CHECK(qn::same_activity(a, b));
      };
      check(endless, bounded);
      for (auto n : {qn::Neighbours::faces, qn::Neighbours::edges, qn::Neighbours::vertices}) {
        endless.dilate(3, n);
        bounded.dilate(3, n);
        check(endless, bounded);
        endless.erode(2, n);
        bounded.erode(2, n);
        check(endless, bounded);
      }
      CHECK(qn::same_activity(endless.copy(), bounded));
      auto copied = bounded.copy_of(u);
      qn::Kernel differences = [](qn::Field<int, 2> a, qn::Field<int, 2> b) -> I32 {
        Var<int> n = 0;
        for (auto [i, j] : a) n += cast<int>(a(i, j) != b(i, j));
        return n;
      };
      CHECK(int(differences(copied, v)) == 0);
      endless.prune(u, [](auto x) { return x % 2 == 0; });
      bounded.prune(v, [](auto x) { return x % 2 == 0; });
      check(endless, bounded);
      endless.shrink();
      check(endless, bounded);
      const qn::Tree<2> coarse = endless.coarsen(), half = bounded.coarsen();
      check(coarse, half);
      CHECK(int(differences(half.coarsened(v, qn::Coarsening::sum),
                            coarse.coarsened(u, qn::Coarsening::sum))) == 0);
      check(coarse.refine(), half.refine());
      endless.subtract(bounded);
      CHECK(endless.active_count() == 0);
      endless.merge(bounded);
      bounded.clear();
      bounded.merge(endless);
      check(endless, bounded);
    }
  });
}

TEST_CASE("trees whose indices have more than 32 bits work with others") {
  qn::Device device("interpreter");
  const int64_t far = (int64_t(1) << 40) - 6;
  qn::Tree<2> wide{
      device, {qn::hash(), qn::bitmasked(4)}, {.shape = {int64_t(1) << 40, 8}, .offset = {-5, 0}}};
  qn::Tree<2> narrow{device, {qn::pointer(4), qn::bitmasked(4)}, {.offset = {-5, 0}}};
  auto u = wide.field<float>(1), v = narrow.field<float>();
  u.set({far, 3}, 2);
  u.set(2, 3, 2);
  v.set(2, 3, 2);
  CHECK(wide.active_count() == 2);
  CHECK(wide.stats().active == 2);
  wide.shrink();
  CHECK(u.at({far, 3}) == 2);
  CHECK(!qn::same_activity(narrow, wide));
  narrow.intersect(wide);
  CHECK(narrow.active_count() == 1);
  wide.subtract(narrow);
  CHECK(wide.active_count() == 1);
  CHECK(u.at({far, 3}) == 2);
  wide.clear();
  CHECK(wide.active_count() == 0);
}

TEST_CASE("indices far from 0 are asked about as they are") {
  on_every_device([](const qn::Device& device) {
    const auto expect = [](const qn::Field<int>& counts, const std::vector<int>& expected) {
      CHECK(qn::to_vector(counts) == expected);
    };
    const int64_t near = 2'000'000'000, far = int64_t(1) << 40;
    const int least = -(1 << 30);
    qn::Tree<1> tree{device, {qn::hash(), qn::dense(8)}, {.shape = {1000}, .offset = {-near}}};
    auto x = tree.field<int>();
    x.set({-near + 5}, 1);
    qn::Field<int> counts{device, {4}};
    qn::Kernel ask = [&] {
      for (auto i : x) {
        atomic_add(counts[0], 1);
        atomic_add(counts[1], cast<int>(i < -1'500'000'000));
        atomic_add(counts[2], cast<int>(i >= least));
        atomic_add(counts[3], cast<int>(max(i, least) == i));
      }
    };
    ask();
    expect(counts, {8, 8, 0, 0});

    qn::Tree<1> wide{device, {qn::hash(), qn::dense(8)}, {.shape = {2 * far}, .offset = {-far}}};
    auto y = wide.field<int>();
    for (const int64_t at : {-far + 5, int64_t(-3), int64_t(7), far - 9}) y.set({at}, 1);
    counts.fill(0);
    qn::Kernel ask_wide = [&] {
      for (auto i : y.wide()) {
        atomic_add(counts[0], 1);
        atomic_add(counts[1], cast<int>(i < -(int64_t(1) << 31)));
        atomic_add(counts[2], cast<int>(i >= int64_t(least)));
        atomic_add(counts[3], cast<int>(max(i, int64_t(least)) == i));
      }
    };
    ask_wide();
    expect(counts, {32, 8, 24, 24});
  });
}

// What the host does with whole trees without an end, against sets and maps of its own.
#include <quern/sparse.h>

#include <map>
#include <random>
#include <set>

#include "tests/end_to_end/devices.h"

using namespace qn::lang;
using Catch::Matchers::Contains;

namespace {

using Index = std::array<int64_t, 2>;
using Set = std::set<Index>;
using Map = std::map<Index, int>;

struct Reach {
  const char* text;
  int64_t first, extent;
};
/// Indices of 32 bits and of 64; the borders are near in both.
const Reach reaches[] = {{"32 bits", -(int64_t(1) << 30), (int64_t(1) << 31) - 1},
                         {"64 bits", -(int64_t(1) << 58), int64_t(1) << 59}};
/// Levels below the root, and how many elements are active as one.
struct Below {
  std::initializer_list<qn::TreeLevel> levels;
  int64_t unit;
};
const Below belows[] = {{{qn::hash(), qn::pointer(2), qn::bitmasked(4)}, 1},
                        {{qn::hash(), qn::dense(2)}, 2}};

struct Tree {
  Tree(const qn::Device& d, const Reach& r, const Below& b)
      : device(d),
        reach(r),
        unit(b.unit),
        tree(d, b.levels, {.shape = {r.extent, r.extent}, .offset = {r.first, r.first}}) {}

  bool has(const Index& at) const {
    for (int64_t i : at)
      if (i < reach.first || i - reach.first >= reach.extent) return false;
    return true;
  }
  /// With the rest of their units.
  Set rounded(const Set& places) const {
    Set out;
    for (const Index& at : places)
      for (int64_t k = 0; k < unit * unit; k++) {
        const auto along = [&](size_t axis, int64_t d) {
          return at[axis] - (at[axis] - reach.first) % unit + d;
        };
        const Index one = {along(0, k / unit), along(1, k % unit)};
        if (has(one)) out.insert(one);
      }
    return out;
  }
  Set without(Set from, const Set& ended) const {
    for (const Index& at : rounded(ended)) from.erase(at);
    return from;
  }
  void write(const qn::Field<int, 2>& u, const Map& all) const {
    qn::Field<int64_t, 2> at{device, {int64_t(all.size()), 2}};
    qn::Field<int> values{device, {int64_t(all.size())}};
    std::vector<int64_t> places;
    std::vector<int> numbers;
    for (const auto& [where, v] : all) {
      places.insert(places.end(), where.begin(), where.end());
      numbers.push_back(v);
    }
    at.copy_from(places);
    values.copy_from(numbers);
    qn::Kernel k = [&] {
      for (auto n : values) u(at(n, 0), at(n, 1)) = values[n];
    };
    k();
  }

  qn::Device device;
  Reach reach;
  int64_t unit;
  qn::Tree<2> tree;
};

/// What a loop over the field sees.
Map elements(const qn::Device& device, const qn::Field<int, 2>& u) {
  constexpr int most = 5000;
  qn::Field<int64_t, 2> at{device, {most, 2}};
  qn::Field<int> values{device, {most}}, count{device, {1}};
  qn::Kernel k = [&] {
    for (auto [i, j] : u.wide()) {
      I32 n = atomic_add(count[0], 1);
      at(n, 0) = i;
      at(n, 1) = j;
      values[n] = u(i, j);
    }
  };
  k();
  REQUIRE(count.at(0) <= most);
  std::vector<int64_t> places(2 * most);
  at.copy_to(places);
  const std::vector<int> numbers = qn::to_vector(values);
  Map out;
  for (size_t n = 0; n < size_t(count.at(0)); n++)
    out[{places[2 * n], places[2 * n + 1]}] = numbers[n];
  CHECK(int(out.size()) == count.at(0));
  return out;
}
Set keys(const Map& all) {
  Set out;
  for (const auto& [at, v] : all) out.insert(at);
  return out;
}

/// Clusters at the borders, in the middle, and far from each other.
Set random_places(std::mt19937& random, const Tree& t, int count) {
  const int64_t last = t.reach.first + t.reach.extent - 1;
  const int64_t centres[] = {t.reach.first, last, 0, last / 3, -last / 5 * 4, last - 40};
  Set out;
  while (int(out.size()) < count) {
    const auto draw = [&] { return centres[random() % 6] + int(random() % 9) - 4; };
    if (const Index at = {draw(), draw()}; t.has(at)) out.insert(at);
  }
  return out;
}
int value_at(const Index& at) { return int((at[0] * 31 + at[1]) % 1009); }
Map values_at(const Set& places) {
  Map out;
  for (const Index& at : places) out[at] = value_at(at);
  return out;
}
int64_t half_of(int64_t i) { return i >> 1; }

template <class F>
void on_every_tree(F body) {
  on_every_device([&](const qn::Device& device) {
    std::mt19937 random(5);
    for (const Reach& reach : reaches)
      for (const Below& below : belows) {
        INFO(reach.text << ", units of " << below.unit);
        body(device, reach, below, random);
      }
  });
}

}  // namespace

TEST_CASE("trees without an end are sets of what is active") {
  on_every_tree(
      [](const qn::Device& device, const Reach& reach, const Below& below, std::mt19937& random) {
        const Tree a(device, reach, below);
        // Another reach, which has all of the first.
        const Tree b(device, reaches[1], belows[0]);
        auto u = a.tree.field<int>(-7), v = b.tree.field<int>(-8);
        const Set of_a = random_places(random, a, 60);
        Set of_b = random_places(random, a, 60);
        a.write(u, values_at(of_a));
        b.write(v, values_at(of_b));
        Map expected;
        for (const Index& at : a.rounded(of_a)) expected[at] = -7;
        for (const Index& at : of_a) expected[at] = value_at(at);
        CHECK(elements(device, u) == expected);
        CHECK(a.tree.active_count() == int64_t(expected.size()));
        CHECK(b.tree.stats().active == int64_t(of_b.size()));
        CHECK_FALSE(qn::same_activity(a.tree, b.tree));

        const qn::Tree<2> copy = a.tree.copy();
        CHECK(qn::same_activity(copy, a.tree));
        CHECK(elements(device, copy.copy_of(u)) == expected);
        a.tree.shrink();
        CHECK(elements(device, u) == expected);

        a.tree.merge(b.tree);
        for (const Index& at : a.rounded(of_b)) expected.emplace(at, -7);
        CHECK(elements(device, u) == expected);
        b.tree.merge(copy);
        for (const Index& at : a.rounded(of_a)) of_b.insert(at);
        CHECK(keys(elements(device, v)) == of_b);
        CHECK(elements(device, b.tree.copy_of(u)).size() == of_b.size());
        a.tree.intersect(copy);
        Set rest;
        for (const Index& at : keys(expected))
          if (!a.rounded(of_a).contains(at)) rest.insert(at);
        rest = a.without(keys(expected), rest);
        CHECK(keys(elements(device, u)) == rest);
        b.tree.subtract(a.tree);
        for (const Index& at : rest) of_b.erase(at);
        CHECK(keys(elements(device, v)) == of_b);
        b.tree.build_from(a.tree);
        CHECK(qn::same_activity(a.tree, b.tree));
        a.tree.clear();
        CHECK(elements(device, u).empty());
        CHECK_FALSE(qn::same_activity(a.tree, b.tree));
      });
}

TEST_CASE("a tree is not united with what lies beyond its end") {
  on_every_device([](const qn::Device& device) {
    const Tree narrow(device, reaches[0], belows[0]), wide(device, reaches[1], belows[0]);
    auto u = narrow.tree.field<int>(), v = wide.tree.field<int>();
    narrow.write(u, {{{3, 4}, 1}});
    // Modulo 2^32 these are indices of the other tree.
    wide.write(v, {{{int64_t(1) << 32, 4}, 1}, {{3, (int64_t(7) << 32) + 4}, 1}, {{3, 5}, 1}});
    CHECK_THAT(error_of([&] { narrow.tree.merge(wide.tree); }),
               Contains("2 active elements lie outside"));
    narrow.tree.intersect(wide.tree);
    CHECK(narrow.tree.active_count() == 0);
    narrow.write(u, {{{3, 4}, 1}, {{3, 5}, 1}, {{0, 4}, 1}});
    narrow.tree.subtract(wide.tree);
    CHECK(keys(elements(device, u)) == Set{{3, 4}, {0, 4}});
    wide.tree.intersect(narrow.tree);
    CHECK(wide.tree.active_count() == 0);
  });
}

TEST_CASE("trees without an end are dilated and eroded to their borders") {
  on_every_tree(
      [](const qn::Device& device, const Reach& reach, const Below& below, std::mt19937& random) {
        const Tree t(device, reach, below);
        auto u = t.tree.field<int>(-7);
        for (auto neighbours : {qn::Neighbours::faces, qn::Neighbours::vertices}) {
          t.tree.clear();
          const Set places = random_places(random, t, 20);
          t.write(u, values_at(places));
          const auto each_near = [&](const Index& at, auto visit) {
            for (int64_t i = -1; i <= 1; i++)
              for (int64_t j = -1; j <= 1; j++)
                if (neighbours == qn::Neighbours::vertices || i == 0 || j == 0)
                  visit({at[0] + i, at[1] + j});
          };
          Set grown;
          for (const Index& at : t.rounded(places))
            each_near(at, [&](const Index& near) {
              if (t.has(near)) grown.insert(near);
            });
          grown = t.rounded(grown);
          t.tree.dilate(1, neighbours);
          CHECK(keys(elements(device, u)) == grown);
          Set ended;
          for (const Index& at : grown)
            each_near(at, [&](const Index& near) {
              if (!grown.contains(near)) ended.insert(at);
            });
          t.tree.erode(1, neighbours);
          CHECK(keys(elements(device, u)) == t.without(grown, ended));
        }
      });
}

TEST_CASE(
    "trees without an end are pruned, coarsened, refined, and made dense where they are asked") {
  on_every_tree([](const qn::Device& device, const Reach& reach, const Below& below,
                   std::mt19937& random) {
    const Tree t(device, reach, below);
    auto u = t.tree.field<int>(-7);
    const Set places = random_places(random, t, 40);
    t.write(u, values_at(places));
    t.tree.prune(u, [](auto v) { return v % 3 == 0; });
    Set kept;
    for (const Index& at : t.rounded(places))
      if ((places.contains(at) ? value_at(at) : -7) % 3 != 0) kept.insert(at);
    Map expected;
    for (const Index& at : t.rounded(kept)) expected[at] = places.contains(at) ? value_at(at) : -7;
    CHECK(elements(device, u) == expected);

    const qn::Tree<2> coarse = t.tree.coarsen();
    Map sums;
    for (const auto& [at, v] : expected) sums[{half_of(at[0]), half_of(at[1])}] += v;
    const Map found = elements(device, coarse.coarsened(u, qn::Coarsening::sum));
    int wrong = 0;
    for (const auto& [at, v] : sums) wrong += !found.contains(at) || found.at(at) != v;
    CHECK(wrong == 0);
    if (t.unit == 1) CHECK(found.size() == sums.size());

    const qn::Tree<2> fine = t.tree.refine();
    const Map refined = elements(device, fine.refined(u));
    CHECK(refined.size() == 4 * expected.size());
    for (const auto& [at, v] : refined) {
      const auto one = expected.find({half_of(at[0]), half_of(at[1])});
      wrong += one == expected.end() || one->second != v;
    }
    CHECK(wrong == 0);
    const qn::Tree<2> again = fine.coarsen();
    CHECK(qn::same_activity(again, t.tree));

    CHECK_THAT(error_of([&] { qn::to_dense(u); }), Contains("give it a slice of what is wanted"));
    const int64_t last = reach.first + reach.extent - 1;
    for (int64_t from : {reach.first, last - 50}) {
      const auto part = u.slice(0, from, from + 51).slice(1, from, from + 51);
      const qn::Field<int, 2> dense = qn::to_dense(part);
      for (int64_t i = 0; i < 51; i++)
        for (int64_t j = 0; j < 51; j++) {
          const auto one = expected.find({from + i, from + j});
          wrong += dense.at(i, j) != (one == expected.end() ? -7 : one->second);
        }
    }
    CHECK(wrong == 0);
    qn::Field<int, 2> image{device, {5, 6}, qn::offset(-3, 100)};
    for (int64_t i = -3; i < 2; i++)
      for (int64_t j = 100; j < 106; j++) image.set(i, j, (i + j) % 4 == 0 ? int(i * j) : -7);
    t.tree.from_dense(u, image);
    Set filled;
    for (int64_t i = -3; i < 2; i++)
      for (int64_t j = 100; j < 106; j++)
        if (image.at(i, j) != -7) filled.insert({i, j});
    expected.clear();
    for (const Index& at : t.rounded(filled)) expected[at] = -7;
    for (const Index& at : filled) expected[at] = image.at(at[0], at[1]);
    CHECK(elements(device, u) == expected);
  });
}

TEST_CASE("trees without an end are built from boxes, indices and points") {
  on_every_tree([](const qn::Device& device, const Reach& reach, const Below& below,
                   std::mt19937&) {
    const Tree t(device, reach, below);
    auto u = t.tree.field<int>(-7);
    const int64_t last = reach.first + reach.extent - 1;
    t.tree.build_from({qn::IndexBox<2>{{reach.first, last - 2}, {reach.first + 3, last + 1}},
                       qn::IndexBox<2>{{last / 7, -5}, {last / 7 + 2, -4}},
                       qn::IndexBox<2>{{reach.first, 0}, {last + 1, 0}}});
    Set expected;
    for (int64_t i = 0; i < 3; i++)
      for (int64_t j = 0; j < 3; j++) expected.insert({reach.first + i, last - j});
    expected.insert({last / 7, -5});
    expected.insert({last / 7 + 1, -5});
    CHECK(keys(elements(device, u)) == t.rounded(expected));
    CHECK_THAT(error_of([&] {
                 t.tree.build_from({qn::IndexBox<2>{{reach.first, reach.first}, {last + 1, last}}});
               }),
               Contains("more elements than"));
    CHECK_THAT(error_of([&] { t.tree.build_from({qn::IndexBox<2>{{0, last}, {1, last + 2}}}); }),
               Contains("box 0 goes from " + std::to_string(last)));
    qn::Field<ivec2> indices{device, {3}};
    indices.copy_from(std::vector<ivec2>{{-1 << 30, 5}, {(1 << 30) - 2, -6}, {0, 0}});
    t.tree.build_from(indices);
    expected = {{-1 << 30, 5}, {(1 << 30) - 2, -6}, {0, 0}};
    CHECK(keys(elements(device, u)) == t.rounded(expected));
    // Floats that are whole numbers.
    const auto far = float(int64_t(1) << (reach.extent >> 32 ? 50 : 29));
    qn::Field<vec2> points{device, {3}};
    points.copy_from(std::vector<vec2>{{far, -far}, {-1.5f, 2.25f}, {far, 0}});
    t.tree.build_from(points, qn::Voxels<2>{});
    expected = {{int64_t(far), -int64_t(far)}, {-2, 2}, {int64_t(far), 0}};
    CHECK(keys(elements(device, u)) == t.rounded(expected));
    points.set(1, {1e30f, 0});
    CHECK_THAT(error_of([&] { t.tree.build_from(points, qn::Voxels<2>{}); }),
               Contains("1 points lie outside"));
    // A mask on a tree of the other reach.
    const Tree other(device, reaches[reach.extent >> 32 ? 0 : 1], belows[1]);
    auto mask = other.tree.field<uint8_t>();
    mask.set(77, -1'000'000, 1);
    mask.set(78, -1'000'000, 0);
    t.tree.build_from(mask);
    CHECK(keys(elements(device, u)) == t.rounded({{77, -1'000'000}}));
  });
}

TEST_CASE("trees reach as far as 2^62") {
  qn::Device device("interpreter");
  const int64_t far = int64_t(1) << 62;
  const auto refusal = [&](int64_t shape, int64_t first) {
    return error_of([&] {
      qn::Tree<1>(device, {qn::hash(), qn::bitmasked(2)}, {.shape = {shape}, .offset = {first}});
    });
  };
  CHECK(refusal(far, -far) == "");
  CHECK(refusal(far, 0) == "");
  CHECK_THAT(refusal(far, 1), Contains("indices are below 2^62 along axis 0"));
  qn::Tree<1> tree{device, {qn::hash(), qn::bitmasked(2)}, {.shape = {far}}};
  auto u = tree.field<int>();
  u.set(far - 1, 5);
  tree.dilate(2);
  CHECK(tree.active_count() == 3);
  CHECK_THAT(error_of([&] { tree.refine(); }), Contains("twice its indices are beyond 2^62"));
  CHECK(tree.coarsen().active_count() == 2);
}

TEST_CASE("triangles are taken to voxels of trees without an end") {
  on_every_device([](const qn::Device& device) {
    for (const Reach& reach : reaches) {
      qn::Tree<3> tree{device,
                       {qn::hash(), qn::bitmasked(4)},
                       {.shape = {reach.extent, reach.extent, reach.extent},
                        .offset = {reach.first, reach.first, reach.first}}};
      // Flat, in the middle of elements: those that its projection has a point in common with.
      qn::Field<vec3> corners{device, {3}};
      qn::Field<ivec3> triangles{device, {1}};
      corners.copy_from(std::vector<vec3>{
          {-1000.5f, 7.5f, 0.5f}, {-996.5f, 7.5f, 0.5f}, {-1000.5f, 11.5f, 0.5f}});
      triangles.set(0, {0, 1, 2});
      tree.build_from(corners, triangles, {});
      auto u = tree.field<int>();
      qn::Kernel sum = [&]() -> I64 {
        Var<int64_t> s = 0;
        for (auto [i, j, k] : u.wide())
          s += 1 + 1'000'000 * (i + 1001) + 1000 * (j - 7) + 100'000'000 * k;
        return s;
      };
      int64_t expected = 0;
      for (int64_t i = 0; i < 5; i++)
        for (int64_t j = 0; j < 5; j++)
          // The lower corner of the square, or 0.5, is at most 4 from both legs together.
          if (std::max(double(i) - 0.5, 0.0) + std::max(double(j) - 0.5, 0.0) <= 4)
            expected += 1 + 1'000'000 * i + 1000 * j;
      CHECK(int64_t(sum()) == expected);
    }
  });
}

TEST_CASE("entries of children that are gone are given back") {
  on_every_device([](const qn::Device& device) {
    qn::Tree<2> tree{device, {qn::hash(), qn::bitmasked(2)}, {.cells = 16}};
    auto u = tree.field<int>(-1);
    qn::Kernel move = [&](I32 t, I32 n) {
      for (auto [i, j] : u) deactivate(u, i, j);
      for (auto k : range(n)) u(t * 1000 + k * 3, -t * k) = t;
    };
    // As many live at a time as before: the table does not grow with those that were.
    move(0, 10);
    std::set<int64_t> sizes;
    for (int t = 1; t <= 60; t++) {
      move(t, 10);
      if (t > 20) sizes.insert(tree.stats().levels[0].bytes);
    }
    CHECK(sizes.size() == 1);
    move(61, 2000);
    CHECK(tree.active_count() == 2000);
    const int64_t most = tree.stats().levels[0].bytes;
    CHECK(most > *sizes.begin());
    tree.shrink();
    CHECK(tree.active_count() == 2000);
    CHECK(tree.stats().levels[0].bytes <= most);
    CHECK(tree.stats().levels[1].room == tree.stats().levels[1].cells);
    move(62, 5);
    tree.shrink();
    const qn::TreeStats shrunk = tree.stats();
    CHECK(shrunk.levels[0].bytes < *sizes.begin() + 1);
    CHECK(shrunk.levels[1].room == 5);
    for (int k = 0; k < 5; k++) CHECK(u.at(62'000 + 3 * k, -62 * k) == 62);
    move(63, 3000);
    CHECK(tree.active_count() == 3000);
    int wrong = 0;
    for (int k = 0; k < 3000; k += 100) wrong += u.at(63'000 + 3 * k, -63 * k) != 63;
    CHECK(wrong == 0);
    // A table that holds nothing but what is gone.
    tree.clear();
    tree.shrink();
    CHECK(tree.active_count() == 0);
    move(64, 3);
    CHECK(tree.active_count() == 3);
  });
}

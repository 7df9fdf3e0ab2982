// Trees as sets of elements, against sets of the host's.
#include <algorithm>

#include "tests/sparse/places.h"

using namespace qn::lang;
using Catch::Matchers::Contains;

namespace {

/// In how many steps a neighbour of a neighbour … is reached that lies so far away.
template <int N>
int steps_to(const At<N>& away, qn::Neighbours neighbours) {
  int sum = 0, most = 0;
  for (int d : away) {
    sum += std::abs(d);
    most = std::max(most, std::abs(d));
  }
  switch (neighbours) {
    case qn::Neighbours::faces: return sum;
    case qn::Neighbours::edges: return std::max(most, (sum + 1) / 2);
    default: return most;
  }
}
template <int N, class F>
void each_near(const At<N>& at, int radius, qn::Neighbours neighbours, F&& visit) {
  At<N> from{}, to{};
  from.fill(-radius);
  to.fill(radius + 1);
  each_at<N>(from, to, [&](const At<N>& away) {
    if (steps_to<N>(away, neighbours) > radius) return;
    At<N> near = at;
    for (size_t k = 0; k < size_t(N); k++) near[k] += away[k];
    visit(near);
  });
}
template <int N>
Places<N> dilated(const Places<N>& places, int radius, qn::Neighbours neighbours) {
  Places<N> all;
  for (const At<N>& at : places)
    each_near<N>(at, radius, neighbours, [&](const At<N>& near) {
      if (is_inside<N>(near)) all.insert(near);
    });
  return all;
}
/// What ends with its unit.
template <int N>
Places<N> without(Places<N> from, const Places<N>& ended, int unit) {
  for (const At<N>& at : in_units<N>(ended, unit)) from.erase(at);
  return from;
}
template <int N>
Places<N> eroded(const Places<N>& places, int radius, qn::Neighbours neighbours, int unit) {
  Places<N> ended;
  for (const At<N>& at : places)
    each_near<N>(at, radius, neighbours, [&](const At<N>& near) {
      if (!places.contains(near)) ended.insert(at);
    });
  return without<N>(places, ended, unit);
}
template <int N>
Places<N> common(const Places<N>& a, const Places<N>& b, bool in_both) {
  Places<N> out;
  for (const At<N>& at : a)
    if (b.contains(at) == in_both) out.insert(at);
  return out;
}

template <int N>
void check_neighbours(const qn::Device& device, std::initializer_list<int> radii) {
  std::mt19937 random(N);
  on_every_tree<N>(device, [&](const Kernels<N>& k, const Levels& kind) {
    for (auto neighbours : {qn::Neighbours::faces, qn::Neighbours::edges, qn::Neighbours::vertices})
      for (int radius : radii) {
        INFO("neighbours " << int(neighbours) << ", radius " << radius);
        Written<N> one(device, k, kind, values_at<N>(random_places<N>(random, 6)));
        Elements<N>& expected = one.elements;
        one.tree.dilate(radius, neighbours);
        make_active<N>(expected, dilated<N>(places_of<N>(expected), radius, neighbours), kind.unit);
        CHECK(k.elements(device, one.u) == expected);

        const int inwards = std::max(radius - 1, 1);
        const Places<N> left = eroded<N>(places_of<N>(expected), inwards, neighbours, kind.unit);
        std::erase_if(expected, [&](const auto& e) { return !left.contains(e.first); });
        one.tree.erode(inwards, neighbours);
        CHECK(k.elements(device, one.u) == expected);
      }
  });
}

template <int N>
void check_sets(const qn::Device& device) {
  std::mt19937 random(N);
  on_every_tree<N>(device, [&](const Kernels<N>& k, const Levels& kind) {
    for (int apart : {0, N % 3 + 1}) {
      const size_t number = size_t(&kind - kinds_of_trees.data() + apart) % kinds_of_trees.size();
      const Levels& other_kind = kinds_of_trees[number];
      INFO("and " << other_kind.text);
      const Written<N> first(device, k, kind, values_at<N>(random_places<N>(random, 20)));
      const Written<N> second(device, k, other_kind, values_at<N>(random_places<N>(random, 20)));
      const qn::Tree<N>&a = first.tree, &b = second.tree;
      const qn::Field<int, N>& u = first.u;
      const Elements<N>& before = first.elements;
      const Places<N> of_a = places_of<N>(before), of_b = places_of<N>(second.elements);
      CHECK(k.elements(device, u) == before);
      CHECK(qn::same_activity(a, b) == (of_a == of_b));

      const qn::Tree<N> copy = a.copy();
      auto w = copy.copy_of(u);
      CHECK(qn::same_activity(a, copy));
      CHECK(k.elements(device, w) == before);

      a.merge(b);
      Elements<N> expected = before;
      make_active<N>(expected, of_b, kind.unit);
      CHECK(k.elements(device, u) == expected);
      // The copy is another tree.
      CHECK(k.elements(device, w) == before);
      auto later = a.copy_of(w);
      CHECK(k.elements(device, later) == expected);

      copy.intersect(b);
      const Places<N> common_ones = without<N>(of_a, common<N>(of_a, of_b, false), kind.unit);
      CHECK(k.places(device, w) == common_ones);
      CHECK(qn::same_activity(a, copy) == (k.places(device, u) == common_ones));
      a.subtract(b);
      Places<N> rest = places_of<N>(expected);
      rest = without<N>(rest, common<N>(rest, of_b, true), kind.unit);
      CHECK(k.places(device, u) == rest);
      a.subtract(a);
      CHECK(a.active_count() == 0);
    }
  });
}

struct Far {
  template <class V>
  auto operator()(const V& v) const {
    return v % 3 == 0;
  }
};

template <int N>
void check_prune(const qn::Device& device) {
  std::mt19937 random(N);
  on_every_tree<N>(device, [&](const Kernels<N>& k, const Levels& kind) {
    Elements<N> written;
    for (const At<N>& at : random_places<N>(random, 40)) written[at] = int(random() % 12) - 12;
    Written<N> one(device, k, kind, written);
    const qn::Tree<N>& tree = one.tree;
    const qn::Field<int, N>& u = one.u;
    Elements<N>& expected = one.elements;
    const auto drop = [&](auto&& is_dropped) {
      Places<N> kept;
      for (const auto& [at, v] : expected)
        if (!is_dropped(v)) kept.insert(at);
      kept = in_units<N>(kept, kind.unit);
      std::erase_if(expected, [&](const auto& e) { return !kept.contains(e.first); });
    };
    tree.prune(u, Far());
    drop([](int v) { return v % 3 == 0; });
    CHECK(k.elements(device, u) == expected);
    CHECK(tree.active_count() == int64_t(expected.size()));
    tree.prune(u, 2);
    drop([](int v) { return std::abs(v + 7) <= 2; });
    CHECK(k.elements(device, u) == expected);
    tree.prune(u, [](auto v) { return v > -100; });
    CHECK(tree.active_count() == 0);
  });
}

}  // namespace

TEST_CASE("dilation and erosion reach as far as steps to neighbours do") {
  on_every_device([](const qn::Device& device) {
    check_neighbours<1>(device, {1, 4});
    check_neighbours<2>(device, {1, 3});
    check_neighbours<3>(device, {1, 2});
    check_neighbours<4>(device, {1});
  });
}

TEST_CASE("trees of any levels are united, intersected, subtracted, compared and copied") {
  on_every_device([](const qn::Device& device) {
    check_sets<1>(device);
    check_sets<2>(device);
    check_sets<3>(device);
    check_sets<4>(device);
  });
}

TEST_CASE("prune ends units all of whose elements a predicate holds for") {
  on_every_device([](const qn::Device& device) {
    check_prune<1>(device);
    check_prune<2>(device);
    check_prune<3>(device);
    check_prune<4>(device);
  });
}

TEST_CASE("prune by distance of floats, vectors and unsigned numbers") {
  on_every_device([](const qn::Device& device) {
    qn::Tree<1> tree{device, {qn::pointer(8), qn::bitmasked(4)}};
    const float inf = std::numeric_limits<float>::infinity();
    auto u = tree.field<float>(inf);
    auto v = tree.field<qn::Vec<float, 2>>({1, 2});
    auto w = tree.field<uint8_t>(250);
    auto b = tree.field<bool>(true);
    const auto fill = [&] {
      for (int k = 0; k < 6; k++) {
        u.set(k, k == 1 ? inf : k == 2 ? std::nanf("") : float(k));
        v.set(k, {1.0f + 0.25f * float(k), k == 4 ? 9.0f : 2.0f});
        w.set(k, uint8_t(246 + 2 * k));  // 246 … 254, 0
        b.set(k, k % 2 == 0);
      }
    };
    using Places = std::set<int>;
    const auto active = [&] {
      Places out;
      qn::Field<int> seen{device, {32}};
      qn::Kernel look = [&] {
        for (auto i : u) seen[i] = 1;
      };
      look();
      for (int k = 0; k < 32; k++)
        if (seen.at(k)) out.insert(k);
      return out;
    };
    fill();
    tree.prune(u);
    CHECK(active() == Places{0, 2, 3, 4, 5});
    tree.clear();
    fill();
    tree.prune(v, 0.5f);
    CHECK(active() == Places{3, 4, 5});
    tree.clear();
    fill();
    tree.prune(w, 2);
    CHECK(active() == Places{0, 4, 5});
    tree.clear();
    fill();
    tree.prune(b);
    CHECK(active() == Places{1, 3, 5});
    // Of a view its elements are asked, and no others.
    tree.clear();
    fill();
    tree.prune(u.slice(0, 3, 6).rebased({100}), [](auto x) { return x >= 4.0f; });
    CHECK(active() == Places{0, 1, 2, 3});
  });
}

TEST_CASE("trees of other shapes are united where they fit") {
  on_every_device([](const qn::Device& device) {
    qn::Tree<2> small{device, {qn::pointer(4), qn::bitmasked(4)}, {.offset = {-3, 2}}};
    qn::Tree<2> large{device, {qn::pointer(16), qn::dense(8)}, {.offset = {-20, -20}}};
    auto s = small.field<int>(1), l = large.field<int>(2);
    s.set(-3, 2, 5);
    s.set(12, 17, 6);
    large.merge(small);
    CHECK(large.active_count() == 128);
    CHECK(l.at(-3, 2) == 2);
    auto values = large.copy_of(s);
    CHECK((values.at(-3, 2) == 5 && values.at(12, 17) == 6 && values.at(90, 90) == 1));
    int line = 0;
    const std::string text = error_of([&] { small.merge(large); }, &line);
    CHECK(line == __LINE__ - 1);
    // The two units of 8 × 8 are [-4, 4) × [-4, 4) and [12, 20) × [12, 20).
    const int outside = 128 - 7 * 2 - 1 * 6;
    CHECK_THAT(text,
               Contains("merge: " + std::to_string(outside) + " active elements lie outside"));
    CHECK(small.active_count() == 2);
    small.intersect(large);
    CHECK(small.active_count() == 2);
    CHECK_FALSE(qn::same_activity(small, large));
    large.subtract(small);
    CHECK(large.active_count() == 0);
    small.clear();
    CHECK(qn::same_activity(small, large));
    small.merge(large);
  });
}

TEST_CASE("operations on trees refuse what they cannot do") {
  qn::Device device("interpreter"), cpu("cpu");
  qn::Tree<2> tree{device, {qn::pointer(4), qn::bitmasked(4)}}, far{cpu, {qn::pointer(4)}};
  qn::Tree<2> second{device, {qn::pointer(4), qn::bitmasked(4)}};
  auto u = tree.field<float>();
  auto v = tree.field<qn::Vec<float, 2>>();
  auto w = second.field<float>();
  qn::Field<float, 2> dense{device, {16, 16}};
  const auto refused = [](auto f) {
    int line = 0;
    const std::string text = error_of(f, &line);
    return text + " line " + std::to_string(line);
  };
  const std::string text = refused([&] { tree.dilate(-1); });
  CHECK_THAT(text, Contains("dilate by a radius of -1; it is 0 or more"));
  CHECK_THAT(text, Contains(" line " + std::to_string(__LINE__ - 2)));
  CHECK_THAT(refused([&] { tree.erode(-2); }), Contains("erode by a radius of -2"));
  CHECK_THAT(refused([&] { tree.merge(far); }), Contains("merge of a tree on the device"));
  CHECK_THAT(refused([&] { tree.subtract(far); }), Contains("subtract of a tree on the device"));
  CHECK_THAT(refused([&] { qn::same_activity(tree, far); }), Contains("same_activity of a tree"));
  CHECK_THAT(refused([&] { tree.prune(w); }), Contains("a field that is not on this tree"));
  CHECK_THAT(refused([&] { tree.prune(dense); }), Contains("a field that is not on this tree"));
  CHECK_THAT(refused([&] { tree.prune(u, -1.0f); }), Contains("a tolerance below 0"));
  CHECK_THAT(refused([&] { tree.prune(u, std::nanf("")); }), Contains("a tolerance below 0"));
  CHECK_THAT(refused([&] { tree.prune(v.component(1)); }), Contains("give it the whole field"));
  CHECK_THAT(refused([&] { tree.copy_of(dense); }), Contains("a field that is on no tree"));
  tree.prune(v.component(1), [](auto x) { return x < 0.0f; });
  u.release();
  CHECK_THAT(refused([&] { tree.prune(u); }), Contains("released"));
  CHECK(tree.active_count() == 0);
}

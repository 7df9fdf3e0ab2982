// Trees built from points, boxes, masks, trees and triangles, against loops of the host.
#include <algorithm>
#include <cmath>

#include "tests/sparse/places.h"

using namespace qn::lang;
using Catch::Matchers::Contains;

namespace {

template <class C, int N>
C coordinates(const At<N>& at) {
  C c{};
  if constexpr (N == 1)
    c = C(at[0]);
  else
    for (int k = 0; k < N; k++) c[k] = at[size_t(k)];
  return c;
}

template <int N>
Elements<N> background(const Places<N>& places) {
  Elements<N> all;
  for (const At<N>& at : places) all[at] = -7;
  return all;
}

template <int N>
void check_build(const qn::Device& device) {
  std::mt19937 random(N);
  on_every_tree<N>(device, [&](const Kernels<N>& k, const Levels& kind) {
    const qn::Tree<N> tree = tree_of<N>(device, kind);
    auto u = tree.template field<int>(-7);
    const auto spoil = [&] { k.write(device, u, values_at<N>(random_places<N>(random, 10))); };
    const auto check = [&](const Places<N>& places) {
      CHECK(k.elements(device, u) == background<N>(in_units<N>(places, kind.unit)));
    };

    // Indices, each twice.
    Places<N> places = random_places<N>(random, 15);
    std::vector<Coordinates<N>> indices;
    for (int time = 0; time < 2; time++)
      for (const At<N>& at : places) indices.push_back(coordinates<Coordinates<N>, N>(at));
    qn::Field<Coordinates<N>> at{device, {int64_t(indices.size())}};
    at.copy_from(indices);
    spoil();
    tree.build_from(at);
    check(places);

    // Points, of numbers whose quotients are exact.
    using Point = std::conditional_t<N == 1, float, qn::Vec<float, N == 1 ? 2 : N>>;
    qn::Voxels<N> voxels{.size = 0.25f};
    for (int axis = 0; axis < N; axis++) voxels.origin[size_t(axis)] = float(axis) - 0.5f;
    std::vector<Point> points;
    places.clear();
    for (int n = 0; n < 40; n++) {
      At<N> where{};
      Point p{};
      for (int axis = 0; axis < N; axis++) {
        const int first = first_of<N>[size_t(axis)], extent = extent_of<N>[size_t(axis)];
        // In 64ths of an element, borders included.
        const int part = first * 64 + int(random() % unsigned(extent * 64)) / 16 * 16;
        where[size_t(axis)] = int(std::floor(double(part) / 64));
        const float x = voxels.origin[size_t(axis)] + 0.25f * float(part) / 64;
        if constexpr (N == 1)
          p = x;
        else
          p[axis] = x;
      }
      points.push_back(p);
      places.insert(where);
    }
    qn::Field<Point> cloud{device, {int64_t(points.size())}};
    cloud.copy_from(points);
    spoil();
    tree.build_from(cloud, voxels);
    check(places);

    // Boxes, one of them empty, which overlap.
    places.clear();
    std::vector<qn::IndexBox<N>> boxes;
    for (int box = 0; box < 4; box++) {
      At<N> lo{}, hi{};
      qn::IndexBox<N>& b = boxes.emplace_back();
      for (size_t axis = 0; axis < size_t(N); axis++) {
        lo[axis] = first_of<N>[axis] + int(random() % unsigned(extent_of<N>[axis] / 2));
        hi[axis] = box == 2 ? lo[axis] : lo[axis] + 1 + int(random() % 4);
        hi[axis] = std::min(hi[axis], first_of<N>[axis] + extent_of<N>[axis]);
        b.lo[axis] = lo[axis], b.hi[axis] = hi[axis];
      }
      each_at<N>(lo, hi, [&](const At<N>& one) { places.insert(one); });
    }
    spoil();
    tree.build_from(boxes);
    check(places);

    // A mask that is larger than the tree, of two types.
    const auto check_mask = [&]<class M>(M) {
      At<N> from = first_of<N>, to = from;
      std::vector<M> mask;
      places.clear();
      for (size_t axis = 0; axis < size_t(N); axis++) {
        from[axis] -= 1;
        to[axis] += extent_of<N>[axis] + 2;
      }
      auto flags = [&]<size_t... K>(std::index_sequence<K...>) {
        return qn::Field<M, N>(device, {(to[K] - from[K])...}, qn::offset(from[K]...));
      }(std::make_index_sequence<size_t(N)>());
      std::unique_ptr<M[]> values(new M[size_t(flags.size())]);
      size_t n = 0;
      each_at<N>(from, to, [&](const At<N>& one) {
        values[n] = M(is_inside<N>(one) && random() % 5 == 0 ? 3 : 0);
        if (values[n++]) places.insert(one);
      });
      flags.copy_from(values.get(), n);
      spoil();
      tree.build_from(flags);
      check(places);
    };
    check_mask(bool());
    check_mask(uint8_t());

    // Another tree, then the tree itself.
    const Levels& other_kind =
        kinds_of_trees[size_t(&kind - kinds_of_trees.data() + 1) % kinds_of_trees.size()];
    const qn::Tree<N> other = tree_of<N>(device, other_kind);
    auto v = other.template field<int>();
    places = random_places<N>(random, 20);
    k.write(device, v, values_at<N>(places));
    spoil();
    tree.build_from(other);
    check(in_units<N>(places, other_kind.unit));
    k.write(device, u, values_at<N>(places));
    tree.build_from(tree);
    check(in_units<N>(places, other_kind.unit));
  });
}

using V = std::array<int64_t, 3>;
V cross_of(const V& a, const V& b) {
  return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}
V minus(const V& a, const V& b) { return {a[0] - b[0], a[1] - b[1], a[2] - b[2]}; }

/// Do a triangle and a box have a point in common? In whole numbers: convex bodies have one unless
/// their shadows on a normal of a face, or on a cross product of two edges, are apart.
bool meet(const std::array<V, 3>& triangle, const V& lo, const V& hi) {
  std::vector<V> corners, axes = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
  for (int k = 0; k < 8; k++)
    corners.push_back({k & 1 ? hi[0] : lo[0], k & 2 ? hi[1] : lo[1], k & 4 ? hi[2] : lo[2]});
  const V ab = minus(triangle[1], triangle[0]), ac = minus(triangle[2], triangle[0]),
          bc = minus(triangle[2], triangle[1]);
  axes.push_back(cross_of(ab, ac));
  for (const V& edge : {ab, ac, bc})
    for (int k = 0; k < 3; k++) axes.push_back(cross_of(axes[size_t(k)], edge));
  for (const V& axis : axes) {
    const auto shadow = [&](const auto& points) {
      int64_t least = INT64_MAX, most = INT64_MIN;
      for (const V& p : points) {
        const int64_t at = p[0] * axis[0] + p[1] * axis[1] + p[2] * axis[2];
        least = std::min(least, at);
        most = std::max(most, at);
      }
      return std::pair(least, most);
    };
    const auto [a, b] = shadow(corners);
    const auto [c, d] = shadow(triangle);
    if (b < c || d < a) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("trees are built from indices, points, boxes, masks and trees") {
  on_every_device([](const qn::Device& device) {
    check_build<1>(device);
    check_build<2>(device);
    check_build<3>(device);
    check_build<4>(device);
  });
}

TEST_CASE("trees are built from the cubes that triangles touch") {
  on_every_device([](const qn::Device& device) {
    std::mt19937 random(3);
    const Kernels<3> k;
    // Coordinates are eighths of an element, so that no float is rounded.
    const qn::Voxels<3> voxels{.size = 0.5f, .origin = {1, -2, 0.25f}};
    const auto extent = extent_of<3>, first = first_of<3>;
    for (float band : {0.0f, 1.5f})
      for (int flat = 0; flat < 4; flat++) {
        const int count = 4;
        std::vector<qn::Vec<float, 3>> vertices;
        std::vector<V> eighths;
        for (int n = 0; n < 3 * count; n++) {
          V at{};
          qn::Vec<float, 3> p{};
          for (size_t axis = 0; axis < 3; axis++) {
            at[axis] = int64_t(random() % unsigned(extent[axis] * 8 + 1)) + first[axis] * 8;
            // Some lie on faces of cubes, some are segments, some are points.
            if (flat == 1) at[axis] -= at[axis] % 8;
            if (flat == 2 && n % 3 == 2) at[axis] = eighths.back()[axis];
            if (flat == 3 && n % 3 > 0) at[axis] = eighths.back()[axis];
            p[int(axis)] = voxels.origin[axis] + 0.5f * float(at[axis]) / 8;
          }
          eighths.push_back(at);
          vertices.push_back(p);
        }
        std::vector<qn::Vec<int, 3>> triangles;
        for (int n = 0; n < count; n++) triangles.push_back({3 * n + 2, 3 * n, 3 * n + 1});
        qn::Field<qn::Vec<float, 3>> points{device, {3 * count}};
        qn::Field<qn::Vec<int, 3>> corners{device, {count}};
        points.copy_from(vertices);
        corners.copy_from(triangles);

        const Levels& kind = kinds_of_trees[size_t(flat)];
        const qn::Tree<3> tree = tree_of<3>(device, kind);
        auto u = tree.field<int>(-7);
        tree.build_from(points, corners, voxels, band);
        Places<3> expected;
        const auto wide = int64_t(band * 8);
        each_at_all<3>([&](const At<3>& at) {
          const V lo = {at[0] * 8 - wide, at[1] * 8 - wide, at[2] * 8 - wide};
          const V hi = {at[0] * 8 + 8 + wide, at[1] * 8 + 8 + wide, at[2] * 8 + 8 + wide};
          for (int n = 0; n < count; n++) {
            const size_t t = size_t(3 * n);
            if (meet({eighths[t], eighths[t + 1], eighths[t + 2]}, lo, hi)) expected.insert(at);
          }
        });
        CHECK(k.places(device, u) == in_units<3>(expected, kind.unit));
      }
  });
}

TEST_CASE("trees are not built from what lies outside of them") {
  on_every_device([](const qn::Device& device) {
    qn::Tree<2> tree{device, {qn::pointer(4), qn::bitmasked(4)}, {.shape = {16, 10}}};
    auto u = tree.field<int>(3);
    auto flags = tree.field<bool>();
    u.set(4, 4, 5);
    const float nan = std::nanf("");
    qn::Field<qn::Vec<float, 2>> points{device, {6}};
    const std::vector<qn::Vec<float, 2>> places = {{0, 0},     {15.9f, 9.9f}, {-0.1f, 3},
                                                   {3, 10.0f}, {nan, 1},      {1e30f, 2}};
    points.copy_from(places);
    int line = 0;
    const auto refused = [&](auto f) {
      const std::string text = error_of(f, &line);
      CHECK(u.at(4, 4) == 5);
      CHECK(tree.active_count() == 1);
      return text;
    };
    std::string text = refused([&] { tree.build_from(points, {.size = 1}); });
    CHECK_THAT(text, Contains("build_from: 4 points lie outside of the tree, which has shape "
                              "(16, 10) from index (0, 0) on"));
    CHECK(line == __LINE__ - 3);
    text = refused([&] { tree.build_from(points, {.size = 0}); });
    CHECK_THAT(text, Contains("elements of size 0"));
    text = refused([&] { tree.build_from(points, {.size = nan}); });
    CHECK_THAT(text, Contains("it is above 0"));
    text = refused([&] { tree.build_from({qn::IndexBox<2>{{0, 0}, {4, 11}}}); });
    CHECK_THAT(text, Contains("box 0 goes from 0 to below 11 along axis 1, whose indices go from 0 "
                              "to below 10"));
    text = refused([&] {
      tree.build_from({qn::IndexBox<2>{{0, 0}, {4, 4}}, qn::IndexBox<2>{{5, 0}, {4, 4}}});
    });
    CHECK_THAT(text, Contains("box 1 goes from 5 to below 4"));
    qn::Field<bool, 2> mask{device, {16, 11}};
    mask.set(2, 10, true);
    text = refused([&] { tree.build_from(mask); });
    CHECK_THAT(text, Contains("1 elements of the mask that are true lie outside"));
    text = refused([&] { tree.build_from(flags); });
    CHECK_THAT(text, Contains("a field on the tree"));
    qn::Field<qn::Vec<int, 2>> none{device, {0}};
    none.release();
    text = refused([&] { tree.build_from(none); });
    CHECK_THAT(text, Contains("released"));
    qn::Field<qn::Vec<int, 2>> nothing{device, {0}};
    tree.build_from(nothing);
    CHECK(tree.active_count() == 0);

    qn::Tree<3> voxels{device, {qn::pointer(4), qn::bitmasked(4)}};
    qn::Field<qn::Vec<float, 3>> corners{device, {3}};
    qn::Field<qn::Vec<int, 3>> triangles{device, {2}};
    corners.copy_from(std::vector<qn::Vec<float, 3>>{{1, 1, 1}, {2, 2, 16}, {3, 1, 2}});
    triangles.copy_from(std::vector<qn::Vec<int, 3>>{{0, 1, 2}, {0, 3, 1}});
    text = error_of([&] { voxels.build_from(corners, triangles, {}); });
    CHECK_THAT(text, Contains("1 triangles name vertices that are not there; there are 3"));
    triangles.set(1, {0, 0, 0});
    text = error_of([&] { voxels.build_from(corners, triangles, {}, -1.0f); });
    CHECK_THAT(text, Contains("a band of -1"));
    corners.set(1, {2, 2, 16.25f});
    text = error_of([&] { voxels.build_from(corners, triangles, {}); });
    CHECK_THAT(text, Contains("1 triangles lie outside of the tree"));
    CHECK(voxels.active_count() == 0);
  });
}

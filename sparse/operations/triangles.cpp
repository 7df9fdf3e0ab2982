// A tree made of the elements that triangles touch: those of whose cubes, grown by the band on all
// sides, and a triangle no axis separates (Akenine-Möller, "Fast 3D triangle-box overlap testing",
// Journal of Graphics Tools 6, 2001): the axes of the cube, the triangle's normal and the cross products
// of both's edges.
#include "quern/algorithms.h"
#include "sparse/operations/topology.h"

namespace quern::detail {

namespace {

using namespace lang;

constexpr const char* name = "build_from";
constexpr Options strict(const char* what) {
  return {.strict = true, .checked = false, .name = what};
}

using Points = Field<Vec<float, 3>>;
using Corners = Field<Vec<int, 3>>;
using Point = Val<Vec<float, 3>>;

/// A triangle's corners in elements, counted from index 0.
struct Triangle {
  Triangle(const Points& points, const Val<Vec<int, 3>>& corners, const Point& origin,
           const F32& size)
      : a((points[corners[0]] - origin) / size),
        b((points[corners[1]] - origin) / size),
        c((points[corners[2]] - origin) / size) {}
  Point a, b, c;
};

B1 is_named(const Points& points, const I32& corner) {
  I32 first = points.first(0);
  return (corner >= first) & (corner < first + points.dim(0));
}
/// Is the point within the elements, their outer faces included?
B1 is_within(const Topology<3>& x, const Point& p) {
  Var<bool> within = true;
  for (int axis = 0; axis < 3; axis++) {
    I64 first = x.first<int64_t>(axis), end = first + x.dim<int64_t>(axis);
    within = within & (p[axis] == p[axis]) & (cast<int64_t>(floor(p[axis])) >= first) &
             (cast<int64_t>(ceil(p[axis])) <= end);
  }
  return within;
}

/// Do all projections onto an axis lie on one side of those of a cube around 0?
B1 is_apart(const F32& p, const F32& q, const F32& r, const F32& reach) {
  return (min(min(p, q), r) > reach) | (max(max(p, q), r) < -reach);
}
/// Of corners relative to the centre of a cube of this half side.
B1 touches(const Point& a, const Point& b, const Point& c, const F32& half) {
  Var<bool> apart = false;
  for (int axis = 0; axis < 3; axis++) apart = apart | is_apart(a[axis], b[axis], c[axis], half);
  const Point edges[] = {b - a, c - b, a - c};
  const Point normal = cross(edges[0], edges[1]);
  const F32 distance = dot(normal, a);
  apart = apart | (abs(distance) > half * (abs(normal[0]) + abs(normal[1]) + abs(normal[2])));
  for (const Point& e : edges)
    for (int axis = 0; axis < 3; axis++) {
      // The cross product of the cube's edge along `axis` and e.
      const int j = (axis + 1) % 3, k = (axis + 2) % 3;
      const auto along = [&](const Point& p) { return e[j] * p[k] - e[k] * p[j]; };
      apart = apart | is_apart(along(a), along(b), along(c), half * (abs(e[j]) + abs(e[k])));
    }
  return !apart;
}

/// Calls `visit` with the elements whose cubes, `band` larger on all sides, a triangle touches.
template <class I, class F>
void each_touched(const Topology<3>& x, const Triangle& t, const F32& band, F&& visit) {
  Var<Vec<I, 3>> lo, hi;
  for (int axis = 0; axis < 3; axis++) {
    Val<I> first = x.first<I>(axis);
    F32 least = min(min(t.a[axis], t.b[axis]), t.c[axis]);
    F32 most = max(max(t.a[axis], t.b[axis]), t.c[axis]);
    lo[axis] = max(cast<I>(ceil(least - band)) - I(1), first);
    hi[axis] = min(cast<I>(floor(most + band)), first + (x.dim<I>(axis) - I(1))) + I(1);
  }
  for (auto i : range(lo[0], hi[0]))
    for (auto j : range(lo[1], hi[1]))
      for (auto k : range(lo[2], hi[2])) {
        Point centre = vec(cast<float>(i), cast<float>(j), cast<float>(k)) + 0.5f;
        If(touches(t.a - centre, t.b - centre, t.c - centre, band + 0.5f)) { visit(i, j, k); }
      }
}

}  // namespace

void build_from_triangles(TreeData& tree, FieldObject* points_, FieldObject* corners_,
                          const float* from, float size, float band, Loc loc) {
  const Operation operation(name, tree, loc);
  expect_input(tree, points_, loc);
  expect_input(tree, corners_, loc);
  expect_size(size, loc);
  if (!(band >= 0) || band > 1e6f)
    throw Error(loc, std::string(name) + " with a band of " + std::to_string(band) +
                         " elements; it is 0 to a million");
  const Topology<3> x = topology<3>(tree);
  const Points points = shared<Vec<float, 3>>(points_);
  const Corners corners = shared<Vec<int, 3>>(corners_);
  const Vec<float, 3> origin{from[0], from[1], from[2]};

  const auto [unnamed, outside] = kernel_of([](bool) {
    return Kernel{
        [](Topology<3> u, Points p, Corners c, Point o, F32 s) {
          Var<int64_t> no_point = 0, not_within = 0;
          for (auto t : c.wide()) {
            Val<Vec<int, 3>> corner = c[t];
            B1 named = is_named(p, corner[0]) & is_named(p, corner[1]) & is_named(p, corner[2]);
            no_point += cast<int64_t>(!named);
            If(named) {
              Triangle one(p, corner, o, s);
              not_within +=
                  cast<int64_t>(!(is_within(u, one.a) & is_within(u, one.b) & is_within(u, one.c)));
            }
          }
          return result(I64(no_point), I64(not_within));
        },
        strict("looking at triangles")};
  })(x, points, corners, origin, size, loc);
  if (int64_t(unnamed) > 0)
    throw Error(loc, std::string(name) + ": " + std::to_string(int64_t(unnamed)) +
                         " triangles name vertices that are not there; there are " +
                         std::to_string(points.size(loc)));
  if (int64_t(outside) > 0) refuse_outside(name, tree, int64_t(outside), "triangles", loc);

  clear(tree, loc);
  with_index(tree.wide, [&]<class I>(I) {
    kernel_of([](bool) {
      return Kernel{[](Topology<3> u, Points p, Corners c, Point o, F32 s, F32 w) {
                      for (auto t : c.wide())
                        each_touched<I>(u, Triangle(p, c[t], o, s), w,
                                        [&](const Val<I>& i, const Val<I>& j, const Val<I>& k) {
                                          activate(u, i, j, k);
                                        });
                    },
                    strict("voxelizing triangles")};
    })(x, points, corners, origin, size, band, loc);
  });
}

}  // namespace quern::detail

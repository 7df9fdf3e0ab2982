// Rays through fields on trees beside a walk of the host's through sets, element by element, and
// beside geometry.
#include <quern/rays.h>

#include <cmath>
#include <limits>
#include <span>

#include "tests/sparse/places.h"

using namespace qn::lang;

namespace {

constexpr int most_visits = 48;

template <class F, int N>
struct Ray {
  std::array<F, size_t(N)> origin, direction;
  F t0 = 0, t1 = F(HUGE_VAL);
};
template <class F, int N>
struct Visit {
  At<N> index;
  F t, t_end;
  At<N> normal;
  bool operator==(const Visit&) const = default;
};
template <class F, int N>
using Visits = std::vector<Visit<F, N>>;

/// The march that rays.h describes, plane by plane.
template <class F, int N, class Active>
Visits<F, N> walk(const Ray<F, N>& ray, const At<N>& low, const At<N>& high, Active&& is_active) {
  const F infinity = std::numeric_limits<F>::infinity();
  At<N> at{}, step{};
  std::array<F, size_t(N)> inverse{};
  for (size_t k = 0; k < size_t(N); k++) {
    const F o = ray.origin[k], d = ray.direction[k];
    inverse[k] = 1 / d;
    step[k] = d == 0 ? 0 : d < 0 ? -1 : 1;
    at[k] = int(std::floor(o));
    if (step[k] == 0) continue;
    // Far enough back that no plane has been crossed, then through all up to t0.
    at[k] = int(std::floor(o + d * ray.t0)) - 2 * step[k];
    while ((F(step[k] > 0 ? at[k] + 1 : at[k]) - o) * inverse[k] <= ray.t0) at[k] += step[k];
  }
  Visits<F, N> visits;
  F t = ray.t0;
  At<N> normal{};
  while (t < ray.t1) {
    bool inside = true, gone = false;
    for (size_t k = 0; k < size_t(N); k++) {
      inside &= at[k] >= low[k] && at[k] < high[k];
      gone |= step[k] >= 0 && at[k] >= high[k];
      gone |= step[k] <= 0 && at[k] < low[k];
    }
    if (gone) break;
    size_t axis = 0;
    F next = infinity;
    for (size_t k = 0; k < size_t(N); k++) {
      if (step[k] == 0) continue;
      const F time = (F(step[k] > 0 ? at[k] + 1 : at[k]) - ray.origin[k]) * inverse[k];
      if (time < next) next = time, axis = k;
    }
    if (inside && is_active(at)) visits.push_back({at, t, std::min(next, ray.t1), normal});
    at[axis] += step[axis];
    normal = {};
    normal[axis] = -step[axis];
    t = next;
  }
  return visits;
}

/// Rays of all kinds at a box: also along axes and diagonals, from corners, in planes between
/// elements, from outside, backwards, with ends.
template <class F, int N>
std::vector<Ray<F, N>> rays_at(std::mt19937& random, int count, const At<N>& low,
                               const At<N>& high) {
  const auto real = [&](double a, double b) {
    return a + (b - a) * (double(random()) / 4294967296.0);
  };
  std::vector<Ray<F, N>> rays;
  for (int n = 0; n < count; n++) {
    Ray<F, N> ray{};
    const int kind = n % 6;
    for (size_t k = 0; k < size_t(N); k++) {
      const double a = low[k], b = high[k], size = b - a;
      double o = real(a, b), d = real(-1, 1);
      if (kind == 1) o = std::floor(o) + (random() % 2 ? 0.5 : 0), d = 0;   // along an axis
      if (kind == 2) o = std::floor(2 * o) / 2, d = random() % 2 ? 1 : -1;  // through corners
      if (kind == 3) o = real(a - size, b + size), d = real(a, b) - o;      // from outside
      if (kind == 4) o = std::floor(4 * o) / 4, d = int(random() % 5) - 2;
      if (kind == 5) d *= std::pow(10.0, real(-12, 12));
      ray.origin[k] = F(o);
      ray.direction[k] = F(d);
    }
    if (kind == 1) {
      const size_t axis = random() % size_t(N);
      for (size_t k = 0; k < size_t(N); k++) ray.direction[k] = random() % 2 ? F(0) : -F(0);
      ray.direction[axis] = random() % 2 ? F(0.75) : F(-2);
      if (random() % 2) ray.origin[axis] = F(low[axis]) - (ray.direction[axis] > 0 ? F(3) : F(-99));
    }
    if (kind != 5 && random() % 3 == 0) {
      ray.t0 = F(real(-4, 4));
      ray.t1 = ray.t0 + F(real(0, 8));
    }
    rays.push_back(ray);
  }
  return rays;
}

/// Fields of rays, and of what they come to.
template <class F, int N>
struct Marches {
  using Point = qn::Vec<F, N>;
  using Index = qn::Vec<int, N>;
  qn::Field<Point> origin, direction;
  qn::Field<F> t0, t1;
  qn::Field<Index, 2> index, normal;
  qn::Field<F, 2> t, t_end;
  qn::Field<int> count, steps;
  qn::Kernel<void(qn::Field<float, N>)> march;

  Marches(const qn::Device& device, int rays, bool checked = false)
      : origin{device, {rays}},
        direction{device, {rays}},
        t0{device, {rays}},
        t1{device, {rays}},
        index{device, {rays, most_visits}},
        normal{device, {rays, most_visits}},
        t{device, {rays, most_visits}},
        t_end{device, {rays, most_visits}},
        count{device, {rays}},
        steps{device, {rays}},
        march{[this](qn::Field<float, N> u) {
                for (auto r : count) {
                  Var<int> n = 0;
                  auto ray = voxels_along_ray(u, origin[r], direction[r], t0[r], t1[r]);
                  for (auto voxel : ray) {
                    If(n == most_visits) Break();
                    index(r, n) = voxel.index;
                    normal(r, n) = cast<int>(voxel.normal);
                    t(r, n) = voxel.t;
                    t_end(r, n) = voxel.t_end;
                    n += 1;
                  }
                  count[r] = n;
                  steps[r] = ray.steps();
                }
              },
              {.strict = true, .checked = checked}} {}

  void set(const std::vector<Ray<F, N>>& rays) {
    std::vector<Point> o, d;
    std::vector<F> from, to;
    for (const Ray<F, N>& ray : rays) {
      Point p, q;
      for (int k = 0; k < N; k++) p[k] = ray.origin[size_t(k)], q[k] = ray.direction[size_t(k)];
      o.push_back(p);
      d.push_back(q);
      from.push_back(ray.t0);
      to.push_back(ray.t1);
    }
    origin.copy_from(o);
    direction.copy_from(d);
    t0.copy_from(from);
    t1.copy_from(to);
  }

  std::vector<Visits<F, N>> visits() const {
    const std::vector<Index> i = qn::to_vector(index), m = qn::to_vector(normal);
    const std::vector<F> a = qn::to_vector(t), b = qn::to_vector(t_end);
    std::vector<Visits<F, N>> all;
    for (const int n : qn::to_vector(count)) {
      Visits<F, N>& own = all.emplace_back();
      for (int v = 0; v < n; v++) {
        const size_t at = (all.size() - 1) * most_visits + size_t(v);
        Visit<F, N> visit{{}, a[at], b[at], {}};
        for (int k = 0; k < N; k++)
          visit.index[size_t(k)] = i[at][k], visit.normal[size_t(k)] = m[at][k];
        own.push_back(visit);
      }
    }
    return all;
  }
};

/// How long a ray is within a cube that has grown by `more` on all sides, in double precision.
template <class F, int N>
double within(const Ray<F, N>& ray, const At<N>& at, double more) {
  double from = double(ray.t0), to = double(ray.t1), length = 0;
  for (size_t k = 0; k < size_t(N); k++) {
    const double o = double(ray.origin[k]), d = double(ray.direction[k]);
    const double a = at[k] - more - o, b = at[k] + 1 + more - o;
    length += d * d;
    if (d == 0) {
      if (a > 0 || b < 0) return 0;
      continue;
    }
    from = std::max(from, std::min(a / d, b / d));
    to = std::min(to, std::max(a / d, b / d));
  }
  return length == 0 ? 1 : std::max(to - from, 0.0) * std::sqrt(length);
}

template <class F, int N>
void check_rays(std::span<const Levels> kinds) {
  on_every_device([kinds](const qn::Device& device) {
    const int count = device.name() == std::string("cpu") ? 1200 : 120;
    Marches<F, N> marches(device, count);
    std::mt19937 random(N);
    At<N> high = first_of<N>;
    for (size_t k = 0; k < size_t(N); k++) high[k] += extent_of<N>[k];
    for (const Levels& kind : kinds) {
      INFO(kind.text);
      const Places<N> places = in_units<N>(random_places<N>(random, N == 2 ? 30 : 300), kind.unit);
      qn::Tree<N> tree = tree_of<N>(device, kind);
      auto u = tree.template field<float>();
      std::vector<qn::IndexBox<N>> boxes;
      for (const At<N>& at : places) {
        qn::IndexBox<N>& box = boxes.emplace_back();
        for (size_t k = 0; k < size_t(N); k++) box.lo[k] = at[k], box.hi[k] = at[k] + 1;
      }
      tree.build_from(boxes);
      const auto rays = rays_at<F, N>(random, count, first_of<N>, high);
      marches.set(rays);
      marches.march(u);
      const auto visits = marches.visits();
      int unlike = 0, visited = 0, missed = 0, far = 0;
      for (size_t r = 0; r < rays.size(); r++) {
        const auto expected = walk<F, N>(rays[r], first_of<N>, high,
                                         [&](const At<N>& at) { return places.contains(at); });
        REQUIRE(expected.size() < most_visits);
        unlike += visits[r] != expected;
        visited += int(expected.size());
        if (r % 6 == 5) continue;  // of any length: geometry knows no precision
        Places<N> own;
        for (const auto& visit : visits[r]) {
          own.insert(visit.index);
          far += within<F, N>(rays[r], visit.index, 1e-3) == 0;
        }
        for (const At<N>& at : places)
          missed += within<F, N>(rays[r], at, -1e-3) > 0 && !own.contains(at);
      }
      CHECK(unlike == 0);
      CHECK(visited > count / 2);
      CHECK(missed == 0);
      CHECK(far == 0);
    }
  });
}

}  // namespace

TEST_CASE("rays visit the voxels that a walk from plane to plane does") {
  check_rays<float, 3>(std::span(kinds_of_trees).last(2));
}
TEST_CASE("rays of doubles do, too") {
  check_rays<double, 3>(std::span(kinds_of_trees).subspan(2, 2));
}
TEST_CASE("rays of two axes do, too") { check_rays<float, 2>(std::span(kinds_of_trees).first(2)); }

TEST_CASE("rays through dense fields and views visit what those have") {
  on_every_device([](const qn::Device& device) {
    const int count = device.name() == std::string("cpu") ? 300 : 30;
    Marches<float, 3> marches(device, count);
    std::mt19937 random(7);
    const At<3> low{-3, 2, 0}, high{6, 9, 5};
    const auto rays = rays_at<float, 3>(random, count, low, high);
    marches.set(rays);
    qn::Field<float, 3> dense{device, {9, 7, 5}, qn::offset(-3, 2, 0)};
    qn::Tree<3> tree{device, {qn::pointer(8), qn::bitmasked(4)}, {.offset = {-16, -16, -16}}};
    auto u = tree.field<float>();
    // Of the view index i is index i + 3, i + 1, i - 2 of the field.
    const auto shown = u.slice(0, 0, 9).slice(1, 3, 10).slice(2, -2, 3).rebased({-3, 2, 0});
    Places<3> places;
    for (int n = 0; n < 120; n++) {
      const At<3> at{int(random() % 9) - 3, int(random() % 7) + 2, int(random() % 5)};
      places.insert(at);
      u.set(at[0] + 3, at[1] + 1, at[2] - 2, 1.0f);
      u.set(at[0] + 3, at[1] - 6, at[2] - 2, 1.0f);  // outside of the view
    }
    for (const bool is_dense : {true, false}) {
      INFO((is_dense ? "dense" : "view"));
      marches.march(is_dense ? dense : shown);
      const auto visits = marches.visits();
      int unlike = 0, visited = 0;
      for (size_t r = 0; r < rays.size(); r++) {
        const auto expected = walk<float, 3>(
            rays[r], low, high, [&](const At<3>& at) { return is_dense || places.contains(at); });
        unlike += visits[r] != expected;
        visited += int(expected.size());
      }
      CHECK(unlike == 0);
      CHECK(visited > count / 2);
    }
  });
}

TEST_CASE("a ray goes through what is empty in one step for each cell") {
  on_every_device([](const qn::Device& device) {
    Marches<float, 3> marches(device, 3);
    // From the middle of an element along axis 0, there and back, and one that meets nothing.
    marches.set({{{0.5f, 5.5f, 6.5f}, {1, 0, 0}},
                 {{2047.5f, 5.5f, 6.5f}, {-1, 0, 0}},
                 {{0.5f, 900.5f, 900.5f}, {1, 0, 0}}});
    qn::Tree<3> tree{device, {qn::pointer(16), qn::pointer(16), qn::bitmasked(8)}};
    auto u = tree.field<float>();
    u.set(2001, 5, 6, 1.0f);
    marches.march(u);
    CHECK(marches.count.at(0) == 1);
    CHECK(marches.index.at(0, 0) == qn::Vec<int, 3>(2001, 5, 6));
    CHECK(marches.t.at(0, 0) == 2000.5f);
    CHECK(marches.t_end.at(0, 0) == 2001.5f);
    // 15 cells of 128, 10 of 8, then 8 elements, then 5 cells of 8.
    CHECK(marches.steps.at(0) == 15 + 10 + 8 + 5);
    CHECK(marches.count.at(1) == 1);
    CHECK(marches.t.at(1, 0) == 45.5f);
    CHECK(marches.steps.at(1) == 5 + 8 + 10 + 15);
    CHECK(marches.count.at(2) == 0);
    CHECK(marches.steps.at(2) == 16);
    // In units of 4 elements; the root's cells are 24 long.
    qn::Tree<3> units{device, {qn::pointer(86), qn::bitmasked(6), qn::dense(4)}};
    auto v = units.field<float>();
    v.set(2001, 5, 6, 1.0f);
    marches.march(v);
    CHECK(marches.count.at(0) == 4);
    CHECK(marches.index.at(0, 0) == qn::Vec<int, 3>(2000, 5, 6));
    // 83 cells up to 1992, 2 units, 4 elements, 3 units, 2 cells.
    CHECK(marches.steps.at(0) == 83 + 2 + 4 + 3 + 2);
  });
}

TEST_CASE("rays go as far as indices do") {
  on_every_device([](const qn::Device& device) {
    qn::Tree<3> tree{device, {qn::hash(), qn::pointer(8), qn::bitmasked(8)}};
    auto u = tree.field<float>();
    const int far = 123'456'789;
    u.set(-far, far, 7, 1.0f);
    qn::Tree<2> wide{
        device, {qn::hash(), qn::bitmasked(16)}, {.shape = {int64_t(1) << 50, int64_t(1) << 50}}};
    auto v = wide.field<float>();
    const int64_t farther = int64_t(1) << 40;
    v.set(farther, farther + 1, 1.0f);
    qn::Field<double> t{device, {2}};
    qn::Field<int64_t> index{device, {3}};
    qn::Kernel march = [&](qn::Field<float, 3> a, qn::Field<float, 2> b) {
      for (auto n : t) {
        t[n] = -1;
        If(n == 0) {
          for (auto voxel : voxels_along_ray(a, dvec3(-far + 4096.5, far + 0.25, 7.5),
                                             dvec3(-0.5, 0, 0), 0.0, 1e5)) {
            t[n] = voxel.t;
            index[0] = voxel.index.x;
          }
        }
        else {
          for (auto voxel : voxels_along_ray<int64_t>(b, dvec2(double(farther) - 1000), dvec2(1, 1),
                                                      0.0, 2000.0)) {
            t[n] = voxel.t;
            index[1] = voxel.index.x;
            index[2] = voxel.index.y;
          }
        }
      }
    };
    march(u, v);
    CHECK(t.at(0) == 2 * 4095.5);
    CHECK(index.at(0) == -far);
    // Planes of axis 0 come first at a corner, so the diagonal meets (i, i) and (i + 1, i).
    CHECK(t.at(1) == -1);
    v.set(farther + 1, farther, 1.0f);
    march(u, v);
    CHECK(t.at(1) == 1001);
    CHECK(index.at(1) == farther + 1);
    CHECK(index.at(2) == farther);
  });
}

TEST_CASE(
    "a ray sees what its own iteration makes active, and what a task deactivates until its end") {
  on_every_device([](const qn::Device& device) {
    qn::Tree<3> tree{device, {qn::pointer(8), qn::pointer(4), qn::bitmasked(4)}, {.cells = 1000}};
    auto u = tree.field<float>();
    qn::Field<int> count{device, {8}};
    for (int n = 0; n < 8; n++) u.set(3, 2 * n, 9, 1.0f);
    qn::Kernel grow = [&] {
      for (auto n : count) {
        count[n] = 0;
        for (auto voxel :
             voxels_along_ray(u, vec(0.0f, 2 * cast<float>(n) + 0.5f, 9.5f), vec3(1, 0, 0))) {
          If(voxel.index.x < 20 + n) { activate(u, voxel.index + ivec3(1, 0, 0)); }
          count[n] += 1;
        }
      }
    };
    qn::Kernel cut = [&] {
      for (auto n : count) {
        count[n] = 0;
        for (auto voxel :
             voxels_along_ray(u, vec(40.0f, 2 * cast<float>(n) + 0.5f, 9.5f), vec3(-1, 0, 0))) {
          deactivate(u, voxel.index);
          deactivate(u, voxel.index - ivec3(1, 0, 0));
          count[n] += 1;
        }
      }
    };
    grow();
    for (int n = 0; n < 8; n++) CHECK(count.at(n) == 18 + n);
    cut();
    for (int n = 0; n < 8; n++) CHECK(count.at(n) == 18 + n);
    CHECK(tree.active_count() == 0);
  });
}

TEST_CASE("rays that are no rays end") {
  on_every_device([](const qn::Device& device) {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const float infinity = std::numeric_limits<float>::infinity();
    const std::vector<Ray<float, 3>> rays = {
        {{1.5f, 1.5f, 1.5f}, {0, 0, 0}},  // stands in an element
        {{9.5f, 1.5f, 1.5f}, {0, 0, 0}},  // beside all
        {{nan, 1, 1}, {1, 1, 1}},
        {{1, 1, 1}, {nan, 1, 1}, 0, 2},  // as if along the diagonal of two axes
        {{infinity, 1, 1}, {-1, 0, 0}},
        {{1.5f, 1.5f, 1.5f}, {infinity, 0, 0}, 0, 3},  // as a direction of 0
        {{1.5f, 1.5f, 1.5f}, {1e-42f, 0, 0}, 0, 3},    // of no finite reciprocal
        {{1.5f, 1.5f, 1.5f}, {1, 0, 0}, 2, 2},
        {{1.5f, 1.5f, 1.5f}, {1, 0, 0}, 0, nan},
        {{1.5f, 1.5f, 1.5f}, {1, 0, 0}, -infinity, infinity},
    };
    Marches<float, 3> marches(device, int(rays.size()), true);  // nothing is out of range
    marches.set(rays);
    qn::Tree<3> tree{device, {qn::pointer(2), qn::dense(4)}, {.shape = {4, 4, 4}}};
    auto u = tree.field<float>();
    u.set(1, 1, 1, 1.0f);
    marches.march(u);
    const auto visits = marches.visits();
    REQUIRE(visits[0].size() == 1);
    CHECK(visits[0][0] == Visit<float, 3>{{1, 1, 1}, 0, infinity, {}});
    CHECK(visits[1].empty());
    CHECK(visits[2].empty());
    CHECK(visits[3].size() <= 5);
    CHECK(visits[4].empty());
    REQUIRE(visits[5].size() == 1);
    CHECK(visits[5][0] == Visit<float, 3>{{1, 1, 1}, 0, 3, {}});
    CHECK(visits[6] == visits[5]);
    CHECK(visits[7].empty());
    CHECK(visits[8].empty());
    REQUIRE(visits[9].size() == 4);
    CHECK(visits[9][0] == Visit<float, 3>{{0, 1, 1}, -1.5f, -0.5f, {-1, 0, 0}});
  });
}

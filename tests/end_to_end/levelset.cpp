// Level sets in a narrow band: distances of a ball from a function that is none, and balls that move.
#include "examples/levelset.h"

#include <cmath>

#include "tests/end_to_end/devices.h"

using namespace qn::lang;
using examples::LevelSet;

namespace {

bool is_fast(const qn::Device& device) { return device.name() == std::string("cpu"); }

const LevelSet::Velocity at_rest = [](const Vec3&) { return vec(0.0f, 0.0f, 0.0f); };

struct Ball {
  vec3 centre;
  float radius;
  F32 distance(const Vec3& x) const { return length(x - centre) - radius; }
  double distance(int i, int j, int k) const {
    return std::hypot(i - double(centre.x), j - double(centre.y), k - double(centre.z)) -
           double(radius);
  }
};

/// Zero where the ball's surface is, with a slope there from 0.3 to 5 or so.
LevelSet::Value distorted(const Ball& ball) {
  return [ball](const Vec3& x) {
    Vec3 off = (x - ball.centre) / ball.radius - vec(0.9f, 0.5f, -0.3f);
    return ball.distance(x) * (0.3f + dot(off, off));
  };
}

struct Band {
  int n;
  std::vector<float> values;
  Band(const LevelSet& surface, int size) : n(size) {
    qn::Field<float, 3> inside = qn::to_dense(surface.phi);
    const int64_t side = inside.shape(0), first = inside.offset(0);
    const std::vector<float> all = qn::to_vector(inside);
    for (int64_t i = 0; i < n; i++)
      for (int64_t j = 0; j < n; j++)
        for (int64_t k = 0; k < n; k++)
          values.push_back(all[size_t(((i - first) * side + j - first) * side + k - first)]);
  }
  float at(int i, int j, int k) const { return values[size_t((i * n + j) * n + k)]; }
  bool is_in(int i, int j, int k) const { return at(i, j, k) != LevelSet::unknown; }
  template <class F>
  void each(F visit) const {
    for (int i = 0; i < n; i++)
      for (int j = 0; j < n; j++)
        for (int k = 0; k < n; k++) visit(i, j, k);
  }
};

/// The largest error where the ball's surface is nearer than `reach`.
double largest_error(const Band& band, const Ball& ball, double reach) {
  double worst = 0;
  band.each([&](int i, int j, int k) {
    const double exact = ball.distance(i, j, k);
    if (std::abs(exact) < reach)
      worst = std::max(worst, std::abs(double(band.at(i, j, k)) - exact));
  });
  return worst;
}

}  // namespace

TEST_CASE("level sets: a ball's distances from a function that is none, of second order") {
  on_every_device([](const qn::Device& device) {
    const int width = 4;
    double error[2];
    for (int refined = 0; refined < 2; refined++) {
      const int radius = is_fast(device) ? 12 << refined : 4 + 2 * refined, n = 2 * radius + 14;
      const Ball ball{{0.5f * n + 0.3f, 0.5f * n - 0.2f, 0.5f * n + 0.1f}, float(radius)};
      LevelSet surface(device, n, width, at_rest);
      surface.start(distorted(ball));
      const Band before(surface, n);
      CHECK(largest_error(before, ball, 2) > 2);
      surface.redistance(14);
      surface.trim();
      const Band band(surface, n);
      error[refined] = largest_error(band, ball, 2);

      double slope = 0, moved = 0, size = 0;
      band.each([&](int i, int j, int k) {
        const double exact = ball.distance(i, j, k);
        const float here = band.at(i, j, k);
        size += band.is_in(i, j, k);
        // The band is what it is to be, and no sign has changed.
        if (std::abs(exact) < width - 0.4) REQUIRE(band.is_in(i, j, k));
        if (std::abs(exact) > width + 0.4) REQUIRE(!band.is_in(i, j, k));
        if (!band.is_in(i, j, k)) return;
        REQUIRE(std::abs(here) < float(width));
        REQUIRE((here < 0) == (exact < 0));
        if (std::abs(exact) < width - 1.5) {
          const double x = band.at(i + 1, j, k) - band.at(i - 1, j, k),
                       y = band.at(i, j + 1, k) - band.at(i, j - 1, k),
                       z = band.at(i, j, k + 1) - band.at(i, j, k - 1);
          slope = std::max(slope, std::abs(std::hypot(x, y, z) / 2 - 1));
        }
        // Where the surface cuts the line to the next element, and how far that is from the ball's.
        const float next = band.at(i, j, k + 1);
        if (std::abs(exact) < 2 && (here < 0) != (next < 0)) {
          const double cut =
              k + double(here) / (double(here) - double(next)) - double(ball.centre.z);
          const double x = i - double(ball.centre.x), y = j - double(ball.centre.y);
          moved = std::max(moved, std::abs(std::hypot(x, y, cut) - radius));
        }
      });
      INFO("radius " << radius);
      CHECK(size == double(surface.tree.active_count()));
      CHECK(slope < 1.0 / radius);
      CHECK(moved < 0.5 / radius);
      CHECK(error[refined] < 2.0 / radius);
      const LevelSet::Measures measures = surface.measure();
      CHECK(measures.area == Approx(4 * M_PI * radius * radius).epsilon(0.5 / radius));
      CHECK(measures.volume == Approx(4 * M_PI / 3 * std::pow(radius, 3)).epsilon(0.5 / radius));
    }
    // The order in lengths is one more than in elements.
    const double refinement = is_fast(device) ? 2 : 1.5;
    CHECK(1 + std::log(error[0] / error[1]) / std::log(refinement) > 1.7);
  });
}

TEST_CASE("level sets: two balls whose bands meet, and a plane that the box cuts off") {
  on_every_device([](const qn::Device& device) {
    const int n = 20;
    LevelSet surface(device, n, 4, at_rest);
    const Ball one{{6.2f, 9.7f, 9.9f}, 3.5f}, two{{15.4f, 9.7f, 9.9f}, 3.5f};
    surface.start([&](const Vec3& x) { return min(one.distance(x), two.distance(x)) * 3.0f; });
    surface.redistance(14);
    surface.trim();
    const Band both(surface, n);
    double worst = 0;
    both.each([&](int i, int j, int k) {
      const double exact = std::min(one.distance(i, j, k), two.distance(i, j, k));
      if (std::abs(exact) < 2.5) worst = std::max(worst, std::abs(both.at(i, j, k) - exact));
    });
    CHECK(worst < 0.4);

    surface.start([](const Vec3& x) { return 2.0f * (x.x - 7.25f); });
    surface.redistance(24);
    surface.trim();
    CHECK(surface.tree.active_count() == 8 * n * n);  // 7.25 ± 4 along x, all of the others
    const Band plane(surface, n);
    plane.each([&](int i, int j, int k) {
      if (plane.is_in(i, j, k)) REQUIRE(plane.at(i, j, k) == Approx(i - 7.25).margin(0.01));
    });
  });
}

TEST_CASE("level sets: a ball that goes around keeps its volume, and the band goes with it") {
  on_every_device([](const qn::Device& device) {
    const int n = is_fast(device) ? 52 : 20;
    const float size = float(n), radius = is_fast(device) ? 9 : 3.5f;
    const float angle = float(is_fast(device) ? 2 * M_PI : 0.5), orbit = 0.2f * size;
    auto ball_at = [&](float a) {
      return Ball{
          {0.5f * size + orbit * std::cos(a), 0.5f * size + orbit * std::sin(a), 0.5f * size},
          radius};
    };
    const Ball start = ball_at(0), end = ball_at(angle);
    const int width = is_fast(device) ? 6 : 4;
    LevelSet surface(device, n, width, [&](const Vec3& x) {  // a radian a second
      return vec(0.5f * size - x.y, x.x - 0.5f * size, 0.0f);
    });
    surface.start([&](const Vec3& x) { return start.distance(x); });
    surface.trim();
    const double volume = surface.measure().volume;
    surface.advance(angle, orbit + radius + float(width));
    const Band band(surface, n);
    CHECK(largest_error(band, end, 2) < 0.3);
    CHECK(surface.measure().volume == Approx(volume).epsilon(0.02));
    band.each([&](int i, int j, int k) {
      const double exact = end.distance(i, j, k);
      if (std::abs(exact) < width - 1) REQUIRE(band.is_in(i, j, k));
      if (std::abs(exact) > width + 1) REQUIRE(!band.is_in(i, j, k));
    });
  });
}

TEST_CASE("level sets refuse a band that is too narrow") {
  const qn::Device device("interpreter");
  CHECK_THAT(error_of([&] { LevelSet(device, 16, 3, at_rest); }), contains("with a band of 3"));
}

// The ray marcher against the intersections of rays with spheres and a plane, pixel by pixel.
#include "examples/raymarch.h"

#include <cmath>

#include "tests/end_to_end/devices.h"

using examples::Raymarch;
using namespace quern::lang;

namespace {

struct Hit {
  double t = -1;
  dvec3 normal;
  bool clear = true;  ///< a little precision more or less meets the same
};
double dot3(dvec3 a, dvec3 b) { return a.x * b.x + a.y * b.y + a.z * b.z; }

void meet_sphere(Hit& hit, dvec3 eye, dvec3 direction, dvec3 centre, double radius) {
  const dvec3 from = eye - centre;
  const double b = dot3(from, direction), c = dot3(from, from) - radius * radius;
  if (std::fabs(std::sqrt(std::max(dot3(from, from) - b * b, 0.0)) - radius) < 2e-3 && b < 0)
    hit.clear = false;  // along its edge
  if (b * b < c) return;
  const double t = -b - std::sqrt(b * b - c);
  if (t > 0 && (hit.t < 0 || t < hit.t)) {
    hit.t = t;
    hit.normal = (from + t * direction) / radius;
  }
}
Hit analytic(const Raymarch::Setup& s, dvec3 direction) {
  Hit hit;
  const dvec3 eye(s.eye);
  const dvec3 centres[] = {dvec3(Raymarch::ball), dvec3(Raymarch::small_ball)};
  const double radii[] = {double(Raymarch::radius), double(Raymarch::small_radius)};
  if (direction.y < 0) {
    hit.t = -eye.y / direction.y;
    hit.normal = dvec3(0, 1, 0);
  }
  for (int k = 0; k < 2; k++) meet_sphere(hit, eye, direction, centres[k], radii[k]);
  const double horizon = double(s.horizon);
  if (hit.t > horizon - 0.2) {  // the march ends there, or where its last step leads
    hit.clear = hit.t > horizon + 0.2;
    hit.t = -1;
  } else if (hit.t >= 0) {
    // In a corner between two surfaces either normal may be the answer; nor is one where the ray
    // slides along the surface.
    const dvec3 p = eye + hit.t * direction;
    int near = p.y < 4e-3;
    for (int k = 0; k < 2; k++)
      near += std::fabs(std::sqrt(dot3(p - centres[k], p - centres[k])) - radii[k]) < 4e-3;
    if (near != 1 || -dot3(direction, hit.normal) < 0.02) hit.clear = false;
  }
  return hit;
}
dvec3 ray(const Raymarch::Setup& s, int i, int j, int height, int width) {
  dvec3 d((j + 0.5 - 0.5 * width) / (0.5 * height), (0.5 * height - i - 0.5) / (0.5 * height),
          -double(s.focal));
  return d / std::sqrt(dot3(d, d));
}

}  // namespace

TEST_CASE("marched rays end where they meet spheres and the plane") {
  on_every_device([](qn::Device& device) {
    const bool fast = device.name() == std::string("cpu");
    const int height = fast ? 120 : 24, width = fast ? 180 : 36;
    Raymarch::Setup setup;
    setup.torus = false;
    Raymarch raymarch(device, height, width, setup);
    raymarch.trace();
    std::vector<float> distance = qn::to_vector(raymarch.distance);
    std::vector<vec3> normal = qn::to_vector(raymarch.normal);
    int unclear = 0, missed = 0, sphere = 0, plane = 0, sky = 0;
    double worst_distance = 0, worst_normal = 0;
    for (int i = 0; i < height; i++)
      for (int j = 0; j < width; j++) {
        const dvec3 direction = ray(setup, i, j, height, width);
        const Hit want = analytic(setup, direction);
        const double got = double(distance[size_t(i * width + j)]);
        if (!want.clear) {
          unclear++;
          continue;
        }
        if ((got < 0) != (want.t < 0)) {
          missed++;
          continue;
        }
        if (want.t < 0) {
          sky++;
          continue;
        }
        (want.normal == dvec3(0, 1, 0) ? plane : sphere)++;
        // A ray stops as soon as the surface is nearer than the precision; slanted, that is
        // earlier.
        const double slant = -dot3(direction, want.normal);
        worst_distance =
            std::max(worst_distance, std::fabs(got - want.t) * slant / double(setup.precision));
        const dvec3 off = dvec3(normal[size_t(i * width + j)]) - want.normal;
        worst_normal = std::max(worst_normal, std::sqrt(dot3(off, off)));
      }
    CHECK(missed == 0);
    CHECK(unclear < height * width / 20);
    CHECK(sphere > height * width / 10);
    CHECK(plane > height * width / 10);
    CHECK(sky > height * width / 10);
    CHECK(worst_distance < 1.5);
    CHECK(worst_normal < 4e-3);
  });
}

TEST_CASE("a marched picture has light, shadow and sky") {
  on_every_device([](qn::Device& device) {
    const int height = 24, width = 36;
    Raymarch raymarch(device, height, width, {});
    raymarch.trace();
    raymarch.shade();
    std::vector<vec3> image = qn::to_vector(raymarch.image);
    std::vector<float> distance = qn::to_vector(raymarch.distance);
    std::vector<vec3> normal = qn::to_vector(raymarch.normal);
    int dark = 0, bright = 0;
    for (size_t k = 0; k < image.size(); k++) {
      for (int c = 0; c < 3; c++) REQUIRE((image[k][c] >= 0 && image[k][c] <= 1));
      if (distance[k] < 0) {
        CHECK(image[k].z > image[k].x);  // blue
        continue;
      }
      CHECK(length(normal[k]) == Approx(1).epsilon(1e-5));
      dark += image[k].x < 0.15f;
      bright += image[k].x > 0.5f;
    }
    CHECK(dark > 10);
    CHECK(bright > 50);
  });
}

#include "examples/raymarch.h"

namespace examples {

namespace qn = quern;
using namespace qn::lang;

namespace {

using Setup = Raymarch::Setup;

/// The distance to what is nearest; less than 0 inside it.
F32 scene(const Setup& s, const Vec3& p) {
  F32 big = length(p - Raymarch::ball) - Raymarch::radius;
  F32 small = length(p - Raymarch::small_ball) - Raymarch::small_radius;
  F32 nearest = min(min(big, small), p.y);
  if (!s.torus) return nearest;
  Vec3 q = p - vec3(1.3f, 0.9f, -0.9f);
  F32 torus = length(vec(length(vec(q.x, q.y)) - 0.65f, F32(q.z))) - 0.22f;
  return min(nearest, torus);
}

/// The direction of the ray through a pixel's middle.
Vec3 ray(const Setup& s, const I32& row, const I32& column, const I32& height, const I32& width) {
  auto half = 0.5f * cast<float>(height);
  return normalize(vec((cast<float>(column) + 0.5f - 0.5f * cast<float>(width)) / half,
                       (half - cast<float>(row) - 0.5f) / half, -s.focal));
}

}  // namespace

Raymarch::Raymarch(const qn::Device& device, int height, int width, const Setup& setup)
    : distance{device, {height, width}},
      normal{device, {height, width}},
      image{device, {height, width}},
      setup_(setup),
      trace_{[this] {
        for (auto [i, j] : distance) {
          auto direction = ray(setup_, i, j, distance.dim(0), distance.dim(1));
          Var<float> t = 0, met = -1;
          for (auto step : range(setup_.marches)) {
            (void)step;
            auto d = scene(setup_, setup_.eye + t * direction);
            If(d < setup_.precision) {
              met = t;
              Break();
            }
            t += d;
            If(t > setup_.horizon) Break();
          }
          distance(i, j) = met;
          Var<vec3> n = 0;
          If(met >= 0) {
            // The gradient, from the corners of a tetrahedron.
            const float e = 1e-3f;
            auto p = setup_.eye + met * direction;
            for (const vec3& corner :
                 {vec3(1, -1, -1), vec3(-1, -1, 1), vec3(-1, 1, -1), vec3(1, 1, 1)})
              n += scene(setup_, p + e * corner) * corner;
            n = normalize(n);
          }
          normal(i, j) = n;
        }
      }},
      shade_{[this] {
        const float lift = 2e-3f;  // off the surface, which a ray from it would meet at once
        for (auto [i, j] : image) {
          auto direction = ray(setup_, i, j, image.dim(0), image.dim(1));
          auto t = distance(i, j);
          Vec3 n = normal(i, j);
          auto sky = mix(vec3(0.75f, 0.85f, 0.95f), vec3(0.25f, 0.45f, 0.8f),
                         clamp(2.5f * direction.y, 0.0f, 1.0f));
          Var<vec3> colour = sky;
          If(t >= 0) {
            auto p = setup_.eye + t * direction;
            // Sun: dark where the way is barred, dimmed where it passes close by.
            Var<float> sun = 1, s = 0.02f;
            for (auto step : range(48)) {
              (void)step;
              auto d = scene(setup_, p + lift * n + s * setup_.sun);
              sun = min(sun, 12.0f * max(d, 0.0f) / s);
              s += clamp(d, 0.02f, 0.4f);
              If(sun < 0.01f || s > 8) Break();
            }
            // Sky: what is nearer than the sample is far closes a part of it.
            Var<float> closed = 0;
            for (int k = 1; k <= 5; k++) {
              const float far = 0.08f * float(k);
              closed += (far - scene(setup_, p + far * n)) / float(1 << k) / 0.12f;
            }
            auto open = clamp(1 - 0.5f * closed, 0.1f, 1.0f);
            auto squares = (ifloor(p.x) + ifloor(p.z)) % 2 == 0;
            auto base =
                select(p.y < 5e-3f, select(squares, vec3(0.8f), vec3(0.35f)),
                       select(p.x < 0.2f, vec3(0.85f, 0.35f, 0.25f), vec3(0.3f, 0.55f, 0.85f)));
            auto light = 0.85f * sun * max(dot(n, setup_.sun), 0.0f) * vec3(1, 0.95f, 0.85f) +
                         0.35f * open * (0.6f + 0.4f * n.y) * vec3(0.7f, 0.85f, 1);
            colour = mix(base * light, sky, 1 - exp(-0.003f * t * t));
          }
          image(i, j) = min(colour, 1.0f);
        }
      }} {}

}  // namespace examples

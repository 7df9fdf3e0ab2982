#include "examples/cloth.h"

#include <array>
#include <cmath>

namespace examples {

namespace qn = quern;
using namespace qn::lang;

namespace {

enum class Kind { structural, shear, bend };
struct Spring {
  int rows, columns;  ///< to its other end
  Kind kind;
  float length() const { return std::hypot(float(rows), float(columns)); }  ///< in spacings
  float stiffness(const Cloth::Setup& s) const {
    return kind == Kind::structural ? s.structural : kind == Kind::shear ? s.shear : s.bend;
  }
};
/// Half of a mass's springs; the other half are their opposites.
constexpr std::array<Spring, 6> springs = {{{0, 1, Kind::structural},
                                            {1, 0, Kind::structural},
                                            {1, 1, Kind::shear},
                                            {1, -1, Kind::shear},
                                            {0, 2, Kind::bend},
                                            {2, 0, Kind::bend}}};

/// The step with which semi-implicit Euler is stable is 2 / ω, less the damping's share; ω² is at
/// most the sum of twice the stiffness over the springs of a mass (Gershgorin), over the mass.
float stable_step(const Cloth::Setup& s, float mass) {
  float stiffness = 0, damping = 0;
  for (const Spring& spring : springs) {
    stiffness += 4 * spring.stiffness(s);
    damping += 4 * s.damping;
  }
  const float omega = std::sqrt(stiffness / mass), half = 0.5f * damping / mass;
  return 2 / (half + std::sqrt(half * half + omega * omega));
}

Cloth::Setup with_step(Cloth::Setup s) {
  if (s.dt <= 0) s.dt = 0.5f * stable_step(s, s.mass / float(s.rows * s.columns));
  return s;
}

}  // namespace

Cloth::Cloth(const qn::Device& device, const Setup& setup, float height)
    : x{device, {setup.rows, setup.columns}},
      v{device, {setup.rows, setup.columns}},
      device_(device),
      setup_(with_step(setup)),
      spacing_(setup.side / float(std::max(std::max(setup.rows, setup.columns) - 1, 1))),
      mass_(setup.mass / float(setup.rows * setup.columns)),
      inverse_mass_{device, {setup.rows, setup.columns}},
      force_{device, {setup.rows, setup.columns}},
      forces_{[this] {
        for (auto [i, j] : force_) {
          auto xi = x(i, j), vi = v(i, j);
          Var<vec3> force = mass_ * vec3(0, -setup_.gravity, 0) - setup_.drag * mass_ * vi;
          for (const Spring& spring : springs)
            for (int sign : {1, -1}) {
              auto r = i + sign * spring.rows, c = j + sign * spring.columns;
              If(r >= 0 && r < setup_.rows && c >= 0 && c < setup_.columns) {
                auto apart = x(r, c) - xi;
                auto length = sqrt(dot(apart, apart));
                auto along = apart / max(length, 1e-6f * spacing_);
                auto pull = spring.stiffness(setup_) * (length - spring.length() * spacing_) +
                            setup_.damping * dot(v(r, c) - vi, along);
                force += pull * along;
              }
            }
          force_(i, j) = force;
        }
      }},
      move_{[this] {
        const float dt = setup_.dt;
        for (auto I : x) {
          auto free = inverse_mass_[I];
          Var<vec3> faster = select(free > 0, v[I] + dt * free * force_[I], vec3(0, 0, 0));
          Var<vec3> at = x[I] + dt * faster;
          if (setup_.radius > 0) {
            auto out = at - setup_.ball;
            auto distance = sqrt(dot(out, out));
            If(distance < setup_.radius) {  // onto the ball, without the speed into it
              auto normal = out / distance;
              faster -= min(dot(faster, normal), 0.0f) * normal;
              at = setup_.ball + setup_.radius * normal;
            }
          }
          v[I] = faster;
          x[I] = at;
        }
      }},
      draw_{[this](qn::Field<int, 2> nearest, Picture picture) {
        const float tilt = 0.5f, zoom = 0.6f / setup_.side;
        auto width = nearest.dim(0);
        // A pixel holds 256 · (nearness in 4096 steps) + brightness in 256 steps.
        auto put = [&](const Vec3& p, const F32& light, const I32& reach) {
          auto across = 0.5f + zoom * p.x;
          auto up = 0.55f + zoom * (p.y * std::cos(tilt) - p.z * std::sin(tilt));
          auto near = 0.5f + 0.4f * zoom * (p.z * std::cos(tilt) + p.y * std::sin(tilt));
          auto value = cast<int>(clamp(near, 0.0f, 1.0f) * 4095.0f) * 256 +
                       cast<int>(clamp(light, 0.0f, 1.0f) * 255.0f);
          auto row = cast<int>((1 - up) * cast<float>(width)),
               column = cast<int>(across * cast<float>(width));
          for (auto [a, b] : grid(reach, reach))
            If(row + a >= 0 && row + a < width && column + b >= 0 && column + b < width) {
              atomic_max(nearest(row + a, column + b), value);
            }
        };
        for (auto I : nearest) nearest[I] = -1;
        const vec3 sun = normalize(vec3(-0.4f, 0.8f, 0.45f));
        auto reach = max(cast<int>(1.6f * zoom * spacing_ * cast<float>(width)) + 1, 1);
        for (auto [i, j] : x) {
          auto right = x(i, min(j + 1, setup_.columns - 1)) - x(i, max(j - 1, 0));
          auto down = x(min(i + 1, setup_.rows - 1), j) - x(max(i - 1, 0), j);
          auto normal = cross(down, right);
          auto lit = abs(dot(normal, sun)) / max(sqrt(dot(normal, normal)), 1e-12f);
          put(x(i, j), 0.25f + 0.7f * lit, reach);
        }
        for (auto I : picture) {
          auto seen = nearest[I];
          auto light = cast<float>(max(seen, 0) % 256) / 255.0f;
          picture[I] = select(seen < 0, vec3(0.07f, 0.09f, 0.15f), light * vec3(0.95f, 0.4f, 0.3f));
        }
      }} {
  inverse_mass_.fill(1 / mass_);
  std::vector<vec3> flat;
  for (int i = 0; i < setup.rows; i++)
    for (int j = 0; j < setup.columns; j++)
      flat.push_back(vec3(spacing_ * (float(j) - 0.5f * float(setup.columns - 1)), height,
                          spacing_ * (float(i) - 0.5f * float(setup.rows - 1))));
  x.copy_from(flat);
}

void Cloth::advance(int count) {
  for (int k = 0; k < count; k++) {
    forces_();
    move_();
  }
}

double Cloth::energy() {
  qn::Kernel sum = [&] {
    Var<double> total = 0.0;
    for (auto [i, j] : x) {
      auto xi = x(i, j), vi = v(i, j);
      total += cast<double>(0.5f * mass_ * dot(vi, vi) + mass_ * setup_.gravity * xi.y);
      for (const Spring& spring : springs) {
        auto r = i + spring.rows, c = j + spring.columns;
        If(r >= 0 && r < setup_.rows && c >= 0 && c < setup_.columns) {
          auto stretch = length(x(r, c) - xi) - spring.length() * spacing_;
          total += cast<double>(0.5f * spring.stiffness(setup_) * stretch * stretch);
        }
      }
    }
    return total;
  };
  return sum();
}

Cloth::Picture Cloth::draw(int width) const {
  Picture picture{device_, {width, width}};
  draw_(qn::Field<int, 2>{device_, {width, width}}, picture);
  return picture;
}

}  // namespace examples

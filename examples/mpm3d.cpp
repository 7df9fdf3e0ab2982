#include "examples/mpm3d.h"

#include <array>
#include <random>

namespace examples {

namespace qn = quern;
using namespace qn::lang;

namespace {

/// Quadratic B-spline weights of the 3³ nodes from `base` on.
struct Spline {
  IVec3 base;
  Vec3 f;  ///< distance to the base in cells
  std::array<Vec3, 3> w;
  explicit Spline(const Vec3& x)
      : base(ifloor(x - 0.5f)), f(x - cast<float>(base)), w(weights(f)) {}
  static std::array<Vec3, 3> weights(const Vec3& f) {
    auto a = 1.5f - f, b = f - 1.0f, c = f - 0.5f;
    return {0.5f * a * a, 0.75f - b * b, 0.5f * c * c};
  }
  /// Calls visit(node, weight, distance from the particle in cells) for each node.
  template <class F>
  void for_each_node(F visit) const {
    for (int i = 0; i < 3; i++)
      for (int j = 0; j < 3; j++)
        for (int k = 0; k < 3; k++)
          visit(base + ivec3(i, j, k), w[size_t(i)].x * w[size_t(j)].y * w[size_t(k)].z,
                vec3(float(i), float(j), float(k)) - f);
  }
};

}  // namespace

std::vector<FluidParticle<>> Mpm3d::block(int n_grid, vec3 corner) {
  std::mt19937 generator(7);
  auto coordinate = [&] { return 0.4f * float(generator() >> 8) / float(1 << 24); };
  std::vector<FluidParticle<>> particles(size_t(n_grid) * size_t(n_grid) * size_t(n_grid) / 4);
  for (FluidParticle<>& p : particles) {
    const float x = coordinate(), y = coordinate(), z = coordinate();
    p.x = corner + vec3(x, y, z);
    p.J = 1;
  }
  return particles;
}

Mpm3d::Mpm3d(const qn::Device& device, const std::vector<FluidParticle<>>& start, int n_grid,
             const qn::Layout& layout)
    : Mpm3d(Grid<3>(device, {n_grid, n_grid, n_grid}), start, n_grid, layout) {}

Mpm3d::Mpm3d(const Grid<3>& box, const std::vector<FluidParticle<>>& start, int n_grid,
             const qn::Layout& layout)
    : particles{box.device(), {start.size()}, layout},
      grid_(box),
      n_grid_(n_grid),
      mass_of_one_(0.25f / float(n_grid * n_grid)),
      nodes_(box.field<FluidNode<>>(qn::aos)),
      substep_{[this] {
        const float dx = 1.0f / float(n_grid_), inv_dx = float(n_grid_);
        const float volume = mass_of_one_, mass = mass_of_one_;  // density 1
        const float stiffness = dt * 4 * young * volume * inv_dx * inv_dx;
        const auto end = ivec3(int(grid_.extent(0)), int(grid_.extent(1)), int(grid_.extent(2)));

        for (auto I : nodes_) {
          nodes_[I].v = vec3(0, 0, 0);
          nodes_[I].mass = 0;
        }
        for (auto k : particles) {  // particles to grid
          auto p = particles[k];
          auto affine = mass * p.C - stiffness * (p.J - 1) * mat3::identity();
          Spline(p.x * inv_dx).for_each_node([&](IVec3 node, F32 weight, Vec3 away) {
            nodes_[node].v += weight * (mass * p.v + affine * (away * dx));
            nodes_[node].mass += weight * mass;
          });
        }
        for (auto I : nodes_) {  // gravity and walls
          If(nodes_[I].mass > 0) {
            auto v = nodes_[I].v / nodes_[I].mass - vec3(0, dt * gravity, 0);
            auto low = select(I < wall, max(v, 0.0f), v);
            nodes_[I].v = select(I > end - wall, min(low, 0.0f), low);
          }
        }
        for (auto k : particles) {  // grid to particles
          Var p = particles[k];
          Var<vec3> v = 0;
          Var<mat3> C = 0;
          Spline(p.x * inv_dx).for_each_node([&](IVec3 node, F32 weight, Vec3 away) {
            auto u = weight * nodes_[node].v;
            v += u;
            C += outer(4 * inv_dx * u, away);
          });
          p.v = v;
          p.C = C;
          p.x += dt * v;
          p.J *= 1 + dt * trace(C);
          particles[k] = p;
        }
      }},
      draw_{[this](qn::Field<int, 2> nearest, Picture picture, F32 side) {
        auto width = nearest.dim(0);
        auto square = max(cast<int>(cast<float>(width) / (side * float(n_grid_))), 1);
        // A pixel holds 256 · (nearness in 4096 steps) + brightness in 256 steps of what lies
        // nearest.
        for (auto I : nearest) nearest[I] = -1;
        for (auto k : particles) {
          auto p = particles[k];
          auto x = p.x / side;
          auto row = cast<int>((1 - x.y) * cast<float>(width)),
               column = cast<int>(x.x * cast<float>(width));
          auto shade = cast<int>(min(60.0f * length(p.v), 255.0f));
          auto value = cast<int>((1 - x.z) * 4096.0f) * 256 + shade;
          for (auto [a, b] : grid(square, square))
            If(row + a >= 0 && column + b >= 0 && row + a < width && column + b < width) {
              atomic_max(nearest(row + a, column + b), value);
            }
        }
        for (auto I : picture) {
          auto seen = nearest[I];
          auto shade = cast<float>(seen % 256) / 255.0f, depth = cast<float>(seen / 256) / 4096.0f;
          auto light = 0.4f + 0.6f * depth;
          Vec3 water = light * vec(40 + 180 * shade, 110 + 130 * shade, 255.0f);
          picture[I] = cast<uint8_t>(select(seen < 0, vec3(17, 24, 40), water));
        }
      }} {
  particles.copy_from(start);
}

void Mpm3d::advance(int count) {
  for (int k = 0; k < count; k++) {
    grid_.clear();
    substep_();
  }
}

double Mpm3d::mass() {
  qn::Kernel sum = [&] {
    Var<double> total = 0.0;
    for (auto I : nodes_) total += nodes_[I].mass;
    return total;
  };
  return sum();
}

Mpm3d::Picture Mpm3d::draw(int width, float side) const {
  Picture picture{grid_.device(), {width, width}};
  draw_(qn::Field<int, 2>{grid_.device(), {width, width}}, picture, side);
  return picture;
}

}  // namespace examples

#include "examples/channel.h"

#include <array>

namespace examples {

namespace qn = quern;
using namespace qn::lang;

namespace {

struct Direction {
  int x, y, opposite;
  float weight;
  vec2 c() const { return {float(x), float(y)}; }
};
constexpr std::array<Direction, 9> directions = {{{0, 0, 0, 4 / 9.f},
                                                  {1, 0, 3, 1 / 9.f},
                                                  {0, 1, 4, 1 / 9.f},
                                                  {-1, 0, 1, 1 / 9.f},
                                                  {0, -1, 2, 1 / 9.f},
                                                  {1, 1, 7, 1 / 36.f},
                                                  {-1, 1, 8, 1 / 36.f},
                                                  {-1, -1, 5, 1 / 36.f},
                                                  {1, -1, 6, 1 / 36.f}}};

struct Moments {
  F32 density;  ///< less 1
  Vec2 velocity;
};
/// The velocity lies half-way through the force's push: `missing` is the momentum still to come, or
/// less than 0 what came too much.
Moments moments(const std::array<Var<float>, 9>& f, float missing) {
  auto density = ((f[0] + (f[1] + f[3])) + (f[2] + f[4])) + ((f[5] + f[7]) + (f[6] + f[8]));
  Vec2 momentum((f[1] - f[3]) + ((f[5] - f[7]) + (f[8] - f[6])),
                (f[2] - f[4]) + ((f[5] - f[7]) + (f[6] - f[8])));
  return {density, (momentum + vec2(missing, 0)) / (1.0f + density)};
}

/// What direction `q` holds in equilibrium, less what it holds at rest.
F32 equilibrium(size_t q, const Moments& m) {
  const Direction& d = directions[q];
  auto c = 3.0f * dot(d.c(), m.velocity);
  auto square = 1.5f * dot(m.velocity, m.velocity);
  return d.weight * (m.density + (1.0f + m.density) * (c + 0.5f * c * c - square));
}
/// What a force along the channel adds to direction `q` in a step.
F32 push(size_t q, const Moments& m, float force, float rate) {
  const Direction& d = directions[q];
  auto c = 3.0f * dot(d.c(), m.velocity);
  return (1 - 0.5f * rate) * force * 3 * d.weight * (d.c().x - m.velocity.x + d.c().x * c);
}

}  // namespace

Channel::Channel(const qn::Device& device, int height, int width, float viscosity, float force)
    : velocity{device, {height, width}},
      height_(height),
      width_(width),
      rate_(1 / (3 * viscosity + 0.5f)),
      force_(force),
      now_{device, {9, height + 2, width + 2}},
      next_{device, {9, height + 2, width + 2}},
      solid_{device, {height + 2, width + 2}},
      start_{[this](F32 speed) {
        for (auto [row, column] : grid(height_, width_)) {
          auto y = (cast<float>(row) + 0.5f) / float(height_);
          Moments m{0.0f, Vec2(4 * speed * y * (1 - y), 0.0f)};
          for (size_t q = 0; q < 9; q++)
            now_(q, row + 1, column + 1) = equilibrium(q, m) + 0.5f * push(q, m, force_, 0);
        }
      }},
      step_{[this] {
        // The frame: what leaves at one end comes in at the other.
        for (auto i : range(height_ + 2)) {
          for (int q = 0; q < 9; q++) {
            now_(q, i, 0) = now_(q, i, width_);
            now_(q, i, width_ + 1) = now_(q, i, 1);
          }
          solid_(i, 0) = solid_(i, width_);
          solid_(i, width_ + 1) = solid_(i, 1);
        }
        for (auto [row, column] : grid(height_, width_)) {
          auto i = row + 1, j = column + 1;
          // Stream: take what comes from the neighbour, or what a solid one reflects.
          std::array<Var<float>, 9> f;
          f[0] = now_(0, i, j);
          for (size_t q = 1; q < 9; q++) {
            const Direction& d = directions[q];
            f[q] = select(solid_(i - d.y, j - d.x) != 0, now_(d.opposite, i, j),
                          now_(q, i - d.y, j - d.x));
          }
          // Collide: relax towards the equilibrium of these moments.
          Moments m = moments(f, 0.5f * force_);
          for (size_t q = 0; q < 9; q++)
            next_(q, i, j) = f[q] + rate_ * (equilibrium(q, m) - f[q]) + push(q, m, force_, rate_);
        }
      }},
      measure_{[this] {
        for (auto [row, column] : velocity) {
          auto i = row + 1, j = column + 1;
          std::array<Var<float>, 9> f;
          for (size_t q = 0; q < 9; q++) f[q] = now_(q, i, j);
          Moments m = moments(f, -0.5f * force_);  // collided, not yet streamed
          velocity(row, column) = select(solid_(i, j) != 0, vec2(0, 0), m.velocity);
        }
      }} {
  qn::Kernel plates = [&] {
    for (auto j : range(width_ + 2)) {
      solid_(0, j) = 1;
      solid_(height_ + 1, j) = 1;
    }
  };
  plates();
}

void Channel::advance(int count) {
  for (int k = 0; k < count; k++) {
    step_();
    now_.swap(next_);
  }
}

}  // namespace examples

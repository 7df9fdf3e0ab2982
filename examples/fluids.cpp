#include "examples/fluids.h"

#include <array>
#include <string>
#include <utility>

namespace examples {

namespace qn = quern;
using namespace qn::lang;

namespace {

/// From a cell's corner to the middle of its left side, of its bottom, of itself; in cells.
constexpr vec2 on_left(0, 0.5f), on_bottom(0.5f, 0), centre(0.5f, 0.5f);

/// A grid that ends where it begins. `get(i, j)` is a value at (j, i); positions are in cells.
struct Torus {
  int n;
  /// Of any index into 0 … n - 1.
  I32 wrap(const I32& i) const { return (i % n + n) % n; }

  /// `N` weights each way, for the nodes from `base` on.
  template <size_t N, class F>
  F32 weighted(F get, const IVec2& base, const std::array<F32, N>& wx,
               const std::array<F32, N>& wy) const {
    return sum_rows<N>(get, base, wx, wy, std::make_index_sequence<N>());
  }
  /// Between four nodes.
  template <class F>
  F32 linear(F get, const Vec2& at) const {
    auto base = ifloor(at);
    auto f = at - cast<float>(base);
    return weighted<2>(get, base, {1 - f.x, f.x}, {1 - f.y, f.y});
  }
  /// Between sixteen, by Catmull and Rom's spline.
  template <class F>
  F32 cubic(F get, const Vec2& at) const {
    auto base = ifloor(at);
    auto f = at - cast<float>(base);
    return weighted<4>(get, base - 1, catmull_rom(f.x), catmull_rom(f.y));
  }

 private:
  static std::array<F32, 4> catmull_rom(const F32& f) {
    auto g = 1 - f;
    return {-0.5f * f * g * g, 1 - f * f * (2.5f - 1.5f * f), 1 - g * g * (2.5f - 1.5f * g),
            -0.5f * g * f * f};
  }
  template <size_t N, class F, size_t... K>
  F32 sum_rows(F get, const IVec2& base, const std::array<F32, N>& wx, const std::array<F32, N>& wy,
               std::index_sequence<K...>) const {
    std::array<I32, N> columns{wrap(base.x + int(K))...};
    auto row = [&](int r) {
      auto i = wrap(base.y + r);
      return (... + (wx[K] * get(i, columns[K])));
    };
    return (... + (wy[K] * row(int(K))));
  }
};

/// Where what is at `at` now was a step ago, `cells` long at speed 1.
Vec2 origin(const Torus& torus, const qn::Field<vec2, 2>& velocity, float cells, const Vec2& at) {
  auto x = [&](const I32& i, const I32& j) { return F32(velocity(i, j).x); };
  auto y = [&](const I32& i, const I32& j) { return F32(velocity(i, j).y); };
  auto speed = [&](const Vec2& p) {
    return vec(torus.linear(x, p - on_left), torus.linear(y, p - on_bottom));
  };
  return at - cells * speed(at - 0.5f * cells * speed(at));
}

}  // namespace

Fluids::Fluids(const Grid<2>& plane, const Setup& setup, qn::Loc loc)
    : velocity(plane.field<vec2>()),
      dye(plane.field<float>()),
      n_(plane.side(loc)),
      setup_(setup),
      next_velocity_(plane.field<vec2>()),
      old_velocity_(plane.field<vec2>()),
      next_dye_(plane.field<float>()),
      pressure_(plane.field<float>()),
      next_pressure_(plane.field<float>()),
      divergence_(plane.field<float>()),
      carry_velocity_{[this] {
        const Torus torus{n_};
        const float cells = setup_.dt * float(n_);  // a step at speed 1
        auto x = [&](const I32& i, const I32& j) { return F32(velocity(i, j).x); };
        auto y = [&](const I32& i, const I32& j) { return F32(velocity(i, j).y); };
        auto from = [&](const Vec2& at) { return origin(torus, velocity, cells, at); };
        for (auto [i, j] : velocity) {
          Vec2 corner = vec(cast<float>(j), cast<float>(i));
          next_velocity_(i, j) = vec(torus.cubic(x, from(corner + on_left) - on_left),
                                     torus.cubic(y, from(corner + on_bottom) - on_bottom));
        }
      }},
      carry_dye_{[this] {
        const Torus torus{n_};
        const float cells = setup_.dt * float(n_);
        auto value = [&](const I32& i, const I32& j) { return F32(dye(i, j)); };
        for (auto [i, j] : dye) {
          Vec2 corner = vec(cast<float>(j), cast<float>(i));
          next_dye_(i, j) =
              torus.cubic(value, origin(torus, velocity, cells, corner + centre) - centre);
        }
      }},
      diffuse_{[this] {
        const Torus torus{n_};
        const float a = setup_.viscosity * setup_.dt * float(n_) * float(n_);
        auto relax = [&](const qn::Field<vec2, 2>& from, const qn::Field<vec2, 2>& to) {
          for (auto [i, j] : to) {
            auto around = from(torus.wrap(i - 1), j) + from(torus.wrap(i + 1), j) +
                          (from(i, torus.wrap(j - 1)) + from(i, torus.wrap(j + 1)));
            to(i, j) = (old_velocity_(i, j) + a * around) / (1 + 4 * a);
          }
        };
        for (auto I : velocity) old_velocity_[I] = velocity[I];
        for (auto round : serial(range(setup_.diffusion / 2))) {
          (void)round;
          relax(velocity, next_velocity_);
          relax(next_velocity_, velocity);
        }
      }},
      project_{[this] {
        const Torus torus{n_};
        auto relax = [&](const qn::Field<float, 2>& from, const qn::Field<float, 2>& to) {
          for (auto [i, j] : to)
            to(i, j) = 0.25f * (from(torus.wrap(i - 1), j) + from(torus.wrap(i + 1), j) +
                                (from(i, torus.wrap(j - 1)) + from(i, torus.wrap(j + 1))) -
                                divergence_(i, j));
        };
        for (auto [i, j] : velocity) {
          auto here = velocity(i, j);
          divergence_(i, j) = velocity(i, torus.wrap(j + 1)).x - here.x +
                              (velocity(torus.wrap(i + 1), j).y - here.y);
          pressure_(i, j) = 0;
        }
        for (auto round : serial(range(setup_.projection / 2))) {
          (void)round;
          relax(pressure_, next_pressure_);
          relax(next_pressure_, pressure_);
        }
        for (auto [i, j] : velocity) {
          auto p = pressure_(i, j);
          velocity(i, j) = velocity(i, j) - vec(p - pressure_(i, torus.wrap(j - 1)),
                                                p - pressure_(torus.wrap(i - 1), j));
        }
      }} {
  if (setup.projection % 2 != 0 || setup.diffusion % 2 != 0)
    throw qn::Error(loc, "the numbers of Jacobi's iterations must be even, not " +
                             std::to_string(setup.projection) + " and " +
                             std::to_string(setup.diffusion));
}

void Fluids::carry_velocity() {
  carry_velocity_();
  velocity.swap(next_velocity_);
}

void Fluids::carry_dye() {
  carry_dye_();
  dye.swap(next_dye_);
}

void Fluids::advance(int count) {
  for (int k = 0; k < count; k++) {
    carry_dye();
    carry_velocity();
    if (setup_.viscosity > 0) diffuse();
    project();
  }
}

}  // namespace examples

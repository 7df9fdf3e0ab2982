#include "examples/mpm2d.h"

#include <quern/host.h>

#include <array>
#include <string>

namespace examples {

namespace qn = quern;
using namespace qn::lang;

Particles particles_from(const Picture& picture, qn::Loc loc) {
  constexpr float margin = 0.03f;  // the solver's walls are three cells thick
  const int64_t height = picture.shape(0), width = picture.shape(1);
  const std::vector<qn::Vec<uint8_t, 3>> pixels = qn::to_vector(picture);
  Particles p;
  for (int64_t row = 0; row < height; row++)
    for (int64_t column = 0; column < width; column++) {
      auto [r, g, b] = pixels[size_t(row * width + column)];
      bool red = r > 128, green = g > 128, blue = b > 128;
      if (!red && !blue) continue;
      vec2 x((float(column) + 0.5f) / float(width), 1 - (float(row) + 0.5f) / float(height));
      p.x.push_back(vec2(margin, margin) + (1 - 2 * margin) * x);
      p.material.push_back(red && green && blue ? snow : red ? elastic : fluid);
    }
  if (p.x.empty())
    throw qn::Error(loc,
                    "the picture has no red, blue or white pixel, so there is nothing to simulate");
  return p;
}

namespace {

Mat2 diagonal(F32 a, F32 b) { return {a, 0.0f, 0.0f, b}; }

/// m = u · diag(s) · vᵀ: polar decomposition, then the symmetric part's eigenvectors (Golub & Van
/// Loan, Matrix Computations, 8.5: the 2×2 Jacobi rotation).
struct Svd {
  Mat2 rotation, u, v;
  Vec2 s;
};
Svd svd(const Mat2& m) {
  Vec2 p(m(0, 0) + m(1, 1), m(1, 0) - m(0, 1));
  Vec2 unit = select(dot(p, p) > 0, p / max(length(p), 1e-20f), vec2(1, 0));
  Mat2 rotation(unit.x, -unit.y, unit.y, unit.x);
  Mat2 symmetric = transpose(rotation) * m;
  F32 a = symmetric(0, 0), b = symmetric(0, 1), d = symmetric(1, 1);
  auto half = 0.5f * (a - d);
  auto w = sqrt(half * half + b * b);
  auto flat = abs(b) < 1e-6f;
  auto t = b / select(flat, 1.0f, select(half > 0, half + w, half - w));
  auto k = 1.0f / sqrt(t * t + 1.0f);
  auto c = select(flat, 1.0f, k), z = select(flat, 0.0f, -t * k);
  Mat2 v(c, z, -z, c);
  Vec2 s(c * c * a - 2.0f * c * z * b + z * z * d, z * z * a + 2.0f * c * z * b + c * c * d);
  return {rotation, rotation * v, v, s};
}

struct Spline {
  IVec2 base;
  Vec2 f;
  std::array<Vec2, 3> w;
  F32 weight(size_t i, size_t j) const { return w[i].x * w[j].y; }
};
/// Quadratic B-spline weights of the three nodes from `base` on; `f` is the distance to it in
/// cells.
Spline spline(Vec2 position) {
  auto base = cast<int>(position - 0.5f);
  auto f = position - cast<float>(base);
  auto a = 1.5f - f, b = f - 1.0f, c = f - 0.5f;
  return {base, f, {0.5f * a * a, 0.75f - b * b, 0.5f * c * c}};
}

}  // namespace

Mpm2d::Mpm2d(const qn::Device& device, const Particles& start, int n_grid, float time_step)
    : Mpm2d(Grid<2>(device, {n_grid, n_grid}), start, n_grid, time_step) {}

Mpm2d::Mpm2d(const Grid<2>& square, const Particles& start, int n_grid, float time_step)
    : grid_(square),
      n_grid_(n_grid),
      count_(int(start.x.size())),
      dt_(time_step),
      x_{square.device(), {count_}},
      v_{square.device(), {count_}},
      affine_{square.device(), {count_}},
      deformation_{square.device(), {count_}},
      plastic_volume_{square.device(), {count_}},
      material_{square.device(), {count_}},
      velocity_(square.field<vec2>()),
      mass_(square.field<float>()),
      substep_{[this] {
        const float dx = 1.0f / float(n_grid_), inv_dx = float(n_grid_), dt = dt_;
        const float volume = 0.25f * dx * dx, mass = volume;
        const int right = int(grid_.extent(0)), top = int(grid_.extent(1));
        const float young = 5e3f, poisson = 0.2f;
        const float mu0 = young / (2 * (1 + poisson)),
                    lambda0 = young * poisson / ((1 + poisson) * (1 - 2 * poisson));

        for (auto I : mass_) {
          velocity_[I] = vec2(0, 0);
          mass_[I] = 0;
        }
        for (auto p : x_) {  // particles to grid
          auto kind = material_[p];
          auto C = affine_[p];
          Mat2 f = (mat2::identity() + dt * C) * deformation_[p];
          Svd d = svd(f);
          auto s = select(kind == snow, clamp(d.s, 1 - 2.5e-2f, 1 + 4.5e-3f), d.s);
          auto J = s.x * s.y;
          auto Jp = plastic_volume_[p];
          auto hardening =
              select(kind == elastic, 0.3f, clamp(exp(10.0f * (1.0f - Jp)), 0.1f, 5.0f));
          auto mu = select(kind == fluid, 0.0f, mu0 * hardening), lambda = lambda0 * hardening;
          If(kind == snow) { plastic_volume_[p] = Jp * (d.s.x / s.x) * (d.s.y / s.y); }
          auto root = sqrt(max(J, 0.0f));
          Mat2 F = select(kind == fluid, diagonal(root, root),
                          select(kind == snow, d.u * diagonal(s.x, s.y) * transpose(d.v), f));
          deformation_[p] = F;
          auto pressure = lambda * J * (J - 1.0f);
          auto stress =
              2.0f * mu * ((F - d.rotation) * transpose(F)) + diagonal(pressure, pressure);
          auto affine = -dt * volume * 4 * inv_dx * inv_dx * stress + mass * C;
          auto momentum = mass * v_[p];
          Spline b = spline(x_[p] * inv_dx);
          for (int i = 0; i < 3; i++)
            for (int j = 0; j < 3; j++) {
              auto w = b.weight(size_t(i), size_t(j));
              auto node = b.base + ivec2(i, j);
              velocity_[node] += w * (momentum + affine * ((vec2(float(i), float(j)) - b.f) * dx));
              mass_[node] += w * mass;
            }
        }
        for (auto I : mass_) {  // forces and walls
          If(mass_[I] > 0) {
            Var<vec2> v = velocity_[I] / mass_[I];
            v.y -= dt * gravity;
            If(I.x < 3 && v.x < 0) v.x = 0;
            If(I.x > right - 3 && v.x > 0) v.x = 0;
            If(I.y < 3 && v.y < 0) v.y = 0;
            If(I.y > top - 3 && v.y > 0) v.y = 0;
            velocity_[I] = v;
          }
        }
        for (auto p : x_) {  // grid to particles
          Spline b = spline(x_[p] * inv_dx);
          Var<vec2> v = 0;
          Var<mat2> C = 0;
          for (int i = 0; i < 3; i++)
            for (int j = 0; j < 3; j++) {
              auto u = b.weight(size_t(i), size_t(j)) * velocity_[b.base + ivec2(i, j)];
              v += u;
              C += 4 * inv_dx * outer(u, vec2(float(i), float(j)) - b.f);
            }
          v_[p] = v;
          affine_[p] = C;
          x_[p] = x_[p] + dt * v;
        }
      }},
      draw_{[this](qn::Field<int, 2> cover, Picture picture) {
        auto width = cover.dim(0);
        for (auto I : cover) cover[I] = -1;  // the highest material that covers a pixel
        for (auto p : x_) {
          auto at = x_[p];
          auto row = cast<int>((1 - at.y) * cast<float>(width)),
               column = cast<int>(at.x * cast<float>(width));
          for (int di = -1; di < 2; di++)
            for (int dj = -1; dj < 2; dj++) {
              auto i = row + di, j = column + dj;
              If(i >= 0 && j >= 0 && i < width && j < width) {
                atomic_max(cover(i, j), material_[p]);
              }
            }
        }
        for (auto I : picture) {
          auto m = cover[I];
          auto colour = [&](int of_elastic, int of_fluid, int of_snow, int empty) {
            return cast<uint8_t>(
                select(m == elastic, of_elastic,
                       select(m == fluid, of_fluid, select(m == snow, of_snow, empty))));
          };
          picture[I] =
              vec(colour(237, 64, 238, 17), colour(85, 156, 238, 47), colour(59, 255, 240, 65));
        }
      }} {
  x_.copy_from(start.x);
  material_.copy_from(start.material);
  deformation_.fill(mat2::identity());
  plastic_volume_.fill(1.0f);
}

void Mpm2d::advance(int steps) {
  for (int k = 0; k < steps; k++) {
    grid_.clear();
    substep_();
  }
}

Particles Mpm2d::positions() const { return {qn::to_vector(x_), qn::to_vector(material_)}; }

Mpm2d::Totals Mpm2d::totals() {
  qn::Kernel sums = [&] {
    Var<double> mass = 0.0, momentum = 0.0, height = 0.0;
    Var<float> lowest = 2.0f, highest = -1.0f;
    for (auto I : mass_) mass += mass_[I];
    for (auto p : x_) {
      auto x = x_[p];
      momentum += v_[p].y;
      height += x.y;
      atomic_min(lowest, min(x.x, x.y));
      atomic_max(highest, max(x.x, x.y));
    }
    return result(mass, momentum, height, lowest, highest);
  };
  auto [mass, momentum, height, lowest, highest] = sums();
  return {mass, double(momentum) / count_, double(height) / count_, lowest, highest};
}

Picture Mpm2d::draw(int width) const {
  Picture picture{grid_.device(), {width, width}};
  draw_(qn::Field<int, 2>{grid_.device(), {width, width}}, picture);
  return picture;
}

}  // namespace examples

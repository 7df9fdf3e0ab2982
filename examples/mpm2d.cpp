#include "examples/mpm2d.h"

#include <algorithm>
#include <array>

namespace examples {

namespace qn = quern;
using namespace qn::lang;

Particles particles_from(const Image& image) {
  constexpr float margin = 0.03f;  // the solver's walls are three cells thick
  Particles p;
  for (int row = 0; row < image.height; row++)
    for (int column = 0; column < image.width; column++) {
      const uint8_t* c = image.at(column, row);
      bool red = c[0] > 128, green = c[1] > 128, blue = c[2] > 128;
      if (!red && !blue) continue;
      p.x.push_back(margin + (1 - 2 * margin) * (float(column) + 0.5f) / float(image.width));
      p.y.push_back(margin + (1 - 2 * margin) * (1 - (float(row) + 0.5f) / float(image.height)));
      p.material.push_back(red && green && blue ? snow : red ? elastic : fluid);
    }
  if (p.x.empty())
    throw qn::Error("the image has no red, blue or white pixel, so there is nothing to simulate");
  return p;
}

namespace {

/// A 2×2 matrix of device values.
struct Matrix {
  F32 a, b, c, d;  // rows (a b) (c d)
};
Matrix operator*(const Matrix& m, const Matrix& n) {
  return {m.a * n.a + m.b * n.c, m.a * n.b + m.b * n.d, m.c * n.a + m.d * n.c,
          m.c * n.b + m.d * n.d};
}
Matrix transposed(const Matrix& m) { return {m.a, m.c, m.b, m.d}; }

/// m = u · diag(s0, s1) · vᵀ: polar decomposition, then the symmetric part's eigenvectors
/// (Golub & Van Loan, Matrix Computations, 8.5: the 2×2 Jacobi rotation).
struct Svd {
  Matrix rotation, u, v;
  F32 s0, s1;
};
Svd svd(const Matrix& m) {
  auto p = m.a + m.d, q = m.c - m.b;
  auto length = sqrt(p * p + q * q);
  auto scale = 1.0f / max(length, 1e-20f);
  auto cosine = select(length > 0, p * scale, 1.0f), sine = select(length > 0, q * scale, 0.0f);
  Matrix rotation{cosine, -sine, sine, cosine};
  Matrix s = transposed(rotation) * m;
  auto half = 0.5f * (s.a - s.d);
  auto w = sqrt(half * half + s.b * s.b);
  auto flat = abs(s.b) < 1e-6f;
  auto t = s.b / select(flat, 1.0f, select(half > 0, half + w, half - w));
  auto k = 1.0f / sqrt(t * t + 1.0f);
  auto c = select(flat, 1.0f, k), z = select(flat, 0.0f, -t * k);
  auto s0 = c * c * s.a - 2.0f * c * z * s.b + z * z * s.d;
  auto s1 = z * z * s.a + 2.0f * c * z * s.b + c * c * s.d;
  Matrix v{c, z, -z, c};
  return {rotation, rotation * v, v, s0, s1};
}

struct Spline {
  I32 base;
  F32 f;
  std::array<F32, 3> w;
};
/// Quadratic B-spline weights of the three nodes from `base` on; `f` is the distance to it in
/// cells.
Spline spline(F32 position) {
  auto base = cast<int>(position - 0.5f);
  auto f = position - cast<float>(base);
  auto a = 1.5f - f, b = f - 1.0f, c = f - 0.5f;
  return {base, f, {0.5f * a * a, 0.75f - b * b, 0.5f * c * c}};
}

}  // namespace

Mpm2d::Mpm2d(const qn::Device& device, const Particles& start, int n_grid, float time_step)
    : n_grid_(n_grid),
      count_(int(start.x.size())),
      dt_(time_step),
      x_{device, {count_}},
      y_{device, {count_}},
      vx_{device, {count_}},
      vy_{device, {count_}},
      c00_{device, {count_}},
      c01_{device, {count_}},
      c10_{device, {count_}},
      c11_{device, {count_}},
      f00_{device, {count_}},
      f01_{device, {count_}},
      f10_{device, {count_}},
      f11_{device, {count_}},
      jp_{device, {count_}},
      material_{device, {count_}},
      grid_x_{device, {n_grid, n_grid}},
      grid_y_{device, {n_grid, n_grid}},
      grid_m_{device, {n_grid, n_grid}},
      substep_{[this] {
        const float dx = 1.0f / float(n_grid_), inv_dx = float(n_grid_), dt = dt_;
        const float volume = 0.25f * dx * dx, mass = volume;
        const float young = 5e3f, poisson = 0.2f;
        const float mu0 = young / (2 * (1 + poisson)),
                    lambda0 = young * poisson / ((1 + poisson) * (1 - 2 * poisson));

        for (auto I : grid_m_) {
          grid_x_[I] = 0;
          grid_y_[I] = 0;
          grid_m_[I] = 0;
        }
        for (auto p : x_) {  // particles to grid
          auto sx = spline(x_[p] * inv_dx), sy = spline(y_[p] * inv_dx);
          Matrix c{c00_[p], c01_[p], c10_[p], c11_[p]};
          Matrix g{1 + dt * c.a, dt * c.b, dt * c.c, 1 + dt * c.d};
          Matrix f = g * Matrix{f00_[p], f01_[p], f10_[p], f11_[p]};
          auto kind = material_[p];
          auto hardening =
              select(kind == elastic, 0.3f, clamp(exp(10.0f * (1.0f - jp_[p])), 0.1f, 5.0f));
          auto mu = select(kind == fluid, 0.0f, mu0 * hardening), lambda = lambda0 * hardening;
          Svd d = svd(f);
          auto s0 = select(kind == snow, clamp(d.s0, 1 - 2.5e-2f, 1 + 4.5e-3f), d.s0);
          auto s1 = select(kind == snow, clamp(d.s1, 1 - 2.5e-2f, 1 + 4.5e-3f), d.s1);
          If(kind == snow) { jp_[p] = jp_[p] * (d.s0 / s0) * (d.s1 / s1); }
          auto J = s0 * s1;
          Matrix scaled{d.u.a * s0, d.u.b * s1, d.u.c * s0, d.u.d * s1};
          Matrix plastic = scaled * transposed(d.v);
          auto root = sqrt(max(J, 0.0f));
          auto pick = [&](F32 of_fluid, F32 of_snow, F32 else_) {
            return select(kind == fluid, of_fluid, select(kind == snow, of_snow, else_));
          };
          Matrix F{pick(root, plastic.a, f.a), pick(0.0f, plastic.b, f.b),
                   pick(0.0f, plastic.c, f.c), pick(root, plastic.d, f.d)};
          f00_[p] = F.a;
          f01_[p] = F.b;
          f10_[p] = F.c;
          f11_[p] = F.d;
          Matrix e = Matrix{F.a - d.rotation.a, F.b - d.rotation.b, F.c - d.rotation.c,
                            F.d - d.rotation.d} *
                     transposed(F);
          auto pressure = lambda * J * (J - 1.0f);
          auto k = -dt * volume * 4 * inv_dx * inv_dx;
          Matrix affine{k * (2.0f * mu * e.a + pressure) + mass * c.a,
                        k * 2.0f * mu * e.b + mass * c.b, k * 2.0f * mu * e.c + mass * c.c,
                        k * (2.0f * mu * e.d + pressure) + mass * c.d};
          auto px = mass * vx_[p], py = mass * vy_[p];
          for (size_t i = 0; i < 3; i++)
            for (size_t j = 0; j < 3; j++) {
              auto rx = (float(i) - sx.f) * dx, ry = (float(j) - sy.f) * dx, w = sx.w[i] * sy.w[j];
              auto u = sx.base + i, v = sy.base + j;
              grid_x_(u, v) += w * (px + affine.a * rx + affine.b * ry);
              grid_y_(u, v) += w * (py + affine.c * rx + affine.d * ry);
              grid_m_(u, v) += w * mass;
            }
        }
        for (auto [i, j] : grid_m_) {  // forces and walls
          If(grid_m_(i, j) > 0) {
            Var<float> u = grid_x_(i, j) / grid_m_(i, j),
                       v = grid_y_(i, j) / grid_m_(i, j) - dt * gravity;
            If(i < 3 && u < 0) u = 0;
            If(i > n_grid_ - 3 && u > 0) u = 0;
            If(j < 3 && v < 0) v = 0;
            If(j > n_grid_ - 3 && v > 0) v = 0;
            grid_x_(i, j) = u;
            grid_y_(i, j) = v;
          }
        }
        for (auto p : x_) {  // grid to particles
          auto sx = spline(x_[p] * inv_dx), sy = spline(y_[p] * inv_dx);
          Var<float> u = 0, v = 0, b00 = 0, b01 = 0, b10 = 0, b11 = 0;
          for (size_t i = 0; i < 3; i++)
            for (size_t j = 0; j < 3; j++) {
              auto rx = float(i) - sx.f, ry = float(j) - sy.f;
              auto w = sx.w[i] * sy.w[j];
              auto gu = w * grid_x_(sx.base + i, sy.base + j),
                   gv = w * grid_y_(sx.base + i, sy.base + j);
              u += gu;
              v += gv;
              b00 += gu * rx;
              b01 += gu * ry;
              b10 += gv * rx;
              b11 += gv * ry;
            }
          const float k = 4 * inv_dx;
          vx_[p] = u;
          vy_[p] = v;
          c00_[p] = k * b00;
          c01_[p] = k * b01;
          c10_[p] = k * b10;
          c11_[p] = k * b11;
          x_[p] = x_[p] + dt * u;
          y_[p] = y_[p] + dt * v;
        }
      }} {
  size_t n = start.x.size();
  x_.copy_from(start.x.data(), n);
  y_.copy_from(start.y.data(), n);
  material_.copy_from(start.material.data(), n);
  f00_.fill(1.0f);
  f11_.fill(1.0f);
  jp_.fill(1.0f);
}

void Mpm2d::advance(int steps) {
  for (int k = 0; k < steps; k++) substep_();
}

Particles Mpm2d::positions() const {
  Particles p{std::vector<float>(size_t(count_)), std::vector<float>(size_t(count_)),
              std::vector<int>(size_t(count_))};
  x_.copy_to(p.x.data(), size_t(count_));
  y_.copy_to(p.y.data(), size_t(count_));
  material_.copy_to(p.material.data(), size_t(count_));
  return p;
}

Mpm2d::Totals Mpm2d::totals() {
  qn::Kernel sums = [&] {
    Var<double> mass = 0.0, momentum = 0.0, height = 0.0;
    Var<float> lowest = 2.0f, highest = -1.0f;
    for (auto I : grid_m_) mass += grid_m_[I];
    for (auto p : x_) {
      momentum += vy_[p];
      height += y_[p];
      atomic_min(lowest, min(x_[p], y_[p]));
      atomic_max(highest, max(x_[p], y_[p]));
    }
    return result(mass, momentum, height, lowest, highest);
  };
  auto [mass, momentum, height, lowest, highest] = sums();
  return {mass, double(momentum) / count_, double(height) / count_, lowest, highest};
}

Image Mpm2d::draw(int width) const {
  static constexpr uint8_t colours[3][3] = {{237, 85, 59}, {64, 156, 255}, {238, 238, 240}};
  Image image(width, width);
  for (size_t k = 0; k < image.rgb.size(); k += 3) {
    image.rgb[k] = 17;
    image.rgb[k + 1] = 47;
    image.rgb[k + 2] = 65;
  }
  Particles p = positions();
  for (size_t k = 0; k < p.x.size(); k++) {
    int cx = int(p.x[k] * float(width)), cy = int((1 - p.y[k]) * float(width));
    for (int dy = -1; dy < 2; dy++)
      for (int dx = -1; dx < 2; dx++) {
        int px = cx + dx, py = cy + dy;
        if (px < 0 || py < 0 || px >= width || py >= width) continue;
        std::copy_n(colours[p.material[k]], 3, image.at(px, py));
      }
  }
  return image;
}

}  // namespace examples

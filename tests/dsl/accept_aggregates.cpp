// The kernels of the surface that need vectors, matrices and structures, as users write them: they
// compile without a warning, and what they compute is checked against plain C++.
#include <quern/quern.h>

#include <array>
#include <cmath>
#include <vector>

#include "quern/host.h"
#include "tests/catch.h"

namespace qn = quern;
using namespace qn::lang;

namespace {
template <class W = HostW>
struct Material {
  In<W, float> mu, lambda;
};
template <class W = HostW>
struct Particle {
  In<W, vec3> x, v;
  In<W, mat3> C;
  In<W, float> J;
  In<W, Material<>> mat;
  auto kinetic() const { return 0.5f * dot(v, v); }
  auto pressure() const { return mat.lambda * (J - 1.0f); }
};
}  // namespace

TEST_CASE("accept: a structure's methods on the host") {
  Particle<> host;
  host.v = vec3(1, 2, 3);
  host.J = 3;
  host.mat.lambda = 5;
  CHECK(host.kinetic() == 7);
  CHECK(host.pressure() == 10);
}

TEST_CASE("accept: Julia set with vectors") {
  qn::Device device;
  qn::Field<float, 2> image{device, {40, 30}};
  qn::Kernel julia = [](qn::Field<float, 2> out, F32 t) {
    for (auto [i, j] : out) {
      Var<vec2> z = Vec2(i / 20.0f - 1, j / 20.0f - 0.5f) * 2;
      auto c = Vec2(-0.8f, cos(t) * 0.2f);
      Var<int> n = 0;
      While(n < 50) {
        z = Vec2(z.x * z.x - z.y * z.y, 2 * z.x * z.y) + c;
        n += 1;
        If(dot(z, z) > 16) { Break(); }
      }
      out(i, j) = 1 - n * 0.02f;
    }
  };
  julia(image, 0.0f);
  int differ = 0;
  for (int i = 0; i < 40; i++)
    for (int j = 0; j < 30; j++) {
      float x = (float(i) / 20 - 1) * 2, y = (float(j) / 20 - 0.5f) * 2;
      int n = 0;
      while (n < 50) {
        float t = x * x - y * y - 0.8f;
        y = 2 * x * y + 0.2f;
        x = t;
        n++;
        if (x * x + y * y > 16) break;
      }
      differ += std::fabs(image.at(i, j) - (1 - float(n) * 0.02f)) > 0.021f;
    }
  CHECK(differ <= 12);  // rounding moves a few points at the set's edge
}

TEST_CASE("accept: a substep of 3D MLS-MPM keeps mass and momentum") {
  qn::Device device;
  const int n_grid = 16, count = 500;
  const float dx = 1.0f / n_grid, inv_dx = n_grid, dt = 8e-5f, E = 400,
              p_vol = 0.125f * dx * dx * dx, p_mass = p_vol;
  qn::Field<Particle<>> particles{device, {count}};
  qn::Field<vec3, 3> grid_v{device, {n_grid, n_grid, n_grid}};
  qn::Field<float, 3> grid_m{device, {n_grid, n_grid, n_grid}};
  std::vector<Particle<>> host(count);
  for (int k = 0; k < count; k++) {
    auto unit = [&](int prime) { return float(k * prime % 97) / 97; };
    host[size_t(k)].x = vec3(0.3f) + 0.4f * vec3(unit(31), unit(43), unit(59));
    host[size_t(k)].v = vec3(1, -2, unit(13));
    host[size_t(k)].J = 1 + 0.01f * unit(71);
  }
  particles.copy_from(host);
  auto weights = [](Vec3 fx) {
    auto a = 1.5f - fx, b = fx - 1, c = fx - 0.5f;
    return std::array<Vec3, 3>{0.5f * a * a, 0.75f - b * b, 0.5f * c * c};
  };
  qn::Kernel substep = [&] {
    for (auto I : grid_v) {
      grid_v[I] = vec3(0, 0, 0);
      grid_m[I] = 0;
    }
    for (auto k : particles) {
      auto p = particles[k];
      auto base = ifloor(p.x * inv_dx - 0.5f);
      auto fx = p.x * inv_dx - cast<float>(base);
      auto w = weights(fx);
      auto stress = -dt * 4 * E * p_vol * (p.J - 1) * inv_dx * inv_dx;
      auto affine = stress * mat3::identity() + p_mass * p.C;
      for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
          for (int l = 0; l < 3; l++) {
            auto offset = ivec3(i, j, l);
            auto dpos = (vec3(float(i), float(j), float(l)) - fx) * dx;
            auto weight = w[size_t(i)].x * w[size_t(j)].y * w[size_t(l)].z;
            grid_v[base + offset] += weight * (p_mass * p.v + affine * dpos);
            grid_m[base + offset] += weight * p_mass;
          }
    }
    for (auto I : grid_m) {
      If(grid_m[I] > 0) {
        Var<vec3> v = grid_v[I] / grid_m[I];
        v.y -= dt * 9.8f;
        If(I.x < 3 && v.x < 0) v.x = 0;
        If(I.x > n_grid - 3 && v.x > 0) v.x = 0;
        grid_v[I] = v;
      }
    }
    for (auto k : particles) {
      Var p = particles[k];
      auto base = ifloor(p.x * inv_dx - 0.5f);
      auto fx = p.x * inv_dx - cast<float>(base);
      auto w = weights(fx);
      Var<vec3> new_v = 0;
      Var<mat3> new_C = 0;
      for (auto [i, j, l] : grid(3, 3, 3)) {
        auto weight = select(i == 0, w[0].x, select(i == 1, w[1].x, w[2].x)) *
                      select(j == 0, w[0].y, select(j == 1, w[1].y, w[2].y)) *
                      select(l == 0, w[0].z, select(l == 1, w[1].z, w[2].z));
        auto dpos = (cast<float>(vec(i, j, l)) - fx) * dx;
        auto g_v = grid_v[base + vec(i, j, l)];
        new_v += weight * g_v;
        new_C += 4 * weight * outer(g_v, dpos) * (inv_dx * inv_dx);
      }
      p.v = new_v;
      p.C = new_C;
      p.x += dt * p.v;
      p.J *= 1 + dt * trace(p.C);
      particles[k] = p;
      particles[k].x.y = max(p.x.y, dx);
    }
  };
  substep();
  double mass = 0;
  for (float m : qn::to_vector(grid_m)) mass += double(m);
  CHECK(std::fabs(mass / (count * double(p_mass)) - 1) < 1e-5);
  vec3 before, after;
  for (int k = 0; k < count; k++) {
    before += host[size_t(k)].v;
    after += particles.at(k).v;
  }
  before.y -= float(count) * dt * 9.8f;
  CHECK(length(after - before) < 1e-4f * length(before));
}

TEST_CASE("accept: SPH density with cell lists") {
  qn::Device device;
  const float h = 0.1f;
  const int n = 300;
  const ivec3 cells(10, 10, 10);
  qn::Field<vec3> pos{device, {n}};
  qn::Field<float> rho{device, {n}};
  qn::Field<int, 3> cell_start{device, {10, 10, 10}}, cell_end{device, {10, 10, 10}};
  qn::Field<int> sorted{device, {n}};
  std::vector<vec3> host(n);
  for (int k = 0; k < n; k++)
    host[size_t(k)] = vec3(float(k * 37 % 101), float(k * 53 % 103), float(k * 71 % 107)) / 110;
  pos.copy_from(host);
  std::vector<int> order, start, end;
  for (int c = 0; c < 1000; c++) {
    start.push_back(int(order.size()));
    for (int k = 0; k < n; k++) {
      ivec3 cell = ifloor(host[size_t(k)] / h);
      if (cell == ivec3(c / 100, c / 10 % 10, c % 10)) order.push_back(k);
    }
    end.push_back(int(order.size()));
  }
  sorted.copy_from(order);
  cell_start.copy_from(start);
  cell_end.copy_from(end);
  qn::Func W = [h](F32 r) {
    auto q = r / h;
    If(q > 1) { Return(0.0f); }
    return 1.0f / (h * h * h) * pow(1 - q * q, 3);
  };
  qn::Kernel density = [&](F32 mass) {
    for (auto i : pos) {
      auto pi = pos[i];
      auto c = ifloor(pi / h);
      Var<float> sum = 0;
      for (auto [a, b, d] : grid(3, 3, 3)) {
        auto m = c + vec(a, b, d) - ivec3(1, 1, 1);
        If(all(m >= ivec3(0, 0, 0)) && all(m < cells)) {
          for (auto s : range(cell_start[m], cell_end[m])) {
            auto r = length(pi - pos[sorted[s]]);
            If(r < h) sum += mass * W(r);
          }
        }
      }
      rho[i] = sum;
    }
  };
  density(2.0f);
  for (int i = 0; i < n; i++) {
    double want = 0;
    for (int k = 0; k < n; k++) {
      double q = double(length(host[size_t(i)] - host[size_t(k)])) / double(h);
      if (q < 1) want += 2 * std::pow(1 - q * q, 3) / std::pow(double(h), 3);
    }
    CHECK(std::fabs(double(rho.at(i)) - want) < 1e-3 * want);
  }
}

TEST_CASE("accept: ray marching a signed distance field") {
  qn::Device device;
  auto sdf = [](Vec3 q) { return min(length(q) - 1, q.y + 1); };
  qn::Func normal = [&](Vec3 q) {
    const float e = 1e-3f;
    auto d = sdf(q);
    return normalize(
        Vec3(sdf(q + vec3(e, 0, 0)) - d, sdf(q + vec3(0, e, 0)) - d, sdf(q + vec3(0, 0, e)) - d));
  };
  qn::Kernel march = [&](qn::Field<vec3, 2> image, Vec3 eye, Vec3 sun) {
    for (auto [i, j] : image) {
      auto dir =
          normalize(vec((i - image.dim(0) / 2) / 300.0f, (j - image.dim(1) / 2) / 300.0f, 1.0f));
      Var<float> t = 0;
      Var<bool> hit = false;
      for (auto step : range(128)) {
        (void)step;
        auto d = sdf(eye + t * dir);
        If(d < 1e-4) {
          hit = true;
          Break();
        }
        t += d;
        If(t > 50) Break();
      }
      Var<vec3> colour = vec3(0.2f, 0.3f, 0.5f);
      If(hit) {
        auto q = eye + t * dir;
        colour = max(dot(normal(q), sun), 0.05f) * vec3(1, 0.9f, 0.8f);
        colour.x *= 0.9;
      }
      image(i, j) = colour;
    }
  };
  qn::Field<vec3, 2> picture{device, {64, 64}};
  march(picture, vec3(0, 0, -3), vec3(0, 0, -1));
  // The ray through the middle meets the sphere at (0, 0, -1), its normal facing the sun.
  CHECK(length(picture.at(32, 32) - vec3(0.9f, 0.9f, 0.8f)) < 1e-3f);
  picture.release();
  qn::Field<vec3, 2> sky{device, {2, 1200}};
  march(sky, vec3(0, 3, -3), vec3(0, 0, -1));
  CHECK(sky.at(0, 1199) == vec3(0.2f, 0.3f, 0.5f));
}

// Ten kernels as a user writes them, in one program: it compiles without a warning and runs.
#include <quern/quern.h>
#include <array>
#include <cstdio>
#include <cmath>
#include <cstdint>
namespace qn = quern;
using namespace qn::lang;

// One structure for host, value, variable and storage.
template<class W = HostW> struct Material { In<W, float> mu, lambda; };
template<class W = HostW> struct Particle {
  In<W, vec3> x, v;
  In<W, mat3> C;
  In<W, float> J;
  In<W, Material<>> mat;
  auto kinetic() const { return 0.5f * dot(v, v); }
  auto pressure() const { return mat.lambda * (J - 1.0f); }
};

int main() {
  qn::Device device = qn::Device::best();

  // 1. saxpy
  qn::Field<float> x{device, {1 << 20}}, y{device, {1 << 20}};
  qn::Kernel saxpy = [&](F32 a) {
    for (auto i : y) y[i] = a * x[i] + y[i];
  };
  saxpy(2.0f);

  // 2. five-point stencil: neighbours outside count as zero
  qn::Kernel stencil = [](qn::Field<float, 2> u, qn::Field<float, 2> v) {
    for (auto [i, j] : v) {
      Var<float> s = 0.0f;
      If (i > 0 && u(i - 1, j) > 0) s += u(i - 1, j);
      If (i < u.dim(0) - 1 && u(i + 1, j) > 0) s += u(i + 1, j);
      If (j == 0 || j == u.dim(1) - 1) { v(i, j) = 0; }
      else If (i == 0) { v(i, j) = 1; }
      else { v(i, j) = 0.25 * (s + u(i, j - 1) + u(i, j + 1)); }
    }
  };

  // 3. Julia set
  qn::Kernel julia = [](qn::Field<float, 2> image, F32 t) {
    for (auto [i, j] : image) {
      Var<vec2> z = Vec2(i / 320.0f - 1, j / 320.0f - 0.5f) * 2;
      auto c = Vec2(-0.8f, cos(t) * 0.2f);
      Var<int> n = 0;
      While (n < 50) {
        z = Vec2(z.x * z.x - z.y * z.y, 2 * z.x * z.y) + c;
        n += 1;
        If (dot(z, z) > 16) { Break(); }
      }
      image(i, j) = 1 - n * 0.02f;
    }
  };

  // 4. one substep of 3D MLS-MPM, with a world-parameter struct
  const int n_grid = 64;
  const float dx = 1.0f / n_grid, inv_dx = n_grid, dt = 8e-5f, E = 400, p_vol = 0.125f * dx * dx * dx, p_mass = p_vol;
  qn::Field<Particle<>> particles{device, {n_grid * n_grid * n_grid / 4}};
  qn::Field<vec3, 3> grid_v{device, {n_grid, n_grid, n_grid}};
  qn::Field<float, 3> grid_m{device, {n_grid, n_grid, n_grid}};
  auto weights = [](Vec3 fx) {                                     // inlines; unrolled by the host's std::array
    auto a = 1.5f - fx, b = fx - 1, c = fx - 0.5f;
    return std::array<Vec3, 3>{0.5f * a * a, 0.75f - b * b, 0.5f * c * c};
  };
  qn::Kernel substep = [&] {
    for (auto I : grid_v) { grid_v[I] = vec3(0, 0, 0); grid_m[I] = 0; }
    for (auto k : particles) {                                     // P2G
      auto p = particles[k];
      auto base = ifloor(p.x * inv_dx - 0.5f);
      auto fx = p.x * inv_dx - cast<float>(base);
      auto w = weights(fx);
      auto stress = -dt * 4 * E * p_vol * (p.J - 1) * inv_dx * inv_dx;
      auto affine = stress * mat3::identity() + p_mass * p.C;
      for (int i = 0; i < 3; i++) for (int j = 0; j < 3; j++) for (int l = 0; l < 3; l++) {   // unrolled
        auto offset = ivec3(i, j, l);
        auto dpos = (vec3(float(i), float(j), float(l)) - fx) * dx;
        auto weight = w[i].x * w[j].y * w[l].z;
        grid_v[base + offset] += weight * (p_mass * p.v + affine * dpos);
        grid_m[base + offset] += weight * p_mass;
      }
    }
    for (auto I : grid_m) {                                        // grid
      If (grid_m[I] > 0) {
        Var<vec3> v = grid_v[I] / grid_m[I];
        v.y -= dt * 9.8f;
        If (I.x < 3 && v.x < 0) v.x = 0;
        If (I.x > n_grid - 3 && v.x > 0) v.x = 0;
        grid_v[I] = v;
      }
    }
    for (auto k : particles) {                                     // G2P
      Var p = particles[k];
      auto base = ifloor(p.x * inv_dx - 0.5f);
      auto fx = p.x * inv_dx - cast<float>(base);
      auto w = weights(fx);
      Var<vec3> new_v = 0; Var<mat3> new_C = 0;
      for (auto [i, j, l] : grid(3, 3, 3)) {                       // a loop in the kernel
        auto weight = select(i == 0, w[0].x, select(i == 1, w[1].x, w[2].x));
        auto dpos = (cast<float>(vec(i, j, l)) - fx) * dx;
        auto g_v = grid_v[base + vec(i, j, l)];
        new_v += weight * g_v;
        new_C += 4 * weight * outer(g_v, dpos) * (inv_dx * inv_dx);
      }
      p.v = new_v; p.C = new_C;
      p.x += dt * p.v;
      p.J *= 1 + dt * trace(p.C);
      particles[k] = p;
      particles[k].x.y = max(p.x.y, dx);
    }
  };

  // 5. SPH density with cell lists
  const float h = 0.02f; const ivec3 cells(50, 50, 50);
  qn::Field<vec3> pos{device, {100000}}; qn::Field<float> rho{device, {100000}};
  qn::Field<int, 3> cell_start{device, {51, 50, 50}}, cell_end{device, {51, 50, 50}}; qn::Field<int> sorted{device, {100000}};
  qn::Func W = [h](F32 r) {
    auto q = r / h;
    If (q > 1) { Return(0.0f); }
    return 1.0f / (h * h * h) * pow(1 - q * q, 3);
  };
  qn::Kernel density = [&](F32 mass) {
    for (auto i : pos) {
      auto pi = pos[i];
      auto c = ifloor(pi / h);
      Var<float> sum = 0;
      for (auto [a, b, d] : grid(3, 3, 3)) {
        auto n = c + vec(a, b, d) - ivec3(1, 1, 1);
        If (all(n >= ivec3(0, 0, 0)) && all(n < cells)) {
          for (auto s : range(cell_start[n], cell_end[n])) {
            auto r = length(pi - pos[sorted[s]]);
            If (r < h) sum += mass * W(r);
          }
        }
      }
      rho[i] = sum;
    }
  };

  // 6. one iteration of conjugate gradients, reductions handed to the host
  const int n = 1024;
  qn::Field<float, 2> r{device, {n, n}}, p{device, {n, n}}, Ap{device, {n, n}}, sol{device, {n, n}};
  auto at = [&](qn::Field<float, 2> f, I32 i, I32 j) {              // inlines
    return select(i >= 0 && i < n && j >= 0 && j < n, f(clamp(i, 0, n - 1), clamp(j, 0, n - 1)), 0.0f);
  };
  qn::Kernel apply = [&] {
    Var<float> pAp = 0;
    for (auto [i, j] : p) {
      Ap(i, j) = 4 * p(i, j) - at(p, i - 1, j) - at(p, i + 1, j) - at(p, i, j - 1) - at(p, i, j + 1);
      pAp += p(i, j) * Ap(i, j);
    }
    return pAp;
  };
  qn::Kernel update = [&](F32 alpha) {
    Var<double> rr = 0.0; Var<float> worst = 0;
    for (auto I : r) {
      sol[I] += alpha * p[I];
      r[I] += -alpha * Ap[I];
      rr += r[I] * r[I];                                           // f32 into an f64 sum
      atomic_max(worst, abs(r[I]));
    }
    return rr;
  };
  float pAp = apply(); double rr = update(float(1.0 / (pAp + 1))); (void)rr;

  // 7. Sobel on a u8 image
  qn::Kernel sobel = [](qn::Field<uint8_t, 2> in, qn::Field<uint8_t, 2> out) {
    for (auto [i, j] : in) {
      If (i == 0 || j == 0 || i == in.dim(0) - 1 || j == in.dim(1) - 1) { out(i, j) = 0; Continue(); }
      auto gx = in(i + 1, j - 1) + 2 * in(i + 1, j) + in(i + 1, j + 1) - in(i - 1, j - 1) - 2 * in(i - 1, j) - in(i - 1, j + 1);
      auto gy = in(i - 1, j + 1) + 2 * in(i, j + 1) + in(i + 1, j + 1) - in(i - 1, j - 1) - 2 * in(i, j - 1) - in(i + 1, j - 1);
      auto m = sqrt(cast<float>(gx * gx + gy * gy));
      out(i, j) = cast<uint8_t>(min(m, 255));
    }
  };

  // 8. ray marching a signed distance field
  auto sdf = [](Vec3 q) { return min(length(q) - 1, q.y + 1); };
  qn::Func normal = [&](Vec3 q) {
    const float e = 1e-3f;
    auto d = sdf(q);
    return normalize(Vec3(sdf(q + vec3(e, 0, 0)) - d, sdf(q + vec3(0, e, 0)) - d, sdf(q + vec3(0, 0, e)) - d));
  };
  qn::Kernel march = [&](qn::Field<vec3, 2> image, Vec3 eye, Vec3 sun) {
    for (auto [i, j] : image) {
      auto dir = normalize(vec((i - image.dim(0) / 2) / 300.0f, (j - image.dim(1) / 2) / 300.0f, 1.0f));
      Var<float> t = 0; Var<bool> hit = false;
      for (auto step : range(128)) {
        (void)step;
        auto d = sdf(eye + t * dir);
        If (d < 1e-4) { hit = true; Break(); }
        t += d;
        If (t > 50) Break();
      }
      Var<vec3> colour = vec3(0.2f, 0.3f, 0.5f);
      If (hit) {
        auto q = eye + t * dir;
        colour = max(dot(normal(q), sun), 0.05f) * vec3(1, 0.9f, 0.8f);
        colour.x *= 0.9;
      }
      image(i, j) = colour;
    }
  };

  // 9. game of life
  qn::Kernel life = [](qn::Field<int, 2> a, qn::Field<int, 2> b) {
    for (auto [i, j] : a) {
      Var<int> alive = 0;
      for (int di = -1; di <= 1; di++) for (int dj = -1; dj <= 1; dj++)
        if (di || dj) alive += a((i + di + a.dim(0)) % a.dim(0), (j + dj + a.dim(1)) % a.dim(1));
      b(i, j) = select(alive == 3 || (alive == 2 && a(i, j) == 1), 1, 0);
    }
  };

  // 10. functions: one that inlines on host and device, one outlined
  auto sqr = [](auto v) { return v * v; };
  qn::Func smoothstep = [](F32 e0, F32 e1, F32 v) {
    auto t = clamp((v - e0) / (e1 - e0), 0, 1);
    return t * t * (3 - 2 * t);
  };
  qn::Kernel use = [=](qn::Field<float> f, qn::Field<int> g) {
    for (auto i : f) { f[i] = smoothstep(0, 1, f[i]) + sqr(f[i]); g[i] = i % 10; }
    for (auto i : serial(range(10))) { check(f[i] >= 0, "negative at {}", i); print("{} {}", i, f[i]); f[i] += random<float>(); }
  };
  std::printf("sqr on host: %g\n", sqr(3.0));
  Particle<> host; host.v = vec3(1, 2, 3); std::printf("kinetic on host: %g\n", host.kinetic());

  // macro-free control flow
  qn::Kernel bare = [](qn::Field<float> f) {
    for (auto i : f) {
      for (auto _ : when(f[i] > 0)) f[i] = 1;
      for (auto _ : otherwise()) { Var<int> k = 0; for (auto _w : repeat_while([&] { return k < 3; })) k += 1; f[i] = k; }
    }
  };
}

// Vectors, matrices and structures, on the host and through kernels, against mathematics done by
// hand.
#include <quern/quern.h>

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
  auto sum() const { return mu + lambda; }
};
template <class W = HostW>
struct Particle {
  In<W, vec3> x, v;
  In<W, mat3> C;
  In<W, double> J;
  In<W, uint8_t> kind;
  In<W, bool> fixed;
  In<W, Material<>> mat;
  auto kinetic() const { return 0.5f * dot(v, v); }
  auto first() const { return x.xy(); }
};
template <class W, class T>
struct Pair {
  In<W, T> a, b;
};

Particle<> some_particle(float s) {
  Particle<> p;
  p.x = vec3(s, s + 1, s + 2);
  p.v = vec3(1, 2, 3) * s;
  p.C = mat3(1, 2, 3, 4, 5, 6, 7, 8, 9) * s;
  p.J = 0.1 + s;
  p.kind = uint8_t(200);
  p.fixed = s > 2;
  p.mat = {s * 10, s * 20};
  return p;
}
void check_same(const Particle<>& a, const Particle<>& b) {
  CHECK(a.x == b.x);
  CHECK(a.v == b.v);
  CHECK(a.C == b.C);
  CHECK(a.J == b.J);
  CHECK(a.kind == b.kind);
  CHECK(a.fixed == b.fixed);
  CHECK(a.mat.mu == b.mat.mu);
  CHECK(a.mat.lambda == b.mat.lambda);
}

}  // namespace

TEST_CASE("host vectors and matrices are constant expressions") {
  constexpr vec3 a(1, 2, 3), b = 2 * a - vec3(1);
  static_assert(b == vec3(1, 3, 5) && b[2] == 5 && b.zyx() == vec3(5, 3, 1) && b.xx().y == 1);
  static_assert(dot(a, b) == 22 && cross(a, b) == vec3(1, -2, 1) && length_squared(a) == 14);
  static_assert(all(a < vec3(2, 3, 4)) && !any(a > b + 1) && sizeof(vec3) == 12);
  constexpr mat2 m(1, 2, 3, 4);
  static_assert(m * m == mat2(7, 10, 15, 22) && m * vec2(1, 2) == vec2(5, 11) &&
                vec2(1, 2) * m == vec2(7, 10) && transpose(m) == mat2(1, 3, 2, 4));
  static_assert(determinant(m) == -2 && trace(m) == 5 && m.row(1) == vec2(3, 4) &&
                m.col(1) == vec2(2, 4) && outer(vec2(1, 2), vec2(3, 4)) == mat2(3, 4, 6, 8));
  static_assert(inverse(m) == mat2(-2, 1, 1.5f, -0.5f) && mat3::identity() * a == a);
  static_assert(Mat<int, 2, 3>(vec(1, 2, 3), vec(4, 5, 6)) * ivec3(1, 1, 1) == ivec2(6, 15));
  static_assert(select(vec3(1, 2, 3) < vec3(2, 2, 2), a, b) == vec3(1, 3, 5));
  static_assert(max(a, 2.0f) == vec3(2, 2, 3) && clamp(a, 1.5f, 2.5f) == vec3(1.5f, 2, 2.5f));
  static_assert(cast<int>(vec2(1.5f, -1.5f)) == ivec2(1, -1) && mix(a, b, 0.5f) == (a + b) / 2);
  CHECK(length(vec2(3, 4)) == 5);
  CHECK(ifloor(vec2(-0.5f, 1.5f)) == ivec2(-1, 1));
  CHECK(some_particle(1).kinetic() == 7);
}

TEST_CASE("components, swizzles and rows of values, variables and elements") {
  qn::Device device;
  qn::Field<vec4> in{device, {2}}, out{device, {8}};
  in.set(0, vec4(1, 2, 3, 4));
  in.set(1, vec4(5, 6, 7, 8));
  qn::Kernel k = [&] {
    Vec4 a = in[0];
    out[0] = a.wzyx();
    Var<vec4> v = in[1];
    v.x = a[3];
    v[1] += 1;
    out[1] = v;
    out[2] = vec(v.xy().y, a.zw().x, v.w, 0);
    out[3] = in[0].xxyy();
    out[4][2] = 7;
    out[4].w = 8;
    Var<mat2> m = 0;
    m(0, 1) = 3;
    m(1, 0) = m(0, 1) * 2;
    out[5] = vec(m.row(0).x, m.row(0).y, m.col(0).y, m(1, 1));
    auto [p, q, r, s] = a;
    out[6] = Vec4(s, r, q, p);
    out[7] = select(a > 2.5f, a, -a);
  };
  k();
  CHECK(out.at(0) == vec4(4, 3, 2, 1));
  CHECK(out.at(1) == vec4(4, 7, 7, 8));
  CHECK(out.at(2) == vec4(7, 3, 8, 0));
  CHECK(out.at(3) == vec4(1, 1, 2, 2));
  CHECK(out.at(4) == vec4(0, 0, 7, 8));
  CHECK(out.at(5) == vec4(0, 3, 6, 0));
  CHECK(out.at(6) == vec4(4, 3, 2, 1));
  CHECK(out.at(7) == vec4(-1, -2, 3, 4));
}

TEST_CASE("a component chosen by the device") {
  qn::Device device;
  qn::Field<float> out{device,
                       {
                           4,
                       }};
  qn::Field<float> rows{device, {6}};
  qn::Kernel k = [&](Vec4 a, Val<Mat<float, 2, 3>> m) {
    for (auto i : out) {
      Var<vec4> v = 0;
      v[3 - i] = a[i];
      v[3 - i] += 1;
      out[i] = v.x + 10 * v.y + 100 * v.z + 1000 * v.w + v[3 - i];
    }
    for (auto i : rows) {
      Var<Mat<float, 2, 3>> copy = m;
      copy(i / 3, i % 3) *= 2;
      rows[i] = copy(i / 3, i % 3) + m(i / 3, 0);
    }
  };
  Mat<float, 2, 3> m(1, 2, 3, 4, 5, 6);
  k(vec4(1, 2, 3, 4), m);
  CHECK(qn::to_vector(out) == std::vector<float>{2002, 303, 44, 10});
  CHECK(qn::to_vector(rows) == std::vector<float>{3, 5, 7, 12, 14, 16});

  qn::Kernel bad([&](Vec4 a, I32 i) { out[0] = a[i]; }, {.checked = true});
  bad(vec4(1, 2, 3, 4), 3);
  CHECK(out.at(0) == 4);
  bad(vec4(1, 2, 3, 4), 4);
  CHECK_THROWS_WITH(out.at(0), contains("index 4 of a component"));
}

TEST_CASE("matrix algebra through kernels") {
  qn::Device device;
  const dmat4 m(4, 1, 2, 0, 1, 5, 0, 3, 2, 0, 6, 1, 0, 3, 1, 7);
  qn::Field<dmat4> out{device, {6}};
  qn::Field<double> numbers{device, {4}};
  qn::Field<dvec4> vectors{device, {3}};
  qn::Kernel k = [&](DMat4 a, DVec4 v) {
    out[0] = inverse(a);
    out[1] = a * out[0];
    out[2] = a * a - 2 * a;
    out[3] = transpose(a * outer(v, v));
    out[4] = -a / 2;
    numbers[0] = determinant(a);
    numbers[1] = trace(a);
    numbers[2] = length(v);
    numbers[3] = dot(a * v, v);
    vectors[0] = a * v;
    vectors[1] = v * a;
    vectors[2] = normalize(v);
  };
  dvec4 v(1, 2, 3, 4);
  k(m, v);
  double worst = 0;
  dmat4 inverted = out.at(0), one = out.at(1);
  for (int r = 0; r < 4; r++)
    for (int c = 0; c < 4; c++) {
      double left = 0, right = 0;  // of the products with the inverse on either side
      for (int n = 0; n < 4; n++) {
        left += inverted(r, n) * m(n, c);
        right += m(r, n) * inverted(n, c);
      }
      for (double found : {left, right, one(r, c)})
        worst = std::fmax(worst, std::fabs(found - (r == c)));
    }
  CHECK(worst < 1e-14);
  CHECK(out.at(2) == m * m - 2.0 * m);
  CHECK(out.at(3)(1, 2) == 3.0 * 0 + (m * v)[2] * v[1]);
  CHECK(out.at(4)(2, 2) == -3);
  // Along the first row: 4 · 151 - 1 · 47 + 2 · (-55) - 0.
  CHECK(numbers.at(0) == 447);
  CHECK(determinant(m) == 447);
  CHECK(numbers.at(1) == 22);
  CHECK(numbers.at(2) == std::sqrt(30.0));
  CHECK(vectors.at(0) == dvec4(12, 23, 24, 37));
  CHECK(vectors.at(1) == dvec4(12, 23, 24, 37));  // m is symmetric
  CHECK(numbers.at(3) == 12 + 46 + 72 + 148);
}

TEST_CASE("structures: element, value, variable, parameter, result") {
  qn::Device device;
  qn::Field<Particle<>> particles{device, {4}};
  std::vector<Particle<>> host;
  for (int k = 0; k < 4; k++) host.push_back(some_particle(float(k)));
  particles.copy_from(host);
  for (int k = 0; k < 4; k++) check_same(particles.at(k), host[size_t(k)]);
  check_same(qn::to_vector(particles)[3], host[3]);

  qn::Field<float> out{device, {4}};
  qn::Kernel move = [&](Val<Particle<>> given, F32 dt) {
    for (auto k : particles) {
      Var p = particles[k];
      p.x += dt * p.v;
      p.mat.mu = p.mat.sum();
      p.fixed = !p.fixed;
      out[k] = p.kinetic() + p.first().y;
      particles[k] = p;
      particles[k].v.y = given.v.y;
      particles[k].mat.lambda += given.mat.mu;
    }
    Var last = given;
    last.C = 2 * last.C;
    last.x.z = 9;
    return last;
  };
  Particle<> given = some_particle(7), back = move(given, 0.5f);
  Particle<> want = given;
  want.C = 2.0f * want.C;
  want.x.z = 9;
  check_same(back, want);
  for (int k = 0; k < 4; k++) {
    Particle<> p = host[size_t(k)];
    p.x += 0.5f * p.v;
    p.mat.mu = p.mat.sum();
    p.fixed = !p.fixed;
    CHECK(out.at(k) == p.kinetic() + p.first().y);
    p.v.y = given.v.y;
    p.mat.lambda += given.mat.mu;
    check_same(particles.at(k), p);
  }
  particles.fill(given);
  check_same(particles.at(2), given);
  particles.set(2, host[1]);
  check_same(particles.at(2), host[1]);
  check_same(particles.at(3), given);
}

TEST_CASE("structures and vectors through functions, several results") {
  qn::Device device;
  qn::Func heavier = [](Val<Particle<>> p, F32 by) {
    Var q = p;
    q.mat.mu *= by;
    If(by < 0) { Return(p); }
    return q;
  };
  qn::Func split = [](Vec3 v) { return result(length(v), normalize(v), v.x > 0); };
  qn::Func solve = [](Mat2 m, Vec2 b) { return inverse(m) * b; };
  qn::Field<vec3> out{device, {3}};
  qn::Kernel k = [&](Val<Particle<>> p, Mat2 m) {
    out[0] = vec(heavier(p, 3).mat.mu, heavier(p, -1).mat.mu, p.mat.lambda);
    auto [n, unit, right] = split(p.v);
    out[1] = select(right, n * unit, Vec3(0));
    auto x = solve(m, vec2(5, 11));
    out[2] = Vec3(x.x, x.y, n);
    return result(p.v, n, heavier(p, 2));
  };
  Particle<> p = some_particle(1);
  auto [v, n, q] = k(p, mat2(1, 2, 3, 4));
  CHECK(v == p.v);
  CHECK(n == std::sqrt(14.0f));
  CHECK(q.mat.mu == 20);
  CHECK(q.J == p.J);
  CHECK(out.at(0) == vec3(30, 10, 20));
  CHECK(length(out.at(1) - p.v) < 1e-6f);
  CHECK(length(out.at(2) - vec3(1, 2, std::sqrt(14.0f))) < 1e-5f);
}

TEST_CASE("a structure with a further type parameter") {
  qn::Device device;
  qn::Field<Pair<HostW, double>> pairs{device, {2}};
  qn::Kernel k = [&] {
    for (auto i : pairs) {
      pairs[i].a = i * 0.5;
      pairs[i].b = pairs[i].a + 1.0;
    }
  };
  k();
  CHECK(pairs.at(1).a == 0.5);
  CHECK(pairs.at(0).b == 1.0);
}

TEST_CASE("a vector reduction and vector atomics") {
  qn::Device device;
  qn::Field<vec2> total{device, {1}};
  qn::Kernel k = [&] {
    Var<vec2> sum = 0;
    for (auto i : range(10)) {
      sum += vec(i, 2 * i);
      total[0] += cast<float>(vec(i, i * i));
    }
    return sum;
  };
  vec2 sum = k();
  CHECK(sum == vec2(45, 90));
  CHECK(total.at(0) == vec2(45, 285));
}

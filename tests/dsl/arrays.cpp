// Local arrays, arrays in structures, and structures of other people's, against plain C++.
#include <quern/quern.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "quern/host.h"
#include "tests/catch.h"
#include "tests/dsl/record.h"

struct Reflectance {
  double albedo;
  unsigned char kind;
};
struct Body {
  float mass;
  float position[3];
  int grid[2][3];
  Reflectance surface;
  bool fixed;
};
/// A name that means something else inside quern.
struct Scalar {
  int n;
};
QUERN_STRUCT(Reflectance, albedo, kind);
QUERN_STRUCT(Body, mass, position, grid, surface, fixed);
QUERN_STRUCT(::Scalar, n);

namespace qn = quern;
using namespace qn::lang;

namespace {
template <class W = HostW>
struct History {
  In<W, float> last;
  In<W, Array<float, 3>> values;
  In<W, vec2> at;
};
static_assert(sizeof(History<>) == 24 && Array<int, 3>{1, 2, 3}[1] == 2);
static_assert(Array<int, 2>{1, 2} == Array<int, 2>{1, 2} && Array<Array<int, 2>, 3>::size() == 3);

Body some_body(int k) {
  Body b = {};
  b.mass = float(k) + 0.5f;
  for (int a = 0; a < 3; a++) b.position[a] = float(10 * k + a);
  for (int i = 0; i < 6; i++) b.grid[i / 3][i % 3] = 100 * k + i;
  b.surface = {0.1 * k, uint8_t(200 + k)};
  b.fixed = k % 2 == 1;
  return b;
}
void check_same(const Body& a, const Body& b) {
  CHECK(a.mass == b.mass);
  for (int k = 0; k < 3; k++) CHECK(a.position[k] == b.position[k]);
  for (int k = 0; k < 6; k++) CHECK(a.grid[k / 3][k % 3] == b.grid[k / 3][k % 3]);
  CHECK(a.surface.albedo == b.surface.albedo);
  CHECK(a.surface.kind == b.surface.kind);
  CHECK(a.fixed == b.fixed);
}
}  // namespace

TEST_CASE("a local array sorts by insertion, like plain C++") {
  qn::Device device;
  qn::Field<int, 2> x{device, {50, 8}};
  std::vector<int> host(400);
  for (int k = 0; k < 400; k++) host[size_t(k)] = k * 7919 % 1009 - 500;
  x.copy_from(host);
  qn::Kernel sort = [&] {
    for (auto r : range(50)) {
      Var<Array<int, 8>> a;
      for (auto k : range(8)) a[k] = x(r, k);
      for (auto k : range(1, 8)) {
        Var<int> v = a[k], at = k;
        While(at > 0 && a[at - 1] > v) {
          a[at] = a[at - 1];
          at -= 1;
        }
        a[at] = v;
      }
      for (auto k : range(8)) x(r, k) = a[k];
    }
  };
  sort();
  std::vector<int> want = host;
  for (int r = 0; r < 50; r++) std::sort(want.begin() + r * 8, want.begin() + r * 8 + 8);
  CHECK(qn::to_vector(x) == want);
}

TEST_CASE("arrays begin as zero, also in every round, and are copied as a whole") {
  qn::Device device;
  qn::Field<int> out{device, {10}}, second{device, {10}};
  qn::Kernel k = [&] {
    for (auto i : out) {
      for (auto round : range(3)) {
        Var<Array<int, 4>> a;
        a[i % 4] += 1;  // a fresh one: never 2
        a[i % 4] *= 5;
        a[(i + 1) % 4] = 7;
        Var b = a;
        b[0] = 100 + round;
        Var<Array<int, 4>> c;
        c = a;
        c[i % 4] <<= 1;
        c[i % 4] -= 3;
        out[i] = a[0] + 10 * a[1] + 100 * a[2] + 1000 * a[3];
        second[i] = b[0] + c[i % 4];
      }
    }
  };
  k();
  for (int i = 0; i < 10; i++) {
    int a[4] = {}, power[] = {1, 10, 100, 1000};
    a[i % 4] = 5;
    a[(i + 1) % 4] = 7;
    CHECK(out.at(i) == std::inner_product(a, a + 4, power, 0));
    CHECK(second.at(i) == 102 + 7);
  }
}

TEST_CASE("arrays of vectors, arrays and structures") {
  qn::Device device;
  qn::Field<vec3> vectors{device, {4}};
  qn::Field<int, 2> table{device, {3, 5}};
  qn::Field<History<>> histories{device, {3}};
  qn::Kernel k = [&](I32 one) {
    for (auto i : vectors) {
      Var<Array<vec3, 4>> v;
      v[i] = vec3(1, 2, 3);
      v[i].y = 10;
      v[i] *= 2;
      v[3].z += 1;
      vectors[i] = v[i] + v[3 - i].zyx();
    }
    for (auto i : range(3)) {
      Var<Array<Array<int, 5>, 3>> t;
      for (auto r : range(3))
        for (auto c : range(5)) t[r][c] = 10 * r + c;
      t[one][i] += 1000;
      t[i][4] = -1;
      for (auto c : range(5)) table(i, c) = t[i][c];
    }
    for (auto i : histories) {
      Var<Array<History<>, 2>> h;
      h[one].values[i] = 5;
      h[one].last = 2;
      h[0].values[2 - i] = 3;
      h[0].at.y = 4;
      Var copy = h[one];
      copy.values[one] += 0.5f;
      copy.at = h[0].at + h[one].at;
      histories[i] = copy;
      histories[i].values[0] = h[0].values[0] + histories[i].values[i];
    }
  };
  k(1);
  CHECK(vectors.at(0) == vec3(2, 20, 6) + vec3(1, 0, 0));
  CHECK(vectors.at(3) == vec3(2, 20, 7));
  for (int i = 0; i < 3; i++)
    for (int c = 0; c < 5; c++)
      CHECK(table.at(i, c) == (c == 4 ? -1 : 10 * i + c + (i == 1 && c == i ? 1000 : 0)));
  for (int i = 0; i < 3; i++) {
    float values[3] = {}, first[3] = {};
    values[i] = 5;
    first[2 - i] = 3;
    values[1] += 0.5f;
    values[0] = first[0] + values[i];
    History<> h = histories.at(i);
    CHECK(h.last == 2);
    CHECK(h.at == vec2(0, 4));
    for (int n = 0; n < 3; n++) CHECK(h.values[size_t(n)] == values[n]);
  }
}

TEST_CASE("an array as parameter and result, of kernels and functions, read by the device") {
  qn::Device device;
  qn::Func reversed = [](Val<Array<float, 4>> a) {
    Var<Array<float, 4>> out;
    for (auto k : range(4)) out[k] = a[3 - k];
    return out;
  };
  qn::Field<float> picked{device, {4}};
  qn::Kernel k = [&](Val<Array<float, 4>> a, I32 n) {
    auto b = reversed(a);
    Var<Array<float, 4>> sums;  // of kernel level: serial code writes, loops read
    for (auto i : serial(range(1, 4))) sums[i] = sums[i - 1] + a[i];
    for (auto i : picked) picked[i] = b[i] + 100 * sums[i] + a[n];
    return result(b, sums);
  };
  auto [b, sums] = k(Array<float, 4>{1, 2, 3, 4}, 2);
  CHECK(b == Array<float, 4>{4, 3, 2, 1});
  CHECK(sums == Array<float, 4>{0, 2, 5, 9});
  CHECK(qn::to_vector(picked) == std::vector<float>{7, 206, 505, 904});
}

TEST_CASE("an index of an array out of range is an error with its line, where checked") {
  qn::Device device;
  qn::Field<int> out{device, {1}};
  int line = 0;
  auto expect = [&](auto& kernel, int index, const char* text) {
    kernel(index);
    try {
      device.synchronize();
      FAIL("no error");
    } catch (const qn::Error& e) {
      INFO(e.what());
      CHECK(e.loc().line == line);
      CHECK(e.message().find(text) != std::string::npos);
    }
  };
  qn::Kernel flat(
      [&](I32 k) {
        for (auto i : out) {
          Var<Array<int, 4>> a;
          line = __LINE__ + 1;
          a[k] = 1;
          out[i] = a[0];
        }
      },
      {.checked = true});
  expect(flat, 4, "index 4 is out of range of an array of 4");
  expect(flat, -1, "index -1 is out of range of an array of 4");
  flat(3);
  CHECK(out.at(0) == 0);
  qn::Kernel nested(
      [&](I32 k) {
        for (auto i : out) {
          Var<Array<Array<int, 3>, 2>> a;
          line = __LINE__ + 1;
          out[i] = a[0][k] + 1;
        }
      },
      {.checked = true});
  expect(nested, 3, "index 3 of an array; there are 3");
  nested(2);
  CHECK(out.at(0) == 1);
}

namespace {
/// Recording `f` fails with `text`.
template <class F>
void fails(const char* text, const F& f) {
  CHECK_THROWS_WITH(qn::test::record(f), contains(text));
}
}  // namespace

TEST_CASE("errors of arrays and reports found while recording") {
  fails("an array declared outside a parallel loop", [](qn::Field<int> x) {
    Var<Array<int, 4>> counts;
    for (auto i : x) counts[x[i]] += 1;
  });
  fails("so iterations race; declare it inside, or use a field", [](qn::Field<int> x) {
    Var<Array<int, 4>> a;
    for (auto i : x) a[0] = i;
  });
  fails("an index of an array is out of range", [] {
    Var<Array<int, 4>> a;
    a[4] = 1;
  });
  fails("at most 16 values, the numbers of vectors, matrices and structures counted; here are 17",
        [](Mat4 m, F32 s) { print("{} {}", m, s); });
  fails("the text has 2 places {} for 1 values", [](Vec3 v) { print("{} {}", v); });
  fails("the text has 1 places {} for 2 values", [](Vec3 v) { check(v.x > 0, "{}", v, v.x); });
}

TEST_CASE("print and check write vectors, matrices and arrays in parentheses") {
  auto text_of = [](const auto& f) {
    auto kernel = qn::test::record(f);
    REQUIRE(kernel->sites.size() == 1);
    return kernel->sites[0].text;
  };
  CHECK(text_of([](Vec3 v, F32 s) { print("v {} s {}, {{}}", v, s); }) ==
        "v ({}, {}, {}) s {}, {{}}");
  CHECK(text_of([](Mat2 m) { print("{}", m); }) == "(({}, {}), ({}, {}))");
  CHECK(text_of([](Val<Array<vec2, 3>> a, B1 c) { check(c, "a {}", a); }) ==
        "a (({}, {}), ({}, {}), ({}, {}))");
  CHECK(text_of([](Val<History<>> h) { print("h {}", h); }) == "h ({}, ({}, {}, {}), ({}, {}))");
  CHECK(text_of([](Val<Reflectance> r) { print("{}", r); }) == "({}, {})");
  CHECK(text_of([](Val<::Scalar> s) { print("{}", s); }) == "({})");
  qn::Device device;
  qn::Kernel k = [](Vec3 v, Val<History<>> h) {
    check(v.x < 0, "at {}: {} of {}", v, h.at, vec2(0.5f, 2));
  };
  History<> h = {};
  h.at = vec2(-1, 7);
  k(vec3(1, 2.5f, -3), h);
  CHECK_THROWS_WITH(device.synchronize(), contains("at (1, 2.5, -3): (-1, 7) of (0.5, 2)"));
}

TEST_CASE("structures of other people's: element, value, variable, parameter, result") {
  qn::Device device;
  qn::Field<Body> bodies{device, {4}};
  qn::Field<::Scalar> numbers{device, {1}};
  std::vector<Body> host;
  for (int k = 0; k < 4; k++) host.push_back(some_body(k));
  bodies.copy_from(host);
  for (int k = 0; k < 4; k++) check_same(bodies.at(k), host[size_t(k)]);
  qn::Kernel k = [&](Val<Body> given, I32 axis) {
    for (auto i : bodies) {
      Var b = bodies[i];
      b.position[axis] += given.position[2 - axis];
      b.grid[1][axis] = given.grid[axis][1] + i;
      b.surface.albedo *= 2;
      b.fixed = !b.fixed;
      bodies[i] = b;
      bodies[i].mass = b.mass * given.mass;
      bodies[i].grid[0][2] = 9;
    }
    numbers[0].n = 3;
    Var out = given;
    out.surface.kind = bodies[0].surface.kind;
    return out;
  };
  Body given = some_body(7), back = k(given, 1), want = given;
  want.surface.kind = 200;
  check_same(back, want);
  CHECK(numbers.at(0).n == 3);
  for (int i = 0; i < 4; i++) {
    Body b = host[size_t(i)];
    b.position[1] += given.position[1];
    b.grid[1][1] = given.grid[1][1] + i;
    b.surface.albedo *= 2;
    b.fixed = !b.fixed;
    b.mass *= given.mass;
    b.grid[0][2] = 9;
    check_same(bodies.at(i), b);
  }
}

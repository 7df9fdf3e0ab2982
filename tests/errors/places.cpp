// Where a recording's errors point: at the user's line, never into a header of Quern's.
#include <quern/algorithms.h>
#include <quern/complex.h>
#include <quern/decompose.h>
#include <quern/quaternion.h>
#include <quern/quern.h>

#include <vector>

#include "tests/catch.h"
#include "tests/dsl/record.h"

using namespace quern::lang;
using quern::Error;
using quern::Field;
using quern::Func;
using quern::Kernel;

namespace {

/// Recording `f` fails on `line` of this file.
template <class F>
void fails_at(int line, const F& f) {
  try {
    Kernel k = f;
  } catch (const Error& e) {
    INFO(e.what());
    std::string file = e.loc().file, text = e.message();
    CHECK(file.find("errors/places.cpp") != std::string::npos);
    CHECK(e.loc().line == line);
    CHECK(text.find("include/quern") == std::string::npos);
    return;
  }
  FAIL("no error at " << line);
}

/// Every instruction of what `f` records lies on a line of this file.
template <class F>
void lies_here(const F& f) {
  auto kernel = quern::test::record(f);
  int found = 0;
  quern::ir::walk(kernel->body, [&](quern::ir::Inst* inst) {
    found++;
    INFO(int(inst->op) << " at " << inst->loc.file << ":" << inst->loc.line);
    CHECK(std::string(inst->loc.file).find("errors/places.cpp") != std::string::npos);
  });
  CHECK(found > 0);
}

}  // namespace

TEST_CASE("++ and -- have the line they are written on") {
  fails_at(__LINE__ + 5, [](Field<int> n) {
    Var<int> s = 0;
    for (auto i : n) {
      n[i] = s;
      n[i] = 1;
      ++s;
    }
  });
  fails_at(__LINE__ + 4, [](Field<int> n) {
    Var<int> s = 0;
    for (auto i : n) {
      n[i] = 1;
      n[i] = s--;
    }
  });
  fails_at(__LINE__ + 5, [](Field<int> n) {
    Var<int> s = 0;
    for (auto i : n) {
      s -= 1;
      n[i] = 1;
      s--;
      n[i] = s;
    }
  });
}

TEST_CASE("an update of a component that the device chooses has its line") {
  fails_at(__LINE__ + 6, [](Field<float> x) {
    for (auto i : x) {
      Var<vec2> s;
      std::vector<F32> kept;
      If(x[i] > 0) { kept.push_back(x[i] * 2); }
      x[i] = 1;
      s[i % 2] += kept[0];
    }
  });
}

TEST_CASE("a leaked value that is only returned, or negated, is named where it was recorded") {
  fails_at(__LINE__ + 4, [](Field<float> x) {
    std::vector<F32> kept;
    for (auto i : x) {
      x[i] = 1;
      kept.push_back(x[i] * 2);
    }
    return kept[0];
  });
  fails_at(__LINE__ + 2, [](Field<float> x) {
    std::vector<B1> kept;
    If(x[0] > 0) { kept.push_back(x[1] > 2); }
    x[0] = 3;
    x[1] = select(!kept[0], 1, 2);
  });
}

TEST_CASE("a kernel's parameters lie where its lambda begins, not where it ends") {
  std::string text;
  int begin = __LINE__ + 3;
  try {
    Kernel k = [](F32 outer, Field<float> x) {
      auto first = outer + 1;
      Func f = [&](F32 a) { return a + outer; };
      x[0] = f(first);
    };
  } catch (const Error& e) {
    text = e.message();
  }
  INFO(text);
  CHECK((text.find("errors/places.cpp:" + std::to_string(begin) + ")") != std::string::npos ||
         text.find("errors/places.cpp:" + std::to_string(begin - 1) + ")") != std::string::npos));
}

TEST_CASE("what library functions record lies on the line of their call") {
  lies_here([](Field<float> x, Field<int64_t> n, Field<vec3> v) {
    for (auto i : x) {
      auto a = random<bool>();
      auto b = random<double>();
      auto c = random<int64_t>();
      n[i] = select(a, c, cast<int64_t>(b));
      Var<vec3> p = v[i];
      p[i % 3] += x[i];
      p[i % 3] *= 2;
      v[i] = p;
    }
  });
  lies_here([](Field<mat3> m, Field<vec3> v, Field<float> x) {
    for (auto i : m) {
      auto [rotation, stretch] = polar(m[i]);
      auto [u, s, w] = svd(m[i]);
      auto [values, vectors] = sym_eig(m[i]);
      m[i] = inverse(rotation) * stretch * transpose(u) * w * vectors;
      v[i] = normalize(cross(v[i], values)) + reflect(v[i], values) * dot(v[i], values);
      x[i] = determinant(m[i]) + length(v[i]) + ldexp(x[i], i) + nextafter(x[i], 1.0f);
      auto [fraction, exponent] = frexp(x[i]);
      x[i] = select(isfinite(fraction) && !signbit(fraction), fraction, cast<float>(exponent));
    }
  });
  lies_here([](Field<quern::Quaternion<>> q, Field<vec3> v, Field<quern::Complex<>> z) {
    for (auto i : q) {
      q[i] = exp(log(q[i])) * inverse(q[i]) * quaternion(v[i], 0.5f);
      v[i] = rotate(q[i], v[i]);
      z[i] = exp(z[i]) * sqrt(z[i]) / conj(z[i]);
    }
  });
}

// The math library against glibc's vector one at the same vector width, arrays that fit a
// second-level cache of 2 MiB. A ratio of 1 is as fast; items are results.
#include <cmath>
#include <cstring>
#include <vector>

#include "bench/harness.h"
#include "bench/libmvec.h"

namespace bench {
namespace qn = quern;
using namespace qn::lang;

namespace {
constexpr int n = 1 << 16;

/// Arguments spread evenly over [lo, hi], in an order that no table lookup profits from.
template <class T>
std::vector<T> arguments(double lo, double hi) {
  std::vector<T> x(n);
  for (size_t i = 0; i < n; i++) x[i] = T(lo + (hi - lo) * double((i * 40503) % n) / double(n));
  return x;
}

struct Domain {
  double lo, hi;
};

template <class T, class F>
void measure(Report& report, const char* name, Domain a, Domain b, F function) {
  const libmvec::Function* reference = nullptr;
  for (const libmvec::Function& f : libmvec::functions())
    if (std::strcmp(f.name, name) == 0) reference = &f;
  if (!reference) throw qn::InternalError(std::string("no reference for ") + name);
  qn::Device& device = report.device();
  qn::Field<T> x{device, {n}}, y{device, {n}}, out{device, {n}};
  std::vector<T> hx = arguments<T>(a.lo, a.hi), hy = arguments<T>(b.lo, b.hi), ho(n);
  x.copy_from(hx);
  y.copy_from(hy);
  qn::Kernel apply = [&] {
    for (auto i : out) out[i] = function(x[i], y[i]);
  };
  auto theirs = [&] {
    if constexpr (sizeof(T) == 4)
      reference->f32(hx.data(), hy.data(), ho.data(), n);
    else
      reference->f64(hx.data(), hy.data(), ho.data(), n);
  };
  report.run({std::string(name) + (sizeof(T) == 4 ? "_f32" : "_f64"), std::to_string(n), 0, 0,
              [&] {
                apply();
                report.complete();
              },
              theirs, 0, double(n)});
}

template <class F>
void both(Report& report, const char* name, Domain a, Domain b, F function) {
  measure<float>(report, name, a, b, function);
  measure<double>(report, name, a, b, function);
}
}  // namespace

#define UNARY(name, lo, hi) \
  both(report, #name, {lo, hi}, {0, 0}, [](auto x, auto) { return qn::name(x); });
#define BINARY(name, alo, ahi, blo, bhi) \
  both(report, #name, {alo, ahi}, {blo, bhi}, [](auto x, auto y) { return qn::name(x, y); });

void math(Report& report) {
  UNARY(sin, -100, 100)
  UNARY(cos, -100, 100)
  UNARY(tan, -100, 100)
  UNARY(asin, -1, 1)
  UNARY(acos, -1, 1)
  UNARY(atan, -10, 10)
  UNARY(sinh, -20, 20)
  UNARY(cosh, -20, 20)
  UNARY(tanh, -5, 5)
  UNARY(asinh, -100, 100)
  UNARY(acosh, 1, 100)
  UNARY(atanh, -0.999, 0.999)
  UNARY(exp, -80, 80)
  UNARY(exp2, -100, 100)
  UNARY(expm1, -5, 5)
  UNARY(log, 1e-3, 1e3)
  UNARY(log2, 1e-3, 1e3)
  UNARY(log10, 1e-3, 1e3)
  UNARY(log1p, -0.9, 10)
  UNARY(cbrt, -1e3, 1e3)
  UNARY(erf, -4, 4)
  UNARY(erfc, -4, 8)
  UNARY(tgamma, 0.5, 30)
  UNARY(lgamma, 0.5, 30)
  BINARY(pow, 0.1, 10, -10, 10)
  BINARY(atan2, -10, 10, -10, 10)
  BINARY(hypot, -1e3, 1e3, -1e3, 1e3)
  BINARY(fmod, -1e3, 1e3, 0.5, 10)
  BINARY(remainder, -1e3, 1e3, 0.5, 10)
}

}  // namespace bench

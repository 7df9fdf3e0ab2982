#include "bench/libmvec.h"

#include <immintrin.h>

#include <cmath>

namespace {
#if defined(__AVX512F__)
using F32 = __m512;
using F64 = __m512d;
#define VECTOR_F32(name, args) _ZGVeN16##args##_##name##f
#define VECTOR_F64(name, args) _ZGVeN8##args##_##name
F32 load(const float* p) { return _mm512_loadu_ps(p); }
F64 load(const double* p) { return _mm512_loadu_pd(p); }
void store(float* p, F32 v) { _mm512_storeu_ps(p, v); }
void store(double* p, F64 v) { _mm512_storeu_pd(p, v); }
#else
using F32 = __m256;
using F64 = __m256d;
#define VECTOR_F32(name, args) _ZGVdN8##args##_##name##f
#define VECTOR_F64(name, args) _ZGVdN4##args##_##name
F32 load(const float* p) { return _mm256_loadu_ps(p); }
F64 load(const double* p) { return _mm256_loadu_pd(p); }
void store(float* p, F32 v) { _mm256_storeu_ps(p, v); }
void store(double* p, F64 v) { _mm256_storeu_pd(p, v); }
#endif
constexpr size_t lanes_f32 = sizeof(F32) / 4, lanes_f64 = sizeof(F64) / 8;

// clang-format off: it moves these lines each time it sees them
#define UNARY(X)                                                                      \
  X(sin) X(cos) X(tan) X(asin) X(acos) X(atan) X(sinh) X(cosh) X(tanh) X(asinh)       \
  X(acosh) X(atanh) X(exp) X(exp2) X(expm1) X(log) X(log2) X(log10) X(log1p) X(cbrt)  \
  X(erf) X(erfc)
// clang-format on
#define BINARY(X) X(pow) X(atan2) X(hypot)
#define SCALAR_UNARY(X) X(tgamma) X(lgamma)
#define SCALAR_BINARY(X) X(fmod) X(remainder)

extern "C" {
#define DECLARE(name)           \
  F32 VECTOR_F32(name, v)(F32); \
  F64 VECTOR_F64(name, v)(F64);
UNARY(DECLARE)
#undef DECLARE
#define DECLARE(name)                 \
  F32 VECTOR_F32(name, vv)(F32, F32); \
  F64 VECTOR_F64(name, vv)(F64, F64);
BINARY(DECLARE)
#undef DECLARE
}

#define DEFINE(name)                                                      \
  void name##_f32(const float* a, const float*, float* y, size_t n) {     \
    _Pragma("omp parallel for") for (size_t i = 0; i < n; i += lanes_f32) \
        store(y + i, VECTOR_F32(name, v)(load(a + i)));                   \
  }                                                                       \
  void name##_f64(const double* a, const double*, double* y, size_t n) {  \
    _Pragma("omp parallel for") for (size_t i = 0; i < n; i += lanes_f64) \
        store(y + i, VECTOR_F64(name, v)(load(a + i)));                   \
  }
UNARY(DEFINE)
#undef DEFINE
#define DEFINE(name)                                                       \
  void name##_f32(const float* a, const float* b, float* y, size_t n) {    \
    _Pragma("omp parallel for") for (size_t i = 0; i < n; i += lanes_f32)  \
        store(y + i, VECTOR_F32(name, vv)(load(a + i), load(b + i)));      \
  }                                                                        \
  void name##_f64(const double* a, const double* b, double* y, size_t n) { \
    _Pragma("omp parallel for") for (size_t i = 0; i < n; i += lanes_f64)  \
        store(y + i, VECTOR_F64(name, vv)(load(a + i), load(b + i)));      \
  }
BINARY(DEFINE)
#undef DEFINE
#define DEFINE(name)                                                                   \
  template <class T>                                                                   \
  void name##_of(const T* a, const T*, T* y, size_t n) {                               \
    _Pragma("omp parallel for") for (size_t i = 0; i < n; i++) y[i] = std::name(a[i]); \
  }
SCALAR_UNARY(DEFINE)
#undef DEFINE
#define DEFINE(name)                                                                         \
  template <class T>                                                                         \
  void name##_of(const T* a, const T* b, T* y, size_t n) {                                   \
    _Pragma("omp parallel for") for (size_t i = 0; i < n; i++) y[i] = std::name(a[i], b[i]); \
  }
SCALAR_BINARY(DEFINE)
#undef DEFINE

#define VECTOR_ROW(name) {#name, name##_f32, name##_f64},
#define SCALAR_ROW(name) {#name, name##_of<float>, name##_of<double>},
constexpr bench::libmvec::Function table[] = {
    UNARY(VECTOR_ROW) BINARY(VECTOR_ROW) SCALAR_UNARY(SCALAR_ROW) SCALAR_BINARY(SCALAR_ROW)};
}  // namespace

namespace bench::libmvec {
std::span<const Function> functions() { return table; }
}  // namespace bench::libmvec

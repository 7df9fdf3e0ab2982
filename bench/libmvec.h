#pragma once
// glibc's vector math library, called at the width of the machine's vectors on all threads. It has
// no tgamma and lgamma; fmod and remainder are the scalar functions.
#include <cstddef>
#include <span>

namespace bench::libmvec {

/// y[i] = f(a[i]) or f(a[i], b[i]); n is a multiple of 16.
template <class T>
using Apply = void (*)(const T* a, const T* b, T* y, size_t n);

struct Function {
  const char* name;
  Apply<float> f32;
  Apply<double> f64;
};
std::span<const Function> functions();

}  // namespace bench::libmvec

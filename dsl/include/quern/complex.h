#pragma once
// Complex numbers of floats or doubles, on the host and on the device; not part of quern.h.
//
// Branch cuts lie as in C (Annex G) and are told apart by the signs of zeros, after Kahan, "Branch
// Cuts for Complex Elementary Functions, or Much Ado About Nothing's Sign Bit" (1987), whose
// formulas sqrt, tanh, atanh and the inverse functions are; of infinite and NaN parts Annex G's
// special values are not promised. Errors are a few units in the last place of the larger part.
#include <limits>

#include "quern/math/numbers.h"

namespace quern {

/// Complex<> of floats, Complex<HostW, double>; Field, Val and Var hold it like any structure.
template <class W = HostW, class T = float>
struct Complex {
  In<W, T> re, im;
};

namespace detail {
template <class T>
struct NumberOf<Complex<HostW, T>> {
  using part = T;
  template <class F, class... A>
  static constexpr auto each(F f, const A&... a) {
    return number<Complex<HostW, T>>(f(a.re...), f(a.im...));
  }
  template <class A, class B>
  static constexpr auto equal(const A& a, const B& b) {
    return fold_bools(vec(a.re == b.re, a.im == b.im),
                      [](const auto& p, const auto& q) { return p & q; });
  }
};
template <class T>
inline constexpr bool is_complex = false;
template <class T>
inline constexpr bool is_complex<Complex<HostW, T>> = true;
template <class A>
concept ComplexLike = Operand<A> && is_complex<elem_t<A>>;
// Apart, so that each is chosen before the function of plain numbers of its name.
template <class A>
concept HostComplex = Host<A> && is_complex<A>;
template <class A>
concept DeviceComplex = Device<A> && is_complex<elem_t<A>>;
}  // namespace detail

// ---- making
/// Of its parts.
template <detail::ScalarLike X, detail::ScalarLike Y>
constexpr auto complex(X&& re, Y&& im, Loc l = Loc::here()) {
  [[maybe_unused]] detail::Here<X, Y> here(l, std::forward<X>(re), std::forward<Y>(im));
  auto v = vec(re, im);
  using T = detail::scalar_t<detail::elem_t<decltype(v)>>;
  return detail::number<Complex<HostW, T>>(v.x, v.y);
}
/// r (cos θ + i sin θ).
template <detail::ScalarLike R, detail::ScalarLike A>
constexpr auto polar(R&& r, A&& theta, Loc l = Loc::here()) {
  [[maybe_unused]] detail::Here<R, A> here(l, std::forward<R>(r), std::forward<A>(theta));
  auto v = vec(r, theta);
  return complex(v.x * cos(v.y), v.x * sin(v.y));
}

// ---- algebra
template <detail::ComplexLike A, detail::ComplexLike B>
  requires detail::SameNumbers<A, B>
constexpr auto operator*(A&& a, B&& b) {
  [[maybe_unused]] detail::Here<A, B> here(Loc{}, std::forward<A>(a), std::forward<B>(b));
  auto&& p = detail::once(a);
  auto&& q = detail::once(b);
  return detail::number<detail::elem_t<A>>(p.re * q.re - p.im * q.im, p.re * q.im + p.im * q.re);
}
/// By the ratio of the divisor's parts, so that no square overflows; parts above half
/// of the largest float may (Smith, "Algorithm 116: Complex
/// Division", CACM 5, 1962).
template <detail::ComplexLike A, detail::ComplexLike B>
  requires detail::SameNumbers<A, B>
constexpr auto operator/(A&& a, B&& b) {
  [[maybe_unused]] detail::Here<A, B> here(Loc{}, std::forward<A>(a), std::forward<B>(b));
  auto&& p = detail::once(a);
  auto&& q = detail::once(b);
  auto wide = abs(q.re) >= abs(q.im);
  auto large = select(wide, q.re, q.im), small = select(wide, q.im, q.re);
  auto ratio = small / large, divisor = large + small * ratio;
  auto re = select(wide, p.re + p.im * ratio, p.re * ratio + p.im);
  auto im = select(wide, p.im - p.re * ratio, p.im * ratio - p.re);
  return detail::number<detail::elem_t<A>>(re / divisor, im / divisor);
}
template <detail::ComplexLike A, detail::ScalarLike S>
constexpr auto operator+(A&& a, S&& s) {
  [[maybe_unused]] detail::Here<A, S> here(Loc{}, std::forward<A>(a), std::forward<S>(s));
  auto&& z = detail::once(a);
  return detail::number<detail::elem_t<A>>(z.re + detail::beside<A>(s), z.im);
}
template <detail::ScalarLike S, detail::ComplexLike A>
constexpr auto operator+(const S& s, const A& a) {
  return a + s;
}
template <detail::ComplexLike A, detail::ScalarLike S>
constexpr auto operator-(A&& a, S&& s) {
  [[maybe_unused]] detail::Here<A, S> here(Loc{}, std::forward<A>(a), std::forward<S>(s));
  auto&& z = detail::once(a);
  return detail::number<detail::elem_t<A>>(z.re - detail::beside<A>(s), z.im);
}
template <detail::ScalarLike S, detail::ComplexLike A>
constexpr auto operator-(S&& s, A&& a) {
  [[maybe_unused]] detail::Here<A, S> here(Loc{}, std::forward<S>(s), std::forward<A>(a));
  auto&& z = detail::once(a);
  return detail::number<detail::elem_t<A>>(detail::beside<A>(s) - z.re, -z.im);
}
template <detail::ScalarLike S, detail::ComplexLike A>
constexpr auto operator/(S&& s, A&& a) {
  [[maybe_unused]] detail::Here<A, S> here(Loc{}, std::forward<S>(s), std::forward<A>(a));
  return detail::number<detail::elem_t<A>>(detail::beside<A>(s), detail::part_t<A>(0)) / a;
}
template <detail::ComplexLike A>
constexpr auto conj(A&& a, Loc l = Loc::here()) {
  [[maybe_unused]] detail::Here<A> here(l, std::forward<A>(a));
  auto&& z = detail::once(a);
  return detail::number<detail::elem_t<A>>(z.re, -z.im);
}
/// re² + im², as std::norm.
template <detail::ComplexLike A>
constexpr auto norm(A&& a, Loc l = Loc::here()) {
  [[maybe_unused]] detail::Here<A> here(l, std::forward<A>(a));
  auto&& z = detail::once(a);
  return z.re * z.re + z.im * z.im;
}
/// atan2(im, re), from -π to π; cut along the negative axis.
template <detail::ComplexLike A>
constexpr auto arg(A&& a, Loc l = Loc::here()) {
  [[maybe_unused]] detail::Here<A> here(l, std::forward<A>(a));
  auto&& z = detail::once(a);
  return atan2(z.im, z.re);
}

namespace detail {

/// What the functions below need to know of a floating type.
template <class T>
struct ComplexLimits {
  static constexpr bool single = sizeof(T) == 4;
  static constexpr T huge = single ? T(0x1p126) : T(0x1p1022);   ///< sums of two overflow above
  static constexpr T tiny = single ? T(0x1p-100) : T(0x1p-960);  ///< squares lose bits below
  static constexpr T theta = single ? T(0x1p62) : T(0x1p510);    ///< √max / 4
  static constexpr T far = single ? T(0x1p13) : T(0x1p27);  ///< 1 / (3 far²) is below the precision
  static constexpr T close = single ? T(0x1p-28) : T(0x1p-240);  ///< fourth powers lose bits below
  static constexpr T tanh_is_one = single ? T(22) : T(177);      ///< asinh(max) / 4
  static constexpr T pi = T(3.14159265358979323846);
};

/// i z and -i z.
template <class Z>
constexpr auto times_i(const Z& z) {
  return number<elem_t<Z>>(-z.im, z.re);
}
template <class Z>
constexpr auto over_i(const Z& z) {
  return number<elem_t<Z>>(z.im, -z.re);
}

/// √(re² + im²), by hypot.
template <class Z>
constexpr auto complex_abs(const Z& z) {
  return hypot(z.re, z.im);
}
/// A real argument has a real result, even where e^x overflows; it varies with im as the function
/// does there, too, up to second derivatives.
template <class Z>
constexpr auto complex_exp(const Z& z) {
  using T = part_t<Z>;
  auto scale = exp(z.re);
  auto real = z.im == 0;
  auto finite = min(std::numeric_limits<T>::max(), scale);
  auto im = select(real, z.im * finite, select(real, T(0), scale) * sin(z.im));
  // Of the branch that is not chosen nothing is infinite, nor in its derivative.
  auto off_axis = select(real, z.im, T(0));
  auto re = select(real, scale - T(0.5) * off_axis * off_axis * finite,
                   select(real, T(0), scale) * cos(z.im));
  return number<elem_t<Z>>(re, im);
}
/// log |z| + i arg z. Near the unit circle log |z| is half of log1p((x - 1)(x + 1) + y²), x the
/// larger part.
template <class Z>
constexpr auto complex_log(const Z& z) {
  using T = part_t<Z>;
  auto wide = abs(z.re) >= abs(z.im);  // one condition, so that the derivative is of both
  auto x = select(wide, abs(z.re), abs(z.im)), y = select(wide, abs(z.im), abs(z.re));
  auto near = (x > T(0.5)) & (x < T(1.75));
  auto modulus = select(near, T(0.5) * log1p((x - 1) * (x + 1) + y * y), log(hypot(x, y)));
  return number<elem_t<Z>>(modulus, atan2(z.im, z.re));
}
/// In the right half-plane; i √-z on the cut, the negative axis, its sign the zero's.
template <class Z>
constexpr auto complex_sqrt(const Z& z) {
  using T = part_t<Z>;
  using L = ComplexLimits<T>;
  // Scaled by even powers of two, which is exact.
  auto most = max(abs(z.re), abs(z.im));
  auto large = most > L::huge, small = most < L::tiny;
  auto up = select(large, T(0x1p-4), select(small, T(0x1p100), T(1)));
  auto down = select(large, T(0x1p2), select(small, T(0x1p-50), T(1)));
  auto x = abs(z.re * up), y = z.im * up;
  auto t = sqrt((hypot(x, y) + x) * T(0.5));
  auto other = select(t == 0, y, y / (2 * t));
  auto right = z.re >= 0;
  return number<elem_t<Z>>(select(right, t, abs(other)) * down,
                           select(right, other, copysign(t, y)) * down);
}
template <class Z>
constexpr auto complex_sinh(const Z& z) {
  return number<elem_t<Z>>(sinh(z.re) * cos(z.im), cosh(z.re) * sin(z.im));
}
template <class Z>
constexpr auto complex_cosh(const Z& z) {
  return number<elem_t<Z>>(cosh(z.re) * cos(z.im), sinh(z.re) * sin(z.im));
}
template <class Z>
constexpr auto complex_tanh(const Z& z) {
  using T = part_t<Z>;
  auto far = abs(z.re) > ComplexLimits<T>::tanh_is_one;
  auto t = tan(z.im);
  auto s = sinh(select(far, T(0), z.re));  // nothing overflows, nor in its derivative
  auto beta = 1 + t * t, rho = sqrt(1 + s * s), divisor = 1 + beta * s * s;
  return number<elem_t<Z>>(select(far, copysign(T(1), z.re), beta * rho * s / divisor),
                           select(far, copysign(T(0), z.im), t / divisor));
}
template <class Z>
constexpr auto complex_sin(const Z& z) {
  return over_i(complex_sinh(times_i(z)));
}
template <class Z>
constexpr auto complex_cos(const Z& z) {
  return complex_cosh(times_i(z));
}
template <class Z>
constexpr auto complex_tan(const Z& z) {
  return over_i(complex_tanh(times_i(z)));
}

/// √(1 - z) and √(1 + z), signs of zeros kept.
template <class Z>
constexpr auto sqrt_one_minus(const Z& z) {
  return complex_sqrt(number<elem_t<Z>>(1 - z.re, -z.im));
}
template <class Z>
constexpr auto sqrt_one_plus(const Z& z) {
  return complex_sqrt(number<elem_t<Z>>(1 + z.re, z.im));
}
/// Cut along the real axis outside [-1, 1].
template <class Z>
constexpr auto complex_asin(const Z& z) {
  auto m = sqrt_one_minus(z), p = sqrt_one_plus(z);
  return number<elem_t<Z>>(atan2(z.re, m.re * p.re - m.im * p.im),
                           asinh(m.re * p.im - m.im * p.re));
}
/// Cut along the real axis outside [-1, 1].
template <class Z>
constexpr auto complex_acos(const Z& z) {
  auto m = sqrt_one_minus(z), p = sqrt_one_plus(z);
  return number<elem_t<Z>>(2 * atan2(m.re, p.re), asinh(p.re * m.im - p.im * m.re));
}
/// Cut along the real axis below 1.
template <class Z>
constexpr auto complex_acosh(const Z& z) {
  auto m = complex_sqrt(number<elem_t<Z>>(z.re - 1, z.im)), p = sqrt_one_plus(z);
  return number<elem_t<Z>>(asinh(m.re * p.re + m.im * p.im), 2 * atan2(m.im, p.re));
}
/// Cut along the imaginary axis outside [-i, i].
template <class Z>
constexpr auto complex_asinh(const Z& z) {
  return over_i(complex_asin(times_i(z)));
}
/// Cut along the real axis outside [-1, 1].
template <class Z>
constexpr auto complex_atanh(const Z& z) {
  using T = part_t<Z>;
  using L = ComplexLimits<T>;
  constexpr T rho = 1 / L::theta;
  // In the right half-plane, conjugated: the function is odd.
  auto beta = copysign(T(1), z.re);
  auto x = beta * z.re, y = -beta * z.im, height = abs(y) + rho;
  // There the function is 1 / z and i π/2, within the precision.
  auto far = (x > L::far) | (abs(y) > L::far);
  auto modulus = select(far, hypot(x, y), T(1));
  auto re_far = x / modulus / modulus;
  auto im_far = copysign(L::pi / 2, y) - y / modulus / modulus;
  // At x = 1, next to the pole; zeros that vary with x as the function does.
  auto off = (x - 1) / (4 + y * y);
  auto re_one = log(sqrt(sqrt(4 + y * y)) / sqrt(height)) + off;
  auto im_one =
      T(0.5) * copysign(L::pi / 2 + atan(height * T(0.5)), y) + 2 * off / copysign(height, y);
  auto re = T(0.25) * log1p(4 * x / ((1 - x) * (1 - x) + height * height));
  auto im = T(0.5) * atan2(2 * y, (1 - x) * (1 + x) - height * height);
  // Farther from it derivatives divide by no height⁴ that is 0.
  auto one = (x == 1) & (abs(y) < L::close);
  return number<elem_t<Z>>(beta * select(far, re_far, select(one, re_one, re)),
                           -beta * select(far, im_far, select(one, im_one, im)));
}
/// Cut along the imaginary axis outside [-i, i].
template <class Z>
constexpr auto complex_atan(const Z& z) {
  return over_i(complex_atanh(times_i(z)));
}

}  // namespace detail

#define QUERN_COMPLEX(name)                         \
  template <detail::HostComplex A>                  \
  constexpr auto name(const A& a) {                 \
    return detail::complex_##name(a);               \
  }                                                 \
  template <detail::DeviceComplex A>                \
  auto name(A&& a, Loc l = Loc::here()) {           \
    detail::Placed here(l, std::forward<A>(a));     \
    return detail::complex_##name(detail::once(a)); \
  }
QUERN_COMPLEX(abs)
QUERN_COMPLEX(exp)
QUERN_COMPLEX(log)
QUERN_COMPLEX(sqrt)
QUERN_COMPLEX(sin)
QUERN_COMPLEX(cos)
QUERN_COMPLEX(tan)
QUERN_COMPLEX(asin)
QUERN_COMPLEX(acos)
QUERN_COMPLEX(atan)
QUERN_COMPLEX(sinh)
QUERN_COMPLEX(cosh)
QUERN_COMPLEX(tanh)
QUERN_COMPLEX(asinh)
QUERN_COMPLEX(acosh)
QUERN_COMPLEX(atanh)
#undef QUERN_COMPLEX

/// exp(b log a), cut along the negative axis of a; 0 to a power other than 0 is 0, z to the power
/// 0 is 1.
template <detail::ComplexLike A, detail::ComplexLike B>
  requires detail::SameNumbers<A, B>
constexpr auto pow(A&& a, B&& b, Loc l = Loc::here()) {
  [[maybe_unused]] detail::Here<A, B> here(l, std::forward<A>(a), std::forward<B>(b));
  using T = detail::part_t<A>;
  constexpr detail::elem_t<A> origin{}, one{T(1), T(0)}, two{T(2), T(0)};
  auto&& z = detail::once(a);
  auto&& p = detail::once(b);
  auto zero = z == origin;
  auto none = p == origin;
  auto linear = p == one;
  auto quadratic = p == two;
  auto w = exp(p * log(detail::number<detail::elem_t<A>>(select(zero, T(1), z.re), z.im)));
  // Of 0, what has first and second derivatives there: z and z².
  auto square = z * z;
  auto re = select(zero, select(linear, z.re, select(quadratic, square.re, T(0))), w.re);
  auto im = select(zero, select(linear, z.im, select(quadratic, square.im, T(0))), w.im);
  auto known = none & (zero | (w.re != w.re));  // else it is 1 by the formula, and varies by it
  return detail::number<detail::elem_t<A>>(select(known, T(1), re), select(known, T(0), im));
}
template <detail::ComplexLike A, detail::ScalarLike S>
constexpr auto pow(A&& a, S&& exponent, Loc l = Loc::here()) {
  [[maybe_unused]] detail::Here<A, S> here(l, std::forward<A>(a), std::forward<S>(exponent));
  using T = detail::part_t<A>;
  return pow(a, detail::number<detail::elem_t<A>>(detail::beside<A>(exponent), T(0)));
}

namespace lang {
using quern::Complex;
using quern::complex;
using quern::polar;
using complex64 = Complex<HostW, float>;
using complex128 = Complex<HostW, double>;
using Complex64 = Val<complex64>;
using Complex128 = Val<complex128>;
}  // namespace lang
}  // namespace quern

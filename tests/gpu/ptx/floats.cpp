// Arithmetic of floats (PTX ISA, "Floating Point", "Half Precision Floating Point").
#include <cfenv>
#include <cmath>

#include "tests/gpu/ptx/arithmetic.h"
#include "tests/gpu/ptx/rounding.h"

namespace quern::ptx {

namespace {

/// f32 and f16 results that are NaN are one NaN; those of f64 keep their bits.
template <class T>
T canonical(T v) {
  if (v == v || sizeof(T) == 8) return v;
  if constexpr (sizeof(T) == 4)
    return std::bit_cast<T>(0x7fffffffu);
  else if constexpr (sizeof(T) == 2)
    return std::bit_cast<T>(uint16_t(0x7fff));
  return v;
}

template <class T>
T flushed(const Inst& inst, T v) {
  if constexpr (sizeof(T) == 4)
    if (inst.flush && std::fpclassify(v) == FP_SUBNORMAL) return std::copysign(0.0f, v);
  return v;
}

template <class T>
T finished(const Inst& inst, T v) {
  v = flushed(inst, v);
  if (inst.saturate) v = v > T(0) ? std::min(v, T(1)) : T(0);  // NaN becomes 0
  return canonical(v);
}

#define OPERATION(name, expression)                       \
  template <class T>                                      \
  struct name {                                           \
    T operator()(const Inst& inst, T x, T y) const {      \
      const T a = flushed(inst, x), b = flushed(inst, y); \
      return finished<T>(inst, expression);               \
    }                                                     \
  };
OPERATION(Add, T(a + b))
OPERATION(Sub, T(a - b))
OPERATION(Mul, T(a* b))
OPERATION(Div, T(a / b))
#undef OPERATION

float fused(float a, float b, float c) { return std::fma(a, b, c); }
double fused(double a, double b, double c) { return std::fma(a, b, c); }
Half fused(Half a, Half b, Half c) { return fused_half(a, b, c); }

template <class T>
struct Fma {
  T operator()(const Inst& inst, T x, T y, T z) const {
    return finished<T>(inst, fused(flushed(inst, x), flushed(inst, y), flushed(inst, z)));
  }
};
template <class T>
struct Sqrt {
  T operator()(const Inst& inst, T x) const {
    return finished<T>(inst, std::sqrt(flushed(inst, x)));
  }
};
template <class T>
struct Reciprocal {
  T operator()(const Inst& inst, T x) const { return finished<T>(inst, T(1) / flushed(inst, x)); }
};

/// -0 is below +0; a NaN is skipped, or wins.
template <class T, bool least>
struct Extremum {
  T operator()(const Inst& inst, T x, T y) const {
    const T a = flushed(inst, x), b = flushed(inst, y);
    const bool nan_wins = inst.operation;
    if (a != a || b != b) return nan_wins || (a != a && b != b) ? nan() : a != a ? b : a;
    if (a == b) return sign_of(a) == least ? a : b;
    return (a < b) == least ? a : b;
  }
  static bool sign_of(T v) { return std::signbit(double(v)); }
  static T nan() { return canonical(T(std::numeric_limits<double>::quiet_NaN())); }
};
template <class T>
using Least = Extremum<T, true>;
template <class T>
using Greatest = Extremum<T, false>;

template <class T>
using Bits = std::conditional_t<sizeof(T) == 8, uint64_t,
                                std::conditional_t<sizeof(T) == 4, uint32_t, uint16_t>>;
template <class T>
constexpr Bits<T> sign_bit = Bits<T>(Bits<T>(1) << (sizeof(T) * 8 - 1));

template <class T>
struct Negative {
  T operator()(const Inst& inst, T x) const {
    return std::bit_cast<T>(Bits<T>(std::bit_cast<Bits<T>>(flushed(inst, x)) ^ sign_bit<T>));
  }
};
template <class T>
struct Absolute {
  T operator()(const Inst& inst, T x) const {
    return std::bit_cast<T>(Bits<T>(std::bit_cast<Bits<T>>(flushed(inst, x)) & ~sign_bit<T>));
  }
};
/// The magnitude of b with the sign of a.
template <class T>
struct CopySign {
  T operator()(const Inst&, T a, T b) const {
    return std::bit_cast<T>(Bits<T>((std::bit_cast<Bits<T>>(a) & sign_bit<T>) |
                                    (std::bit_cast<Bits<T>>(b) & ~sign_bit<T>)));
  }
};

/// Approximations: of the real result, rounded; the manual bounds their errors, and ours are less.
#define OPERATION(name, expression)                     \
  struct name {                                         \
    float operator()(const Inst& inst, float x) const { \
      const double a = flushed(inst, x);                \
      return finished<float>(inst, float(expression));  \
    }                                                   \
  };
OPERATION(ApproximateRsqrt, 1 / std::sqrt(a))
OPERATION(ApproximateExp2, std::exp2(a))
OPERATION(ApproximateLog2, std::log2(a))
OPERATION(ApproximateSin, std::sin(a))
OPERATION(ApproximateCos, std::cos(a))
#undef OPERATION
struct ApproximateRsqrt64 {
  double operator()(const Inst&, double a) const { return 1 / std::sqrt(a); }
};

/// Runs under the instruction's rounding mode.
template <class F, class T, class... S>
void rounded(Warp& w, const Inst& inst, Lanes on) {
  const RoundingMode mode(inst.rounding);
  map<F, T, S...>(w, inst, on);
}
template <class F, class T, class... S>
Handler choose_rounded(const Inst& inst) {
  return inst.rounding == Rounding::nearest ? Handler(&map<F, T, S...>)
                                            : Handler(&rounded<F, T, S...>);
}

template <class Make>
Handler for_float(Type t, Make make) {
  switch (t.width) {
    case 16: return make.template operator()<Half>();
    case 32: return make.template operator()<float>();
    default: return make.template operator()<double>();
  }
}

// ---- decoding

constexpr Type f32{Type::floating, 32}, f64{Type::floating, 64};

Type take(Decoder& d, Words& words) {
  d.inst().flush = words.take("ftz");
  d.inst().saturate = words.take("sat");
  const Type t = words.take_type();
  if (t.kind != Type::floating) throw words.refused(name_of(t) + " is no type of");
  if (d.inst().flush && t.width == 64) throw words.refused("f64 is not flushed:");
  return t;
}

template <class F>
constexpr bool of_halves = true;
template <class T>
constexpr bool of_halves<Div<T>> = false;
template <class T>
constexpr bool of_halves<Sqrt<T>> = false;
template <class T>
constexpr bool of_halves<Reciprocal<T>> = false;

/// F of so many sources, with any rounding mode.
template <template <class> class F, size_t sources>
Handler arithmetic(Decoder& d, Words& words, bool mode_required) {
  d.inst().rounding = words.take_rounding(mode_required);
  const Type t = take(d, words);
  if (t.width == 16 && d.inst().rounding != Rounding::nearest)
    throw words.refused("halves are rounded to nearest:");
  operands_of_type(d, words, t, sources);
  return for_float(t, [&]<class T>() -> Handler {
    if constexpr (sizeof(T) == 2 && !of_halves<F<T>>)
      return nullptr;
    else if constexpr (sources == 3)
      return choose_rounded<F<T>, T, T, T, T>(d.inst());
    else if constexpr (sources == 2)
      return choose_rounded<F<T>, T, T, T>(d.inst());
    else
      return choose_rounded<F<T>, T, T>(d.inst());
  });
}
template <template <class> class F, size_t sources>
Handler exact(Decoder& d, Words& words) {
  const Type t = take(d, words);
  operands_of_type(d, words, t, sources);
  return for_float(t, []<class T>() -> Handler {
    if constexpr (sources == 2)
      return &map<F<T>, T, T, T>;
    else
      return &map<F<T>, T, T>;
  });
}

/// No halves; div.approx and div.full, sqrt.approx, rcp.approx are rounded correctly here. Machine
/// code begins the exact ones with an approximate reciprocal, too.
template <template <class> class F, size_t sources>
Handler quotient(Decoder& d, Words& words) {
  const bool approximate = words.take("approx") || words.take("full");
  d.inst().counted = Class::special;
  return arithmetic<F, sources>(d, words, !approximate);
}

template <bool least>
Handler extremum(Decoder& d, Words& words) {
  d.inst().flush = words.take("ftz");
  d.inst().operation = words.take("NaN");
  const Type t = words.take_type();
  operands_of_type(d, words, t, 2);
  return for_float(t, []<class T> { return Handler(&map<Extremum<T, least>, T, T, T>); });
}

template <class F>
Handler special(Decoder& d, Words& words) {
  if (!words.take("approx")) throw words.refused("only approx is known in");
  const Type t = take(d, words);
  if (t != f32) throw words.refused(name_of(t) + " is no type of");
  operands_of_type(d, words, t, 1);
  d.inst().counted = Class::special;
  return &map<F, float, float>;
}
Handler rsqrt(Decoder& d, Words& words) {
  Words ahead = words;
  ahead.take("approx");
  ahead.take("ftz");
  if (ahead.take_type() != f64) return special<ApproximateRsqrt>(d, words);
  operands_of_type(d, ahead, f64, 1);
  d.inst().counted = Class::special;
  return &map<ApproximateRsqrt64, double, double>;
}

}  // namespace

namespace {
using Make = Handler (*)(Decoder&, Words&);
const std::map<std::string, Make, std::less<>> known = {
    {"add", [](Decoder& d, Words& w) { return arithmetic<Add, 2>(d, w, false); }},
    {"sub", [](Decoder& d, Words& w) { return arithmetic<Sub, 2>(d, w, false); }},
    {"mul", [](Decoder& d, Words& w) { return arithmetic<Mul, 2>(d, w, false); }},
    {"fma", [](Decoder& d, Words& w) { return arithmetic<Fma, 3>(d, w, true); }},
    {"mad", [](Decoder& d, Words& w) { return arithmetic<Fma, 3>(d, w, true); }},
    {"div", quotient<Div, 2>},
    {"sqrt", quotient<Sqrt, 1>},
    {"rcp", quotient<Reciprocal, 1>},
    {"rsqrt", rsqrt},
    {"min", extremum<true>},
    {"max", extremum<false>},
    {"neg", exact<Negative, 1>},
    {"abs", exact<Absolute, 1>},
    {"copysign", exact<CopySign, 2>},
    {"ex2", special<ApproximateExp2>},
    {"lg2", special<ApproximateLog2>},
    {"sin", special<ApproximateSin>},
    {"cos", special<ApproximateCos>}};
}  // namespace

void decode_floats(Decoder& d) {
  Words words = d.words();
  auto it = known.find(words.first());
  if (it == known.end()) throw d.refused("no floats are known to");
  d.inst().counted = Class::floating;
  d.inst().run = it->second(d, words);
  if (!d.inst().run) throw d.refused("no halves are known to");
}

const Family& arithmetic_family() {
  static const Family family = [] {
    Family all;
    auto by_type = [](Decoder& d) {
      const Statement& s = d.statement();
      type_of(s.words.back()).kind == Type::floating ? decode_floats(d) : decode_integers(d);
    };
    for (const char* name :
         {"add",  "sub", "mul",   "mad",      "div",  "rem", "min", "max",  "neg",  "abs",  "cnot",
          "shl",  "shr", "popc",  "clz",      "brev", "bfe", "bfi", "prmt", "shf",  "lop3", "fma",
          "sqrt", "rcp", "rsqrt", "copysign", "ex2",  "lg2", "sin", "cos",  "bfind"})
      all[name] = by_type;
    return all;
  }();
  return family;
}

}  // namespace quern::ptx

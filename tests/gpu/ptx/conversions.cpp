// cvt: between numbers (PTX ISA, "Data Movement and Conversion Instructions: cvt").
#include <cmath>
#include <utility>

#include "tests/gpu/ptx/arithmetic.h"
#include "tests/gpu/ptx/conversions.h"
#include "tests/gpu/ptx/rounding.h"

namespace quern::ptx {

namespace {

/// Rounds to an integer.
double integral(double v, Rounding r) {
  switch (r) {
    case Rounding::nearest: return std::nearbyint(v);  // the host's mode is to nearest
    case Rounding::zero: return std::trunc(v);
    case Rounding::down: return std::floor(v);
    case Rounding::up: return std::ceil(v);
  }
  return v;
}

template <class T>
constexpr bool is_float =
    std::is_same_v<T, float> || std::is_same_v<T, double> || std::is_same_v<T, Half>;

template <class T>
T flushed(const Inst& inst, T v) {
  if constexpr (std::is_same_v<T, float>)
    if (inst.flush && std::fpclassify(v) == FP_SUBNORMAL) return std::copysign(0.0f, v);
  return v;
}

template <class D>
D narrowed(double v, Rounding r) {
  if constexpr (std::is_same_v<D, Half>) {
    return half_of(v, r);
  } else {
    const RoundingMode mode(r);
    volatile double held = v;
    volatile D converted = D(held);  // under the mode, and nowhere else
    return converted;
  }
}

/// inst.operation: rounds to an integer.
template <class D, class S>
struct Convert {
  D operator()(const Inst& inst, S s) const {
    if constexpr (is_float<S> && is_float<D>)
      return float_to_float(inst, s);
    else if constexpr (is_float<S>)
      return float_to_integer(inst, s);
    else if constexpr (is_float<D>)
      return integer_to_float(inst, s);
    else
      return integer_to_integer(inst, s);
  }

 private:
  static D float_to_float(const Inst& inst, S s) {
    double v = double(flushed(inst, s));
    if (v != v) return quiet(s);
    if (inst.operation) v = std::copysign(integral(v, inst.rounding), v);
    if (inst.saturate) v = v > 0 ? std::min(v, 1.0) : 0.0;
    return flushed(inst, narrowed<D>(v, inst.operation ? Rounding::nearest : inst.rounding));
  }
  /// f32 and f16 know one NaN, f64 keeps what it was.
  static D quiet(S s) {
    if constexpr (std::is_same_v<D, float>)
      return std::bit_cast<float>(0x7fffffffu);
    else if constexpr (std::is_same_v<D, Half>)
      return std::bit_cast<Half>(uint16_t(0x7fff));
    else
      return double(s);
  }
  /// Clamped; NaN becomes 0.
  static D float_to_integer(const Inst& inst, S s) {
    const double v = double(flushed(inst, s));
    if (v != v) return 0;
    const double whole = integral(v, inst.rounding);
    const double low = double(std::numeric_limits<D>::min());
    const double end = std::ldexp(1.0, std::numeric_limits<D>::digits);
    if (whole < low) return std::numeric_limits<D>::min();
    if (whole >= end) return std::numeric_limits<D>::max();
    return D(whole);
  }
  static D integer_to_float(const Inst& inst, S s) {
    if constexpr (std::is_same_v<D, Half>) {
      // What a double does not hold of an integer is far above the largest half.
      return half_of(double(s), inst.rounding);
    } else {
      const RoundingMode mode(inst.rounding);
      volatile S held = s;
      volatile D converted = D(held);
      return converted;
    }
  }
  static D integer_to_integer(const Inst& inst, S s) {
    if (!inst.saturate) return D(s);
    if (std::cmp_less(s, std::numeric_limits<D>::min())) return std::numeric_limits<D>::min();
    if (std::cmp_greater(s, std::numeric_limits<D>::max())) return std::numeric_limits<D>::max();
    return D(s);
  }
};

/// The destination register may be wider: the value is extended in the manner of its type.
template <class D, class S>
void convert(Warp& w, const Inst& inst, Lanes on) {
  uint64_t* d = w.to(inst.to[0]);
  const uint64_t* s = w.from(inst.from[0]);
  for_lanes(on, [&](unsigned l) {
    const D v = Convert<D, S>()(inst, get<S>(s, l));
    if constexpr (!is_float<D> && std::is_signed_v<D>)
      put<int64_t>(d, l, v);
    else
      put<D>(d, l, v);
  });
}

template <class D>
Handler from_type(Type s) {
  const bool is_signed = s.kind == Type::signed_;
  if (s.kind == Type::floating)
    return s.width == 16   ? &convert<D, Half>
           : s.width == 32 ? &convert<D, float>
                           : &convert<D, double>;
  switch (s.width) {
    case 8: return is_signed ? &convert<D, int8_t> : &convert<D, uint8_t>;
    case 16: return is_signed ? &convert<D, int16_t> : &convert<D, uint16_t>;
    case 32: return is_signed ? &convert<D, int32_t> : &convert<D, uint32_t>;
    default: return is_signed ? &convert<D, int64_t> : &convert<D, uint64_t>;
  }
}

Handler converter(Type to, Type from) {
  const bool is_signed = to.kind == Type::signed_;
  if (to.kind == Type::floating)
    return to.width == 16   ? from_type<Half>(from)
           : to.width == 32 ? from_type<float>(from)
                            : from_type<double>(from);
  switch (to.width) {
    case 8: return is_signed ? from_type<int8_t>(from) : from_type<uint8_t>(from);
    case 16: return is_signed ? from_type<int16_t>(from) : from_type<uint16_t>(from);
    case 32: return is_signed ? from_type<int32_t>(from) : from_type<uint32_t>(from);
    default: return is_signed ? from_type<int64_t>(from) : from_type<uint64_t>(from);
  }
}

bool is_number(Type t) {
  return t.kind == Type::floating || t.kind == Type::signed_ || t.kind == Type::unsigned_;
}

}  // namespace

void decode_conversion(Decoder& d) {
  Words words = d.words();
  Inst& inst = d.inst();
  const char* const integral_modes[] = {"rni", "rzi", "rmi", "rpi"};
  const char* const modes[] = {"rn", "rz", "rm", "rp"};
  const int to_integer = words.take_one_of(integral_modes);
  const int to_float = to_integer < 0 ? words.take_one_of(modes) : -1;
  inst.flush = words.take("ftz");
  inst.saturate = words.take("sat");
  const Type to = words.take_type(), from = words.take_type();
  words.finish(2);
  if (!is_number(to) || !is_number(from)) throw words.refused("no numbers in");
  const bool from_float = from.kind == Type::floating, of_float = to.kind == Type::floating;
  // Which mode is needed, and which allowed.
  const bool narrows = of_float && (!from_float || to.width < from.width);
  if (narrows && to_float < 0) throw words.refused("no rounding mode in");
  if (!of_float && from_float && to_integer < 0)
    throw words.refused("no rounding to an integer in");
  if (!narrows && to_float >= 0) throw words.refused("a rounding mode without need in");
  if (to_integer >= 0 && !(from_float && (!of_float || to.width == from.width)))
    throw words.refused("a rounding to an integer without need in");
  inst.operation = to_integer >= 0;
  inst.rounding = Rounding(std::max({0, to_integer, to_float}));
  inst.type = to;
  inst.counted = Class::conversion;
  d.to(0, 0, to, !of_float);
  d.from(0, 1, from, !from_float);
  inst.run = converter(to, from);
}

}  // namespace quern::ptx

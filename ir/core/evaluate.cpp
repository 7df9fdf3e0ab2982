// The meaning of the element-wise rows of ops.def on bits: docs/semantics.md as C++.
//
// A row's `fold` names a struct of namespace `fold`; a row without one does not compile. Its `of`
// takes values of the operands' C++ type, constrained to the classes that the row accepts. This
// file is compiled without contraction.
#include <array>
#include <bit>
#include <cmath>
#include <concepts>
#include <limits>
#include <string>
#include <type_traits>

#include "quern/error.h"
#include "quern/ir/ops.h"

namespace quern::ir {

namespace {

// ---- bits and C++ values

template <class T>
concept Float = std::floating_point<T>;
template <class T>
concept Bool = std::same_as<T, bool>;
template <class T>
concept Int = std::integral<T> && !Bool<T>;
template <class T>
concept Number = Int<T> || Float<T>;
template <class T>
concept Logic = Int<T> || Bool<T>;

template <Int T>
constexpr T value_of(Bits b) {
  return static_cast<T>(b);
}
template <Bool T>
constexpr bool value_of(Bits b) {
  return b != 0;
}
template <Float T>
constexpr T value_of(Bits b) {
  if constexpr (sizeof(T) == 4)
    return std::bit_cast<float>(uint32_t(b));
  else
    return std::bit_cast<double>(b);
}

template <Int T>
constexpr Bits bits_from(T v) {
  return Bits(std::make_unsigned_t<T>(v));
}
constexpr Bits bits_from(bool v) { return v ? 1 : 0; }
Bits bits_from(float v) { return bits_of(v); }
Bits bits_from(double v) { return bits_of(v); }

/// Calls f with a value-initialised object of the C++ type of `t`; false where t is no scalar.
template <class F>
bool dispatch(Type t, F&& f) {
  switch (t) {
    case Type::b1: return f(bool());
    case Type::i8: return f(int8_t());
    case Type::i16: return f(int16_t());
    case Type::i32: return f(int32_t());
    case Type::i64: return f(int64_t());
    case Type::u8: return f(uint8_t());
    case Type::u16: return f(uint16_t());
    case Type::u32: return f(uint32_t());
    case Type::u64: return f(uint64_t());
    case Type::f32: return f(float());
    case Type::f64: return f(double());
    default: return false;
  }
}

template <Int T>
constexpr Bits width = std::numeric_limits<std::make_unsigned_t<T>>::digits;

/// Unsigned arithmetic wraps; 64 bits wide, so that no operand is promoted to a signed type.
template <Int T>
constexpr uint64_t word(T v) {
  return static_cast<uint64_t>(v);
}

template <Float T>
T with_sign(T magnitude, bool negative) {
  return std::copysign(magnitude, negative ? T(-1) : T(1));
}

/// Truncation towards zero; NaN gives 0, what is out of range the nearest end.
template <Int To, Float From>
To saturated(From a) {
  using Limits = std::numeric_limits<To>;
  constexpr From below = static_cast<From>(Limits::min());  // exact: 0 or a power of two
  const From above = std::ldexp(From(1), Limits::digits);   // max + 1
  if (std::isnan(a)) return 0;
  if (a <= below) return Limits::min();
  if (a >= above) return Limits::max();
  return static_cast<To>(a);
}

template <Int To, Float From>
bool overflows(From a) {
  using Limits = std::numeric_limits<To>;
  const From t = std::trunc(a);  // NaN fails the comparison
  return !(t >= static_cast<From>(Limits::min()) && t < std::ldexp(From(1), Limits::digits));
}

// ---- one struct per name in the fold column

namespace fold {

struct add {
  template <Number T>
  static T of(T a, T b) {
    if constexpr (Int<T>)
      return T(word(a) + word(b));
    else
      return a + b;
  }
};
struct sub {
  template <Number T>
  static T of(T a, T b) {
    if constexpr (Int<T>)
      return T(word(a) - word(b));
    else
      return a - b;
  }
};
struct mul {
  template <Number T>
  static T of(T a, T b) {
    if constexpr (Int<T>)
      return T(word(a) * word(b));
    else
      return a * b;
  }
};
struct div {
  template <Number T>
  static T of(T a, T b) {
    if constexpr (Float<T>) {
      return a / b;
    } else {
      if (b == 0) return 0;
      if (std::is_signed_v<T> && b == T(-1)) return T(-word(a));
      return T(a / b);
    }
  }
};
struct rem {
  template <Int T>
  static T of(T a, T b) {
    if (b == 0) return a;
    if (std::is_signed_v<T> && b == T(-1)) return 0;
    return T(a % b);
  }
};
struct neg {
  template <Number T>
  static T of(T a) {
    if constexpr (Int<T>)
      return T(-word(a));
    else
      return with_sign(a, !std::signbit(a));
  }
};
struct abs {
  template <Number T>
  static T of(T a) {
    if constexpr (Int<T>)
      return a < T(0) ? T(-word(a)) : a;
    else
      return with_sign(a, false);
  }
};
struct min {
  template <Number T>
  static T of(T a, T b) {
    return b < a ? b : a;
  }
};
struct max {
  template <Number T>
  static T of(T a, T b) {
    return a < b ? b : a;
  }
};
struct fmin {
  template <Float T>
  static T of(T a, T b) {
    if (std::isnan(a)) return b;
    if (std::isnan(b)) return a;
    if (a == b) return std::signbit(a) ? a : b;
    return a < b ? a : b;
  }
};
struct fmax {
  template <Float T>
  static T of(T a, T b) {
    if (std::isnan(a)) return b;
    if (std::isnan(b)) return a;
    if (a == b) return std::signbit(a) ? b : a;
    return a < b ? b : a;
  }
};
struct fma {
  template <Float T>
  static T of(T a, T b, T c) {
    return std::fma(a, b, c);
  }
};
struct sqrt {
  template <Float T>
  static T of(T a) {
    return std::sqrt(a);
  }
};
struct floor {
  template <Float T>
  static T of(T a) {
    return std::floor(a);
  }
};
struct ceil {
  template <Float T>
  static T of(T a) {
    return std::ceil(a);
  }
};
struct trunc {
  template <Float T>
  static T of(T a) {
    return std::trunc(a);
  }
};
struct round {
  template <Float T>
  static T of(T a) {
    return std::nearbyint(a);  // in the default rounding mode: ties to even
  }
};
struct copysign {
  template <Float T>
  static T of(T a, T b) {
    return with_sign(a, std::signbit(b));
  }
};

struct stop_gradient {
  template <Float T>
  static T of(T a) {
    return a;
  }
};

struct bit_and {
  template <Logic T>
  static T of(T a, T b) {
    return T(a & b);
  }
};
struct bit_or {
  template <Logic T>
  static T of(T a, T b) {
    return T(a | b);
  }
};
struct bit_xor {
  template <Logic T>
  static T of(T a, T b) {
    return T(a ^ b);
  }
};
struct bit_not {
  template <Logic T>
  static T of(T a) {
    if constexpr (Bool<T>)
      return !a;
    else
      return T(~word(a));
  }
};
struct popcount {
  template <Int T>
  static T of(T a) {
    return T(std::popcount(word(a) & (~uint64_t(0) >> (64 - width<T>))));
  }
};
struct clz {
  template <Int T>
  static T of(T a) {
    return T(std::countl_zero(std::make_unsigned_t<T>(a)));
  }
};
struct ctz {
  template <Int T>
  static T of(T a) {
    return T(std::countr_zero(std::make_unsigned_t<T>(a)));
  }
};
struct shl {
  template <Int T>
  static T of(T a, T b) {
    return T(word(a) << (word(b) % width<T>));
  }
};
struct shr {
  template <Int T>
  static T of(T a, T b) {
    return T(a >> (word(b) % width<T>));  // C++20: arithmetic where signed
  }
};

struct eq {
  template <class T>
  static bool of(T a, T b) {
    return a == b;
  }
};
struct ne {
  template <class T>
  static bool of(T a, T b) {
    return a != b;
  }
};
struct lt {
  template <Number T>
  static bool of(T a, T b) {
    return a < b;
  }
};
struct le {
  template <Number T>
  static bool of(T a, T b) {
    return a <= b;
  }
};
struct gt {
  template <Number T>
  static bool of(T a, T b) {
    return a > b;
  }
};
struct ge {
  template <Number T>
  static bool of(T a, T b) {
    return a >= b;
  }
};

struct select {
  static bool run(Type, Type, std::span<const Bits> args, Bits& out) {
    out = args[0] ? args[1] : args[2];
    return true;
  }
};

struct convert {
  template <class To, class From>
  static To of(From a) {
    if constexpr (Bool<To>)
      return a != From(0);
    else if constexpr (Int<To> && Float<From>)
      return saturated<To>(a);
    else
      return static_cast<To>(a);  // wraps, or rounds to nearest even
  }
  static bool run(Type from, Type to, std::span<const Bits> args, Bits& out) {
    return dispatch(from, [&]<class From>(From) {
      return dispatch(to, [&]<class To>(To) {
        out = bits_from(of<To>(value_of<From>(args[0])));
        return true;
      });
    });
  }
};

struct bitcast {
  static bool run(Type from, Type to, std::span<const Bits> args, Bits& out) {
    if (bit_width(from) != bit_width(to)) return false;
    out = args[0];
    return true;
  }
};

/// Rows whose meaning is their IR body.
struct library {
  static bool run(Type, Type, std::span<const Bits>, Bits&) { return false; }
};

}  // namespace fold

template <class Fold>
bool apply(Type operand, Type result, std::span<const Bits> args, Bits& out) {
  if constexpr (requires { Fold::run(operand, result, args, out); }) {
    return Fold::run(operand, result, args, out);
  } else {
    return dispatch(operand, [&]<class T>(T t) {
      if constexpr (requires { Fold::template of<T>(t); })
        out = bits_from(Fold::template of<T>(value_of<T>(args[0])));
      else if constexpr (requires { Fold::template of<T>(t, t); })
        out = bits_from(Fold::template of<T>(value_of<T>(args[0]), value_of<T>(args[1])));
      else if constexpr (requires { Fold::template of<T>(t, t, t); })
        out = bits_from(
            Fold::template of<T>(value_of<T>(args[0]), value_of<T>(args[1]), value_of<T>(args[2])));
      else
        return false;  // a class that the row does not take
      return true;
    });
  }
}

/// A row on halves is the row on floats, rounded once; a double holds what any other type converts
/// to a half that is finite.
bool evaluate_halves(Op op, Type operand, Type result, std::span<const Bits> args, Bits& out) {
  const Type rounded = op == Op::convert && operand != Type::f16 ? Type::f64 : Type::f32;
  std::array<Bits, 3> wide = {};
  for (size_t k = 0; k < args.size(); k++)
    wide[k] = operand == Type::f16 ? bits_of(f16_of(args[k])) : args[k];
  const Type to = result == Type::f16 ? rounded : result;
  if (!evaluate(op, operand == Type::f16 ? Type::f32 : operand, to, {wide.data(), args.size()},
                out))
    return false;
  if (result == Type::f16) out = bits_of_half(real_of(out, rounded));
  return true;
}

}  // namespace

bool evaluate(Op op, Type operand, Type result, std::span<const Bits> args, Bits& out) {
  const bool halves = operand == Type::f16 || result == Type::f16;
  if (halves && op != Op::select && op != Op::bitcast)
    return evaluate_halves(op, operand, result, args, out);
  switch (op) {
#define QUERN_OP(name, rule, operands, classes, flags, fold_, partial, weight) \
  case Op::name: return apply<fold::fold_>(operand, result, args, out);
#define QUERN_FORM(name, form, kind, names, regions, levels, flags) \
  case Op::name: return false;
#include "quern/ir/ops.def"
  }
  return false;
}

Bits combine(AtomicOp op, Type type, Bits old, Bits value) {
  auto as = [&](Op row) {
    const Bits args[] = {old, value};
    Bits out = 0;
    if (!evaluate(row, type, type, args, out))
      throw InternalError("no step of " + std::string(name(op)) + " on " + std::string(name(type)));
    return out;
  };
  switch (op) {
    case AtomicOp::add: return as(Op::add);
    case AtomicOp::mul: return as(Op::mul);
    case AtomicOp::min: return as(is_float(type) ? Op::fmin : Op::min);
    case AtomicOp::max: return as(is_float(type) ? Op::fmax : Op::max);
    case AtomicOp::bit_and: return as(Op::bit_and);
    case AtomicOp::bit_or: return as(Op::bit_or);
    case AtomicOp::bit_xor: return as(Op::bit_xor);
    case AtomicOp::exchange: return value;
    case AtomicOp::load: return old;
    case AtomicOp::cas: break;  // two operands: its caller compares
  }
  throw InternalError("combine has no meaning for " + std::string(name(op)));
}

Bits identity(AtomicOp op, Type type) {
  const Bits ones = truncate(~Bits(0), type);
  const Bits sign = is_signed(type) ? Bits(1) << (bit_width(type) - 1) : 0;  // the least integer
  const Bits nan =
      is_float(type) ? bits_of_real(std::numeric_limits<double>::quiet_NaN(), type) : 0;
  switch (op) {
    case AtomicOp::add: return is_float(type) ? bits_of_real(-0.0, type) : 0;
    case AtomicOp::mul: return bits_of_int(1, type);
    // fmin and fmax skip a NaN, and an infinity would not leave a NaN as it is
    case AtomicOp::min: return is_float(type) ? nan : ones & ~sign;
    case AtomicOp::max: return is_float(type) ? nan : sign;
    case AtomicOp::bit_and: return ones;
    case AtomicOp::bit_or:
    case AtomicOp::bit_xor: return 0;
    default: throw InternalError(std::string(name(op)) + " has no identity");
  }
}

bool fails(Op op, Type operand, Type result, std::span<const Bits> args) {
  if (op == Op::div || op == Op::rem) return is_int(operand) && args[1] == 0;
  // integer to integer wraps by definition, as in C++; only a float can overflow an integer
  if (op != Op::convert || !is_float(operand) || !is_int(result)) return false;
  if (operand == Type::f16) {
    const Bits wide[] = {bits_of(f16_of(args[0]))};
    return fails(op, Type::f32, result, wide);
  }
  return dispatch(operand, [&]<class From>(From) {
    return dispatch(result, [&]<class To>(To) {
      if constexpr (Float<From> && Int<To>)
        return overflows<To>(value_of<From>(args[0]));
      else
        return false;
    });
  });
}

}  // namespace quern::ir

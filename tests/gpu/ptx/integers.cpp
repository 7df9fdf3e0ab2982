// Arithmetic of integers and bits (PTX ISA, "Integer Arithmetic", "Logic and Shift").
#include <type_traits>

#include "tests/gpu/ptx/arithmetic.h"

namespace quern::ptx {

namespace {

template <class T>
using Unsigned = std::make_unsigned_t<T>;
template <class T>
constexpr unsigned bits_of = sizeof(T) * 8;

__extension__ typedef __int128 Int128;
__extension__ typedef unsigned __int128 Uint128;

/// Twice as wide.
template <class T>
struct Wider;
template <>
struct Wider<int16_t> {
  using type = int32_t;
};
template <>
struct Wider<uint16_t> {
  using type = uint32_t;
};
template <>
struct Wider<int32_t> {
  using type = int64_t;
};
template <>
struct Wider<uint32_t> {
  using type = uint64_t;
};
template <>
struct Wider<int64_t> {
  using type = Int128;
};
template <>
struct Wider<uint64_t> {
  using type = Uint128;
};
template <class T>
using Wide = typename Wider<T>::type;

// Wrap-around, without the overflow of signed numbers.
template <class T>
T plus(T a, T b) {
  return T(Unsigned<T>(a) + Unsigned<T>(b));
}
template <class T>
T minus(T a, T b) {
  return T(Unsigned<T>(a) - Unsigned<T>(b));
}
template <class T>
T low_product(T a, T b) {
  return T(Wide<Unsigned<T>>(Unsigned<T>(a)) * Unsigned<T>(b));
}
template <class T>
T high_product(T a, T b) {
  return T((Wide<T>(a) * Wide<T>(b)) >> bits_of<T>);
}

template <class T>
T clamped(Wide<T> v) {
  return T(std::clamp<Wide<T>>(v, std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
}

#define OPERATION(name, expression)                                                        \
  template <class T>                                                                       \
  struct name {                                                                            \
    T operator()([[maybe_unused]] const Inst& inst, T a, T b) const { return expression; } \
  };
OPERATION(Add, inst.saturate ? clamped<T>(Wide<T>(a) + b) : plus(a, b))
OPERATION(Sub, inst.saturate ? clamped<T>(Wide<T>(a) - b) : minus(a, b))
OPERATION(LowProduct, low_product(a, b))
OPERATION(HighProduct, high_product(a, b))
OPERATION(Min, std::min(a, b))
OPERATION(Max, std::max(a, b))
OPERATION(And, T(a& b))
OPERATION(Or, T(a | b))
OPERATION(Xor, T(a ^ b))
#undef OPERATION

template <class T>
struct WideProduct {
  Wide<T> operator()(const Inst&, T a, T b) const { return Wide<T>(a) * Wide<T>(b); }
};
template <class T>
struct LowProductSum {
  T operator()(const Inst&, T a, T b, T c) const { return plus(low_product(a, b), c); }
};
template <class T>
struct HighProductSum {
  T operator()(const Inst&, T a, T b, T c) const { return plus(high_product(a, b), c); }
};
template <class T>
struct WideProductSum {
  Wide<T> operator()(const Inst&, T a, T b, Wide<T> c) const {
    return plus<Wide<T>>(Wide<T>(a) * Wide<T>(b), c);
  }
};
template <class T>
struct Negative {
  T operator()(const Inst&, T a) const { return minus(T(0), a); }
};
template <class T>
struct Absolute {
  T operator()(const Inst&, T a) const { return a < 0 ? minus(T(0), a) : a; }
};
template <class T>
struct Not {
  T operator()(const Inst&, T a) const { return T(~a); }
};
template <class T>
struct IsZero {
  T operator()(const Inst&, T a) const { return a == 0; }
};
/// Counts above the width are the width.
template <class T>
struct ShiftLeft {
  T operator()(const Inst&, T a, uint32_t n) const {
    return n >= bits_of<T> ? T(0) : T(Unsigned<T>(a) << n);
  }
};
template <class T>
struct ShiftRight {
  T operator()(const Inst&, T a, uint32_t n) const {
    if (n >= bits_of<T>) return a < 0 ? T(-1) : T(0);
    return T(a >> n);
  }
};
template <class T>
struct Population {
  uint32_t operator()(const Inst&, T a) const { return uint32_t(std::popcount(a)); }
};
template <class T>
struct LeadingZeros {
  uint32_t operator()(const Inst&, T a) const { return uint32_t(std::countl_zero(a)); }
};
template <class T>
struct Reverse {
  T operator()(const Inst&, T a) const {
    T out = 0;
    for (unsigned k = 0; k < bits_of<T>; k++) out |= T((a >> k & 1) << (bits_of<T> - 1 - k));
    return out;
  }
};
/// The highest bit that differs from the sign, all ones where there is none.
template <class T>
struct FindBit {
  uint32_t operator()(const Inst& inst, T a) const {
    const auto u = Unsigned<T>(a < 0 ? T(~a) : a);
    if (u == 0) return ~0u;
    const auto zeros = unsigned(std::countl_zero(u));
    return inst.operation ? zeros : bits_of<T> - 1 - zeros;
  }
};
template <class T>
struct ExtractField {
  T operator()(const Inst&, T a, uint32_t b, uint32_t c) const {
    const unsigned position = b & 0xff, length = c & 0xff, last = bits_of<T> - 1;
    bool sign = false;
    if (std::is_signed_v<T> && length != 0)
      sign = Unsigned<T>(a) >> std::min(position + length - 1, last) & 1;
    Unsigned<T> out = sign ? ~Unsigned<T>(0) : Unsigned<T>(0);
    for (unsigned k = 0; k <= last && k < length; k++) {
      const bool bit = position + k <= last ? Unsigned<T>(a) >> (position + k) & 1 : sign;
      const auto place = Unsigned<T>(Unsigned<T>(1) << k);
      out = Unsigned<T>(bit ? out | place : out & ~place);
    }
    return T(out);
  }
};
template <class T>
struct InsertField {
  T operator()(const Inst&, T a, T b, uint32_t c, uint32_t d) const {
    const unsigned position = c & 0xff, length = d & 0xff;
    for (unsigned k = 0; k < length && position + k < bits_of<T>; k++) {
      const T bit = T(1) << (position + k);
      b = (b & ~bit) | ((a >> k & 1) ? bit : 0);
    }
    return b;
  }
};
struct Permute {
  uint32_t operator()(const Inst&, uint32_t a, uint32_t b, uint32_t selector) const {
    const uint64_t bytes = uint64_t(b) << 32 | a;
    uint32_t out = 0;
    for (unsigned k = 0; k < 4; k++) {
      const unsigned choice = selector >> 4 * k & 15;
      auto byte = uint8_t(bytes >> 8 * (choice & 7));
      if (choice & 8) byte = byte & 0x80 ? 0xff : 0;
      out |= uint32_t(byte) << 8 * k;
    }
    return out;
  }
};
/// 64 bits, b above a, shifted; the count wraps or is clamped at 32.
struct Funnel {
  enum : uint8_t { left = 1, wraps = 2 };
  uint32_t operator()(const Inst& inst, uint32_t a, uint32_t b, uint32_t n) const {
    n = inst.operation & wraps ? n & 31 : std::min(n, 32u);
    const uint64_t both = uint64_t(b) << 32 | a;
    return inst.operation & left ? uint32_t(both << n >> 32) : uint32_t(both >> n);
  }
};
/// Bit 4a + 2b + c of the table, for each position.
struct Logic3 {
  uint32_t operator()(const Inst& inst, uint32_t a, uint32_t b, uint32_t c) const {
    uint32_t out = 0;
    for (unsigned k = 0; k < 8; k++)
      if (inst.operation >> k & 1) out |= (k & 4 ? a : ~a) & (k & 2 ? b : ~b) & (k & 1 ? c : ~c);
    return out;
  }
};

/// Of a divisor of zero nothing is said (the result is "unspecified").
template <class T, bool remainder>
void divide(Warp& w, const Inst& inst, Lanes on) {
  uint64_t* d = w.to(inst.to[0]);
  const uint64_t *x = w.from(inst.from[0]), *y = w.from(inst.from[1]);
  for_lanes(on, [&](unsigned l) {
    const T a = get<T>(x, l), b = get<T>(y, l);
    if (b == 0) w.fault(Fault::launch_failed, inst, l, "a division by zero");
    const bool overflows = std::is_signed_v<T> && b == T(-1);
    put<T>(d, l, remainder ? (overflows ? T(0) : T(a % b)) : overflows ? minus(T(0), a) : T(a / b));
  });
}

// ---- decoding

constexpr Type u32{Type::unsigned_, 32}, b32{Type::bits, 32};

bool is_integer(Type t) {
  return (t.kind == Type::signed_ || t.kind == Type::unsigned_) && t.width >= 16;
}
bool is_signed(Type t) { return t.kind == Type::signed_ && t.width >= 16; }
bool is_bits(Type t) { return t.kind == Type::bits && t.width >= 16; }
bool is_wide_integer(Type t) { return is_integer(t) && t.width >= 32; }
bool is_wide_bits(Type t) { return is_bits(t) && t.width >= 32; }

Type take(Words& words, bool (*allowed)(Type)) {
  const Type t = words.take_type();
  if (!allowed(t)) throw words.refused(name_of(t) + " is no type of");
  return t;
}

/// F<T> of two, or one, values of one type.
template <template <class> class F>
Handler of_two(Decoder& d, Words& words, bool (*allowed)(Type)) {
  const Type t = take(words, allowed);
  operands_of_type(d, words, t, 2);
  return for_integer(t, []<class T> { return Handler(&map<F<T>, T, T, T>); });
}
template <template <class> class F>
Handler of_one(Decoder& d, Words& words, bool (*allowed)(Type)) {
  const Type t = take(words, allowed);
  operands_of_type(d, words, t, 1);
  return for_integer(t, []<class T> { return Handler(&map<F<T>, T, T>); });
}

template <template <class> class F>
Handler sum(Decoder& d, Words& words) {
  d.inst().saturate = words.take("sat");
  const Type t = take(words, is_integer);
  if (d.inst().saturate && t != Type{Type::signed_, 32}) throw words.refused("only s32 saturates:");
  operands_of_type(d, words, t, 2);
  return for_integer(t, []<class T> { return Handler(&map<F<T>, T, T, T>); });
}

Handler product(Decoder& d, Words& words) {
  const bool adds = words.first() == "mad";
  const char* const parts[] = {"lo", "hi", "wide"};
  const int part = words.take_one_of(parts);
  const Type t = take(words, is_integer);
  if (part < 0 || (part == 2 && t.width == 64)) throw words.refused("an unknown product,");
  words.finish(adds ? 4 : 3);
  const Type result = part == 2 ? Type{t.kind, uint16_t(2 * t.width)} : t;
  d.to(0, 0, result);
  d.from(0, 1, t);
  d.from(1, 2, t);
  if (adds) d.from(2, 3, result);
  return for_integer(t, [&]<class T>() -> Handler {
    if constexpr (sizeof(T) < 8) {
      if (part == 2)
        return adds ? Handler(&map<WideProductSum<T>, Wide<T>, T, T, Wide<T>>)
                    : Handler(&map<WideProduct<T>, Wide<T>, T, T>);
    }
    if (part == 0)
      return adds ? Handler(&map<LowProductSum<T>, T, T, T, T>)
                  : Handler(&map<LowProduct<T>, T, T, T>);
    return adds ? Handler(&map<HighProductSum<T>, T, T, T, T>)
                : Handler(&map<HighProduct<T>, T, T, T>);
  });
}

template <bool remainder>
Handler quotient(Decoder& d, Words& words) {
  const Type t = take(words, is_integer);
  operands_of_type(d, words, t, 2);
  return for_integer(t, []<class T> { return Handler(&divide<T, remainder>); });
}

template <template <class> class F>
Handler shift(Decoder& d, Words& words, bool (*allowed)(Type)) {
  const Type t = take(words, allowed);
  words.finish(3);
  d.to(0, 0, t);
  d.from(0, 1, t);
  d.from(1, 2, u32);
  return for_integer(t, []<class T> { return Handler(&map<F<T>, T, T, uint32_t>); });
}
bool shifts_right(Type t) { return is_integer(t) || is_bits(t); }

/// A count of bits is a u32.
template <template <class> class F>
Handler count(Decoder& d, Words& words, bool (*allowed)(Type)) {
  const Type t = take(words, allowed);
  words.finish(2);
  d.to(0, 0, u32);
  d.from(0, 1, t);
  return for_integer(t, []<class T>() -> Handler {
    using B = std::conditional_t<std::is_same_v<F<T>, FindBit<T>>, T, Unsigned<T>>;
    return &map<F<B>, uint32_t, B>;
  });
}

Handler find_bit(Decoder& d, Words& words) {
  d.inst().operation = words.take("shiftamt");
  return count<FindBit>(d, words, is_wide_integer);
}

Handler extract(Decoder& d, Words& words) {
  const Type t = take(words, is_wide_integer);
  words.finish(4);
  d.to(0, 0, t);
  d.from(0, 1, t);
  for (size_t k = 1; k < 3; k++) d.from(k, k + 1, u32);
  return for_integer(
      t, []<class T> { return Handler(&map<ExtractField<T>, T, T, uint32_t, uint32_t>); });
}

Handler insert(Decoder& d, Words& words) {
  const Type t = take(words, is_wide_bits);
  words.finish(5);
  d.to(0, 0, t);
  for (size_t k = 0; k < 2; k++) d.from(k, k + 1, t);
  for (size_t k = 2; k < 4; k++) d.from(k, k + 1, u32);
  return for_integer(
      t, []<class T> { return Handler(&map<InsertField<T>, T, T, T, uint32_t, uint32_t>); });
}

template <class F>
Handler of_three_words(Decoder& d, Words& words) {
  if (words.take_type() != b32) throw words.refused("only b32 is known in");
  operands_of_type(d, words, b32, 3);
  return &map<F, uint32_t, uint32_t, uint32_t, uint32_t>;
}

Handler funnel(Decoder& d, Words& words) {
  uint8_t how = 0;
  if (words.take("l"))
    how = Funnel::left;
  else if (!words.take("r"))
    throw words.refused("no direction in");
  if (words.take("wrap"))
    how |= Funnel::wraps;
  else if (!words.take("clamp"))
    throw words.refused("neither wrap nor clamp in");
  d.inst().operation = how;
  return of_three_words<Funnel>(d, words);
}

Handler logic3(Decoder& d, Words& words) {
  if (words.take_type() != b32) throw words.refused("only b32 is known in");
  words.finish(5);
  d.to(0, 0, b32);
  for (size_t k = 0; k < 3; k++) d.from(k, k + 1, b32);
  if (d.operand(4).kind != Operand::number) throw words.refused("no table in");
  d.inst().operation = uint8_t(d.operand(4).value);
  return &map<Logic3, uint32_t, uint32_t, uint32_t, uint32_t>;
}

}  // namespace

namespace {
using Make = Handler (*)(Decoder&, Words&);
const std::map<std::string, Make, std::less<>> known = {
    {"add", sum<Add>},
    {"sub", sum<Sub>},
    {"mul", product},
    {"mad", product},
    {"div", quotient<false>},
    {"rem", quotient<true>},
    {"min", [](Decoder& d, Words& w) { return of_two<Min>(d, w, is_integer); }},
    {"max", [](Decoder& d, Words& w) { return of_two<Max>(d, w, is_integer); }},
    {"neg", [](Decoder& d, Words& w) { return of_one<Negative>(d, w, is_signed); }},
    {"abs", [](Decoder& d, Words& w) { return of_one<Absolute>(d, w, is_signed); }},
    {"and", [](Decoder& d, Words& w) { return of_two<And>(d, w, is_bits); }},
    {"or", [](Decoder& d, Words& w) { return of_two<Or>(d, w, is_bits); }},
    {"xor", [](Decoder& d, Words& w) { return of_two<Xor>(d, w, is_bits); }},
    {"not", [](Decoder& d, Words& w) { return of_one<Not>(d, w, is_bits); }},
    {"cnot", [](Decoder& d, Words& w) { return of_one<IsZero>(d, w, is_bits); }},
    {"shl", [](Decoder& d, Words& w) { return shift<ShiftLeft>(d, w, is_bits); }},
    {"shr", [](Decoder& d, Words& w) { return shift<ShiftRight>(d, w, shifts_right); }},
    {"popc", [](Decoder& d, Words& w) { return count<Population>(d, w, is_wide_bits); }},
    {"clz", [](Decoder& d, Words& w) { return count<LeadingZeros>(d, w, is_wide_bits); }},
    {"bfind", find_bit},
    {"brev", [](Decoder& d, Words& w) { return of_one<Reverse>(d, w, is_wide_bits); }},
    {"bfe", extract},
    {"bfi", insert},
    {"prmt", of_three_words<Permute>},
    {"shf", funnel},
    {"lop3", logic3}};
}  // namespace

void decode_integers(Decoder& d) {
  Words words = d.words();
  auto it = known.find(words.first());
  if (it == known.end()) throw d.refused("no integers are known to");
  d.inst().counted = Class::integer;
  d.inst().run = it->second(d, words);
}

}  // namespace quern::ptx

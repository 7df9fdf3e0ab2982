// Between registers and spaces: mov, cvta; predicates: setp, selp and their logic.
#include "tests/gpu/ptx/arithmetic.h"
#include "tests/gpu/ptx/conversions.h"

namespace quern::ptx {

namespace {

constexpr Type b64{Type::bits, 64};

// ---- mov

void copy(Warp& w, const Inst& inst, Lanes on) {
  uint64_t* d = w.to(inst.to[0]);
  const uint64_t* s = w.from(inst.from[0]);
  for_lanes(on, [&](unsigned l) { d[l] = s[l]; });
}
/// {…} into one register, the first element lowest.
void pack(Warp& w, const Inst& inst, Lanes on) {
  uint64_t* d = w.to(inst.to[0]);
  const unsigned width = inst.type.width;
  for_lanes(on, [&](unsigned l) {
    uint64_t all = 0;
    for (unsigned k = 0; k < inst.count; k++) {
      const uint64_t part = w.from(inst.from[k])[l] & ((1ull << width) - 1);
      all |= part << width * k;
    }
    d[l] = all;
  });
}
void unpack(Warp& w, const Inst& inst, Lanes on) {
  const unsigned width = inst.type.width;
  for_lanes(on, [&](unsigned l) {
    const uint64_t all = w.from(inst.from[0])[l];
    for (unsigned k = 0; k < inst.count; k++)
      if (inst.to[k] >= 0) w.to(inst.to[k])[l] = all >> width * k & ((1ull << width) - 1);
  });
}
/// inst.operation: whether true.
void constant_predicate(Warp& w, const Inst& inst, Lanes on) {
  w.set_predicate(inst.to[0], on, inst.operation ? all_lanes : 0);
}
void copy_predicate(Warp& w, const Inst& inst, Lanes on) {
  w.set_predicate(inst.to[0], on, w.predicate(inst.from[0]));
}

void decode_mov(Decoder& d) {
  Words words = d.words();
  Inst& inst = d.inst();
  const Type t = words.take_type();
  words.finish(2);
  inst.counted = Class::move;
  if (t.kind == Type::predicate) {
    inst.to[0] = d.predicate(0);
    if (d.operand(1).kind == Operand::number) {
      inst.operation = d.operand(1).value != 0;
      inst.run = constant_predicate;
      return;
    }
    inst.from[0] = d.predicate(1);
    inst.run = copy_predicate;
    return;
  }
  const Operand &to = d.operand(0), &from = d.operand(1);
  if (to.kind != Operand::vector && from.kind != Operand::vector) {
    d.to(0, 0, t);
    d.from(0, 1, t);
    inst.run = copy;
    return;
  }
  const Operand& parts = to.kind == Operand::vector ? to : from;
  const size_t count = parts.elements.size();
  if ((count != 2 && count != 4) || t.width / count < 8) throw d.refused("no such vector in");
  const Type element{Type::bits, uint16_t(t.width / count)};
  inst.type = element;
  inst.count = uint8_t(count);
  if (&parts == &to) {
    for (size_t k = 0; k < count; k++) d.to(k, parts.elements[k], element);
    d.from(0, 1, t);
    inst.run = unpack;
  } else {
    d.to(0, 0, t);
    for (size_t k = 0; k < count; k++) d.from(k, parts.elements[k], element);
    inst.run = pack;
  }
}

// ---- cvta

uint64_t window_of(Space s) {
  switch (s) {
    case Space::local: return local_window;
    case Space::shared: return shared_window;
    case Space::constant: return constant_window;
    default: return 0;
  }
}
void to_generic(Warp& w, const Inst& inst, Lanes on) {
  uint64_t* d = w.to(inst.to[0]);
  const uint64_t* s = w.from(inst.from[0]);
  for_lanes(on, [&](unsigned l) { d[l] = s[l] + uint64_t(inst.offset); });
}
void from_generic(Warp& w, const Inst& inst, Lanes on) {
  uint64_t* d = w.to(inst.to[0]);
  const uint64_t* s = w.from(inst.from[0]);
  for_lanes(on, [&](unsigned l) {
    uint64_t address = s[l];
    if (Warp::space_of_generic(address) != inst.space)
      w.fault(Fault::illegal_address, inst, l, "an address of another space");
    d[l] = address;
  });
}

void decode_cvta(Decoder& d) {
  Words words = d.words();
  Inst& inst = d.inst();
  const bool narrows = words.take("to");
  const char* const spaces[] = {"global", "shared", "local", "const"};
  const Space known[] = {Space::global, Space::shared, Space::local, Space::constant};
  const int space = words.take_one_of(spaces);
  if (space < 0) throw words.refused("no space in");
  if (words.take_type() != Type{Type::unsigned_, 64})
    throw words.refused("addresses are u64, not in");
  words.finish(2);
  d.to(0, 0, b64);
  d.from(0, 1, b64);
  inst.space = known[space];
  inst.offset = int64_t(window_of(inst.space));
  inst.counted = Class::move;
  inst.run = narrows ? from_generic : to_generic;
}

// ---- setp

enum Comparison : uint8_t { eq, ne, lt, le, gt, ge, num, nan_, unordered = 16 };

/// The number in inst.operation; `unordered` says what a NaN gives.
template <class T>
Lanes compared(Warp& w, const Inst& inst, Lanes on) {
  const uint64_t *a = w.from(inst.from[0]), *b = w.from(inst.from[1]);
  auto all = [&](auto test) {
    Lanes out = 0;
    for_lanes(on, [&](unsigned l) { out |= Lanes(test(get<T>(a, l), get<T>(b, l))) << l; });
    return out;
  };
  Lanes is = 0;
  switch (inst.operation & 15) {
    case eq: is = all([](T x, T y) { return x == y; }); break;
    case ne: is = all([](T x, T y) { return x < y || x > y; }); break;
    case lt: is = all([](T x, T y) { return x < y; }); break;
    case le: is = all([](T x, T y) { return x <= y; }); break;
    case gt: is = all([](T x, T y) { return x > y; }); break;
    case ge: is = all([](T x, T y) { return x >= y; }); break;
    case num: is = all([](T x, T y) { return x == x && y == y; }); break;
    default: is = all([](T x, T y) { return x != x || y != y; }); break;
  }
  if (inst.operation & unordered) is |= all([](T x, T y) { return x != x || y != y; });
  return is;
}

/// to[1]: the opposite, if not -1. guard-like third operand: from[2] is a predicate, or -1.
template <class T>
void set_predicate(Warp& w, const Inst& inst, Lanes on) {
  const Lanes is = compared<T>(w, inst, on);
  Lanes yes = is, no = ~is;
  if (inst.count > 1) {
    Lanes c = w.predicate(inst.from[2]);
    if (inst.saturate) c = ~c;
    auto join = [&](Lanes v) { return inst.count == 2 ? v & c : inst.count == 3 ? v | c : v ^ c; };
    yes = join(yes);
    no = join(no);
  }
  if (inst.to[0] >= 0) w.set_predicate(inst.to[0], on, yes);
  if (inst.to[1] >= 0) w.set_predicate(inst.to[1], on, no);
}

uint8_t comparison(Words& words, Type& t) {
  const char* const names[] = {"eq", "ne", "lt", "le", "gt", "ge", "num", "nan"};
  const char* const unsigned_names[] = {"lo", "ls", "hi", "hs"};
  const char* const unordered_names[] = {"equ", "neu", "ltu", "leu", "gtu", "geu"};
  int operation = words.take_one_of(names);
  bool of_unsigned = false, of_float = operation == num || operation == nan_;
  if (operation < 0 && (operation = words.take_one_of(unsigned_names)) >= 0) {
    of_unsigned = true;
    operation += lt;
  }
  if (operation < 0 && (operation = words.take_one_of(unordered_names)) >= 0) {
    of_float = true;
    operation |= unordered;
  }
  if (operation < 0) throw words.refused("no comparison in");
  Words ahead = words;
  for (const char* word : {"and", "or", "xor", "ftz"}) ahead.take(word);
  t = ahead.take_type();
  if (of_float && t.kind != Type::floating) throw words.refused("a comparison of floats in");
  if (of_unsigned && t.kind != Type::unsigned_)
    throw words.refused("a comparison of unsigned numbers in");
  if (t.kind == Type::bits && operation > ne) throw words.refused("bits have no order, in");
  return uint8_t(operation);
}

Handler setter(Type t) {
  if (t.kind == Type::floating)
    return t.width == 32   ? &set_predicate<float>
           : t.width == 64 ? &set_predicate<double>
                           : &set_predicate<_Float16>;
  return for_integer(t, []<class T> { return Handler(&set_predicate<T>); });
}

void decode_setp(Decoder& d) {
  Words words = d.words();
  Inst& inst = d.inst();
  Type t;
  inst.operation = comparison(words, t);
  const char* const joins[] = {"and", "or", "xor"};
  inst.count = uint8_t(2 + words.take_one_of(joins));
  if (words.take("ftz")) throw words.refused("ftz is not known in");
  words.take_type();
  words.finish(inst.count > 1 ? 4 : 3);
  const Operand& to = d.operand(0);
  if (to.name != "_") inst.to[0] = d.predicate(to.name);
  if (!to.second.empty()) inst.to[1] = d.predicate(to.second);
  d.from(0, 1, t);
  d.from(1, 2, t);
  if (inst.count > 1) {
    inst.from[2] = d.predicate(3, true);
    inst.saturate = d.operand(3).negated;
  }
  inst.counted = Class::compare;
  inst.run = setter(t);
}

// ---- selp and logic

void select(Warp& w, const Inst& inst, Lanes on) {
  uint64_t* d = w.to(inst.to[0]);
  const uint64_t *a = w.from(inst.from[0]), *b = w.from(inst.from[1]);
  const Lanes p = w.predicate(inst.from[2]);
  for_lanes(on, [&](unsigned l) { d[l] = p >> l & 1 ? a[l] : b[l]; });
}
void decode_selp(Decoder& d) {
  Words words = d.words();
  const Type t = words.take_type();
  words.finish(4);
  d.to(0, 0, t);
  d.from(0, 1, t);
  d.from(1, 2, t);
  d.inst().from[2] = d.predicate(3);
  d.inst().counted = Class::compare;
  d.inst().run = select;
}

template <class F>
void combine(Warp& w, const Inst& inst, Lanes on) {
  w.set_predicate(inst.to[0], on, F()(w.predicate(inst.from[0]), w.predicate(inst.from[1])));
}
void complement(Warp& w, const Inst& inst, Lanes on) {
  w.set_predicate(inst.to[0], on, ~w.predicate(inst.from[0]));
}

void decode_logic(Decoder& d) {
  const Statement& s = d.statement();
  if (s.words.back() != "pred") return decode_integers(d);
  Words words = d.words();
  words.take_type();
  Inst& inst = d.inst();
  const std::string& name = words.first();
  words.finish(name == "not" ? 2 : 3);
  inst.counted = Class::compare;
  inst.to[0] = d.predicate(0);
  inst.from[0] = d.predicate(1);
  if (name == "not") {
    inst.run = complement;
    return;
  }
  inst.from[1] = d.predicate(2);
  inst.run = name == "and"  ? &combine<std::bit_and<Lanes>>
             : name == "or" ? &combine<std::bit_or<Lanes>>
                            : &combine<std::bit_xor<Lanes>>;
}

}  // namespace

const Family& movement_family() {
  static const Family family = {
      {"mov", decode_mov}, {"cvta", decode_cvta}, {"cvt", decode_conversion}};
  return family;
}

const Family& comparison_family() {
  static const Family family = {{"setp", decode_setp}, {"selp", decode_selp},
                                {"and", decode_logic}, {"or", decode_logic},
                                {"xor", decode_logic}, {"not", decode_logic}};
  return family;
}

}  // namespace quern::ptx

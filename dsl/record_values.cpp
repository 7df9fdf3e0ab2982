// Values, variables and storage: quern/detail/record.h on the recording of this thread.
#include <cmath>
#include <limits>

#include "dsl/recording.h"

namespace quern::detail {

static_assert(int(Op::rmw) == int(ir::Op::rmw) && int(Op::convert) == int(ir::Op::convert));
static_assert(int(Scalar::b1) == int(ir::Type::b1) && int(Scalar::i8) == int(ir::Type::i8) &&
              int(Scalar::u8) == int(ir::Type::u8) && int(Scalar::f64) == int(ir::Type::f64));
static_assert(int(Atomic::add) == int(ir::AtomicOp::add) &&
              int(Atomic::load) == int(ir::AtomicOp::load));

namespace {

constexpr ir::Op op_of(Op op) { return ir::Op(uint8_t(op)); }

std::string shortest(double v) {
  char text[32];
  for (int digits = 6; digits <= 17; digits++) {
    std::snprintf(text, sizeof text, "%.*g", digits, v);
    if (std::strtod(text, nullptr) == v) break;
  }
  return text;
}

Id refuse(Recording& r, Loc loc, const std::string& value, ir::Type type) {
  r.fail(loc, "the host value " + value + " does not fit " + std::string(ir::name(type)) +
                  ", the device type it meets; cast one side");
  return {};
}

Id make_constant(Recording& r, ir::Type type, ir::Bits bits, Loc loc) {
  return r.add(r.at(loc).constant(type, bits));
}

/// The scalar operation of an atomic or a reduction, for code that runs it plainly.
ir::Op plain(ir::AtomicOp op, ir::Type type) {
  switch (op) {
    case ir::AtomicOp::add: return ir::Op::add;
    case ir::AtomicOp::mul: return ir::Op::mul;
    case ir::AtomicOp::min: return ir::is_float(type) ? ir::Op::fmin : ir::Op::min;
    case ir::AtomicOp::max: return ir::is_float(type) ? ir::Op::fmax : ir::Op::max;
    case ir::AtomicOp::bit_and: return ir::Op::bit_and;
    case ir::AtomicOp::bit_or: return ir::Op::bit_or;
    case ir::AtomicOp::bit_xor: return ir::Op::bit_xor;
    default: throw InternalError("an atomic without a plain operation updates a variable");
  }
}

void reduce(Recording& r, ir::AtomicOp op, ir::Value* slot, ir::Value* v, Loc loc) {
  Outer& outer = r.outer(slot);
  if (outer.read)
    return r.fail(loc,
                  "a variable that this parallel loop reduces into is read inside the loop (at " +
                      place(outer.read_at) + ")");
  if (outer.reduced && *outer.reduced != op)
    return r.fail(loc, "a parallel loop reduces into one variable with two operators: " +
                           std::string(ir::name(*outer.reduced)) + " at " +
                           place(outer.reduced_at) + " and " + std::string(ir::name(op)) + " here");
  if (!outer.reduced) outer.reduced_at = loc.line ? loc : r.last;
  outer.reduced = op;
  ir::Inst* inst = r.at(loc).make(ir::Op::reduce, {}, {slot, v});
  inst->kind = uint8_t(op);
  inst->elem = v->type;
}

/// Shifts of narrow integers count in the promoted type, as in C++.
ir::Value* shifted(ir::Builder& b, ir::Op op, ir::Value* v, ir::Value* count) {
  ir::Type type = v->type;
  if (ir::bit_width(type) >= 32) return b.binary(op, v, count);
  ir::Value* wide = b.convert(v, ir::Type::i32);
  ir::Value* by = b.convert(count, ir::Type::i32);
  return b.convert(b.binary(op, wide, by), type);
}

}  // namespace

void fail(Loc loc, const char* message) { recording(loc).fail(loc, message); }

// ---- values

Id constant(Scalar scalar, int64_t v, Loc loc) {
  Recording& r = recording(loc);
  if (r.failed()) return {};
  ir::Type type = type_of_scalar(scalar);
  if (ir::is_float(type)) return make_constant(r, type, ir::bits_of_real(double(v), type), loc);
  bool fits = type == ir::Type::b1  ? v == 0 || v == 1
              : ir::is_signed(type) ? ir::to_signed(ir::truncate(ir::Bits(v), type), type) == v
                                    : v >= 0 && ir::truncate(ir::Bits(v), type) == ir::Bits(v);
  if (!fits) return refuse(r, loc, std::to_string(v), type);
  return make_constant(r, type, ir::Bits(v), loc);
}

Id constant(Scalar scalar, uint64_t v, Loc loc) {
  if (v <= uint64_t(std::numeric_limits<int64_t>::max())) return constant(scalar, int64_t(v), loc);
  Recording& r = recording(loc);
  if (r.failed()) return {};
  ir::Type type = type_of_scalar(scalar);
  if (ir::is_float(type)) return make_constant(r, type, ir::bits_of_real(double(v), type), loc);
  if (type != ir::Type::u64) return refuse(r, loc, std::to_string(v), type);
  return make_constant(r, type, v, loc);
}

Id constant(Scalar scalar, double v, Loc loc) {
  Recording& r = recording(loc);
  if (r.failed()) return {};
  ir::Type type = type_of_scalar(scalar);
  if (type == ir::Type::f32 && std::isfinite(v) && !std::isfinite(float(v)))
    return refuse(r, loc, shortest(v), type);
  return make_constant(r, type, ir::bits_of_real(v, type), loc);
}

Id convert(Id id, Scalar to, Loc loc) {
  Recording& r = recording(loc);
  ir::Value* v = r.value(id, loc);
  if (!v) return {};
  ir::Type type = type_of_scalar(to);
  return v->type == type ? id : r.add(r.at(loc).convert(v, type));
}

Id bitcast(Id id, Scalar to, Loc loc) {
  Recording& r = recording(loc);
  ir::Value* v = r.value(id, loc);
  return v ? r.add(r.at(loc).bitcast(v, type_of_scalar(to))) : Id{};
}

void binary(Op op, Scalar compute, const Id* a, int a_count, const Id* b, int b_count, Id* out,
            Loc loc) {
  Recording& r = recording(loc);
  ir::Type type = type_of_scalar(compute);
  int n = a_count > b_count ? a_count : b_count;
  ir::Value *x = nullptr, *y = nullptr;
  for (int k = 0; k < n; k++) {
    if (k == 0 || a_count > 1) x = r.value(a[k], loc);
    if (k == 0 || b_count > 1) y = r.value(b[k], loc);
    out[k] = {};
    if (!x || !y) continue;
    ir::Builder& at = r.at(loc);
    x = at.convert(x, type);
    y = at.convert(y, type);
    out[k] = r.add(at.binary(op_of(op), x, y));
  }
}

Id unary(Op op, Id id, Loc loc) {
  Recording& r = recording(loc);
  ir::Value* v = r.value(id, loc);
  return v ? r.add(r.at(loc).unary(op_of(op), v)) : Id{};
}

Id ternary(Op op, Id a, Id b, Id c, Loc loc) {
  Recording& r = recording(loc);
  ir::Value *x = r.value(a, loc), *y = r.value(b, loc), *z = r.value(c, loc);
  if (!x || !y || !z) return {};
  return r.add(op == Op::select ? r.at(loc).select(x, y, z) : r.at(loc).fma(x, y, z));
}

Id random_word(Loc loc, Id first) {
  Recording& r = recording(loc);
  if (r.failed()) return {};
  ir::Value* word = r.at(loc).make(ir::Op::random, {ir::Type::u32}, {})->result();
  if (first.recording) r.effects.emplace(word, r.effects[r.value(first, loc)]);
  return r.add(word);
}

// ---- variables

Id slot(Id init, Loc loc) {
  Recording& r = recording(loc);
  ir::Value* v = r.value(init, loc);
  if (!v) return {};
  ir::Builder& b = r.at(loc);
  ir::Value* s = b.slot(v->type);
  b.put(s, v);
  return r.add(s);
}

Id get(Id id, Loc loc) {
  Recording& r = recording(loc);
  ir::Value* s = r.value(id, loc);
  if (!s) return {};
  if (r.crosses(s)) {
    Outer& outer = r.outer(s);
    if (outer.reduced) {
      r.fail(loc, "a variable that this parallel loop reduces into (at " + place(outer.reduced_at) +
                      ") is read inside the loop");
      return {};
    }
    if (!outer.read) outer.read_at = loc.line ? loc : r.last;
    outer.read = true;
  }
  return r.add(r.at(loc).get(s));
}

void put(Id id, Id v, Loc loc) {
  Recording& r = recording(loc);
  ir::Value *s = r.value(id, loc), *x = r.value(v, loc);
  if (!s || !x) return;
  if (r.crosses(s))
    return r.fail(loc,
                  "a variable declared outside a parallel loop (at " + place(s->inst->loc) +
                      ") is assigned inside it, so iterations race; use +=, atomic_min(v, x), ... "
                      "or declare it inside");
  r.at(loc).put(s, x);
}

void update(Op op, Id id, Id v, Loc loc) {
  Recording& r = recording(loc);
  ir::Value *s = r.value(id, loc), *x = r.value(v, loc);
  if (!s || !x) return;
  ir::Builder& b = r.at(loc);
  if (r.crosses(s)) {
    switch (op) {
      case Op::add: return reduce(r, ir::AtomicOp::add, s, x, loc);
      case Op::sub: return reduce(r, ir::AtomicOp::add, s, b.unary(ir::Op::neg, x), loc);
      case Op::mul: return reduce(r, ir::AtomicOp::mul, s, x, loc);
      case Op::bit_and: return reduce(r, ir::AtomicOp::bit_and, s, x, loc);
      case Op::bit_or: return reduce(r, ir::AtomicOp::bit_or, s, x, loc);
      case Op::bit_xor: return reduce(r, ir::AtomicOp::bit_xor, s, x, loc);
      default:
        return r.fail(loc, "a variable declared outside a parallel loop (at " +
                               place(s->inst->loc) +
                               ") is changed inside it by an operator that is no reduction, so "
                               "iterations race; declare it inside");
    }
  }
  ir::Value* old = b.get(s);
  bool shift = op == Op::shl || op == Op::shr;
  b.put(s, shift ? shifted(b, op_of(op), old, x) : b.binary(op_of(op), old, x));
}

void update(Atomic kind, Id id, Id v, Loc loc) {
  Recording& r = recording(loc);
  ir::Value *s = r.value(id, loc), *x = r.value(v, loc);
  if (!s || !x) return;
  ir::AtomicOp op = ir::AtomicOp(uint8_t(kind));
  if (r.crosses(s)) return reduce(r, op, s, x, loc);
  ir::Builder& b = r.at(loc);
  b.put(s, b.binary(plain(op, x->type), b.get(s), x));
}

// ---- storage

Id element(FieldObject* field, int component, const Id* index, int rank, Loc loc) {
  Recording& r = recording(loc);
  if (r.failed()) return {};
  std::vector<ir::Value*> at;
  for (int k = 0; k < rank; k++) {
    ir::Value* v = r.value(index[k], loc);
    if (!v) return {};
    at.push_back(v);
  }
  auto binding = r.binding(field, loc);
  if (!binding) return {};
  return r.add(
      r.at(loc).load(*binding, uint32_t(component), type_of_scalar(field->type.scalar), at));
}

namespace {
/// The index operands of the read that names an element.
std::vector<ir::Value*> index_of(const ir::Value* read) {
  std::vector<ir::Value*> index;
  for (size_t k = 0; k < read->inst->operand_count(); k++) index.push_back(read->inst->operand(k));
  return index;
}
}  // namespace

void store(Id element, Id v, Loc loc) {
  Recording& r = recording(loc);
  ir::Value *read = r.value(element, loc), *x = r.value(v, loc);
  if (!read || !x) return;
  r.at(loc).store(read->inst->binding(), read->inst->component(), index_of(read), x);
}

Id atomic(Atomic op, Id element, const Id* values, int count, Loc loc) {
  Recording& r = recording(loc);
  ir::Value* read = r.value(element, loc);
  std::vector<ir::Value*> operands;
  for (int k = 0; k < count; k++) operands.push_back(r.value(values[k], loc));
  if (r.failed()) return {};
  ir::Inst* inst = r.at(loc).atomic(ir::AtomicOp(uint8_t(op)), read->inst->binding(),
                                    read->inst->component(), read->type, index_of(read), operands);
  return r.add(inst->result());
}

Id extent(FieldObject* field, int axis, Scalar type, Loc loc) {
  Recording& r = recording(loc);
  if (r.failed()) return {};
  if (axis < 0 || axis >= field->type.rank) {
    r.fail(loc, "dim(" + std::to_string(axis) + ") of a field with " +
                    std::to_string(field->type.rank) + " axes, numbered from 0");
    return {};
  }
  auto binding = r.binding(field, loc);
  if (!binding) return {};
  return r.add(r.at(loc).extent(*binding, uint32_t(axis), type_of_scalar(type)));
}

// ---- effects that reach the host

namespace {
void report(ir::Op op, ir::Site::Kind kind, const char* format, std::vector<ir::Value*> operands,
            size_t first, Loc loc) {
  Recording& r = recording(loc);
  if (r.failed()) return;
  ir::Site site;
  site.kind = kind;
  site.loc = loc.line ? loc : r.last;
  site.text = format;
  for (size_t k = first; k < operands.size(); k++) site.values.push_back(operands[k]->type);
  size_t places = 0;
  for (const char* p = format; *p; p++) {
    if (p[0] == '{' && p[1] == '{')
      p++;
    else if (p[0] == '{' && p[1] == '}')
      places++;
  }
  if (places != site.values.size())
    return r.fail(loc, "the text has " + std::to_string(places) + " places {} for " +
                           std::to_string(site.values.size()) + " values");
  if (places > 8) return r.fail(loc, "print and check take at most 8 values");
  ir::Inst* inst = r.at(loc).make(op, std::span<const ir::Type>(), operands);
  inst->site = r.add_site(std::move(site));
}
}  // namespace

void print(const char* format, const Id* values, int count, Loc loc) {
  Recording& r = recording(loc);
  std::vector<ir::Value*> operands;
  for (int k = 0; k < count; k++) operands.push_back(r.value(values[k], loc));
  report(ir::Op::print, ir::Site::print, format, std::move(operands), 0, loc);
}

void check(Id condition, const char* format, const Id* values, int count, Loc loc) {
  Recording& r = recording(loc);
  std::vector<ir::Value*> operands = {r.value(condition, loc)};
  for (int k = 0; k < count; k++) operands.push_back(r.value(values[k], loc));
  report(ir::Op::check, ir::Site::check, format, std::move(operands), 1, loc);
}

}  // namespace quern::detail

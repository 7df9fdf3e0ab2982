// Values and storage: quern/values/record.h on the recording of this thread.
#include <array>
#include <cmath>
#include <limits>
#include <utility>

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

}  // namespace

void fail(Loc loc, const char* message) { recording(loc).fail(loc, message); }

Placed::Placed(Loc loc) {
  Recording& r = recording(loc);
  if (r.placed.line) return;
  r.placed = loc.line ? loc : r.last;
  recording_ = &r;
}
void Placed::made_of(const Evaluated* operands, int count, Loc loc) {
  if (!recording_) return;
  recording_->in_order({operands, size_t(count)}, loc);
  recording_->placed_of = recording_->joined({operands, size_t(count)});
}
Placed::~Placed() {
  if (!recording_) return;
  recording_->placed = {};
  recording_->placed_of = {};
}

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
  ir::Bits bits = ir::bits_of_real(v, type);
  if (ir::is_float(type) && std::isfinite(v) && !std::isfinite(ir::real_of(bits, type)))
    return refuse(r, loc, shortest(v), type);
  return make_constant(r, type, bits, loc);
}

Id convert(Id id, Scalar to, Loc loc) {
  Recording& r = recording(loc);
  ir::Value* v = r.value(id, loc);
  if (!v) return {};
  ir::Type type = type_of_scalar(to);
  return v->type == type ? id : r.add(r.at(loc).convert(v, type), {id});
}

Id bitcast(Id id, Scalar to, Loc loc) {
  Recording& r = recording(loc);
  ir::Value* v = r.value(id, loc);
  return v ? r.add(r.at(loc).bitcast(v, type_of_scalar(to)), {id}) : Id{};
}

void binary(Op op, Scalar compute, const Id* a, int a_count, const Id* b, int b_count, Id* out,
            Loc loc) {
  Recording& r = recording(loc);
  ir::Type type = type_of_scalar(compute);
  int n = a_count > b_count ? a_count : b_count;
  in_order(std::array{Evaluated{a, a_count}, Evaluated{b, b_count}}.data(), 2, loc);
  ir::Value *x = nullptr, *y = nullptr;
  for (int k = 0; k < n; k++) {
    if (k == 0 || a_count > 1) x = r.value(a[k], loc);
    if (k == 0 || b_count > 1) y = r.value(b[k], loc);
    out[k] = {};
    if (!x || !y) continue;
    ir::Builder& at = r.at(loc);
    x = at.convert(x, type);
    y = at.convert(y, type);
    out[k] = r.add(r.arithmetic(op_of(op), x, y), {a[a_count > 1 ? k : 0], b[b_count > 1 ? k : 0]});
  }
}

void product(Scalar compute, const Id* a, const Id* b, int rows, int inner, int columns, Id* out,
             Loc loc) {
  in_order(std::array{Evaluated{a, rows * inner}, Evaluated{b, inner * columns}}.data(), 2, loc);
  for (int r = 0; r < rows; r++)
    for (int c = 0; c < columns; c++) {
      Id sum;
      for (int k = 0; k < inner; k++) {
        Id term;
        binary(Op::mul, compute, &a[r * inner + k], 1, &b[k * columns + c], 1, &term, loc);
        if (k == 0)
          sum = term;
        else
          binary(Op::add, compute, &sum, 1, &term, 1, &sum, loc);
      }
      out[r * columns + c] = sum;
    }
}

bool reassociation(bool allowed, Loc loc) {
  Recording& r = recording(loc);
  if (allowed && !r.reassociated.line) r.reassociated = loc;
  return std::exchange(r.reassociates, allowed);
}

Id unary(Op op, Id id, Loc loc) {
  Recording& r = recording(loc);
  ir::Value* v = r.value(id, loc);
  return v ? r.add(r.at(loc).unary(op_of(op), v), {id}) : Id{};
}

Id ternary(Op op, Id a, Id b, Id c, Loc loc) {
  Recording& r = recording(loc);
  ir::Value *x = r.value(a, loc), *y = r.value(b, loc), *z = r.value(c, loc);
  if (!x || !y || !z) return {};
  return r.add(op == Op::select ? r.at(loc).select(x, y, z) : r.at(loc).fma(x, y, z), {a, b, c});
}

Id random_word(Loc loc) {
  Recording& r = recording(loc);
  if (r.failed()) return {};
  ir::Value* v = r.at(loc).random();
  const Id call = r.add(v->inst->operand(3));  // its place among effects
  return r.add(v, {call});
}

// ---- components chosen by the device

Id in_range(Id index, int count, Loc loc, const char* what) {
  Recording& r = recording(loc);
  ir::Value* v = r.value(index, loc);
  if (!v || !r.checked) return index;
  ir::Builder& b = r.at(loc);
  ir::Value* low = b.binary(ir::Op::ge, v, b.integer(v->type, 0));
  ir::Value* high = b.binary(ir::Op::lt, v, b.integer(v->type, count));
  Id inside = r.add(b.binary(ir::Op::bit_and, low, high));
  std::string text = std::string("index {} of ") + what + "; there are " + std::to_string(count) +
                     ", numbered from 0";
  Reported reported = {"{}", &index, 1};
  check(inside, text.c_str(), &reported, 1, loc);
  return index;
}

Id row_major(Id row, int columns, Id column, Loc loc) {
  Id width = constant(Scalar::i32, int64_t(columns), loc), out;
  Recording& r = recording(loc);
  ir::Value *x = r.value(row, loc), *y = r.value(column, loc);
  if (!x || !y) return {};
  bool wide = x->type == ir::Type::i64 || y->type == ir::Type::i64;
  Scalar type = wide ? Scalar::i64 : Scalar::i32;
  binary(Op::mul, type, &row, 1, &width, 1, &out, loc);
  binary(Op::add, type, &out, 1, &column, 1, &out, loc);
  return out;
}

Id pick(const Id* parts, int count, bool slots, Id index, Loc loc) {
  auto part = [&](int k) { return slots ? get(parts[k], loc) : parts[k]; };
  Id chosen = part(count - 1);
  Recording& r = recording(loc);
  for (int k = count - 2; k >= 0; k--) {
    ir::Value* at = r.value(index, loc);
    if (!at) return {};
    ir::Builder& b = r.at(loc);
    Id here = r.add(b.binary(ir::Op::eq, at, b.integer(at->type, k)), {index});
    chosen = ternary(Op::select, here, part(k), chosen, loc);
  }
  return chosen;
}

// ---- storage

namespace {
/// An element that is named: none where the recording has failed, or fails here.
struct Place {
  uint32_t binding = 0;
  std::vector<ir::Value*> index;
};
std::optional<Place> place_of(Recording& r, FieldObject* field, const Id* index, int rank,
                              Loc loc) {
  if (r.failed()) return {};
  Place out;
  for (int k = 0; k < rank; k++) {
    ir::Value* v = r.value(index[k], loc);
    if (!v) return {};
    out.index.push_back(v);
  }
  auto binding = r.binding(field, loc);
  if (!binding) return {};
  out.binding = *binding;
  return out;
}
}  // namespace

Id element(FieldObject* field, int component, const Id* index, int rank, Loc loc) {
  Recording& r = recording(loc);
  const std::optional<Place> at = place_of(r, field, index, rank, loc);
  if (!at) return {};
  ir::Value* read = r.at(loc).load(at->binding, uint32_t(component),
                                   scalar_of(field->type, component), at->index);
  Id id = r.add(read);
  for (int k = 0; k < rank; k++) r.derive(id, index[k]);
  return id;
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
  if (read->type == ir::Type::f16)
    return r.fail(loc, "an atomic on f16: atomics take elements of the integer types, f32 and f64"),
           Id{};
  ir::Inst* inst = r.at(loc).atomic(ir::AtomicOp(uint8_t(op)), read->inst->binding(),
                                    read->inst->component(), read->type, index_of(read), operands);
  return r.add(inst->result());
}

Id activity(Activity what, FieldObject* field, const Id* index, int rank, Loc loc) {
  struct Row {
    ir::Op op;
    ir::Type result;
  };
  static constexpr Row rows[] = {{ir::Op::is_active, ir::Type::b1},
                                 {ir::Op::activate, ir::Type::none},
                                 {ir::Op::deactivate, ir::Type::none},
                                 {ir::Op::length, ir::Type::i64},
                                 {ir::Op::append, ir::Type::i64}};
  const auto& [op, result] = rows[size_t(what)];
  Recording& r = recording(loc);
  const std::optional<Place> at = place_of(r, field, index, rank, loc);
  if (!at) return {};
  const size_t results = result == ir::Type::none ? 0 : 1;
  ir::Inst* inst = r.at(loc).make(op, std::span(&result, results), at->index);
  inst->part = {at->binding, 0};
  return results ? r.add(inst->result()) : Id{};
}

void empty_box(FieldObject* field, const Id* index, int rank, Id* answers, Loc loc) {
  Recording& r = recording(loc);
  const std::optional<Place> at = place_of(r, field, index, rank, loc);
  if (!at) return;
  std::vector<ir::Type> types(1 + 2 * size_t(rank), ir::Type::i32);
  types[0] = ir::Type::b1;
  ir::Inst* inst = r.at(loc).make(ir::Op::empty_box, types, at->index);
  inst->part = {at->binding, 0};
  for (size_t k = 0; k < types.size(); k++) answers[k] = r.add(inst->result(k));
}

namespace {
/// A value that the builder makes of a field's axis.
template <class Make>
Id of_axis(FieldObject* field, int axis, const char* what, Loc loc, Make make) {
  Recording& r = recording(loc);
  if (r.failed()) return {};
  if (axis < 0 || axis >= field->type.rank) {
    r.fail(loc, what + ("(" + std::to_string(axis)) + ") of a field with " +
                    std::to_string(field->type.rank) + " axes, numbered from 0");
    return {};
  }
  auto binding = r.binding(field, loc);
  if (!binding) return {};
  return r.add(make(r.at(loc), *binding, uint32_t(axis)));
}
}  // namespace

Id extent(FieldObject* field, int axis, Scalar type, Loc loc) {
  return of_axis(field, axis, "dim", loc, [&](ir::Builder& b, uint32_t binding, uint32_t k) {
    return b.extent(binding, k, type_of_scalar(type));
  });
}

Id first_index(FieldObject* field, int axis, Scalar type, Loc loc) {
  return of_axis(field, axis, "first", loc, [&](ir::Builder& b, uint32_t binding, uint32_t k) {
    return b.first(binding, k, type_of_scalar(type));
  });
}

}  // namespace quern::detail

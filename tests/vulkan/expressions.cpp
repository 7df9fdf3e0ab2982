// Random expressions over loaded values and constants against ir::evaluate: what a driver's own
// optimiser makes of combinations that single operations do not show.
#include <cmath>
#include <random>

#include "quern/ir/abi.h"
#include "quern/ir/builder.h"
#include "tests/catch.h"
#include "tests/vulkan/support.h"

using namespace quern;
using namespace quern::ir;
using test::Buffer;
using test::Program;

namespace {

constexpr Type scalars[] = {Type::b1,  Type::i8,  Type::i16, Type::i32, Type::i64, Type::u8,
                            Type::u16, Type::u32, Type::u64, Type::f32, Type::f64};
constexpr size_t lanes = 64, width = 8;  ///< iterations; loaded values per type

/// Expressions of one task; every value is kept with its bits in each iteration.
class Expressions {
 public:
  explicit Expressions(uint64_t seed) : random_(seed), b_(kernel_) {
    kernel_.level = Level::lowered;
    kernel_.modes.strict = true;
    task_.kind = Task::range;
    task_.walk = Task::element;
    task_.body = b_.make_region();
    b_.at_end(task_.body);
    in_ = b_.arg(abi::head_bytes, Type::address);
    out_ = b_.arg(abi::head_bytes + 8, Type::address);
    Inst* loop = b_.loop(b_.builtin(Builtin::thread), b_.builtin(Builtin::end),
                         b_.builtin(Builtin::threads));
    b_.yield();
    b_.at_end(loop->region(0));
    bytes_ = b_.mul(loop->region(0)->arg(0), b_.integer(Type::i64, 8));
    for (Type t : scalars) {
      std::vector<Bits> edges = test::interesting(t);
      for (size_t k = 0; k < width; k++) {
        Known v{b_.read(place(in_, input_.size() / lanes), t, 1), {}};
        for (size_t n = 0; n < lanes; n++) v.bits.push_back(edges[random_() % edges.size()]);
        input_.insert(input_.end(), v.bits.begin(), v.bits.end());
        values_.push_back(v);
      }
      for (size_t k = 0; k < width; k++) {
        Bits c = edges[random_() % edges.size()];
        values_.push_back({b_.constant(t, c), std::vector<Bits>(lanes, c)});
      }
    }
  }

  void grow(size_t count) {
    for (size_t tries = 0; results_.size() < count && tries < 100 * count; tries++) add();
  }

  /// Number of wrong values; the first is described in `first`.
  size_t run(std::string& first) {
    for (size_t r = 0; r < results_.size(); r++) {
      Value* v = values_[results_[r]].value;
      b_.write(place(out_, r), v, 2);
    }
    b_.yield();
    kernel_.tasks.push_back(task_);
    Buffer in(input_), out(results_.size() * lanes * 8);
    Program(kernel_).entry(0, in).entry(1, out).run(0, lanes);
    std::vector<Bits> got = out.read<Bits>();
    size_t wrong = 0;
    for (size_t r = 0; r < results_.size(); r++) {
      const Known& v = values_[results_[r]];
      Type t = v.value->type;
      for (size_t n = 0; n < lanes; n++) {
        Bits bits = truncate(got[r * lanes + n], t == Type::b1 ? Type::u8 : t);
        if (test::same(t, bits, v.bits[n])) continue;
        if (wrong++ == 0)
          first = print(v.value->inst) + " is " + std::to_string(bits) + " instead of " +
                  std::to_string(v.bits[n]) + " in\n" + print(kernel_);
        break;
      }
    }
    return wrong;
  }

 private:
  struct Known {
    Value* value;
    std::vector<Bits> bits;
  };

  Value* place(Value* base, size_t column) {
    return b_.offset(b_.offset(base, bytes_), b_.integer(Type::i64, int64_t(8 * column * lanes)));
  }

  /// A value of type `t`; half of the time a new one, so that expressions get deep.
  const Known* pick(Type t) {
    for (int tries = 0; tries < 200; tries++) {
      size_t k = random_() % 2
                     ? random_() % values_.size()
                     : values_.size() - 1 - random_() % std::min<size_t>(60, values_.size());
      if (values_[k].value->type == t) return &values_[k];
    }
    return nullptr;
  }

  void add() {
    Op op = Op(random_() % op_count);
    const OpInfo& row = info(op);
    if (row.library || row.rule == OperandRule::special || op == Op::fma) return;
    Type t = scalars[random_() % std::size(scalars)];
    if ((t == Type::b1 && !row.bools) || (is_int(t) && !row.ints) || (is_float(t) && !row.floats))
      return;
    Type result = t;
    if (row.rule == OperandRule::compare) result = Type::b1;
    if (row.rule == OperandRule::convert || row.rule == OperandRule::bitcast)
      result = scalars[random_() % std::size(scalars)];
    if (row.rule == OperandRule::bitcast &&
        (t == Type::b1 || result == Type::b1 || bit_width(t) != bit_width(result)))
      return;
    std::vector<const Known*> operands;
    for (int k = 0; k < row.operands; k++)
      operands.push_back(pick(row.rule == OperandRule::pick && k == 0 ? Type::b1 : t));
    Known v{nullptr, {}};
    std::vector<Value*> args;
    for (const Known* o : operands) {
      if (!o) return;
      args.push_back(o->value);
    }
    for (size_t n = 0; n < lanes; n++) {
      std::vector<Bits> bits;
      for (const Known* o : operands) bits.push_back(o->bits[n]);
      Bits value = 0;
      REQUIRE(evaluate(op, t, result, bits, value));
      // What a NaN's bits are is open: no integer may be made of them.
      if ((op == Op::bitcast || op == Op::copysign) && is_nan(t, bits.back())) return;
      v.bits.push_back(value);
    }
    v.value = b_.make(op, std::span(&result, 1), args)->result();
    results_.push_back(values_.size());
    values_.push_back(v);
  }

  static bool is_nan(Type t, Bits v) {
    return t == Type::f32 ? std::isnan(f32_of(v)) : t == Type::f64 && std::isnan(f64_of(v));
  }

  std::mt19937_64 random_;
  Kernel kernel_;
  Builder b_;
  Task task_;
  Value *in_ = nullptr, *out_ = nullptr, *bytes_ = nullptr;
  std::vector<Bits> input_;
  std::vector<Known> values_;
  std::vector<size_t> results_;
};

}  // namespace

namespace {

/// Every row of two operands of type `t` with one of them a constant, the other converted from
/// `from`: wrong results as text.
std::string with_constants(Type from, Type t) {
  std::vector<Bits> inputs = test::interesting(from), edges = test::interesting(t);
  size_t count = inputs.size();
  std::vector<Bits> constants = {0, edges[1], edges[2], edges.back()};
  if (is_float(t))
    constants = {0, bits_of_real(-0.0, t), bits_of_real(1, t), bits_of_real(INFINITY, t),
                 bits_of_real(NAN, t)};
  Kernel kernel;
  kernel.level = Level::lowered;
  kernel.modes.strict = true;
  Builder b(kernel);
  Task task;
  task.kind = Task::range;
  task.walk = Task::element;
  task.body = b.make_region();
  b.at_end(task.body);
  Value* in = b.arg(abi::head_bytes, Type::address);
  Value* out = b.arg(abi::head_bytes + 8, Type::address);
  Inst* loop =
      b.loop(b.builtin(Builtin::thread), b.builtin(Builtin::end), b.builtin(Builtin::threads));
  b.yield();
  b.at_end(loop->region(0));
  Value* bytes = b.mul(loop->region(0)->arg(0), b.integer(Type::i64, 8));
  auto place = [&](Value* base, size_t column) {
    return b.offset(b.offset(base, bytes), b.integer(Type::i64, int64_t(8 * column * count)));
  };
  Value* x = b.convert(b.read(place(in, 0), from, 1), t);
  struct Row {
    Op op;
    Bits constant;
    bool first;
    Type result;
  };
  std::vector<Row> rows;
  for (int k = 0; k < op_count; k++) {
    const OpInfo& row = info(Op(k));
    bool same = row.rule == OperandRule::same, compare = row.rule == OperandRule::compare;
    if (row.operands != 2 || row.library || !(same || compare)) continue;
    if ((is_int(t) && !row.ints) || (is_float(t) && !row.floats)) continue;
    for (Bits c : constants)
      for (bool first : {false, true}) {
        Row r{Op(k), c, first, compare ? Type::b1 : t};
        Value* v = b.constant(t, c);
        Value* result = first ? b.binary(r.op, v, x) : b.binary(r.op, x, v);
        b.write(place(out, rows.size()), result, 2);
        rows.push_back(r);
      }
  }
  b.yield();
  kernel.tasks.push_back(task);
  Buffer values(inputs), results(rows.size() * count * 8);
  Program(kernel).entry(0, values).entry(1, results).run(0, count);
  std::vector<Bits> got = results.read<Bits>();
  std::string wrong;
  for (size_t r = 0; r < rows.size(); r++)
    for (size_t n = 0; n < count; n++) {
      Bits value = inputs[n], want = 0;
      if (from != t) REQUIRE(evaluate(Op::convert, from, t, {&inputs[n], 1}, value));
      Bits args[] = {value, rows[r].constant};
      if (rows[r].first) std::swap(args[0], args[1]);
      REQUIRE(evaluate(rows[r].op, t, rows[r].result, args, want));
      Type result = rows[r].result;
      Bits is = truncate(got[r * count + n], result == Type::b1 ? Type::u8 : result);
      if (rows[r].op == Op::copysign &&
          std::isnan(t == Type::f32 ? f32_of(args[1]) : f64_of(args[1])))
        continue;  // the sign of a NaN is open
      if (!test::same(result, is, want)) {
        wrong += std::string(info(rows[r].op).name) + " of " + std::to_string(args[0]) + ", " +
                 std::to_string(args[1]) + " is " + std::to_string(is) + "\n";
        break;
      }
    }
  return wrong;
}

}  // namespace

TEST_CASE("constant operands change nothing") {
  for (Type t : scalars) {
    if (t == Type::b1) continue;
    INFO(name(t));
    CHECK(with_constants(t, t) == "");
  }
  for (auto [from, to] : {std::pair{Type::i32, Type::i64},
                          {Type::u32, Type::i64},
                          {Type::u32, Type::u64},
                          {Type::i16, Type::i32},
                          {Type::i64, Type::i32},
                          {Type::f32, Type::f64},
                          {Type::i32, Type::f32}}) {
    INFO(name(from) << " to " << name(to));
    CHECK(with_constants(from, to) == "");
  }
}

TEST_CASE("random expressions equal their definition") {
  for (uint64_t seed = 1; seed <= 8; seed++) {
    Expressions e(seed);
    e.grow(100);
    std::string first;
    size_t wrong = e.run(first);
    INFO("seed " << seed << ": " << first);
    CHECK(wrong == 0);
  }
}

// Random expressions over loaded values and constants against ir::evaluate: what a compiler's own
// optimiser makes of combinations that single operations do not show.
#include <cmath>
#include <random>

#include "ir/passes/lower/widen_halves.h"
#include "quern/ir/abi.h"
#include "tests/backend/rows.h"

using namespace quern;
using namespace quern::ir;
using test::Buffer;
using test::OnEachLowering;
using test::Program;
using test::Row;

namespace {

constexpr size_t lanes = 64, width = 8;  ///< iterations; loaded values per type

bool is_nan(Type t, Bits v) {
  if (t == Type::f16) return (v & 0x7fff) > 0x7c00;
  return t == Type::f32 ? std::isnan(f32_of(v)) : t == Type::f64 && std::isnan(f64_of(v));
}

/// Expressions of one task; every value is kept with its bits in each iteration.
class Expressions {
 public:
  Expressions(runtime::Driver& driver, uint64_t seed)
      : driver_(driver), random_(seed), b_(kernel_) {
    kernel_.level = Level::lowered;
    kernel_.modes.strict = true;
    task_.body = b_.make_region();
    b_.at_end(task_.body);
    in_ = b_.arg(abi::head_bytes, Type::address);
    out_ = b_.arg(abi::head_bytes + 8, Type::address);
    Value* index = test::open_iterations(b_, task_, test::target(driver).traits.walk);
    bytes_ = b_.mul(index, b_.integer(Type::i64, 8));
    for (Type t : test::scalar_types()) {
      for (const Row& row : test::rows_of(t, test::target(driver).traits)) rows_.push_back(row);
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
    widen_halves(kernel_, test::target(driver_).traits);
    Buffer in(driver_, input_), out(driver_, results_.size() * lanes * 8);
    Program(driver_, kernel_).entry(0, in).entry(1, out).run(0, lanes);
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
    const Row& row = rows_[random_() % rows_.size()];
    std::vector<const Known*> operands;
    for (Type t : row.operands) operands.push_back(pick(t));
    Known v{nullptr, {}};
    std::vector<Value*> args;
    for (const Known* o : operands) {
      if (!o) return;
      args.push_back(o->value);
    }
    for (size_t n = 0; n < lanes; n++) {
      std::vector<Bits> bits;
      for (const Known* o : operands) bits.push_back(o->bits[n]);
      // What a NaN's bits are is open: no integer may be made of them.
      if ((row.op == Op::bitcast || row.op == Op::copysign) &&
          is_nan(row.operands.back(), bits.back()))
        return;
      v.bits.push_back(test::value_of(row, bits));
    }
    v.value = b_.make(row.op, std::span(&row.result, 1), args)->result();
    results_.push_back(values_.size());
    values_.push_back(v);
  }

  runtime::Driver& driver_;
  std::mt19937_64 random_;
  Kernel kernel_;
  Builder b_;
  Task task_;
  Value *in_ = nullptr, *out_ = nullptr, *bytes_ = nullptr;
  std::vector<Row> rows_;
  std::vector<Bits> input_;
  std::vector<Known> values_;
  std::vector<size_t> results_;
};

/// Every row of two operands of type `t` with one of them a constant, the other converted from
/// `from`: wrong results as text.
std::string with_constants(runtime::Driver& driver, Type from, Type t) {
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
  task.body = b.make_region();
  b.at_end(task.body);
  Value* in = b.arg(abi::head_bytes, Type::address);
  Value* out = b.arg(abi::head_bytes + 8, Type::address);
  Value* index = test::open_iterations(b, task, test::target(driver).traits.walk);
  Value* bytes = b.mul(index, b.integer(Type::i64, 8));
  auto place = [&](Value* base, size_t column) {
    return b.offset(b.offset(base, bytes), b.integer(Type::i64, int64_t(8 * column * count)));
  };
  Value* x = b.convert(b.read(place(in, 0), from, 1), t);
  struct Case {
    Row row;
    Bits constant;
    bool first;
  };
  std::vector<Case> cases;
  for (const Row& row : test::rows_of(t, test::target(driver).traits)) {
    if (row.operands.size() != 2) continue;
    for (Bits c : constants)
      for (bool first : {false, true}) {
        Value* v = b.constant(t, c);
        Value* result = first ? b.binary(row.op, v, x) : b.binary(row.op, x, v);
        b.write(place(out, cases.size()), result, 2);
        cases.push_back({row, c, first});
      }
  }
  b.yield();
  kernel.tasks.push_back(task);
  widen_halves(kernel, test::target(driver).traits);
  Buffer values(driver, inputs), results(driver, cases.size() * count * 8);
  Program(driver, kernel).entry(0, values).entry(1, results).run(0, count);
  std::vector<Bits> got = results.read<Bits>();
  std::string wrong;
  for (size_t r = 0; r < cases.size(); r++)
    for (size_t n = 0; n < count; n++) {
      const Row& row = cases[r].row;
      Bits value = inputs[n];
      if (from != t) value = test::value_of({Op::convert, {from}, t}, {&inputs[n], 1});
      Bits args[] = {value, cases[r].constant};
      if (cases[r].first) std::swap(args[0], args[1]);
      if (row.op == Op::copysign && is_nan(t, args[1])) continue;  // the sign of a NaN is open
      Bits is = truncate(got[r * count + n], row.result == Type::b1 ? Type::u8 : row.result);
      if (test::same(row.result, is, test::value_of(row, args))) continue;
      wrong += test::describe(row, args, is) + "\n";
      break;
    }
  return wrong;
}

}  // namespace

TEST_CASE_METHOD(OnEachLowering, "constant operands change nothing") {
  for (Type t : test::scalar_types()) {
    if (t == Type::b1) continue;
    INFO(name(t));
    CHECK(with_constants(driver, t, t) == "");
  }
  for (auto [from, to] : {std::pair{Type::i32, Type::i64},
                          {Type::u32, Type::i64},
                          {Type::u32, Type::u64},
                          {Type::i16, Type::i32},
                          {Type::i64, Type::i32},
                          {Type::f32, Type::f64},
                          {Type::i32, Type::f32}}) {
    INFO(name(from) << " to " << name(to));
    CHECK(with_constants(driver, from, to) == "");
  }
}

TEST_CASE_METHOD(OnEachLowering, "random expressions equal their definition") {
  for (uint64_t seed = 1; seed <= 8; seed++) {
    Expressions e(driver, seed);
    e.grow(100);
    std::string first;
    size_t wrong = e.run(first);
    INFO("seed " << seed << ": " << first);
    CHECK(wrong == 0);
  }
}

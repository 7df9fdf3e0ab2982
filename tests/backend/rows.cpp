// Every element-wise row at every type against ir::evaluate, in strict mode.
#include "tests/backend/rows.h"

#include <algorithm>
#include <random>

#include "ir/passes/lower/widen_halves.h"
#include "quern/ir/abi.h"

namespace quern::test {

using namespace ir;

namespace {
bool accepts(const OpInfo& info, Type t) {
  return (t == Type::b1 && info.bools) || (is_int(t) && info.ints) || (is_float(t) && info.floats);
}
}  // namespace

std::vector<Row> rows_of(Type t, const TargetTraits& target) {
  std::vector<Row> all;
  for (int k = 0; k < op_count; k++) {
    const OpInfo& op = info(Op(k));
    if (op.library || !accepts(op, t)) continue;
    if (Op(k) == Op::fma && !target.fma_exact[t == Type::f64]) continue;
    // Where these are not exact, lowering leaves none of them.
    if (t == Type::f32 && Op(k) == Op::div && !target.div_exact) continue;
    if (t == Type::f32 && Op(k) == Op::sqrt && !target.sqrt_exact) continue;
    std::vector<Type> alike(size_t(std::max(op.operands, 0)), t);
    switch (op.rule) {
      case OperandRule::same: all.push_back({Op(k), alike, t}); break;
      case OperandRule::compare: all.push_back({Op(k), alike, Type::b1}); break;
      case OperandRule::pick: all.push_back({Op(k), {Type::b1, t, t}, t}); break;
      case OperandRule::convert:
        for (Type to : scalar_types()) all.push_back({Op(k), {t}, to});
        break;
      case OperandRule::bitcast:
        for (Type to : scalar_types())
          if (t != Type::b1 && to != Type::b1 && bit_width(t) == bit_width(to))
            all.push_back({Op(k), {t}, to});
        break;
      case OperandRule::special: break;
    }
  }
  return all;
}

Bits value_of(const Row& row, std::span<const Bits> operands) {
  Bits value = 0;
  if (!evaluate(row.op, row.operands.back(), row.result, operands, value))
    throw InternalError("no meaning of " + std::string(info(row.op).name));
  return value;
}

std::string describe(const Row& row, std::span<const Bits> operands, Bits got) {
  std::string text(info(row.op).name);
  auto add = [&](Type t, Bits b) {
    char hex[32];
    std::snprintf(hex, sizeof hex, " 0x%llx:", static_cast<unsigned long long>(b));
    text += hex + std::string(name(t));
  };
  for (size_t k = 0; k < operands.size(); k++) add(row.operands[k], operands[k]);
  text += " gives";
  add(row.result, got);
  text += " instead of";
  add(row.result, value_of(row, operands));
  return text;
}

namespace {

/// Column 0 holds conditions, the others values of one type: all pairs in 1 and 2. Their number is
/// no multiple of a vector's width.
std::vector<std::vector<Bits>> columns_of(Type t) {
  std::vector<std::vector<Bits>> columns(4);
  std::vector<Bits> values = interesting(t);
  std::mt19937 random(7);
  auto add = [&](Bits a, Bits b) {
    columns[0].push_back(random() & 1);
    columns[1].push_back(a);
    columns[2].push_back(b);
    columns[3].push_back(values[random() % values.size()]);
  };
  for (Bits a : values)
    for (Bits b : values) add(a, b);
  while (columns[0].size() % 8 != 5) add(values[0], values[1]);
  return columns;
}

/// The first column that holds an operand of the row.
size_t first_column(const Row& row) {
  return row.operands[0] == Type::b1 && row.operands.size() == 3 ? 0 : 1;
}

/// Tasks of `together` rows each: column k is at entry k; row r writes its `count` results at entry
/// 4, from byte 8·r·count on.
std::unique_ptr<Kernel> kernel_of(Type t, const std::vector<Row>& rows, size_t together,
                                  size_t count, const TargetTraits& target) {
  auto kernel = std::make_unique<Kernel>();
  kernel->level = Level::lowered;
  kernel->modes.strict = true;
  Builder b(*kernel);
  for (size_t from = 0; from < rows.size(); from += together) {
    Task task;
    task.body = b.make_region();
    b.at_end(task.body);
    Value* base[5];
    for (uint32_t k = 0; k < 5; k++) base[k] = b.arg(abi::head_bytes + 8 * k, Type::address);
    Value* index = open_iterations(b, task, target.walk);
    auto place = [&](Value* at, Type type, size_t first) {
      Value* bytes = b.mul(index, b.integer(Type::i64, byte_size(type)));
      return b.offset(at, b.add(bytes, b.integer(Type::i64, int64_t(first))));
    };
    for (size_t r = from; r < std::min(rows.size(), from + together); r++) {
      const Row& row = rows[r];
      std::vector<Value*> operands;
      for (size_t k = 0; k < row.operands.size(); k++) {
        size_t column = first_column(row) + k;
        Type type = column == 0 ? Type::b1 : t;
        operands.push_back(b.read(place(base[column], type, 0), type, column + 1));
      }
      Value* v = b.make(row.op, std::span(&row.result, 1), operands)->result();
      b.write(place(base[4], row.result, 8 * r * count), v, 5);
    }
    b.yield();
    kernel->tasks.push_back(task);
  }
  widen_halves(*kernel, target);
  return kernel;
}

}  // namespace

TEST_CASE_METHOD(OnEachLowering,
                 "every element-wise operation at every type equals its definition") {
  const TargetTraits& target = test::target(driver).traits;
  size_t tested = 0;
  for (Type t : scalar_types()) {
    std::vector<Row> rows = rows_of(t, target);
    tested += rows.size();
    std::vector<std::vector<Bits>> columns = columns_of(t);
    size_t n = columns[0].size();
    // A loop of its own for each row where loops become vectors; one pipeline for all elsewhere.
    size_t together = target.walk == Task::chunked ? 1 : rows.size();
    Buffer c(driver, packed(Type::b1, columns[0])), x(driver, packed(t, columns[1])),
        y(driver, packed(t, columns[2])), z(driver, packed(t, columns[3])),
        results(driver, std::vector<std::byte>(rows.size() * n * 8 + 1, std::byte(0x5a)));
    Program program(driver, *kernel_of(t, rows, together, n, target));
    program.entry(0, c).entry(1, x).entry(2, y).entry(3, z).entry(4, results);
    for (uint32_t task = 0; task * together < rows.size(); task++) program.run(task, n);
    std::vector<std::byte> out = results.read<std::byte>();
    CHECK(out.back() == std::byte(0x5a));
    for (size_t r = 0; r < rows.size(); r++) {
      const Row& row = rows[r];
      std::vector<Bits> operands(row.operands.size());
      int wrong = 0;
      for (size_t i = 0; i < n && wrong < 3; i++) {
        for (size_t k = 0; k < operands.size(); k++)
          operands[k] = columns[first_column(row) + k][i];
        Bits got = 0;
        std::memcpy(&got, &out[8 * r * n + i * byte_size(row.result)], byte_size(row.result));
        if (same(row.result, got, value_of(row, operands))) continue;
        wrong++;
        UNSCOPED_INFO(describe(row, operands, got));
      }
      CHECK(wrong == 0);
    }
  }
  CHECK(tested > 250);
}

TEST_CASE_METHOD(OnEachLowering, "constants fold to the same values") {
  // Operands as constants: the compiler's own folder computes the result.
  struct Folded {
    Row row;
    std::vector<Bits> operands;
  };
  std::mt19937 random(11);
  for (Type t : scalar_types()) {
    Kernel kernel;
    kernel.level = Level::lowered;
    kernel.modes.strict = true;
    Builder b(kernel);
    Task task;
    task.body = b.make_region();
    b.at_end(task.body);
    Value* out = b.arg(abi::head_bytes, Type::address);
    std::vector<Folded> all;
    for (const Row& row : rows_of(t, test::target(driver).traits))
      for (int repeat = 0; repeat < 6; repeat++) {
        Folded f{row, {}};
        std::vector<Value*> operands;
        for (Type type : row.operands) {
          auto values = interesting(type);
          f.operands.push_back(values[random() % values.size()]);
          operands.push_back(b.constant(type, f.operands.back()));
        }
        Value* v = b.make(row.op, std::span(&row.result, 1), operands)->result();
        b.write(b.offset(out, b.integer(Type::i64, int64_t(8 * all.size()))), v, 1);
        all.push_back(f);
      }
    b.yield();
    kernel.tasks.push_back(task);
    widen_halves(kernel, test::target(driver).traits);
    Buffer results(driver, std::vector<Bits>(all.size()));
    Program(driver, kernel).entry(0, results).run();
    std::vector<Bits> got = results.read<Bits>();
    for (size_t k = 0; k < all.size(); k++) {
      INFO(describe(all[k].row, all[k].operands, got[k]));
      CHECK(same(all[k].row.result, got[k], value_of(all[k].row, all[k].operands)));
    }
  }
}

}  // namespace quern::test

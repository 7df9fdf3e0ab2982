// Every element-wise row at every type against ir::evaluate, vectorised loop and remainder alike.
#include <algorithm>
#include <random>

#include "quern/ir/abi.h"
#include "quern/ir/builder.h"
#include "tests/catch.h"
#include "tests/cpu/support.h"

using namespace quern;
using namespace quern::ir;
using test::Program;

namespace {

constexpr Type scalars[] = {Type::b1,  Type::i8,  Type::i16, Type::i32, Type::i64, Type::u8,
                            Type::u16, Type::u32, Type::u64, Type::f32, Type::f64};

struct Row {
  Op op;
  std::vector<Type> operands;
  Type result;
};

bool accepts(const OpInfo& info, Type t) {
  return (t == Type::b1 && info.bools) || (is_int(t) && info.ints) || (is_float(t) && info.floats);
}

std::vector<Row> rows() {
  std::vector<Row> all;
  for (int k = 0; k < op_count; k++) {
    const OpInfo& op = info(Op(k));
    if (op.library) continue;
    for (Type t : scalars) {
      if (!accepts(op, t)) continue;
      std::vector<Type> same(size_t(std::max(op.operands, 0)), t);
      switch (op.rule) {
        case OperandRule::same: all.push_back({Op(k), same, t}); break;
        case OperandRule::compare: all.push_back({Op(k), same, Type::b1}); break;
        case OperandRule::pick: all.push_back({Op(k), {Type::b1, t, t}, t}); break;
        case OperandRule::convert:
          for (Type to : scalars) all.push_back({Op(k), {t}, to});
          break;
        case OperandRule::bitcast:
          for (Type to : scalars)
            if (t != Type::b1 && to != Type::b1 && bit_width(t) == bit_width(to))
              all.push_back({Op(k), {t}, to});
          break;
        case OperandRule::special: break;
      }
    }
  }
  return all;
}

/// Operand k of the row is at entry k, the result at entry 3.
Task task_of(Kernel& kernel, const Row& row) {
  Builder b(kernel);
  Task task;
  task.kind = Task::range;
  task.walk = Task::chunked;
  task.rank = 1;
  task.body = b.make_region();
  b.at_end(task.body);
  std::vector<Value*> bases;
  for (uint32_t k = 0; k < 4; k++) bases.push_back(b.arg(abi::head_bytes + 8 * k, Type::address));
  Value* begin = b.builtin(Builtin::begin);
  Value* end = b.builtin(Builtin::end);
  Inst* loop = b.make(Op::loop, {}, {begin, end, b.integer(Type::i64, 1)});
  loop->kind = parallel_walk;
  Region* body = b.make_region({Type::i64});
  b.set_regions(loop, {body});
  Builder in = b;
  in.at_end(body);
  auto place = [&](size_t k, Type t) {
    return in.offset(bases[k], in.mul(body->arg(0), in.integer(Type::i64, byte_size(t))));
  };
  std::vector<Value*> operands;
  for (size_t k = 0; k < row.operands.size(); k++)
    operands.push_back(in.read(place(k, row.operands[k]), row.operands[k], k + 1));
  Value* result = in.make(row.op, std::span(&row.result, 1), operands)->result();
  in.write(place(3, row.result), result, 4);
  in.yield();
  b.yield();
  return task;
}

std::vector<std::vector<Bits>> operands_of(const Row& row) {
  std::vector<std::vector<Bits>> columns(row.operands.size());
  std::vector<std::vector<Bits>> values;
  for (Type t : row.operands) values.push_back(test::interesting(t));
  std::mt19937 random(7);
  if (columns.size() == 1) columns[0] = values[0];
  if (columns.size() == 2) {
    for (Bits a : values[0])
      for (Bits b : values[1]) {
        columns[0].push_back(a);
        columns[1].push_back(b);
      }
  }
  if (columns.size() == 3)
    for (int n = 0; n < 4000; n++)
      for (size_t k = 0; k < 3; k++) columns[k].push_back(values[k][random() % values[k].size()]);
  return columns;
}

std::vector<std::byte> packed(Type type, const std::vector<Bits>& values) {
  std::vector<std::byte> bytes(values.size() * byte_size(type));
  for (size_t n = 0; n < values.size(); n++)
    std::memcpy(&bytes[n * byte_size(type)], &values[n], byte_size(type));
  return bytes;
}

std::string describe(const Row& row, const std::vector<Bits>& args, Bits got, Bits want) {
  std::string text(info(row.op).name);
  char hex[32];
  auto add = [&](Type t, Bits b) {
    std::snprintf(hex, sizeof hex, " 0x%llx:", (unsigned long long)b);
    text += hex + std::string(name(t));
  };
  for (size_t k = 0; k < args.size(); k++) add(row.operands[k], args[k]);
  text += " gives";
  add(row.result, got);
  text += " instead of";
  add(row.result, want);
  return text;
}

}  // namespace

TEST_CASE("every element-wise operation at every type equals its definition") {
  std::vector<Row> all = rows();
  REQUIRE(all.size() > 250);
  Kernel kernel;
  kernel.name = "rows";
  kernel.level = Level::lowered;
  for (const Row& row : all) kernel.tasks.push_back(task_of(kernel, row));
  Program program(kernel);
  for (uint32_t r = 0; r < all.size(); r++) {
    const Row& row = all[r];
    auto columns = operands_of(row);
    size_t n = columns[0].size();
    std::vector<std::vector<std::byte>> memory;
    for (size_t k = 0; k < columns.size(); k++)
      memory.push_back(packed(row.operands[k], columns[k]));
    std::vector<std::byte> result(n * byte_size(row.result) + 1, std::byte(0x5a));
    for (size_t k = 0; k < memory.size(); k++) program.entry(k, memory[k].data());
    program.entry(3, result.data()).run(r, n);
    REQUIRE(result.back() == std::byte(0x5a));
    int wrong = 0;
    for (size_t i = 0; i < n && wrong < 3; i++) {
      std::vector<Bits> args;
      for (auto& column : columns) args.push_back(column[i]);
      Bits want = 0, got = 0;
      REQUIRE(evaluate(row.op, row.operands.back(), row.result, args, want));
      std::memcpy(&got, &result[i * byte_size(row.result)], byte_size(row.result));
      if (test::same(row.result, got, want)) continue;
      wrong++;
      UNSCOPED_INFO(describe(row, args, got, want));
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("constants fold to the same values") {
  // Operands as constants: LLVM's own folder computes the result.
  std::vector<Row> all = rows();
  Kernel kernel;
  kernel.level = Level::lowered;
  Builder b(kernel);
  Task task;
  task.body = b.make_region();
  b.at_end(task.body);
  Value* out = b.arg(abi::head_bytes, Type::address);
  std::vector<std::vector<Bits>> chosen;
  std::mt19937 random(11);
  std::vector<Row> used;
  for (const Row& row : all)
    for (int repeat = 0; repeat < 6; repeat++) {
      std::vector<Bits> args;
      std::vector<Value*> operands;
      for (Type t : row.operands) {
        auto values = test::interesting(t);
        args.push_back(values[random() % values.size()]);
        operands.push_back(b.constant(t, args.back()));
      }
      Value* v = b.make(row.op, std::span(&row.result, 1), operands)->result();
      b.write(b.offset(out, b.integer(Type::i64, int64_t(8 * used.size()))), v, 1);
      used.push_back(row);
      chosen.push_back(args);
    }
  b.yield();
  kernel.tasks.push_back(task);
  std::vector<Bits> results(used.size());
  Program(kernel).entry(0, results.data()).run();
  for (size_t k = 0; k < used.size(); k++) {
    Bits want = 0;
    REQUIRE(evaluate(used[k].op, used[k].operands.back(), used[k].result, chosen[k], want));
    INFO(describe(used[k], chosen[k], results[k], want));
    CHECK(test::same(used[k].result, results[k], want));
  }
}

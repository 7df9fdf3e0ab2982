// Every element-wise row at every type against ir::evaluate, in strict mode.
#include <algorithm>
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

struct Row {
  Op op;
  std::vector<Type> operands;
  Type result;
};

bool accepts(const OpInfo& info, Type t) {
  return (t == Type::b1 && info.bools) || (is_int(t) && info.ints) || (is_float(t) && info.floats);
}

std::vector<Row> rows_of(Type t) {
  std::vector<Row> all;
  for (int k = 0; k < op_count; k++) {
    const OpInfo& op = info(Op(k));
    if (op.library || Op(k) == Op::fma || !accepts(op, t)) continue;  // fma: by what is measured
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
  return all;
}

/// One task: element n of the operand columns at entries 0 (b1), 1 and 2 goes through every row;
/// row r writes at entry 3, 8 bytes at (r·count + n).
std::unique_ptr<Kernel> kernel_of(Type t, const std::vector<Row>& rows, size_t count) {
  auto kernel = std::make_unique<Kernel>();
  kernel->level = Level::lowered;
  kernel->modes.strict = true;
  Builder b(*kernel);
  Task task;
  task.kind = Task::range;
  task.walk = Task::element;
  task.body = b.make_region();
  b.at_end(task.body);
  Value* base[4];
  for (uint32_t k = 0; k < 4; k++) base[k] = b.arg(abi::head_bytes + 8 * k, Type::address);
  Inst* loop =
      b.loop(b.builtin(Builtin::thread), b.builtin(Builtin::end), b.builtin(Builtin::threads));
  b.yield();
  b.at_end(loop->region(0));
  Value* index = loop->region(0)->arg(0);
  auto place = [&](Value* at, uint64_t bytes, uint64_t first) {
    Value* from = b.add(b.mul(index, b.integer(Type::i64, int64_t(bytes))),
                        b.integer(Type::i64, int64_t(first)));
    return b.offset(at, from);
  };
  Value* column[3];
  for (size_t k = 0; k < 3; k++) {
    Type type = k == 0 ? Type::b1 : t;
    column[k] = b.read(place(base[k], byte_size(type), 0), type, k + 1);
  }
  for (size_t r = 0; r < rows.size(); r++) {
    const Row& row = rows[r];
    std::vector<Value*> operands;
    size_t first = row.operands.size() == 3 ? 0 : 1;
    for (size_t k = 0; k < row.operands.size(); k++) operands.push_back(column[first + k]);
    Value* v = b.make(row.op, std::span(&row.result, 1), operands)->result();
    b.write(place(base[3], 8, 8 * r * count), v, 4);
  }
  b.yield();
  kernel->tasks.push_back(task);
  return kernel;
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
  size_t tested = 0;
  for (Type t : scalars) {
    std::vector<Row> rows = rows_of(t);
    tested += rows.size();
    std::vector<std::vector<Bits>> columns(3);
    std::mt19937 random(7);
    for (Bits a : test::interesting(t))
      for (Bits b : test::interesting(t)) {
        columns[0].push_back(random() & 1);
        columns[1].push_back(a);
        columns[2].push_back(b);
      }
    size_t n = columns[0].size();
    Buffer c(packed(Type::b1, columns[0])), x(packed(t, columns[1])), y(packed(t, columns[2]));
    Buffer results(rows.size() * n * 8);
    Program program(*kernel_of(t, rows, n));
    program.entry(0, c).entry(1, x).entry(2, y).entry(3, results).run(0, n);
    std::vector<Bits> out = results.read<Bits>();
    for (size_t r = 0; r < rows.size(); r++) {
      const Row& row = rows[r];
      int wrong = 0;
      for (size_t i = 0; i < n && wrong < 3; i++) {
        std::vector<Bits> args;
        size_t first = row.operands.size() == 3 ? 0 : 1;
        for (size_t k = 0; k < row.operands.size(); k++) args.push_back(columns[first + k][i]);
        Bits want = 0,
             got = truncate(out[r * n + i], row.result == Type::b1 ? Type::u8 : row.result);
        REQUIRE(evaluate(row.op, row.operands.back(), row.result, args, want));
        if (test::same(row.result, got, want)) continue;
        wrong++;
        UNSCOPED_INFO(describe(row, args, got, want));
      }
      CHECK(wrong == 0);
    }
  }
  CHECK(tested > 250);
}

#pragma once
// A library function of one f32 argument on arrays, compiled by the CPU back end.
#include <string>

#include "quern/ir/abi.h"
#include "quern/ir/builder.h"
#include "quern/ir/math.h"
#include "tests/backend/harness/harness.h"

namespace quern::test {

class Compiled {
 public:
  /// Vector code; `strict` or with contraction.
  Compiled(ir::Op op, bool strict) : program_(driver("cpu"), kernel_of(op, strict)) {}

  void operator()(const float* x, float* y, size_t n) {
    program_.entry(0, x).entry(1, y).run(0, n);
  }

 private:
  static ir::Kernel kernel_of(ir::Op op, bool strict) {
    using namespace ir;
    Kernel kernel;
    kernel.name = std::string(info(op).name);
    kernel.level = Level::lowered;
    kernel.modes.strict = strict;
    kernel.modes.contract = !strict;
    Builder b(kernel);
    Task task;
    task.kind = Task::range;
    task.walk = Task::chunked;
    task.rank = 1;
    task.body = b.make_region();
    b.at_end(task.body);
    Value* from = b.arg(abi::head_bytes, Type::address);
    Value* to = b.arg(abi::head_bytes + 8, Type::address);
    Value* begin = b.builtin(Builtin::begin);
    Value* end = b.builtin(Builtin::end);
    Inst* loop = b.make(Op::loop, {}, {begin, end, b.integer(Type::i64, 1)});
    loop->kind = parallel_walk;
    Region* body = b.make_region({Type::i64});
    b.set_regions(loop, {body});
    Builder in = b;
    in.at_end(body);
    Value* bytes = in.mul(body->arg(0), in.integer(Type::i64, 4));
    const Function& f = math_function(op, Type::f32);
    ValueMap map;
    map[f.body->arg(0)] = in.read(in.offset(from, bytes), Type::f32, 1);
    in.write(in.offset(to, bytes), inline_region(in, f.body, map)[0], 2);
    in.yield();
    b.yield();
    kernel.tasks.push_back(task);
    return kernel;
  }

  Program program_;
};

}  // namespace quern::test

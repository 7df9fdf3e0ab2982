// The library as IR: sound, printable, made once.
#include <string>
#include <thread>
#include <vector>

#include "ir/passes/optimise/simplify.h"
#include "quern/ir/abi.h"
#include "quern/ir/builder.h"
#include "quern/ir/math.h"
#include "quern/ir/text.h"
#include "quern/ir/verify.h"
#include "tests/catch.h"
#include "tests/math/evaluator.h"

using namespace quern;
using namespace quern::ir;
using namespace quern::test;

namespace {
std::vector<const Function*> all_functions() {
  std::vector<const Function*> all;
  for (int k = 0; k < op_count; k++)
    if (info(Op(k)).library)
      for (Type type : {Type::f32, Type::f64}) all.push_back(&math_function(Op(k), type));
  for (Type type : {Type::f32, Type::f64}) all.push_back(&fma_function(type));
  all.push_back(&div_function(Type::f32));
  all.push_back(&sqrt_function(Type::f32));
  return all;
}

/// A kernel that holds copies of the functions.
std::unique_ptr<Kernel> kernel_of(const std::vector<const Function*>& functions) {
  Kernel kernel;
  kernel.level = Level::structured;
  Builder b(kernel);
  kernel.body = b.make_region();
  b.at_end(kernel.body);
  b.yield();
  for (const Function* f : functions) kernel.callees.push_back(*f);
  return clone(kernel);
}
}  // namespace

TEST_CASE("library functions keep the rules of the IR and survive the text form") {
  auto kernel = kernel_of(all_functions());
  CHECK(verify(*kernel).empty());
  std::string text = print(*kernel);
  auto parsed = parse(text);
  CHECK(verify(*parsed).empty());
  CHECK(print(*parsed) == text);
}

TEST_CASE("every library row has its function, and no other operation has one") {
  for (int k = 0; k < op_count; k++) {
    if (info(Op(k)).library)
      for (Type type : {Type::f32, Type::f64}) {
        const Function& f = math_function(Op(k), type);
        CHECK(f.body->args.size() == size_t(info(Op(k)).operands));
        CHECK(f.body->last->operand(0)->type == type);
      }
    else if (Op(k) != Op::fma && Op(k) != Op::div && Op(k) != Op::sqrt)
      CHECK_THROWS_AS(math_function(Op(k), Type::f32), InternalError);
  }
  CHECK_THROWS_AS(div_function(Type::f64), InternalError);
}

TEST_CASE(
    "library functions touch no memory; only the remainders loop; what replaces fma has none") {
  for (const Function* f : all_functions())
    walk(f->body, [&](Inst* inst) {
      INFO(f->name << ": " << info(inst->op).name);
      bool remainder = f->name.starts_with("fmod") || f->name.starts_with("remainder");
      CHECK((is_pure(inst->op) || inst->op == Op::if_ || inst->op == Op::yield ||
             (remainder && inst->op == Op::loop)));
      CHECK_FALSE(info(inst->op).library);
      if (f->name.starts_with("fma")) CHECK(inst->op != Op::fma);
    });
}

TEST_CASE("the library is one and the same for all threads") {
  std::vector<const Function*> seen(8);
  std::vector<std::thread> threads;
  for (size_t k = 0; k < seen.size(); k++)
    threads.emplace_back([&seen, k] { seen[k] = &math_function(Op::pow, Type::f64); });
  for (std::thread& t : threads) t.join();
  for (const Function* f : seen) CHECK(f == seen[0]);
}

TEST_CASE("tanh and its derivative at one place share what both are made of") {
  Kernel kernel;
  kernel.level = Level::lowered;
  Builder b(kernel);
  Task task;
  task.kind = Task::range;
  task.body = b.make_region();
  b.at_end(task.body);
  Value* at = b.builtin(Builtin::begin);
  Value* x = b.convert(at, Type::f64);
  size_t of_tanh = 0;
  for (Op op : {Op::tanh, Op::sech2}) {
    const Function& f = math_function(op, Type::f64);
    walk(f.body, [&](Inst*) { of_tanh += op == Op::tanh; });
    ValueMap map{{f.body->arg(0), x}};
    b.write(b.arg(uint32_t(abi::head_bytes), Type::address), inline_region(b, f.body, map)[0], 1);
  }
  b.yield();
  kernel.tasks.push_back(task);
  simplify(kernel);
  size_t together = 0, divisions = 0;
  walk(kernel.tasks[0].body, [&](Inst* inst) {
    together++;
    divisions += inst->is(Op::div);
  });
  CHECK(divisions == 1);
  CHECK(together < of_tanh + 20);
}

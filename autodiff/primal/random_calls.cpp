#include "autodiff/primal/random_calls.h"

#include <map>

#include "quern/ir/builder.h"

namespace quern::autodiff {

using namespace ir;

namespace {
/// The body of the parallel loop around, or the kernel's.
Region* counted_in(Region* r) {
  while (r->parent && !r->parent->is(Op::parallel)) r = r->parent->parent;
  return r;
}
}  // namespace

void number_calls(Kernel& kernel) {
  Builder b(kernel);
  std::map<Region*, Value*> counters;  // slots
  walk(kernel.body, [&](Inst* inst) {
    if (!inst->is(Op::call_number)) return;
    Region* home = counted_in(inst->parent);
    Value*& counter = counters[home];
    if (!counter) counter = b.before(home->first).at(inst->loc).slot(Type::u32);
    b.before(inst).at(inst->loc);
    Value* number = b.get(counter);
    b.put(counter, b.add(number, b.integer(Type::u32, 1)));
    inst->result()->replace_with(number);
    inst->erase();
  });
}

}  // namespace quern::autodiff

#include "ir/passes/atomics/aggregate_atomics.h"

#include <algorithm>

#include "ir/analysis/affine.h"
#include "ir/analysis/slice.h"
#include "ir/analysis/uniformity.h"
#include "ir/passes/atomics/atomic_rules.h"
#include "ir/passes/tasks/open_tasks.h"
#include "quern/ir/builder.h"

namespace quern::ir {

namespace {

class Aggregator {
 public:
  Aggregator(Kernel& kernel, Task& task)
      : kernel_(kernel),
        task_(task),
        b_(kernel),
        loop_(parallel_of(task)),
        uniform_(kernel, loop_->region(0)) {}

  void run() {
    auto one_place = [&](const Inst* inst) {
      for (uint32_t k = 0; k < rank(inst); k++)
        if (!uniform_(inst->operand(k))) return false;
      return true;
    };
    for (const std::vector<Inst*>& atomics :
         combinable_atomics(kernel_, loop_->region(0), one_place))
      collect(atomics);
    if (places_.empty()) return;
    b_.before(loop_).at(task_.loc);
    for (Place& p : places_) make_accumulator(p);
    for (Place& p : places_)
      for (Inst* inst : p.atomics) accumulate(p, inst);
    b_.after(loop_).at(task_.loc);
    for (Place& p : places_) apply(p);
  }

 private:
  /// One index of one component.
  struct Place {
    const Inst* first;
    std::vector<Inst*> atomics;
    Value *sum = nullptr, *used = nullptr;  ///< slots; used: null where every iteration adds
  };

  uint32_t rank(const Inst* inst) const { return kernel_.bindings[inst->binding()].rank; }

  bool same_index(const Inst* a, const Inst* b) {
    for (uint32_t k = 0; k < rank(a); k++) {
      const Value *x = a->operand(k), *y = b->operand(k);
      if (x->type != y->type || forms_.of(x) != forms_.of(y)) return false;
    }
    return true;
  }

  void collect(const std::vector<Inst*>& atomics) {
    for (Inst* inst : atomics) {
      auto place = std::find_if(places_.begin(), places_.end(), [&](const Place& p) {
        return p.first->part == inst->part && same_index(p.first, inst);
      });
      if (place == places_.end()) place = places_.insert(places_.end(), Place{inst, {}});
      place->atomics.push_back(inst);
    }
  }

  void make_accumulator(Place& p) {
    p.sum = b_.slot(p.first->elem);
    b_.put(p.sum, b_.constant(p.first->elem, identity(p.first->atomic(), p.first->elem)));
    for (const Inst* inst : p.atomics)
      if (inst->parent == loop_->region(0)) return;
    p.used = b_.slot(Type::u32);
    b_.put(p.used, b_.integer(Type::u32, 0));
  }

  void accumulate(const Place& p, Inst* inst) {
    b_.before(inst).at(inst->loc);
    Value* sum =
        b_.binary(operation(inst->atomic(), inst->elem), b_.get(p.sum), inst->operand(rank(inst)));
    if (rounds(inst->atomic(), inst->elem)) sum->inst->kind |= reassociate;
    b_.put(p.sum, sum);
    if (p.used) b_.put(p.used, b_.integer(Type::u32, 1));
    if (inst != p.first) inst->erase();
  }

  /// Behind the loop.
  void apply(Place& p) {
    const AtomicOp op = p.first->atomic();
    const Type elem = p.first->elem;
    Value *sum = b_.get(p.sum), *condition = nullptr;
    Value* used = p.used ? b_.get(p.used) : nullptr;
    if (task_.walk == Task::element) {
      sum = b_.convert(b_.block_reduce(op, b_.convert(sum, storage_type(elem))), elem);
      if (used) used = b_.block_reduce(AtomicOp::bit_or, used);
      // A block's first thread has no iteration only where none of the block has.
      Value* number = b_.builtin(Builtin::block_thread);
      condition = b_.binary(Op::eq, number, b_.integer(Type::i64, 0));
      if (!used) {
        Value* thread = b_.builtin(Builtin::thread);
        Value* end = b_.builtin(Builtin::end);
        condition = b_.binary(Op::bit_and, condition, b_.lt(thread, end));
      }
    }
    if (used) {
      Value* any = b_.binary(Op::ne, used, b_.integer(Type::u32, 0));
      condition = condition ? b_.binary(Op::bit_and, condition, any) : any;
    }
    Region* around = b_.region();
    Inst* behind = b_.point();
    if (condition) {
      Inst* branch = b_.if_(condition);
      b_.at_end(branch->region(1)).yield();
      b_.at_end(branch->region(0));
    }
    ValueMap map;
    std::vector<Value*> index;
    for (uint32_t k = 0; k < rank(p.first); k++)
      index.push_back(repeat_outside(b_, loop_->region(0), p.first->operand(k), map));
    b_.at(p.first->loc);
    b_.atomic(op, p.first->binding(), p.first->component(), elem, index, {&sum, 1})->site =
        p.first->site;
    if (condition) {
      b_.yield();
      b_.at_end(around);
      if (behind) b_.before(behind);
    }
    b_.at(task_.loc);
    const_cast<Inst*>(p.first)->erase();
  }

  Kernel& kernel_;
  Task& task_;
  Builder b_;
  Inst* loop_;
  Uniformity uniform_;
  AffineForms forms_;
  std::vector<Place> places_;
};

}  // namespace

void aggregate_atomics(Kernel& kernel, const TargetTraits& target) {
  if (kernel.modes.checked) return;
  for (Task& task : kernel.tasks) {
    if (task.kind != Task::range || task.lanes) continue;
    if (task.walk == Task::element && !target.block_reductions) continue;
    Aggregator(kernel, task).run();
  }
}

}  // namespace quern::ir

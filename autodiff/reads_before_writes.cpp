#include "autodiff/reads_before_writes.h"

#include <unordered_map>

#include "ir/analysis/effects.h"

namespace quern::autodiff {

using namespace ir;

namespace {

std::string place(Loc loc) { return std::string(loc.file) + ":" + std::to_string(loc.line); }

class Reads {
 public:
  explicit Reads(const Kernel& kernel) : kernel_(kernel), effects_(kernel) {}

  void expect_before_writes() {
    walk(kernel_.body, [&](const Inst* inst) {
      const size_t number = order_.size();
      order_[inst] = number;
      if (inst->is(Op::get)) gets_.push_back(inst);
      if (inst->is(Op::put) || inst->is(Op::reduce)) puts_.push_back(inst);
      if (!accesses_element(inst->op)) return;
      const bool is_atomic = inst->is(Op::atomic) && inst->atomic() != AtomicOp::load;
      if (is_atomic || inst->is(Op::store)) writes_.push_back(inst);
      if (!is_atomic && has(inst->op, flag::reads)) reads_.push_back(inst);
    });
    for (const Inst* read : reads_)
      for (const Inst* write : writes_)
        if (may_precede(write, read) && effects_.may_change(write, read))
          throw Error(read->loc, name_of(read) +
                                     " is read here behind what may have written it in the same "
                                     "launch (at " +
                                     place(write->loc) +
                                     "), and has no adjoint then: make two kernels of it");
    for (const Inst* get : gets_)
      for (const Inst* put : puts_)
        if (get->operand(0) == put->operand(0) && is_nested(get) && may_precede(get, put))
          throw Error(get->loc, "a variable is read here that changes later in the launch (at " +
                                    place(put->loc) +
                                    "), and has no adjoint then: use another one there");
  }

 private:
  std::string name_of(const Inst* inst) const { return kernel_.bindings[inst->binding()].name; }

  /// Is the variable of another region, in which it is gone back through later?
  static bool is_nested(const Inst* get) { return get->operand(0)->inst->parent != get->parent; }

  bool may_precede(const Inst* write, const Inst* read) const {
    if (order_.at(write) < order_.at(read)) return true;
    for (const Region* r = read->parent; r->parent; r = r->parent->parent) {
      const Inst* around = r->parent;
      if (!encloses(r, write->parent)) continue;
      // What another iteration adds may come first; what it stores would be a race.
      if (around->is(Op::parallel)) return write->is(Op::atomic);
      if (around->is(Op::loop) || around->is(Op::while_)) return true;
    }
    return false;
  }

  const Kernel& kernel_;
  Effects effects_;
  std::vector<const Inst*> reads_, writes_, gets_, puts_;
  std::unordered_map<const Inst*, size_t> order_;
};

}  // namespace

void expect_reads_before_writes(const Kernel& kernel) { Reads(kernel).expect_before_writes(); }

}  // namespace quern::autodiff

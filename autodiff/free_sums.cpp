#include "autodiff/free_sums.h"

#include <algorithm>

#include "autodiff/moves.h"

namespace quern::autodiff {

using namespace ir;

namespace {

/// The floats, and slots of such, whose bits decide on something.
class Deciding {
 public:
  Deciding(const Kernel& kernel, bool yields_values) {
    if (yields_values) add_all(kernel.body->terminator());
    do {  // until what loops carry and slots keep is known
      changed_ = false;
      walk_back(kernel.body, [&](const Inst* inst) { visit(inst); });
    } while (changed_);
  }
  bool contains(const Value* v) const { return deciding_.contains(v); }

 private:
  void add(const Value* v) {
    if (is_float(v->type) || v->type == Type::slot) changed_ |= deciding_.insert(v).second;
  }
  void add_all(const Inst* inst) {
    for (const Use& use : inst->operands) add(use.value);
  }
  void visit(const Inst* inst) {
    const auto pass = [&](const Value* from, const Value* to) {
      if (contains(to)) add(from);
    };
    if (each_move(inst, pass)) return;
    const auto decides = [&](const Value& v) { return !is_float(v.type) || contains(&v); };
    if (std::ranges::any_of(inst->results, decides)) add_all(inst);
  }

  std::unordered_set<const Value*> deciding_;
  bool changed_ = false;
};

/// What adds to carried value number k of the loop in each round, and nothing else that uses it.
const Inst* running_sum(const Inst* loop, size_t k) {
  const Region* body = loop->region(0);
  const Value* before = body->arg(1 + k);
  const Inst* sum = body->terminator()->operand(k)->inst;
  const bool is_alone = before->uses && !before->uses->next;
  if (!sum || sum->parent != body || !is_alone || before->uses->user != sum) return nullptr;
  if (sum->is(Op::add) || (sum->is(Op::sub) && sum->operand(0) == before)) return sum;
  return nullptr;
}

}  // namespace

std::unordered_set<const Inst*> free_sums(const Kernel& kernel, bool yields_values) {
  const Deciding deciding(kernel, yields_values);
  std::unordered_set<const Inst*> sums;
  walk(kernel.body, [&](const Inst* inst) {
    if (!inst->is(Op::loop)) return;
    for (size_t k = 0; k < inst->results.size(); k++) {
      const Inst* sum = is_float(inst->result(k)->type) ? running_sum(inst, k) : nullptr;
      if (sum && !deciding.contains(sum->result())) sums.insert(sum);
    }
  });
  return sums;
}

}  // namespace quern::autodiff

#include "autodiff/reverse/tree_rules.h"

#include <algorithm>

#include "ir/passes/trees/accesses.h"

namespace quern::autodiff {

using namespace ir;

namespace {
bool asks(const Inst* inst) {
  return inst->is(Op::is_active) || inst->is(Op::empty_box) || inst->is(Op::length);
}

const Inst* parallel_around(const Inst* inst) {
  for (const Inst* around = inst->parent->parent; around; around = around->parent->parent)
    if (around->is(Op::parallel)) return around;
  return nullptr;
}

/// Are both in a loop, so that one may come before the other whatever their order?
bool are_in_one_loop(const Inst* a, const Inst* b) {
  for (const Inst* around = b->parent->parent; around; around = around->parent->parent)
    if (!around->is(Op::if_) && std::ranges::any_of(around->regions, [&](const Region* r) {
          return encloses(r, a->parent);
        }))
      return true;
  return false;
}
}  // namespace

TreeRules::TreeRules(const Kernel& kernel, std::span<const OnTree> trees)
    : kernel_(kernel), trees_(trees.begin(), trees.end()) {}

bool TreeRules::any() const {
  return std::ranges::any_of(trees_, [](const OnTree& t) { return t.tree != no_binding; });
}

/// The element that its loop over the same tree is at.
bool TreeRules::is_own(const Inst* write) const {
  const Inst* loop = parallel_around(write);
  if (!loop || write->is(Op::append)) return false;
  const uint32_t over = loop->options.over, field = write->binding();
  if (over == no_binding || !is_on_tree(over) || trees_[over].tree != trees_[field].tree)
    return false;
  if (over != field && (trees_[over].is_rebased || trees_[field].is_rebased)) return false;
  const Region* body = loop->region(0);
  for (size_t k = 0; k < body->args.size(); k++)
    if (write->operand(k) != body->arg(k)) return false;
  return true;
}

bool TreeRules::may_change(const Inst* inst) const {
  if (!may_claim(inst) || !is_on_tree(inst->binding())) return false;
  return !trees_[inst->binding()].is_of_cells && !is_known(kernel_, inst) && !is_own(inst);
}

void TreeRules::expect_known(const std::vector<bool>& inputs,
                             std::span<const Scratch> scratch) const {
  if (!any()) return;
  for (size_t k = 0; k < trees_.size(); k++)
    if (trees_[k].is_of_cells && inputs[k])
      throw Error(kernel_.loc, kernel_.bindings[k].name +
                                   " has the cells of a tree's level as elements: it has tangents, "
                                   "and no adjoints");
  for (const Scratch& s : scratch)
    if (is_on_tree(s.of))
      throw Error(kernel_.loc, kernel_.bindings[s.of].name +
                                   " is on a tree, and iterations combine its elements by min, "
                                   "max or products: they have no adjoints");
  std::vector<const Inst*> changes, questions;
  std::vector<const Inst*> order;
  walk(kernel_.body, [&](const Inst* inst) {
    order.push_back(inst);
    if (may_change(inst)) changes.push_back(inst);
    const bool loops = inst->is(Op::parallel) && is_on_tree(inst->options.over);
    if (loops || (asks(inst) && is_on_tree(inst->binding()))) questions.push_back(inst);
  });
  const auto place = [&](const Inst* inst) { return std::ranges::find(order, inst); };
  for (const Inst* question : questions)
    for (const Inst* change : changes) {
      const uint32_t asked =
          question->is(Op::parallel) ? question->options.over : question->binding();
      if (trees_[asked].tree != trees_[change->binding()].tree) continue;
      if (place(change) > place(question) && !are_in_one_loop(change, question)) continue;
      throw Error(question->loc,
                  "which elements of " + kernel_.bindings[asked].name +
                      " are active is asked here, and the same kernel makes some active at " +
                      std::string(change->loc.file) + ":" + std::to_string(change->loc.line) +
                      ": it has no adjoint, make them active in another kernel");
    }
}

void TreeRules::expect_not_copied(const std::vector<bool>& bindings) const {
  for (uint32_t k = 0; k < bindings.size(); k++)
    if (bindings[k] && is_on_tree(k))
      throw Error(kernel_.loc, kernel_.bindings[k].name +
                                   " is on a tree, and the kernel reads what it has written there "
                                   "itself: it has no adjoint, read it in another kernel");
}

}  // namespace quern::autodiff

#include "autodiff/reverse/kept_in_adjoints.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "autodiff/plans/costs.h"
#include "autodiff/plans/loop_plans.h"
#include "quern/ir/builder.h"

namespace quern::autodiff {

using namespace ir;

namespace {

/// What two instructions that compute the same have in common.
struct Key {
  explicit Key(const Inst* inst, std::vector<const Value*> of)
      : attributes(inst->op, inst->kind, inst->type(), inst->elem, inst->imm, inst->part),
        operands(std::move(of)) {}
  std::tuple<Op, uint8_t, Type, Type, uint64_t, Part> attributes;
  std::vector<const Value*> operands;
  auto operator<=>(const Key&) const = default;
};

/// Values of one parallel loop that the same iteration of an earlier one computes too.
class Twins {
 public:
  /// `unwritten`: of each binding, whether its elements stay as they are.
  Twins(const Region* earlier, const Region* later, const std::vector<bool>& unwritten) {
    std::map<Key, Value*> computed;
    for (const Inst* inst : *earlier)
      if (stays(inst, unwritten)) {
        std::vector<const Value*> operands;
        for (const Use& use : inst->operands) operands.push_back(use.value);
        computed.emplace(Key(inst, std::move(operands)), inst->result());
      }
    for (size_t k = 0; k < later->args.size(); k++) of_[later->arg(k)] = earlier->arg(k);
    for (const Inst* inst : *later) {
      if (!stays(inst, unwritten)) continue;
      std::vector<const Value*> operands;
      for (const Use& use : inst->operands) operands.push_back(translated(use.value));
      const auto at = computed.find(Key(inst, std::move(operands)));
      if (at != computed.end()) of_[inst->result()] = at->second;
    }
  }
  /// Null: it has none.
  Value* of(const Value* v) const {
    const auto at = of_.find(v);
    return at == of_.end() ? nullptr : at->second;
  }

 private:
  static bool stays(const Inst* inst, const std::vector<bool>& unwritten) {
    if (inst->results.size() != 1 || !inst->regions.empty()) return false;
    return is_pure(inst->op) || (inst->is(Op::load) && unwritten[inst->binding()]);
  }
  const Value* translated(const Value* v) const {
    const Value* twin = of(v);
    return twin ? twin : v;
  }
  std::unordered_map<const Value*, Value*> of_;
};

/// What need not be computed any more, in additions, where the value comes from elsewhere.
double spared(const Value* v) {
  std::unordered_set<const Inst*> dead = {v->inst};
  std::vector<const Inst*> open = {v->inst};
  double sum = 0;
  while (!open.empty()) {
    const Inst* inst = open.back();
    open.pop_back();
    sum += cost(inst);
    for (const Use& use : inst->operands) {
      const Inst* made = use.value->inst;
      if (!made || made->parent != v->inst->parent || dead.contains(made)) continue;
      bool is_dead = true;
      for (const Use* u = use.value->uses; u; u = u->next)
        is_dead = is_dead && dead.contains(u->user);
      if (!is_dead) continue;
      dead.insert(made);
      open.push_back(made);
    }
  }
  return sum;
}

bool is_used_by_others(const Value* v, const Twins& twins) {
  for (const Use* use = v->uses; use; use = use->next)
    if (use->user->results.size() != 1 || !twins.of(use->user->result())) return true;
  return false;
}

class Keeper {
 public:
  Keeper(Kernel& kernel, std::span<const uint32_t> shapes, std::vector<bool> unwritten)
      : kernel_(kernel), shapes_(shapes), unwritten_(std::move(unwritten)) {}

  /// In the element that `store` overwrites.
  bool keep_before(const Inst* store) {
    const Component& component = kernel_.bindings[store->binding()].components[store->component()];
    const Region* later = store->parent;
    if (!component.exact) return false;
    double most = to_keep_byte * byte_size(component.type);
    Value *best = nullptr, *twin = nullptr;
    for (const Inst* loop : *kernel_.body) {
      if (loop == later->parent) break;
      if (!is_over_same(loop, later->parent)) continue;
      const Twins twins(loop->region(0), later, unwritten_);
      for (const Inst* inst = later->first; inst != store; inst = inst->next) {
        if (inst->type() != component.type || !twins.of(inst->result())) continue;
        if (!is_used_by_others(inst->result(), twins)) continue;
        const double spares = spared(inst->result());
        if (spares <= most) continue;
        most = spares;
        best = inst->result();
        twin = twins.of(best);
      }
    }
    if (!best) return false;
    keep(best, twin, store);
    return true;
  }

 private:
  bool is_over_same(const Inst* loop, const Inst* other) const {
    return loop->is(Op::parallel) && loop->options.over != no_binding &&
           shapes_[loop->options.over] == shapes_[other->options.over];
  }

  void keep(Value* v, Value* twin, const Inst* store) {
    const auto own = [](Region* iteration) {
      std::vector<Value*> index;
      for (Value& arg : iteration->args) index.push_back(&arg);
      return index;
    };
    Builder b(kernel_);
    b.after(twin->inst).at(v->inst->loc);
    b.store(store->binding(), store->component(), own(twin->inst->parent), twin);
    b.before(v->inst);
    v->replace_with(b.load(store->binding(), store->component(), v->type, own(store->parent)));
    dump_plan(v->inst->loc, std::string(info(v->inst->op).name) +
                                " is kept where the adjoint of the iteration's element will be");
  }

  Kernel& kernel_;
  const std::span<const uint32_t> shapes_;
  const std::vector<bool> unwritten_;
};

}  // namespace

bool keep_in_adjoints(Kernel& kernel, std::span<const uint32_t> companions,
                      const std::vector<bool>& assigned, size_t primal,
                      std::span<const uint32_t> shapes) {
  std::vector<bool> unwritten(kernel.bindings.size(), false);
  std::fill_n(unwritten.begin(), primal, true);
  std::vector<Inst*> stores;
  walk(kernel.body, [&](Inst* inst) {
    if (!accesses_element(inst->op) || !has(inst->op, flag::writes)) return;
    unwritten[inst->binding()] = false;
    for (size_t k = 0; k < companions.size(); k++)
      if (assigned[k] && companions[k] == inst->binding()) stores.push_back(inst);
  });
  Keeper keeper(kernel, shapes, std::move(unwritten));
  bool any = false;
  for (const Inst* store : stores) any |= keeper.keep_before(store);
  return any;
}

}  // namespace quern::autodiff

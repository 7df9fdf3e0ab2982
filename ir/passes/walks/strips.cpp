#include "ir/passes/walks/strips.h"

namespace quern::ir {

std::vector<Inst*> walks_of(const Task& task) {
  std::vector<Inst*> walks;
  walk(task.body, [&](Inst* inst) {
    if (inst->is(Op::loop) && (inst->kind & parallel_walk)) walks.push_back(inst);
  });
  return walks;
}

std::vector<Inst*> walks_of(const Kernel& kernel) {
  std::vector<Inst*> walks;
  for (const Task& task : kernel.tasks) {
    const std::vector<Inst*> more = walks_of(task);
    walks.insert(walks.end(), more.begin(), more.end());
  }
  return walks;
}

bool Strips::is_usually_pure(const Inst* branch) {
  const Region* usual = branch->region(1);
  for (const Inst* inst : *usual)
    if (inst != usual->last && !is_pure(inst->op)) return false;
  return true;
}

void Strips::outer_operands(const Inst* inst, const std::function<void(Value*)>& use) {
  for (const Use& u : inst->operands) use(u.value);
  for (Region* region : inst->regions)
    walk(region, [&](const Inst* inner) {
      for (const Use& u : inner->operands) {
        const Region* home = u.value->inst ? u.value->inst->parent : u.value->region;
        bool inside = false;
        for (const Region* own : inst->regions) inside |= encloses(own, home);
        if (!inside) use(u.value);
      }
    });
}

bool Strips::from_memory(const Value* v) {
  if (is_shared(v) || common_.contains(v)) return false;
  if (!v->inst) return slots_.contains(v);
  auto [at, is_new] = from_memory_.try_emplace(v, !is_pure(v->inst->op));
  if (!is_new || at->second) return at->second;
  bool any = false;
  for (const Use& use : v->inst->operands) any |= from_memory(use.value);
  return from_memory_[v] = any;
}

/// A narrower one that an integer is made of by arithmetic with what all parts have; else itself.
Value* Strips::narrower(Value* v) {
  const auto is_step = [](const Inst* inst) {
    return inst && (inst->is(Op::convert) || inst->is(Op::add) || inst->is(Op::sub) ||
                    inst->is(Op::mul) || inst->is(Op::shl));
  };
  for (Value* at = v; is_int(at->type);) {
    if (byte_size(at->type) < byte_size(v->type)) return at;
    if (!is_step(at->inst)) break;
    Value* from = nullptr;
    for (const Use& use : at->inst->operands) {
      if (!from_memory(use.value)) continue;
      if (from && from != use.value) return v;
      from = use.value;
    }
    if (!from) break;
    at = from;
  }
  return v;
}

void Strips::crosses(Value* v, const std::function<void(Value*)>& use) {
  if (!from_memory(v)) return;
  if (v->type != Type::address) return use(narrower(v));
  for (const Use& u : v->inst->operands) crosses(u.value, use);
}

void Strips::keep(Value* v) {
  crosses(v, [&](Value* kept) {
    if (slots_.contains(kept)) return;
    slots_[kept] = array(kept->type);
    kept_.push_back(kept);
  });
}

Value* Strips::array(Type elem) {
  const uint64_t elements = uint64_t(strip_);
  return may_end_early_ ? b_.slot(elem, elements) : b_.unset_slot(elem, elements);
}

Inst* Strips::begin_strips(std::span<Value* const> init) {
  Inst* strips = begin_whole_strips(walk_->operand(0), walk_->operand(1), init);
  count_ = b_.binary(Op::min, b_.sub(walk_->operand(1), base_), count_);
  return strips;
}

Inst* Strips::begin_whole_strips(Value* begin, Value* end, std::span<Value* const> init) {
  count_ = integer(strip_);
  Inst* strips = b_.loop(begin, end, count_, init);
  b_.at_end(strips->region(0));
  base_ = strips->region(0)->arg(0);
  return strips;
}

std::vector<Value*> Strips::each(uint8_t kind, std::span<Value* const> init, const Fill& fill) {
  Value* first = integer(0);
  Inst* loop = b_.loop(first, count_, integer(1), init);
  loop->kind = kind;
  Region* around = b_.region();
  b_.at_end(loop->region(0));
  within_ = loop->region(0)->arg(0);
  map_.clear();
  map_[body_->arg(0)] = b_.add(base_, within_);
  b_.yield(fill(loop->region(0)->args.subspan(1)));
  b_.at_end(around);
  std::vector<Value*> last;
  for (Value& v : loop->results) last.push_back(&v);
  return last;
}

void Strips::where(Value* condition, const std::function<void()>& fill) {
  Inst* branch = b_.if_(condition);
  Region* around = b_.region();
  b_.at_end(branch->region(1)).yield();
  b_.at_end(branch->region(0));
  fill();
  b_.yield();
  b_.at_end(around);
}

Value* Strips::need(Value* v) {
  auto found = map_.find(v);
  if (found != map_.end()) return found->second;
  if (is_shared(v)) return v;
  auto common = common_.find(v);
  if (common != common_.end() && common->second) return map_[v] = common->second;
  auto slot = slots_.find(v);
  if (slot != slots_.end()) return map_[v] = b_.get(slot->second, within_);
  copy(v->inst);
  return map_.at(v);
}

void Strips::copy(const Inst* inst) {
  outer_operands(inst, [&](Value* v) { need(v); });
  clone_inst(b_, inst, map_);
}

void Strips::copy_all(const Region* region) {
  for (const Inst* inst = region->first; inst != region->last; inst = inst->next) copy(inst);
}

}  // namespace quern::ir

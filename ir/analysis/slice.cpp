#include "ir/analysis/slice.h"

#include <algorithm>

#include "ir/analysis/facts.h"

namespace quern::ir {

bool Slice::is_pure() const {
  return std::ranges::all_of(code, [](const Inst* inst) { return ir::is_pure(inst->op); });
}

std::string Slicer::own_reason(const Value* v) {
  if (!v->inst) return "it is an argument of a region, another one in each run";
  const Inst* inst = v->inst;
  if (!inst->regions.empty()) return "it comes of a branch or loop";
  if (has(inst->op, flag::once)) return "it is another one each time it is asked for";
  if (has(inst->op, flag::writes)) return "it has an effect";
  const bool indexes_array = inst->is(Op::get) && inst->operand_count() > 1;
  if (can_fail(kernel_, inst) || (indexes_array && kernel_.modes.checked))
    return "it may be an error";
  if (is_pure(inst->op)) return "";
  if (!has(inst->op, flag::reads)) return "it has an effect";
  if (stays_ && stays_(inst)) return "";
  if (!touched_) touched_ = effects_.of(region_);
  const bool changes = effects_.may_overlap(effects_.of(inst).reads, touched_->writes);
  return changes ? "what it reads may have changed" : "";
}

const Value* Slicer::obstacle(const Value* v) {
  // Without recursion: chains of operations may be long.
  std::vector<const Value*> open = {v};
  while (!open.empty()) {
    const Value* at = open.back();
    if (obstacles_.contains(at)) {
      open.pop_back();
      continue;
    }
    if (is_known(at)) {
      obstacles_[at] = nullptr;
      continue;
    }
    if (!own_reason(at).empty()) {
      obstacles_[at] = at;
      continue;
    }
    const Value* found = nullptr;
    bool pending = false;
    for (const Use& use : at->inst->operands) {
      auto known = obstacles_.find(use.value);
      if (known == obstacles_.end()) {
        open.push_back(use.value);
        pending = true;
      } else if (known->second) {
        found = known->second;
      }
    }
    if (!pending) obstacles_[at] = found;
  }
  return obstacles_.at(v);
}

Slice Slicer::of(std::span<const Value* const> values, size_t most) {
  Slice slice;
  std::unordered_set<const Inst*> taken;
  for (const Value* v : values) {
    if (const Value* what = obstacle(v)) return {{}, what, own_reason(what)};
    std::vector<std::pair<const Inst*, size_t>> open;  // with operands done
    auto enter = [&](const Value* at) {
      if (!is_known(at) && taken.insert(at->inst).second) open.push_back({at->inst, 0});
    };
    enter(v);
    while (!open.empty()) {
      if (taken.size() > most)
        return {{}, v, "it takes more than " + std::to_string(most) + " operations"};
      auto& [inst, done] = open.back();
      if (done < inst->operand_count()) {
        enter(inst->operand(done++));
      } else {
        slice.code.push_back(inst);
        open.pop_back();
      }
    }
  }
  return slice;
}

void repeat(Builder& b, const Slice& slice, ValueMap& map) {
  for (const Inst* inst : slice.code) clone_inst(b, inst, map);
}

Value* repeat_outside(Builder& b, const Region* region, const Value* v, ValueMap& map) {
  const auto is_known = [&](const Value* at) {
    return map.contains(at) || !encloses(region, at->inst ? at->inst->parent : at->region);
  };
  std::vector<const Value*> open = {v};  // without recursion, as above
  while (!open.empty()) {
    const Value* at = open.back();
    const size_t before = open.size();
    if (!is_known(at))
      for (size_t k = at->inst->operand_count(); k-- > 0;)  // the first operand is made first
        if (!is_known(at->inst->operand(k))) open.push_back(at->inst->operand(k));
    if (open.size() > before) continue;
    if (!is_known(at)) clone_inst(b, at->inst, map);
    open.pop_back();
  }
  const auto made = map.find(v);
  return made == map.end() ? const_cast<Value*>(v) : made->second;
}

}  // namespace quern::ir

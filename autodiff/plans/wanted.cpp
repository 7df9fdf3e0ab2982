#include "autodiff/plans/wanted.h"

#include <algorithm>
#include <map>
#include <utility>

#include "autodiff/rules/rules.h"
#include "ir/analysis/effects.h"
#include "quern/ir/builder.h"
#include "quern/ir/partials.h"

namespace quern::autodiff {

using namespace ir;

namespace {

/// Of a derivative rule in one operand: which operands, and the result behind them, it reads.
std::vector<bool> reads_of_rule(Op op, std::span<const Type> types, Type result, size_t k) {
  Kernel kernel;
  Builder b(kernel);
  b.at_end(b.make_region());
  std::vector<Value*> values;
  for (Type type : types) values.push_back(b.param(0, type));
  Value* made = b.param(0, result);
  chain(b, op, values, made, k, b.param(0, result));
  values.push_back(made);
  std::vector<bool> reads;
  for (const Value* v : values) reads.push_back(v->uses != nullptr);
  return reads;
}

const std::vector<bool>& known_reads(const Inst* inst, size_t k) {
  using Key = std::tuple<Op, Type, size_t>;
  thread_local std::map<Key, std::vector<bool>> known;
  const auto [at, is_new] = known.try_emplace({inst->op, inst->type(), k});
  if (is_new) {
    std::vector<Type> types;
    for (const Use& use : inst->operands) types.push_back(use.value->type);
    at->second = reads_of_rule(inst->op, types, inst->type(), k);
  }
  return at->second;
}

/// Of a function: which arguments result number k is made of. All, where it takes branches, loops
/// or variables to make it.
std::vector<bool> reads_of(const Function& f, size_t k) {
  std::vector<bool> reads(f.body->args.size(), false);
  std::vector<const Value*> open = {f.body->terminator()->operand(k)};
  std::unordered_set<const Value*> seen;
  while (!open.empty()) {
    const Value* v = open.back();
    open.pop_back();
    if (!seen.insert(v).second) continue;
    if (!v->inst) {
      reads[size_t(v - f.body->arg(0))] = true;
    } else if (!v->inst->regions.empty() || v->inst->is(Op::get)) {
      reads.assign(reads.size(), true);
      break;
    } else {
      for (const Use& use : v->inst->operands) open.push_back(use.value);
    }
  }
  return reads;
}

bool is_element_wise(const Inst* inst) { return info(inst->op).rule != OperandRule::special; }

bool writes_floats(const Inst* inst) {
  const bool writes =
      inst->is(Op::store) || inst->is(Op::atomic) || inst->is(Op::reduce) || inst->is(Op::put);
  return writes && is_float(inst->elem);
}
bool varies(const Inst* inst, const Activity& active) {
  bool found = false;
  for (const Value& v : inst->results) found |= active(&v);
  return found;
}
}  // namespace

bool has_part(const Inst* inst, const Activity& active) {
  bool found = varies(inst, active);
  for (Region* r : inst->regions) walk(r, [&](const Inst* i) { found |= writes_floats(i); });
  return found;
}

bool has_part(const Kernel& kernel, const Activity& active) {
  bool found = false;
  walk(kernel.body, [&](const Inst* i) {
    const bool moves =
        (i->is(Op::append) || i->is(Op::deactivate)) && has_floats(kernel.bindings[i->binding()]);
    found = found || moves || writes_floats(i) || varies(i, active);
  });
  return found;
}

Wanted::Wanted(const Kernel& kernel, std::vector<const Region*> regions, const Activity& active,
               const Slopes& slopes, const LoggedReads& logged,
               std::function<bool(const Inst*)> is_kept, std::span<const Inst* const> passed_over)
    : kernel_(kernel),
      regions_(std::move(regions)),
      active_(active),
      slopes_(slopes),
      logged_(logged),
      is_kept_(std::move(is_kept)) {
  for (const Region* r : regions_)
    walk(const_cast<Region*>(r), [&](const Inst* inst) {
      if (inst->is(Op::put) || inst->is(Op::reduce)) puts_.push_back(inst);
    });
  for (const Region* r : regions_)
    walk(const_cast<Region*>(r), [&](const Inst* inst) {
      if (std::ranges::find(passed_over, inst) == passed_over.end()) seed(inst);
    });
  while (!open_.empty()) {
    const Value* v = open_.back();
    open_.pop_back();
    follow(v);
  }
}

void Wanted::want(const Value* v) {
  if (v->type != Type::slot && wanted_.insert(v).second) open_.push_back(v);
}

void Wanted::want_operands(const Inst* inst, size_t first) {
  for (size_t k = first; k < inst->operand_count(); k++) want(inst->operand(k));
}

/// What going back through the instruction reads.
void Wanted::seed(const Inst* inst) {
  switch (inst->op) {
    case Op::load:
      if (!active_(inst->result())) return;
      [[fallthrough]];
    case Op::store:
    case Op::atomic:
      if (!is_float(inst->elem)) return;
      for (size_t k = 0; k < Effects::indices(inst); k++) want(inst->operand(k));
      return;
    case Op::get:
      if (inst->operand_count() > 1 && active_(inst->result())) want(inst->operand(1));
      return;
    case Op::put:
      if (inst->operand_count() > 2 && active_(inst->operand(0))) want(inst->operand(1));
      return;
    case Op::if_:
    case Op::loop:
      if (has_part(inst, active_))
        for (size_t k = 0; k < (inst->is(Op::if_) ? 1 : 3); k++) want(inst->operand(k));
      return;
    case Op::while_:  // its rounds are counted once more
      if (has_part(inst, active_)) want(inst->region(0)->terminator()->operand(0));
      return;
    case Op::parallel: return want_operands(inst);
    case Op::apply: return seed_applied(inst);
    default:
      if (is_element_wise(inst) && !inst->results.empty() && active_(inst->result()))
        seed_operation(inst);
  }
}

void Wanted::seed_operation(const Inst* inst) {
  if (inst->is(Op::convert)) return;
  if (const auto slope = slopes_.find(inst); slope != slopes_.end()) return want(slope->second);
  for (size_t k = 0; k < inst->operand_count(); k++) {
    if (!active_(inst->operand(k))) continue;
    const std::vector<bool>& reads = known_reads(inst, k);
    for (size_t n = 0; n < inst->operand_count(); n++)
      if (reads[n]) want(inst->operand(n));
    if (reads.back()) want(inst->result());
  }
}

/// What the function's pullback reads to give what varies its adjoints.
void Wanted::seed_applied(const Inst* inst) {
  if (!has_part(inst, active_)) return;
  const Function* rule = rule_of(kernel_, inst, Direction::back);
  if (!rule) return want_operands(inst);  // to be refused
  const auto wants = [&](const std::vector<bool>& reads) {
    const size_t count = inst->operand_count();
    for (size_t k = 0; k < count; k++)
      if (reads[k]) want(inst->operand(k));
    for (size_t k = 0; k < inst->results.size(); k++)
      if (reads[count + k]) want(inst->result(k));
  };
  size_t given = 0;
  for (const Use& use : inst->operands) {
    if (!is_float(use.value->type)) continue;
    if (active_(use.value) && given < rule->results.size()) wants(reads_of(*rule, given));
    given++;
  }
}

bool Wanted::is_inside(const Value* v) const {
  const Region* home = v->inst ? v->inst->parent : v->region;
  return std::ranges::any_of(regions_, [&](const Region* r) { return encloses(r, home); });
}

/// What is put, and whether and how often that is.
void Wanted::want_put(const Inst* put) {
  want_operands(put, 1);
  for (const Region* r = put->parent; r && std::ranges::find(regions_, r) == regions_.end();
       r = r->parent ? r->parent->parent : nullptr) {
    const Inst* around = r->parent;
    if (!around) return;
    if (around->is(Op::if_)) want(around->operand(0));
    if (around->is(Op::loop))
      for (size_t n = 0; n < 3; n++) want(around->operand(n));
    if (around->is(Op::while_)) want(around->region(0)->terminator()->operand(0));
  }
}

/// What the value is computed from.
void Wanted::follow(const Value* v) {
  if (!is_inside(v)) return;
  if (!v->inst) return follow_argument(v);
  if (const auto read = logged_.find(v->inst); read != logged_.end()) return want(read->second.row);
  if (v->inst->parent == regions_.back() && is_kept_(v->inst))
    kept_.push_back(v);
  else
    follow_result(v);
}

void Wanted::follow_argument(const Value* arg) {
  const Region* region = arg->region;
  const Inst* of = region->parent;
  const auto k = size_t(arg - region->arg(0));
  const bool is_body = of->is(Op::while_) && region == of->region(1);
  if (is_body) return want(of->region(0)->terminator()->operand(1 + k));
  if (region == regions_.front()) return;  // its rounds keep it
  if (of->is(Op::while_)) {
    want(of->operand(k));
    want(of->region(1)->terminator()->operand(k));
  } else if (of->is(Op::loop) && k > 0) {
    want(of->operand(2 + k));
    want(region->terminator()->operand(k - 1));
  } else if (of->is(Op::loop)) {
    for (size_t n = 0; n < 3; n++) want(of->operand(n));
  } else {
    want_operands(of);
  }
}

void Wanted::follow_result(const Value* v) {
  const Inst* inst = v->inst;
  const auto k = size_t(v - inst->result(0));
  switch (inst->op) {
    case Op::if_:
      want(inst->operand(0));
      for (const Region* r : inst->regions) want(r->terminator()->operand(k));
      return;
    case Op::loop:
      for (size_t n = 0; n < 3; n++) want(inst->operand(n));
      want(inst->operand(3 + k));
      return want(inst->region(0)->terminator()->operand(k));
    case Op::while_:
      want(inst->region(0)->terminator()->operand(0));
      want(inst->region(0)->terminator()->operand(1 + k));
      return;
    case Op::get:
      want_operands(inst, 1);
      for (const Inst* put : puts_)
        if (put->operand(0) == inst->operand(0)) want_put(put);
      return;
    default: want_operands(inst);
  }
}

}  // namespace quern::autodiff

// What a replay keeps, and who goes back finds again: of loops' rounds, of branches, and results of
// the augmented primal.
#include <algorithm>

#include "autodiff/plans/inverses.h"
#include "autodiff/reverse/replay.h"

namespace quern::autodiff {

using namespace ir;

namespace {

/// What the body has of carried value number k.
const Value* carried_by_body(const Inst* loop, size_t k) {
  const Region* body = loop->regions.back();
  return body->arg(body->args.size() - loop->results.size() + k);
}

}  // namespace

// ---- what is kept

void Replay::make_arrays(const Inst* loop) {
  const LoopPlan& plan = plans_.of(loop);
  std::vector<Value*>& arrays = arrays_[loop];
  arrays.clear();
  for (Type type : plan.types) arrays.push_back(b_.slot(type, plan.rounds));
}

/// The element of arrays, or the row, of a round.
Value* Replay::place_of(const Inst* loop, Value* round) {
  const int site = site_of(loop);
  if (site < 0) return b_.convert(round, Type::i32);
  const Inst* alike = sites_[size_t(site)].alike;
  if (!alike)
    return last_row_or(b_, fields_.rows[size_t(site)], b_.add(first_row_.at(site), round));
  return b_.add(b_.mul(round, places_.at(alike)), iteration_.at(alike));
}

void Replay::keep(const Inst* loop, size_t number, Value* at, Value* v) {
  const int site = site_of(loop);
  if (site < 0)
    b_.put(arrays_.at(loop)[number], at, v);
  else
    b_.store(fields_.rows[size_t(site)], uint32_t(number), {&at, 1}, v);
}

Value* Replay::kept(const Inst* loop, size_t number, Value* at, Type type) {
  const int site = site_of(loop);
  return site < 0 ? b_.get(arrays_.at(loop)[number], at)
                  : b_.load(fields_.rows[size_t(site)], uint32_t(number), type, {&at, 1});
}

void Replay::keep_carried(const Inst* loop, Value* at) {
  const LoopPlan& plan = plans_.of(loop);
  const Region* first = loop->region(0);
  size_t number = 0;
  for (size_t k = 0; k < plan.carried.size(); k++)
    if (plan.carried[k])
      keep(loop, number++, at, now(first->arg(first->args.size() - plan.carried.size() + k)));
}

void Replay::make_starts(const Inst* loop) {
  std::vector<Value*>& starts = starts_[loop];
  starts.clear();
  for (size_t k : plans_.of(loop).inverted) starts.push_back(b_.slot(loop->result(k)->type));
}

void Replay::put_starts(const Inst* loop) {
  const std::vector<size_t>& inverted = plans_.of(loop).inverted;
  for (size_t n = 0; n < inverted.size(); n++)
    b_.put(starts_.at(loop)[n], now(carried_by_body(loop, inverted[n])));
}

void Replay::restore(const Inst* loop, Value* round) {
  restore_kept(loop, round);
  const std::vector<size_t>& inverted = plans_.of(loop).inverted;
  if (inverted.empty()) return;
  const Region* first = loop->region(0);
  for (size_t k = 0; first != loop->regions.back() && k < loop->results.size(); k++)
    values_[carried_by_body(loop, k)] = now(first->arg(k));  // as far as the test passes it on
  const Inverses inverses(loop);
  Value* last = b_.sub(rounds(loop), b_.integer(Type::i64, 1));
  Value* is_last = b_.binary(Op::eq, round, last);
  for (size_t n = 0; n < inverted.size(); n++) {
    Value* slot = starts_.at(loop)[n];
    Value* behind = b_.get(slot);
    Value* found =
        inverses.start(b_, inverted[n], behind, [this](const Value* v) { return now(v); });
    Value* start = b_.select(is_last, behind, found);
    b_.put(slot, start);
    values_[carried_by_body(loop, inverted[n])] = start;
    values_[first->arg(first->args.size() - loop->results.size() + inverted[n])] = start;
  }
}

void Replay::restore_values(const Inst* loop) {
  Value* round = round_now(loop, operands_now(loop));
  open_[loop->regions.back()] = {loop, place_of(loop, round), true};
}

void Replay::restore_last_test(const Inst* loop) {
  restore_kept(loop, rounds(loop));
  for (size_t k : plans_.of(loop).inverted) values_[loop->region(0)->arg(k)] = now(loop->result(k));
}

void Replay::restore_kept(const Inst* loop, Value* round) {
  const LoopPlan& plan = plans_.of(loop);
  const Region* first = loop->region(0);
  Value* at = place_of(loop, round);
  size_t number = 0;
  for (size_t k = 0; k < plan.carried.size(); k++) {
    const Value* arg = first->arg(first->args.size() - plan.carried.size() + k);
    values_[arg] = plan.carried[k] ? kept(loop, number++, at, arg->type)
                                   : b_.constant(arg->type, 0);  // nobody wants it
  }
  open_[loop->regions.back()] = {loop, at, true};
}

void Replay::keep_or_restore(const Open& open, const Inst* inst) {
  if (open.owner->is(Op::if_)) {
    for (const Value& v : inst->results)
      if (const auto passed = passed_on_.find(&v); passed != passed_on_.end())
        values_[&v] = passed->second;
    return;
  }
  const LoopPlan& plan = plans_.of(open.owner);
  const auto carried = size_t(std::ranges::count(plan.carried, true));
  for (size_t k = 0; k < plan.values.size(); k++) {
    const Value* v = plan.values[k];
    if (v->inst != inst) continue;
    if (open.restores)
      values_[v] = kept(open.owner, carried + k, open.at, v->type);
    else
      keep(open.owner, carried + k, open.at, now(v));
  }
}

// ---- results that the augmented primal keeps

const KeptResult* Replay::kept_result(const Value* v) const {
  const auto at = std::ranges::find(fields_.kept, v, &KeptResult::value);
  return at == fields_.kept.end() ? nullptr : &*at;
}

/// Element by element, then by iteration, as rounds lie.
Value* Replay::place_of(const KeptResult& kept, Value* element) {
  Value* iteration = iteration_.at(kept.parallel);
  if (kept.elements == 1) return iteration;
  return b_.add(b_.mul(b_.convert(element, Type::i64), places_.at(kept.parallel)), iteration);
}

void Replay::keep_result(const KeptResult& kept, Value* element, Value* v) {
  Value* at = place_of(kept, element);
  b_.store(kept.binding, 0, {&at, 1}, v);
}

/// Comes back: is it, or what it makes, among them, and so done?
bool Replay::replay_kept(const Inst* inst) {
  if (fields_.kept.empty()) return false;
  const auto load = [&](const KeptResult& kept, Value* element) {
    Value* at = place_of(kept, element);
    return b_.load(kept.binding, 0, kept.type, {&at, 1});
  };
  if (inst->is(Op::slot) || inst->is(Op::get) || inst->is(Op::put)) {
    const bool is_slot = inst->is(Op::slot);
    const KeptResult* kept = kept_result(is_slot ? inst->result() : inst->operand(0));
    if (!kept) return false;
    if (mode_ == augmenting) {
      clone_inst(b_, inst, values_);
      if (inst->is(Op::put)) keep_result(*kept, now(inst->operand(1)), now(inst->operand(2)));
    } else if (inst->is(Op::get)) {
      values_[inst->result()] = load(*kept, now(inst->operand(1)));
    }
    return true;
  }
  if (!inst->is(Op::loop)) return false;
  const bool any =
      std::ranges::any_of(inst->results, [this](const Value& v) { return kept_result(&v); });
  // Rows that loops inside take are counted there; a loop that is run again is run for the
  // variables of the kernel, which take what nobody wants going back, too.
  if (!any || mode_ == counting || runs_again_) return false;
  if (mode_ == augmenting) {
    loop(inst);
    for (const Value& v : inst->results)
      if (const KeptResult* kept = kept_result(&v)) keep_result(*kept, nullptr, now(&v));
    return true;
  }
  if (changes_others(inst)) return false;
  for (const Value& v : inst->results) {
    const KeptResult* kept = kept_result(&v);
    values_[&v] = kept ? load(*kept, nullptr) : b_.constant(v.type, 0);  // nobody wants it
  }
  return true;
}

/// Does it leave something in variables, but for arrays that are kept?
bool Replay::changes_others(const Inst* loop) const {
  bool changes = false;
  walk(loop->region(0), [&](const Inst* inst) {
    const bool is_outside =
        inst->is(Op::put) && !encloses(loop->region(0), inst->operand(0)->inst->parent);
    changes |= inst->is(Op::reduce) || (is_outside && !kept_result(inst->operand(0)));
  });
  return changes;
}

}  // namespace quern::autodiff

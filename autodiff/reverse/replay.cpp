#include "autodiff/reverse/replay.h"

#include <algorithm>
#include <utility>

#include "autodiff/plans/alike_rows.h"
#include "autodiff/plans/augmentable.h"

namespace quern::autodiff {

using namespace ir;

namespace {

/// Of a local array all of whose elements that are read are logged; or a write to one.
bool is_logged_array(const Inst* inst, const LoggedReads& logged) {
  const Inst* slot = inst->is(Op::put) ? inst->operand(0)->inst : inst;
  if (slot->imm <= 1) return false;
  for (const Use* use = slot->result()->uses; use; use = use->next)
    if (use->user->is(Op::get) && !logged.contains(use->user)) return false;
  return true;
}

void expect_repeatable(const Inst* inst) {
  switch (inst->op) {
    case Op::atomic:
      if (inst->used() && inst->atomic() != AtomicOp::load)
        refuse(inst, "the old value of an atomic " + std::string(name(inst->atomic())),
               "it depends on the order of iterations");
      return;
    case Op::append:
    case Op::deactivate:
      refuse(inst, "what ends or appends elements of a tree",
             "launch it in a with_pullback(), which says what goes back");
    default: return;
  }
}

}  // namespace

void refuse(const Inst* inst, const std::string& what, const std::string& advice) {
  throw Error(inst->loc, what + " has no adjoint: " + advice);
}

std::vector<RoundsSite> rounds_sites(const Kernel& primal, const LoopPlans& plans, bool on_trees) {
  std::vector<RoundsSite> sites;
  walk(primal.body, [&](const Inst* inst) {
    expect_repeatable(inst);
    if ((inst->is(Op::loop) || inst->is(Op::while_)) && plans.of(inst).is_in_rows)
      sites.push_back({inst, plans.of(inst).types, on_trees ? nullptr : alike_in(primal, inst)});
  });
  return sites;
}

/// As wide as must be, since vectors of it stand beside those of floats.
Type round_type(const LoopPlan& plan) {
  return plan.rounds > 1 && plan.rounds < (uint64_t(1) << 31) ? Type::i32 : Type::i64;
}

// ---- values

Value* Replay::now(const Value* v) const {
  const auto at = values_.find(v);
  if (at == values_.end()) throw InternalError("a value that was not computed again");
  return at->second;
}

std::vector<Value*> Replay::operands_now(const Inst* inst) const {
  std::vector<Value*> all;
  for (const Use& use : inst->operands) all.push_back(now(use.value));
  return all;
}

std::vector<Value*> Replay::indices_now(const Inst* inst) const {
  std::vector<Value*> all;
  for (uint32_t k = 0; k < primal_.bindings[inst->binding()].rank; k++)
    all.push_back(now(inst->operand(k)));
  return all;
}

// ---- regions

void Replay::region(const Region* of, Mode mode) {
  root_ = of;
  pass(of, mode);
}

/// An array that was made outside of what is replayed was filled when that was.
bool Replay::is_done(const Inst* inst) const {
  return inst->is(Op::put) && inst->operand(0)->inst->imm > 1 &&
         !encloses(root_, inst->operand(0)->inst->parent);
}

/// Who goes back through a branch or a loop of an iteration replays it again, and who counts
/// replays all of it: into a variable from outside of what is replayed a loop reduces once. That is
/// when the kernel's body is replayed, or where loops are left out of that or are there to be
/// counted.
bool Replay::reduces_here(const Inst* reduce) const {
  if (mode_ == counting) return false;
  if (mode_ == logging) return encloses(root_, reduce->operand(0)->inst->parent);
  const Inst* of = root_->parent;
  const bool in_loops = leaves_loops_out_ || !totals_.empty();
  return !of || (of->is(Op::parallel) && in_loops) ||
         encloses(root_, reduce->operand(0)->inst->parent);
}

/// Once, as its iteration is replayed as a whole before loops and branches of it are gone back
/// through; a loop that is replayed before that, for what it reduces, adds nothing.
bool Replay::adds_here(const Inst* atomic) const {
  if (atomic->binding() != added_to_ || (mode_ != plain && mode_ != recording)) return false;
  const Inst* around = atomic->parent->parent;
  while (around && !around->is(Op::parallel)) around = around->parent->parent;
  return root_->parent == around;
}

void Replay::pass(const Region* region, Mode mode) {
  const Mode around = std::exchange(mode_, mode);
  const auto known = open_.find(region);
  const Open open = known == open_.end() ? Open{} : known->second;
  for (const Inst* inst : *region) {
    if (has(inst->op, flag::ends)) continue;
    replay(inst);
    if (open.owner) keep_or_restore(open, inst);
    if (const Value* v = known_.first; v && v->inst == inst) values_[v] = known_.second;
  }
  mode_ = around;
}

std::vector<Value*> Replay::count(const Region* region_of) {
  std::vector<Value*> counted(sites_.size(), nullptr);
  most_.assign(sites_.size(), nullptr);
  bool any = false;
  for (size_t k = 0; k < sites_.size(); k++) {
    const Region* home = sites_[k].loop->parent;
    bool inside_parallel = false;
    for (const Region* r = home; r != region_of && r->parent; r = r->parent->parent)
      inside_parallel |= r->parent->is(Op::parallel);
    if (!encloses(region_of, home) || inside_parallel || sites_[k].alike) continue;
    most_[k] = b_.slot(Type::i64);
    any = true;
  }
  if (!any) return counted;
  region(region_of, counting);
  for (size_t k = 0; k < sites_.size(); k++)
    if (most_[k]) counted[k] = b_.get(most_[k]);
  return counted;
}

void Replay::record(const Region* region_of) {
  const std::vector<Value*> counted = count(region_of);
  for (size_t k = 0; k < counted.size(); k++) {
    if (!counted[k]) continue;
    Value* cursor = b_.integer(Type::i64, int64_t(k));
    first_row_[int(k)] =
        b_.atomic(AtomicOp::add, fields_.cursors, 0, Type::i64, {&cursor, 1}, {&counted[k], 1})
            ->result();
  }
  region(region_of, recording);
}

void Replay::log(const Region* region_of) {
  const bool any = std::ranges::any_of(logged_, [&](const auto& read) {
    return read.second.is_private && encloses(region_of, read.first->parent);
  });
  if (any) run_again([&] { region(region_of, logging); });
}

/// Before an iteration has logged what it reads of its own variables, or instead.
template <class F>
void Replay::run_again(F&& replay) {
  runs_again_ = true;
  replay();
  runs_again_ = false;
}

void Replay::finish(const Region* region) {
  for (const Inst* inst : *region)
    if (!has(inst->op, flag::ends) && !inst->is(Op::slot) && !inst->is(Op::put)) replay(inst);
}

void Replay::check_rows(Kernel& kernel) {
  for (size_t k = 0; k < sites_.size(); k++) {
    if (sites_[k].alike) continue;
    b_.at(sites_[k].loop->loc);
    Value* cursor = b_.integer(Type::i64, int64_t(k));
    Value* taken = b_.load(fields_.cursors, 0, Type::i64, {&cursor, 1});
    Value* there = b_.extent(fields_.rows[k], 0, Type::i64);
    check_same_rounds(kernel, b_, b_.binary(Op::le, taken, there));
  }
}

void Replay::count_all(const Region* body, std::span<Value* const> totals) {
  totals_ = totals;
  const std::vector<Value*> counted = count(body);
  for (size_t k = 0; k < counted.size(); k++)
    if (counted[k]) {
      Value* sum = b_.add(b_.get(totals[k]), counted[k]);
      b_.put(totals[k], sum);
    }
  if (std::ranges::any_of(sites_, [](const RoundsSite& s) { return s.alike != nullptr; }))
    region(body, plain);
  for (size_t k = 0; k < sites_.size(); k++)
    if (sites_[k].alike) {
      const Alike counts = count_alike(sites_[k]);
      b_.put(totals[k], counts.rows);
    }
  bool is_in_parallel = false;  // which count() leaves out
  walk(const_cast<Region*>(body),
       [&](const Inst* inst) { is_in_parallel |= inst->is(Op::parallel); });
  if (is_in_parallel) region(body, totalling);
}

Replay::Alike Replay::count_alike(const RoundsSite& site) {
  place_iterations(site.alike, operands_now(site.alike));
  Value* iterations = places_.at(site.alike);
  return {iterations, b_.mul(rounds_alike(site.loop), iterations)};
}

Replay::Alike Replay::count_alike(const KeptResult& kept) {
  place_iterations(kept.parallel, operands_now(kept.parallel));
  Value* iterations = places_.at(kept.parallel);
  return {iterations, b_.mul(b_.integer(Type::i64, int64_t(kept.elements)), iterations)};
}

bool Replay::has_rows_alike(const Inst* parallel) const {
  return std::ranges::any_of(sites_, [&](const RoundsSite& s) { return s.alike == parallel; }) ||
         std::ranges::find(fields_.kept, parallel, &KeptResult::parallel) != fields_.kept.end();
}

void Replay::place_iterations(const Inst* parallel, std::span<Value* const> operands) {
  places_[parallel] = places_of(b_, iterations_of(b_, parallel, operands));
}

void Replay::count_iterations(const Inst* inst, std::span<Value* const> operands) {
  if (has_rows_alike(inst)) place_iterations(inst, operands);
}

void Replay::number_iteration(const Inst* inst) {
  if (!has_rows_alike(inst)) return;
  Value* number = b_.make(Op::iteration, {Type::u64}, {})->result();
  iteration_[inst] = b_.bitcast(number, Type::i64);
}

/// Of a loop whose bounds are known before the parallel one around it, there or inside.
Value* Replay::rounds_alike(const Inst* loop) {
  std::vector<Value*> bounds;
  for (size_t k = 0; k < 3; k++) {
    const Value* v = loop->operand(k);
    bounds.push_back(v->inst->is(Op::constant) ? b_.constant(v->type, v->inst->imm) : now(v));
  }
  return rounds_between(b_, bounds);
}

void Replay::replay(const Inst* inst) {
  b_.at(inst->loc);
  if (replay_kept(inst)) return;
  const bool is_effect = has(inst->op, flag::writes) && !has(inst->op, flag::slots);
  if (mode_ == augmenting && (is_effect || inst->is(Op::atomic))) {
    clone_inst(b_, inst, values_);
    return;
  }
  if (const auto read = logged_.find(inst); read != logged_.end()) {
    Value* row = row_or_last(b_, read->second, now(read->second.row));
    if (runs_again_ && read->second.is_private) {
      clone_inst(b_, inst, values_);
      if (mode_ == logging) b_.store(read->second.binding, 0, {&row, 1}, now(inst->result()));
    } else {
      values_[inst->result()] = b_.load(read->second.binding, 0, inst->elem, {&row, 1});
    }
    return;
  }
  switch (inst->op) {
    case Op::store:
    case Op::check:
    case Op::print:
    case Op::activate: return;
    case Op::slot:
    case Op::put:
      if (runs_again_ || (!is_logged_array(inst, logged_) && !is_done(inst)))
        clone_inst(b_, inst, values_);
      return;
    case Op::atomic:
      if (inst->atomic() == AtomicOp::load)
        values_[inst->result()] =
            b_.load(inst->binding(), inst->component(), inst->elem, indices_now(inst));
      else if (adds_here(inst))
        clone_inst(b_, inst, values_);
      return;
    case Op::parallel: {
      if (mode_ == totalling) return total(inst);
      if (mode_ == augmenting) return parallel(inst, [&] { pass(inst->region(0), augmenting); });
      if (leaves_loops_out_) return;
      bool reduces = false;  // it has no other effect that is left
      walk(inst->region(0), [&](const Inst* i) { reduces |= i->is(Op::reduce); });
      if (reduces) parallel(inst, [&] { run_again([&] { pass(inst->region(0), plain); }); });
      return;
    }
    case Op::reduce:
      if (reduces_here(inst)) clone_inst(b_, inst, values_);
      return;
    case Op::if_: return branch(inst);
    case Op::loop: return loop(inst);
    case Op::while_: return while_loop(inst);
    default: {
      Inst* made = clone_inst(b_, inst, values_);
      if (plans_.rows_vary())
        keep_order(made);
      else if (free_sums_.contains(inst))
        made->kind |= reassociate;
    }
  }
}

/// The iterations' rows become terms of the totals; what the loop reduces beside is computed, too.
void Replay::total(const Inst* inst) {
  parallel(inst, [&] {
    const std::vector<Value*> counted = count(inst->region(0));
    for (size_t k = 0; k < counted.size(); k++)
      if (counted[k]) {
        Inst* made = b_.make(Op::reduce, {}, {totals_[k], counted[k]});
        made->elem = Type::i64;
        made->kind = uint8_t(AtomicOp::add);
      }
    region(inst->region(0), plain);
  });
}

void Replay::copy_parallel(const Inst* inst, std::span<Value* const> operands, Region* body) {
  Inst* made = b_.at(inst->loc).make(Op::parallel, std::span<const Type>(), operands);
  made->kind = inst->kind;
  made->options = inst->options;
  if (plans_.rows_vary()) keep_order(made);
  b_.set_regions(made, {body});
}

/// Where it is recorded, with what its regions pass on to who goes back through them.
void Replay::branch(const Inst* inst) {
  std::vector<Type> types;
  for (const Value& v : inst->results) types.push_back(v.type);
  std::vector<const Value*> passed;
  if (mode_ == recording)
    for (const Region* r : inst->regions)
      for (const Value* v : plans_.kept_in(r)) {
        passed.push_back(v);
        types.push_back(v->type);
      }
  Value* condition = now(inst->operand(0));
  Region* regions[2];
  for (size_t k = 0; k < 2; k++) {
    const Region* r = inst->region(k);
    open_.erase(r);
    regions[k] = inside(r, [&] {
      pass(r, inner_mode());
      std::vector<Value*> yielded = operands_now(r->terminator());
      for (const Value* v : passed)
        yielded.push_back(v->inst->parent == r ? now(v) : b_.constant(v->type, 0));
      b_.yield(yielded);
    });
  }
  Inst* made = b_.make(Op::if_, std::span<const Type>(types), std::span(&condition, 1));
  b_.set_regions(made, {regions[0], regions[1]});
  const size_t own = inst->results.size();
  for (size_t k = 0; k < own; k++) values_[inst->result(k)] = made->result(k);
  for (size_t k = 0; k < passed.size(); k++) passed_on_[passed[k]] = made->result(own + k);
}

// ---- loops

int Replay::site_of(const Inst* loop) const {
  for (size_t k = 0; k < sites_.size(); k++)
    if (sites_[k].loop == loop) return int(k);
  return -1;
}

void Replay::took(int site, Value* rows) {
  Value* slot = most_[size_t(site)];
  Value* most = b_.binary(Op::max, b_.get(slot), rows);
  b_.put(slot, most);
}

/// i64, of the round that is replayed.
Value* Replay::round_now(const Inst* loop, std::span<Value* const> bounds) {
  const Type type = bit_width(bounds[0]->type) < 64 ? Type::i64 : bounds[0]->type;
  Value* index = b_.convert(now(loop->region(0)->arg(0)), type);
  Value* lo = b_.convert(bounds[0], type);
  Value* step = b_.convert(bounds[2], type);
  return b_.convert(b_.div(b_.sub(index, lo), step), Type::i64);
}

/// Does what is replayed keep what its rounds begin with?
bool Replay::keeps(const Inst* loop) const {
  const int site = site_of(loop);
  if (mode_ == augmenting) return site >= 0 && sites_[size_t(site)].is_augmented;
  return mode_ == recording && !plans_.of(loop).types.empty();
}

void Replay::keep_ends(const Inst* loop, Value* last) {
  const RoundsSite& site = sites_[size_t(site_of(loop))];
  const uint32_t ends = fields_.ends[size_t(site_of(loop))];
  Value* at = iteration_.at(site.alike);
  uint32_t number = 0;
  for (const Value& v : loop->results)
    if (v.uses) b_.store(ends, number++, {&at, 1}, now(&v));
  for (Value* start : starts_.at(loop)) {
    Value* begun = b_.get(start);
    b_.store(ends, number++, {&at, 1}, begun);
  }
  if (last) b_.store(ends, number, {&at, 1}, b_.get(last));
}

/// What the primal's launch has found at the loop's end.
void Replay::restore_ends(const Inst* loop) {
  const RoundsSite& site = sites_[size_t(site_of(loop))];
  const uint32_t ends = fields_.ends[size_t(site_of(loop))];
  Value* at = iteration_.at(site.alike);
  rounds_[loop] = rounds_between(b_, operands_now(loop));
  uint32_t number = 0;
  const auto next = [&] {
    const Type type = site.ends[number];
    return b_.load(ends, number++, type, {&at, 1});
  };
  for (const Value& v : loop->results) values_[&v] = v.uses ? next() : b_.constant(v.type, 0);
  make_starts(loop);
  for (Value* start : starts_.at(loop)) {
    Value* begun = next();
    b_.put(start, begun);
  }
  if (plans_.of(loop).way == LoopPlan::last_replacing) last_replacing_[loop] = next();
}

void Replay::note_replacing(const Inst* loop, Value* round, Value* last) {
  const LoopPlan& plan = plans_.of(loop);
  Value* replaced =
      is_replaced(b_, plan.replacements[0], [this](const Value* v) { return now(v); });
  Value* noted = b_.select(replaced, b_.convert(round, round_type(plan)), b_.get(last));
  b_.put(last, noted);
}

void Replay::loop(const Inst* inst) {
  const int site = site_of(inst);
  const bool is_kept = site >= 0 && sites_[size_t(site)].is_augmented && !fields_.ends.empty();
  if (is_kept && mode_ != augmenting && mode_ != counting) return restore_ends(inst);
  const std::vector<Value*> bounds = operands_now(inst);
  const Region* body = inst->region(0);
  if (mode_ != plain && mode_ != logging) rounds_[inst] = rounds_between(b_, bounds);
  if (mode_ == counting && site >= 0 && !sites_[size_t(site)].alike) took(site, rounds_[inst]);
  const bool keeps_rounds = keeps(inst), records = mode_ == recording || keeps_rounds;
  if (keeps_rounds && site < 0) make_arrays(inst);
  if (records) make_starts(inst);
  Value* last = nullptr;
  if (records && plans_.of(inst).way == LoopPlan::last_replacing) {
    last = b_.slot(round_type(plans_.of(inst)));
    b_.put(last, b_.integer(last->inst->elem, -1));
  }
  open_.erase(body);
  std::vector<Type> types;
  for (const Value& v : inst->results) types.push_back(v.type);
  Region* made = inside(body, [&] {
    Value* round = keeps_rounds || last ? round_now(inst, bounds) : nullptr;
    if (keeps_rounds) {
      Value* at = place_of(inst, round);
      keep_carried(inst, at);
      open_[body] = {inst, at, false};
    }
    if (records) put_starts(inst);
    pass(body, inner_mode());
    if (last) note_replacing(inst, round, last);
    const std::vector<Value*> yielded = operands_now(body->terminator());
    b_.yield(yielded);
  });
  Inst* copy = b_.make(Op::loop, std::span<const Type>(types), bounds);
  b_.set_regions(copy, {made});
  for (size_t k = 0; k < types.size(); k++) values_[inst->result(k)] = copy->result(k);
  if (mode_ == augmenting && keeps_rounds) return keep_ends(inst, last);
  if (last) last_replacing_[inst] = b_.get(last);
}

/// A row is what the condition was tested on: one more than there are rounds.
void Replay::while_loop(const Inst* inst) {
  const int site = site_of(inst);
  const std::vector<Value*> init = operands_now(inst);
  const bool records = mode_ == recording && plans_.of(inst).way == LoopPlan::backwards;
  const bool keeps = records && site >= 0;
  const bool is_counted = mode_ == counting || mode_ == totalling || mode_ == recording;
  const bool counts = records || (is_counted && site >= 0);
  if (records) make_starts(inst);
  Value* tested = counts ? b_.slot(Type::i64) : nullptr;
  if (counts) b_.put(tested, b_.integer(Type::i64, 0));
  open_.erase(inst->region(1));
  const auto open_row = [&](Value* round) {
    Value* at = place_of(inst, round);
    open_[inst->region(1)] = {inst, at, false};
    return at;
  };
  std::vector<Type> types;
  for (const Value& v : inst->results) types.push_back(v.type);
  Region* regions[2];
  for (size_t n = 0; n < 2; n++) {
    const Region* r = inst->region(n);
    regions[n] = inside(r, [&] {
      if (counts) {
        Value* one = b_.integer(Type::i64, 1);
        Value* round = b_.get(tested);
        if (n == 0) {
          if (keeps) keep_carried(inst, open_row(round));
          b_.put(tested, b_.add(round, one));
        } else if (keeps) {
          open_row(b_.sub(round, one));
        }
      }
      if (records && n == 1) put_starts(inst);
      pass(r, inner_mode());
      const std::vector<Value*> yielded = operands_now(r->terminator());
      b_.yield(yielded);
    });
  }
  Inst* made = b_.make(Op::while_, std::span<const Type>(types), init);
  b_.set_regions(made, {regions[0], regions[1]});
  for (size_t k = 0; k < types.size(); k++) values_[inst->result(k)] = made->result(k);
  if (!counts) return;
  Value* rows = b_.get(tested);
  if (mode_ == counting) took(site, rows);
  rounds_[inst] = b_.sub(rows, b_.integer(Type::i64, 1));
}

}  // namespace quern::autodiff

#include "autodiff/replay.h"

#include <algorithm>
#include <utility>

namespace quern::autodiff {

using namespace ir;

namespace {

/// Rounds of a loop between constants that are kept in arrays.
constexpr int64_t most_in_arrays = 64;

bool passes_on(const Inst* inst) {
  return inst->is(Op::add) || inst->is(Op::sub) || inst->is(Op::neg) ||
         (inst->is(Op::convert) && is_float(inst->type()));
}

bool is_wanted(const Value* v, const Region* region, std::vector<const Value*>& seen) {
  if (std::ranges::find(seen, v) != seen.end()) return false;
  seen.push_back(v);
  for (const Use* use = v->uses; use; use = use->next) {
    const Inst* user = use->user;
    if (user == region->terminator()) continue;
    if (!passes_on(user) || !is_float(v->type) || is_wanted(user->result(), region, seen))
      return true;
  }
  return false;
}

/// Does going back through the loop want what its rounds began with? Sums want none of their terms.
bool keeps_rounds(const Inst* loop) {
  for (size_t k = 0; k < loop->results.size(); k++) {
    std::vector<const Value*> seen;
    if (is_wanted(loop->region(0)->arg(1 + k), loop->region(0), seen)) return true;
  }
  return false;
}

/// Of a loop between constants; else -1.
int64_t constant_rounds(const Inst* loop) {
  int64_t v[3];
  for (size_t k = 0; k < 3; k++) {
    const Inst* made = loop->operand(k)->inst;
    if (!made || !made->is(Op::constant)) return -1;
    v[k] = to_signed(made->imm, made->type());
  }
  if (v[2] <= 0) return -1;
  return v[0] < v[1] ? (v[1] - v[0] - 1) / v[2] + 1 : 0;
}

bool is_short(const Inst* loop) {
  const int64_t rounds = constant_rounds(loop);
  return rounds >= 0 && rounds <= most_in_arrays;
}

/// Does anything go back through it? Else its values are enough.
bool has_part(const Inst* inst, const Activity& active) {
  bool found = false;
  for (const Value& v : inst->results) found |= active(&v);
  for (Region* r : inst->regions)
    walk(r, [&](const Inst* i) {
      const bool writes =
          i->is(Op::store) || i->is(Op::atomic) || i->is(Op::reduce) || i->is(Op::put);
      found |= writes && is_float(i->elem);
    });
  return found;
}

/// A local array, or a write to one.
bool is_array(const Inst* inst) {
  const Inst* slot = inst->is(Op::put) ? inst->operand(0)->inst : inst;
  return slot->imm > 1;
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
      refuse(inst, "what ends or appends elements of a tree", "only launches without it have one");
    default: return;
  }
}

}  // namespace

void refuse(const Inst* inst, const std::string& what, const std::string& advice) {
  throw Error(inst->loc, what + " has no adjoint: " + advice);
}

std::vector<RoundsSite> rounds_sites(const Kernel& primal, const Activity& active) {
  std::vector<RoundsSite> sites;
  walk(primal.body, [&](const Inst* inst) {
    expect_repeatable(inst);
    const bool keeps = inst->is(Op::while_)
                           ? has_part(inst, active)
                           : inst->is(Op::loop) && keeps_rounds(inst) && !is_short(inst);
    if (!keeps) return;
    RoundsSite site{inst, {}};
    for (const Value& v : inst->results) site.types.push_back(v.type);
    if (site.types.empty()) site.types.push_back(Type::u8);  // a row is there for each round
    sites.push_back(std::move(site));
  });
  return sites;
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

void Replay::region(const Region* region, Mode mode) {
  const Mode around = std::exchange(mode_, mode);
  for (const Inst* inst : *region)
    if (!has(inst->op, flag::ends)) replay(inst);
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
    if (!encloses(region_of, home) || inside_parallel) continue;
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
        b_.atomic(AtomicOp::add, cursors_, 0, Type::i64, {&cursor, 1}, {&counted[k], 1})->result();
  }
  region(region_of, recording);
}

void Replay::check_rows(Kernel& kernel) {
  for (size_t k = 0; k < sites_.size(); k++) {
    b_.at(sites_[k].loop->loc);
    Value* cursor = b_.integer(Type::i64, int64_t(k));
    Value* taken = b_.load(cursors_, 0, Type::i64, {&cursor, 1});
    Value* there = b_.extent(rows_[k], 0, Type::i64);
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
  bool is_in_parallel = false;  // which count() leaves out
  walk(const_cast<Region*>(body),
       [&](const Inst* inst) { is_in_parallel |= inst->is(Op::parallel); });
  if (is_in_parallel) region(body, totalling);
}

void Replay::replay(const Inst* inst) {
  b_.at(inst->loc);
  if (const auto read = logged_.find(inst); read != logged_.end()) {
    Value* row = now(read->second.row);
    row = last_row_or(b_, read->second.binding, row);
    values_[inst->result()] = b_.load(read->second.binding, 0, inst->elem, {&row, 1});
    return;
  }
  switch (inst->op) {
    case Op::store:
    case Op::check:
    case Op::print:
    case Op::activate: return;
    case Op::slot:
    case Op::put:
      if (!is_array(inst)) clone_inst(b_, inst, values_);  // of arrays reads are logged
      return;
    case Op::atomic:
      if (inst->atomic() == AtomicOp::load)
        values_[inst->result()] =
            b_.load(inst->binding(), inst->component(), inst->elem, indices_now(inst));
      return;
    case Op::parallel: {
      if (mode_ == totalling) return total(inst);
      bool reduces = false;  // it has no other effect that is left
      walk(inst->region(0), [&](const Inst* i) { reduces |= i->is(Op::reduce); });
      if (reduces) parallel(inst, [&] { region(inst->region(0), plain); });
      return;
    }
    case Op::if_: return branch(inst);
    case Op::loop: return loop(inst);
    case Op::while_: return while_loop(inst);
    default: {
      Inst* made = clone_inst(b_, inst, values_);
      if (counts()) keep_order(made);
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
  if (counts()) keep_order(made);
  b_.set_regions(made, {body});
}

void Replay::branch(const Inst* inst) {
  std::vector<Type> types;
  for (const Value& v : inst->results) types.push_back(v.type);
  Value* condition = now(inst->operand(0));
  Region* regions[2];
  for (size_t k = 0; k < 2; k++) {
    const Region* r = inst->region(k);
    regions[k] = inside(r, [&] {
      region(r, mode_);
      const std::vector<Value*> yielded = operands_now(r->terminator());
      b_.yield(yielded);
    });
  }
  Inst* made = b_.make(Op::if_, std::span<const Type>(types), std::span(&condition, 1));
  b_.set_regions(made, {regions[0], regions[1]});
  for (size_t k = 0; k < types.size(); k++) values_[inst->result(k)] = made->result(k);
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

void Replay::keep(const Inst* inst, Value* round, std::span<Value* const> carried) {
  const int site = site_of(inst);
  if (site < 0) {
    Value* at = b_.convert(round, Type::i32);
    for (size_t k = 0; k < carried.size(); k++) b_.put(arrays_.at(inst)[k], at, carried[k]);
    return;
  }
  Value* row = b_.add(first_row_.at(site), round);
  row = last_row_or(b_, rows_[size_t(site)], row);
  for (size_t k = 0; k < carried.size(); k++)
    b_.store(rows_[size_t(site)], uint32_t(k), {&row, 1}, carried[k]);
}

void Replay::restore(const Inst* inst, Value* round, const Region* into, size_t first) {
  const int site = site_of(inst);
  const auto known = arrays_.find(inst);
  Value* at = site < 0 ? b_.convert(round, Type::i32) : b_.add(first_row_.at(site), round);
  for (size_t k = 0; k < inst->results.size(); k++) {
    const Value* arg = into->arg(first + k);
    if (site >= 0)
      values_[arg] = b_.load(rows_[size_t(site)], uint32_t(k), arg->type, {&at, 1});
    else if (known != arrays_.end())
      values_[arg] = b_.get(known->second[k], at);
    else
      values_[arg] = b_.constant(arg->type, 0);  // nobody wants it
  }
}

/// Rounds of a loop between these bounds, i64.
Value* Replay::counted_rounds(std::span<Value* const> bounds) {
  const Type type = bit_width(bounds[0]->type) < 64 ? Type::i64 : bounds[0]->type;
  Value* from = b_.convert(bounds[0], type);
  Value* to = b_.convert(bounds[1], type);
  Value* step = b_.convert(bounds[2], type);
  Value* one = b_.integer(type, 1);
  Value* span = b_.sub(to, from);
  Value* last = b_.div(b_.sub(span, one), step);
  Value* count = b_.convert(b_.add(last, one), Type::i64);
  Value* any = b_.lt(from, to);
  return b_.select(any, count, b_.integer(Type::i64, 0));
}

void Replay::loop(const Inst* inst) {
  const std::vector<Value*> bounds = operands_now(inst);
  const int site = site_of(inst);
  const Region* body = inst->region(0);
  if (mode_ != plain) rounds_[inst] = counted_rounds(bounds);
  if (mode_ == counting && site >= 0) took(site, rounds_[inst]);
  const bool keeps = mode_ == recording && (site >= 0 || keeps_rounds(inst));
  if (keeps && site < 0) {
    std::vector<Value*>& arrays = arrays_[inst];
    arrays.clear();
    const auto rounds = uint64_t(std::max<int64_t>(constant_rounds(inst), 1));
    for (const Value& v : inst->results) arrays.push_back(b_.slot(v.type, rounds));
  }
  std::vector<Type> types;
  for (const Value& v : inst->results) types.push_back(v.type);
  Region* made = inside(body, [&] {
    if (keeps) {
      std::vector<Value*> carried;
      for (size_t k = 0; k < types.size(); k++) carried.push_back(values_[body->arg(1 + k)]);
      const Type type = bit_width(bounds[0]->type) < 64 ? Type::i64 : bounds[0]->type;
      Value* index = b_.convert(values_[body->arg(0)], type);
      Value* lo = b_.convert(bounds[0], type);
      Value* step = b_.convert(bounds[2], type);
      Value* round = b_.convert(b_.div(b_.sub(index, lo), step), Type::i64);
      keep(inst, round, carried);
    }
    region(body, mode_);
    const std::vector<Value*> yielded = operands_now(body->terminator());
    b_.yield(yielded);
  });
  Inst* copy = b_.make(Op::loop, std::span<const Type>(types), bounds);
  b_.set_regions(copy, {made});
  for (size_t k = 0; k < types.size(); k++) values_[inst->result(k)] = copy->result(k);
}

/// A row is what the condition was tested on: one more than there are rounds.
void Replay::while_loop(const Inst* inst) {
  const int site = site_of(inst);
  const std::vector<Value*> init = operands_now(inst);
  const bool counts = mode_ != plain && site >= 0;
  Value* tested = counts ? b_.slot(Type::i64) : nullptr;
  if (counts) b_.put(tested, b_.integer(Type::i64, 0));
  std::vector<Type> types;
  for (const Value& v : inst->results) types.push_back(v.type);
  Region* regions[2];
  for (size_t n = 0; n < 2; n++) {
    const Region* r = inst->region(n);
    regions[n] = inside(r, [&] {
      if (n == 0 && counts) {
        Value* round = b_.get(tested);
        std::vector<Value*> carried;
        for (size_t k = 0; k < types.size(); k++) carried.push_back(values_[r->arg(k)]);
        if (mode_ == recording) keep(inst, round, carried);
        b_.put(tested, b_.add(round, b_.integer(Type::i64, 1)));
      }
      region(r, mode_);
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

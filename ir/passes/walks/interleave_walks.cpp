#include "ir/passes/walks/interleave_walks.h"

#include <algorithm>
#include <functional>
#include <unordered_map>

#include "ir/analysis/facts.h"
#include "ir/passes/atomics/atomic_rules.h"
#include "ir/passes/walks/nest_sums.h"
#include "ir/passes/walks/rows_ahead.h"
#include "quern/ir/abi.h"

namespace quern::ir {

namespace {

/// What a strip keeps should stay in the first-level cache. Where rounds end by combining what the
/// strip gives to locations that it shares, which takes as long as some vectors, longer strips from
/// the second-level cache take less time.
constexpr int64_t bytes_near = 24576, bytes_near_updates = 131072;
/// Short strips keep more, as their loops cost more; it must leave room on a thread's stack for the
/// task's other walks.
constexpr int64_t bytes_at_most = 65536;
constexpr int64_t short_strip = 64;
/// Where local arrays are that long, a strip of one vector may take more than that cache, unless
/// rounds of the inner loops could be taken by vectors themselves: chains of 32 KB a walk still
/// take a third.
constexpr int64_t least_strip = 8, bytes_of_cache = 49152, bytes_of_least = 262144;
/// A body of at most so many instructions is there three times: for whole strips, where vectors
/// need no test for the end, for what these leave over, and as it was, for few iterations. Eight
/// take less time in vectors whatever they do, and three where that is more than a little, as what
/// calls the math library. Others are there for whole strips and for what these leave over, and
/// once from `long_body` on.
constexpr size_t short_body = 400, long_body = 4000, little = 40;
constexpr int64_t few = 3;
/// Instructions that are rather repeated than their value kept.
constexpr size_t made_again = 16;
/// Rounds that each iteration takes together, where one has at most so many instructions.
constexpr int64_t several = 4;
constexpr size_t short_round = 64;
/// Reads of a round that are looked at for rows far apart.
constexpr size_t most_rows = 8;

class Interleaver : NestSums {
 public:
  Interleaver(Kernel& kernel, Task& task, Inst* walk, int64_t strip)
      : NestSums(kernel, walk, strip), task_(task) {}

  /// Changes the walk where it has the form and it pays; it is gone then.
  void run() {
    if (!nest_.pays()) return;
    may_end_early_ = nest_.has_loops_alone();
    find_crossing(nest_.body(), false);
    if (!fit_strip()) return;
    for (size_t k = 3; k < walk_->operand_count(); k++) next_.push_back(walk_->operand(k));
    b_.before(walk_).at(walk_->loc);
    const int64_t lanes = Task::lanes_together;
    takes_together(is_short_ ? std::min(lanes, strip_) : lanes);
    if (nest_.has_updates()) task_.strip = std::max(task_.strip, uint32_t(strip_));
    if (!is_short_) {
      make_slots();
      is_there_twice_ ? whole_strips_and_rest() : any_strips();
      return replace_by(next_);
    }
    Inst* choice = in_place_of_few();
    make_slots();
    whole_strips_and_rest();
    walk_->erase();
    b_.at_end(choice->region(0)).yield(next_);
  }

 private:
  size_t instructions() const {
    size_t n = 0;
    ir::walk(body_, [&](const Inst*) { n++; });
    return n;
  }

  /// Not of a cell of a tree, which is an iteration of the task.
  void takes_together(int64_t iterations) {
    for (const Inst* i = walk_->parent->parent; i; i = i->parent->parent)
      if (task_.rank == 1 && i->is(Op::loop)) return;
    task_.together = std::max(task_.together, uint32_t(iterations));
  }

  void replace_by(const std::vector<Value*>& results) {
    for (size_t k = 0; k < results.size(); k++) walk_->result(k)->replace_with(results[k]);
    walk_->erase();
  }

  /// A branch that takes the walk as it was where there are few iterations; else what becomes of
  /// the walk, which stands in its first region.
  Inst* in_place_of_few() {
    std::vector<Type> types;
    for (const Value& v : walk_->results) types.push_back(v.type);
    Value* count = b_.sub(walk_->operand(1), walk_->operand(0));
    const int64_t least = instructions() <= little ? int64_t(Task::lanes_together) : few;
    Value* many = b_.binary(Op::ge, count, integer(std::min(least, strip_)));
    Inst* choice = b_.if_(many, types);
    for (size_t k = 0; k < types.size(); k++) walk_->result(k)->replace_with(choice->result(k));
    b_.at_end(choice->region(1));
    ValueMap map;
    std::vector<Value*> results;
    for (Value& v : clone_inst(b_, walk_, map)->results) results.push_back(&v);
    b_.yield(results);
    b_.at_end(choice->region(0));
    move(b_, walk_);
    b_.before(walk_);
    return choice;
  }

  void loop_over_strips(Inst* loop) {
    std::vector<Value*> carried;
    for (Value& v : loop->region(0)->args.subspan(1)) carried.push_back(&v);
    strip(carried);
    finish(loop);
  }

  void any_strips() {
    walks_ |= brief;
    loop_over_strips(begin_strips(next_));
  }

  void whole_strips_and_rest() {
    Value *begin = walk_->operand(0), *end = walk_->operand(1);
    Value* all = b_.sub(end, begin);
    Value* whole = b_.sub(end, b_.binary(Op::rem, all, integer(strip_)));
    loop_over_strips(begin_whole_strips(begin, whole, next_));
    walks_ |= brief;
    last_strip(whole, b_.sub(end, whole));
  }

  /// What whole strips leave over.
  void last_strip(Value* begin, Value* count) {
    std::vector<Type> types;
    for (const Value* v : next_) types.push_back(v->type);
    Inst* branch = b_.if_(b_.lt(integer(0), count), types);
    b_.at_end(branch->region(1)).yield(next_);
    b_.at_end(branch->region(0));
    base_ = begin;
    count_ = count;
    strip(next_);
    finish(branch);
  }

  /// All that the iterations of a strip do; next_ is then what the walk carries on.
  void strip(const std::vector<Value*>& carried) {
    for (auto& [value, made] : common_) made = nullptr;
    for (auto& [term, made] : sums_) made = nullptr;
    carried_ = carried;
    for (size_t k = 0; k < packs_.size(); k++) fill(nest_.packs()[k], packs_[k]);
    block(nest_.body(), nullptr);
    b_.yield(next_);
  }

  /// Behind the strips; next_ is what they give.
  void finish(Inst* strips) {
    b_.before(walk_).at(walk_->loc);
    next_.clear();
    for (Value& v : strips->results) next_.push_back(&v);
  }

  // ---- what crosses from one piece to the next

  /// `by_any`: in a branch that is taken where any iteration takes it.
  void find_crossing(const Nest::Block& block, bool in_rounds, bool by_any = false) {
    for (const Nest::Piece& piece : block.pieces) {
      const auto keep = [&](Value* v) { keep_earlier(v, piece, block.region, in_rounds); };
      for (const Inst* inst : piece.common)
        if (!inst->is(Op::slot))
          for (const Value& v : inst->results) common_[&v] = nullptr;
      if (by_any) pieces_by_any_.insert(piece.number);
      find_sums(piece);
      for (const Inst* inst : piece.code)
        if (!left_out_.contains(inst) && !nest_.is_update(inst)) outer_operands(inst, keep);
      for (const Contribution& c : contributions_of(piece))
        if (!c.is_summed) keep(c.term);
      if (!piece.inner) continue;
      const bool is_loop = piece.inner->is(Op::loop);
      for (const Use& use : piece.inner->operands) keep(use.value);
      const std::optional<size_t> taken = nest_.taken_by_any(piece.inner);
      if (taken) {
        crosses(piece.inner->operand(0), [&](Value* kept) { add_kept(kept); });
        for (const Use& use : piece.inner->region(1 - *taken)->last->operands) keep(use.value);
      }
      for (size_t k = 0; k < piece.inner->results.size(); k++) {
        const Value* result = piece.inner->result(k);
        if (nest_.is_shared_carried(result)) {
          common_[result] = common_[piece.inner->region(0)->arg(k + 1)] = nullptr;
          continue;
        }
        add_slot(result);
        if (is_loop) slots_[piece.inner->region(0)->arg(k + 1)] = nullptr;
      }
      if (is_loop) common_[piece.inner->region(0)->arg(0)] = nullptr;
      for (size_t k = 0; k < piece.blocks.size(); k++)
        if (!taken || k == *taken)
          find_crossing(piece.blocks[k], in_rounds || is_loop, by_any || taken);
    }
    for (const Use& use : block.region->last->operands)
      keep_earlier(use.value, block.pieces.back(), block.region, in_rounds);
  }

  /// A value of an earlier piece crosses to one of the region. What follows from the index is made
  /// again, but for numbers that rounds would make over and over, and what takes more than a few
  /// instructions.
  void keep_earlier(Value* v, const Nest::Piece& piece, const Region* region, bool in_rounds) {
    if (!v->inst || v->type == Type::slot) return;
    const std::optional<size_t> made = nest_.piece_of(v->inst);
    if (!made || *made == piece.number || common_.contains(v)) return;
    if (v->type == Type::address) {
      for (const Use& use : v->inst->operands) keep_earlier(use.value, piece, region, in_rounds);
      return;
    }
    if (v->inst->parent == region && is_by_kept(v)) return;
    const bool is_kept = in_rounds && (is_float(v->type) || from_memory(v));
    if (is_kept || is_long(v)) return add_kept(v);
    crosses(v, [&](Value* kept) { add_kept(kept); });
  }

  /// Is it the sum of what is kept anyway and what the strip shares? To add that again takes less time
  /// than to store it.
  bool is_by_kept(const Value* v) const {
    if (!v->inst->is(Op::add) && !v->inst->is(Op::sub)) return false;
    const auto is_kept = [&](const Value* of) {
      return slots_.contains(of) || (of->inst && nest_.packed(of->inst));
    };
    const auto is_outer = [&](const Value* of) { return is_shared(of) || common_.contains(of); };
    const Value *a = v->inst->operand(0), *b = v->inst->operand(1);
    return (is_kept(a) && is_outer(b)) || (is_outer(a) && is_kept(b));
  }

  /// Would it take many instructions to make it again?
  bool is_long(const Value* v) const {
    std::vector<const Inst*> again;
    const auto add = [&](const Value* needed) {
      const Inst* inst = needed->inst;
      if (inst && !is_shared(needed) && !common_.contains(needed) && !slots_.contains(needed) &&
          is_pure(inst->op) && std::ranges::find(again, inst) == again.end())
        again.push_back(inst);
    };
    add(v);
    for (size_t k = 0; k < again.size() && again.size() <= made_again; k++)
      for (const Use& use : again[k]->operands) add(use.value);
    return again.size() > made_again;
  }

  void add_kept(Value* v) {
    if (!v->inst || slots_.contains(v)) return;
    add_slot(v);
    kept_.push_back(v);
    kept_in_[*nest_.piece_of(v->inst)].push_back(v);
  }

  void add_slot(const Value* v) {
    slots_[v] = nullptr;
    bytes_ += byte_size(v->type);
  }

  // ---- room

  bool fit_strip() {
    const size_t size = instructions();
    is_there_twice_ = size < long_body && fits(2);
    is_short_ = is_there_twice_ && size <= short_body;
    return is_there_twice_ || fits(1);
  }

  /// For an iteration, where its local variables are there so many times.
  int64_t bytes_for(int64_t copies) const {
    int64_t bytes = bytes_;
    for (const Inst* local : nest_.locals())
      bytes += copies * int64_t(local->imm) * byte_size(local->elem);
    for (const Pack& pack : nest_.packs()) bytes += pack.elements() * byte_size(pack.read->elem);
    return bytes;
  }

  /// Where the strip's code is there so many times; one of them at a time is in the cache.
  bool fits(int64_t copies) {
    const bool apart = nest_.has_rounds_apart();
    const int64_t most = apart ? bytes_of_cache : bytes_at_most;
    const int64_t near = nest_.has_updates() ? bytes_near_updates : bytes_near;
    const int64_t at_once = bytes_for(1), bytes = bytes_for(copies);
    int64_t strip = strip_;
    while (strip > short_strip && (at_once * strip > near || bytes * strip > bytes_of_least))
      strip /= 2;
    while (strip <= short_strip && strip > least_strip && bytes * strip > most) strip /= 2;
    if (strip <= short_strip && bytes * strip > (apart ? bytes_of_cache : bytes_of_least))
      return false;
    strip_ = strip;
    return true;
  }

  void make_slots() {
    make_slots_of(nest_.body());
    for (const Value* v : kept_) slots_[v] = by_iteration(v->type);
    // Zero, as the host may end the loops that fill them, and elements may be indices.
    for (const Pack& pack : nest_.packs())
      packs_.push_back(b_.slot(pack.read->elem, uint64_t(pack.elements() * strip_)));
    for (Value* pack : packs_) pack->inst->kind |= by_round;
  }

  Value* by_iteration(Type type) {
    Value* made = array(type);
    made->inst->kind |= by_round;
    return made;
  }

  /// Of what loops carry and branches give.
  void make_slots_of(const Nest::Block& block) {
    for (const Nest::Piece& piece : block.pieces) {
      if (!piece.inner) continue;
      for (size_t k = 0; k < piece.inner->results.size(); k++) {
        const Value* result = piece.inner->result(k);
        if (nest_.is_shared_carried(result)) continue;
        slots_[result] = by_iteration(result->type);
        if (piece.inner->is(Op::loop)) slots_[piece.inner->region(0)->arg(k + 1)] = slots_[result];
      }
      for (const Nest::Block& inner : piece.blocks) make_slots_of(inner);
    }
  }

  // ---- the strips

  void block(const Nest::Block& from, const Inst* owner) {
    for (const Nest::Piece& piece : from.pieces) {
      for (const Inst* inst : piece.common) make_common(inst);
      each_in_strip(piece, &piece == &from.pieces.back() ? from.region : nullptr, owner);
      if (!piece.inner) continue;
      piece.inner->is(Op::loop) ? rounds(piece) : branches(piece);
    }
  }

  void rounds(const Nest::Piece& piece) {
    const Inst* inner = piece.inner;
    const Loc around = b_.loc();
    b_.at(inner->loc);
    Value *lo = outer(inner->operand(0)), *hi = outer(inner->operand(1));
    std::vector<Value*> shared;
    for (size_t k : shared_carried(inner)) shared.push_back(outer(inner->operand(3 + k)));
    const bool goes_on_alone = !takes_several(piece);
    if (!goes_on_alone) {
      const Type type = lo->type;
      Value* span = b_.select(b_.lt(lo, hi), b_.sub(hi, lo), b_.integer(type, 0));
      Value* whole = b_.add(lo, b_.binary(Op::bit_and, span, b_.integer(type, -several)));
      Inst* loop = b_.loop(lo, whole, b_.integer(type, several), shared);
      inside(loop->region(0), [&] {
        enter_round(inner, loop);
        several_rounds(piece, loop->region(0)->arg(0));
        return next_shared(inner);
      });
      lo = whole;
      shared.clear();
      for (Value& v : loop->results) shared.push_back(&v);
    }
    Inst* loop = b_.loop(lo, hi, outer(inner->operand(2)), shared);
    inside(loop->region(0), [&] {
      enter_round(inner, loop);
      common_[inner->region(0)->arg(0)] = loop->region(0)->arg(0);
      if (goes_on_alone) name_ahead(piece.blocks[0], inner, loop->region(0)->arg(0));
      block(piece.blocks[0], inner);
      return next_shared(inner);
    });
    size_t number = 0;
    for (size_t k : shared_carried(inner)) common_[inner->result(k)] = loop->result(number++);
    b_.at(around);
  }

  /// What the next round reads far from what this one does.
  void name_ahead(const Nest::Block& round, const Inst* loop, Value* index) {
    RowsAhead rows(b_, body_, loop, index, [this](Value* v) -> Value* {
      if (is_shared(v)) return v;
      const auto made = common_.find(v);
      return made == common_.end() ? nullptr : made->second;
    });
    size_t left = most_rows;
    for (const Nest::Piece& piece : round.pieces)
      for (const Inst* inst : piece.code) {
        const bool is_of_field = inst->is(Op::read) && inst->imm < abi::frame_class;
        if (!is_of_field || nest_.packed(inst) || left == 0) continue;
        rows.name(inst, base_, count_);
        left--;
      }
  }

  /// The numbers of what the loop carries that all iterations share.
  std::vector<size_t> shared_carried(const Inst* loop) const { return numbers(loop, true); }
  /// Of what each carries for itself, or a branch gives it.
  std::vector<size_t> carried_alone(const Inst* inner) const { return numbers(inner, false); }
  std::vector<size_t> numbers(const Inst* inner, bool are_shared) const {
    std::vector<size_t> all;
    for (size_t k = 0; k < inner->results.size(); k++)
      if (nest_.is_shared_carried(inner->result(k)) == are_shared) all.push_back(k);
    return all;
  }
  void enter_round(const Inst* inner, const Inst* loop) {
    size_t number = 1;
    for (size_t k : shared_carried(inner))
      common_[inner->region(0)->arg(k + 1)] = loop->region(0)->arg(number++);
  }
  /// What the next round begins with.
  std::vector<Value*> next_shared(const Inst* inner) const {
    std::vector<Value*> next;
    for (size_t k : shared_carried(inner))
      next.push_back(outer(inner->region(0)->last->operand(k)));
    return next;
  }

  /// Is a round so short that most of it would be to read and write what it carries?
  bool takes_several(const Nest::Piece& piece) const {
    const std::vector<Nest::Piece>& pieces = piece.blocks[0].pieces;
    if (pieces.size() > 1 || !is_constant(piece.inner->operand(2), 1)) return false;
    size_t instructions = 0;
    bool simple = true;
    ir::walk(piece.inner->region(0), [&](const Inst* inst) {
      instructions++;
      simple &= !inst->is(Op::slot) && !nest_.is_unrolled(inst);
    });
    return simple && instructions <= short_round;
  }

  /// Rounds from `index` on, one after the other for each iteration: what they carry stays in
  /// registers (unroll and jam).
  void several_rounds(const Nest::Piece& piece, Value* index) {
    const Region* round = piece.blocks[0].region;
    const Nest::Piece& from = piece.blocks[0].pieces[0];
    std::vector<std::vector<std::pair<const Value*, Value*>>> common(several);
    const std::vector<size_t> shared = shared_carried(piece.inner);
    for (int64_t k = 0; k < several; k++) {
      if (k > 0) {
        const std::vector<Value*> next = next_shared(piece.inner);
        for (size_t n = 0; n < shared.size(); n++) common_[round->arg(shared[n] + 1)] = next[n];
      }
      Value*& at = common_[round->arg(0)];
      at = k == 0 ? index : b_.add(index, b_.integer(index->type, k));
      common[size_t(k)].emplace_back(round->arg(0), at);
      for (size_t n : shared)
        common[size_t(k)].emplace_back(round->arg(n + 1), common_.at(round->arg(n + 1)));
      for (const Inst* inst : from.common) {
        make_common(inst);
        for (const Value& v : inst->results) common[size_t(k)].emplace_back(&v, common_.at(&v));
      }
    }
    auto enter = [&](size_t k) {
      for (const auto& [value, made] : common[k]) common_[value] = made;
    };
    const Contributions contributions = contributions_of(from);
    const std::vector<size_t> alone = carried_alone(piece.inner);
    std::vector<Value*> init;
    for (int64_t k = 0; k < several; k++) start(contributions, init);
    const std::vector<Value*> last = each(walks_, init, [&](std::span<Value> sums) {
      Value* iteration = map_.at(body_->arg(0));
      std::vector<Value*> carried, next;
      for (size_t c : alone) carried.push_back(need(round->arg(c + 1)));
      for (size_t k = 0; k < common.size(); k++) {
        map_.clear();
        map_[body_->arg(0)] = iteration;
        for (size_t c = 0; c < alone.size(); c++) map_[round->arg(alone[c] + 1)] = carried[c];
        enter(k);
        run(from, contributions, sums.subspan(k * own(contributions)), next);
        for (size_t c = 0; c < alone.size(); c++) carried[c] = need(round->last->operand(alone[c]));
      }
      for (size_t c = 0; c < alone.size(); c++)
        b_.put(slots_.at(round->arg(alone[c] + 1)), within_, carried[c]);
      return next;
    });
    for (size_t k = 0; k < common.size(); k++) {
      enter(k);
      update(from, contributions, std::span(last).subspan(k * own(contributions)));
    }
  }

  void branches(const Nest::Piece& piece) {
    if (const auto by_any = nest_.taken_by_any(piece.inner)) return branch_of_any(piece, *by_any);
    Inst* branch = b_.if_(outer(piece.inner->operand(0)));
    for (size_t k = 0; k < 2; k++)
      inside(branch->region(k), [&] {
        block(piece.blocks[k], piece.inner);
        return std::vector<Value*>();
      });
  }

  /// What results are where an iteration does not take it stands there already.
  void branch_of_any(const Nest::Piece& piece, size_t region) {
    where(any_, [&] {
      taken_ = piece.inner->operand(0);
      takes_first_ = region == 0;
      block(piece.blocks[region], piece.inner);
      taken_ = nullptr;
    });
  }

  /// A value that all iterations share, outside of the loops over them.
  Value* outer(Value* v) const { return is_shared(v) ? v : common_.at(v); }

  void make_common(const Inst* inst) {
    if (inst->is(Op::slot)) {
      Value* slot = b_.slot(inst->elem, inst->imm * uint64_t(strip_));
      slot->inst->kind = inst->kind | by_round;
      locals_[inst->result()] = slot;
      return;
    }
    ValueMap map;
    outer_operands(inst, [&](Value* v) { map[v] = outer(v); });
    clone_inst(b_, inst, map);
    for (const Value& v : inst->results) common_[&v] = map.at(&v);
  }

  // ---- one iteration's share of a piece

  /// A loop over the strip for the code of the piece, and what it leaves: the contributions to
  /// updates combined, what later pieces need, what the loop behind it begins with. `ends` is the
  /// region that ends here, whose values go to the results of `owner`, or on to the next strip.
  void each_in_strip(const Nest::Piece& piece, const Region* ends, const Inst* owner) {
    const bool goes_on = ends == body_;
    const Contributions contributions = contributions_of(piece);
    const std::vector<Value*>& terms = sums_in_[piece.number];
    std::vector<Value*> init;
    start(contributions, init);
    for (const Value* term : terms)
      init.push_back(b_.constant(term->type, identity(AtomicOp::add, term->type)));
    const size_t sums = init.size();
    const std::optional<size_t> by_any = nest_.taken_by_any(piece.inner);
    if (by_any) init.push_back(b_.boolean(false));
    if (goes_on) init.insert(init.end(), carried_.begin(), carried_.end());
    const bool begins =
        piece.inner && piece.inner->is(Op::loop) && !carried_alone(piece.inner).empty();
    const bool gives =
        ends && (goes_on ? !ends->last->operands.empty() : !carried_alone(owner).empty());
    if (piece.code.empty() && init.empty() && !begins && !gives) return;
    std::vector<Value*> last = each(walks_, init, [&](std::span<Value> carried) {
      for (size_t k = sums; goes_on && k < carried.size(); k++)
        map_[body_->arg(k - sums + 1)] = &carried[k];
      std::vector<Value*> next;
      run(piece, contributions, carried, next);
      for (Value* term : terms)
        next.push_back(combined(AtomicOp::add, &carried[next.size()], need(term)));
      for (Value* v : kept_in_[piece.number]) b_.put(slots_.at(v), within_, need(v));
      if (begins) put(piece.inner, piece.inner, 3);
      if (by_any) {
        put(piece.inner, piece.inner->region(1 - *by_any)->last, 0);
        Value* condition = need(piece.inner->operand(0));
        if (*by_any == 1) condition = b_.unary(Op::bit_not, condition);
        next.push_back(b_.binary(Op::bit_or, &carried.back(), condition));
      }
      if (ends && !goes_on) put(owner, ends->last, 0);
      if (goes_on)
        for (const Use& use : ends->last->operands) next.push_back(need(use.value));
      return next;
    });
    for (size_t k = 0; k < terms.size(); k++) sums_[terms[k]] = last[sums - terms.size() + k];
    update(piece, contributions, last);
    if (by_any) any_ = last.back();
    if (goes_on) next_.assign(last.begin() + ptrdiff_t(sums), last.end());
  }

  /// The code of the piece; what the strip's contributions are behind it goes to `next`.
  void run(const Nest::Piece& piece, const Contributions& contributions, std::span<Value> sums,
           std::vector<Value*>& next) {
    std::vector<Value*> all;
    for (Value& v : sums.first(own(contributions))) all.push_back(&v);
    Value* taken = takes();
    for (const Inst* inst : piece.code) {
      if (left_out_.contains(inst)) continue;
      if (!nest_.is_update(inst))
        taken && !is_pure(inst->op) ? copy_where(taken, inst) : copy(inst);
      for (size_t k = 0; k < all.size(); k++) {
        const Inst* rmw = contributions[k].rmw;
        if (contributions[k].update != inst) continue;
        Value* v = need(contributions[k].term);
        if (taken)
          v = b_.select(taken, v, b_.constant(rmw->elem, identity(rmw->atomic(), rmw->elem)));
        all[k] = combined(rmw->atomic(), all[k], v);
      }
    }
    next.insert(next.end(), all.begin(), all.end());
  }

  /// In any order.
  Value* combined(AtomicOp op, Value* all, Value* v) {
    Value* made = b_.binary(operation(op, v->type), all, v);
    if (quern::ir::rounds(op, v->type)) made->inst->kind |= reassociate;
    return made;
  }

  /// What the contributions begin with.
  void start(const Contributions& contributions, std::vector<Value*>& init) {
    for (const Contribution& c : std::span(contributions).first(own(contributions)))
      init.push_back(b_.constant(c.rmw->elem, identity(c.rmw->atomic(), c.rmw->elem)));
  }

  /// In their order; branches that follow each other and ask the same are one.
  std::vector<std::vector<const Inst*>> updates_of(const Nest::Piece& piece) const {
    std::vector<std::vector<const Inst*>> all;
    for (const Inst* inst : piece.code) {
      if (!nest_.is_update(inst)) continue;
      const auto asks_the_same = [&](const Inst* other) {
        return other->is(Op::if_) && other->operand(0) == inst->operand(0);
      };
      if (all.empty() || !inst->is(Op::if_) || !asks_the_same(all.back()[0])) all.emplace_back();
      all.back().push_back(inst);
    }
    return all;
  }

  /// The strip's contributions, one update each.
  void update(const Nest::Piece& piece, const Contributions& contributions,
              std::span<Value* const> sums) {
    const Loc around = b_.loc();
    std::vector<Value*> values;
    std::unordered_map<const Value*, Value*> summed;  // by the terms that the piece sums for these
    for (const Contribution& c : contributions) {
      b_.at(c.rmw->loc);
      const auto here = summed.find(c.term);
      values.push_back(!c.is_summed           ? sums[values.size()]
                       : here != summed.end() ? here->second
                                              : sums_.at(c.term));
      if (!c.is_summed && is_sum(c.rmw)) summed[c.term] = values.back();
      for (Value* factor : c.factors) values.back() = b_.mul(values.back(), outer(factor));
      if (c.is_negated) values.back() = b_.unary(Op::neg, values.back());
    }
    auto one = [&](const Inst* update, const Inst* rmw) {
      size_t k = 0;
      while (contributions[k].update != update || !contributions[k].same(rmw)) k++;
      b_.at(rmw->loc).rmw(rmw->atomic(), outer(rmw->operand(0)), rmw->elem, {&values[k], 1},
                          rmw->imm);
    };
    for (const std::vector<const Inst*>& updates : updates_of(piece)) {
      if (updates[0]->is(Op::rmw)) {
        one(updates[0], updates[0]);
        continue;
      }
      Inst* branch = b_.if_(outer(updates[0]->operand(0)));
      for (size_t k = 0; k < 2; k++)
        inside(branch->region(k), [&] {
          for (const Inst* inst : updates)
            for (const Inst* inner = inst->region(k)->first; inner != inst->region(k)->last;
                 inner = inner->next)
              inner->is(Op::rmw) ? one(inst, inner) : make_common(inner);
          return std::vector<Value*>();
        });
    }
    b_.at(around);
  }

  /// The operands of `from`, from number `first` on, become the results of `owner`, or what its
  /// next round begins with: all at once.
  void put(const Inst* owner, const Inst* from, size_t first) {
    std::vector<Value*> values;
    const std::vector<size_t> own = carried_alone(owner);
    Value* taken = from->parent->parent == owner ? takes() : nullptr;
    for (size_t k : own) {
      values.push_back(need(from->operand(first + k)));
      if (taken)
        values.back() =
            b_.select(taken, values.back(), b_.get(slots_.at(owner->result(k)), within_));
    }
    for (size_t k = 0; k < own.size(); k++)
      b_.put(slots_.at(owner->result(own[k])), within_, values[k]);
  }

  Task& task_;
  bool is_there_twice_ = false, is_short_ = false;
  int64_t bytes_ = 0;  ///< of what a strip keeps for an iteration
  std::unordered_map<size_t, std::vector<Value*>> kept_in_;  ///< by piece, of kept_
  Value* any_ = nullptr;  ///< whether any iteration takes the branch behind the last piece
  std::vector<Value*> carried_, next_;  ///< what the walk carries into a strip, and out of it
};

}  // namespace

void interleave_walks(Kernel& kernel, const TargetTraits& target) {
  if (target.strip == 0) return;
  for (Task& task : kernel.tasks)
    for (Inst* walk : walks_of(task)) Interleaver(kernel, task, walk, target.strip).run();
}

}  // namespace quern::ir

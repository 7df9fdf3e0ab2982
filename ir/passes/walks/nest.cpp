#include "ir/passes/walks/nest.h"

#include <algorithm>
#include <limits>

#include "ir/analysis/facts.h"
#include "ir/passes/atomics/atomic_rules.h"

namespace quern::ir {

namespace {

/// Inner loops of at most this many constant rounds are better written out, unless they would be so
/// many instructions.
constexpr int64_t few_rounds = 16;
constexpr size_t many_instructions = 256;
/// A vector's elements that lie far apart are read one by one: so much arithmetic pays for it.
constexpr size_t worth_of_gather = 8;
/// An update of an element far away takes what it took, but for the value and the place that cross to it.
constexpr size_t worth_of_update = 3;
/// So many rounds are expected of a loop where their number is not known, and no more than so many counted.
constexpr int64_t unknown_rounds = 16, many_rounds = 4096;
/// Instructions of one piece, of which the code generator makes one loop, and sums, which stay in registers.
constexpr size_t most_code = 800;
constexpr size_t most_updates = 12;
/// Elements of a pack, for each iteration of a strip; and how often they are read at least.
constexpr int64_t most_packed = 64, least_reads = 4;

/// Branches that are run where any iteration takes them: each one's code is a loop over the strip of its own.
constexpr size_t most_by_any = 32;

/// The rounds of either, and those between.
Pack::Axis both(const Pack::Axis& a, const Pack::Axis& b) {
  const int64_t first = std::min(a.first, b.first);
  return {a.factor, first, std::max(a.first + a.count, b.first + b.count) - first};
}

bool is_arithmetic(const Inst* inst) {
  return is_pure(inst->op) && !inst->results.empty() && is_float(inst->results[0].type) &&
         !inst->is(Op::constant);
}

template <class F>
void walk_const(const Inst* inst, const F& visit) {
  visit(inst);
  for (Region* region : inst->regions) walk(region, [&](const Inst* inner) { visit(inner); });
}

}  // namespace

std::optional<int64_t> constant_rounds(const Inst* loop) {
  const Inst* bounds[3];
  for (size_t k = 0; k < 3; k++)
    if (!(bounds[k] = constant_of(loop->operand(k)))) return std::nullopt;
  const Type t = loop->operand(0)->type;
  if (bounds[2]->imm != 1) return std::nullopt;
  const bool runs = is_signed(t) ? to_signed(bounds[0]->imm, t) < to_signed(bounds[1]->imm, t)
                                 : bounds[0]->imm < bounds[1]->imm;
  const Bits rounds = truncate(bounds[1]->imm - bounds[0]->imm, t);
  return runs ? int64_t(std::min<Bits>(rounds, std::numeric_limits<int64_t>::max())) : 0;
}

int64_t Pack::elements() const {
  int64_t all = 1;
  for (const Axis& axis : axes) all *= axis.count;
  return all;
}

Nest::Nest(const Kernel& kernel, Inst* loop)
    : kernel_(kernel), region_(loop->region(0)), uniform_(kernel, region_) {
  for (const Value& v : region_->args.subspan(1)) carried_.insert(&v);
  bool has_loops = false;
  walk(const_cast<Region*>(region_), [&](const Inst* inst) {
    has_loops |= inst->is(Op::loop);
    if (inst->is(Op::write) || inst->is(Op::rmw)) written_.insert(inst->imm);
  });
  if (!has_loops || !is_constant(loop->operand(2), 1)) return;
  Work all;
  pays_ = plan(region_, body_, false) && has_rounds_ && keeps_order() &&
          touches_neighbours(body_, all, false) && all.price <= all.arithmetic;
}

std::optional<size_t> Nest::piece_of(const Inst* inst) const {
  const auto at = piece_of_.find(inst);
  return at == piece_of_.end() ? std::nullopt : std::optional(at->second);
}

const Nest::Packed* Nest::packed(const Inst* read) const {
  const auto at = packed_.find(read);
  return at == packed_.end() ? nullptr : &at->second;
}

// ---- which form it has

bool Nest::plan(const Region* region, Block& block, bool in_rounds) {
  block.region = region;
  next_piece(block);
  std::vector<Inst*> last;
  for (Inst* inst = region->first; inst != region->last; inst = inst->next) {
    if (uses_carried(inst)) {
      if (region != region_ || !is_pure(inst->op)) return false;
      for (const Value& v : inst->results) carried_.insert(&v);
      last.push_back(inst);
      continue;
    }
    const Piece& piece = block.pieces.back();
    if (piece.updates >= most_updates || piece.code.size() >= most_code) next_piece(block);
    piece_of_[inst] = block.pieces.back().number;
    if (!take(inst, block, in_rounds)) return false;
  }
  if (region != region_ && uses_carried(region->last)) return false;
  for (Inst* inst : last) {
    piece_of_[inst] = block.pieces.back().number;
    block.pieces.back().code.push_back(inst);
  }
  return true;
}

/// Does it need what the walk carries from one iteration to the next?
bool Nest::uses_carried(const Inst* inst) const {
  return std::ranges::any_of(inst->operands,
                             [&](const Use& use) { return carried_.contains(use.value); });
}

void Nest::next_piece(Block& block) { block.pieces.emplace_back().number = pieces_++; }

bool Nest::take(Inst* inst, Block& block, bool in_rounds) {
  Piece& piece = block.pieces.back();
  if (!inst->regions.empty()) return take_control(inst, block, in_rounds);
  if (inst->is(Op::slot)) {
    locals_.push_back(inst);
    piece.common.push_back(inst);
    return true;
  }
  if (is_shared_read(inst)) uniform_.assume(inst->result());
  const bool is_shared = (is_pure(inst->op) || is_shared_read(inst)) && !inst->results.empty() &&
                         uniform_(inst->result());
  (is_shared ? piece.common : piece.code).push_back(inst);
  if (inst->is(Op::rmw) && combines(inst)) add_update(inst, piece);
  return is_simple(inst);
}

void Nest::add_update(const Inst* inst, Piece& piece) {
  updates_.insert(inst);
  piece.updates++;
}

/// A branch that only says where contributions go.
bool Nest::is_choice_of_updates(const Inst* branch) {
  if (!branch->is(Op::if_) || !branch->results.empty()) return false;
  for (const Region* region : branch->regions)
    for (const Inst* inst = region->first; inst != region->last; inst = inst->next) {
      const bool is_common = is_pure(inst->op) && inst->regions.empty() && uniform_(inst->result());
      const bool combined = inst->is(Op::rmw) && combines(inst) && !uses_carried(inst) &&
                            (!inst->operand(1)->inst || inst->operand(1)->inst->parent != region);
      if (!is_common && !combined) return false;
    }
  return true;
}

std::optional<size_t> Nest::taken_by_any(const Inst* branch) const {
  const auto at = taken_by_any_.find(branch);
  return at == taken_by_any_.end() ? std::nullopt : std::optional(at->second);
}

/// The one region with code, where it is a branch without loops, and iterations that take it read or
/// update the same elements: each for itself could not do so by vectors.
std::optional<size_t> Nest::shares_inside(const Inst* branch) {
  if (!is_straight(branch) || branch->kind == rarely) return std::nullopt;
  if (taken_by_any(branch->parent->parent) || taken_by_any_.size() == most_by_any)
    return std::nullopt;
  const size_t number = branch->region(0)->first == branch->region(0)->last ? 1 : 0;
  const Region *region = branch->region(number), *other = branch->region(1 - number);
  if (other->first != other->last) return std::nullopt;
  bool shares = false;
  for (const Inst* inst = region->first; inst != region->last; inst = inst->next) {
    if (inst->is(Op::slot)) return std::nullopt;
    if (!inst->regions.empty()) {
      if (!is_straight(inst)) return std::nullopt;
      shares |= is_shared(inst) && is_choice_of_updates(inst);
      continue;
    }
    const bool is_read = is_shared_read(inst);
    if (is_read) uniform_.assume(inst->result());
    shares |= is_read || (inst->is(Op::rmw) && combines(inst));
  }
  return shares ? std::optional(number) : std::nullopt;
}

/// Of memory that the walk does not write, at an address that all iterations share.
bool Nest::is_shared_read(const Inst* inst) {
  return inst->is(Op::read) && inst->imm != 0 && !written_.contains(0) &&
         !written_.contains(inst->imm) && uniform_(inst->operand(0));
}

bool Nest::take_control(Inst* inst, Block& block, bool in_rounds) {
  for (const Value& v : inst->results)
    if (v.type == Type::address) return false;  // slots hold scalars, and it cannot be made again
  if (is_common(inst)) {
    block.pieces.back().common.push_back(inst);
    for (const Value& v : inst->results) uniform_.assume(&v);
    return true;
  }
  if (inst->is(Op::loop) && written_out(inst) <= many_instructions) {
    unroll(inst);
    block.pieces.back().code.push_back(inst);
    return true;
  }
  if (is_shared(inst) && is_choice_of_updates(inst)) {
    block.pieces.back().code.push_back(inst);
    add_update(inst, block.pieces.back());
    return true;
  }
  const bool straight = is_straight(inst);
  bool simple = true;
  walk_const(inst, [&](const Inst* inner) { simple &= is_simple(inner); });
  if (is_shared(inst) && !straight && can_share(inst)) {
    Piece& piece = block.pieces.back();
    piece.inner = inst;
    piece.blocks.resize(inst->regions.size());
    const bool is_loop = inst->is(Op::loop);
    if (is_loop) uniform_.assume(inst->region(0)->arg(0));
    if (is_loop) share_carried(inst);
    has_rounds_ |= is_loop;
    for (size_t k = 0; k < piece.blocks.size(); k++)
      if (!plan(inst->region(k), piece.blocks[k], in_rounds || is_loop)) return false;
    for (size_t k = 0; is_loop && k < inst->results.size(); k++)
      if (is_shared_carried(inst->result(k)) && !uniform_(inst->region(0)->last->operand(k)))
        return false;
    next_piece(block);
    return true;
  }
  if (!simple) return false;
  if (const auto region = in_rounds && !is_shared(inst) ? shares_inside(inst) : std::nullopt) {
    taken_by_any_[inst] = *region;
    Piece& piece = block.pieces.back();
    piece.inner = inst;
    piece.blocks.resize(2);
    for (size_t k = 0; k < 2; k++)
      if (!plan(inst->region(k), piece.blocks[k], in_rounds)) return false;
    next_piece(block);
    return true;
  }
  if (straight) {
    block.pieces.back().code.push_back(inst);
    return true;
  }
  // Each iteration alone, apart from code that vectors can do.
  if (in_rounds) return false;
  has_loops_alone_ = true;
  next_piece(block);
  piece_of_[inst] = block.pieces.back().number;
  block.pieces.back().code.push_back(inst);
  next_piece(block);
  return true;
}

/// May each iteration do it as it is? Slots from outside of the walk are what iterations pass on.
bool Nest::is_simple(const Inst* inst) const {
  if (inst->is(Op::slot)) return true;
  if (has(inst->op, flag::once) || uses_carried(inst)) return false;
  if (!has(inst->op, flag::slots)) return true;
  const Value* slot = inst->operand(0);
  return slot->inst && encloses(region_, slot->inst->parent);
}

/// Is it a loop whose bounds, or a branch whose condition all iterations share?
bool Nest::is_shared(const Inst* inst) {
  if (inst->is(Op::if_)) return inst->kind != rarely && uniform_(inst->operand(0));
  if (!inst->is(Op::loop)) return false;
  for (size_t k = 0; k < 3; k++)
    if (!uniform_(inst->operand(k))) return false;
  return true;
}

/// Does all of it follow from what iterations share? Then it is done once.
bool Nest::is_common(const Inst* control) {
  bool is = !control->results.empty();
  walk_const(control, [&](const Inst* inner) {
    const bool is_control = inner->is(Op::loop) || inner->is(Op::if_) || inner->is(Op::yield);
    is = is && (is_control || (is_pure(inner->op) && inner->regions.empty()));
    for (const Use& use : inner->operands) {
      const Region* home = use.value->inst ? use.value->inst->parent : use.value->region;
      const bool is_inside = std::ranges::any_of(
          control->regions, [&](const Region* region) { return encloses(region, home); });
      is = is && (is_inside || uniform_(use.value));
    }
  });
  return is;
}

/// Is there nothing in it that an iteration would have to take alone?
bool Nest::can_share(const Inst* control) {
  if (control->is(Op::loop)) uniform_.assume(control->region(0)->arg(0));
  for (const Region* region : control->regions)
    for (const Inst* inst = region->first; inst; inst = inst->next) {
      if (inst->regions.empty()) continue;
      if (inst->is(Op::loop) && written_out(inst) <= many_instructions) continue;
      if (inst->is(Op::if_) && is_straight(inst)) continue;
      if (!is_shared(inst) || !can_share(inst)) return false;
    }
  return true;
}

/// Integers, as which round it is: what begins alike and is changed alike in each round.
void Nest::share_carried(const Inst* loop) {
  const Region* round = loop->region(0);
  std::vector<size_t> alike;
  for (size_t k = 0; k < loop->results.size(); k++)
    if (is_int(loop->result(k)->type) && uniform_(loop->operand(3 + k))) alike.push_back(k);
  for (bool is_known = false; !alike.empty() && !is_known;) {
    Uniformity trial = uniform_;
    for (size_t k : alike) trial.assume(round->arg(k + 1));
    is_known = std::erase_if(alike, [&](size_t k) { return !trial(round->last->operand(k)); }) == 0;
  }
  for (size_t k : alike)
    for (const Value* v : {&round->args[k + 1], &loop->results[k]}) {
      uniform_.assume(v);
      shared_carried_.insert(v);
    }
}

/// A branch without loops.
bool Nest::is_straight(const Inst* inst) {
  bool straight = inst->is(Op::if_);
  walk_const(inst,
             [&](const Inst* inner) { straight &= inner->regions.empty() || inner->is(Op::if_); });
  return straight;
}

/// The instructions of a loop of few constant rounds that is written out; many where it is not, and
/// where others wait for its updates.
size_t Nest::written_out(const Inst* loop) const {
  const size_t never = many_instructions + 1;
  const std::optional<int64_t> rounds = constant_rounds(loop);
  if (!rounds || *rounds > few_rounds) return never;
  size_t size = 0;
  for (const Inst* inst = loop->region(0)->first; inst; inst = inst->next) {
    if (inst->is(Op::rmw) || inst->is(Op::slot) || !is_simple(inst)) return never;
    if (inst->regions.empty()) {
      size++;
      continue;
    }
    if (inst->is(Op::loop)) {
      const size_t inside = written_out(inst);
      if (inside == never) return never;
      size += inside;
      continue;
    }
    bool straight = inst->is(Op::if_);
    walk_const(inst, [&](const Inst* inner) {
      size++;
      straight &= (inner->regions.empty() || inner->is(Op::if_)) && is_simple(inner) &&
                  !inner->is(Op::rmw) && !inner->is(Op::slot);
    });
    if (!straight) return never;
  }
  return std::min(size * size_t(*rounds), never);
}

void Nest::unroll(const Inst* loop) {
  unrolled_.insert(loop);
  uniform_.assume(loop->region(0)->arg(0));
  for (const Inst* inst : *loop->region(0))
    if (inst->is(Op::loop)) unroll(inst);
}

bool Nest::combines(const Inst* rmw) {
  return has_identity(rmw->atomic()) && !rmw->used() && uniform_(rmw->operand(0)) &&
         !(kernel_.modes.strict && rounds(rmw->atomic(), rmw->elem));
}

/// Whatever else may touch the locations of updates must be the same operation.
bool Nest::keeps_order() const {
  if (updates_.empty()) return true;
  std::unordered_map<uint64_t, const Inst*> updated;  // by alias class
  for (const Inst* update : updates_)
    walk_const(update, [&](const Inst* inst) {
      if (inst->is(Op::rmw)) updated[inst->imm] = inst;
    });
  bool kept = !updated.contains(0);
  walk(const_cast<Region*>(region_), [&](const Inst* inst) {
    kept &= !inst->is(Op::call);
    if (!accesses_memory(inst->op)) return;
    const auto same = updated.find(inst->imm);
    kept &= inst->imm != 0;
    if (same == updated.end()) return;
    kept &= inst->is(Op::rmw) && inst->kind == same->second->kind &&
            inst->elem == same->second->elem && !inst->used();
  });
  return kept;
}

// ---- is it worth it

/// Neighbours in the walk must touch the same or neighbouring elements, or what a strip may pack, unless
/// there is arithmetic enough: else a strip would touch as many cache lines as it has iterations, over and
/// over. Rounds of loops between constants count as often as they run; those of any other must pay for
/// themselves, too.
bool Nest::touches_neighbours(const Block& block, Work& around, bool in_rounds) {
  for (const Piece& piece : block.pieces) {
    if (in_rounds)
      for (const Inst* inst : piece.code)
        walk_const(inst, [&](const Inst* inner) {
          around.arithmetic += is_arithmetic(inner);
          if (inner->is(Op::rmw))
            around.price += is_update(inst) ? 0 : worth_of_update;
          else if (is_far(inner))
            around.price += worth_of_gather;
        });
    for (const Block& inner : piece.blocks) {
      const bool is_round = piece.inner->is(Op::loop);
      Work round;
      if (!touches_neighbours(inner, is_round ? round : around, in_rounds || is_round))
        return false;
      if (!is_round) continue;
      const std::optional<int64_t> rounds = constant_rounds(piece.inner);
      if (!rounds && round.price > round.arithmetic) return false;
      const size_t times =
          size_t(std::clamp<int64_t>(rounds.value_or(unknown_rounds), 0, many_rounds));
      around.price += times * round.price;
      around.arithmetic += times * round.arithmetic;
    }
  }
  return true;
}

bool Nest::has_rounds_apart() {
  bool apart = true;
  const auto visit = [&](const auto& self, const Block& block, const Value* index) -> bool {
    bool has_loops = false;
    for (const Piece& piece : block.pieces)
      for (const Block& inner : piece.blocks) {
        const bool is_loop = piece.inner->is(Op::loop);
        has_loops |= self(self, inner, is_loop ? inner.region->args.data() : index) || is_loop;
      }
    if (index && !has_loops) apart = apart && are_rounds_apart(block, index);
    return has_loops;
  };
  visit(visit, body_, nullptr);
  return apart;
}

/// Are all elements neighbours' from round to round, and none is read that an earlier round may have put?
bool Nest::are_rounds_apart(const Block& round, const Value* index) {
  std::unordered_map<const Value*, std::vector<const Affine*>> put;  // by array
  bool apart = round.pieces.size() == 1 && round.region->args.size() == 1;
  const auto visit = [&](const auto& look) {
    for (const Inst* inst : round.pieces[0].code) {
      apart = apart && inst->regions.empty() && !inst->is(Op::write) && !inst->is(Op::rmw);
      const bool is_put = inst->is(Op::put);
      if (apart && (is_put || inst->is(Op::get)))
        apart = inst->operand_count() == (is_put ? 3 : 2) &&
                look(inst->operand(0), forms_.of(inst->operand(1)), is_put);
    }
  };
  visit([&](const Value* array, const Affine& element, bool is_put) {
    if (is_put) put[array].push_back(&element);
    return element.factor_of(index) == 1;
  });
  visit([&](const Value* array, const Affine& element, bool) {
    return std::ranges::all_of(put[array], [&](const Affine* other) {
      return element.terms == other->terms && element.constant >= other->constant;
    });
  });
  return apart;
}

bool Nest::is_far(const Inst* access) {
  if (access->is(Op::get) || access->is(Op::put))
    return access->operand_count() == (access->is(Op::get) ? 2 : 3) &&
           !uniform_(access->operand(1));
  if (!accesses_memory(access->op)) return false;
  const std::optional<int64_t> stride = stride_of(access->operand(0));
  if (stride == byte_size(access->elem)) return false;
  return access->is(Op::write) || (stride != 0 && !pack(access));
}

/// By how much the value grows from one iteration of the walk to the next, where that is known.
std::optional<int64_t> Nest::stride_of(const Value* v) {
  const Affine& form = forms_.of(v);
  for (const Affine::Term& term : form.terms)
    if (term.symbol != region_->arg(0) && !uniform_(term.symbol)) return std::nullopt;
  return form.factor_of(region_->arg(0));
}

// ---- packs

bool Nest::is_outside(const Value* v) const {
  return !encloses(region_, v->inst ? v->inst->parent : v->region);
}

/// The numbers of the loop's rounds, if they are known: constants, or as many as a loop around has
/// come to.
std::optional<Pack::Axis> Nest::rounds_of(const Inst* loop,
                                          const std::vector<const Inst*>& around) const {
  const Inst *lo = constant_of(loop->operand(0)), *hi = constant_of(loop->operand(1));
  if (!lo || !is_constant(loop->operand(2), 1)) return std::nullopt;
  const int64_t first = to_signed(lo->imm, loop->operand(0)->type);
  if (first < 0 && !is_signed(loop->operand(0)->type)) return std::nullopt;
  int64_t end = 0;
  if (hi) {
    end = to_signed(hi->imm, loop->operand(1)->type);
  } else {
    const auto bound = std::ranges::find_if(
        around, [&](const Inst* outer) { return outer->region(0)->arg(0) == loop->operand(1); });
    if (bound == around.end() || !constant_of((*bound)->operand(1))) return std::nullopt;
    const auto rounds = rounds_of(*bound, {});
    if (!rounds) return std::nullopt;
    end = rounds->first + rounds->count - 1;
  }
  if (first >= end || end - first > most_packed) return std::nullopt;
  return Pack::Axis{0, first, end - first};
}

bool Nest::pack(const Inst* read) {
  if (written_.contains(read->imm) || written_.contains(0) || read->imm == 0) return false;
  std::vector<const Inst*> around;
  for (const Region* r = read->parent; r != region_; r = r->parent->parent) {
    if (!r->parent->is(Op::loop)) return false;
    around.push_back(r->parent);
  }
  Pack made;
  made.read = read;
  made.base = forms_.of(read->operand(0));
  int64_t reads = 1;
  for (const Inst* loop : around) {
    const Value* index = loop->region(0)->arg(0);
    const int64_t factor = made.base.factor_of(index);
    std::optional<Pack::Axis> rounds = rounds_of(loop, around);
    if (factor == 0) {
      const bool is_idle = !constant_rounds(loop).value_or(0);
      for (size_t k = 0; k < 2; k++)
        if (is_idle && !is_outside(loop->operand(k))) return false;
      if (is_idle) made.may_be_idle.push_back(loop);
      reads *= std::min(least_reads, is_idle ? least_reads : *constant_rounds(loop));
      continue;
    }
    if (!rounds) return false;
    rounds->factor = factor;
    made.loops.push_back(loop);
    made.axes.push_back(*rounds);
    std::erase_if(made.base.terms, [&](const Affine::Term& term) { return term.symbol == index; });
  }
  // A strip makes the address before its first piece, of nothing but these indices.
  Uniformity follows(kernel_, region_);
  follows.assume(region_->arg(0));
  for (const Inst* loop : made.loops) follows.assume(loop->region(0)->arg(0));
  if (!follows(read->operand(0))) return false;
  if (made.elements() > most_packed || reads < least_reads) return false;
  // The box of the axes holds what is read, and nothing else.
  if (made.axes.size() > 1 && !std::ranges::all_of(made.loops, [](const Inst* loop) {
        return constant_rounds(loop).has_value();
      }))
    return false;
  const auto same = std::ranges::find_if(packs_, [&](Pack& other) {
    if (other.read->imm != read->imm || other.read->elem != read->elem || other.base != made.base ||
        other.may_be_idle != made.may_be_idle || other.axes.size() != made.axes.size())
      return false;
    if (other.axes == made.axes) return true;
    return made.axes.size() == 1 && other.axes[0].factor == made.axes[0].factor &&
           both(other.axes[0], made.axes[0]).count <= most_packed;
  });
  packed_[read] = {size_t(same - packs_.begin()), made.loops};
  if (same == packs_.end()) {
    packs_.push_back(std::move(made));
  } else if (same->axes != made.axes) {
    same->axes[0] = both(same->axes[0], made.axes[0]);
  }
  return true;
}

}  // namespace quern::ir

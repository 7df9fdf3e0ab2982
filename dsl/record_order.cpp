// The order of effects in an expression: quern/values/record.h on the recording of this thread.
//
// C++ leaves open which operand of an expression is evaluated, and so recorded, first; g++ begins
// with the last one, clang with the first. Random numbers are numbered from the left, so where two
// operands are temporaries the draws of the left one are moved before those of the right one. A
// value with a name belongs to an earlier statement and keeps its place.
//
// The ids of values count the time: what was recorded between the ends of two operands belongs to
// the later one. Of the operand evaluated first the beginning is not known, only the draws that
// reached it through temporaries. Where named values of a called function reached it, it cannot be
// told from one made of older statements, except that its line is above the operator: refused.
#include <algorithm>
#include <cstring>

#include "dsl/recording.h"

namespace quern::detail {

namespace {

/// An operand that is a temporary with something random or atomic in it.
struct Temporary {
  int place;      ///< among the operands, from the left
  uint32_t ends;  ///< the id recorded last for it
  Made made;
  std::vector<size_t> effects;  ///< those recorded for it, by position in Recording::effects
};

void join(Made& to, const Made& from) {
  for (ir::Inst* inst : from.effects)
    if (std::find(to.effects.begin(), to.effects.end(), inst) == to.effects.end())
      to.effects.push_back(inst);
  bool higher = from.read.line && std::strcmp(to.read.file, from.read.file) == 0 &&
                from.read.line < to.read.line;
  if (!to.read.line || higher) to.read = from.read;
}

bool above(Loc place, Loc op) {
  return place.line && (std::strcmp(place.file, op.file) != 0 || place.line < op.line);
}

bool is_draw(const ir::Inst* inst) { return inst->is(ir::Op::call_number); }

std::vector<Temporary> temporaries(const Recording& r, std::span<const Evaluated> operands) {
  std::vector<Temporary> out;
  for (size_t k = 0; k < operands.size(); k++) {
    Temporary operand{int(k), 0, {}, {}};
    bool found = false;
    for (Id id : std::span(operands[k].ids, size_t(operands[k].count))) {
      if (id.named || id.recording != r.number) continue;
      operand.ends = std::max(operand.ends, id.index);
      auto from = r.origins.find(id.index);
      if (from == r.origins.end()) continue;
      join(operand.made, from->second);
      found = true;
    }
    if (found) out.push_back(std::move(operand));
  }
  return out;
}

size_t position(const Recording& r, const ir::Inst* effect) {
  size_t k = r.effects.size();
  while (r.effects[--k].inst != effect) {
  }
  return k;
}

/// Do all have effects, each after those of the one to its left?
bool from_the_left(const Recording& r, const std::vector<Temporary>& all) {
  size_t next = 0;
  for (const Temporary& operand : all) {
    size_t begin = r.effects.size(), end = 0;
    for (const ir::Inst* inst : operand.made.effects) {
      begin = std::min(begin, position(r, inst));
      end = std::max(end, position(r, inst) + 1);
    }
    if (operand.made.effects.empty() || begin < next) return false;
    next = end;
  }
  return true;
}

/// Finds the effects recorded for each; the operands are in the order of their evaluation.
void find_effects(const Recording& r, std::vector<Temporary>& evaluated) {
  size_t end = 0;
  for (Temporary& operand : evaluated) {
    size_t begin = end;
    while (end < r.effects.size() && r.effects[end].id <= operand.ends) end++;
    if (&operand == &evaluated[0]) {
      begin = end;
      for (const ir::Inst* inst : operand.made.effects) begin = std::min(begin, position(r, inst));
    }
    for (size_t k = begin; k < end; k++) operand.effects.push_back(k);
  }
}

/// Puts the instructions, all of one region, into the order given, from where the first one stands.
void rearrange(ir::Builder b, ir::Inst* first, const std::vector<ir::Inst*>& order) {
  b.before(first);
  for (ir::Inst* inst : order) {
    if (inst != b.point()) ir::move(b, inst);
    if (inst->next)
      b.before(inst->next);
    else
      b.at_end(inst->parent);
  }
}

}  // namespace

bool Recording::is_effect(const ir::Inst* inst) const {
  return is_draw(inst) || inst->is(ir::Op::atomic) ||
         (inst->is(ir::Op::call) && callee_effects[inst->imm]);
}

Id Recording::add(ir::Value* v, std::initializer_list<Id> parts) {
  values.push_back(v);
  Id id{uint32_t(values.size() - 1), number};
  if (v && v->inst && is_effect(v->inst)) {
    if (effects.empty() || effects.back().inst != v->inst) effects.push_back({id.index, v->inst});
    origins[id.index].effects.push_back(v->inst);
  }
  if (placed_of.effects.empty() && !placed_of.read.line)
    for (Id part : parts) derive(id, part);
  else
    join(origins[id.index], placed_of);
  return id;
}

Made Recording::joined(std::span<const Evaluated> operands) const {
  Made out;
  for (const Temporary& operand : temporaries(*this, operands)) join(out, operand.made);
  return out;
}

void Recording::derive(Id id, Id part) {
  auto found = origins.find(part.index);
  if (part.recording != number || found == origins.end()) return;
  Made from = found->second;
  if (part.named) from = {{}, values[id.index]->inst->loc};
  join(origins[id.index], from);
}

void Recording::in_order(std::span<const Evaluated> operands, Loc at) {
  if (origins.empty() || failed()) return;
  if (!placed_of.effects.empty()) return;  // inside a function, whose operands are in order
  if (placed.line) at = placed;
  std::vector<Temporary> all = temporaries(*this, operands);
  if (all.size() < 2) return;
  auto refuse = [&] {
    fail(at,
         "two operations with effects (random, atomics) in one expression, which compilers order "
         "differently; give each a statement of its own, as in `auto x = …;`");
  };
  int with_effects = 0, of_draws = 0;
  for (const Temporary& operand : all) {
    const auto& list = operand.made.effects;
    with_effects += !list.empty();
    of_draws += !list.empty() && std::all_of(list.begin(), list.end(), is_draw);
  }
  if (with_effects > 1 && of_draws < with_effects) return refuse();
  if (from_the_left(*this, all)) return;

  std::vector<Temporary>& evaluated = all;
  std::stable_sort(evaluated.begin(), evaluated.end(),
                   [](const auto& x, const auto& y) { return x.ends < y.ends; });
  find_effects(*this, evaluated);
  std::vector<size_t> recorded;
  for (const Temporary& operand : evaluated) {
    bool overtakes = operand.place < evaluated[0].place && !operand.effects.empty();
    if (overtakes && above(evaluated[0].made.read, at)) return refuse();
    recorded.insert(recorded.end(), operand.effects.begin(), operand.effects.end());
  }

  std::stable_sort(all.begin(), all.end(),
                   [](const auto& x, const auto& y) { return x.place < y.place; });
  std::vector<ir::Inst*> wanted;
  bool movable = true, moved = false;
  for (const Temporary& operand : all)
    for (size_t k : operand.effects) {
      ir::Inst* inst = effects[k].inst;
      moved |= recorded[wanted.size()] != k;
      movable &= is_draw(inst) && inst->parent == b.region();
      wanted.push_back(inst);
    }
  if (!moved) return;
  if (!movable) return refuse();
  rearrange(b, effects[recorded[0]].inst, wanted);
  for (size_t k = 0; k < wanted.size(); k++) effects[recorded[k]].inst = wanted[k];
}

void in_order(const Evaluated* operands, int count, Loc loc) {
  if (Recording* r = active_recording()) r->in_order({operands, size_t(count)}, loc);
}

}  // namespace quern::detail

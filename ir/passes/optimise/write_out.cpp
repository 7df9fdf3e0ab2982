#include "ir/passes/optimise/write_out.h"

#include <algorithm>
#include <unordered_set>

#include "ir/analysis/facts.h"

namespace quern::ir {

namespace {

constexpr size_t many_instructions = 4000, many_with_constants = 12000;

/// What indices of loops around are in the round that is looked at, and what follows from them.
using Known = std::unordered_map<const Value*, int64_t>;

/// Of integers that are the same with any sign and in any type that has them. `depth`: of the
/// operations that are looked through, each of which may name the same twice.
std::optional<int64_t> known_value(const Value* v, const Known& known, int depth = 0) {
  constexpr int most_depth = 8;
  if (const auto at = known.find(v); at != known.end()) return at->second;
  const Inst* inst = v->inst;
  if (!inst || !is_int(v->type) || depth == most_depth) return std::nullopt;
  int64_t made = 0;
  if (inst->is(Op::constant)) {
    made = to_signed(inst->imm, v->type);
  } else if (inst->is(Op::convert) && is_int(inst->operand(0)->type)) {
    const auto from = known_value(inst->operand(0), known, depth + 1);
    if (!from) return std::nullopt;
    made = *from;
  } else if (inst->is(Op::add) || inst->is(Op::sub)) {
    const auto a = known_value(inst->operand(0), known, depth + 1);
    const auto b = known_value(inst->operand(1), known, depth + 1);
    if (!a || !b) return std::nullopt;
    if (inst->is(Op::add) ? __builtin_add_overflow(*a, *b, &made)
                          : __builtin_sub_overflow(*a, *b, &made))
      return std::nullopt;
  } else {
    return std::nullopt;
  }
  const bool has_it =
      to_signed(bits_of_int(made, v->type), v->type) == made && (made >= 0 || is_signed(v->type));
  return has_it ? std::optional(made) : std::nullopt;
}

struct Rounds {
  int64_t first = 0, count = 0;
};

/// Of a loop by steps of 1, where few are known.
std::optional<Rounds> rounds_of(const Inst* loop, const Known& known) {
  const auto lo = known_value(loop->operand(0), known), hi = known_value(loop->operand(1), known);
  if (!lo || !hi || !is_constant(loop->operand(2), 1)) return std::nullopt;
  int64_t count = 0;
  if (__builtin_sub_overflow(*hi, *lo, &count) || count > most_rounds_written_out)
    return std::nullopt;
  return Rounds{*lo, std::max<int64_t>(count, 0)};
}

/// Measures loops written out.
class Size {
 public:
  explicit Size(WrittenCode& code) : code_(code) {}

  /// Adds the loop to the code. False where it cannot be written out, or the code is too much.
  bool add(const Inst* loop) {
    const std::optional<Rounds> rounds = rounds_of(loop, known_);
    if (!rounds || loop->kind != 0) return false;
    constants_.insert(loop->region(0)->arg(0));
    for (int64_t k = 0; k < rounds->count; k++) {
      known_[loop->region(0)->arg(0)] = rounds->first + k;
      for (const Inst* inst : *loop->region(0))
        if (inst->is(Op::loop) ? !add(inst) : !add_straight(inst)) return false;
    }
    return true;
  }

 private:
  /// Of an instruction that is no loop, or a branch without any.
  bool add_straight(const Inst* inst) {
    if (inst->is(Op::slot) || inst->is(Op::while_) || inst->is(Op::loop)) return false;
    const bool is_constant = is_pure(inst->op) && inst->regions.empty() &&
                             std::ranges::all_of(inst->operands, [&](const Use& use) {
                               return constant_of(use.value) || constants_.contains(use.value);
                             });
    code_.all++;
    if (is_constant)
      for (const Value& v : inst->results) constants_.insert(&v);
    else
      code_.instructions++;
    for (const Region* region : inst->regions)
      for (const Inst* inner : *region)
        if (!add_straight(inner)) return false;
    return code_.fits();
  }

  WrittenCode& code_;
  Known known_;
  std::unordered_set<const Value*> constants_;
};

class Writer {
 public:
  explicit Writer(Kernel& kernel) : b_(kernel) {}

  void replace(Inst* loop) {
    b_.before(loop);
    const std::vector<Value*> last = rounds(loop);
    for (size_t k = 0; k < last.size(); k++) loop->result(k)->replace_with(last[k]);
    loop->erase();
  }

 private:
  Value* now(Value* v) const {
    const auto at = map_.find(v);
    return at == map_.end() ? v : at->second;
  }

  /// What the loop carries behind its last round.
  std::vector<Value*> rounds(const Inst* loop) {
    const Region* round = loop->region(0);
    const Rounds rounds = *rounds_of(loop, known_);
    std::vector<Value*> carried;
    for (size_t k = 3; k < loop->operand_count(); k++) carried.push_back(now(loop->operand(k)));
    for (int64_t n = 0; n < rounds.count; n++) {
      b_.at(loop->loc);
      const int64_t index = known_[round->arg(0)] = rounds.first + n;
      map_[round->arg(0)] = b_.integer(round->arg(0)->type, index);
      for (size_t k = 0; k < carried.size(); k++) map_[round->arg(k + 1)] = carried[k];
      for (const Inst* inst = round->first; inst != round->last; inst = inst->next) {
        if (!inst->is(Op::loop)) {
          clone_inst(b_, inst, map_);
          continue;
        }
        const std::vector<Value*> made = this->rounds(inst);
        for (size_t k = 0; k < made.size(); k++) map_[inst->result(k)] = made[k];
      }
      for (size_t k = 0; k < carried.size(); k++) carried[k] = now(round->last->operand(k));
    }
    return carried;
  }

  Builder b_;
  ValueMap map_;
  Known known_;
};

}  // namespace

bool WrittenCode::fits() const {
  return instructions <= many_instructions && all <= many_with_constants;
}

bool WrittenCode::add(const Inst* loop) {
  WrittenCode with_it = *this;
  if (!Size(with_it).add(loop)) return false;
  *this = with_it;
  return true;
}

std::optional<int64_t> known_rounds(const Inst* loop) {
  const std::optional<Rounds> rounds = rounds_of(loop, {});
  return rounds ? std::optional(rounds->count) : std::nullopt;
}

void write_out(Kernel& kernel, Inst* loop) { Writer(kernel).replace(loop); }

}  // namespace quern::ir

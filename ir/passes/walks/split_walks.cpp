#include "ir/passes/walks/split_walks.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "ir/analysis/effects.h"
#include "ir/analysis/facts.h"
#include "ir/passes/walks/strips.h"
#include "quern/ir/abi.h"

namespace quern::ir {

namespace {

constexpr size_t largest = 4000;

bool touches_memory(const Inst* inst) {
  bool found = false;
  for (Region* region : inst->regions)
    walk(region, [&](const Inst* i) { found |= accesses_memory(i->op); });
  return found;
}

bool is_comparison(Op op) {
  return op == Op::lt || op == Op::le || op == Op::gt || op == Op::ge || op == Op::eq ||
         op == Op::ne;
}
/// a op b is b mirrored(op) a.
Op mirrored(Op op) {
  if (op == Op::lt) return Op::gt;
  if (op == Op::le) return Op::ge;
  if (op == Op::gt) return Op::lt;
  return op == Op::ge ? Op::le : op;
}
Op opposite(Op op) {
  if (op == Op::lt) return Op::ge;
  if (op == Op::le) return Op::gt;
  if (op == Op::gt) return Op::le;
  if (op == Op::ge) return Op::lt;
  return op == Op::eq ? Op::ne : Op::eq;
}
constexpr int64_t farthest_first = 16;  ///< constant borders below it are first ones

/// Does a border there stand before most indices?
bool is_first(const Value* bound) {
  const Inst* constant = constant_of(bound);
  return constant && to_signed(constant->imm, bound->type) < farthest_first;
}
/// What `index op bound` answers inside.
bool answer_inside(Op op, bool bound_is_first) {
  if (op == Op::eq || op == Op::ne) return op == Op::ne;
  return (op == Op::gt || op == Op::ge) == bound_is_first;
}

class Splitter {
 public:
  Splitter(Kernel& kernel, Inst* walk)
      : b_(kernel),
        walk_(walk),
        body_(walk->region(0)),
        lo_(walk->operand(0)),
        hi_(walk->operand(1)) {}

  void run() {
    if (!has_form()) return;
    b_.before(walk_).at(walk_->loc);
    begin();
    ask();
    if (matters_) split();
  }

 private:
  /// A value of the body that grows by 1 from iteration to iteration, modulo 2^width.
  struct Moving {
    Value* at;   ///< its value in the middle iteration
    bool plain;  ///< it is the index and a constant
    bool asked;  ///< only inside: an answer was taken for granted
  };
  /// In the middle, an instruction is `moving` less `base`, in the type of its result.
  struct Replaced {
    Value *result, *moving, *base;
  };

  bool has_form() const {
    size_t count = 0;
    walk(body_, [&](const Inst*) { count++; });
    return count <= largest && is_constant(walk_->operand(2), 1);
  }

  Value* word(int64_t v) { return b_.integer(Type::i64, v); }
  Value* wide(Value* v) { return b_.convert(v, Type::i64); }
  Value* unsigned_(Value* v) { return b_.convert(v, Type::u64); }
  Value* unlimited() { return b_.constant(Type::u64, ~Bits(0)); }
  bool is_shared(const Value* v) const {
    return !encloses(body_, v->inst ? v->inst->parent : v->region);
  }

  void begin() {
    Value* length = b_.sub(hi_, lo_);
    pivot_ = b_.add(lo_, b_.binary(Op::shr, length, word(1)));
    holds_ = b_.lt(lo_, hi_);
    up_ = unsigned_(b_.sub(b_.sub(hi_, pivot_), word(1)));
    down_ = unsigned_(b_.sub(pivot_, lo_));
    moving_[body_->arg(0)] = Moving{pivot_, true, false};
  }

  // ---- what the middle may be: iterations pivot - down … pivot + up, if `holds`

  void require(Value* condition) { holds_ = b_.binary(Op::bit_and, holds_, condition); }
  /// a - b iterations up (down) at most, where a ≥ b.
  void limit_up(Value* a, Value* b) { limit(up_, unsigned_(b_.sub(a, b))); }
  void limit_down(Value* a, Value* b) { limit(down_, unsigned_(b_.sub(a, b))); }
  void limit(Value*& room, Value* by) { room = b_.binary(Op::min, room, by); }

  /// The moving value does not leave the range of its type.
  void keep_from_wrapping(Value* v, const Moving& m) {
    if (v == body_->arg(0) || !kept_.insert(v).second) return;
    const bool is_signed_type = is_signed(v->type);
    const unsigned digits = bit_width(v->type) - (is_signed_type ? 1 : 0);
    const int64_t most = int64_t((uint64_t(1) << digits) - 1);
    limit_up(word(most), wide(m.at));
    limit_down(wide(m.at), word(is_signed_type ? -most - 1 : 0));
  }

  /// `v op bound` holds.
  void require(Op op, Value* v, const Moving& m, Value* bound) {
    keep_from_wrapping(v, m);
    require(b_.binary(op, m.at, bound));
    Value *a = wide(m.at), *b = wide(bound);
    switch (op) {
      case Op::lt: return limit_up(b_.sub(b, word(1)), a);
      case Op::le: return limit_up(b, a);
      case Op::ge: return limit_down(a, b);
      case Op::gt: return limit_down(b_.sub(a, word(1)), b);
      default: break;
    }
    Value* below = b_.lt(a, b);
    limit(up_, b_.select(below, unsigned_(b_.sub(b_.sub(b, a), word(1))), unlimited()));
    limit(down_, b_.select(below, unlimited(), unsigned_(b_.sub(b_.sub(a, b), word(1)))));
  }

  // ---- questions and answers

  void ask() {
    walk(body_, [&](Inst* inst) {
      if (inst->is(Op::if_) && touches_memory(inst)) matters_ |= ask_all(inst->operand(0));
      if (inst->is(Op::offset) && leads_to_access(inst)) ask_place(inst->operand(1));
    });
  }

  /// Answers what can be answered of a condition: was there anything?
  bool ask_all(Value* condition) {
    const Inst* inst = condition->inst;
    if (!inst || inst->is(Op::constant)) return false;
    bool any = truth(condition).has_value();
    if (inst->is(Op::bit_and) || inst->is(Op::bit_or) || inst->is(Op::bit_not))
      for (const Use& use : inst->operands) any |= ask_all(use.value);
    return any;
  }

  /// Is the address read or written? An atomic is no part of a vector wherever it is.
  static bool leads_to_access(const Inst* address) {
    for (const Use* use = address->result()->uses; use; use = use->next) {
      const Inst* user = use->user;
      if (user->is(Op::read) || user->is(Op::write)) return true;
      if (user->is(Op::offset) && leads_to_access(user)) return true;
    }
    return false;
  }

  /// Asks about the indices that an address is made of.
  void ask_place(Value* bytes) {
    if (is_shared(bytes) || !asked_.insert(bytes).second) return;
    if (const Moving* m = moving(bytes)) {
      matters_ |= m->asked;
      return;
    }
    const Inst* inst = bytes->inst;
    if (!inst || !is_pure(inst->op) || !is_int(bytes->type)) return;
    for (const Use& use : inst->operands) ask_place(use.value);
  }

  /// The answer of a condition in the middle, if it has one.
  std::optional<bool> truth(Value* condition) {
    auto [found, is_new] = answers_.try_emplace(condition);
    if (!is_new) return found->second;
    std::optional<bool> answer = answered(condition);
    if (answer) decided_.push_back({condition, *answer});
    return answers_[condition] = answer;
  }

  std::optional<bool> answered(Value* condition) {
    const Inst* inst = condition->inst;
    if (!inst) return std::nullopt;
    if (inst->is(Op::constant)) return inst->imm != 0;
    if (inst->is(Op::bit_not)) {
      std::optional<bool> a = truth(inst->operand(0));
      return a ? std::optional(!*a) : a;
    }
    if (inst->is(Op::bit_and) || inst->is(Op::bit_or)) {
      std::optional<bool> a = truth(inst->operand(0)), b = truth(inst->operand(1));
      if (!a || !b) return std::nullopt;
      return inst->is(Op::bit_and) ? *a && *b : *a || *b;
    }
    if (!is_comparison(inst->op) || !is_int(inst->operand(0)->type)) return std::nullopt;
    return is_shared(condition) ? shared_comparison(inst) : comparison(inst);
  }

  std::optional<bool> comparison(const Inst* inst) {
    Value *a = inst->operand(0), *b = inst->operand(1);
    Op op = inst->op;
    if (is_shared(a)) std::swap(a, b), op = mirrored(op);
    const Moving* m = is_shared(b) ? moving(a) : nullptr;
    if (!m) return std::nullopt;
    const bool answer = answer_inside(op, m->plain && is_first(b));
    require(answer ? op : opposite(op), a, *m, b);
    return answer;
  }

  /// Of an outer index with a constant or with what does not follow from one.
  std::optional<bool> shared_comparison(const Inst* inst) {
    Value *a = inst->operand(0), *b = inst->operand(1);
    Op op = inst->op;
    if (!varies(a)) std::swap(a, b), op = mirrored(op);
    if (!varies(a) || varies(b)) return std::nullopt;
    const bool answer = answer_inside(op, is_first(b));
    require(b_.binary(answer ? op : opposite(op), a, b));
    return answer;
  }

  /// Does the value follow from the index of an outer loop?
  bool varies(const Value* v) {
    if (!v->inst) return true;
    if (!is_pure(v->inst->op)) return false;
    auto [found, is_new] = varies_.try_emplace(v, false);
    if (!is_new) return found->second;
    bool any = false;
    for (const Use& use : v->inst->operands) any |= varies(use.value);
    return varies_[v] = any;
  }

  // ---- moving values

  const Moving* moving(Value* v) {
    auto [found, is_new] = moving_.try_emplace(v);
    if (is_new) {
      std::optional<Moving> m = v->inst && !is_shared(v) ? moved(v, v->inst) : std::nullopt;
      found = moving_.insert_or_assign(v, m).first;
    }
    return found->second ? &*found->second : nullptr;
  }

  std::optional<Moving> moved(Value* v, const Inst* inst) {
    if (v->type != Type::i32 && v->type != Type::u32 && v->type != Type::i64) return std::nullopt;
    switch (inst->op) {
      case Op::convert:
      case Op::bitcast: return converted(v, inst->operand(0));
      case Op::add:
        if (!is_shared(inst->operand(1))) return shifted(inst, 1, 0);
        [[fallthrough]];
      case Op::sub: return shifted(inst, 0, 1);
      case Op::min:
      case Op::max: return bounded(v, inst);
      case Op::rem: return wrapped(v, inst);
      case Op::bit_and: return masked(v, inst);
      case Op::select: return chosen(v, inst);
      default: return std::nullopt;
    }
  }

  std::optional<Moving> converted(Value* v, Value* from) {
    if (!is_int(from->type)) return std::nullopt;
    const Moving* m = moving(from);
    if (!m) return std::nullopt;
    Moving out{b_.convert(m->at, v->type), m->plain, m->asked};
    if (bit_width(v->type) <= bit_width(from->type)) return out;
    keep_from_wrapping(from, *m);
    replace(v, body_->arg(0), b_.sub(pivot_, out.at));
    return out;
  }

  std::optional<Moving> shifted(const Inst* inst, size_t which, size_t by) {
    Value* amount = inst->operand(by);
    const Moving* m = is_shared(amount) ? moving(inst->operand(which)) : nullptr;
    if (!m) return std::nullopt;
    return Moving{b_.binary(inst->op, m->at, amount), m->plain && constant_of(amount), m->asked};
  }

  /// A minimum or maximum that is the moving one of its operands.
  std::optional<Moving> bounded(Value* v, const Inst* inst) {
    Value *a = inst->operand(0), *bound = inst->operand(1);
    if (is_shared(a)) std::swap(a, bound);
    const Moving* m = is_shared(bound) ? moving(a) : nullptr;
    if (!m) return std::nullopt;
    require(inst->is(Op::min) ? Op::le : Op::ge, a, *m, bound);
    replace(v, a, b_.integer(v->type, 0));
    return Moving{m->at, m->plain, true};
  }

  /// The remainder by a positive number, between two of its multiples.
  std::optional<Moving> wrapped(Value* v, const Inst* inst) {
    Value *a = inst->operand(0), *by = inst->operand(1);
    const Moving* m = is_shared(by) ? moving(a) : nullptr;
    if (!m) return std::nullopt;
    return between(v, a, *m, b_.binary(Op::rem, m->at, by), by);
  }

  /// The lowest bits, likewise.
  std::optional<Moving> masked(Value* v, const Inst* inst) {
    Value *a = inst->operand(0), *mask = inst->operand(1);
    if (is_shared(a)) std::swap(a, mask);
    const Moving* m = is_shared(mask) ? moving(a) : nullptr;
    if (!m) return std::nullopt;
    Value* count = b_.add(mask, b_.integer(v->type, 1));
    Value* none = b_.integer(v->type, 0);
    require(b_.binary(Op::eq, b_.binary(Op::bit_and, mask, count), none));
    return between(v, a, *m, b_.binary(Op::bit_and, m->at, mask), count);
  }

  std::optional<Moving> between(Value* v, Value* a, const Moving& m, Value* rest, Value* by) {
    Value* zero = b_.integer(v->type, 0);
    keep_from_wrapping(a, m);
    require(b_.binary(Op::le, zero, m.at));
    require(b_.lt(zero, by));
    limit_down(wide(rest), word(0));
    limit_up(b_.sub(wide(by), word(1)), wide(rest));
    replace(v, a, b_.sub(m.at, rest));
    return Moving{rest, false, true};
  }

  std::optional<Moving> chosen(Value* v, const Inst* inst) {
    std::optional<bool> first = truth(inst->operand(0));
    if (!first) return std::nullopt;
    Value* choice = inst->operand(*first ? 1 : 2);
    const Moving* m = moving(choice);
    if (!m) return std::nullopt;
    replace(v, choice, b_.integer(v->type, 0));
    return Moving{m->at, m->plain, true};
  }

  void replace(Value* result, Value* moving, Value* base) {
    replaced_.push_back({result, moving, base});
  }

  // ---- the two copies

  void split() {
    Value* from = b_.sub(pivot_, wide(down_));
    Value* to = b_.add(b_.add(pivot_, wide(up_)), word(1));
    from = b_.select(holds_, from, hi_);
    to = b_.select(holds_, to, hi_);
    std::vector<Value*> init;
    for (size_t k = 3; k < walk_->operand_count(); k++) init.push_back(walk_->operand(k));
    Value* zero = word(0);
    Value* two = word(2);
    Inst* rounds = b_.loop(zero, two, word(1), init);
    for (size_t k = 0; k < walk_->results.size(); k++)
      walk_->result(k)->replace_with(rounds->result(k));

    const Region* round = rounds->region(0);
    b_.at_end(rounds->region(0));
    Value* before = b_.binary(Op::eq, round->arg(0), zero);
    Value* start = b_.select(before, lo_, to);
    Value* end = b_.select(before, from, hi_);
    Value* start_inside = b_.select(before, from, to);
    Inst* inside = copy_with_answers();
    set_range(inside, start_inside, to);
    b_.before(inside);
    move(b_, walk_);
    set_range(walk_, start, end);
    std::vector<Value*> last;
    for (size_t k = 0; k < init.size(); k++) {
      walk_->set_operand(k + 3, round->arg(k + 1));
      inside->set_operand(k + 3, walk_->result(k));
      last.push_back(inside->result(k));
    }
    b_.at_end(rounds->region(0)).yield(last);
  }

  static void set_range(Inst* walk, Value* from, Value* to) {
    walk->set_operand(0, from);
    walk->set_operand(1, to);
  }

  Inst* copy_with_answers() {
    ValueMap map;
    for (auto [condition, answer] : decided_)
      if (is_shared(condition)) map[condition] = b_.boolean(answer);
    Inst* inside = clone_inst(b_, walk_, map);
    auto replace = [&](const Value* v, auto&& make) {
      Value* old = map.at(v);
      Builder at = b_;
      at.before(old->inst);
      Value* by = make(at, old->type);
      old->replace_with(by);
      map[v] = by;
    };
    for (auto [condition, answer] : decided_)
      if (!is_shared(condition))
        replace(condition, [&](Builder& b, Type) { return b.boolean(answer); });
    for (const Replaced& r : replaced_)
      replace(r.result, [&](Builder& b, Type type) {
        return b.sub(b.convert(map.at(r.moving), type), r.base);
      });
    return inside;
  }

  Builder b_;
  Inst* walk_;
  Region* body_;
  Value *lo_, *hi_;
  Value *pivot_ = nullptr, *holds_ = nullptr, *up_ = nullptr, *down_ = nullptr;
  bool matters_ = false;
  std::unordered_map<const Value*, std::optional<Moving>> moving_;
  std::unordered_map<const Value*, std::optional<bool>> answers_;
  std::unordered_map<const Value*, bool> varies_;
  std::unordered_set<const Value*> kept_, asked_;
  std::vector<std::pair<Value*, bool>> decided_;  ///< dependences first, like the next
  std::vector<Replaced> replaced_;
};

/// A walk with checks is not vectorised, whatever its middle is.
bool reports(const Places& writes) {
  return writes.anything ||
         std::ranges::find(writes.classes, abi::error_class) != writes.classes.end();
}

}  // namespace

void split_walks(Kernel& kernel, const TargetTraits& target) {
  if (target.strip == 0) return;
  Effects effects(kernel);
  std::vector<Inst*> walks = walks_of(kernel);
  std::erase_if(walks, [&](Inst* walk) { return reports(effects.of(walk).writes); });
  for (Inst* walk : walks) Splitter(kernel, walk).run();
}

}  // namespace quern::ir

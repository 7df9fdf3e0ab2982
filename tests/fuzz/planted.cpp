// The fuzzer finds a wrong pass, names it and makes the program that shows it small.
//
// A mistake is planted in what a pass has just made: each kernel that the pass changes is changed
// once more, wrongly. Below access lowering no planted mistake makes an address, which might be
// anybody's memory.
#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "quern/ir/builder.h"
#include "tests/catch.h"
#include "tests/fuzz/engine/generator.h"
#include "tests/fuzz/engine/shrink.h"

using namespace quern;
using namespace quern::ir;

namespace {

/// Instructions that a pass has made: they stay where they are as long as their kernel lives.
class Made {
 public:
  /// To be told of each stage; says what is new since the stage of this kernel before.
  std::vector<Inst*> since(const Kernel& kernel) {
    std::unordered_set<const Inst*> now;
    std::vector<Inst*> fresh;
    std::unordered_set<const Inst*>& before = known_[&kernel];
    for (Region* root : roots(kernel))
      walk(root, [&](Inst* inst) {
        now.insert(inst);
        if (!before.contains(inst)) fresh.push_back(inst);
      });
    before = std::move(now);
    return fresh;
  }

 private:
  std::unordered_map<const Kernel*, std::unordered_set<const Inst*>> known_;
};

using Fresh = const std::vector<Inst*>&;
using Change = void (*)(Kernel&, Fresh);

struct Mistake {
  const char* pass;
  const char* what;
  uint64_t within;  ///< programs
  Change change;
};

template <class F>
void each(Fresh fresh, Op op, F&& change) {
  for (Inst* inst : fresh)
    if (inst->is(op)) change(inst);
}

Builder before(Kernel& kernel, Inst* inst) {
  Builder b(kernel);
  b.before(inst);
  return b;
}

void swap_operands(Inst* inst, size_t a, size_t c) {
  Value *x = inst->operand(a), *y = inst->operand(c);
  inst->set_operand(a, y);
  inst->set_operand(c, x);
}

bool is_constant(const Value* v, Bits bits) {
  return v->inst && v->inst->is(Op::constant) && v->inst->imm == bits;
}

// ---- mistakes

void swap_operands_of_sub(Kernel& kernel, Fresh) {
  if (kernel.level >= Level::lowered) return;
  walk(kernel, [](Inst* inst) {
    if (inst->is(Op::sub)) swap_operands(inst, 0, 1);
  });
}

void forget_stores_in_branches(Kernel& kernel, Fresh) {
  walk(kernel, [](Inst* inst) {
    if (inst->is(Op::store) && inst->parent->parent && inst->parent->parent->is(Op::if_))
      inst->erase();
  });
}

void forget_stores(Kernel&, Fresh fresh) {
  each(fresh, Op::store, [](Inst* inst) { inst->erase(); });
}

void forget_reach(Kernel& kernel, Fresh) {
  for (Task& task : kernel.tasks) std::ranges::fill(task.follows.reach, Following::Reach{});
}

void weaken_comparisons(Kernel& kernel, Fresh) {
  walk(kernel, [](Inst* inst) {
    if (inst->is(Op::lt)) inst->op = Op::le;
  });
}

void leave_out_the_last_row(Kernel& kernel, Fresh fresh) {
  each(fresh, Op::yield, [&](Inst* inst) {
    if (inst->operand_count() < 2) return;
    Builder b = before(kernel, inst);
    inst->set_operand(1, b.sub(inst->operand(1), b.integer(inst->operand(1)->type, 1)));
  });
}

void race(Kernel& kernel, Fresh) {
  walk(kernel, [&](Inst* inst) {
    if (!inst->is(Op::atomic) || inst->atomic() != AtomicOp::add || !is_int(inst->elem)) return;
    Builder b = before(kernel, inst);
    std::vector<Value*> index;
    for (size_t k = 0; k + 1 < inst->operand_count(); k++) index.push_back(inst->operand(k));
    Value* old = b.load(inst->binding(), inst->component(), inst->elem, index);
    b.store(inst->binding(), inst->component(), index,
            b.add(old, inst->operand(inst->operand_count() - 1)));
    inst->result()->replace_with(old);
    inst->erase();
  });
}

void reduce_nothing(Kernel&, Fresh fresh) {
  each(fresh, Op::block_reduce, [](Inst* inst) {
    inst->result()->replace_with(inst->operand(0));
    inst->erase();
  });
}

void reduce_where_needed(Kernel& kernel, Fresh fresh) {
  each(fresh, Op::block_reduce, [&](Inst* inst) {
    Builder b = before(kernel, inst);
    const Type type = inst->type();
    Value* first = b.binary(Op::eq, b.builtin(Builtin::block_thread), b.integer(Type::i64, 0));
    Inst* branch = b.if_(first, {&type, 1});
    inst->result()->replace_with(branch->result());
    b.at_end(branch->region(1)).yield({inst->operand(0)});
    b.at_end(branch->region(0));
    move(b, inst);
    b.yield({inst->result()});
  });
}

void forget_atomics(Kernel&, Fresh fresh) {
  each(fresh, Op::atomic, [](Inst* inst) {
    if (!inst->result()->used()) inst->erase();
  });
}

void skip_first_round(Kernel& kernel, Fresh fresh) {
  each(fresh, Op::loop, [&](Inst* inst) {
    const Value* end = inst->operand(1);
    if (!is_constant(inst->operand(0), 0) || (end->inst && end->inst->is(Op::constant))) return;
    inst->set_operand(0, before(kernel, inst).integer(inst->operand(0)->type, 1));
  });
}

void halve_alike(Kernel& kernel, Fresh fresh) {
  each(fresh, Op::load, [&](Inst* inst) {
    if (kernel.bindings[inst->binding()].kind != Binding::buffer) return;
    for (Inst* other : fresh)
      if (other->is(Op::load) && other->parent == inst->parent && other != inst &&
          other->type() == inst->type()) {
        other->result()->replace_with(inst->result());
        return;
      }
  });
}

void repeat_iterations(Kernel& kernel, Fresh fresh) {
  each(fresh, Op::loop, [&](Inst* inst) {
    if (inst->kind != thread_walk || inst->operand(0)->type != Type::i64) return;
    inst->set_operand(2, before(kernel, inst).integer(Type::i64, 1));
  });
}

void lose_last_iteration(Kernel& kernel, Fresh fresh) {
  each(fresh, Op::lt, [&](Inst* inst) {
    if (inst->operand(0)->type != Type::u32) return;
    Builder b = before(kernel, inst);
    inst->set_operand(0, b.add(inst->operand(0), b.integer(Type::u32, 1)));
  });
}

void shorten_blocks(Kernel& kernel, Fresh fresh) {
  each(fresh, Op::min, [&](Inst* inst) {
    if (inst->type() != Type::i64) return;
    Builder b = before(kernel, inst);
    inst->set_operand(0, b.sub(inst->operand(0), b.integer(Type::i64, 1)));
    inst->set_operand(1, b.sub(inst->operand(1), b.integer(Type::i64, 1)));
  });
}

void keep_one_lane(Kernel& kernel, Fresh fresh) {
  each(fresh, Op::get, [&](Inst* inst) {
    if (inst->operand_count() < 2 || inst->type() == Type::address) return;
    inst->set_operand(1, before(kernel, inst).integer(Type::i64, 0));
  });
}

void never_rare(Kernel& kernel, Fresh fresh) {
  each(fresh, Op::if_, [&](Inst* inst) {
    if (inst->results.empty()) inst->set_operand(0, before(kernel, inst).boolean(false));
  });
}

void lose_the_rest(Kernel& kernel, Fresh fresh) {
  each(fresh, Op::if_, [&](Inst* inst) {
    const Inst* any = inst->operand(0)->inst;
    if (any && any->is(Op::lt) && is_constant(any->operand(0), 0))
      inst->set_operand(0, before(kernel, inst).boolean(false));
  });
}

void lose_the_end(Kernel& kernel, Fresh fresh) {
  each(fresh, Op::loop, [&](Inst* inst) {
    if (is_constant(inst->operand(0), 0) && is_constant(inst->operand(1), 2))
      inst->set_operand(1, before(kernel, inst).integer(Type::i64, 1));
  });
}

void keep_the_end(Kernel& kernel, Fresh fresh) {
  each(fresh, Op::loop, [&](Inst* inst) {
    if (is_constant(inst->operand(0), 0) && is_constant(inst->operand(1), 2))
      inst->set_operand(0, before(kernel, inst).integer(Type::i64, 1));
  });
}

void forget_writes(Kernel&, Fresh fresh) {
  each(fresh, Op::write, [](Inst* inst) { inst->erase(); });
}

void forget_updates(Kernel&, Fresh fresh) {
  each(fresh, Op::rmw, [](Inst* inst) {
    if (!inst->used()) inst->erase();
  });
}

void never_reach(Kernel& kernel, Fresh fresh) {
  each(fresh, Op::bit_and, [&](Inst* inst) {
    if (inst->type() == Type::b1) inst->result()->replace_with(before(kernel, inst).boolean(false));
  });
}

void swap_choices(Kernel&, Fresh fresh) {
  each(fresh, Op::select, [](Inst* inst) {
    if (is_float(inst->type()) || inst->type() == Type::b1) swap_operands(inst, 1, 2);
  });
}

void stop_at_once(Kernel&, Fresh fresh) {
  each(fresh, Op::bit_not, [](Inst* inst) { inst->result()->replace_with(inst->operand(0)); });
}

void swap_fresh_differences(Kernel&, Fresh fresh) {
  for (Inst* inst : fresh)
    if (inst->is(Op::sub)) swap_operands(inst, 0, 1);
}

void take_other_operations(Kernel&, Fresh fresh) {
  constexpr std::pair<Op, Op> others[] = {
      {Op::add, Op::sub}, {Op::sub, Op::mul},        {Op::mul, Op::add}, {Op::min, Op::max},
      {Op::max, Op::min}, {Op::bit_and, Op::bit_or}, {Op::lt, Op::ge},   {Op::neg, Op::abs}};
  for (const auto& [op, other] : others) each(fresh, op, [&](Inst* inst) { inst->op = other; });
}

void round_to_integers(Kernel& kernel, Fresh fresh) {
  each(fresh, Op::convert, [&](Inst* inst) {
    if (inst->type() != Type::f16 || inst->operand(0)->type != Type::f32) return;
    inst->set_operand(0, before(kernel, inst).unary(Op::round, inst->operand(0)));
  });
}

void divide_the_other_way(Kernel&, Fresh fresh) {
  for (Inst* inst : fresh)
    if (inst->is(Op::div) && inst->type() == Type::f64) swap_operands(inst, 0, 1);
}

void take_roots_twice(Kernel& kernel, Fresh fresh) {
  each(fresh, Op::sqrt, [&](Inst* inst) {
    if (inst->type() != Type::f64) return;
    inst->set_operand(0, before(kernel, inst).unary(Op::sqrt, inst->operand(0)));
  });
}

void drop_the_neighbours(Kernel& kernel, Fresh fresh) {
  each(fresh, Op::bit_and, [&](Inst* inst) {
    const Inst* mask = inst->operand(1)->inst;
    if (inst->type() == Type::u32 && mask && mask->is(Op::bit_not))
      inst->set_operand(1, before(kernel, inst).integer(Type::u32, 0));
  });
}

/// Of loops by compare and swap over what is float.
void swap_in_what_was_seen(Kernel&, Fresh fresh) {
  each(fresh, Op::rmw, [](Inst* inst) {
    if (inst->atomic() != AtomicOp::cas) return;
    const Inst* next = inst->operand(2)->inst;
    if (next && next->is(Op::bitcast) && is_float(next->operand(0)->type))
      inst->set_operand(2, inst->operand(1));
  });
}

void forget_a_round_key(Kernel&, Fresh fresh) {
  each(fresh, Op::bit_xor, [](Inst* inst) { inst->op = Op::bit_or; });
}

void expect_more_room(Kernel& kernel, Fresh fresh) {
  each(fresh, Op::check, [&](Inst* inst) {
    Builder b = before(kernel, inst);
    if (inst->operand_count() != 4 || inst->operand(1)->type != Type::i64) return;
    Value* next = b.add(inst->operand(1), b.integer(Type::i64, 1));
    inst->set_operand(0, b.lt(next, b.convert(inst->operand(3), Type::i64)));
  });
}

void refuse_everything(Kernel& kernel, Fresh fresh) {
  each(fresh, Op::check,
       [&](Inst* inst) { inst->set_operand(0, before(kernel, inst).boolean(false)); });
}

void forget_flags(Kernel&, Fresh fresh) {
  each(fresh, Op::put, [](Inst* inst) {
    if (inst->operand(1)->type == Type::b1) inst->erase();
  });
}

const Mistake mistakes[] = {
    {"simplify", "swaps the operands of sub", 100, swap_operands_of_sub},
    {"forward", "forgets stores", 300, forget_stores_in_branches},
    {"structure_exits", "goes on behind an exit", 60, forget_flags},
    {"split_tasks", "takes < for <=", 30, weaken_comparisons},
    {"bind", "walks all of a field but its last row", 30, leave_out_the_last_row},
    {"inline_applied", "takes other operations", 2500, take_other_operations},
    {"combine_rounds", "forgets what rounds have combined", 600, forget_atomics},
    {"demote_atomics", "demotes what others touch", 600, race},
    {"carry_elements", "forgets what the loop left", 400, forget_stores},
    {"follow_tasks", "takes rows for independent", 1500, forget_reach},
    {"aggregate_atomics", "takes a thread's value for the block's", 600, reduce_nothing},
    {"aggregate_atomics", "lets the first thread alone combine", 600, reduce_where_needed},
    {"privatise_atomics", "keeps the copies to itself", 1000, forget_atomics},
    {"privatise_reductions", "leaves out the first chunk", 30, skip_first_round},
    {"privatise_reductions", "takes a thread's value for the block's", 150, reduce_nothing},
    {"privatise_reductions", "combines a lane with itself", 60, halve_alike},
    {"check_access", "leaves no room for the last element", 60, expect_more_room},
    {"check_arithmetic", "refuses what fits", 60, refuse_everything},
    {"lower_access", "forgets stores", 20, forget_writes},
    {"lower_random", "forgets a round's key", 20, forget_a_round_key},
    {"lower_loops", "walks in wide form as if alone", 100, repeat_iterations},
    {"lower_loops", "starts no thread for the last iteration", 100, lose_last_iteration},
    {"widen_halves", "rounds to integers", 150, round_to_integers},
    {"widen_halves", "swaps the operands of sub", 500, swap_fresh_differences},
    {"legalise", "divides the other way round", 150, divide_the_other_way},
    {"legalise", "takes the root twice", 3000, take_roots_twice},
    {"legalise", "writes zeros beside a narrow atomic", 200, drop_the_neighbours},
    {"legalise", "swaps in what it saw", 60, swap_in_what_was_seen},
    {"version_walks", "forgets the stores of the copy", 150, forget_writes},
    {"split_walks", "loses the end of the walk", 1200, lose_the_end},
    {"split_walks", "loses all but the end of the walk", 100, keep_the_end},
    {"write_out_nests", "swaps the operands of sub", 150, swap_fresh_differences},
    {"interleave_walks", "loses what whole strips leave over", 250, lose_the_rest},
    {"interleave_walks", "takes what it should leave", 600, swap_choices},
    {"interleave_walks", "gives all iterations the values of one", 300, keep_one_lane},
    {"replay_rare_branches", "never replays", 500, never_rare},
    {"replay_rare_branches", "loses the last iteration of a block", 400, shorten_blocks},
    {"defer_rare_branches", "never takes the rare branch", 200, never_rare},
    {"defer_rare_branches", "loses the last iteration of a block", 200, shorten_blocks},
    {"defer_updates", "loses the last iteration of a block", 3000, shorten_blocks},
    {"version_rounds", "forgets the updates of the copies", 400, forget_updates},
    {"poll_loops", "stops at once", 50, stop_at_once},
    {"limit_nesting", "never reaches an inner branch", 60, never_reach},
    {"limit_nesting", "takes the other branch's values", 60, swap_choices},
};

size_t instructions(Kernel& kernel) {
  size_t count = 0;
  walk(kernel, [&](Inst*) { count++; });
  return count;
}

fuzz::Checks with(const Mistake& mistake) {
  fuzz::Checks checks;
  checks.sabotage = [&mistake, made = Made()](std::string_view after, Kernel& kernel) mutable {
    if (after == "drop_unused_snapshots") made = Made();  // of another program
    const std::vector<Inst*> fresh = made.since(kernel);
    if (after == mistake.pass) mistake.change(kernel, fresh);
    if (after == mistake.pass) made.since(kernel);
  };
  return checks;
}

/// Many times what it takes: how small a program gets does not depend on the machine's load.
constexpr double shrink_seconds = 600;

void expect_found(const Mistake& mistake) {
  const fuzz::Checks checks = with(mistake);
  uint64_t seed = 1;
  while (seed <= mistake.within) {
    // Some show at once, some first behind a later pass, where chunks happen to be longer.
    if (fuzz::check(fuzz::generate(seed), checks)) break;
    seed++;
  }
  INFO("programs: " << seed);
  CHECK(seed <= mistake.within);
}

/// Few programs come to where it shows.
bool is_rare(const Mistake& mistake) { return mistake.within >= 2000; }

}  // namespace

TEST_CASE("a mistake in each pass is found", "[host]") {
  for (const Mistake& mistake : mistakes) {
    if (is_rare(mistake)) continue;
    DYNAMIC_SECTION(mistake.pass << " " << mistake.what) { expect_found(mistake); }
  }
}

TEST_CASE("mistakes that show in few programs are found", "[.long][planted]") {
  for (const Mistake& mistake : mistakes) {
    if (!is_rare(mistake)) continue;
    DYNAMIC_SECTION(mistake.pass << " " << mistake.what) { expect_found(mistake); }
  }
}

TEST_CASE("a program that shows a mistake becomes small", "[host]") {
  for (const Mistake& mistake : {mistakes[0], mistakes[1], mistakes[3]}) {
    const fuzz::Checks checks = with(mistake);
    bool found = false;
    for (uint64_t seed = 1; seed <= mistake.within && !found; seed++) {
      fuzz::Program program = fuzz::generate(seed);
      auto failure = fuzz::check(program, checks);
      if (!failure || failure->stage != mistake.pass) continue;
      fuzz::Program small = fuzz::shrink(program, *failure, checks, shrink_seconds);
      INFO(fuzz::text(small, *failure));
      CHECK(fuzz::check(small, checks)->stage == mistake.pass);
      CHECK_FALSE(fuzz::check(small, {}).has_value());
      CHECK(instructions(*small.kernel) <= 30);
      found = true;
    }
    INFO(mistake.pass);
    CHECK(found);
  }
}

#pragma once
// Dataflow over structured regions, forwards and backwards (Kildall, POPL 1973).
//
// A problem has
//   State                                copyable, comparable: what is known at a point
//   void meet(State&, const State&)      what both know; only ever takes knowledge away
//   void enter(Region*, State&)          at the end of the region where the walk starts …
//   void leave(Region*, State&)          … and where it ends
//   void step(Inst*, State&, bool last)  past one instruction without regions; `last` once the state
//                                        is final: then the instruction may be erased
//   void around(Inst*, State&)           past an instruction with regions, after what is in them
//
// A branch gives what its two regions give, met. A loop runs until nothing is taken away any more:
// each loop remembers what was known at its head, and a loop around it starts from there again, so
// that a region is walked as often as knowledge is lost, not more for each level of nesting. A
// parallel loop is a loop here: a problem for which iterations do not follow one another says so in
// `enter` and `leave`.
#include <unordered_map>

#include "quern/ir/ir.h"

namespace quern::ir {

template <class Problem, bool forwards>
class Dataflow {
 public:
  using State = typename Problem::State;
  explicit Dataflow(Problem& problem) : problem_(problem) {}

  /// From what is known where the walk starts to what is known where it ends.
  void run(Region* root, State& state) {
    heads_.clear();
    region(root, state, true);
  }

 private:
  void region(Region* r, State& state, bool last) {
    problem_.enter(r, state);
    Inst* following = nullptr;
    for (Inst* inst = forwards ? r->first : r->last; inst; inst = following) {
      following = forwards ? inst->next : inst->prev;
      if (inst->regions.empty()) {
        problem_.step(inst, state, last);
      } else {
        structure(inst, state, last);
        problem_.around(inst, state);
      }
    }
    problem_.leave(r, state);
  }

  void structure(Inst* inst, State& state, bool last) {
    if (inst->is(Op::if_)) {
      State other = state;
      region(inst->region(0), state, last);
      region(inst->region(1), other, last);
      problem_.meet(state, other);
      return;
    }
    // The head: where a loop decides whether there is another round; backwards, what is known of
    // the time after that decision.
    auto [known, is_new] = heads_.try_emplace(inst, state);
    if (!is_new) {
      State entered = known->second;
      problem_.meet(entered, state);
      known->second = std::move(entered);
    }
    const State entry = state;
    for (bool stable = false; !stable;) {
      State head = heads_.at(inst);
      State round = head;
      rounds(inst, round, false);
      State next = head;
      problem_.meet(next, round);
      problem_.meet(next, entry);
      stable = next == head;
      heads_.at(inst) = std::move(next);
    }
    State final = heads_.at(inst);
    if (last) {
      State round = final;
      rounds(inst, round, true);
    }
    state = std::move(final);
    if (inst->is(Op::while_)) {  // its condition runs once more than its body
      State condition = state;
      region(inst->region(0), condition, false);
      state = std::move(condition);
    }
  }

  /// From one head to the next: backwards too, a while_ comes past its condition first.
  void rounds(Inst* inst, State& state, bool last) {
    if (!inst->is(Op::while_)) return region(inst->region(0), state, last);
    region(inst->region(0), state, last);
    region(inst->region(1), state, last);
  }

  Problem& problem_;
  std::unordered_map<const Inst*, State> heads_;
};

}  // namespace quern::ir

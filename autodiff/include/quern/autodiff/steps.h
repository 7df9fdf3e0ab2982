#pragma once
// Loops in time on a tape, in the memory of a few states.
#include "quern/autodiff/floats.h"
#include "quern/autodiff/tape.h"

namespace quern {

namespace detail {
/// What the user does in a step.
struct StepBody {
  virtual ~StepBody() = default;
  virtual void run(int t) = 0;
};
/// Takes over `body`.
void run_steps(TapeObject* tape, int n, StepBody* body, const Ref<FieldObject>* state, int count,
               int snapshots, Loc loc);
int64_t state_bytes(const Ref<FieldObject>* state, int count, Loc loc);
}  // namespace detail

/// Fields that steps carry from one to the next: `state(x, v)`.
template <int N>
struct State {
  detail::Ref<detail::FieldObject> fields[size_t(N)];
  /// That one snapshot of them takes.
  int64_t bytes(Loc l = Loc::here()) const { return detail::state_bytes(fields, N, l); }
  /// How many snapshots of them fit into so much memory, beside the fields themselves.
  int snapshots_in(int64_t most_bytes, Loc l = Loc::here()) const {
    const int64_t each = bytes(l);
    const int64_t most = each > 0 ? most_bytes / each : 1;
    return most < (1 << 30) ? int(most) : 1 << 30;
  }
};
template <class... T, int... N>
State<int(sizeof...(T))> state(const Field<T, N>&... fields) {
  static_assert(sizeof...(T) > 0, "quern: state() takes the fields that steps carry");
  return {{detail::shared(fields.object())...}};
}

/// Runs body(0), …, body(n - 1), which launch kernels, and has `tape`, which must live, go back
/// through them, while it keeps `snapshots` states at most:
///
///     qn::Tape tape;
///     start(p, x);                                                     // x from p
///     qn::steps(tape, n, [&](int t) { step(x, v, t); }, qn::state(x, v), 10);
///     measure(x, loss);
///     loss.grad().fill(1);
///     tape.backward();                                                 // p.grad()
///
/// Going back runs steps again from the last state kept, each once more on a tape of its own. That
/// needs memory for `snapshots` states and what a tape of one step keeps; a snapshot shares the
/// memory of a field until that is written. How often steps are run is the least that so many
/// snapshots allow, by binomial checkpointing: r n - C(s + r, r - 1) times besides the n of the
/// tapes, for s snapshots and the smallest r with C(s + r, s) >= n. So 10 snapshots do for 286
/// steps with no step run more than four times in all. (Griewank and Walther, Algorithm 799:
/// revolve, ACM TOMS 26(1), 2000.) Gradients are those of a tape that records all steps, to the bit
/// where kernels are deterministic.
///
/// The body depends on t, on the state and on what else it launches kernels with; it is kept, and
/// runs in tape.backward() again, so what it refers to lives until then. Fields that steps only
/// read are kept as the steps found them, which takes memory where they are written later; those
/// on trees must not be. Behind backward() the state is the one before the first step, unless n is
/// 1; other fields that steps write hold what some step left. What the body changes on the host, it
/// finds changed when it runs again. Of a temporary a step reads no elements that it may not have
/// written before, but such as no step writes: else the field is part of the state, one that steps
/// only add to as well. Which elements a launch writes is known by loops' indices and constants; of
/// algorithms' results all but compact's are. A step that writes fields on a tree and reads some
/// there ends all elements first, by a loop over a field that deactivates each, launched in a
/// with_pullback() that does nothing going back.
///
/// Steps that are run again draw the random numbers of their first run, of which 8 bytes a launch
/// that draws are kept on the host; launches behind backward() draw what they would without it.
///
/// Throws Error where a launch reads elements, or writes some that were read, so that the field is
/// part of the state, which does not name it; in backward() where a step launches more kernels
/// that draw random numbers than it did first, and where one threw; within a step of steps();
/// where a field that steps use is swapped, or the grad() of one is read; for views in the state;
/// for n < 0 and snapshots < 1; and as the tape does. For n = 1 it is a plain call.
template <class F, int N>
void steps(const Tape& tape, int n, F body, const State<N>& state, int snapshots,
           Loc l = Loc::here()) {
  struct Body : detail::StepBody {
    explicit Body(F f) : body(std::move(f)) {}
    void run(int t) override { body(t); }
    F body;
  };
  detail::run_steps(tape.object(), n, new Body(std::move(body)), state.fields, N, snapshots, l);
}

}  // namespace quern

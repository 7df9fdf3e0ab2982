#pragma once
// Launches that are recorded, to go back through all of them.
#include "quern/autodiff/wrt.h"

namespace quern {

/// What a tape takes, in bytes on devices (Tape::memory_for). Adjoints and fields beside them,
/// which are there once however long a tape is, are not counted, nor some KB for launches.
struct TapeMemory {
  /// Behind the last launch: versions of fields that were overwritten, and what launches have kept of
  /// their loops; what Tape::memory() says.
  uint64_t kept = 0;
  /// That backward() takes besides, for as long as it goes back through one launch: copies of
  /// fields that this reads behind its own writes, what it has read there, rows of rounds. The most
  /// of any.
  uint64_t going_back = 0;
  /// How many launches and parts may take more another time: launches with rows whose number may
  /// depend on elements of fields, those that keep some where there is no room for all, launches on
  /// trees, which grow; parts by steps() and with_pullback(), of which nothing is counted.
  int unknown = 0;
};

namespace detail {
struct TapeObject;
void retain(TapeObject*) noexcept;
void release(TapeObject*) noexcept;
/// By these fields; by all where there are none.
TapeObject* make_tape(const Ref<FieldObject>* by, int count, Loc loc);
void go_back(TapeObject* tape, Loc loc);
uint64_t kept_bytes(TapeObject* tape, Loc loc);
TapeMemory predicted_bytes(TapeObject* tape, int64_t n, Loc loc);

/// A call of the user's, and what ends its captures.
struct GivenBack {
  void (*call)(void* captures) = nullptr;
  void (*drop)(void* captures) = nullptr;
  void* captures = nullptr;
};
/// While it lives, tapes that were there before do not record what this thread launches. What
/// finish() is given stands for it.
class GivenRun {
 public:
  explicit GivenRun(Loc loc);
  GivenRun(const GivenRun&) = delete;
  ~GivenRun();  ///< not finished: tapes cannot be gone back through
  void finish(GivenBack back);

 private:
  Loc loc_;
  bool is_finished_ = false;
};
}  // namespace detail

/// Records what is launched while it lives, by all threads, and goes back through it once:
///
///     qn::Tape tape;
///     step(x, y);
///     measure(y, loss);
///     loss.grad().fill(1);
///     tape.backward();      // x.grad() += ∂loss/∂x
///
/// A field's grad() is what is known of the adjoint behind the last launch when backward() begins,
/// and that before the first one when it ends. What launches read is kept as it was then: a field
/// that is overwritten is copied. A launch throws Error where a field that it uses was written by
/// the host between it and another recorded launch, and where it goes back itself; backward() where
/// one was swapped since. Launches of jvp() are recorded like others: their tangents x.dual() have
/// adjoints of their own, x.dual().grad().
class Tape {
 public:
  explicit Tape(Loc l = Loc::here()) : object_(detail::make_tape(nullptr, 0, l)) {}
  /// By these fields, and what launches compute of them from here on: what else launches read is a
  /// constant. For that nothing is computed, and its grad() stays as it is; that of what is
  /// computed is 0 behind backward(), which goes back to where it was a constant. Fields on trees,
  /// and those that with_pullback() writes, are taken for computed. Throws Error for a field
  /// parameter.
  template <int N>
  explicit Tape(const Wrt<N>& by, Loc l = Loc::here())
      : object_(detail::make_tape(by.fields, N, l)) {}
  /// Throws Error at the line of what has no adjoint (see Vjp), and where it was called before.
  void backward(Loc l = Loc::here()) { detail::go_back(object_.get(), l); }

  /// Bytes on devices that the tape keeps now: of each version of a field that going back wants and
  /// that was overwritten since, once. A version that the field still holds takes none, and what
  /// steps() and with_pullback() keep is not among them.
  uint64_t memory(Loc l = Loc::here()) const { return detail::kept_bytes(object_.get(), l); }

  /// What a tape would take of all that this one has recorded, n times over: record one step, or as
  /// many as fields take turns in, and ask before you run a thousand.
  ///
  ///     qn::Tape one;
  ///     step();
  ///     const qn::TapeMemory all = one.memory_for(1000);
  ///
  /// Exact where the launches are equal each time, of the same kernels, fields and scalars, and
  /// `unknown` is 0. Does what backward() does before it goes back through each launch, to count
  /// rows; the tape goes on recording. Throws Error for n < 1, and where backward() was called.
  TapeMemory memory_for(int64_t n, Loc l = Loc::here()) const {
    return detail::predicted_bytes(object_.get(), n, l);
  }

  detail::TapeObject* object() const { return object_.get(); }

 private:
  detail::Ref<detail::TapeObject> object_;
};

/// Calls `run`, which launches what it likes, and yields what that yields. Tapes made before record
/// none of it: they go back through it by `back`, which launches what carries adjoints back, in
/// fields' grad(): those of what `run` has written are known, and `back` leaves what they were
/// before, 0 where it was overwritten, and adds to those of what `run` has read. Fields have the
/// elements that they have then; of one that is written later `back` keeps a snapshot(). Where
/// nothing records this calls `run`. `run` writes fields by launches alone. Where it throws, a tape
/// cannot be gone back through.
template <class Run, class Back>
auto with_pullback(Run&& run, Back back, Loc l = Loc::here()) {
  detail::GivenRun recorded(l);
  const auto finish = [&] {
    recorded.finish({[](void* captures) { (*static_cast<Back*>(captures))(); },
                     [](void* captures) { delete static_cast<Back*>(captures); },
                     new Back(std::move(back))});
  };
  if constexpr (std::is_void_v<decltype(run())>) {
    run();
    finish();
  } else {
    auto yielded = run();
    finish();
    return yielded;
  }
}

}  // namespace quern

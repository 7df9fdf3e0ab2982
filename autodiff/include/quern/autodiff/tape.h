#pragma once
// Launches that are recorded, to go back through all of them.
#include "quern/quern.h"

namespace quern {

namespace detail {
struct TapeObject;
void retain(TapeObject*) noexcept;
void release(TapeObject*) noexcept;
TapeObject* make_tape(Loc loc);
void go_back(TapeObject* tape, Loc loc);
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
/// that is overwritten is copied. A launch throws Error where a field that it uses was written by the
/// host between it and another recorded launch, and where it goes back itself; backward() where one
/// was swapped since. Launches of jvp() are recorded like others: their tangents x.dual() have
/// adjoints of their own, x.dual().grad().
class Tape {
 public:
  explicit Tape(Loc l = Loc::here()) : object_(detail::make_tape(l)) {}
  /// Throws Error at the line of what has no adjoint (see Vjp), and where it was called before.
  void backward(Loc l = Loc::here()) { detail::go_back(object_.get(), l); }

  detail::TapeObject* object() const { return object_.get(); }

 private:
  detail::Ref<detail::TapeObject> object_;
};

}  // namespace quern

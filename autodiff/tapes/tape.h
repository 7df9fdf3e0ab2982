#pragma once
// What a tape goes back through besides launches.
#include <functional>

#include "quern/autodiff/tape.h"

namespace quern::detail {

/// What this thread launches while it lives the tape does not record. It knows that fields were
/// written, and refuses what the host has written before.
class Pause {
 public:
  explicit Pause(TapeObject* tape);
  ~Pause();
  Pause(const Pause&) = delete;

 private:
  TapeObject* tape_;
};

/// Goes back through a part of the program, behind what is recorded next and before what was
/// recorded last.
void add_part(TapeObject* tape, std::function<void(Loc)> go_back);

/// A tape of its own for a part of what another goes back through, by the same fields and all that
/// has been computed of them.
TapeObject* make_tape_within(TapeObject* tape, Loc loc);

/// Does the tape not record what this thread launches, as it is in a Pause?
bool is_paused(TapeObject* tape);

/// Throws Error unless the tape records.
void expect_recording(TapeObject* tape, Loc loc);

}  // namespace quern::detail

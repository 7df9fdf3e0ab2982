#include "autodiff/tapes/turnover.h"

namespace quern::autodiff {

void Turnover::wants(uint64_t bytes, Copied copied) {
  bytes_ = bytes;
  is_copied_at_once_ = copied == when_recorded;
  is_wanted_ = true;
  if (!is_written_) first_is_wanted_ = true;
}

void Turnover::writes() {
  kept_ += is_wanted_;
  is_wanted_ = false;
  is_written_ = true;
}

uint64_t Turnover::kept(uint64_t n) const {
  const uint64_t last = is_copied_at_once_ && is_wanted_;  // though nothing has overwritten it
  uint64_t versions = last;
  if (is_written_) {
    // The last version of a time is the first of the next, and wanted if either is.
    const uint64_t between = first_is_wanted_ || is_wanted_;
    versions += first_is_wanted_ + n * (kept_ - first_is_wanted_) + (n - 1) * between;
  }
  return n * copied_ + versions * bytes_;
}

}  // namespace quern::autodiff

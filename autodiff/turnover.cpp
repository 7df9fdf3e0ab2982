#include "autodiff/turnover.h"

namespace quern::autodiff {

void Turnover::wants(uint64_t memory, uint64_t bytes) {
  Versions& v = all_[memory];
  v.bytes = bytes;
  v.is_wanted = true;
  if (!v.is_written) v.first_is_wanted = true;
}

void Turnover::writes(uint64_t memory) {
  Versions& v = all_[memory];
  v.kept += v.is_wanted;
  v.is_wanted = false;
  v.is_written = true;
}

uint64_t Turnover::kept(uint64_t n) const {
  uint64_t bytes = n * copied_;
  for (const auto& [memory, v] : all_) {
    if (!v.is_written) continue;
    // The last version of a time is the first of the next, and wanted if either is.
    const uint64_t between = v.first_is_wanted || v.is_wanted;
    const uint64_t within = v.kept - v.first_is_wanted;
    bytes += v.bytes * (v.first_is_wanted + n * within + (n - 1) * between);
  }
  return bytes;
}

}  // namespace quern::autodiff

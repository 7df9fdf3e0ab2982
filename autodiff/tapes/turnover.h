#pragma once
#include <cstdint>

namespace quern::autodiff {

/// How versions of one memory come and go through launches that a tape records, and so what one of
/// the same launches many times over keeps: of each version that going back wants a copy, made when
/// it is recorded, or once it is overwritten. To be told of launches in their order, of each what it
/// wants before what it writes.
class Turnover {
 public:
  enum Copied { when_overwritten, when_recorded };
  /// The version that is there now.
  void wants(uint64_t bytes, Copied copied);
  /// A version of which each launch makes a copy, as the memory may be written unseen.
  void copies(uint64_t bytes) { copied_ += bytes; }
  void writes();
  /// Bytes behind all launches so far, n times over. n > 0.
  uint64_t kept(uint64_t n) const;

 private:
  uint64_t bytes_ = 0;   ///< of a version
  uint64_t copied_ = 0;  ///< bytes
  uint64_t kept_ = 0;    ///< wanted, and overwritten since
  bool is_wanted_ = false, is_written_ = false;
  bool first_is_wanted_ = false;  ///< the version before the first launch
  bool is_copied_at_once_ = false;
};

}  // namespace quern::autodiff

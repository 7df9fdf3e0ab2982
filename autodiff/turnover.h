#pragma once
#include <cstdint>
#include <unordered_map>

namespace quern::autodiff {

/// How versions of memory come and go through launches that a tape records, and so what one of the
/// same launches many times over keeps: of each version that going back wants, once it is
/// overwritten, a copy. To be told of launches in their order, of each what it wants before what it
/// writes.
class Turnover {
 public:
  /// The version that is there now. `memory`: its number.
  void wants(uint64_t memory, uint64_t bytes);
  /// A version of which a copy was made at once, as its memory may be written unseen.
  void copies(uint64_t bytes) { copied_ += bytes; }
  void writes(uint64_t memory);
  /// Bytes behind all launches so far, n times over. n > 0.
  uint64_t kept(uint64_t n) const;

 private:
  struct Versions {
    uint64_t bytes = 0;
    uint64_t kept = 0;  ///< wanted, and overwritten since
    bool is_wanted = false, is_written = false;
    bool first_is_wanted = false;  ///< the version before the first launch
  };
  std::unordered_map<uint64_t, Versions> all_;
  uint64_t copied_ = 0;
};

}  // namespace quern::autodiff

#pragma once
#include <memory>
#include <vector>

#include "quern/runtime/backend.h"

namespace quern::runtime {

class Stream;

/// Who used a piece of memory last: its last writer, and its readers since. A field's memory has one,
/// which goes with the memory: to the field that it is exchanged with, to the snapshot that shares it.
/// Guarded by the device's lock. As long as a device has one stream nothing is noted.
class Uses {
 public:
  struct Use {
    Stream* stream = nullptr;
    Ticket ticket;
  };

  /// Calls f(use) for what comes before a use of the memory that is made now.
  template <class F>
  void each_before(bool writes, F&& f) const {
    const Uses& all = root();
    for (const Use& w : all.writes_) f(w);
    if (!writes) return;
    for (const Use& r : all.reads_) f(r);
  }
  /// It is behind all of those.
  void note(const Use& use, bool writes);
  /// From now on the two are one: memory that is wrapped may overlap.
  void join(const std::shared_ptr<Uses>& other);
  /// No other memory has or had it.
  uint64_t number() const { return number_; }

 private:
  const Uses& root() const { return joined_ ? joined_->root() : *this; }
  Uses& root() { return joined_ ? joined_->root() : *this; }

  static uint64_t next_number();

  const uint64_t number_ = next_number();
  std::vector<Use> writes_;  ///< more than one where memory was joined
  std::vector<Use> reads_;   ///< the last of each stream
  std::shared_ptr<Uses> joined_;
};

}  // namespace quern::runtime

#pragma once
// Finds conflicting accesses between iterations of one task: rules 4 to 7 of docs/semantics.md.
#include <optional>
#include <string>
#include <unordered_map>

#include "quern/ir/ir.h"

namespace quern::interpreter {

/// One access of an iteration.
struct Touch {
  uint64_t iteration = 0;
  const ir::Inst* inst = nullptr;
  ir::Bits bits = 0;  ///< what a plain store stored
};

class Races {
 public:
  /// A new task: accesses before it conflict with nothing.
  void begin() { places_.clear(); }
  /// Each notes an access of the location at `address`; an earlier access that conflicts comes
  /// back.
  std::optional<Touch> read(ir::Bits address, Touch touch);
  std::optional<Touch> write(ir::Bits address, Touch touch);
  std::optional<Touch> atomic(ir::Bits address, Touch touch, bool writes);

 private:
  /// The first access of a kind, and the first of another iteration than that one's.
  struct Pair {
    Touch first, second;
    int count = 0;
    void note(Touch touch);
    const Touch* by_other(uint64_t iteration) const;
  };
  struct Place {
    Pair reads, writes, atomic_reads, atomic_writes;
    bool mixed = false;     ///< plain stores of different bits
    bool reported = false;  ///< one finding per location is enough
  };
  static std::optional<Touch> report(Place& place, const Touch* touch);

  std::unordered_map<ir::Bits, Place> places_;
};

}  // namespace quern::interpreter

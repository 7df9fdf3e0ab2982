#pragma once
// Loops that become the code of their rounds: what passes that write loops out share.
//
// Of a loop by steps of 1 with few rounds, and of those inside it, whose bounds may follow
// from its index.
#include <optional>

#include "quern/ir/builder.h"

namespace quern::ir {

constexpr int64_t most_rounds_written_out = 16;

/// What loops written out are: at most 4,000 instructions and, with those that become constants,
/// 12,000.
class WrittenCode {
 public:
  /// Adds what the loop is, written out. False, and nothing changes, where its rounds or those of a
  /// loop inside are not known or many, or the code is too much.
  bool add(const Inst* loop);

  size_t instructions = 0;  ///< that do not become constants
  size_t all = 0;
  bool fits() const;
};

/// How many the loop's own rounds are, where they are known and few.
std::optional<int64_t> known_rounds(const Inst* loop);

/// Replaces the loop, which is one that WrittenCode takes, by the code of its rounds.
void write_out(Kernel& kernel, Inst* loop);

}  // namespace quern::ir

#pragma once
// What a tape knows of the memory that launches use.
#include <span>
#include <unordered_map>
#include <vector>

#include "autodiff/tapes/turnover.h"
#include "quern/runtime/observer.h"

namespace quern::autodiff {

struct KnownMemory {
  uint64_t version = 0;  ///< behind the last launch that used it; 0: none has
  bool varies = false;   ///< with what the tape takes derivatives by
  Turnover turnover;
};

class Memories {
 public:
  using Fields = std::vector<std::shared_ptr<runtime::Storage>>;
  /// From here on only these vary, and what launches compute of them; else all that there is.
  void vary_by(const Fields& fields);
  /// The same varies as there.
  void vary_as(const Memories& other);

  /// Of a field that is no snapshot; it stays where it is.
  KnownMemory& of(const runtime::Storage& field) { return all_[field.memory_number()]; }
  /// As long as it is the same, so is what varies.
  uint64_t variation() const { return variation_; }
  /// Of each argument of a launch: has it adjoints, as a float that varies when it is read, or is
  /// written by what may? Snapshots of what there was before this have none, and of a launch that
  /// writes no floats nothing has. None where nothing varies. What it writes varies from then on;
  /// what did not before is added to `begun`: going back past the launch its adjoints are those of
  /// a constant.
  std::vector<bool> inputs(const runtime::LaunchEvent& event, Fields& begun);
  /// What it writes may vary, whatever it reads.
  void add_written(const runtime::LaunchEvent& event);
  /// Throws Error where an argument has another version than the last launch has left: what nobody
  /// recorded cannot be gone back through.
  void expect_known(const runtime::LaunchEvent& event);
  static void expect_known(const KnownMemory& memory, const runtime::LaunchEvent& event, size_t k) {
    if (memory.version != 0 && memory.version != event.arguments[k].storage->version())
      refuse(event, k);
  }
  /// What the launch has left.
  void note_written(const runtime::LaunchEvent& event);
  /// As Turnover::kept, of all.
  uint64_t kept(uint64_t n) const;

 private:
  [[noreturn]] static void refuse(const runtime::LaunchEvent& event, size_t k);
  bool varies(const runtime::Storage& field);
  void add(const runtime::Storage& field);
  std::unordered_map<uint64_t, KnownMemory> all_;
  bool all_vary_ = true;
  uint64_t began_ =
      runtime::Storage::last_version();  ///< what varies was written since, or is given
  uint64_t variation_ = 1;
};

}  // namespace quern::autodiff

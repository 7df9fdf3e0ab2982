#pragma once
// The argument block: what the host and the compiled tasks of a kernel agree on.
//
// One block per launch; it, or its address, is the only argument of a task besides the task
// builtins. All entries are 8 bytes wide and 8-byte aligned; narrower values sit in the low end.
#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

#include "quern/ir/ir.h"

namespace quern::ir::abi {

/// Counts the changes of what launches and code agree on: whatever this file says, and the words
/// that a driver passes to a task.
inline constexpr uint32_t version = 3;

/// What an argument block begins with.
struct Head {
  uint64_t frame = 0;          ///< address: frame cells, 8 bytes each
  uint64_t error = 0;          ///< address of an ErrorRecord
  uint64_t print = 0;          ///< address of a PrintRing
  uint64_t random_seed = 0;    ///< u32
  uint64_t launch_number = 0;  ///< u32, names the launch in reports
  uint64_t random_launch = 0;  ///< u32, launches since the seed was set
  uint64_t reserved[2] = {};
};
// Where its entries lie.
inline constexpr uint32_t frame_address = offsetof(Head, frame);
inline constexpr uint32_t error_address = offsetof(Head, error);
inline constexpr uint32_t print_address = offsetof(Head, print);
inline constexpr uint32_t random_seed = offsetof(Head, random_seed);
inline constexpr uint32_t launch_number = offsetof(Head, launch_number);
inline constexpr uint32_t random_launch = offsetof(Head, random_launch);
inline constexpr uint32_t head_bytes = sizeof(Head);

// Alias classes (imm of read, write, rmw). 0: may be any field; fields: Binding::alias_class; from
// here on the launch's own memory. Different classes never overlap, 0 and those of fields excepted.
inline constexpr uint64_t frame_class = 0x10000;
inline constexpr uint64_t error_class = 0x10001;
inline constexpr uint64_t print_class = 0x10002;
inline constexpr uint64_t first_buffer_class = 0x10003;  ///< + the number of the binding

/// Where a binding's entries lie: scalar: one entry, the value. Field, buffer: per component a base
/// address and `rank` byte strides (i64), then `rank` extents (i64); behind those of all that is
/// passed its `rank` first indices and `rank` origins (i64). Frame: none. Buffers come last, so that
/// declaring one moves nothing.
/// The base is where index 0 of the axes without blocks and position 0 of the others lead to, inside
/// the field's memory or not; strides are those of an index, or of whole blocks.
struct Place {
  uint32_t offset = 0;
  uint8_t rank = 0;
  uint32_t base(uint32_t component) const { return offset + component * 8 * (1 + rank); }
  uint32_t stride(uint32_t component, uint32_t axis) const {
    return base(component) + 8 + axis * 8;
  }
  uint32_t extents = 0;  ///< offset of the first extent
  uint32_t extent(uint32_t axis) const { return extents + axis * 8; }
  uint32_t firsts = 0;  ///< offset of the first index of axis 0
  uint32_t first(uint32_t axis) const { return firsts + axis * 8; }
  uint32_t origin(uint32_t axis) const { return firsts + (rank + axis) * 8; }
  uint32_t value() const { return offset; }
};

struct Layout {
  std::vector<Place> places;  ///< one per binding
  uint32_t bytes = 0;
};
Layout layout(const Kernel& kernel);
/// Bytes of the head and of what is passed: up to the first buffer's entries.
uint32_t passed_bytes(const Kernel& kernel, const Layout& layout);

/// How the components of a buffer's element lie side by side: each takes 4 or 8 bytes, and lies at a
/// multiple of them.
struct Packed {
  uint32_t bytes = 0;  ///< of an element
  std::vector<uint32_t> offsets;
};
Packed packed(std::span<const Component> components);

/// Adds a buffer, whose elements have a component for each type; its number as a binding. `name` is for messages: "the NAME of a loop".
uint32_t declare_buffer(Kernel& kernel, std::string name, std::span<const Type> components,
                        BufferSize size, Loc loc);

/// Fills in an argument block, the only place that knows how. Entries that nobody sets stay.
class Writer {
 public:
  /// `block` holds layout.bytes bytes.
  Writer(const Layout& layout, std::byte* block) : layout_(layout), block_(block) {}

  void head(const Head& head);
  void scalar(size_t binding, uint64_t bits) { put(layout_.places[binding].value(), bits); }
  /// A component of a field: its base address, and bytes between neighbours along each axis.
  void component(size_t binding, uint32_t component, uint64_t base,
                 std::span<const int64_t> strides);
  /// The address alone.
  void base(size_t binding, uint32_t component, uint64_t address) {
    put(layout_.places[binding].base(component), address);
  }
  /// Extents, and first indices and origins where not all are 0.
  void axes(size_t binding, std::span<const int64_t> extents, std::span<const int64_t> firsts = {},
            std::span<const int64_t> origins = {});
  /// A field of one component, or of components apart: row-major arrays of elements of `bytes`
  /// bytes from these addresses on.
  void arrays(size_t binding, std::span<const uint64_t> bases, std::span<const uint32_t> bytes,
              std::span<const int64_t> extents);

 private:
  void put(uint32_t offset, uint64_t value) { std::memcpy(block_ + offset, &value, 8); }
  const Layout& layout_;
  std::byte* block_;
};

/// Division by a number that is known at run time only, as a product (Granlund & Montgomery,
/// "Division by Invariant Integers Using Multiplication", PLDI 1994): for n < 2^31 and 1 ≤ d <
/// 2^31, n / d is the high half of 2n · (reciprocal(d) mod 2^32), shifted right by reciprocal(d) /
/// 2^32. 0 for other d.
constexpr uint64_t reciprocal(uint64_t d) {
  if (d == 0 || d >> 31) return 0;
  const uint64_t shift = uint64_t(std::bit_width(d - 1));
  return shift << 32 | ((uint64_t(1) << (31 + shift)) + d - 1) / d;
}
/// An element task launched with so many iterations wants code for a wide signature.
constexpr bool is_wide(uint64_t iterations) { return iterations >> 31; }
/// Of a launch of an element or combine task: numbers below 2^31 leave room in 32 bits for one
/// stride.
inline constexpr uint64_t max_threads = uint64_t(1) << 31;
/// Builtins `reciprocal` and `next_reciprocal` of an element task, whose domain has these extents
/// and whose innermost axis (Task::innermost) is this one;
/// 0 for those of a wide launch.
std::array<uint64_t, 2> reciprocals(uint32_t innermost, std::span<const uint64_t> extents);

/// Partial values are elements of a buffer, rows: one for each chunk, with a component for each
/// reduction of the task. A chunk of 1,024 iterations of a task with lanes leaves 32, one a lane.
inline constexpr uint64_t chunk_iterations = 1024, chunk_lanes = 32;
constexpr uint64_t lanes(uint64_t iterations) {
  return (iterations / chunk_iterations + (iterations % chunk_iterations != 0)) * chunk_lanes;
}
/// A launch of one of the two tasks of a combine step: rows [first_row, first_row + rows) become
/// `threads` rows behind them. Halving: 32 rows, a chunk's lanes, become its value. Gathering:
/// values become lanes of chunks of values.
struct Combination {
  bool halves;
  uint64_t threads, first_row, rows;
};
/// What makes one row of those that the lanes of a task over so many iterations leave in rows 0…;
/// in order. It is the last of `total_rows`. Empty and 0 where there are no iterations.
std::vector<Combination> combinations(uint64_t iterations);
uint64_t total_rows(uint64_t iterations);

/// How many copies a chunk has of a field of so many values, for the updates of its iterations in
/// turns: those of few are not to wait for each other.
inline constexpr uint64_t few_values = 1024, most_copies = 4;
constexpr uint64_t copies(uint64_t values) { return values <= few_values ? most_copies : 1; }

/// Values that a check or a line of print can report: the numbers of a 4 × 4 matrix.
inline constexpr uint32_t reported_values = 16;

/// The first failed check of a stream. A failing thread claims it by compare-and-swap of `state`
/// from 0 to the claim of its task, then fills in the rest. The claim lets the task's other chunks
/// go on, while every later task does nothing.
inline constexpr uint32_t claim_bit = 0x80000000u;
constexpr uint32_t claim(uint32_t launch, uint32_t task) {
  return (launch * 256 + task + 1) | claim_bit;
}
/// Launch numbers are below this.
inline constexpr uint32_t max_launch_number = 1 << 22;
/// Set by the host, at any time, to end what runs on a stoppable target. The first loop or task to
/// see it alone claims the record with stop_bit | claim, which no chunk takes for its own.
inline constexpr uint32_t stop_bit = 0x40000000u;
/// Set in the guard of a launch on a target that is told of failures, where one before may have
/// failed.
inline constexpr uint64_t asks_bit = 1;
/// In the number of a chunk, on CPUs: the launch has no other, so that iterations run one after
/// another, and atomics on fields may be plain updates.
inline constexpr uint64_t alone_bit = uint64_t(1) << 63;
struct ErrorRecord {
  uint32_t state = 0;  ///< 0, a claim, or stop_bit with or without one
  uint32_t site = 0;
  uint32_t task = 0;
  uint32_t count = 0;                     ///< values that follow
  int64_t iteration = 0;                  ///< linear index of the iteration
  uint64_t values[reported_values] = {};  ///< bits, types as Site::values says
  uint32_t launch = 0;                    ///< launch_number of the argument block: tells the kernel
  uint32_t reserved = 0;
};

/// Lines printed by a launch: `next` counts all, those past the capacity are lost but counted.
struct PrintEntry {
  uint32_t site = 0;
  uint32_t count = 0;
  uint64_t values[reported_values] = {};
  uint32_t launch = 0;  ///< launch_number of the argument block: tells the kernel
  uint32_t reserved = 0;
};
inline constexpr uint32_t print_capacity = 4096;
struct PrintRing {
  uint32_t next = 0;
  uint32_t reserved = 0;
  PrintEntry entries[print_capacity];
};

}  // namespace quern::ir::abi

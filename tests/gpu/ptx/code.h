#pragma once
// PTX ready to be executed: registers are numbers, labels are places, operations are functions.
#include <functional>
#include <memory>

#include "tests/gpu/ptx/module.h"

namespace quern::ptx {

class Warp;
struct Inst;

inline constexpr unsigned warp_size = 32;
/// One bit for each thread of a warp.
using Lanes = uint32_t;
inline constexpr Lanes all_lanes = ~0u;

/// Executes an instruction for these lanes.
using Handler = void (*)(Warp&, const Inst&, Lanes);

enum class Rounding : uint8_t { nearest, zero, down, up };

enum class Atomic : uint8_t {
  add,
  min,
  max,
  and_,
  or_,
  xor_,
  exchange,
  compare_and_swap,
  increment,
  decrement
};

/// What an instruction is counted as.
enum class Class : uint8_t {
  move,
  integer,
  floating,
  special,
  conversion,
  compare,
  load,
  store,
  atomic,
  shuffle,
  barrier,
  branch
};
inline constexpr size_t class_count = 12;

inline constexpr uint32_t no_join = ~0u;

struct Inst {
  enum Control : uint8_t { plain, branch, leave, barrier, warp_barrier, together };
  Handler run = nullptr;    ///< plain and together
  Control control = plain;  ///< together: waits for the lanes that its mask names
  Class counted = Class::move;
  Rounding rounding = Rounding::nearest;
  bool flush = false, saturate = false;
  bool read_only = false;  ///< ld.global.nc
  bool strong = false;     ///< atomic, volatile or with an order and scope
  bool guard_negated = false;
  Space space = Space::generic;
  uint8_t operation = 0;  ///< Atomic, or of a kind that the handler knows
  uint8_t count = 1;      ///< elements of a vector
  Type type, from_type;   ///< from_type: of a conversion
  int32_t guard = -1;     ///< a predicate
  /// Registers, or predicates where the operation says so; sources below 0 are constants (~k).
  int32_t to[4] = {-1, -1, -1, -1}, from[5] = {0, 0, 0, 0, 0};
  int64_t offset = 0;
  uint64_t address_mask = ~0ull;  ///< of the register with an address
  uint32_t target = 0;
  uint32_t join = no_join;  ///< of a branch: where the threads that it parts meet again (joins.h)
  unsigned line = 0;
  const std::string* text = nullptr;
};

/// Special registers are ordinary ones that each warp fills in.
enum class Special : uint8_t {
  tid_x,
  tid_y,
  tid_z,
  ntid_x,
  ntid_y,
  ntid_z,
  ctaid_x,
  ctaid_y,
  ctaid_z,
  nctaid_x,
  nctaid_y,
  nctaid_z,
  laneid
};

struct Code {
  std::string name;
  unsigned line = 0;
  std::vector<Inst> code;
  std::vector<std::string> texts;  ///< of the instructions
  uint32_t registers = 0, predicates = 0;
  std::vector<uint64_t> constants;  ///< each for every lane
  std::vector<std::pair<Special, uint32_t>> special;
  uint64_t local_bytes = 0, shared_bytes = 0, parameter_bytes = 0;
  std::vector<uint64_t> parameter_offsets, parameter_sizes;
  unsigned max_threads = 0;
};

/// A loaded module. Functions keep pointing into it.
struct Image {
  Module source;
  std::vector<uint8_t> constants;  ///< the memory of space const
  std::vector<std::unique_ptr<Code>> functions;
  const Code* find(std::string_view name) const;
};

/// Memory for a variable of space global, with this content.
using Place = std::function<uint64_t(const Variable&)>;

/// Throws Refused.
std::unique_ptr<Image> load(std::string_view text, const Place& place);

// ---- where generic addresses lie

/// Generic addresses of local, shared and constant memory begin here; all others are global.
inline constexpr uint64_t local_window = 1ull << 60, shared_window = 2ull << 60,
                          constant_window = 3ull << 60, window_bytes = 1ull << 32;

}  // namespace quern::ptx

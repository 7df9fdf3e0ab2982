#pragma once
// A compiled kernel with all that a launch needs to know, as plain bytes: whoever loads and launches
// it has no use for the IR, a pass or a compiler.
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "quern/ir/abi.h"
#include "quern/ir/lower.h"

namespace quern::runtime {

/// The domain of a task, which the host evaluates at each launch: straight-line pure operations on
/// constants, entries of the argument block and frame cells.
struct HostExpression {
  enum Source : uint8_t { value, constant, argument, cell };
  struct Step {
    Source source = value;
    ir::Op op{};  ///< of a value
    ir::Type operand{}, result{};
    uint32_t operands[3] = {};  ///< steps before this one
    uint8_t count = 0;
    uint64_t imm = 0;  ///< bits of a constant; bytes into the argument block or the frame
  };
  std::vector<Step> steps;
  std::vector<uint32_t> results;  ///< steps: of a domain lo0, hi0, lo1, hi1, …
  bool reads_frame = false;

  /// Values of the results, sign-extended where signed. `args` and `frame` are the host's views.
  void evaluate(const std::byte* args, const std::byte* frame, std::span<int64_t> out) const;
};

struct Image {
  /// What is passed for a binding of the recording, in its order.
  struct Parameter {
    bool is_field = false;
    uint8_t rank = 0;
    std::vector<ir::Component> components;
    std::string name;                        ///< for messages
    bool reads = false, writes = false;      ///< elements of a field
    uint32_t of = ir::Binding::not_derived;  ///< it is the companion of this parameter's field
    std::string companion;                   ///< of this name
    bool is_derived() const { return of != ir::Binding::not_derived; }
    struct Narrow {
      uint32_t axis = 0;
      Loc loc;
    };
    std::vector<Narrow> narrow = {};  ///< axes whose extents the kernel reads as 32-bit integers
  };
  /// What a launch, and a driver, must know of an ir::Task.
  struct Task {
    ir::Task::Kind kind = ir::Task::serial;
    ir::Task::Walk walk = ir::Task::unlowered;
    uint8_t rank = 0, innermost = 0;
    bool once = false, lanes = false;
    bool combines = false;  ///< the threads of a block, by `block_reduce`
    uint32_t block_size = 0;
    uint32_t reductions = 0;
    uint64_t grain = 0;
    uint32_t together = 1;
    uint32_t strip = 0;
    uint64_t operations = 0;  ///< of an iteration, estimated
    std::optional<HostExpression> domain;
    std::optional<HostExpression> bound;  ///< ir::Task::bound
    uint32_t merges = ir::no_binding;     ///< ir::Task::merges
    uint32_t follows = ir::no_task;       ///< ir::Task::follows: it has the chunks of that one
    bool is_followed = false;
    Loc loc;
  };

  /// A part of the tree that the field passed for a parameter is on (quern/ir/trees.h), which the code
  /// uses in its place.
  struct TreePart {
    uint32_t binding = 0;  ///< place in the layout
    uint32_t of = 0;       ///< the parameter
    std::string name;
    std::vector<ir::Component> components;
    bool writes = false;
  };

  /// Memory of the kernel's own that a launch makes, see ir::BufferSize.
  struct Buffer {
    uint32_t binding = 0;  ///< place in the layout
    uint32_t task = 0;     ///< before which it is made
    enum Size : uint8_t { rows, iterations, counted, copies } size = rows;
    HostExpression count;  ///< counted: of elements; copies: of the field's; one result
    uint64_t updates = 0;  ///< ir::BufferSize::updates
    std::vector<ir::Component> components;  ///< of an element: ir::abi::packed
    bool is_kept = false;                   ///< Outcome::kept
    std::string name;                       ///< for messages
    Loc loc;
  };

  std::string kernel;  ///< its name
  Loc loc;
  /// Names the code (see signature_text); equal texts, equal code of the same recording.
  std::string signature;
  // What it runs on.
  std::string backend, isa;  ///< of the Target
  bool one_thread = false;   ///< counts on chunks that run one after another
  // What it may be launched with.
  ir::Signature made_for;
  std::vector<Parameter> parameters;
  // How it is launched.
  ir::abi::Layout layout;
  bool takes_value = false;  ///< ir::takes_value
  uint32_t frame_bytes = 0;
  std::vector<ir::Type> results;  ///< result k lies in frame cell k
  std::vector<TreePart> tree_parts;
  std::vector<Buffer> buffers;
  std::vector<Task> tasks;
  std::vector<ir::Step> schedule;
  std::vector<ir::Site> sites;
  std::vector<std::byte> code;  ///< machine code or text of all tasks, as the back end has it

  /// For a file, or another process.
  std::vector<std::byte> bytes() const;
  /// The same image. Throws Error that begins with `source` and says what is wrong with bytes that
  /// are no image, of another version, cut, too many, or changed since. What it returns is
  /// consistent; whether the code does what it says is for those to answer who made it.
  static Image from(std::span<const std::byte> bytes, const std::string& source = "an image");
};

/// The function of task `task` in machine code.
std::string task_symbol(size_t task);

}  // namespace quern::runtime

#pragma once
// The pipeline: its source reads as the table of contents of the compiler.
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include "quern/ir/ir.h"

namespace quern::ir {

/// What lowering needs to know of a target.
struct TargetTraits {
  Task::Walk walk = Task::chunked;          ///< how a parallel loop without reductions is walked
  bool fma_exact[2] = {true, true};         ///< correctly rounded fma in f32, f64
  bool div_exact = true;                    ///< correctly rounded ÷ in f32
  bool sqrt_exact = true;                   ///< correctly rounded √ in f32
  bool float_atomic_add[2] = {true, true};  ///< else replaced by a compare-and-swap loop
  bool float_atomic_min_max[2] = {false, false};
  bool block_reductions = false;  ///< element tasks: `block_reduce`, and atomics on all types
  bool narrow_atomics = true;     ///< 8- and 16-bit read-modify-write; else on the 32-bit word
  /// The host writes to the error record while launches run: loops that may be long ask there
  /// whether their launch is to end.
  bool stoppable = false;
  /// Launches say whether one before them may have failed (Launch::asks): only then tasks ask the
  /// error record before they start.
  bool told_of_failures = false;
  /// Launches of an element task with fewer than 2^31 iterations start a thread for each.
  bool whole_grids = false;
  uint32_t strip = 0;  ///< iterations that strip-mined loops take together; 0: none are
  /// Functions may be called: what reports a failed check, and those of the math library in tasks
  /// that hold more than `most_copied` operations of them. Else they are copied.
  bool calls = false;
  uint32_t most_copied = 1000;
  bool half_conversions = true;  ///< f16 with its conversions from and to f32; else kept as u16
  uint32_t if_nesting = 0, loop_nesting = 0;  ///< how many may stand inside each other; 0: any
  /// Argument blocks of so many bytes at most are parameters of the tasks, in kernels of so many
  /// tasks at most. Others lie in memory, once for all tasks: there a batch that repeats stays the
  /// same.
  uint32_t value_bytes = 0, value_tasks = 0;
  /// Library functions that the target has itself, within their bounds (default mode only).
  std::vector<std::pair<Op, Type>> native_math = {};
};

/// Do the tasks of a lowered kernel take the argument block itself, not its address?
bool takes_value(const Kernel& kernel, const TargetTraits& target);

/// The facts of a launch that code is specialised for.
struct Signature {
  struct Field {
    bool contiguous = true;
    uint32_t alias_class = 0;
    bool zero_based = true;
    Placement layout = {};
    uint32_t alignment = 1;
    std::vector<Type> encodings = {};
    uint32_t tree = 0;  ///< of a field on a tree: the first field on the same one
    bool operator==(const Field&) const = default;
  };
  std::vector<Field> fields;  ///< one per binding (scalars: defaults)
  Modes modes;
  bool wide = false;  ///< element tasks may be launched with 2^31 iterations or more
  bool operator==(const Signature&) const = default;
};

/// The part of a signature that optimising depends on: what is made of it serves every layout,
/// target and number of iterations.
struct Premises {
  Modes modes;
  std::vector<uint32_t> alias_classes;  ///< one per binding, Signature::Field's
  bool operator==(const Premises&) const = default;
};
Premises premises_of(const Signature& signature);

/// Called after each pass with its name; the fuzzer runs the interpreter here.
using PassHook = std::function<void(std::string_view pass, const Kernel&)>;

/// Called after each pass of every pipeline of the process, before its hook; null: nothing is.
/// Builds for debugging start with expect_valid; tests and fuzzing set it.
using PassCheck = void (*)(const Kernel&, std::string_view pass);
void set_pass_check(PassCheck check);

/// From what was recorded to `structured`.
void finish_recording(Kernel& kernel, const PassHook& hook = {});
/// Tells the kernel its premises, for `optimise` to use.
void assume(Kernel& kernel, const Premises& premises);
/// Optimises independently of a target; the kernel stays `structured`, and functions with a
/// derivative of their own stay calls.
void optimise(Kernel& kernel, const PassHook& hook = {});
/// Splits what is optimised into tasks, and optimises these.
void split(Kernel& kernel, const PassHook& hook = {});
/// Splits into tasks and nothing more, for a target that runs level `split` as it was written.
void split_as_written(Kernel& kernel, const PassHook& hook = {});
/// The first pass of `lower` alone, for such a target.
void bind(Kernel& kernel, const Signature& signature);
/// The pass of `lower` that replaces accesses to fields on trees, for such a target.
void expand_trees(Kernel& kernel);
/// Sites for the places where such a target ends a launch, if it is stoppable: loops and tasks.
void add_stop_sites(Kernel& kernel);
/// Binds to a signature and lowers for a target.
void lower(Kernel& kernel, const Signature& signature, const TargetTraits& target,
           const PassHook& hook = {});

/// Throws Error at the line of the first operation whose result depends on the order of iterations
/// and that strict mode therefore refuses: a float atomic add or mul that is not provably one
/// iteration's own. `kernel` is optimised and split; it is not changed.
void expect_ordered(const Kernel& kernel, const Signature& signature);

}  // namespace quern::ir

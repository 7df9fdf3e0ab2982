#pragma once
// One recording: the kernel or function being built, and what has to be known to judge the next
// instruction. Recordings of a thread form a stack; the interface of quern/values/record.h works on
// the top.
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "dsl/objects.h"
#include "quern/ir/builder.h"
#include "quern/values/record.h"

namespace quern::detail {

/// A block that is open.
struct Frame {
  Block kind = Block::loop;
  ir::Inst* inst = nullptr;  ///< the if, while or outermost loop
  Loc loc;
  bool parallel = false;
  bool condition = false;                       ///< while: the condition is being recorded
  int loops = 1;                                ///< instructions that a Break() leaves
  ir::Inst* exit = nullptr;                     ///< the first exit in it: what follows never runs
  int exceptions = std::uncaught_exceptions();  ///< in flight when it began
};

/// What a parallel loop does with a variable from outside it.
struct Outer {
  std::optional<ir::AtomicOp> reduced;
  Loc reduced_at, read_at;
  bool read = false;
};

/// A function with a derivative of its own that is being recorded, and what goes on behind it.
struct OpenFunction {
  ir::Function function;
  ir::Region* around;
  std::vector<Frame> frames;
  bool in_function, reassociates;
};

/// An effect, and the id that was recorded with one in its place.
struct Effect {
  uint32_t id;
  ir::Inst* inst;
};
/// What a value was made of.
struct Made {
  std::vector<ir::Inst*> effects;  ///< that reached it through temporaries
  Loc read;  ///< where one reached it through a name: of those in a file the uppermost
};

struct Recording {
  Recording(const void* function_handle, bool is_checked, std::span<const ir::Type> results,
            Loc at);

  // ---- values
  /// The id of a value made of the parts.
  Id add(ir::Value* v, std::initializer_list<Id> parts = {});
  /// The value of `id` is made of that of `part`, too.
  void derive(Id id, Id part);
  /// The value of `id`; poisons and yields null where it may not be used here.
  ir::Value* value(Id id, Loc loc);
  /// Poisons where something made by another recording is used.
  bool expect_own(uint32_t maker, Loc made, Loc use);
  /// Places what is recorded next at `loc`, or where the last one was.
  ir::Builder& at(Loc loc);
  /// g++ says of a kernel the line where its lambda ends: the first line recorded is a better one
  /// for its beginning and its parameters.
  void begins_by(Loc first);

  /// The operands of one operation, whatever the order in which they were evaluated (record_order).
  void in_order(std::span<const Evaluated> operands, Loc loc);
  /// What those of them that are temporaries are made of.
  Made joined(std::span<const Evaluated> operands) const;
  /// Does the order of such instructions show: random, atomics, calls of functions with either?
  bool is_effect(const ir::Inst* inst) const;

  /// Of two values of one type, reassociable where it may be.
  ir::Value* arithmetic(ir::Op op, ir::Value* x, ir::Value* y);

  // ---- errors
  void fail(Loc loc, const std::string& message);
  bool failed() const { return error.has_value(); }

  // ---- structure
  /// Ends the current region: after its first exit, else by a yield.
  void close_region();
  /// Records an exit from the current region.
  void leave(ir::Op op, std::span<ir::Value* const> values, uint64_t imm, Loc loc);
  bool in_parallel() const;
  /// May a Return() stand here?
  bool can_return() const;
  /// Does the slot belong to code outside the parallel loop being recorded?
  bool crosses(const ir::Value* slot) const;
  Outer& outer(const ir::Value* slot) { return outer_variables[slot]; }

  // ---- bindings, sites, callees
  /// Binding of a field: a parameter's, or that of a capture (numbered at first use).
  std::optional<uint32_t> binding(FieldObject* field, Loc loc);
  /// A field that goes with that of a parameter under a name: each launch looks it up
  /// (ir::Binding::of).
  FieldObject* companion(FieldObject* parameter, const char* name, FieldType type, Loc loc);
  uint32_t add_site(ir::Site site);
  uint32_t import(FuncObject* function, Loc loc);
  uint32_t add_function(ir::Function f, bool has_effect, FuncObject* from = nullptr);
  /// The number of the function with this rule for its derivative, such arguments and so many
  /// results.
  std::optional<uint32_t> function_with(const std::string& rule,
                                        std::span<const ir::Type> arguments, size_t results) const;

  std::string spoken() const { return function ? "function" : "kernel"; }

  const void* handle;  ///< of the Func being recorded; null for a kernel
  bool function, checked;
  uint32_t number;  ///< of this recording, unique in the process
  Loc loc, last;
  bool placed_first = false;  ///< has anything but parameters been placed?
  Loc placed;                 ///< where everything recorded now is placed (Placed), if anywhere
  Made placed_of;             ///< what it is made of
  bool reassociates = false;  ///< float sums and products recorded now
  Loc reassociated;           ///< where that was first allowed, if anywhere
  std::unique_ptr<ir::Kernel> kernel;
  ir::Builder b;
  std::vector<ir::Value*> values;
  std::vector<Effect> effects;                 ///< in program order; their ids ascend
  std::unordered_map<uint32_t, Made> origins;  ///< by the ids of values that effects reach
  std::vector<Frame> frames;                   ///< the first is the body itself
  std::optional<Error> error;
  std::unordered_map<const ir::Value*, Outer> outer_variables;  ///< of the parallel loop open
  std::unordered_map<FieldObject*, uint32_t> captured_bindings;
  std::vector<Ref<FieldObject>> captured;
  std::unordered_map<FuncObject*, uint32_t> callees;
  std::vector<bool> callee_effects;
  std::vector<Ref<FuncObject>>
      functions;  ///< in the order of kernel->callees; none: of the library
  std::vector<OpenFunction> open_functions;
};

/// The recording of this thread; throws Error with `loc` where there is none.
Recording& recording(Loc loc);
/// The same, or null.
Recording* active_recording();
/// Throws Error with `loc` while a kernel or function is recorded: what the host does there, it
/// does once. `access` says what it does, as in "host access to a field".
void expect_no_recording(const char* access, Loc loc);
void push_recording(std::unique_ptr<Recording> r);
std::unique_ptr<Recording> pop_recording();
/// Where a recording of any thread began.
Loc recording_loc(uint32_t number);

/// The recordings of this thread from that of the Func at `handle` on; empty where it is not being
/// recorded.
std::vector<const Recording*> recordings_since(const void* handle);

std::string place(Loc loc);
/// For errors about exits: "; here " and the exits that work where recording stands, and what there
/// is for code of the host's.
std::string exits_here(const Recording& r);

constexpr ir::Type type_of_scalar(Scalar s) { return ir::Type(uint8_t(s)); }
inline ir::Type scalar_of(const FieldType& type, int component) {
  return type_of_scalar(type.element.scalars[component]);
}
inline std::vector<ir::Storage> stored(const FieldType& type) {
  std::vector<ir::Storage> out;
  for (int k = 0; k < type.element.count; k++) {
    const ir::Type scalar = scalar_of(type, k);
    out.push_back({scalar, ir::storage_type(scalar)});
  }
  return out;
}

}  // namespace quern::detail

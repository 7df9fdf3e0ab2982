#pragma once
// The intermediate representation: scalar SSA values with use lists inside structured regions.
//
// A Kernel is first a recorded `body`: serial statements and `parallel` loops over numbered,
// layout-free bindings. `split_tasks` turns it into tasks, which run one after another as the
// schedule says, and a frame that holds what crosses them. Access lowering then replaces bindings
// by addresses computed from the argument block (quern/ir/abi.h). Level says how far a kernel is.
//
// All nodes live in the kernel's arena and die with it.
#include <cstdint>
#include <memory>
#include <memory_resource>
#include <span>
#include <string>
#include <vector>

#include "quern/error.h"
#include "quern/ir/ops.h"
#include "quern/ir/placement.h"
#include "quern/ir/type.h"

namespace quern::ir {

struct Inst;
struct Region;
struct Value;

struct Use {
  Value* value = nullptr;
  Inst* user = nullptr;
  Use *prev = nullptr, *next = nullptr;  // in value's list

  void set(Value* v);  ///< becomes a use of `v`; null: of nothing
};

/// A result of an instruction, or an argument of a region.
struct Value {
  Type type = Type::none;
  bool mark = false;         ///< of the pass that runs, which clears it first
  uint32_t index = 0;        ///< among its instruction's results or its region's arguments
  Inst* inst = nullptr;      ///< defining instruction, or null
  Region* region = nullptr;  ///< owning region of an argument, or null
  Use* uses = nullptr;

  bool used() const { return uses != nullptr; }
  void replace_with(Value* other);  ///< every use of this becomes a use of `other`
};

inline constexpr uint32_t no_site = ~0u;
inline constexpr uint32_t no_binding = ~0u;

/// What a storage operation names: a component of a binding, or an axis of it.
struct Part {
  uint32_t binding = 0, component = 0;
  auto operator<=>(const Part&) const = default;
};

/// What is said of a parallel loop, and of the task that becomes of it.
struct LoopOptions {
  uint32_t ordinal = 0;        ///< names its random numbers: parallel loops in program order
  uint32_t over = no_binding;  ///< the field whose indices it walks, in place of bounds: until bind
  uint16_t block = 0;  ///< iterations kept together (a GPU's block, a multiple of it in a CPU's
                       ///< chunk); 0: any
  bool deterministic = false;
  bool operator==(const LoopOptions&) const = default;
};

/// Its row of ops.def says which attributes it has and what they mean.
struct Inst {
  Op op{};
  uint8_t kind = 0;        ///< KindUse
  Type elem = Type::none;  ///< scalar that is moved or kept
  bool mark = false;       ///< of the pass that runs, which clears it first
  uint32_t site = no_site;
  Loc loc;
  uint64_t imm = 0;     ///< NameUse
  Part part;            ///< NameUse: what a storage operation names
  LoopOptions options;  ///< of a parallel loop
  std::span<Use> operands;
  std::span<Value> results;
  std::span<Region*> regions;
  Inst *prev = nullptr, *next = nullptr;
  Region* parent = nullptr;

  Value* operand(size_t k) const { return operands[k].value; }
  size_t operand_count() const { return operands.size(); }
  void set_operand(size_t k, Value* v);
  Value* result(size_t k = 0) const { return &results[k]; }
  Type type() const { return results.empty() ? Type::none : results[0].type; }
  Region* region(size_t k) const { return regions[k]; }

  uint32_t binding() const { return part.binding; }
  uint32_t component() const { return part.component; }
  uint32_t axis() const { return part.component; }
  AtomicOp atomic() const { return AtomicOp(kind); }
  Builtin builtin() const { return Builtin(kind); }

  bool is(Op o) const { return op == o; }
  bool used() const;  ///< any result used
  void unlink();      ///< out of its region, operands kept
  void erase();       ///< unlinked, uses dropped, regions erased; results must be unused
};

/// A straight list of instructions that ends in one with the `ends` flag.
struct Region {
  std::span<Value> args;
  Inst *first = nullptr, *last = nullptr;
  Inst* parent = nullptr;  ///< null for a root (kernel body, function, task)

  Value* arg(size_t k) const { return &args[k]; }
  bool empty() const { return first == nullptr; }
  Inst* terminator() const { return last; }
  void insert(Inst* inst, Inst* before);  ///< which is in no region; null: at the end

  struct Iterator {
    Inst *at, *following;
    Inst* operator*() const { return at; }
    void operator++() {
      at = following;
      following = at ? at->next : nullptr;
    }
    bool operator!=(const Iterator& o) const { return at != o.at; }
  };
  /// The current instruction may be erased or moved while iterating.
  Iterator begin() const { return {first, first ? first->next : nullptr}; }
  Iterator end() const { return {nullptr, nullptr}; }
};

/// Does `outer` contain `inner` (or is it the same region)?
bool encloses(const Region* outer, const Region* inner);

/// The axes of fields whose extents the instruction takes for numbers of 32 bits or less: a launch
/// refuses fields whose indices do not fit.
std::vector<Part> narrow_axes(const Inst* inst);

// ---- a kernel and its parts
// -----------------------------------------------------------------------

/// A scalar of an element, as kernels see it.
struct Component {
  Type type = Type::none;
  bool exact = true;  ///< memory keeps every value as it is, however it is encoded
  bool operator==(const Component&) const = default;
};

/// How many elements a buffer has, and when it is made: before each launch of a task, whose `rows`
/// of partial values it holds (abi::total_rows, chunks), or one element for each of whose
/// iterations; or as many as a constant, or an integer cell of the frame, says; or abi::copies of the
/// elements of a field for each of the task's chunks, or none where that does not pay.
struct BufferSize {
  enum Rule : uint8_t { rows, iterations, constant, cell, copies };
  Rule rule = rows;
  uint32_t task = 0;    ///< before which it is made; what it held is lost then
  uint64_t number = 0;  ///< constant: elements; cell, copies: which cell or binding
  /// copies: how often so many iterations update a component, estimated
  uint64_t updates = 0;
  static constexpr uint64_t updating = 64;
  bool operator==(const BufferSize&) const = default;
  bool takes_number() const { return rule == constant || rule == cell || rule == copies; }
};

struct Binding {
  /// buffer: memory of the kernel's own, of rank 1, which nobody passes. Nobody clears it.
  enum Kind : uint8_t { scalar, field, frame, buffer };
  Kind kind = scalar;
  bool has_elements() const { return kind == field || kind == buffer; }
  uint8_t rank = 0;
  std::vector<Component> components;
  std::string name;  ///< for messages: "parameter 1" or the field's name
  Loc loc;
  BufferSize size;  ///< of a buffer
  /// Of a buffer that outlives its launch: whoever launched gets it (runtime::Outcome::kept), and it
  /// is made anew each time.
  bool is_kept = false;
  /// Of a field that is the companion of another's (runtime::Storage::companion), which a launch
  /// looks up: the other's binding, and the name. Nobody passes it.
  uint32_t of = not_derived;
  std::string companion;
  static constexpr uint32_t not_derived = ~0u;
  bool is_derived() const { return of != not_derived; }
  // filled in at bind, see Signature; of a buffer by abi::declare_buffer
  bool contiguous = true;    ///< neighbours along Placement::fast are the next elements in memory
  uint32_t alias_class = 0;  ///< bindings of different classes never overlap
  uint32_t tree = 0;         ///< of a field on a tree: fields of one tree have the same number
  bool is_written = false;   ///< of a tree's part: the code writes it (expand_trees)
  bool zero_based = true;    ///< the first index of every axis is 0
  Placement layout;
  std::vector<Type> encodings;  ///< what memory holds of each component; none: storage_type of it
  /// Where components lie side by side: the address of each element's first one, and the bytes from
  /// each element to the next on each axis, are multiples of this (16 at most).
  uint32_t alignment = 1;

  Type encoding(uint32_t component) const {
    return encodings.empty() ? storage_type(components[component].type) : encodings[component];
  }
};

/// A place that can fail or report: what the host needs to make the message. Not part of the code.
struct Site {
  /// stop: where a launch ends that the host has asked to end; without text
  enum Kind : uint8_t { check, bounds, division, conversion, print, stop, other };
  Kind kind = other;
  Loc loc;
  std::string text;          ///< message or format
  std::vector<Type> values;  ///< types of the values that come with it
};

/// A kernel-level variable that a parallel loop reduces into: frame cell, operator, type.
struct Reduction {
  uint32_t cell = 0;
  AtomicOp op = AtomicOp::add;
  Type type = Type::none;
};

/// One launch. Before loop lowering `body` takes the iteration's index values as arguments and
/// `domain` yields lo0, hi0, lo1, hi1, … from constants, params, extents and frame cells (the host
/// evaluates it); until bind it may name a field in its place (LoopOptions::over). After loop
/// lowering `body` takes no arguments and reads `builtin`s.
inline constexpr uint32_t no_task = ~0u;

/// That a chunked task runs in the chunks of an earlier one, over the same domain, which runs of it what
/// depends on its own chunk alone (follow_tasks).
struct Following {
  /// By axis: how many iterations before its own place, and after it, one may depend on at most.
  struct Reach {
    uint32_t before = 0, after = 0;
    bool operator==(const Reach&) const = default;
  };
  uint32_t task = no_task;
  std::vector<Reach> reach;  ///< of all axes but the last
};

struct Task {
  /// combining ("combine" in text): partial values of a reduction become fewer, a thread for each
  /// that is made
  enum Kind : uint8_t { serial, range, combining };
  enum Walk : uint8_t { unlowered, chunked, element };
  Kind kind = serial;
  Walk walk = unlowered;
  uint8_t rank = 0;
  uint8_t innermost = 0;  ///< the axis walked fastest (lowered; the others stay in their order)
  /// Element walk in the order of a deterministic reduction: lane l of the 32 of a chunk of 1,024
  /// iterations takes the iterations l, l + 32, … of it, and has a row of partial values of its
  /// own.
  bool lanes = false;
  /// Element walk, lowered: a thread takes one iteration at most, its own, and a launch starts one
  /// for each.
  bool once = false;
  LoopOptions options = {.ordinal = ~0u};  ///< of its parallel loop
  uint64_t grain = 0;  ///< iterations per chunk; 0: the runtime chooses (chunked)
  /// Where iterations are lanes of vectors: so many next to each other are worth a strip of them
  /// (chunked). Fewer go one by one, but through vectors where it is `lanes_together` or less.
  uint32_t together = 1;
  static constexpr uint32_t lanes_together = 8;
  /// Where each strip ends by combining what its iterations give to locations that they share: so
  /// many are a whole one. 0: strips of any length are as good (chunked).
  uint32_t strip = 0;
  Region* domain = nullptr;  ///< null for a serial task, and where `options.over` is in its place
  /// Element walk: indices that contain the domain's, for a host that does not know those. The code
  /// then finds its extents itself, and a launch says the bound as its end. Null: the host knows.
  Region* bound = nullptr;
  Region* body = nullptr;
  std::vector<Reduction> reductions;
  /// A buffer of copies that it merges into their field: it runs where there are any, and its
  /// iterations are in row-major order.
  uint32_t merges = no_binding;
  Following follows;
  Loc loc;
};

/// One node of the schedule tree.
struct Step {
  /// refresh: the lists of a tree's cells are made anew, where they are not what the tree holds;
  /// reserve: a tree gets room for the cells that `task` takes, which runs behind it or, where the
  /// step's body launches it, in it; collect: what was deactivated on a tree ends
  enum Kind : uint8_t { launch, if_, repeat, combining, refresh, reserve, collect };
  Kind kind = launch;
  uint32_t task = 0;     ///< launch, reserve
  uint32_t cell = 0;     ///< if_, repeat: b1 frame cell read before the body (each round)
  uint32_t binding = 0;  ///< refresh, reserve, collect: a field on the tree
  uint32_t claims = 0;   ///< reserve: elements that an iteration makes active at most; 0: not known
  /// if_: guarded; repeat: `condition` first, then cell is read, then body; combining: launches of
  /// the task that gathers values and the one that halves lanes, see abi::combinations; reserve:
  /// launches, until there is room, of what makes the same elements active and nothing else, or of
  /// the task itself, which may run again; empty: there is no such thing
  std::vector<Step> body;
  std::vector<Step> condition;
};

inline constexpr uint32_t no_function = ~0u;

/// A function with an IR body: the math library, outlined functions of the user, and functions of
/// the language's library whose derivative is better given by a rule than found in their code.
struct Function {
  std::string name;
  std::vector<Type> results;
  /// Names that rule; empty: there is none. With a rule the body depends on the arguments alone, has
  /// no effect and cannot fail: `apply` calls it, and is pure.
  std::string derivative;
  /// The rule itself, as functions of the same kernel; no_function: what differentiates the kernel
  /// knows it by its name, or there is none in that direction. Both take the arguments and the
  /// results; then `pushforward` takes tangents of the float arguments and gives those of the float
  /// results, and `pullback` takes adjoints of the float results and gives those of the float
  /// arguments, of derivative_type. One that gives nothing stands for zeros.
  uint32_t pushforward = no_function, pullback = no_function;
  Region* body =
      nullptr;  ///< arguments are the parameters; ends in `return_` (recorded) or `yield`
  Loc loc;
};

/// What such a function takes and gives.
struct RuleTypes {
  std::vector<Type> arguments, results;
};
RuleTypes pushforward_types(const Function& f);
RuleTypes pullback_types(const Function& f);

/// What a kernel's meaning depends on besides its code; part of its signature.
struct Modes {
  bool checked = false;
  bool strict = false;
  bool contract = true;  ///< a*b+c may become an fma (never in strict)
  bool operator==(const Modes&) const = default;
};

enum class Level : uint8_t {
  recorded,    ///< break_, continue_, return_ allowed
  structured,  ///< exits are structured; the interpreter and the text tests start here
  split,       ///< tasks and schedule; body is null
  opened,      ///< tasks hold their loops; addresses come in beside bindings
  lowered,     ///< loops walk chunks or threads; addresses instead of bindings
};

/// Node storage: everything a kernel owns is released at once.
class Arena {
 public:
  template <class T>
  T* make() {
    return new (pool_.allocate(sizeof(T), alignof(T))) T();
  }
  template <class T>
  std::span<T> span(size_t n) {
    if (n == 0) return {};
    T* p = static_cast<T*>(pool_.allocate(n * sizeof(T), alignof(T)));
    for (size_t i = 0; i < n; i++) new (p + i) T();
    return {p, n};
  }

 private:
  std::pmr::monotonic_buffer_resource pool_;
};

struct Kernel {
  std::string name = "kernel";
  Loc loc;
  Level level = Level::recorded;
  Modes modes;
  std::vector<Type> results;  ///< result k lives in frame cell k after split_tasks
  std::vector<Binding> bindings;
  Region* body = nullptr;
  std::vector<Task> tasks;
  std::vector<Step> schedule;
  std::vector<Type> frame;  ///< type of each frame cell; cell k lies at byte 8·k
  std::vector<Function> callees;
  std::vector<Site> sites;
  std::unique_ptr<Arena> arena = std::make_unique<Arena>();

  uint32_t frame_binding() const;  ///< index of the frame binding, made by split_tasks
  uint32_t frame_bytes() const { return uint32_t(frame.size() * 8); }
};

/// A copy that shares nothing.
std::unique_ptr<Kernel> clone(const Kernel& kernel);
/// Every root region: body, functions, task domains and bodies.
std::vector<Region*> roots(const Kernel& kernel);
/// Calls `visit(Inst*)` for each instruction below `region`, outer before inner; the visited one
/// may be erased.
template <class F>
void walk(Region* region, F&& visit);
template <class F>
void walk(Kernel& kernel, F&& visit);

template <class F>
void walk(Region* region, F&& visit) {
  for (Inst* inst : *region) {
    auto regions = inst->regions;
    visit(inst);
    for (Region* r : regions)
      if (r) walk(r, visit);
  }
}
template <class F>
void walk(Kernel& kernel, F&& visit) {
  for (Region* r : roots(kernel)) walk(r, visit);
}

}  // namespace quern::ir

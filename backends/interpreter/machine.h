#pragma once
#include <atomic>
#include <optional>

#include "backends/interpreter/code.h"
#include "backends/interpreter/interpreter.h"
#include "backends/interpreter/races.h"
#include "backends/interpreter/reductions.h"

namespace quern::interpreter {

/// Thrown when Options::max_steps are used up.
struct OutOfSteps {};
/// Thrown by a body that is to stop because a check has failed: no further task starts.
struct Stopped {};

/// How a region was left: by its end, or by an exit of a recorded kernel.
struct Flow {
  enum Kind : uint8_t { yield, leave, next, done } kind = yield;
  uint64_t loops = 0;
};

/// The part of a task's linear domain that one run of its body walks.
struct Part {
  ir::Task::Walk walk = ir::Task::unlowered;  ///< unlowered: all of it
  uint64_t chunk = 0, begin = 0, end = 0, thread = 0, threads = 1;
  std::array<uint64_t, 2> words = {};
};

/// A box of indices, walked in row-major order.
struct Domain {
  std::vector<ir::Type> types;
  std::vector<int64_t> first;
  std::vector<uint64_t> extent;
  uint64_t total = 1;
};

/// Executes regions: the state of one launch.
class Machine {
 public:
  Machine(const Code& code, const Options& options, Report* report, std::byte* args);

  /// A kernel's body; its results come back.
  std::vector<ir::Bits> body();
  Domain domain(const Block& block);
  /// The body of a task, over `part` of the domain (an empty one for serial code).
  void task(uint32_t number, const Block& block, const Domain& domain, const Part& part);
  /// A new launch of a task: what was accessed before conflicts with nothing.
  void begin_task() { races_.begin(); }
  /// Gives the cells of the task's reductions what its iterations contributed.
  void finish_reductions(const ir::Task& task, uint64_t iterations);
  /// Has a check failed, or the host asked the launch to end?
  bool failed() const;
  ir::Bits cell_address(uint64_t cell) const;
  uint64_t steps_left() const { return steps_left_; }
  uint32_t serial_calls = 0;  ///< of `random` in serial code

 private:
  Flow run(const Block& block);
  /// An instruction of another kind than the element-wise ones.
  Flow step(const Step& s);
  ir::Bits value(uint32_t number) const { return values_[number]; }
  ir::Bits operand(const Step& s, size_t k) const { return values_[s.operands[k]]; }
  void set(const Step& s, ir::Bits bits) { values_[s.result] = bits; }

  // structure
  void evaluate(const Step& s);
  Flow branch(const Step& s);
  Flow loop(const Step& s);
  Flow while_loop(const Step& s);
  void call(const Step& s);
  void parallel(const Step& s);
  void iterate(const Block& block, const Domain& domain, const Part& part, uint32_t ordinal);
  void one(const Block& block, const Domain& domain, uint64_t linear);
  void reduce(const Step& s);
  Domain domain_of(std::span<const uint32_t> bounds, std::span<const ir::Type> types) const;
  /// Copies values all at once: a yield may permute what it replaces.
  void assign(uint32_t first, uint32_t count, const uint32_t* from);

  // memory
  struct Location {
    ir::Bits address = 0;
    ir::Type value = ir::Type::none, storage = ir::Type::none;
  };
  bool locate(const Step& s, size_t indices, Location& to);
  bool locate_cell(const Step& s, size_t indices, Location& to);
  ir::Bits* element(const Step& s, bool indexed);
  void load(const Step& s);
  void store(const Step& s);
  void atomic(const Step& s);
  void rmw(const Step& s);
  static ir::Bits update(ir::AtomicOp op, ir::Type type, ir::Bits address, const ir::Bits (&in)[2]);
  ir::Bits arg(const Step& s) const;
  ir::Bits builtin(const Step& s) const;

  // effects
  std::atomic_ref<uint32_t> state() const;
  /// Has the host asked the launch to end? It ends here, if it does nowhere else.
  bool stops(Loc loc) const;
  bool may_start(const ir::Task& task) const;
  void check(const Step& s);
  void print(const Step& s);
  ir::Bits random();
  void fail(const Step& s, std::span<const ir::Bits> values);
  bool claims(const Step& s) const;
  void out_of_range(const Step& s, std::span<const ir::Bits> values, const std::string& what);
  void check_arithmetic(const Step& s, std::span<const ir::Bits> args, ir::Bits out);
  void find(Finding::Kind kind, const Step& s, const std::string& message, quern::Loc other = {});
  void race(const Step& s, std::optional<Touch> before);
  bool watches_races() const { return options_.check_races && in_iteration_; }

  const Code& code_;
  const ir::Kernel& kernel_;
  const Options& options_;
  Report* report_;
  std::byte* args_;
  std::vector<ir::Bits> values_, slots_, copied_, returned_;
  uint64_t steps_left_ = 0;
  bool limited_ = false, checks_values_ = false, checked_ = false;
  bool polls_ = false;  ///< lowered loops ask for the error record themselves

  // where we are
  uint32_t task_ = 0;
  uint32_t ordinal_ = ~0u;
  uint64_t iteration_ = 0;
  bool in_iteration_ = false;
  uint32_t calls_ = 0;  ///< of `random` in this iteration
  Part part_;

  struct Reducing {
    uint64_t key;  ///< place of the slot, or index of the reduction
    Contributions contributions;
  };
  std::vector<Reducing> reducing_;
  Races races_;
};

}  // namespace quern::interpreter

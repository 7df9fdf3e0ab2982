#pragma once
#include "backends/interpreter/launch.h"
#include "backends/interpreter/random.h"

namespace quern::interpreter {

/// The part of a task's linear domain that one run of its body walks.
struct Part {
  ir::Task::Walk walk = ir::Task::unlowered;  ///< unlowered: all of it
  uint64_t chunk = 0, begin = 0, end = 0, thread = 0, threads = 1;
  uint64_t block_thread = 0;  ///< number of the thread in its block
  std::array<uint64_t, 2> words = {};
};

/// A box of indices, walked in row-major order.
struct Domain {
  std::vector<ir::Type> types;
  std::vector<int64_t> first;
  std::vector<uint64_t> extent;
  uint64_t total = 1;
};

/// One thread of execution: its values, its slots, and a stack of the regions that it is in. It can
/// be left between any two steps and go on later.
class Thread {
 public:
  explicit Thread(Launch& launch);

  /// Stands at the start of a root region.
  void start(const Block& block, const Part& part = {});
  /// Stands at the first iteration of a task that is not opened: `block` is the body of one.
  void start(const Block& block, const Domain& domain, const Part& part, uint32_t ordinal);
  /// Runs to the end of the root region (true), or to the next step at which the threads of a block
  /// meet (false).
  bool run();

  /// In its block.
  uint64_t number() const { return part_.block_thread; }
  /// The step at which it waits for its block.
  const Step* waits_at() const { return waits_at_; }
  /// What it brings there, and takes from there.
  ir::Bits brought() const { return operand(*waits_at_, 0); }
  void take(ir::Bits bits) {
    set(*waits_at_, bits);
    waits_at_ = nullptr;
  }
  /// Do both wait at the same step, in the same rounds of the same loops around it?
  bool is_with(const Thread& other) const { return stack_ == other.stack_; }

  /// Values of a root region that has ended: what it yielded or returned.
  std::vector<ir::Bits> results() const;
  Domain domain_of(std::span<const uint32_t> bounds, std::span<const ir::Type> types) const;
  /// All indices of a field, as values of a loop's arguments.
  Domain indices_of(uint32_t field, std::span<const ir::Value> args) const;

 private:
  /// A region that has begun.
  struct Frame {
    enum Kind : uint8_t { root, branch, loop, condition, rounds, function, iterations };
    Kind kind = root;
    const Block* block = nullptr;
    const Step* at = nullptr;     ///< the step to come
    const Step* owner = nullptr;  ///< the instruction whose region it is; null: of none
    uint64_t round = 0;           ///< of a loop
    bool operator==(const Frame&) const = default;
  };
  /// The iterations of a parallel loop: they do not nest.
  struct Walk {
    Domain own;
    const Domain* domain = nullptr;
    Order order{0, 0};
    uint64_t next = 0, end = 0, step = 1;
    Loc loc;
  };

  /// True where another region is on top of the stack now, or the thread waits.
  bool step(const Step& s);
  ir::Bits value(uint32_t number) const { return values_[number]; }
  ir::Bits operand(const Step& s, size_t k) const { return values_[s.operands[k]]; }
  void set(const Step& s, ir::Bits bits) { values_[s.result] = bits; }

  // structure
  void evaluate(const Step& s);
  void push(Frame::Kind kind, const Block& block, const Step* owner);
  /// The region on top begins once more, or another one in its place.
  void begin(const Block& block);
  void end_region();
  void yield();
  void leave(uint64_t loops);
  void next_round_of(uint64_t loops);
  void return_();
  void loop(const Step& s);
  void enter_round(bool more);
  void next_round(bool yielded);
  void while_loop(const Step& s);
  void decide();
  void call(const Step& s);
  void parallel(const Step& s);
  void walk(const Block& block, const Step* owner, const Domain& domain, const Part& part,
            uint32_t ordinal);
  void next_iteration();
  void end_walk();
  void reduce(const Step& s);
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
  ir::Bits* touched(const Step& s, size_t element);
  void slot(const Step& s);
  void get(const Step& s);
  void put(const Step& s);
  void load(const Step& s);
  void store(const Step& s);
  void atomic(const Step& s);
  void rmw(const Step& s);
  ir::Bits aligned_address(const Step& s) const;
  static ir::Bits update(ir::AtomicOp op, ir::Type type, ir::Bits address, const ir::Bits (&in)[2]);
  ir::Bits arg(const Step& s) const;
  ir::Bits builtin(const Step& s) const;

  // effects
  void check(const Step& s);
  void print(const Step& s);
  ir::Bits random(const Step& s);
  ir::Bits launch_key() const;
  size_t told_by(const Step& s) const;
  void fail(const Step& s, std::span<const ir::Bits> values);
  bool claims(const Step& s) const;
  void out_of_range(const Step& s, std::span<const ir::Bits> values, const std::string& what);
  void check_arithmetic(const Step& s, std::span<const ir::Bits> args, ir::Bits out);
  void find(Finding::Kind kind, const Step& s, const std::string& message, quern::Loc other = {});
  void race(const Step& s, std::optional<Touch> before);
  bool watches_races() const { return launch_.options.check_races && in_iteration_; }

  Launch& launch_;
  const Code& code_;
  const ir::Kernel& kernel_;
  const bool checks_values_;
  std::vector<ir::Bits> values_, slots_, copied_, returned_;
  std::vector<bool> unset_;  ///< of slots_: those that began as anything and were never put
  /// Of slots_: the round that accessed them last, among all rounds of loops of kind parallel_walk.
  std::vector<uint64_t> touched_;
  uint64_t walk_rounds_ = 0,
           first_of_walk_ = 0;  ///< all so far; the first one of the last such loop
  std::vector<Frame> stack_;
  const Block* root_ = nullptr;
  bool returns_ = false;  ///< the root region was left by a return
  const Step* waits_at_ = nullptr;

  // where it is
  Part part_;
  Walk walk_;
  uint32_t ordinal_ = ~0u;
  uint64_t iteration_ = 0;
  bool in_iteration_ = false;
  uint32_t calls_ = 0;  ///< call numbers given out in this iteration
};

}  // namespace quern::interpreter

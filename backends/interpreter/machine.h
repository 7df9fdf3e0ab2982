#pragma once
#include <memory>

#include "backends/interpreter/thread.h"

namespace quern::interpreter {

/// Runs bodies and tasks: the threads of one launch, block by block.
class Machine {
 public:
  Machine(const Code& code, const Options& options) : launch_(code, options) {}
  /// Forgets the launch before. `report` may be null.
  void begin(std::byte* args, Report* report) { launch_.begin(args, report); }

  /// A kernel's body; its results come back.
  std::vector<ir::Bits> body();
  /// A new launch of a task, whose domain comes back: what was accessed before conflicts with
  /// nothing.
  Domain begin_task(uint32_t number);
  /// The body of the task that has begun, by one thread, over `part` of the domain (an empty one
  /// for serial code).
  void run(const Domain& domain, const Part& part);
  /// The same by `blocks` blocks of `size` threads each, which share `of_all`.
  void run_blocks(uint64_t blocks, uint64_t size, const Part& of_all);
  /// Gives the cells of the task's reductions what its iterations contributed.
  void finish_reductions(uint64_t iterations);

  Launch& launch() { return launch_; }

 private:
  /// Runs the threads of a block, which `start` puts at their beginning, given their number.
  template <class F>
  void run_together(uint64_t count, F&& start);
  void meet(std::span<Thread* const> threads);
  bool may_start();
  Thread& thread(size_t k);

  Launch launch_;
  std::vector<std::unique_ptr<Thread>> threads_;
};

}  // namespace quern::interpreter

#pragma once
// What becomes of kernels on the stand-in for CUDA's driver that executes PTX.
#include <atomic>
#include <cstring>
#include <random>

#include "tests/gpu/ptx/machine.h"
#include "tests/gpu/recording/executed/environment.h"
#include "tests/gpu/recording/memory.h"

namespace quern::recording {
namespace {

std::atomic<ptx::Counts*> counted = nullptr;

/// Settings come from the environment (environment.h).
class Execution {
 public:
  /// Memory of the device is not the host's: an address of it means nothing to the processor.
  static constexpr Address hidden = Address(1) << 47;
  static constexpr bool ends_misused_programs = true;
  struct Program {
    std::shared_ptr<const ptx::Image> image;  ///< launches that have not run keep it
    std::vector<Address> variables;
  };
  struct Work {
    std::vector<std::byte> parameters;
    std::shared_ptr<const ptx::Image> image;
    const ptx::Code* code = nullptr;
  };

  explicit Execution(Session& session) {
    try {
      read_environment(session, schedule_);
    } catch (const std::runtime_error& e) {
      session.broken = 999;  // an unknown error
      fault_ = e.what();
    }
  }

  /// Throws std::runtime_error for a text that is none.
  static Program load(const std::string& text, int capability, const Allocate& allocate) {
    Program made;
    made.image = ptx::load(text, [&](const ptx::Variable& v) {
      const Range memory = allocate(v.bytes);
      std::memcpy(memory.host, v.initial.data(), v.initial.size());
      made.variables.push_back(memory.begin);
      return memory.begin;
    });
    if (made.image->source.target > unsigned(capability))
      throw ptx::Refused(1, "for sm_" + std::to_string(made.image->source.target));
    return made;
  }
  static bool has(const Program& program, const std::string&, const char* function) {
    return program.image->find(function) != nullptr;
  }
  /// The code that the launch is refused with, or 0.
  static int prepare(Work& work, const Launch& launch, const Program& program, size_t,
                     void** parameters) {
    work.image = program.image;
    work.code = work.image->find(launch.function);
    const unsigned threads = launch.block[0] * launch.block[1] * launch.block[2];
    if (work.code->max_threads && threads > work.code->max_threads) return 1;
    work.parameters.resize(work.code->parameter_bytes);
    for (size_t k = 0; k < work.code->parameter_offsets.size(); k++)
      std::memcpy(work.parameters.data() + work.code->parameter_offsets[k], parameters[k],
                  work.code->parameter_sizes[k]);
    return 0;
  }
  /// The code that ends the device, or 0. `number` counts the launches that ran.
  int run(const Work& work, const Launch& launch, const Session& session, int number,
          const RangeOf& memory) {
    ptx::Schedule schedule = schedule_;
    schedule.seed += uint64_t(number);
    schedule.resident = unsigned(session.multiprocessors * session.resident);
    ptx::Shape shape;
    for (size_t k = 0; k < 3; k++) {
      shape.grid[k] = launch.grid[k];
      shape.block[k] = launch.block[k];
    }
    shape.dynamic_shared_bytes = launch.shared_bytes;
    shape.parameters = work.parameters;
    Reached reached(memory);
    try {
      ptx::run(*work.image, *work.code, shape, reached, schedule, counted);
    } catch (const ptx::Fault& fault) {
      fault_ = fault.what();
      return fault.code;
    }
    return 0;
  }
  /// Streams go on by themselves in one of n calls?
  bool takes_turn(int n) { return schedule_.switches && random_() % unsigned(n) == 0; }
  /// What the kernel did that ended the device.
  const char* fault() const { return fault_.c_str(); }

 private:
  /// The memory that kernels of a device reach.
  class Reached : public ptx::GlobalMemory {
   public:
    explicit Reached(const RangeOf& memory) : memory_(memory) {}
    Range range_of(uint64_t address) override {
      const recording::Range r = memory_(address);
      return {r.begin, r.end, r.host};
    }

   private:
    const RangeOf& memory_;
  };

  ptx::Schedule schedule_;
  std::string fault_;
  std::mt19937_64 random_{1};  ///< of when streams go on
};

}  // namespace
}  // namespace quern::recording

/// What kernels do is counted from the first call on.
extern "C" quern::ptx::Counts* quern_ptx_counts() {
  static quern::ptx::Counts all;
  quern::recording::counted = &all;
  return &all;
}

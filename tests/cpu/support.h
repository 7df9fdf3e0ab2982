#pragma once
// Compiles a lowered kernel on the CPU back end and runs its tasks on arrays of the test.
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "quern/ir/text.h"
#include "quern/runtime/backend.h"

namespace quern::cpu {
extern const runtime::Backend backend;
}

namespace quern::test {

inline runtime::Driver& driver() {
  static const std::unique_ptr<runtime::Driver> driver = [] {
    std::string why;
    return cpu::backend.open(cpu::backend.probe(why).at(0));
  }();
  return *driver;
}

/// A compiled kernel with an argument block that the test fills: entry k is at byte 64 + 8k.
class Program {
 public:
  explicit Program(const ir::Kernel& kernel)
      : executable_(driver().load(kernel, driver().compiler().compile(kernel, driver().target()))) {}
  explicit Program(const std::string& text) : Program(*ir::parse(text)) {}

  /// The address of host memory: device memory is the host's.
  Program& entry(size_t k, const void* p) { return word(k, reinterpret_cast<uint64_t>(p)); }
  template <class T>
  Program& value(size_t k, T v) {
    uint64_t bits = 0;
    std::memcpy(&bits, &v, sizeof v);
    return word(k, bits);
  }

  /// Runs iterations [0, n) in `chunks` chunks.
  void run(uint32_t task = 0, uint64_t n = 1, uint64_t chunks = 1,
           const uint32_t* guard = nullptr) {
    runtime::Launch launch;
    launch.executable = executable_.get();
    launch.task = task;
    launch.iterations = n;
    launch.grain = (n + chunks - 1) / chunks;
    launch.chunks = chunks;
    launch.args = reinterpret_cast<uint64_t>(args_.data());
    launch.guard = reinterpret_cast<uint64_t>(guard);
    runtime::Command command = launch;
    driver().wait(driver().submit({&command, 1}));
  }

 private:
  Program& word(size_t k, uint64_t bits) {
    args_.at(8 + k) = bits;
    return *this;
  }
  std::unique_ptr<runtime::Executable> executable_;
  std::vector<uint64_t> args_ = std::vector<uint64_t>(32);
};

/// Same bits, or both NaN.
bool same(ir::Type type, ir::Bits a, ir::Bits b);
/// Values where something may go wrong, and random ones.
std::vector<ir::Bits> interesting(ir::Type type);

}  // namespace quern::test

#pragma once
// Drivers on the stand-ins for the vendors' libraries.
#include "backends/gpu/driver.h"
#include "quern/runtime/compiler.h"
#include "tests/catch.h"
#include "tests/gpu/recording/recording.h"
#include "tests/message_of.h"

namespace quern::test {

struct Vendor {
  const char* name;         ///< "CUDA", "HIP"
  const char* library;      ///< of the stand-in
  const char* environment;  ///< names another library
  std::shared_ptr<const gpu::Api> (*load)(const std::string& library, std::string& why);
  runtime::Target (*target)(const gpu::Properties&);
  std::vector<runtime::Target> (*devices)(std::string& why);
  std::unique_ptr<runtime::Driver> (*open)(const runtime::Target&, const runtime::Native::Handles*);
};
const std::vector<Vendor>& vendors();

/// Each test runs on each vendor's stand-in, from a new beginning. Afterwards nothing may live in
/// it any more, and nothing may have happened that a real library forbids.
class OnEachVendor {
 public:
  OnEachVendor();
  ~OnEachVendor();

  /// The vendor's functions; loaded at the first call.
  const std::shared_ptr<const gpu::Api>& api();
  /// Its kernels take the address of the argument block, or (`by_value`) the block itself.
  std::unique_ptr<gpu::Driver> open(size_t device = 0, bool by_value = false);

  const Vendor vendor;
  recording::Recorder& recorder;

 private:
  std::shared_ptr<const gpu::Api> api_;
};

/// A lowered kernel with tasks of these kinds.
struct Code {
  explicit Code(std::initializer_list<ir::Task> tasks, const std::string& name = "k");
  /// An image for a driver, whose code has the tasks' functions, as far as the stand-ins ask.
  runtime::Image on(const runtime::Driver& driver) const;
  ir::Kernel kernel;
};
runtime::Launch launch(const runtime::Executable& executable, uint32_t task,
                       const runtime::Work& work, runtime::Address args = 0);
ir::Task serial();
ir::Task element(uint32_t block_size = 0);
ir::Task once(uint32_t block_size = 0);
ir::Task chunked();

std::vector<std::byte> numbers(size_t bytes);
std::vector<std::byte> read(runtime::Driver& driver, runtime::Address from, size_t bytes);
uint32_t read_word(runtime::Driver& driver, runtime::Address from);

}  // namespace quern::test

#pragma once
// Runs lowered kernels on the drivers of every back end; their memory is reached by upload and
// download.
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "quern/ir/builder.h"
#include "quern/ir/text.h"
#include "quern/runtime/compiler.h"
#include "tests/catch.h"
#include "tests/message_of.h"

namespace quern::test {

/// All, or that of QUERN_DEVICE alone where it is set.
bool is_tested(const std::string& backend);
/// The first device of each back end that is present and tested; opened at
/// first use, with the validation layers on where they are installed, and kept until the process ends.
const std::vector<runtime::Driver*>& drivers();
/// Those that take lowered kernels.
std::vector<runtime::Driver*> lowering_drivers();
/// Throws where the back end is not present.
runtime::Driver& driver(std::string_view backend);

/// The compiler for a driver, and what it compiles for there.
const runtime::Compiler& compiler(const runtime::Driver& driver);
runtime::Target target(runtime::Driver& driver);

struct OnDriver {
  explicit OnDriver(runtime::Driver& d)
      : driver(d),
        on(Catch::MessageBuilder("INFO", CATCH_INTERNAL_LINEINFO, Catch::ResultWas::Info)
           << "on " << d.target().backend) {}
  runtime::Driver& driver;
  Catch::ScopedMessage on;
};
/// Fixtures: the test case runs once for each driver, or each that takes lowered kernels.
struct OnEachDriver : OnDriver {
  OnEachDriver() : OnDriver(*GENERATE(from_range(drivers()))) {}
};
struct OnEachLowering : OnDriver {
  OnEachLowering() : OnDriver(*GENERATE(from_range(lowering_drivers()))) {}
};

/// Device memory of a test, given back at its end.
class Buffer {
 public:
  Buffer(runtime::Driver& driver, uint64_t bytes)
      : driver_(driver), address_(driver.allocate(bytes)), bytes_(bytes) {}
  template <class T>
  Buffer(runtime::Driver& driver, const std::vector<T>& v) : Buffer(driver, v.size() * sizeof(T)) {
    driver.upload(address_, std::as_bytes(std::span(v)));
  }
  ~Buffer() { driver_.release(address_); }
  Buffer(const Buffer&) = delete;

  runtime::Address address() const { return address_; }
  template <class T>
  std::vector<T> read() const {
    std::vector<T> v(bytes_ / sizeof(T));
    driver_.download(std::as_writable_bytes(std::span(v)), address_);
    return v;
  }
  template <class T>
  T first() const {
    T v{};
    driver_.download(std::as_writable_bytes(std::span(&v, 1)), address_);
    return v;
  }

 private:
  runtime::Driver& driver_;
  runtime::Address address_;
  uint64_t bytes_;
};

/// A compiled kernel and its argument block: entry k is at byte 64 + 8k. The block lies in the
/// device's memory, or on the host where the kernel's tasks take it by value.
class Program {
 public:
  Program(runtime::Driver& driver, const ir::Kernel& kernel)
      : Program(driver, kernel, target(driver)) {}
  Program(runtime::Driver& driver, const ir::Kernel& kernel, const runtime::Target& target);
  Program(runtime::Driver& driver, const std::string& text) : Program(driver, *ir::parse(text)) {}
  ~Program() { driver_.release(block_); }
  Program(const Program&) = delete;

  Program& entry(size_t k, const Buffer& b) { return entry(k, b.address()); }
  template <class T>
  Program& entry(size_t k, T v) {
    uint64_t& word = args_.at(8 + k);
    word = 0;
    std::memcpy(&word, &v, sizeof v);
    return *this;
  }
  /// Iterations [0, iterations) in at most `chunks` chunks.
  runtime::Launch launch(uint32_t task, uint64_t iterations, uint64_t chunks = 1) const;
  /// Launches and waits.
  void run(uint32_t task = 0, uint64_t iterations = 1, uint64_t chunks = 1,
           runtime::Address guard = 0);
  void upload_args() { driver_.upload(block_, std::as_bytes(std::span(args_))); }

 private:
  runtime::Driver& driver_;
  std::vector<uint64_t> args_ = std::vector<uint64_t>(32);
  bool takes_value_ = false;
  std::vector<runtime::Image::Task> tasks_;
  std::unique_ptr<runtime::Executable> executable_;
  runtime::Address block_;
};

// ---- kernels as text

/// The 32-bit integer at entry 0 becomes one more.
extern const char* const add_one;
/// A serial kernel.
std::string serial(const std::string& body, const std::string& modes = "");
/// A kernel of one task of iterations in chunks.
std::string chunked(const std::string& body);
/// A kernel that runs `before` once a chunk or thread, and `body` for each iteration %i: i64, the
/// way the driver's target walks.
std::string each(const runtime::Driver& driver, const std::string& before, const std::string& body,
                 const std::string& modes = "");
/// The same for a task under construction: its body's loop over iterations, whose index comes back.
/// What is built before it at the task's level stands in front; the builder is left in the loop.
ir::Value* open_iterations(ir::Builder& b, ir::Task& task, ir::Task::Walk walk);

// ---- values

/// Every scalar type.
std::vector<ir::Type> scalar_types();
/// Same bits, or both NaN.
bool same(ir::Type type, ir::Bits a, ir::Bits b);
/// Values where something may go wrong, and random ones.
std::vector<ir::Bits> interesting(ir::Type type);
/// As stored.
std::vector<std::byte> packed(ir::Type type, const std::vector<ir::Bits>& values);

/// Runs `f` in a process of its own; its exit status.
int in_child(const std::function<int()>& f);
/// The driver still runs kernels.
void expect_usable(runtime::Driver& driver);

}  // namespace quern::test

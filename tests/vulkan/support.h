#pragma once
// Runs lowered kernels on the first Vulkan device; its memory is reached by upload and download.
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "backends/vulkan/driver.h"
#include "quern/ir/text.h"

namespace quern::vulkan {
extern const runtime::Backend backend;
}

namespace quern::test {

/// With the validation layers on where they are installed.
std::shared_ptr<vulkan::Instance> instance();
/// Opened at first use.
runtime::Driver& driver();
/// A driver that reaches its memory through staging, as where the host cannot see it.
runtime::Driver& staging_driver();

/// Device memory of a test, given back at its end.
class Buffer {
 public:
  explicit Buffer(uint64_t bytes, runtime::Driver& d = driver())
      : driver_(d), address_(d.allocate(bytes)), bytes_(bytes) {}
  template <class T>
  explicit Buffer(const std::vector<T>& v, runtime::Driver& d = driver())
      : Buffer(v.size() * sizeof(T), d) {
    d.upload(address_, std::as_bytes(std::span(v)));
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

 private:
  runtime::Driver& driver_;
  runtime::Address address_;
  uint64_t bytes_;
};

/// A compiled kernel and its argument block: entry k is at byte 64 + 8k.
class Program {
 public:
  explicit Program(const ir::Kernel& kernel, runtime::Driver& d = driver());
  explicit Program(const std::string& text, runtime::Driver& d = driver())
      : Program(*ir::parse(text), d) {}
  ~Program() { driver_.release(block_); }
  Program(const Program&) = delete;

  Program& entry(size_t k, uint64_t bits) {
    args_.at(8 + k) = bits;
    return *this;
  }
  Program& entry(size_t k, const Buffer& b) { return entry(k, b.address()); }
  runtime::Launch launch(uint32_t task, uint64_t iterations, uint64_t chunks = 1) const;
  /// Runs a task over `n` iterations and waits.
  void run(uint32_t task = 0, uint64_t n = 1, uint64_t chunks = 1, runtime::Address guard = 0);
  void upload_args() { driver_.upload(block_, std::as_bytes(std::span(args_))); }

 private:
  runtime::Driver& driver_;
  std::unique_ptr<runtime::Executable> executable_;
  std::vector<uint64_t> args_ = std::vector<uint64_t>(32);
  runtime::Address block_;
};

/// Same bits, or both NaN.
bool same(ir::Type type, ir::Bits a, ir::Bits b);
/// Values where something may go wrong, and random ones.
std::vector<ir::Bits> interesting(ir::Type type);

}  // namespace quern::test

#pragma once
// Programs in PTX on the machine of tests/gpu/ptx, with memory of their own.
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/gpu/ptx/machine.h"

namespace quern::test {

/// Allocations at addresses that are none of the host's, each far from the others.
class Memory : public ptx::GlobalMemory {
 public:
  template <class T>
  uint64_t put(const std::vector<T>& values) {
    const uint64_t at = next_;
    next_ += 1 << 20;
    const auto bytes = std::as_bytes(std::span(values));
    blocks_[at].assign(bytes.begin(), bytes.end());
    return at;
  }
  template <class T>
  std::vector<T> get(uint64_t at) const {
    const std::vector<std::byte>& bytes = blocks_.at(at);
    std::vector<T> values(bytes.size() / sizeof(T));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
  void release(uint64_t at) { blocks_.erase(at); }
  Range range_of(uint64_t address) override {
    auto next = blocks_.upper_bound(address);
    if (next == blocks_.begin()) return {};
    auto& [at, bytes] = *std::prev(next);
    if (address >= at + bytes.size()) return {};
    return {at, at + bytes.size(), bytes.data()};
  }

 private:
  std::map<uint64_t, std::vector<std::byte>> blocks_;
  uint64_t next_ = 1ull << 47;
};

/// A module with one entry `k` of so many u64 parameters p0, p1, …
inline std::string entry(const std::string& body, int parameters = 1,
                         const std::string& before = "") {
  std::string text =
      ".version 7.8\n.target sm_80\n.address_size 64\n" + before + ".visible .entry k(";
  for (int k = 0; k < parameters; k++)
    text += (k ? ", " : "") + (".param .u64 p" + std::to_string(k));
  return text + ")\n{\n" + body + "\nret;\n}\n";
}

/// %x is p0, %i the thread's number in the grid, %at the address of its word of p0.
inline const std::string head =
    ".reg .b64 %x, %at, %y<8>; .reg .b32 %i, %t, %n, %b, %r<16>; .reg .f32 %f<8>; .reg .pred "
    "%p<8>;\n"
    "ld.param.u64 %x, [p0]; mov.u32 %t, %tid.x; mov.u32 %n, %ntid.x; mov.u32 %b, %ctaid.x;\n"
    "mad.lo.s32 %i, %b, %n, %t; mul.wide.u32 %at, %i, 4; add.s64 %at, %x, %at;\n";

struct Program {
  explicit Program(const std::string& text)
      : image(ptx::load(text, [](const ptx::Variable&) -> uint64_t { throw 0; })) {}
  void run(Memory& memory, const std::vector<uint64_t>& parameters, unsigned blocks = 1,
           unsigned threads = 32, const ptx::Schedule& schedule = {},
           ptx::Counts* counts = nullptr) {
    ptx::Shape shape;
    shape.grid[0] = blocks;
    shape.block[0] = threads;
    shape.parameters.resize(parameters.size() * 8);
    std::memcpy(shape.parameters.data(), parameters.data(), shape.parameters.size());
    ptx::run(*image, *image->find("k"), shape, memory, schedule, counts);
  }
  std::unique_ptr<ptx::Image> image;
};

/// Why a text is refused, "" where it is not.
inline std::string refusal(const std::string& text) {
  try {
    Program program(text);
  } catch (const ptx::Refused& e) {
    return e.what();
  }
  return "";
}
/// How a launch ends, "" where it ends well; `code` is the device's.
template <class F>
std::string fault(F run, int* code = nullptr) {
  try {
    run();
  } catch (const ptx::Fault& e) {
    if (code) *code = e.code;
    return e.what();
  }
  return "";
}

}  // namespace quern::test

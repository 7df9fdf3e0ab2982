#pragma once
// Runs kernels on the interpreter with arrays of the test as fields.
#include <cstring>
#include <string>
#include <vector>

#include "backends/interpreter/interpreter.h"
#include "quern/ir/abi.h"

namespace quern::test {

/// The argument block of a kernel. It stays right while passes change the kernel: they keep the
/// bindings' places.
class Launch {
 public:
  explicit Launch(const ir::Kernel& kernel)
      : layout_(ir::abi::layout(kernel)), words_(layout_.bytes / 8) {}

  Launch& scalar(uint32_t binding, ir::Bits bits) {
    return word(layout_.places.at(binding).value(), bits);
  }
  /// A component of a field: a row-major array.
  Launch& field(uint32_t binding, void* data, std::vector<int64_t> shape, size_t element_bytes,
                uint32_t component = 0) {
    const ir::abi::Place& place = layout_.places.at(binding);
    word(place.base(component), reinterpret_cast<ir::Bits>(data));
    uint64_t stride = element_bytes;
    for (uint32_t axis = uint32_t(shape.size()); axis-- > 0;) {
      word(place.stride(component, axis), stride);
      word(place.extent(axis), uint64_t(shape[axis]));
      stride *= uint64_t(shape[axis]);
    }
    return *this;
  }
  template <class T>
  Launch& field(uint32_t binding, std::vector<T>& data, std::vector<int64_t> shape = {}) {
    if (shape.empty()) shape = {int64_t(data.size())};
    return field(binding, data.data(), shape, sizeof(T));
  }
  Launch& random(uint32_t seed, uint32_t number) {
    word(ir::abi::random_seed, seed);
    word(ir::abi::launch_number, number);
    return word(ir::abi::random_launch, number);
  }

  std::byte* args() { return reinterpret_cast<std::byte*>(words_.data()); }
  interpreter::Report run(const ir::Kernel& kernel, const interpreter::Options& options = {}) {
    interpreter::Report report;
    interpreter::run(kernel, args(), options, report);
    return report;
  }

 private:
  Launch& word(uint32_t offset, uint64_t v) {
    words_.at(offset / 8) = v;
    return *this;
  }
  ir::abi::Layout layout_;
  std::vector<uint64_t> words_;
};

}  // namespace quern::test

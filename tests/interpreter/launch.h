#pragma once
// Runs kernels on the interpreter with arrays of the test as fields.
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
      : layout_(ir::abi::layout(kernel)), block_(layout_.bytes) {}

  Launch& scalar(uint32_t binding, ir::Bits bits) {
    writer().scalar(binding, bits);
    return *this;
  }
  /// A component of a field: a row-major array.
  Launch& field(uint32_t binding, void* data, std::vector<int64_t> shape, size_t element_bytes,
                uint32_t component = 0) {
    std::vector<int64_t> strides(shape.size());
    int64_t stride = int64_t(element_bytes);
    for (size_t axis = shape.size(); axis-- > 0; stride *= shape[axis]) strides[axis] = stride;
    writer().component(binding, component, reinterpret_cast<ir::Bits>(data), strides);
    writer().axes(binding, shape);
    return *this;
  }
  template <class T>
  Launch& field(uint32_t binding, std::vector<T>& data, std::vector<int64_t> shape = {}) {
    if (shape.empty()) shape = {int64_t(data.size())};
    return field(binding, data.data(), shape, sizeof(T));
  }
  Launch& random(uint32_t seed, uint32_t number) {
    writer().head({.random_seed = seed, .launch_number = number, .random_launch = number});
    return *this;
  }
  Launch& error_record(ir::abi::ErrorRecord& record) {
    writer().head({.error = reinterpret_cast<ir::Bits>(&record)});
    return *this;
  }

  std::byte* args() { return block_.data(); }
  interpreter::Report run(const ir::Kernel& kernel, const interpreter::Options& options = {}) {
    interpreter::Report report;
    interpreter::run(kernel, args(), options, report);
    return report;
  }

 private:
  ir::abi::Writer writer() { return {layout_, block_.data()}; }
  ir::abi::Layout layout_;
  std::vector<std::byte> block_;
};

}  // namespace quern::test

#pragma once
#include <vector>

#include "quern/runtime/device.h"

namespace quern::runtime {

/// Dense memory of a field: per component a row-major array of its own. Extents may be 0; sizes are
/// counted in 64 bits. Host access waits for the launches that use it.
class Storage {
 public:
  /// Throws Error with `loc` for a negative extent, more than 8 axes, or sizes past 2^63 bytes.
  /// The memory is zero.
  Storage(std::shared_ptr<Device> device, std::vector<ir::Storage> components,
          std::vector<int64_t> shape, Loc loc);
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  Device& device() const { return *device_; }
  const std::shared_ptr<Device>& shared_device() const { return device_; }
  const std::vector<ir::Storage>& components() const { return components_; }
  const std::vector<int64_t>& shape() const { return shape_; }
  int64_t size() const { return size_; }
  uint64_t bytes(uint32_t component) const;
  Loc loc() const { return loc_; }
  Address base(uint32_t component) const { return bases_[component]; }
  /// Bytes between neighbours along an axis.
  int64_t stride(uint32_t component, uint32_t axis) const;

  /// Elements of one component in row-major order, as stored (bool: one byte each).
  void upload(uint32_t component, std::span<const std::byte> from, uint64_t first = 0);
  void download(uint32_t component, std::span<std::byte> to, uint64_t first = 0) const;
  /// Every element of a component becomes `value` (bits of its storage type).
  void fill(uint32_t component, uint64_t value);
  /// Exchanges memory in O(1); both keep their identity. Throws Error unless shape, types and
  /// device agree.
  void swap(Storage& other, Loc loc);
  /// Gives the memory back at once; using it afterwards is an error that names `loc`.
  void release(Loc loc);
  bool released() const { return released_.line != 0; }
  /// Throws Error naming both places where the memory was released.
  void expect_alive(Loc loc) const;

 private:
  void free();
  std::shared_ptr<Device> device_;
  std::vector<ir::Storage> components_;
  std::vector<int64_t> shape_;
  int64_t size_ = 1;
  std::vector<Address> bases_;
  Loc loc_, released_;
};

std::string shape_text(std::span<const int64_t> shape);

}  // namespace quern::runtime

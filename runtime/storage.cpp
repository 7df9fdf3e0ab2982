#include "quern/runtime/storage.h"

#include <algorithm>
#include <cstring>

namespace quern::runtime {

std::string shape_text(std::span<const int64_t> shape) {
  std::string text = "(";
  for (size_t k = 0; k < shape.size(); k++) text += (k ? ", " : "") + std::to_string(shape[k]);
  return text + ")";
}

Storage::Storage(std::shared_ptr<Device> device, std::vector<ir::Storage> components,
                 std::vector<int64_t> shape, Loc loc)
    : device_(std::move(device)),
      components_(std::move(components)),
      shape_(std::move(shape)),
      loc_(loc) {
  if (shape_.size() > 8)
    throw Error(loc, "a field has at most 8 axes, here " + std::to_string(shape_.size()));
  for (int64_t n : shape_)
    if (n < 0)
      throw Error(loc, "a field of shape " + shape_text(shape_) + ": an extent is negative");
  bool empty = false;
  for (int64_t n : shape_) empty |= n == 0;
  for (int64_t n : shape_) {
    if (empty)
      size_ = 0;
    else if (__builtin_mul_overflow(size_, n, &size_) || size_ > INT64_MAX / 8)
      throw Error(loc, "a field of shape " + shape_text(shape_) + " has more than 2^63 bytes");
  }
  std::string what = "a field of shape " + shape_text(shape_);
  try {
    for (uint32_t c = 0; c < components_.size(); c++)
      bases_.push_back(device_->allocate(bytes(c), what, loc));
  } catch (...) {
    free();
    throw;
  }
}

Storage::~Storage() {
  if (!released()) free();
}

void Storage::free() {
  if (bases_.empty()) return;
  device_->release(bases_);
  bases_.clear();
}

uint64_t Storage::bytes(uint32_t component) const {
  return uint64_t(size_) * ir::byte_size(components_[component].storage);
}

int64_t Storage::stride(uint32_t component, uint32_t axis) const {
  int64_t stride = ir::byte_size(components_[component].storage);
  for (size_t k = shape_.size(); --k > axis;) stride *= shape_[k];
  return stride;
}

void Storage::upload(uint32_t component, std::span<const std::byte> from, uint64_t first) {
  expect_alive({});
  uint64_t width = ir::byte_size(components_[component].storage);
  device_->upload(bases_[component] + first * width, from);
}

void Storage::download(uint32_t component, std::span<std::byte> to, uint64_t first) const {
  expect_alive({});
  uint64_t width = ir::byte_size(components_[component].storage);
  device_->download(to, bases_[component] + first * width);
}

void Storage::fill(uint32_t component, uint64_t value) {
  expect_alive({});
  uint64_t width = ir::byte_size(components_[component].storage);
  uint64_t total = bytes(component);
  if (total == 0) return;
  bool halves_equal = width < 8 || uint32_t(value) == uint32_t(value >> 32);
  if (halves_equal) {
    uint32_t pattern = uint32_t(value);
    if (width == 1) pattern = uint32_t(value & 0xff) * 0x01010101u;
    if (width == 2) pattern = uint32_t(value & 0xffff) * 0x00010001u;
    // Allocations are whole words, so the last partial word may be filled too.
    Command command = Fill{bases_[component], (total + 3) / 4 * 4, pattern};
    device_->driver().submit({&command, 1});
    return;
  }
  // 64-bit values of two different halves: a chunk is written and doubled by copies.
  uint64_t seed[512];
  for (uint64_t& v : seed) v = value;
  uint64_t done = std::min<uint64_t>(sizeof seed, total);
  device_->driver().upload(bases_[component], std::as_bytes(std::span(seed)).first(done));
  while (done < total) {
    uint64_t n = std::min(done, total - done);
    Command command = Copy{bases_[component] + done, bases_[component], n};
    device_->driver().submit({&command, 1});
    done += n;
  }
}

void Storage::swap(Storage& other, Loc loc) {
  if (&other == this) return;
  expect_alive(loc);
  other.expect_alive(loc);
  if (device_ != other.device_)
    throw Error(loc, "swap of fields on different devices: " + device_->name() + " and " +
                         other.device_->name());
  if (shape_ != other.shape_)
    throw Error(loc, "swap of fields of different shapes: " + shape_text(shape_) + " and " +
                         shape_text(other.shape_));
  for (size_t c = 0; c < components_.size(); c++)
    if (components_.size() != other.components_.size() ||
        components_[c].storage != other.components_[c].storage)
      throw Error(loc, "swap of fields of different element types");
  std::swap(bases_, other.bases_);
}

void Storage::release(Loc loc) {
  if (released()) return;
  free();
  released_ = loc.line ? loc : Loc{"?", 1};
}

void Storage::expect_alive(Loc loc) const {
  if (!released()) return;
  throw Error(loc, "this field was released at " + std::string(released_.file) + ":" +
                       std::to_string(released_.line) + " and has no memory any more");
}

}  // namespace quern::runtime

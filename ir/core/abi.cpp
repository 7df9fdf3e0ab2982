#include "quern/ir/abi.h"

#include <cstring>

#include "quern/ir/lower.h"

namespace quern::ir {

bool takes_value(const Kernel& kernel, const TargetTraits& target) {
  return kernel.tasks.size() <= target.value_tasks &&
         abi::layout(kernel).bytes <= target.value_bytes;
}

namespace abi {

Layout layout(const Kernel& kernel) {
  Layout out;
  uint32_t at = head_bytes;
  for (const Binding& b : kernel.bindings) {
    Place place;
    place.offset = at;
    place.rank = b.rank;
    if (b.kind == Binding::scalar) at += 8;
    if (b.kind == Binding::field) {
      at += uint32_t(b.components.size()) * 8 * (1 + b.rank);
      place.extents = at;
      at += 8 * b.rank;
    }
    out.places.push_back(place);
  }
  for (size_t k = 0; k < out.places.size(); k++) {
    if (kernel.bindings[k].kind != Binding::field) continue;
    out.places[k].firsts = at;
    at += 2 * 8 * out.places[k].rank;
  }
  out.bytes = at;
  return out;
}

void Writer::put(uint32_t offset, uint64_t value) { std::memcpy(block_ + offset, &value, 8); }

void Writer::head(const Head& head) { std::memcpy(block_, &head, sizeof head); }

void Writer::scalar(size_t binding, uint64_t bits) { put(layout_.places[binding].value(), bits); }

void Writer::component(size_t binding, uint32_t component, uint64_t base,
                       std::span<const int64_t> strides) {
  const Place& place = layout_.places[binding];
  put(place.base(component), base);
  for (uint32_t axis = 0; axis < place.rank; axis++)
    put(place.stride(component, axis), uint64_t(strides[axis]));
}

void Writer::axes(size_t binding, std::span<const int64_t> extents, std::span<const int64_t> firsts,
                  std::span<const int64_t> origins) {
  const Place& place = layout_.places[binding];
  for (uint32_t axis = 0; axis < place.rank; axis++) {
    put(place.extent(axis), uint64_t(extents[axis]));
    put(place.first(axis), firsts.empty() ? 0 : uint64_t(firsts[axis]));
    put(place.origin(axis), origins.empty() ? 0 : uint64_t(origins[axis]));
  }
}

void Writer::arrays(size_t binding, std::span<const uint64_t> bases,
                    std::span<const uint32_t> bytes, std::span<const int64_t> extents) {
  for (uint32_t c = 0; c < bases.size(); c++) {
    std::array<int64_t, Placement::max_axes> strides = {};
    int64_t stride = bytes[c];
    for (size_t axis = extents.size(); axis-- > 0; stride *= extents[axis]) strides[axis] = stride;
    component(binding, c, bases[c], strides);
  }
  axes(binding, extents);
}

std::array<uint64_t, 2> reciprocals(uint32_t innermost, std::span<const uint64_t> extents) {
  uint64_t total = 1;
  for (uint64_t extent : extents) total *= extent;
  if (extents.size() < 2 || is_wide(total)) return {0, 0};
  const size_t next = innermost + 1 == extents.size() ? extents.size() - 2 : extents.size() - 1;
  return {reciprocal(extents[innermost]), reciprocal(extents[next])};
}

std::vector<Combination> combinations(uint64_t iterations) {
  std::vector<Combination> all;
  uint64_t at = 0;
  for (uint64_t n = lanes(iterations); n > 0;) {
    const uint64_t values = n / chunk_lanes;
    all.push_back({true, values, at, n});
    at += n;
    if (values == 1) break;
    n = lanes(values);
    all.push_back({false, n, at, values});
    at += values;
  }
  return all;
}

uint64_t total_rows(uint64_t iterations) {
  const std::vector<Combination> all = combinations(iterations);
  return all.empty() ? 0 : all.back().first_row + all.back().rows + 1;
}

}  // namespace abi
}  // namespace quern::ir

#include "quern/ir/abi.h"

#include <cstring>

#include "quern/ir/lower.h"

namespace quern::ir {

bool takes_value(const Kernel& kernel, const TargetTraits& target) {
  return kernel.tasks.size() <= target.value_tasks &&
         abi::layout(kernel).bytes <= target.value_bytes;
}

namespace abi {

namespace {

/// Places the entries of bindings one after another.
struct Placing {
  const Kernel& kernel;
  Layout& out;
  uint32_t at = head_bytes;

  void values(size_t k) {
    const Binding& b = kernel.bindings[k];
    Place& place = out.places[k];
    place.offset = at;
    place.rank = b.rank;
    if (b.kind == Binding::scalar) at += 8;
    if (!b.has_elements()) return;
    at += uint32_t(b.components.size()) * 8 * (1 + b.rank);
    place.extents = at;
    at += 8 * b.rank;
  }
  void firsts(size_t k) {
    if (!kernel.bindings[k].has_elements()) return;
    out.places[k].firsts = at;
    at += 2 * 8 * out.places[k].rank;
  }
};

}  // namespace

Layout layout(const Kernel& kernel) {
  Layout out;
  out.places.resize(kernel.bindings.size());
  Placing placing{kernel, out};
  const auto is_buffer = [&](size_t k) { return kernel.bindings[k].kind == Binding::buffer; };
  const size_t count = out.places.size();
  for (size_t k = 0; k < count; k++)
    if (!is_buffer(k)) placing.values(k);
  for (size_t k = 0; k < count; k++)
    if (!is_buffer(k)) placing.firsts(k);
  for (size_t k = 0; k < count; k++)
    if (is_buffer(k)) placing.values(k), placing.firsts(k);
  out.bytes = placing.at;
  return out;
}

Packed packed(std::span<const Component> components) {
  Packed out;
  uint32_t widest = 4;
  for (const Component& c : components) {
    const uint32_t bytes = std::max(4u, byte_size(storage_type(c.type)));
    out.bytes = (out.bytes + bytes - 1) / bytes * bytes;
    out.offsets.push_back(out.bytes);
    out.bytes += bytes;
    widest = std::max(widest, bytes);
  }
  out.bytes = (out.bytes + widest - 1) / widest * widest;
  return out;
}

uint32_t declare_buffer(Kernel& kernel, std::string name, std::span<const Type> components,
                        BufferSize size, Loc loc) {
  const auto number = uint32_t(kernel.bindings.size());
  Binding b;
  b.kind = Binding::buffer;
  b.rank = 1;
  b.name = std::move(name);
  b.loc = loc;
  b.size = size;
  b.alias_class = uint32_t(first_buffer_class + number);
  for (Type type : components) b.components.push_back({type});
  const Packed element = packed(b.components);
  b.alignment = element.bytes % 8 == 0 ? 8 : 4;
  b.layout.step = element.bytes;
  if (components.size() > 1)
    b.layout.offsets.assign(element.offsets.begin(), element.offsets.end());
  kernel.bindings.push_back(std::move(b));
  return number;
}

uint32_t passed_bytes(const Kernel& kernel, const Layout& layout) {
  for (size_t k = 0; k < kernel.bindings.size(); k++)
    if (kernel.bindings[k].kind == Binding::buffer) return layout.places[k].offset;
  return layout.bytes;
}

void Writer::head(const Head& head) { std::memcpy(block_, &head, sizeof head); }

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

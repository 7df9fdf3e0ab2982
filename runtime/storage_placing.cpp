// Where the elements of a field lie in its memory: what a Layout says, as strides and blocks.
#include <algorithm>
#include <bit>
#include <unordered_map>

#include "runtime/storage_memory.h"

namespace quern::runtime {

namespace {

constexpr int64_t most_per_block = 1 << 30;
constexpr int64_t farthest_first = 1 << 30;

std::string numbers(const char* what, int count, size_t rank) {
  return std::string("a layout with ") + what + " for " + std::to_string(count) +
         (count == 1 ? " axis" : " axes") + ", of a field with " + std::to_string(rank);
}

/// Of what differs most often; the rest is left to the comparison.
struct FactsHash {
  size_t operator()(const ir::Signature::Field& f) const {
    size_t h = size_t(f.contiguous) | size_t(f.zero_based) << 1 | f.encodings.size() << 2 |
               f.layout.levels.size() << 8 | f.layout.pools.size() << 16 |
               size_t(f.layout.fast) << 24 | size_t(f.layout.step) << 32;
    for (int32_t offset : f.layout.offsets) h = (h ^ uint32_t(offset)) * 0x9e3779b97f4a7c15;
    return h ^ h >> 29;
  }
};

/// There are as many as ways to lay fields out, so all are kept.
uint32_t number_of(const ir::Signature::Field& facts) {
  struct Known {
    std::mutex mutex;
    std::unordered_map<ir::Signature::Field, uint32_t, FactsHash> numbers;
  };
  static Known& known = *new Known;  // fields may be made as late as statics end
  std::lock_guard lock(known.mutex);
  return known.numbers.try_emplace(facts, uint32_t(known.numbers.size()) + 1).first->second;
}

}  // namespace

Element natural_element(std::span<const ir::Storage> stored) {
  Element e;
  e.offsets.reserve(stored.size());
  uint32_t align = 1;
  for (const ir::Storage& s : stored) {
    uint32_t width = ir::byte_size(s.storage);
    align = std::max(align, width);
    e.offsets.push_back((e.bytes + width - 1) / width * width);
    e.bytes = e.offsets.back() + width;
  }
  e.bytes = (e.bytes + align - 1) / align * align;
  return e;
}

void expect_firsts(std::span<const int64_t> firsts, size_t rank, Loc loc) {
  if (firsts.size() != rank) throw Error(loc, numbers("offsets", int(firsts.size()), rank));
  for (int64_t n : firsts)
    if (n < -farthest_first || n > farthest_first)
      throw Error(loc, "an offset of " + std::to_string(n) + "; indices start within ±2^30");
}

Storage::Storage(Unallocated, std::shared_ptr<Device> device, std::vector<ir::Storage> components,
                 std::vector<int64_t> shape, Loc loc, const Layout& layout, Element element)
    : device_(std::move(device)),
      stored_(std::move(components)),
      element_(std::move(element)),
      shape_(std::move(shape)),
      axes_(shape_.size()),
      loc_(loc) {
  if (element_.offsets.empty()) element_ = natural_element(stored_);
  check_shape(layout);
  std::vector<uint64_t> bytes = place_components(layout, place_elements(layout));
  memory_ = std::make_shared<Memory>(
      device_,
      std::make_shared<const Declared>(stored_, element_, shape_, layout, std::move(bytes)));
  settle();
}

void Storage::check_shape(const Layout& layout) const {
  const size_t rank = shape_.size();
  if (rank > Layout::max_axes)
    throw Error(loc_, "a field has at most 8 axes, here " + std::to_string(rank));
  for (int64_t n : shape_)
    if (n < 0)
      throw Error(loc_, "a field of shape " + shape_text(shape_) + ": an extent is negative");
  if (layout.level_count > Layout::max_levels)
    throw Error(loc_,
                "a layout has at most " + std::to_string(Layout::max_levels) + " levels of blocks");
  for (int k = 0; k < layout.level_count; k++) {
    const Layout::PerAxis& level = layout.levels[k];
    if (level.count != int(rank)) throw Error(loc_, numbers("blocks", level.count, rank));
    int64_t elements = 1;
    for (int axis = 0; axis < level.count; axis++) {
      if (level.n[axis] < 1)
        throw Error(loc_, "blocks of " + std::to_string(level.n[axis]) + " elements along axis " +
                              std::to_string(axis) + "; a block has at least 1");
      if (__builtin_mul_overflow(elements, level.n[axis], &elements) || elements > most_per_block)
        throw Error(loc_, "blocks of more than 2^30 elements");
      if (layout.in_morton_order && k + 1 == layout.level_count &&
          !std::has_single_bit(uint64_t(level.n[axis])))
        throw Error(loc_, "blocks in Morton order of " + std::to_string(level.n[axis]) +
                              " elements along axis " + std::to_string(axis) +
                              "; that takes powers of two");
    }
  }
  if (layout.in_morton_order && layout.level_count == 0)
    throw Error(loc_, "Morton order is an order inside blocks: blocked(8, 8).morton()");
  if (layout.components == Layout::Components::grouped && layout.level_count == 0)
    throw Error(loc_, "aosoa groups components inside blocks: aosoa(8)");
  if (layout.axes.count != 0 && layout.axes.count != int(rank))
    throw Error(loc_, numbers("an order", layout.axes.count, rank));
  uint32_t seen = 0;
  for (int k = 0; k < layout.axes.count; k++)
    if (layout.axes.n[k] >= 0 && layout.axes.n[k] < int(rank)) seen |= 1u << layout.axes.n[k];
  if (std::popcount(seen) != layout.axes.count)
    throw Error(
        loc_, "the order of a layout names each axis once, from 0 to " + std::to_string(rank - 1));
  if (layout.firsts.count != 0)
    expect_firsts({layout.firsts.n, size_t(layout.firsts.count)}, rank, loc_);
}

/// The fastest first.
std::vector<uint32_t> Storage::axes_by_speed(const Layout& layout) const {
  std::vector<uint32_t> axes;
  for (size_t k = shape_.size(); k-- > 0;)
    axes.push_back(layout.axes.count ? uint32_t(layout.axes.n[k]) : uint32_t(k));
  return axes;
}

/// Levels and strides; how many elements of a component there are, those that pad included.
int64_t Storage::place_elements(const Layout& layout) {
  const std::vector<uint32_t> axes = axes_by_speed(layout);
  std::vector<ir::Placement::Level> levels;  // innermost first
  int64_t unit = 1;
  auto add_level = [&](auto&& extent_of) {
    ir::Placement::Level level;
    for (uint32_t axis : axes) {
      level.extent[axis] = extent_of(axis);
      level.stride[axis] = uint32_t(unit);
      unit *= level.extent[axis];
      if (unit > most_per_block) throw Error(loc_, "blocks of more than 2^30 elements");
    }
    levels.push_back(level);
  };
  for (int k = layout.level_count; k-- > 0;) {
    const int64_t* extents = layout.levels[k].n;
    if (layout.in_morton_order && k + 1 == layout.level_count) {
      int64_t most = *std::max_element(extents, extents + shape_.size());
      for (int64_t n = 1; n < most; n *= 2)
        add_level([&](uint32_t axis) { return extents[axis] > n ? 2u : 1u; });
    } else {
      add_level([&](uint32_t axis) { return uint32_t(extents[axis]); });
    }
    if (k + 1 == layout.level_count && layout.components == Layout::Components::grouped)
      facts_.layout.group = uint32_t(unit);
  }
  facts_.layout.levels.assign(levels.rbegin(), levels.rend());

  bool empty = false, overflows = false;
  for (uint32_t axis : axes) {
    axes_[axis].extent = shape_[axis];
    if (layout.firsts.count) axes_[axis].first = layout.firsts.n[axis];
    axes_[axis].stride = unit;
    int64_t blocks = (shape_[axis] - 1) / block(axis) + 1;
    empty |= shape_[axis] == 0;
    overflows |= __builtin_mul_overflow(unit, std::max<int64_t>(blocks, 1), &unit);
    if (overflows) unit = 1;
  }
  if (!empty && (overflows || unit > INT64_MAX / 8))
    throw Error(loc_, "a field of shape " + shape_text(shape_) + " has more than 2^63 bytes");
  return empty ? 0 : unit;
}

std::vector<uint64_t> Storage::place_components(const Layout& layout, int64_t total) {
  using Components = Layout::Components;
  const bool single = stored_.size() == 1 && element_.bytes == width(0);
  ir::Placement& placement = facts_.layout;
  places_.resize(stored_.size());
  if (layout.components == Components::apart || single) {
    placement.group = 0;
    std::vector<uint64_t> each;
    for (uint32_t c = 0; c < stored_.size(); c++) {
      places_[c].allocation = c;
      each.push_back(uint64_t(total) * width(c));
    }
    return each;
  }
  int64_t bytes = 0, count = total;
  if (layout.components == Components::together) {
    placement.step = element_.bytes;
    bytes = element_.bytes;
    for (uint32_t c = 0; c < stored_.size(); c++) {
      if (element_.offsets[c] % width(c) || element_.bytes % width(c))
        throw Error(loc_, "an element of " + std::to_string(element_.bytes) +
                              " bytes has a component of " + std::to_string(width(c)) +
                              " bytes at byte " + std::to_string(element_.offsets[c]) +
                              ", not aligned: it cannot be laid out as aos");
      places_[c].offset = element_.offsets[c];
    }
  } else {
    int64_t align = 1;
    for (uint32_t c = 0; c < stored_.size(); c++) {
      int64_t w = width(c);
      align = std::max(align, w);
      places_[c].offset = (bytes + w - 1) / w * w;
      bytes = places_[c].offset + w * placement.group;
    }
    bytes = (bytes + align - 1) / align * align;
    if (bytes > INT32_MAX) throw Error(loc_, "blocks of more than 2^31 bytes");
    placement.group_bytes = uint32_t(bytes);
    count = total / placement.group;
  }
  int64_t all = 0;
  if (__builtin_mul_overflow(count, bytes, &all))
    throw Error(loc_, "a field of shape " + shape_text(shape_) + " has more than 2^63 bytes");
  return {uint64_t(all)};
}

/// Everything that follows from what is stored, axes, levels and places.
void Storage::settle() {
  settle_types_and_shape();
  for (uint32_t c = 0; c < places_.size(); c++)
    for (uint32_t k = 0; k < axes_.size(); k++)
      places_[c].strides[k] =
          (tree_ ? elements_->facts_ : facts_).layout.bytes(axes_[k].stride, width(c));
  if (tree_)
    settle_on_tree();
  else
    settle_in_array();
  settle_origins();
  facts_number_ = number_of(facts_);
}

void Storage::settle_origins() {
  for (Component& c : places_) {
    c.origin = c.offset;
    for (uint32_t k = 0; k < axes_.size(); k++)
      if (is_linear(k)) c.origin -= axes_[k].first * c.strides[k];
  }
}

void Storage::settle_types_and_shape() {
  components_.clear();
  facts_.encodings.clear();
  bool usual = true;
  for (const auto& [value, storage] : stored_) {
    components_.push_back({value, ir::preserves(value, storage)});
    facts_.encodings.push_back(ir::storage_type(storage));
    usual &= facts_.encodings.back() == ir::storage_type(value);
  }
  if (usual) facts_.encodings.clear();

  shape_.clear();
  for (const Axis& a : axes_) shape_.push_back(a.extent);
  size_ = 1;
  bool empty = false;
  for (int64_t n : shape_) empty |= n == 0;
  for (int64_t n : shape_)
    if (empty)
      size_ = 0;
    else if (__builtin_mul_overflow(size_, n, &size_))
      size_ = INT64_MAX;
}

void Storage::settle_in_array() {
  const uint32_t rank = uint32_t(axes_.size());
  ir::Placement& placement = facts_.layout;
  std::erase_if(placement.levels, [&](const ir::Placement::Level& l) {
    return std::ranges::all_of(l.extent, [](uint32_t n) { return n == 1; });
  });
  facts_.zero_based = true;
  placement.shifted = false;
  is_dense_ = placement.is_dense();
  int64_t dense = 1;
  for (uint32_t k = rank; k-- > 0;) {
    facts_.zero_based &= axes_[k].first == 0;
    placement.shifted |= origin(k) != 0;
    if (shape_[k] != 1) is_dense_ &= axes_[k].stride == dense;
    dense *= shape_[k];
  }
  placement.offsets.clear();
  if ((placement.step || placement.group) && places_.size() > 1)
    for (const Component& c : places_)
      placement.offsets.push_back(int32_t(c.offset - places_[0].offset));

  steps_ = 0;
  if (placement.step && placement.is_dense()) {
    steps_ = uint64_t(places_[0].offset);
    for (uint32_t k = 0; k < rank; k++)
      steps_ |= uint64_t(stride(0, k)) | uint64_t(axes_[k].first * stride(0, k));
  }

  // A component in groups has neighbours one element apart only inside them.
  facts_.contiguous = rank == 0;
  placement.fast = 0;
  for (uint32_t k = 0; k < rank && placement.is_dense(); k++) {
    if (axes_[rank - 1 - k].stride != 1) continue;
    facts_.contiguous = true;
    placement.fast = uint8_t(k);
    break;
  }
}

uint32_t Storage::width(uint32_t component) const {
  return ir::byte_size(stored_[component].storage);
}

}  // namespace quern::runtime

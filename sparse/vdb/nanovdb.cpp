// Files of NanoVDB's. Grids are made by its own converter from OpenVDB's. Those that are read are walked
// by its structures, with each offset checked, as its own accessors trust what a file says.
#define NANOVDB_USE_BLOSC
#define NANOVDB_USE_ZIP
#include <nanovdb/util/IO.h>
#include <nanovdb/util/OpenToNanoVDB.h>

#include <set>
#include <sstream>
#include <unordered_set>

#include "sparse/vdb/openvdb_grids.h"

namespace quern::detail::vdb {

namespace {

namespace nano = nanovdb;

[[noreturn]] void cut_off() { throw Refusal("it is damaged or cut off"); }

/// A grid in a file.
struct Part {
  std::string name;
  nano::GridType type;
  nano::io::Codec codec;
  uint64_t bytes;  ///< of the grid in memory
  std::span<const std::byte> packed;
};

/// Bytes one after the other.
class Cursor {
 public:
  explicit Cursor(std::span<const std::byte> bytes) : left_(bytes) {}
  std::span<const std::byte> take(uint64_t count) {
    if (count > left_.size()) cut_off();
    const auto taken = left_.first(size_t(count));
    left_ = left_.subspan(taken.size());
    return taken;
  }
  template <class T>
  T take() {
    T v;
    std::memcpy(static_cast<void*>(&v), take(sizeof v).data(), sizeof v);
    return v;
  }
  bool is_at_end() const { return left_.empty(); }

 private:
  std::span<const std::byte> left_;
};

std::vector<Part> parts_of(std::span<const std::byte> file) {
  std::vector<Part> parts;
  Cursor at(file);
  while (!at.is_at_end()) {
    const auto head = at.take<nano::io::Header>();
    if (head.magic != NANOVDB_MAGIC_NUMBER) cut_off();
    if (head.version.getMajor() != NANOVDB_MAJOR_VERSION_NUMBER)
      throw Refusal("it has NanoVDB's format " + std::to_string(head.version.getMajor()) +
                    "; format " + std::to_string(NANOVDB_MAJOR_VERSION_NUMBER) + " is read");
    std::vector<uint64_t> lengths;
    const size_t first = parts.size();
    for (int k = 0; k < head.gridCount; k++) {
      const auto meta = at.take<nano::io::MetaData>();
      const auto name = at.take(meta.nameSize);
      Part& part = parts.emplace_back();
      part.name.assign(reinterpret_cast<const char*>(name.data()), name.size());
      part.name.resize(std::min(part.name.find('\0'), part.name.size()));
      part.type = meta.gridType;
      part.codec = head.codec;
      part.bytes = meta.gridSize;
      lengths.push_back(meta.fileSize);
    }
    for (size_t k = first; k < parts.size(); k++) parts[k].packed = at.take(lengths[k - first]);
  }
  return parts;
}

/// The grid's bytes, where its structures may lie.
nano::HostBuffer unpacked(const Part& part) {
  constexpr uint64_t most_packed = 1100;  // no codec packs so many bytes into one
  const uint64_t most = part.codec == nano::io::Codec::NONE ? 1 : most_packed;
  if (part.bytes / most > part.packed.size() || part.bytes < sizeof(nano::GridData)) cut_off();
  auto buffer = nano::HostBuffer::create(part.bytes);
  uint8_t* to = buffer.data();
  uint64_t left = part.bytes;
  Cursor from(part.packed);
  if (part.codec == nano::io::Codec::NONE) {
    std::memcpy(to, from.take(left).data(), left);
  } else if (part.codec == nano::io::Codec::ZIP) {
    const auto packed = from.take(from.take<uint64_t>());
    uLongf size = left;
    if (uncompress(to, &size, reinterpret_cast<const Bytef*>(packed.data()), packed.size()) !=
            Z_OK ||
        size != left)
      cut_off();
  } else if (part.codec == nano::io::Codec::BLOSC) {
    while (left > 0) {
      const auto packed = from.take(from.take<uint64_t>());
      const uint64_t chunk = std::min<uint64_t>(left, nano::io::Internal::MAX_SIZE);
      size_t bytes = 0;
      if (blosc_cbuffer_validate(packed.data(), packed.size(), &bytes) != 0 || bytes != chunk ||
          blosc_decompress_ctx(packed.data(), to, chunk, 1) != int(chunk))
        cut_off();
      to += chunk;
      left -= chunk;
    }
  } else {
    throw Refusal("it is packed in a way that is not known");
  }
  return buffer;
}

Index index_of(const nano::Coord& c) { return {c[0], c[1], c[2]}; }

/// Goes through a grid's nodes, each of which is met once.
template <class BuildT>
class Walk {
 public:
  Walk(std::span<const uint8_t> bytes, Grid& grid, int64_t most_active)
      : bytes_(bytes), grid_(grid), maker_(grid, most_active) {}

  void all() {
    const uint64_t tree_at = sizeof(nano::GridData);
    const auto& tree = at<nano::TreeData<3>>(int64_t(tree_at));
    const int64_t root_at = moved(int64_t(tree_at), int64_t(tree.mNodeOffset[3]));
    const auto& root = at<RootData>(root_at);
    const auto* none = reinterpret_cast<const std::byte*>(&root.mBackground);
    grid_.background.assign(none, none + sizeof root.mBackground);
    std::set<Index> origins;
    for (uint32_t k = 0; k < root.mTableSize; k++) {
      const auto& tile = at<typename RootData::Tile>(
          moved(root_at, int64_t(sizeof(RootData) + k * sizeof(typename RootData::Tile))));
      const Index origin = index_of(tile.origin());
      if (!origins.insert(origin).second) cut_off();
      if (tile.child == 0)
        maker_.tile(origin, Upper::DIM, tile.value, tile.state != 0);
      else
        inner<Upper>(moved(root_at, tile.child), origin);
    }
  }

 private:
  using Leaf = nano::NanoLeaf<BuildT>;
  using Upper = nano::NanoUpper<BuildT>;
  using RootData = typename nano::NanoRoot<BuildT>::DataType;

  /// Of offsets in the buffer; each is judged by `at`.
  static int64_t moved(int64_t from, int64_t by) {
    int64_t to = 0;
    if (__builtin_add_overflow(from, by, &to)) cut_off();
    return to;
  }
  template <class T>
  const T& at(int64_t offset, uint64_t more = 0) const {
    if (offset < 0 || offset % NANOVDB_DATA_ALIGNMENT != 0 ||
        uint64_t(offset) + sizeof(T) + more > bytes_.size())
      cut_off();
    return *reinterpret_cast<const T*>(bytes_.data() + offset);
  }

  template <class T>
  const T& node(int64_t offset) {
    if (!met_.insert(offset).second) cut_off();
    return at<T>(offset);
  }

  template <class Node>
  void inner(int64_t offset, const Index& origin) {
    using Data = typename Node::DataType;
    using Child = typename Node::ChildNodeType;
    const auto& data = node<Data>(offset);
    constexpr int32_t children = 1 << Node::LOG2DIM;
    uint32_t n = 0;
    for (int32_t x = 0; x < children; x++)
      for (int32_t y = 0; y < children; y++)
        for (int32_t z = 0; z < children; z++, n++) {
          const int32_t size = Child::DIM;
          const Index place{origin[0] + x * size, origin[1] + y * size, origin[2] + z * size};
          if (!data.mChildMask.isOn(n))
            maker_.tile(place, size, data.mTable[n].value, data.mValueMask.isOn(n));
          else if constexpr (std::is_same_v<Child, Leaf>)
            leaf(moved(offset, data.mTable[n].child), place);
          else
            inner<Child>(moved(offset, data.mTable[n].child), place);
        }
  }
  void leaf(int64_t offset, const Index& origin) {
    using Data = typename Leaf::DataType;
    const auto& data = node<Data>(offset);
    if constexpr (std::is_same_v<BuildT, nano::FpN>) {
      const int log_bits = data.mFlags >> 5;
      if (log_bits > 4) cut_off();
      at<Data>(offset, uint64_t(64) << log_bits);
    }
    maker_.leaf(
        origin, [&](int n) { return data.getValue(uint32_t(n)); },
        [&](int n) { return data.mValueMask.isOn(uint32_t(n)); });
  }

  std::span<const uint8_t> bytes_;
  Grid& grid_;
  GridMaker maker_;
  std::unordered_set<int64_t> met_;  ///< where nodes are
};

/// How NanoVDB keeps elements of a type that Quern reads; `name` as in element_types.
template <class F>
bool for_build(nano::GridType type, F&& as) {
  switch (type) {
    case nano::GridType::Boolean: return as(bool(), "bool"), true;
    case nano::GridType::Mask: return as(nano::ValueMask(), "bool"), true;
    case nano::GridType::Int32: return as(int32_t(), "int32"), true;
    case nano::GridType::Int64: return as(int64_t(), "int64"), true;
    case nano::GridType::Float: return as(float(), "float"), true;
    case nano::GridType::Fp4: return as(nano::Fp4(), "float"), true;
    case nano::GridType::Fp8: return as(nano::Fp8(), "float"), true;
    case nano::GridType::Fp16: return as(nano::Fp16(), "float"), true;
    case nano::GridType::FpN: return as(nano::FpN(), "float"), true;
    case nano::GridType::Double: return as(double(), "double"), true;
    case nano::GridType::Vec3f: return as(nano::Vec3f(), "vec3s"), true;
    case nano::GridType::Vec3d: return as(nano::Vec3d(), "vec3d"), true;
    default: return false;
  }
}

GridClass class_of(nano::GridClass c) {
  switch (c) {
    case nano::GridClass::LevelSet: return GridClass::level_set;
    case nano::GridClass::FogVolume: return GridClass::fog_volume;
    case nano::GridClass::Staggered: return GridClass::staggered;
    default: return GridClass::unknown;
  }
}

GridTransform transform_of(const nano::Map& map) {
  GridTransform t;
  for (size_t k = 0; k < 3; k++)
    for (size_t axis = 0; axis < 3; axis++) {
      t.step[k][axis] = map.mMatD[3 * axis + k];
      t.origin[axis] = map.mVecD[axis];
    }
  return t;
}

template <class V>
nano::GridHandle<> converted(const openvdb::GridBase& grid) {
  using GridT = typename openvdb::BoolGrid::ValueConverter<V>::Type;
  using NanoT = typename nano::OpenToNanoType<V>::Type;
  return nano::OpenToNanoVDB<V, NanoT>()(static_cast<const GridT&>(grid));
}

}  // namespace

bool nanovdb_is_here() { return true; }

std::vector<std::byte> encode_nanovdb(const std::vector<Grid>& grids) {
  std::vector<nano::GridHandle<>> handles;
  nano::io::Segment segment(nano::io::Codec::NONE);
  for (const Grid& grid : grids) {
    const auto made = openvdb_grid(grid);
    handles.push_back(for_grid_of(grid.type, [&]<class GridT>(GridT*) -> nano::GridHandle<> {
      // Of vectors the converter takes those of float.
      if constexpr (std::is_same_v<GridT, openvdb::Vec3IGrid> ||
                    std::is_same_v<GridT, openvdb::Vec3DGrid>)
        throw Refusal("'" + grid.name + "' has elements of type " + element_types[grid.type].name +
                      ", which are not written for NanoVDB");
      else
        return converted<typename GridT::ValueType>(*made);
    }));
    segment.add(handles.back());
    segment.meta.back().fileSize = handles.back().size();
  }
  std::ostringstream out;
  out.exceptions(std::ios_base::failbit | std::ios_base::badbit);
  segment.write(out);
  for (const auto& handle : handles)
    out.write(reinterpret_cast<const char*>(handle.data()), std::streamsize(handle.size()));
  const std::string_view bytes = out.view();
  const auto* first = reinterpret_cast<const std::byte*>(bytes.data());
  return {first, first + bytes.size()};
}

std::vector<Entry> list_nanovdb(std::span<const std::byte> file) {
  std::vector<Entry> entries;
  for (const Part& part : parts_of(file)) {
    Entry& entry = entries.emplace_back(part.name, "of a type of NanoVDB's that is not read");
    for_build(part.type, [&](auto, const char* name) { entry.type = name; });
  }
  return entries;
}

Grid decode_nanovdb(std::span<const std::byte> file, size_t number, size_t type,
                    int64_t most_active) {
  const Part part = parts_of(file).at(number);
  nano::HostBuffer buffer = unpacked(part);
  const auto& data = *reinterpret_cast<const nano::GridData*>(buffer.data());
  if (data.mMagic != NANOVDB_MAGIC_NUMBER || data.mGridType != part.type) cut_off();
  Grid grid;
  grid.name = part.name;
  grid.type = type;
  grid.info = {transform_of(data.mMap), class_of(data.mGridClass)};
  for_build(part.type, [&]<class BuildT>(BuildT, const char*) {
    Walk<BuildT>({buffer.data(), buffer.size()}, grid, most_active).all();
  });
  return grid;
}

}  // namespace quern::detail::vdb

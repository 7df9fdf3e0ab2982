// Files of OpenVDB's, by its own library, from and to memory: then whoever writes files sees each error,
// and what is cut off is an error, which the library's own streams do not tell.
#include <openvdb/io/Archive.h>
#include <openvdb/io/GridDescriptor.h>
#include <openvdb/tools/SignedFloodFill.h>

#include <istream>
#include <sstream>
#include <streambuf>

#include "sparse/vdb/openvdb_grids.h"

namespace quern::detail::vdb {

namespace {

namespace io = openvdb::io;

/// Bytes that are there already.
class Memory final : public std::streambuf {
 public:
  explicit Memory(std::span<const std::byte> bytes) {
    char* first = const_cast<char*>(reinterpret_cast<const char*>(bytes.data()));
    setg(first, first, first + bytes.size());
  }

 private:
  pos_type seekoff(off_type by, std::ios_base::seekdir from, std::ios_base::openmode) override {
    const off_type at = from == std::ios_base::beg   ? 0
                        : from == std::ios_base::cur ? gptr() - eback()
                                                     : egptr() - eback();
    return seekpos(at + by, std::ios_base::in);
  }
  pos_type seekpos(pos_type to, std::ios_base::openmode) override {
    if (to < 0 || to > egptr() - eback()) return pos_type(off_type(-1));
    setg(eback(), eback() + off_type(to), egptr());
    return to;
  }
};

class Writer : public io::Archive {
 public:
  void to(std::ostream& out, const openvdb::GridCPtrVec& grids) const {
    write(out, grids, /*seekable=*/true);
  }
};

/// Goes through a file as openvdb::io::Stream does, but reads no grids but those that it is asked for.
class Reader : public io::Archive {
 public:
  explicit Reader(std::span<const std::byte> file) : memory_(file), in_(&memory_) {
    openvdb::initialize();
    in_.exceptions(std::ios_base::failbit | std::ios_base::badbit);
    readHeader(in_);
    io::setStreamMetadataPtr(in_, metadata_, /*transfer=*/false);
    io::setVersion(in_, libraryVersion(), fileVersion());
    io::setDataCompression(in_, compression());
    openvdb::MetaMap().readMeta(in_);
    count_ = readGridCount(in_);
  }

  /// Calls visit(descriptor, empty grid) for each grid; where it yields true, the grid is read.
  template <class F>
  void each(F&& visit) {
    for (int32_t k = 0; k < count_; k++) {
      io::GridDescriptor descriptor;
      const openvdb::GridBase::Ptr grid = descriptor.read(in_);
      const bool is_wanted = visit(descriptor, grid);
      if (is_wanted || descriptor.getEndPos() <= 0) {
        grid->setSaveFloatAsHalf(descriptor.saveFloatAsHalf());
        readGrid(grid, descriptor, in_);
      }
      if (descriptor.getEndPos() > 0) descriptor.seekToEnd(in_);
    }
  }
  using io::Archive::connectInstance;

 private:
  Memory memory_;
  io::StreamMetadata::Ptr metadata_ = std::make_shared<io::StreamMetadata>();  ///< the stream's
  std::istream in_;
  int32_t count_ = 0;
};

template <class GridT>
constexpr bool is_of_floats = std::is_floating_point_v<typename GridT::ValueType>;

openvdb::GridClass class_of(GridClass c) {
  switch (c) {
    case GridClass::level_set: return openvdb::GRID_LEVEL_SET;
    case GridClass::fog_volume: return openvdb::GRID_FOG_VOLUME;
    case GridClass::staggered: return openvdb::GRID_STAGGERED;
    default: return openvdb::GRID_UNKNOWN;
  }
}
GridClass class_of(openvdb::GridClass c) {
  switch (c) {
    case openvdb::GRID_LEVEL_SET: return GridClass::level_set;
    case openvdb::GRID_FOG_VOLUME: return GridClass::fog_volume;
    case openvdb::GRID_STAGGERED: return GridClass::staggered;
    default: return GridClass::unknown;
  }
}

openvdb::math::Transform::Ptr transform_of(const GridTransform& t) {
  openvdb::Mat4d m = openvdb::Mat4d::identity();  // of rows that are multiplied from the left
  for (int k = 0; k < 3; k++)
    for (int axis = 0; axis < 3; axis++) {
      m(k, axis) = t.step[size_t(k)][size_t(axis)];
      m(3, axis) = t.origin[size_t(axis)];
    }
  return openvdb::math::Transform::createLinearTransform(m);
}
GridTransform transform_of(const Grid& grid, const openvdb::math::Transform& t) {
  if (!t.isLinear()) throw Refusal("'" + grid.name + "' has a transform that is not linear");
  const openvdb::Mat4d m = t.baseMap()->getAffineMap()->getMat4();
  GridTransform out;
  for (int k = 0; k < 3; k++)
    for (int axis = 0; axis < 3; axis++) {
      out.step[size_t(k)][size_t(axis)] = m(k, axis);
      out.origin[size_t(axis)] = m(3, axis);
    }
  return out;
}

/// What is inside of a level set gets the negative background.
template <class GridT>
void fill_inside(GridT& made, const Grid& grid) {
  if constexpr (is_of_floats<GridT>) {
    if (!(made.background() > 0))
      throw Refusal("the level set '" + grid.name + "' has the background " +
                    std::to_string(made.background()) +
                    "; it is how far from the surface others are outside, and above 0");
    openvdb::tools::signedFloodFill(made.tree());
  } else {
    throw Refusal("the level set '" + grid.name + "' has elements of type " +
                  element_types[grid.type].name + "; they are float or double");
  }
}

template <class GridT>
typename GridT::Ptr make(const Grid& grid) {
  using V = typename GridT::ValueType;
  const auto value_at = [](const std::byte* bytes) {
    V v;
    std::memcpy(&v, bytes, sizeof v);
    return v;
  };
  // The library makes the grid: a constructor here would compile the whole of its trees again.
  auto made = openvdb::gridPtrCast<GridT>(openvdb::GridBase::createGrid(GridT::gridType()));
  // From 0 to what equals it nothing is set: -0 takes the way by 1.
  for (const V& value : {V(1), value_at(grid.background.data())})
    made->tree().root().setBackground(value, /*updateChildNodes=*/false);
  const std::byte* next = grid.values.data();
  for (size_t k = 0; k < grid.origins.size(); k++) {
    const Index& o = grid.origins[k];
    auto* leaf = made->tree().touchLeaf(openvdb::Coord(o[0], o[1], o[2]));
    for (int n = 0; n < leaf_elements; n++) {
      if (!(grid.masks[k * leaf_words + size_t(n) / 32] >> n % 32 & 1)) continue;
      leaf->setValueOn(openvdb::Index(n), value_at(next));
      next += sizeof(V);
    }
  }
  if (grid.info.grid_class == GridClass::level_set) fill_inside(*made, grid);
  return made;
}

Index index_of(const openvdb::Coord& c) { return {c.x(), c.y(), c.z()}; }

template <class TreeT>
void take(const TreeT& tree, Grid& grid, int64_t most_active) {
  const auto none = tree.background();
  const auto* from = reinterpret_cast<const std::byte*>(&none);
  grid.background.assign(from, from + sizeof none);
  GridMaker maker(grid, most_active);
  const auto take_tiles = [&](auto at, bool active) {
    at.setMaxDepth(decltype(at)::LEAF_DEPTH - 1);
    for (; at; ++at) {
      openvdb::CoordBBox box;
      at.getBoundingBox(box);
      maker.tile(index_of(box.min()), box.dim().x(), at.getValue(), active);
    }
  };
  take_tiles(tree.cbeginValueOn(), true);
  take_tiles(tree.cbeginValueOff(), false);
  for (auto leaf = tree.cbeginLeaf(); leaf; ++leaf)
    maker.leaf(
        index_of(leaf->origin()), [&](int n) { return leaf->getValue(openvdb::Index(n)); },
        [&](int n) { return leaf->isValueOn(openvdb::Index(n)); });
}

/// As in element_types. A mask is bools of which the active ones are true.
std::string type_of(const openvdb::GridBase& grid) {
  const std::string type = grid.valueType();
  if (grid.isType<openvdb::MaskGrid>()) return "bool";
  for (size_t k = 0; k < std::size(element_types); k++)
    if (type == element_types[k].name)
      return for_grid_of(k, [&]<class GridT>(GridT*) { return grid.isType<GridT>(); })
                 ? type
                 : grid.type();
  return type;
}

}  // namespace

bool openvdb_is_here() { return true; }

openvdb::GridBase::Ptr openvdb_grid(const Grid& grid) {
  openvdb::initialize();
  const auto made = for_grid_of(
      grid.type, [&]<class GridT>(GridT*) -> openvdb::GridBase::Ptr { return make<GridT>(grid); });
  made->setName(grid.name);
  made->setCreator("Quern");
  made->setGridClass(class_of(grid.info.grid_class));
  made->setTransform(transform_of(grid.info.transform));
  return made;
}

std::vector<std::byte> encode_openvdb(const std::vector<Grid>& grids) {
  openvdb::GridCPtrVec all;
  for (const Grid& grid : grids) all.push_back(openvdb_grid(grid));
  std::ostringstream out;
  out.exceptions(std::ios_base::failbit | std::ios_base::badbit);
  Writer().to(out, all);
  const std::string_view bytes = out.view();
  const auto* first = reinterpret_cast<const std::byte*>(bytes.data());
  return {first, first + bytes.size()};
}

std::vector<Entry> list_openvdb(std::span<const std::byte> file) {
  std::vector<Entry> entries;
  std::vector<std::string> unique;
  std::map<std::string, int> counts;
  Reader(file).each([&](const io::GridDescriptor& d, const openvdb::GridBase::Ptr& grid) {
    entries.push_back({d.gridName(), type_of(*grid)});
    unique.push_back(io::GridDescriptor::nameAsString(d.uniqueName()));
    counts[d.gridName()]++;
    return false;
  });
  for (size_t k = 0; k < entries.size(); k++)
    if (counts[entries[k].name] > 1) entries[k].name = unique[k];
  return entries;
}

Grid decode_openvdb(std::span<const std::byte> file, size_t number, size_t type,
                    int64_t most_active) {
  // A grid may share the tree of another one: read both then.
  std::vector<io::GridDescriptor> descriptors;
  Reader(file).each([&](const io::GridDescriptor& d, const openvdb::GridBase::Ptr&) {
    descriptors.push_back(d);
    return false;
  });
  const io::GridDescriptor& wanted = descriptors.at(number);
  std::map<openvdb::Name, openvdb::GridBase::Ptr> read;
  Reader reader(file);
  reader.each([&](const io::GridDescriptor& d, const openvdb::GridBase::Ptr& grid) {
    if (d.uniqueName() != wanted.uniqueName() &&
        (!wanted.isInstance() || d.uniqueName() != wanted.instanceParentName()))
      return false;
    read[d.uniqueName()] = grid;
    return true;
  });
  reader.connectInstance(wanted, read);
  const openvdb::GridBase& found = *read.at(wanted.uniqueName());

  Grid grid;
  grid.name = io::GridDescriptor::nameAsString(wanted.uniqueName());
  grid.type = type;
  grid.info = {transform_of(grid, found.transform()), class_of(found.getGridClass())};
  if (found.isType<openvdb::MaskGrid>())
    take(static_cast<const openvdb::MaskGrid&>(found).tree(), grid, most_active);
  else
    for_grid_of(type, [&]<class GridT>(GridT*) {
      take(static_cast<const GridT&>(found).tree(), grid, most_active);
    });
  return grid;
}

}  // namespace quern::detail::vdb

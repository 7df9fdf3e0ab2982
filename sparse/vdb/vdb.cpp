// Grids of files from fields on trees, and back. A tree of OpenVDB's levels, whose cells are the leaves of
// a file, has what is active and what fields hold there: the operations on trees bring it from and to
// others.
#include "quern/sparse/vdb.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "dsl/files/bytes.h"
#include "dsl/recording.h"
#include "quern/ir/trees.h"
#include "sparse/files/cells.h"
#include "sparse/vdb/grid.h"

namespace quern {

bool has_openvdb() { return detail::vdb::openvdb_is_here(); }
bool has_nanovdb() { return detail::vdb::nanovdb_is_here(); }

namespace detail {

struct VdbFileData {
  std::string path;
  std::shared_ptr<runtime::Device> device;
  std::vector<std::byte> bytes;
  VdbFormat format;
  std::vector<vdb::Entry> entries;
};

namespace {

constexpr const char* writing = "writing grids";

[[noreturn]] void refuse(const char* verb, const std::string& path, const std::string& why,
                         Loc loc) {
  throw Error(loc, std::string("cannot ") + verb + " '" + path + "': " + why);
}

/// Calls `f`. What a library of files throws becomes an Error.
template <class F>
auto from_library(const char* verb, const std::string& path, Loc loc, F&& f) {
  try {
    return f();
  } catch (const Error&) {
    throw;
  } catch (const std::ios_base::failure&) {
    refuse(verb, path, "it is damaged or cut off", loc);
  } catch (const std::bad_alloc&) {
    refuse(verb, path, "it wants more memory than there is", loc);
  } catch (const std::exception& e) {
    refuse(verb, path, e.what(), loc);
  }
}

std::shared_ptr<TreeData> make_vdb_tree(std::shared_ptr<runtime::Device> device, Loc loc) {
  const TreeLevel levels[] = {hash(), pointer(32), pointer(16), bitmasked(8)};
  return make_tree(std::move(device), 3, levels, {}, {}, 0, loc);
}

/// Calls `as` with an element of the type.
template <class F>
auto for_element(GridType type, F&& as) {
  switch (type) {
    case GridType::boolean: return as(bool());
    case GridType::int32: return as(int32_t());
    case GridType::int64: return as(int64_t());
    case GridType::float32: return as(float());
    case GridType::float64: return as(double());
    case GridType::vec3i: return as(Vec<int, 3>());
    case GridType::vec3f: return as(Vec<float, 3>());
    default: return as(Vec<double, 3>());
  }
}

/// Components that lie apart, side by side, or back.
void interleave(std::byte* whole, std::byte* part, size_t bytes, size_t component, size_t count,
                size_t elements, bool back) {
  for (size_t k = 0; k < elements; k++) {
    std::byte* in_whole = whole + (k * count + component) * bytes;
    std::byte* in_part = part + k * bytes;
    std::memcpy(back ? in_part : in_whole, back ? in_whole : in_part, bytes);
  }
}

/// The field's grid, whose tree has OpenVDB's levels.
vdb::Grid grid_of(TreeData& tree, const NamedGrid& named, const TreeData::Elements& known,
                  Loc loc) {
  const Operation operation(writing, tree, loc);
  TreeContent c;
  read_cells(tree, c, loc);
  vdb::Grid grid;
  grid.name = named.name;
  grid.type = size_t(named.type);
  grid.info = named.info;
  grid.background = known.background;
  for (size_t k = 0; k < c.places.size(); k += 3) {
    vdb::Index& origin = grid.origins.emplace_back();
    for (size_t axis = 0; axis < 3; axis++)
      origin[axis] = int32_t(c.places[k + axis] + c.firsts[axis]);
  }
  grid.masks = c.activity;
  const CellActivity at = activity_on_device(tree, c, loc);
  const auto elements = known.storage.lock();
  const size_t count = elements->components().size();
  grid.values.resize(size_t(c.active) * vdb::element_types[grid.type].bytes);
  for (size_t k = 0; k < count; k++) {
    std::vector<std::byte> part = read_component(tree, *elements, uint32_t(k), at, c.active, loc);
    interleave(grid.values.data(), part.data(), vdb::element_types[grid.type].bytes / count, k,
               count, size_t(c.active), false);
  }
  return grid;
}

vdb::Grid grid_of(const NamedGrid& named, Loc loc) {
  const auto tree = tree_of(named.object.get());
  if (!tree) throw Error(loc, "'" + named.name + "' is on no tree; grids are fields on trees");
  whole_field(writing, *tree, named.object.get(), named.name, loc);
  const auto levelled = make_vdb_tree(tree->device, loc);
  merge(*levelled, *tree, loc);
  return for_element(named.type, [&]<class T>(T) {
    const Field<T, 3> field = copied(levelled, shared<T, 3>(named.object.get()), {}, loc);
    return grid_of(*levelled, named,
                   whole_field(writing, *levelled, field.object(), named.name, loc), loc);
  });
}

/// What is active in the grid, on a tree, and the grid's leaves in the order of the tree's list.
struct GridOnTree {
  std::shared_ptr<TreeData> tree;
  TreeContent content;
  std::vector<size_t> leaves;
};
GridOnTree put_on_tree(const vdb::Grid& grid, const VdbFileData& file, Loc loc) {
  GridOnTree out{make_vdb_tree(file.device, loc), {}, {}};
  TreeData& tree = *out.tree;
  const Operation operation("reading a grid", tree, loc);
  TreeContent in_file;
  in_file.shape = tree.shape, in_file.firsts = tree.firsts, in_file.levels = tree.levels;
  in_file.children = tree.pools.back().children;
  in_file.activity = grid.masks;
  for (const vdb::Index& origin : grid.origins)
    for (size_t axis = 0; axis < 3; axis++)
      in_file.places.push_back(origin[axis] - tree.firsts[axis]);
  activate_cells(tree, in_file, loc);
  read_cells(tree, out.content, loc);

  using Leaf = std::pair<std::array<int64_t, 3>, size_t>;
  std::vector<Leaf> leaves;
  for (size_t k = 0; k < grid.origins.size(); k++)
    leaves.push_back(
        {{in_file.places[3 * k], in_file.places[3 * k + 1], in_file.places[3 * k + 2]}, k});
  std::ranges::sort(leaves);
  const TreeContent& c = out.content;
  bool same = c.cells() == int64_t(leaves.size());
  for (size_t k = 0; k < size_t(c.cells()) && same; k++) {
    const std::array<int64_t, 3> place{c.places[3 * k], c.places[3 * k + 1], c.places[3 * k + 2]};
    const auto found = std::ranges::lower_bound(leaves, place, {}, &Leaf::first);
    same = found != leaves.end() && found->first == place &&
           std::equal(c.activity.begin() + int64_t(k) * vdb::leaf_words,
                      c.activity.begin() + int64_t(k + 1) * vdb::leaf_words,
                      grid.masks.begin() + int64_t(found->second) * vdb::leaf_words);
    if (same) out.leaves.push_back(found->second);
  }
  if (!same)
    refuse("read", file.path,
           "'" + grid.name +
               "' has active elements at indices outside of -2^30 to 2^30 - 2, or is damaged",
           loc);
  return out;
}

/// The grid's values in the order of the tree's list.
std::vector<std::byte> in_order(const vdb::Grid& grid, const GridOnTree& at) {
  const size_t bytes = vdb::element_types[grid.type].bytes;
  std::vector<size_t> starts{0};
  for (size_t k = 0; k < grid.origins.size(); k++) {
    size_t count = 0;
    for (size_t word = 0; word < vdb::leaf_words; word++)
      count += size_t(std::popcount(grid.masks[k * vdb::leaf_words + word]));
    starts.push_back(starts.back() + count * bytes);
  }
  std::vector<std::byte> values;
  values.reserve(grid.values.size());
  for (const size_t leaf : at.leaves)
    values.insert(values.end(), grid.values.begin() + int64_t(starts[leaf]),
                  grid.values.begin() + int64_t(starts[leaf + 1]));
  return values;
}

}  // namespace

void write_grids(const std::string& path, VdbFormat format, std::span<const NamedGrid> grids,
                 Loc loc) {
  expect_no_recording(writing, loc);
  std::set<std::string> names;
  std::vector<vdb::Grid> all;
  for (const NamedGrid& named : grids) {
    if (!names.insert(named.name).second)
      throw Error(loc, "two grids are called '" + named.name + "'");
    all.push_back(grid_of(named, loc));
  }
  const std::vector<std::byte> file = from_library("write", path, loc, [&] {
    return format == VdbFormat::openvdb ? vdb::encode_openvdb(all) : vdb::encode_nanovdb(all);
  });
  write_bytes(path, {file}, loc);
}

std::shared_ptr<VdbFileData> read_vdb(DeviceObject* device, const std::string& path, Loc loc) {
  expect_no_recording("reading grids", loc);
  auto file = std::make_shared<VdbFileData>();
  file->path = path;
  file->device = device->device;
  file->bytes = read_bytes(path, loc);
  const auto begins = [&](const void* magic) {
    return file->bytes.size() >= 8 && std::memcmp(file->bytes.data(), magic, 8) == 0;
  };
  constexpr char openvdb[] = " BDV\0\0\0";  // the string's end is the eighth byte
  const bool is_nano = begins("NanoVDB0");
  if (!is_nano && !begins(openvdb))
    refuse("read", path, "it is no file of OpenVDB's or NanoVDB's", loc);
  file->format = is_nano ? VdbFormat::nanovdb : VdbFormat::openvdb;
  file->entries = from_library("read", path, loc, [&] {
    return is_nano ? vdb::list_nanovdb(file->bytes) : vdb::list_openvdb(file->bytes);
  });
  return file;
}

std::vector<std::string> names_in(const VdbFileData& file) {
  std::vector<std::string> names;
  for (const vdb::Entry& entry : file.entries) names.push_back(entry.name);
  return names;
}

VdbGridData grid_in(const VdbFileData& file, const std::string& name, GridType grid_type,
                    FieldType type, int64_t most_active, Loc loc) {
  expect_no_recording("reading a grid", loc);
  const auto found = std::ranges::find(file.entries, name, &vdb::Entry::name);
  if (found == file.entries.end()) {
    std::string all;
    for (const std::string& one : names_in(file)) all += (all.empty() ? "'" : ", '") + one + "'";
    refuse("read", file.path,
           "it has no grid '" + name + "'; it has " + (all.empty() ? "none" : all), loc);
  }
  const std::string wanted = vdb::element_types[size_t(grid_type)].name;
  if (found->type != wanted)
    refuse(
        "read", file.path,
        "elements of '" + name + "' are " + found->type + " where those of the field are " + wanted,
        loc);
  const size_t number = size_t(found - file.entries.begin());
  const vdb::Grid grid = from_library("read", file.path, loc, [&] {
    return file.format == VdbFormat::nanovdb
               ? vdb::decode_nanovdb(file.bytes, number, size_t(grid_type), most_active)
               : vdb::decode_openvdb(file.bytes, number, size_t(grid_type), most_active);
  });

  GridOnTree at = put_on_tree(grid, file, loc);
  TreeData& tree = *at.tree;
  const Operation operation("reading a grid", tree, loc);
  Ref<FieldObject> field(make_tree_field(at.tree, type, {}, grid.background.data(), loc));
  const auto elements = field.get()->storage->tree_part(ir::tree::elements, loc);
  const CellActivity activity = activity_on_device(tree, at.content, loc);
  std::vector<std::byte> values = in_order(grid, at);
  const size_t count = elements->components().size(), active = size_t(at.content.active),
               bytes = vdb::element_types[grid.type].bytes / count;
  for (size_t k = 0; k < count; k++) {
    std::vector<std::byte> part(active * bytes);
    interleave(values.data(), part.data(), bytes, k, count, active, true);
    write_component(tree, *elements, uint32_t(k), activity, at.content.active, part, loc);
  }
  return {at.tree, std::move(field), grid.info, grid.dropped};
}

}  // namespace detail
}  // namespace quern

// Trees to and from files.
#include <algorithm>
#include <cstring>
#include <set>

#include "dsl/files/bytes.h"
#include "dsl/recording.h"
#include "quern/ir/trees.h"
#include "quern/sparse/files.h"
#include "sparse/files/cells.h"

namespace quern::detail {

struct TreeFileData {
  std::vector<std::byte> bytes;  ///< of the file, among which the content's values are
  TreeContent content;
  /// As the file says it; whoever reads the file has copies, so that nothing changes it.
  std::shared_ptr<TreeData> tree;
  CellActivity activity;  ///< of its cells
  std::string path;
};

namespace {

[[noreturn]] void refuse_file(const std::string& path, const std::string& why, Loc loc) {
  throw Error(loc, "cannot read '" + path + "': " + why);
}

}  // namespace

void write_tree(const std::string& path, TreeData& tree, std::span<const NamedField> fields,
                Loc loc) {
  const Operation operation("write_tree", tree, loc);
  std::vector<TreeData::Elements> known;
  std::set<std::string> names;
  for (const NamedField& field : fields) {
    known.push_back(whole_field("write_tree", tree, field.object.get(), field.name, loc));
    if (!names.insert(field.name).second)
      throw Error(loc, "write_tree is given two fields called '" + field.name + "'");
  }
  TreeContent c;
  read_cells(tree, c, loc);
  const CellActivity at = activity_on_device(tree, c, loc);

  std::vector<std::vector<std::byte>> values;
  for (size_t k = 0; k < fields.size(); k++) {
    const auto elements = known[k].storage.lock();
    TreeFileField& field = c.fields.emplace_back();
    field.name = fields[k].name;
    for (uint32_t component = 0; component < elements->components().size(); component++) {
      const ir::Type type = elements->components()[component].type;
      const size_t bytes = ir::byte_size(ir::storage_type(type));
      const auto none = known[k].background.begin() + known[k].offsets[component];
      field.background.insert(field.background.end(), none, none + int64_t(bytes));
      field.components.push_back(type);
      field.values.emplace_back(
          values.emplace_back(read_component(tree, *elements, component, at, c.active, loc)));
    }
  }
  const std::vector<std::byte> file = encoded(c);
  write_bytes(path, {file}, loc);
}

std::shared_ptr<TreeFileData> read_tree(DeviceObject* device, int rank, const std::string& path,
                                        Loc loc) {
  expect_no_recording("reading a tree", loc);
  auto file = std::make_shared<TreeFileData>();
  file->path = path;
  file->bytes = read_bytes(path, loc);
  file->content = decoded(file->bytes, rank, path, loc);
  const TreeContent& c = file->content;
  try {
    file->tree = make_tree(device->device, rank, c.levels, c.shape, c.firsts, 0, loc);
  } catch (const Error& e) {
    refuse_file(path, e.message(), loc);
  }
  TreeData& tree = *file->tree;
  const Operation operation("read_tree", tree, loc);
  if (c.children != tree.pools.back().children)
    refuse_file(path, other_children(tree.pools.back().children, c), loc);
  file->activity = activity_on_device(tree, c, loc);
  activate_cells(tree, c, loc);
  // Values go to the cells of the tree's list, which must be the file's, and active as there.
  if (!has_cells(tree, c, loc)) refuse_file(path, other_cells, loc);
  return file;
}

std::shared_ptr<TreeData> tree_in(const TreeFileData& file, Loc loc) {
  return copy_tree(*file.tree, loc);
}

std::vector<std::string> names_in(const TreeFileData& file) {
  std::vector<std::string> names;
  for (const TreeFileField& field : file.content.fields) names.push_back(field.name);
  return names;
}

FieldObject* field_in(const TreeFileData& file, const std::string& name, FieldType type, Loc loc) {
  const auto found = std::ranges::find(file.content.fields, name, &TreeFileField::name);
  if (found == file.content.fields.end()) {
    std::string all;
    for (const std::string& one : names_in(file)) all += (all.empty() ? "'" : ", '") + one + "'";
    refuse_file(file.path, "it has no field '" + name + "'; it has " + (all.empty() ? "none" : all),
                loc);
  }
  const std::vector<ir::Storage> wanted = stored(type);
  const auto text = [](const auto& types, auto&& type_of) {
    std::string all;
    for (const auto& one : types)
      all += (all.empty() ? "" : ", ") + std::string(ir::name(type_of(one)));
    return "(" + all + ")";
  };
  const std::string in_file = text(found->components, [](ir::Type t) { return t; });
  const std::string asked = text(wanted, [](const ir::Storage& s) { return s.value; });
  if (in_file != asked)
    refuse_file(file.path,
                "elements of '" + name + "' consist of " + in_file +
                    " where those of the field consist of " + asked,
                loc);

  const Operation operation("reading a field on a tree", *file.tree, loc);
  const std::vector<uint32_t> offsets(type.element.offsets,
                                      type.element.offsets + type.element.count);
  std::vector<std::byte> none(type.element.bytes);
  size_t at = 0;
  for (size_t k = 0; k < offsets.size(); k++) {
    const size_t bytes = ir::byte_size(wanted[k].storage);
    std::memcpy(none.data() + offsets[k], found->background.data() + at, bytes);
    at += bytes;
  }
  auto field = std::unique_ptr<FieldObject, void (*)(FieldObject*)>(
      make_tree_field(file.tree, type, {}, none.data(), loc), release);
  const auto elements = field->storage->tree_part(ir::tree::elements, loc);
  for (uint32_t c = 0; c < wanted.size(); c++)
    write_component(*file.tree, *elements, c, file.activity, file.content.active, found->values[c],
                    loc);
  return field.release();
}

}  // namespace quern::detail

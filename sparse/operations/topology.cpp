#include "sparse/operations/topology.h"

#include <cstring>

#include "quern/algorithms.h"
#include "quern/ir/trees.h"

namespace quern::detail {

namespace {

/// So many elements of a tree without an end are made dense.
constexpr double most_dense = double(int64_t(1) << 40);

}  // namespace

std::shared_ptr<Storage> topology_of(TreeData& tree) {
  auto none =
      std::make_shared<Storage>(tree.device, std::vector<ir::Storage>{{ir::Type::u8, ir::Type::u8}},
                                std::vector<int64_t>{0}, tree.loc);
  const TreeData::Elementwise elements = tree.elements();
  return Storage::on_tree(tree.shared_from_this(), std::move(none), elements.layout, elements.shape,
                          elements.firsts, tree.loc);
}

FieldObject* topology_beside(TreeData& tree, FieldObject* field, Loc loc) {
  const Storage& like = *field->storage;
  auto object = std::make_unique<FieldObject>();
  object->type = with_rank(tree, [](auto n) { return Topology<n>::type(); });
  object->storage = topology_of(tree);
  std::vector<int64_t> firsts;
  bool moved = false;
  for (uint32_t axis = 0; axis < uint32_t(tree.rank); axis++) {
    const int64_t extent = like.shape()[axis];
    const int64_t from = like.first(axis) + like.origin(axis) + tree.firsts[axis];
    if (extent != tree.shape[axis])
      object->storage = object->storage->slice(axis, from, from + extent, 1, loc);
    firsts.push_back(like.first(axis));
    moved |= object->storage->first(axis) != firsts.back();
  }
  if (moved) object->storage = object->storage->rebased(firsts, loc);
  return object.release();
}

Operation::Operation(const char* name, TreeData& tree, Loc loc) {
  begin_algorithm(name, words_of(tree.state).object(), loc);
}

void expect_same_device(const char* name, const TreeData& tree, const runtime::Device& other,
                        Loc loc) {
  if (tree.device.get() == &other) return;
  throw Error(loc, std::string(name) + " of a tree on the device '" + tree.device->name() +
                       "' is given what lies on '" + other.name() + "'");
}

void refuse_outside(const char* name, const TreeData& tree, int64_t count, const char* things,
                    Loc loc) {
  throw Error(loc, std::string(name) + ": " + std::to_string(count) + " " + things +
                       " lie outside of the tree, which has shape " +
                       runtime::shape_text(tree.shape) + " from index " +
                       runtime::shape_text(tree.firsts) + " on");
}

std::shared_ptr<TreeData> tree_of(FieldObject* field) {
  if (!field->storage || !field->storage->tree()) return nullptr;
  return static_cast<TreeData*>(field->storage->tree())->shared_from_this();
}

void expect_on_tree(const char* name, const TreeData& tree, FieldObject* field, Loc loc) {
  if (field->storage) field->storage->expect_alive(loc);
  if (tree_of(field).get() != &tree)
    throw Error(loc, std::string(name) + " is given a field that is not on this tree");
  expect_not_of_cells(name, field, loc);
}

void expect_not_of_cells(const char* name, FieldObject* field, Loc loc) {
  if (!field->storage->facts().layout.is_of_cells()) return;
  throw Error(loc, std::string(name) +
                       " is given a field whose elements are the cells of one of its tree's "
                       "levels; it takes those of the tree itself");
}

void expect_same_device(const char* name, const TreeData& tree, FieldObject* field, Loc loc) {
  expect_same_device(name, tree, field->storage->device(), loc);
}

bool is_wide(FieldObject* field) {
  const std::shared_ptr<TreeData> tree = tree_of(field);
  return tree && tree->wide;
}
bool has_lists(const TreeData& tree) { return tree.pools.back().has_lists(); }

void expect_no_lists(const char* name, const TreeData& tree, Loc loc) {
  if (!has_lists(tree)) return;
  throw Error(loc, std::string(name) + " of a tree of lists, as its innermost level is " +
                       name_of(tree.levels.back().kind) +
                       "; lists have all elements before their last one");
}

FieldObject* dense_beside(FieldObject* field, FieldType type, const Layout& layout, Loc loc) {
  double elements = 1;
  for (const int64_t extent : field->storage->shape()) elements *= double(extent);
  if (tree_of(field)->pools[0].is_hashed() && elements > most_dense)
    throw Error(loc, "to_dense of a field of shape " +
                         runtime::shape_text(field->storage->shape()) +
                         " on a tree without an end; give it a slice of what is wanted");
  DeviceObject device;
  device.device = field->storage->shared_device();
  Layout with_firsts = layout;
  with_firsts.firsts.count = type.rank;
  for (int axis = 0; axis < type.rank; axis++)
    with_firsts.firsts.n[axis] = field->storage->first(uint32_t(axis));
  return make_field(&device, type, field->storage->shape().data(), with_firsts, loc);
}

void background_of(const char* name, FieldObject* field, void* value, Loc loc) {
  const std::shared_ptr<TreeData> tree = tree_of(field);
  if (!tree) throw Error(loc, std::string(name) + " is given a field that is on no tree");
  const auto elements = field->storage->tree_part(ir::tree::elements, loc);
  std::lock_guard lock(tree->mutex);
  for (const TreeData::Elements& known : tree->fields)
    if (known.storage.lock() == elements) {
      std::memcpy(value, known.background.data(), known.background.size());
      return;
    }
  throw Error(loc, std::string(name) +
                       " is given a part of a field's elements, whose background "
                       "it does not know; give it the whole field");
}

}  // namespace quern::detail

#pragma once
// What is active on a tree, and what fields have there, between the device and files: by the tree's list
// of cells, which follows from what is active alone.
#include "sparse/files/format.h"
#include "sparse/operations/topology.h"

namespace quern::detail {

/// The elements of a field that is to be called `name` in a file, and what they are where they are not
/// active. Throws Error for a view, and for a field that is not on the tree.
TreeData::Elements whole_field(const char* operation, TreeData& tree, FieldObject* field,
                               const std::string& name, Loc loc);

/// Of the cells of a tree's list, TreeContent::activity, and how many elements are active before each
/// word of it.
struct CellActivity {
  std::shared_ptr<Storage> words, numbers;
};
CellActivity activity_on_device(const TreeData& tree, const TreeContent& content, Loc loc);

/// Sets what the content says of the tree: levels, cells and what is active, but no fields. Refreshes the
/// tree. Waits.
void read_cells(TreeData& tree, TreeContent& content, Loc loc);
/// Are these the tree's cells, in order, and what is active in them? Refreshes the tree. Waits.
bool has_cells(TreeData& tree, const TreeContent& content, Loc loc);
/// Makes active what the content says.
void activate_cells(TreeData& tree, const TreeContent& content, Loc loc);

/// The active elements of a component of a field, in the order of cells. Waits.
std::vector<std::byte> read_component(const TreeData& tree, const Storage& elements,
                                      uint32_t component, const CellActivity& at, int64_t active,
                                      Loc loc);
void write_component(const TreeData& tree, const Storage& elements, uint32_t component,
                     const CellActivity& at, int64_t active, std::span<const std::byte> values,
                     Loc loc);

}  // namespace quern::detail

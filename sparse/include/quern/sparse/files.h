#pragma once
// Trees with their fields in files. Not part of quern/sparse.h; a program that includes this links the
// library quern_files too.
//
// A file holds a tree's levels, shape and first indices, which elements are active, and for each field
// a name, the background and the active elements. It depends on nothing else: not on what happened to
// the tree, nor on the device. What a file holds is checked before a tree is made of it: whatever does
// not fit is an Error at the caller's line that names the file. A file is written under a temporary name
// and published when it is complete, so an error leaves the old one as it was.
#include <string>
#include <vector>

#include "quern/sparse.h"

namespace quern {

/// A field, and what it is called in a file.
struct NamedField {
  std::string name;
  detail::Ref<detail::FieldObject> object;

  template <class T, int N>
  NamedField(std::string called, const Field<T, N>& field)
      : name(std::move(called)), object((detail::retain(field.object()), field.object())) {}
};

namespace detail {
struct TreeFileData;

void write_tree(const std::string& path, TreeData& tree, std::span<const NamedField> fields,
                Loc loc);
std::shared_ptr<TreeFileData> read_tree(DeviceObject* device, int rank, const std::string& path,
                                        Loc loc);
std::shared_ptr<TreeData> tree_in(const TreeFileData& file, Loc loc);
std::vector<std::string> names_in(const TreeFileData& file);
/// A field on the file's own tree.
FieldObject* field_in(const TreeFileData& file, const std::string& name, FieldType type, Loc loc);
}  // namespace detail

/// Writes the tree and fields on it: `write_tree("smoke.qtree", tree, {{"density", u}})`. Waits. Throws
/// Error where the file cannot be written, for fields that are not on the tree or not whole, and for two
/// of one name.
template <int N>
void write_tree(const std::string& path, const Tree<N>& tree,
                std::initializer_list<NamedField> fields = {}, Loc l = Loc::here()) {
  detail::write_tree(path, *tree.data(), {fields.begin(), fields.size()}, l);
}

/// What a file holds: a tree, and fields on it, made when they are asked for.
template <int N>
class TreeFile {
 public:
  TreeFile(std::shared_ptr<detail::TreeFileData> data, Loc l)
      : data_(std::move(data)), tree_(detail::tree_in(*data_, l)) {}

  const Tree<N>& tree() const { return tree_; }
  /// What the fields are called, in the order they were written in.
  std::vector<std::string> names() const { return detail::names_in(*data_); }
  /// A new field on the tree: with the elements of the file where they are active. Throws Error where
  /// there is none of this name, and where its elements consist of other types.
  template <class T>
  Field<T, N> field(const std::string& name, const Layout& layout = {}, Loc l = Loc::here()) const {
    const Field<T, N> in_file{
        detail::Ref<detail::FieldObject>(detail::field_in(*data_, name, Field<T, N>::type(), l))};
    return tree_.copy_of(in_file, layout, l);
  }

 private:
  std::shared_ptr<detail::TreeFileData> data_;
  Tree<N> tree_;
};

/// Reads a file of write_tree, of any device. Throws Error where it cannot be read, is no such file, is
/// damaged, or holds a tree of another number of axes.
template <int N>
TreeFile<N> read_tree(const Device& device, const std::string& path, Loc l = Loc::here()) {
  return TreeFile<N>(detail::read_tree(device.object(), N, path, l), l);
}

}  // namespace quern

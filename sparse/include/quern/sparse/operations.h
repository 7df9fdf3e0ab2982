#pragma once
// What the host does with whole trees (quern/sparse.h includes it). Each operation is a kernel or some,
// put into the current stream; those that tell the host something wait.
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "quern/quern.h"

namespace quern {

/// What a tree holds and takes.
struct TreeStats {
  struct Level {
    std::string name;  ///< "pointer(16, 16)"
    int64_t cells;     ///< of this level that are there; of lists their chunks
    int64_t room;      ///< cells that memory has been made for
    int64_t bytes;  ///< of all this room; what levels without a pointer between them take together,
                    ///< the innermost of them has
  };
  int64_t active = 0;         ///< elements
  std::vector<Level> levels;  ///< from the outside inwards; the root is one cell of the first
  int64_t bytes = 0;          ///< that the tree and its fields have of the device's memory
  int64_t lists_made =
      0;  ///< so often the lists of cells that loops go by were made anew, as cells had
          ///< come or gone; modulo 2^32
};

/// Which elements are next to one another.
enum class Neighbours {
  faces,     ///< indices that differ by 1 along one axis: 2, 4, 6, 8 of them
  edges,     ///< along one or two: 2, 8, 18, 32
  vertices,  ///< along any number: 2, 8, 26, 80
};

/// What an element has of the elements of twice the resolution that it consists of: of those that are
/// active, each component by itself.
enum class Coarsening {
  mean,  ///< of integers truncated toward 0
  sum,   ///< of integers modulo 2^width
  min,
  max,
  first,  ///< in row-major order
};

/// How positions become indices: element i is from `origin` + i · size to `origin` + (i + 1) · size
/// along each axis.
template <int N>
struct Voxels {
  float size = 1;
  std::array<float, size_t(N)> origin = {};
};

/// The indices lo ≤ i < hi along each axis.
template <int N>
struct IndexBox {
  std::array<int64_t, size_t(N)> lo = {}, hi = {};
};

namespace detail {
struct TreeData;

int64_t active_count(TreeData& tree, Loc loc);
TreeStats stats(TreeData& tree, Loc loc);
std::string describe(TreeData& tree, Loc loc);
void clear(TreeData& tree, Loc loc);
void shrink(TreeData& tree, Loc loc);
void dilate(TreeData& tree, int radius, Neighbours neighbours, Loc loc);
void erode(TreeData& tree, int radius, Neighbours neighbours, Loc loc);
void merge(TreeData& tree, TreeData& other, Loc loc);
void intersect(TreeData& tree, TreeData& other, Loc loc);
void subtract(TreeData& tree, TreeData& other, Loc loc);
bool same_activity(TreeData& a, TreeData& b, Loc loc);
void build_from_points(TreeData& tree, FieldObject* points, bool are_indices, const float* origin,
                       float size, Loc loc);
/// Corners lo and hi of each box.
void build_from_boxes(TreeData& tree, const int64_t* corners, size_t count, Loc loc);
void build_from_mask(TreeData& tree, FieldObject* mask, bool is_bool, Loc loc);
void build_from_tree(TreeData& tree, TreeData& other, Loc loc);
void build_from_triangles(TreeData& tree, FieldObject* points, FieldObject* corners,
                          const float* origin, float size, float band, Loc loc);
/// Of half the resolution, or twice.
std::shared_ptr<TreeData> coarse_tree(TreeData& tree, Loc loc);
std::shared_ptr<TreeData> fine_tree(TreeData& tree, Loc loc);
/// A field on no tree with the shape and the first indices of one that is.
FieldObject* dense_beside(FieldObject* field, FieldType type, const Layout& layout, Loc loc);
std::shared_ptr<TreeData> copy_tree(TreeData& tree, Loc loc);

FieldObject* make_level_field(const std::shared_ptr<TreeData>& tree, int level, FieldType type,
                              const Layout& layout, const void* background, Loc loc);
/// Throws Error for a level that fields cannot have cells of; `extents`: of its cells, in elements.
void expect_level(const TreeData& tree, int level, int64_t* extents, Loc loc);
FieldObject* make_tree_field(const std::shared_ptr<TreeData>& tree, FieldType type,
                             const Layout& layout, const void* background, Loc loc);
/// A tree of the same levels in which nothing is active.
std::shared_ptr<TreeData> empty_like(TreeData& tree, Loc loc);
/// A field without elements on `tree`, which is like the field's: with the same indices.
FieldObject* topology_beside(TreeData& tree, FieldObject* field, Loc loc);
/// Ends what the field has active on its tree, and `marks`, which is like that, has not.
void end_unmarked(TreeData& tree, TreeData& marks, FieldObject* field, Loc loc);

/// Null: the field is on none.
std::shared_ptr<TreeData> tree_of(FieldObject* field);
/// Throws Error where the field's elements are the cells of a level.
void expect_not_of_cells(const char* name, FieldObject* field, Loc loc);
/// Throws Error where the field was released or is not on this tree, or is one of cells.
void expect_on_tree(const char* name, const TreeData& tree, FieldObject* field, Loc loc);
void expect_same_device(const char* name, const TreeData& tree, FieldObject* field, Loc loc);
/// Throws Error where the tree's innermost level is dynamic: what is said of elements one by one has no
/// meaning where a list has all before one of its elements.
void expect_no_lists(const char* name, const TreeData& tree, Loc loc);
[[noreturn]] void refuse_outside(const char* name, const TreeData& tree, int64_t count,
                                 const char* things, Loc loc);
/// Are indices of 64 bits to be used with the field?
bool is_wide(FieldObject* field);
/// Is the tree's innermost level dynamic?
bool has_lists(const TreeData& tree);
/// What elements of the field are that are not active, as on the host. Throws Error for a view of
/// components, and for a field that is on no tree.
void background_of(const char* name, FieldObject* field, void* value, Loc loc);
}  // namespace detail

}  // namespace quern

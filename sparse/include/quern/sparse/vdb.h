#pragma once
// Fields on trees in files of OpenVDB's (.vdb) and NanoVDB's (.nvdb). Not part of quern/sparse.h; a
// program that includes this links the library quern_vdb too.
//
// Where these libraries were not there when Quern was built, the functions are there and throw Error that
// says so; has_openvdb() and has_nanovdb() tell. What is wrong with a file or a grid is an Error at the
// caller's line that names the file. A file is written under a temporary name and published when it is
// complete, so an error leaves the old one as it was.
#include <string>
#include <vector>

#include "quern/sparse.h"
#include "quern/sparse/grids.h"

namespace quern {

/// Was OpenVDB, were OpenVDB and NanoVDB, there when Quern was built?
bool has_openvdb();
bool has_nanovdb();

/// The transform of elements that Voxels says the place of, as build_from takes it.
inline GridTransform transform_of(const Voxels<3>& v) {
  const double size = v.size;
  return uniform_transform(
      size, {v.origin[0] + size / 2, v.origin[1] + size / 2, v.origin[2] + size / 2});
}

namespace detail {
struct VdbFileData;

/// Types of elements that grids have.
enum class GridType : uint8_t { boolean, int32, int64, float32, float64, vec3i, vec3f, vec3d };
template <class T>
inline constexpr bool is_grid_element =
    std::is_same_v<T, bool> || std::is_same_v<T, int32_t> || std::is_same_v<T, int64_t> ||
    std::is_same_v<T, float> || std::is_same_v<T, double> || std::is_same_v<T, Vec<int, 3>> ||
    std::is_same_v<T, Vec<float, 3>> || std::is_same_v<T, Vec<double, 3>>;
template <class T>
constexpr GridType grid_type() {
  static_assert(is_grid_element<T>,
                "quern: elements of OpenVDB's grids are bool, int, int64_t, float, double, or "
                "vectors of three int, float or double");
  if constexpr (std::is_same_v<T, bool>) return GridType::boolean;
  if constexpr (std::is_same_v<T, int32_t>) return GridType::int32;
  if constexpr (std::is_same_v<T, int64_t>) return GridType::int64;
  if constexpr (std::is_same_v<T, float>) return GridType::float32;
  if constexpr (std::is_same_v<T, double>) return GridType::float64;
  if constexpr (std::is_same_v<T, Vec<int, 3>>) return GridType::vec3i;
  if constexpr (std::is_same_v<T, Vec<float, 3>>) return GridType::vec3f;
  return GridType::vec3d;
}
}  // namespace detail

/// A field of three axes on a tree, and what a file says of it.
struct NamedGrid {
  std::string name;
  detail::Ref<detail::FieldObject> object;
  detail::GridType type;
  GridInfo info;

  template <class T, int N>
  NamedGrid(std::string called, const Field<T, N>& field, GridInfo about = {})
      : name(std::move(called)),
        object((detail::retain(field.object()), field.object())),
        type(detail::grid_type<T>()),
        info(about) {
    static_assert(N == 3, "quern: OpenVDB's grids have three axes");
  }
};

namespace detail {
enum class VdbFormat : uint8_t { openvdb, nanovdb };
void write_grids(const std::string& path, VdbFormat format, std::span<const NamedGrid> grids,
                 Loc loc);
std::shared_ptr<VdbFileData> read_vdb(DeviceObject* device, const std::string& path, Loc loc);
std::vector<std::string> names_in(const VdbFileData& file);

struct VdbGridData {
  std::shared_ptr<TreeData> tree;
  Ref<FieldObject> field;
  GridInfo info;
  int64_t dropped = 0;
};
VdbGridData grid_in(const VdbFileData& file, const std::string& name, GridType grid, FieldType type,
                    int64_t most_active, Loc loc);
}  // namespace detail

/// Writes fields as grids of OpenVDB's usual trees:
/// `write_vdb("smoke.vdb", {{"density", u, {.transform = uniform_transform(0.1)}}})`. Active elements are
/// active, and no others; those that are not are the background, but for those inside of a level set,
/// which are the negative background, as OpenVDB wants it. Fields may be on several trees. Waits. Throws
/// Error where the file cannot be written, for fields that are on no tree or not whole, for two of one
/// name, for elements at indices outside of -2^30 to 2^30 - 2, for transforms that OpenVDB refuses, and
/// for level sets that are not of floats or whose background is not above 0.
inline void write_vdb(const std::string& path, std::initializer_list<NamedGrid> grids,
                      Loc l = Loc::here()) {
  detail::write_grids(path, detail::VdbFormat::openvdb, {grids.begin(), grids.size()}, l);
}
/// The same for NanoVDB, not compressed. Of vectors it takes those of float.
inline void write_nanovdb(const std::string& path, std::initializer_list<NamedGrid> grids,
                          Loc l = Loc::here()) {
  detail::write_grids(path, detail::VdbFormat::nanovdb, {grids.begin(), grids.size()}, l);
}

/// A grid that was read.
template <class T>
struct VdbGrid {
  Tree<3> tree;  ///< without an end, of OpenVDB's levels: 32³ of 16³ of 8³
  Field<T, 3> field;
  GridInfo info;
  /// Elements that are not active, and have another value than the background in the file: a field has
  /// nowhere to keep these. Inside of a level set they are the negative background.
  int64_t dropped = 0;
};

/// What a file holds: grids, made when they are asked for.
class VdbFile {
 public:
  explicit VdbFile(std::shared_ptr<detail::VdbFileData> data) : data_(std::move(data)) {}

  /// Several grids of one name are called "name[0]", "name[1]".
  std::vector<std::string> names() const { return detail::names_in(*data_); }
  /// A new field on a new tree with exactly the grid's active elements, those of active tiles too. Waits.
  /// Throws Error where there is no grid of this name, where its elements are of another type, where its
  /// transform is not linear, where an index is outside of -2^30 to 2^30 - 2, and for more active
  /// elements than `most_active`.
  template <class T>
  VdbGrid<T> grid(const std::string& name, int64_t most_active = int64_t(1) << 30,
                  Loc l = Loc::here()) const {
    detail::VdbGridData made =
        detail::grid_in(*data_, name, detail::grid_type<T>(), Field<T, 3>::type(), most_active, l);
    return {Tree<3>(made.tree), Field<T, 3>(std::move(made.field)), made.info, made.dropped};
  }

 private:
  std::shared_ptr<detail::VdbFileData> data_;
};

/// Opens a file of OpenVDB's or NanoVDB's, whichever it is. Throws Error where it cannot be read or is no
/// such file.
inline VdbFile read_vdb(const Device& device, const std::string& path, Loc l = Loc::here()) {
  return VdbFile(detail::read_vdb(device.object(), path, l));
}

}  // namespace quern

#pragma once
// Files of the host, to and from fields: pictures and NumPy arrays. Not part of quern.h; a program
// that includes this links the library quern_files too.
//
// What a file holds is checked before a field is made of it: whatever does not fit is an Error at
// the caller's line that names the file, what was found and what is allowed. A file is written
// under a temporary name and published when it is complete, so an error leaves the old one as it
// was.
#include <array>
#include <span>
#include <string>
#include <vector>

#include "quern/fields/field.h"

namespace quern {
namespace detail {

/// An array out of a file: row-major, in the machine's byte order, from `bytes[first]` on.
struct FileArray {
  std::vector<int64_t> shape;
  std::vector<std::byte> bytes;
  size_t first = 0;
};
/// Rows from the top, pixels of `channels` samples of u8 or f32.
FileArray load_image(const std::string& path, Scalar sample, int channels, Loc loc);
void save_png(const std::string& path, const FileArray& pixels, Scalar sample, int channels,
              Loc loc);
/// `rank` axes of elements, then those `inside` an element.
FileArray load_npy(const std::string& path, Scalar type, int rank, std::span<const int64_t> inside,
                   Loc loc);
void save_npy(const std::string& path, const FileArray& array, Scalar type,
              std::span<const int64_t> inside, Loc loc);

/// Elements of numbers of one type, one beside the other.
template <class T>
consteval bool plain() {
  if constexpr (Traits<T>::supported && !is_structure<T>)
    return sizeof(T) == sizeof(scalar_t<T>) * count_of<T>;
  else
    return false;
}
template <class T>
inline constexpr bool storable = [] {
  static_assert(plain<T>(),
                "quern: files hold numbers, vectors and matrices; write the members of a structure "
                "as fields of their own");
  return plain<T>();
}();
/// The axes inside an element: none, a vector's one, a matrix's rows and columns.
template <class T>
constexpr auto axes_inside() {
  if constexpr (is_matrix<T>)
    return std::array<int64_t, 2>{Traits<T>::rows, Traits<T>::columns};
  else if constexpr (is_vector<T>)
    return std::array<int64_t, 1>{count_of<T>};
  else
    return std::array<int64_t, 0>{};
}
template <class T, int N>
Field<T, N> field_from(const quern::Device& device, const FileArray& a, Loc l) {
  auto field = [&]<size_t... K>(std::index_sequence<K...>) {
    return Field<T, N>(device, {Extent(a.shape[K])...}, l);
  }(std::make_index_sequence<size_t(N)>());
  field.copy_from(reinterpret_cast<const T*>(a.bytes.data() + a.first), size_t(field.size(l)), l);
  return field;
}
template <class T, int N>
FileArray array_from(const Field<T, N>& field, Loc l) {
  FileArray a;
  for (int k = 0; k < N; k++) a.shape.push_back(field.shape(k, l));
  a.bytes.resize(size_t(field.size(l)) * sizeof(T));
  field.copy_to(reinterpret_cast<T*>(a.bytes.data()), size_t(field.size(l)), l);
  return a;
}

template <class S, int C>
struct PixelOf {
  using type = Vec<S, C>;
};
template <class S>
struct PixelOf<S, 1> {
  using type = S;
};
template <class S, int C>
using pixel_t = typename PixelOf<S, C>::type;
template <class S, int C>
concept Sample =
    (std::is_same_v<S, uint8_t> || std::is_same_v<S, float>) && (C == 1 || C == 3 || C == 4);

}  // namespace detail

/// A PNG or JPEG as a field of {height, width} pixels, rows from the top: grey (C = 1, where a
/// coloured file gives its luma), RGB (3) or RGBA (4; opaque where the file says nothing). Samples
/// are uint8_t (of a 16-bit file the high byte) or float in [0, 1], the file's values without any
/// change of gamma. An orientation noted in a JPEG is not applied.
template <class S = uint8_t, int C = 1>
  requires detail::Sample<S, C>
Field<detail::pixel_t<S, C>, 2> read_image(const Device& device, const std::string& path,
                                           Loc l = Loc::here()) {
  using P = detail::pixel_t<S, C>;
  return detail::field_from<P, 2>(device, detail::load_image(path, detail::scalar_of<S>(), C, l),
                                  l);
}
/// On the device named by QUERN_DEVICE, else the best.
template <class S = uint8_t, int C = 1>
  requires detail::Sample<S, C>
Field<detail::pixel_t<S, C>, 2> read_image(const std::string& path, Loc l = Loc::here()) {
  return read_image<S, C>(Device(l), path, l);
}

/// A PNG of 8 bits a sample. Float samples count from 0 to 1: they are rounded to the nearest of
/// 256 steps and saturate, as a display does; a NaN is an error that names its pixel. Waits for the
/// launches that use the field.
template <class P>
void write_image(const std::string& path, const Field<P, 2>& field, Loc l = Loc::here()) {
  using S = detail::scalar_t<P>;
  static_assert(detail::Sample<S, detail::count_of<P>>,
                "quern: a picture is a field of uint8_t or float, or of vectors of 3 or 4 of them");
  detail::save_png(path, detail::array_from(field, l), detail::scalar_of<S>(), detail::count_of<P>,
                   l);
}

/// NumPy's .npy (format versions 1 to 3) as a field. Its type must be the field's and its axes the
/// field's N; vectors of K components take one more axis, of extent K, matrices two, rows and
/// columns. Either byte order, C or Fortran order.
template <class T, int N = 1>
Field<T, N> read_npy(const Device& device, const std::string& path, Loc l = Loc::here()) {
  if constexpr (detail::storable<T>)
    return detail::field_from<T, N>(
        device, detail::load_npy(path, detail::type_of<T>, N, detail::axes_inside<T>(), l), l);
}
/// On the device named by QUERN_DEVICE, else the best.
template <class T, int N = 1>
Field<T, N> read_npy(const std::string& path, Loc l = Loc::here()) {
  return read_npy<T, N>(Device(l), path, l);
}

/// Format version 1.0, C order; what read_npy reads back. Waits for the launches that use the
/// field.
template <class T, int N>
void write_npy(const std::string& path, const Field<T, N>& field, Loc l = Loc::here()) {
  if constexpr (detail::storable<T>)
    detail::save_npy(path, detail::array_from(field, l), detail::type_of<T>,
                     detail::axes_inside<T>(), l);
}

}  // namespace quern

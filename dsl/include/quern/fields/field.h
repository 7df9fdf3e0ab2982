#pragma once
// Fields: storage of up to four axes on a device. A Field is a handle: copies name the same
// storage, views parts of it.
#include "quern/control/loops.h"
#include "quern/fields/device.h"
#include "quern/types/derivative.h"

namespace quern {
namespace detail {

/// A host extent or index of any integer type.
struct Extent {
  int64_t n;
  template <std::integral I>
  constexpr Extent(I v) : n(int64_t(v)) {}
};

}  // namespace detail

template <class T, int N = 1>
class Field {
  static_assert(N >= 0 && N <= 4, "quern: a field has at most four axes");
  static_assert(
      detail::Traits<T>::supported,
      "quern: the elements of a field are bool, integers, half, float, double, or vectors, "
      "matrices, arrays and structures of them");

 public:
  using element = T;
  static constexpr int rank = N;

  /// Zeroed storage of the given extents, as in `Field<float, 2> u{device, {n, m}}`.
  Field(const Device& device, std::initializer_list<detail::Extent> shape, Loc l = Loc::here())
      : Field(device.object(), shape, {}, l) {}
  /// The same in another layout (quern/layout.h): `Field<float, 2> u{device, {n, m}, blocked(8,
  /// 8)}`.
  Field(const Device& device, std::initializer_list<detail::Extent> shape, const Layout& layout,
        Loc l = Loc::here())
      : Field(device.object(), shape, layout, l) {}
  /// On the device named by QUERN_DEVICE, else the best: `Field<float, 2> u{n, m}`.
  Field(std::initializer_list<detail::Extent> shape, Loc l = Loc::here())
      : Field(nullptr, shape, {}, l) {}
  Field(std::initializer_list<detail::Extent> shape, const Layout& layout, Loc l = Loc::here())
      : Field(nullptr, shape, layout, l) {}
  explicit Field(const Device& device, Loc l = Loc::here())
    requires(N == 0)
      : Field(device.object(), {}, {}, l) {}
  /// The caller's memory as a field, read and written in place: an array of T, row-major or as the
  /// layout says (one array of whole elements in whole blocks). On "cuda" and "rocm" it is memory
  /// of that device, on "cpu" the host's. It must outlive the field, its views and their launches;
  /// other code touches it only after synchronize(), or in a stream (quern/interop.h). Throws Error
  /// for a null or misaligned pointer, and one the device does not see: nothing is ever copied
  /// silently.
  static Field wrap(const Device& device, T* memory, std::initializer_list<detail::Extent> shape,
                    const Layout& layout = aos, Loc l = Loc::here()) {
    int64_t extents[8] = {};
    return Field(detail::Ref<detail::FieldObject>(
        detail::wrap_field(device.object(), type(), memory, unpack(shape, extents, l), layout, l)));
  }
  explicit Field(detail::Ref<detail::FieldObject> object) : object_(std::move(object)) {}
  Field(const Field&) = default;
  template <class U>
  void operator=(const U&) {
    static_assert(detail::never<U>,
                  "quern: a Field is a handle and cannot be assigned; u.swap(v) exchanges storage, "
                  "u.copy_from(...) copies elements");
  }
  Field& operator=(const Field&)
    requires(sizeof(T) == 0);

  // ---- in a kernel
  QUERN_RECORDS Elem<T> operator[](detail::Index i) const
    requires(N == 1)
  {
    return at_ids(&i.id, i.loc);
  }
  QUERN_RECORDS Elem<T> operator[](detail::IndexVector<N == 0 ? 1 : N> i) const
    requires(N > 1)
  {
    return at_ids(i.id, i.loc);
  }
  template <detail::Operand U>
    requires(N != 1 && detail::is_scalar<detail::elem_t<U>>)
  QUERN_RECORDS Elem<T> operator[](const U&) const {
    static_assert(
        detail::never<U>,
        "quern: a field takes one index for each of its axes, as in u(i, j); before C++23 "
        "u[i, j] is u[j]");
    return at_ids(nullptr, Loc{});
  }
  QUERN_RECORDS Elem<T> operator()(Loc l = Loc::here()) const
    requires(N == 0)
  {
    return at_ids(nullptr, l);
  }
  QUERN_RECORDS Elem<T> operator()(detail::Index i) const
    requires(N == 1)
  {
    return at_ids(&i.id, i.loc);
  }
  QUERN_RECORDS Elem<T> operator()(detail::Index i, detail::Index j) const
    requires(N == 2)
  {
    detail::Id ids[] = {i.id, j.id};
    return at_ids(ids, i.loc);
  }
  QUERN_RECORDS Elem<T> operator()(detail::Index i, detail::Index j, detail::Index k) const
    requires(N == 3)
  {
    detail::Id ids[] = {i.id, j.id, k.id};
    return at_ids(ids, i.loc);
  }
  QUERN_RECORDS Elem<T> operator()(detail::Index i, detail::Index j, detail::Index k,
                                   detail::Index m) const
    requires(N == 4)
  {
    detail::Id ids[] = {i.id, j.id, k.id, m.id};
    return at_ids(ids, i.loc);
  }
  template <class... I>
    requires(sizeof...(I) != size_t(N))
  QUERN_RECORDS Elem<T> operator()(const I&...) const {
    static_assert(detail::never<Field>, "quern: a field takes one index for each of its axes");
    return at_ids(nullptr, Loc{});
  }
#if defined(__cpp_multidimensional_subscript)
  QUERN_RECORDS Elem<T> operator[](detail::Index i, detail::Index j) const
    requires(N == 2)
  {
    detail::Id ids[] = {i.id, j.id};
    return at_ids(ids, i.loc);
  }
  QUERN_RECORDS Elem<T> operator[](detail::Index i, detail::Index j, detail::Index k) const
    requires(N == 3)
  {
    detail::Id ids[] = {i.id, j.id, k.id};
    return at_ids(ids, i.loc);
  }
#endif
  /// The extent of an axis as a device value; I = int64_t for one of 2^31 elements or more.
  template <class I = int32_t>
  Val<I> dim(int axis, Loc l = Loc::here()) const {
    return detail::value<I>(detail::extent(object_.get(), axis, detail::scalar_of<I>(), l));
  }
  /// The first index of an axis as a device value: 0 unless the field has an offset.
  template <class I = int32_t>
  Val<I> first(int axis, Loc l = Loc::here()) const {
    return detail::value<I>(detail::first_index(object_.get(), axis, detail::scalar_of<I>(), l));
  }
  /// All indices. `for (auto [i, j] : u)` needs no call.
  template <class I = int32_t>
  detail::Range<I, N> indices(Loc l = Loc::here()) const {
    return {detail::indices_of(object_.get(), detail::scalar_of<I>(), l), l};
  }
  /// The indices as I64, for an axis of 2^31 elements or more.
  detail::Range<int64_t, N> wide(Loc l = Loc::here()) const { return indices<int64_t>(l); }
  QUERN_RECORDS detail::LoopIterator<int32_t, N> begin(Loc l = Loc::here()) const
    requires(N > 0)
  {
    return {indices(l).spec, l};
  }
  detail::End end() const
    requires(N > 0)
  {
    return {};
  }

  // ---- views: fields on the same memory. What is written through one is seen through all; swap
  // and release of the field itself reach its views.
  /// Every step-th index lo … hi-1 of an axis, numbered from 0; axes in blocks take steps of 1.
  Field slice(int axis, detail::Extent lo, detail::Extent hi, detail::Extent step = 1,
              Loc l = Loc::here()) const {
    return view<T, N>(detail::slice_field(object_.get(), axis, lo.n, hi.n, step.n, l));
  }
  /// The elements at one index of an axis, without that axis: a column is u.select(1, j).
  Field<T, N - 1> select(int axis, detail::Extent index, Loc l = Loc::here()) const
    requires(N > 0)
  {
    return view<T, N - 1>(detail::select_field(object_.get(), axis, index.n, l));
  }
  /// select(0, i).
  Field<T, N - 1> row(detail::Extent i, Loc l = Loc::here()) const
    requires(N > 0)
  {
    return select(0, i, l);
  }
  /// Rows and columns exchanged.
  Field transposed(Loc l = Loc::here()) const
    requires(N == 2)
  {
    return transposed({1, 0}, l);
  }
  /// Axis k of the view is axis order[k].
  Field transposed(std::initializer_list<detail::Extent> order, Loc l = Loc::here()) const {
    int64_t axes[8] = {};
    return view<T, N>(detail::transposed_field(object_.get(), unpack(order, axes, l), N, l));
  }
  /// The last index of an axis first; not for an axis in blocks.
  Field flipped(int axis, Loc l = Loc::here()) const {
    return view<T, N>(detail::flipped_field(object_.get(), axis, l));
  }
  /// The same elements under indices that start elsewhere, within ±2^30.
  Field rebased(std::initializer_list<detail::Extent> firsts, Loc l = Loc::here()) const {
    int64_t n[8] = {};
    return view<T, N>(detail::rebased_field(object_.get(), unpack(firsts, n, l), N, l));
  }
  /// One member of the structures: `particles.member(&Particle<>::x)`.
  template <class S, class M>
    requires(detail::is_structure<T> && std::is_same_v<S, T>)
  Field<M, N> member(M S::* m, Loc l = Loc::here()) const {
    T probe{};
    auto offset =
        reinterpret_cast<const char*>(&(probe.*m)) - reinterpret_cast<const char*>(&probe);
    return view<M, N>(
        detail::part_of_field(object_.get(), uint32_t(offset), detail::element_type<M>(), l));
  }
  /// Component k of the vectors.
  Field<detail::scalar_t<T>, N> component(int k, Loc l = Loc::here()) const
    requires(detail::is_vector<T>)
  {
    using S = detail::scalar_t<T>;
    if (k < 0 || k >= detail::count_of<T>) detail::wrong_component(k, detail::count_of<T>, l);
    return view<S, N>(detail::part_of_field(object_.get(), uint32_t(size_t(k) * sizeof(S)),
                                            detail::element_type<S>(), l));
  }

  // ---- on the host; these wait for the launches that use the field
  int64_t shape(int axis, Loc l = Loc::here()) const {
    return detail::field_extent(object_.get(), axis, l);
  }
  /// The first index of an axis.
  int64_t offset(int axis, Loc l = Loc::here()) const {
    return detail::field_first(object_.get(), axis, l);
  }
  int64_t size(Loc l = Loc::here()) const { return detail::field_size(object_.get(), l); }
  /// Exchanges storage in O(1); kernels that captured either see it, and so do views of either.
  /// Shape and layout must agree; a view has no storage of its own to exchange.
  void swap(const Field& other, Loc l = Loc::here()) const {
    detail::swap_fields(object_.get(), other.object_.get(), l);
  }
  /// The elements as they are now, to be read only: kernels that would write it throw Error. It
  /// costs nothing until the field, or a view of it, is next written: then the device copies the
  /// memory. It stays when the field is released. Writes by other code (of wrapped memory, through
  /// dlpack or interop) are not seen, so such memory is copied at once.
  Field snapshot(Loc l = Loc::here()) const {
    return Field(detail::Ref<detail::FieldObject>(detail::snapshot_of_field(object_.get(), l)));
  }
  /// The elements become those of a snapshot of this field, or of one of the same shape and layout.
  /// Throws Error otherwise, and for views.
  void restore(const Field& snapshot, Loc l = Loc::here()) const {
    detail::restore_field(object_.get(), snapshot.object_.get(), l);
  }
  /// The tangents of the elements, a field like this one, of zeros when it is first asked for. What
  /// runs forward (quern/autodiff.h) reads and writes it with this one. A view's is the same view
  /// of the field's; swap and release take it along. That of a kernel's parameter is that of the
  /// field which a launch is passed. A Field<derivative_t<T>, N>. Throws Error for a snapshot, and
  /// where there is no memory.
  auto dual(Loc l = Loc::here()) const {
    return view<derivative_t<T>, N>(detail::companion_of_field(
        object_.get(), "dual", detail::element_type<derivative_t<T>>(), l));
  }
  /// The adjoints of the elements, likewise: what goes back (quern/autodiff.h) reads and writes
  /// them.
  auto grad(Loc l = Loc::here()) const {
    return view<derivative_t<T>, N>(detail::companion_of_field(
        object_.get(), "adjoint", detail::element_type<derivative_t<T>>(), l));
  }
  /// Gives the memory back at once, wrapped memory to its owner; every later use of it, or of a
  /// view of it, is an error, and so is a second release.
  void release(Loc l = Loc::here()) const { detail::release_field(object_.get(), l); }
  void fill(T v, Loc l = Loc::here()) const { detail::fill_field(object_.get(), &v, l); }
  /// All elements in row-major order; `count` is checked.
  void copy_from(const T* from, size_t count, Loc l = Loc::here()) const {
    detail::write_field(object_.get(), from, detail::all_elements, int64_t(count), l);
  }
  void copy_to(T* to, size_t count, Loc l = Loc::here()) const {
    detail::read_field(object_.get(), to, detail::all_elements, int64_t(count), l);
  }
  /// From and to a std::span, std::vector, std::array: whatever lies in one piece.
  template <class C>
    requires requires(const C& c) { c.data(), c.size(); }
  void copy_from(const C& from, Loc l = Loc::here()) const {
    copy_from(from.data(), from.size(), l);
  }
  template <class C>
    requires requires(C& c) { c.data(), c.size(); }
  void copy_to(C&& to, Loc l = Loc::here()) const {
    copy_to(to.data(), to.size(), l);
  }
  /// One element.
  T at(std::initializer_list<detail::Extent> index, Loc l = Loc::here()) const {
    T v;
    int64_t i[8] = {};
    detail::read_element(object_.get(), &v, unpack(index, i, l), l);
    return v;
  }
  T at(detail::Extent i, Loc l = Loc::here()) const
    requires(N == 1)
  {
    return at({i}, l);
  }
  T at(detail::Extent i, detail::Extent j, Loc l = Loc::here()) const
    requires(N == 2)
  {
    return at({i, j}, l);
  }
  T at(detail::Extent i, detail::Extent j, detail::Extent k, Loc l = Loc::here()) const
    requires(N == 3)
  {
    return at({i, j, k}, l);
  }
  void set(std::initializer_list<detail::Extent> index, T v, Loc l = Loc::here()) const {
    int64_t i[8] = {};
    detail::write_element(object_.get(), &v, unpack(index, i, l), l);
  }
  void set(detail::Extent i, T v, Loc l = Loc::here()) const
    requires(N == 1)
  {
    set({i}, v, l);
  }
  void set(detail::Extent i, detail::Extent j, T v, Loc l = Loc::here()) const
    requires(N == 2)
  {
    set({i, j}, v, l);
  }
  void set(detail::Extent i, detail::Extent j, detail::Extent k, T v, Loc l = Loc::here()) const
    requires(N == 3)
  {
    set({i, j, k}, v, l);
  }

  detail::FieldObject* object() const { return object_.get(); }
  static detail::FieldType type() { return {detail::element_type<T>(), N}; }

 private:
  Field(detail::DeviceObject* device, std::initializer_list<detail::Extent> shape,
        const Layout& layout, Loc l) {
    int64_t extents[8] = {};
    object_ = detail::Ref<detail::FieldObject>(
        detail::make_field(device, type(), unpack(shape, extents, l), layout, l));
  }
  template <class U, int M>
  static Field<U, M> view(detail::FieldObject* object) {
    return Field<U, M>(detail::Ref<detail::FieldObject>(object));
  }
  static const int64_t* unpack(std::initializer_list<detail::Extent> list, int64_t* out, Loc l) {
    if (list.size() != size_t(N)) detail::wrong_axes(N, int(list.size()), l);
    for (detail::Extent e : list) *out++ = e.n;
    return out - N;
  }
  Elem<T> at_ids(const detail::Id* index, Loc l) const {
    detail::Ids<T> read;
    for (int k = 0; k < detail::count_of<T>; k++)
      read.v[k] = detail::element(object_.get(), k, index, N, l);
    return Elem<T>(read);
  }

  detail::Ref<detail::FieldObject> object_;
};

namespace detail {
template <class X>
inline constexpr bool is_field = false;
template <class T, int N>
inline constexpr bool is_field<Field<T, N>> = true;
template <class X>
concept AnyField = is_field<bare<X>>;
}  // namespace detail

namespace lang {
template <detail::AnyField F>
auto serial(const F& field, Loc l = Loc::here()) {
  return serial(field.indices(l));
}
template <detail::AnyField F>
auto block_size(const F& field, int n, Loc l = Loc::here()) {
  return block_size(field.indices(l), n);
}
template <detail::AnyField F>
auto deterministic(const F& field, Loc l = Loc::here()) {
  return deterministic(field.indices(l));
}
}  // namespace lang
}  // namespace quern

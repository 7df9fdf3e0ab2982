#pragma once
// Fields: storage of up to four axes on a device. A Field is a handle: copies name the same
// storage.
#include "quern/device.h"
#include "quern/loops.h"

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
  static_assert(detail::DeviceScalar<detail::scalar_t<T>>,
                "quern: the elements of a field are bool, integers, float or double");
  static constexpr detail::FieldType type_ = {detail::type_of<T>, detail::count_of<T>, N};

 public:
  using element = T;
  static constexpr int rank = N;

  /// Zeroed storage of the given extents, as in `Field<float, 2> u{device, {n, m}}`.
  Field(const Device& device, std::initializer_list<detail::Extent> shape, Loc l = Loc::here())
      : Field(device.object(), shape, l) {}
  /// On the device named by QUERN_DEVICE, else the best: `Field<float, 2> u{n, m}`.
  Field(std::initializer_list<detail::Extent> shape, Loc l = Loc::here())
      : Field(nullptr, shape, l) {}
  explicit Field(const Device& device, Loc l = Loc::here())
    requires(N == 0)
      : Field(device.object(), {}, l) {}
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
  /// All indices. `for (auto [i, j] : u)` needs no call.
  template <class I = int32_t>
  detail::Range<I, N> indices(Loc l = Loc::here()) const {
    detail::Range<I, N> r{{}, l};
    r.spec.rank = N;
    for (int k = 0; k < N; k++) {
      r.spec.lo[k] = detail::host_constant<I>(0, l);
      r.spec.hi[k] = detail::extent(object_.get(), k, detail::scalar_of<I>(), l);
    }
    return r;
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

  // ---- on the host; these wait for the launches that use the field
  int64_t shape(int axis, Loc l = Loc::here()) const {
    return detail::field_extent(object_.get(), axis, l);
  }
  int64_t size(Loc l = Loc::here()) const { return detail::field_size(object_.get(), l); }
  /// Exchanges storage in O(1); kernels that captured either see it.
  void swap(const Field& other, Loc l = Loc::here()) const {
    detail::swap_fields(object_.get(), other.object_.get(), l);
  }
  /// Gives the memory back at once; a later launch with it is an error.
  void release(Loc l = Loc::here()) const { detail::release_field(object_.get(), l); }
  void fill(T v, Loc l = Loc::here()) const { detail::fill_field(object_.get(), &v, l); }
  /// All elements in row-major order; `count` is checked.
  void copy_from(const T* from, size_t count, Loc l = Loc::here()) const {
    detail::write_field(object_.get(), from, detail::all_elements, int64_t(count), l);
  }
  void copy_to(T* to, size_t count, Loc l = Loc::here()) const {
    detail::read_field(object_.get(), to, detail::all_elements, int64_t(count), l);
  }
  template <class C>
    requires requires(const C& c) { c.data(), c.size(); }
  void copy_from(const C& from, Loc l = Loc::here()) const {
    copy_from(from.data(), from.size(), l);
  }
  /// One element.
  T at(std::initializer_list<detail::Extent> index, Loc l = Loc::here()) const {
    T v;
    detail::read_field(object_.get(), &v, position(index, l), 1, l);
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
    detail::write_field(object_.get(), &v, position(index, l), 1, l);
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

 private:
  Field(detail::DeviceObject* device, std::initializer_list<detail::Extent> shape, Loc l) {
    int64_t extents[8] = {};
    object_ = detail::Ref<detail::FieldObject>(
        detail::make_field(device, type_, unpack(shape, extents, l), l));
  }
  static const int64_t* unpack(std::initializer_list<detail::Extent> list, int64_t* out, Loc l) {
    if (list.size() != size_t(N)) detail::wrong_axes(N, int(list.size()), l);
    for (detail::Extent e : list) *out++ = e.n;
    return out - N;
  }
  int64_t position(std::initializer_list<detail::Extent> index, Loc l) const {
    int64_t i[8] = {};
    return detail::field_position(object_.get(), unpack(index, i, l), l);
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

#pragma once
// What a Val, Var or Elem consists of: one id for a scalar, named parts for everything else.
#include "quern/values/convert.h"

namespace quern::detail {

/// The parts of a K<T>, K being Val, Var, Elem or Item. They are made from the ids of the scalars:
/// those of their values, of their slots, of the reads of an element.
template <template <class> class K, class T>
struct Parts {
  explicit Parts(const Ids<T>& ids) : quern_id(ids.v[0]) {}
  void quern_leaves(Id*& out) const { *out++ = quern_id; }
  Id quern_id;
};

template <template <class> class K, class T>
struct Parts;
/// The ids a K<T> is made from: of a variable those of its slots, else one for each scalar.
template <template <class> class K, class T>
struct Held {
  using type = Ids<T>;
};
template <class T>
struct Held<Var, T> {
  using type = SlotIds<T>;
};
template <template <class> class K, class T>
using HeldIds = typename Held<K, T>::type;
template <template <class> class K, class T>
inline constexpr int held_count = int(sizeof(HeldIds<K, T>) / sizeof(Id));

/// The ids a K<T> was made from.
template <template <class> class K, class T>
HeldIds<K, T> leaves(const Parts<K, T>& k) {
  HeldIds<K, T> out;
  Id* next = out.v;
  k.quern_leaves(next);
  return out;
}

/// A number of the host's that names a component, and where.
struct HostIndex {
  int n;
  Loc loc;
  HostIndex(int k, Loc l = Loc::here()) : n(k), loc(l) {}
};
/// A component chosen by the device.
struct DeviceIndex {
  Id id;
  Loc loc;
  template <Device U>
  DeviceIndex(const U& u, Loc l = Loc::here()) : id(Index(u, l).id), loc(l) {}
};

/// A component of a K that the device chooses: a value, of a variable also assignable.
template <template <class> class K, class S>
struct Component {
  template <class T>
  static Val<S> of(const Ids<T>& parts, Id index, Loc loc) {
    return Val<S>(Ids<S>{{pick(parts.v, count_of<T>, false, index, loc)}});
  }
};

/// v[k], k a host number.
template <class V>
auto& part_at(V& v, int k, int count, Loc loc) {
  if (k < 0 || k >= count) fail(loc, "an index of a component is out of range");
  return v.quern_part(k < 0 || k >= count ? 0 : k);
}

/// Are the components of a swizzle different ones?
constexpr bool distinct(auto... components) {
  unsigned seen = 0;
  bool all = true;
  ((all &= !(seen >> components & 1), seen |= 1u << components), ...);
  return all;
}
/// A swizzle yields a value; one of a variable can be assigned where no component comes twice.
template <template <class> class K, class V, bool distinct>
struct Swizzled {
  using type = Val<V>;
};
template <class V>
struct Swizzled<Var, V, true> {
  using type = Item<V>;
};

/// Scalars x, y … of a vector.
template <template <class> class K, class S, int N>
struct Named;
template <template <class> class K, class S>
struct Named<K, S, 2> {
  K<S> x, y;
  template <class F>
  explicit Named(F make) : x(make(0)), y(make(1)) {}
};
template <template <class> class K, class S>
struct Named<K, S, 3> {
  K<S> x, y, z;
  template <class F>
  explicit Named(F make) : x(make(0)), y(make(1)), z(make(2)) {}
};
template <template <class> class K, class S>
struct Named<K, S, 4> {
  K<S> x, y, z, w;
  template <class F>
  explicit Named(F make) : x(make(0)), y(make(1)), z(make(2)), w(make(3)) {}
};

template <template <class> class K, class S, int N>
struct Parts<K, Vec<S, N>> : Named<K, S, N>, Swizzles<Parts<K, Vec<S, N>>, N> {
  using T = Vec<S, N>;
  explicit Parts(const Ids<T>& ids) : Named<K, S, N>([&](int k) { return Ids<S>{{ids.v[k]}}; }) {}
  void quern_leaves(Id*& out) const {
    for (int k = 0; k < N; k++) quern_part(k).quern_leaves(out);
  }
  K<S>& quern_part(int k) { return member(*this, k); }
  const K<S>& quern_part(int k) const { return member(*this, k); }

  K<S>& operator[](HostIndex k) & { return part_at(*this, k.n, N, k.loc); }
  K<S>&& operator[](HostIndex k) && { return std::move(part_at(*this, k.n, N, k.loc)); }
  const K<S>& operator[](HostIndex k) const& { return part_at(*this, k.n, N, k.loc); }
  auto operator[](DeviceIndex k) const {
    return Component<K, S>::of(leaves<K, T>(*this), in_range(k.id, N, k.loc), k.loc);
  }
  template <int... I>
  auto swizzle(Loc l) const {
    using V = Vec<S, int(sizeof...(I))>;
    return
        typename Swizzled<K, V, distinct(I...)>::type(Ids<V>{{quern_part(I).quern_ids(l).v[0]...}});
  }
};

template <template <class> class K, class S, int R, int C>
struct Parts<K, Mat<S, R, C>> {
  using T = Mat<S, R, C>;
  explicit Parts(const Ids<T>& ids) : Parts(ids, std::make_index_sequence<size_t(R* C)>{}) {}
  void quern_leaves(Id*& out) const {
    for (const K<S>& m : quern_m) m.quern_leaves(out);
  }
  K<S>& quern_part(int k) { return quern_m[k]; }
  const K<S>& quern_part(int k) const { return quern_m[k]; }

  K<S>& operator()(HostIndex r, HostIndex c) & { return at(*this, r, c); }
  K<S>&& operator()(HostIndex r, HostIndex c) && { return std::move(at(*this, r, c)); }
  const K<S>& operator()(HostIndex r, HostIndex c) const& { return at(*this, r, c); }
  template <Operand I, Operand J>
    requires(Device<I> || Device<J>)
  auto operator()(const I& r, const J& c, Loc l = Loc::here()) const {
    Id i = in_range(Index(r, l).id, R, l), j = in_range(Index(c, l).id, C, l);
    return Component<K, S>::of(leaves<K, T>(*this), row_major(i, C, j, l), l);
  }
  Val<Vec<S, C>> row(int r, Loc l = Loc::here()) const {
    Ids<Vec<S, C>> out;
    for (int c = 0; c < C; c++) out.v[c] = at(*this, {r, l}, {c, l}).quern_ids(l).v[0];
    return Val<Vec<S, C>>(out);
  }
  Val<Vec<S, R>> col(int c, Loc l = Loc::here()) const {
    Ids<Vec<S, R>> out;
    for (int r = 0; r < R; r++) out.v[r] = at(*this, {r, l}, {c, l}).quern_ids(l).v[0];
    return Val<Vec<S, R>>(out);
  }

  K<S> quern_m[size_t(R * C)];

 private:
  template <size_t... I>
  Parts(const Ids<T>& ids, std::index_sequence<I...>) : quern_m{K<S>(Ids<S>{{ids.v[I]}})...} {}
  template <class M>
  static auto& at(M& m, HostIndex r, HostIndex c) {
    bool inside = r.n >= 0 && r.n < R && c.n >= 0 && c.n < C;
    return part_at(m, inside ? r.n * C + c.n : -1, R * C, r.loc);
  }
};

/// Element k of an array: of a value, or of a field's element, it is a part.
template <template <class> class K, class T, int N>
struct ElementOf {
  static K<T> at(const Ids<Array<T, N>>& ids, int k, Loc) {
    return K<T>(part_of<T>(ids, k * count_of<T>));
  }
  static Val<T> at(const Ids<Array<T, N>>& ids, Id k, Loc loc) {
    Id index = in_range(k, N, loc, "an array"), column[size_t(N)];
    Ids<T> out;
    for (int s = 0; s < count_of<T>; s++) {
      for (int e = 0; e < N; e++) column[e] = ids.v[e * count_of<T> + s];
      out.v[s] = pick(column, N, false, index, loc);
    }
    return Val<T>(out);
  }
};
/// Of a variable it is found at an index of each slot.
template <class T, int N>
struct ElementOf<Var, T, N> {
  static Item<T> at(const SlotIds<Array<T, N>>& slots, int k, Loc loc) {
    return found(slots, constant(Scalar::i32, int64_t(k), loc), loc);
  }
  static Item<T> at(const SlotIds<Array<T, N>>& slots, Id k, Loc loc) {
    // A slot of N elements is tested where it is read and written.
    constexpr bool tested = N > 1 && slots_of<T>.slots == count_of<T>;
    return found(slots, tested ? k : in_range(k, N, loc, "an array"), loc);
  }

 private:
  static Item<T> found(const SlotIds<Array<T, N>>& slots, Id index, Loc loc) {
    constexpr auto plan = slots_of<T>;
    Ids<T> out;
    for (int s = 0; s < count_of<T>; s++) {
      auto [slot, element] = plan.at[s];
      out.v[s] = item(slots.v[slot], index, plan.length[slot], element, loc);
    }
    return Item<T>(out);
  }
};
/// Of an element of a variable's array likewise, counted from that element's place.
template <class T, int N>
struct ElementOf<Item, T, N> {
  static Item<T> at(const Ids<Array<T, N>>& items, int k, Loc loc) {
    return at(items, constant(Scalar::i32, int64_t(k), loc), loc);
  }
  static Item<T> at(const Ids<Array<T, N>>& items, Id k, Loc loc) {
    constexpr auto plan = slots_of<T>;
    Id index = in_range(k, N, loc, "an array");
    Ids<T> out;
    for (int s = 0; s < count_of<T>; s++)
      out.v[s] = item(items.v[s], index, plan.length[plan.at[s].slot], 0, loc);
    return Item<T>(out);
  }
};

template <template <class> class K, class T, int N>
struct Parts<K, Array<T, N>> {
  static constexpr int size() { return N; }
  explicit Parts(const HeldIds<K, Array<T, N>>& ids) : quern_all(ids) {}
  void quern_leaves(Id*& out) const {
    for (Id id : quern_all.v) *out++ = id;
  }
  auto operator[](HostIndex k) const {
    bool inside = k.n >= 0 && k.n < N;
    if (!inside) fail(k.loc, "an index of an array is out of range");
    return ElementOf<K, T, N>::at(quern_all, inside ? k.n : 0, k.loc);
  }
  auto operator[](DeviceIndex k) const { return ElementOf<K, T, N>::at(quern_all, k.id, k.loc); }

  HeldIds<K, Array<T, N>> quern_all;
};

/// Base of the parts of a structure: the user's template in the world of K.
template <template <class> class K, class T>
struct InWorld;
template <template <class> class K, template <class, class...> class P, class... A>
struct InWorld<K, P<HostW, A...>> {
  using type = P<DeviceW<K>, A...>;
};

/// Are the members of the World of K those that the host's structure says?
template <template <class> class K, class World, class M>
struct WorldMembers;
template <template <class> class K, class World, class... M>
struct WorldMembers<K, World, Types<M...>> {
  template <class... V>
  static Types<V...> list(V&...);
  static auto types(World& w) {
    return with_members<int(sizeof...(M))>(w, [](auto&... m) { return decltype(list(m...)){}; });
  }
  static constexpr bool same =
      std::is_same_v<decltype(types(std::declval<World&>())), Types<K<M>...>>;
  static_assert(same,
                "quern: each member of a structure with a world parameter is written In<W, T>, as "
                "in `In<W, float> mass;`, a structure of its own In<W, S<>>");
  static constexpr bool judged = true;
};
/// In place of a member that was refused: no second error.
struct Refused {
  template <class T>
  operator T() const {
    __builtin_trap();
  }
};
template <bool ok, class V, class I>
auto made_member(const I& ids) {
  if constexpr (ok)
    return V(ids);
  else
    return Refused{};
}

template <template <class> class K, class T>
  requires is_structure<T>
struct Parts<K, T> : InWorld<K, T>::type {
  static_assert(WorldMembers<K, typename InWorld<K, T>::type, typename Traits<T>::members>::judged);
  explicit Parts(const HeldIds<K, T>& ids_) : Parts(ids_, typename Traits<T>::members{}) {}
  void quern_leaves(Id*& out_) const {
    const World& world_ = *this;
    with_members<Traits<T>::members::size>(
        world_, [&](const auto&... m_) { (m_.quern_leaves(out_), ...); });
  }

 private:
  using World = typename InWorld<K, T>::type;
  // The initialisers of a braced list are evaluated in order.
  template <class... M>
  Parts(const HeldIds<K, T>& ids_, Types<M...>, int at_ = 0)
      : World{made_member<WorldMembers<K, World, Types<M...>>::same, K<M>>(
            part_of<M>(ids_, std::exchange(at_, at_ + held_count<K, M>)))...} {}
};

}  // namespace quern::detail

#pragma once
// Stable sorts by keys along fields of one axis.
#include "quern/algorithms/scan.h"

namespace quern {

enum class Order : bool { ascending, descending };

namespace detail {

inline constexpr int digits = 256;
/// Keys that an iteration of a pass goes through: many beside its 256 counters, few enough for all
/// threads of a small device and for the devices that bound the rounds of an iteration.
constexpr int64_t sort_chunk(int64_t size) {
  int64_t wanted = size / 512;
  return wanted < 4096 ? 4096 : wanted > 32768 ? 32768 : wanted;
}

/// Unsigned integers in the order of keys of type K: two's complement with the sign bit inverted;
/// floats by sign and magnitude, -0 before +0, every NaN last in both orders. They decide about places
/// alone, which do not vary with the keys.
template <class K>
using key_bits_t = std::conditional_t<sizeof(K) == 8, uint64_t, uint32_t>;
template <class K, Order order>
Val<key_bits_t<K>> key_bits(const Val<K>& key) {
  using B = key_bits_t<K>;
  constexpr int width = 8 * sizeof(K);
  constexpr B sign = B(1) << (width - 1);
  constexpr B reversed = order == Order::descending ? ~B(0) : B(0);
  if constexpr (std::is_floating_point_v<K>) {
    using S = std::conditional_t<sizeof(K) == 8, int64_t, int32_t>;
    Val<K> fixed = lang::stop_gradient(key);
    Val<B> negative = lang::bitcast<B>(lang::bitcast<S>(fixed) >> (width - 1));
    Val<B> bits = lang::bitcast<B>(fixed) ^ (negative | sign) ^ reversed;
    return lang::select(key == key, bits, ~B(0));
  } else {
    return lang::cast<B>(key) ^ (std::is_signed_v<K> ? sign ^ reversed : reversed);
  }
}
template <class K, Order order>
Val<int32_t> digit_of(const Val<K>& key, const Val<uint32_t>& shift) {
  using namespace lang;
  return cast<int32_t>((key_bits<K, order>(key) >> shift) & 255u);
}

/// The bits in which keys differ.
template <class K>
Result<key_bits_t<K>> differing_bits(const Field<K>& keys, Loc loc) {
  return kernel_of([](bool) {
    return Kernel{[](Field<K> from) {
                    using B = key_bits_t<K>;
                    Val<B> first = key_bits<K, Order::ascending>(nth(from, 0));
                    Var<B> different;
                    all_of(from, false, [&](const auto& key, const auto&) {
                      different |= key_bits<K, Order::ascending>(key) ^ first;
                    });
                    return different;
                  },
                  modes("sort")};
  })(keys, loc);
}

/// counts[digit · chunks + c]: how often the digit comes in chunk c.
template <class K, Order order>
void count_digits(const Field<K>& keys, const Field<int64_t>& counts, int shift, Loc loc) {
  kernel_of([](bool) {
    return Kernel{[](Field<K> from, Field<int64_t> to, Val<int64_t> chunk, Val<uint32_t> low) {
                    using namespace lang;
                    Val<int64_t> chunks = length_of(to) / digits;
                    for (auto c : range(chunks)) {
                      Val<int64_t> lo = c * chunk;
                      Val<int64_t> hi = min(lo + chunk, length_of(from));
                      Var<Array<int32_t, digits>> found;
                      for (auto i : range(lo, hi))
                        found[digit_of<K, order>(nth(from, i), low)] += 1;
                      for (auto d : range(digits))
                        nth(to, d * chunks + c) = cast<int64_t>(found[d]);
                    }
                  },
                  modes("sort")};
  })(keys, counts, sort_chunk(keys.size()), uint32_t(shift), loc);
}

/// Moves keys, and what rides along, to the places that follow from the scanned counts.
template <class K, Order order, class R>
void place_keys(const Field<K>& keys, const Field<K>& placed, const Field<R>& rider,
                const Field<R>& placed_rider, const Field<int64_t>& places, int shift, Loc loc) {
  kernel_of([](bool) {
    return Kernel{[](Field<K> from, Field<K> to, Field<R> with, Field<R> with_to,
                     Field<int64_t> start, Val<int64_t> chunk, Val<uint32_t> low) {
                    using namespace lang;
                    Val<int64_t> chunks = length_of(start) / digits;
                    for (auto c : range(chunks)) {
                      Val<int64_t> lo = c * chunk;
                      Val<int64_t> hi = min(lo + chunk, length_of(from));
                      Var<Array<int64_t, digits>> next;
                      for (auto d : range(digits)) next[d] = nth(start, d * chunks + c);
                      for (auto i : range(lo, hi)) {
                        Val<K> key = nth(from, i);
                        Val<int32_t> d = digit_of<K, order>(key, low);
                        Val<int64_t> at = next[d];
                        nth(to, at) = key;
                        nth(with_to, at) = nth(with, i);
                        next[d] = at + 1;
                      }
                    }
                  },
                  modes("sort")};
  })(keys, placed, rider, placed_rider, places, sort_chunk(keys.size()), uint32_t(shift), loc);
}
template <class K, Order order>
void place_keys(const Field<K>& keys, const Field<K>& placed, const Field<int64_t>& places,
                int shift, Loc loc) {
  kernel_of([](bool) {
    return Kernel{[](Field<K> from, Field<K> to, Field<int64_t> start, Val<int64_t> chunk,
                     Val<uint32_t> low) {
                    using namespace lang;
                    Val<int64_t> chunks = length_of(start) / digits;
                    for (auto c : range(chunks)) {
                      Val<int64_t> lo = c * chunk;
                      Val<int64_t> hi = min(lo + chunk, length_of(from));
                      Var<Array<int64_t, digits>> next;
                      for (auto d : range(digits)) next[d] = nth(start, d * chunks + c);
                      for (auto i : range(lo, hi)) {
                        Val<K> key = nth(from, i);
                        Val<int32_t> d = digit_of<K, order>(key, low);
                        Val<int64_t> at = next[d];
                        nth(to, at) = key;
                        next[d] = at + 1;
                      }
                    }
                  },
                  modes("sort")};
  })(keys, placed, places, sort_chunk(keys.size()), uint32_t(shift), loc);
}

template <class T>
void copy_elements(const Field<T>& from, const Field<T>& to, Loc loc) {
  kernel_of([](bool) {
    return Kernel{[](Field<T> source, Field<T> target) {
                    for (auto i : lang::range(length_of(source))) nth(target, i) = nth(source, i);
                  },
                  modes("sort")};
  })(from, to, loc);
}

/// Least significant digit first, 8 bits a pass (Knuth, TAOCP vol. 3, 5.2.5); passes over digits
/// that all keys share are left out. R… is nothing, or one type of what rides along.
template <class K, Order order, class... R>
void radix_sort(const Field<K>& keys, Loc loc, const Field<R>&... rider) {
  const int64_t size = keys.size(loc);
  if (size < 2) return;
  const key_bits_t<K> different = differing_bits(keys, loc);
  if (different == 0) return;
  FieldObject* beside = keys.object();
  Field<int64_t> counts =
      temporary<int64_t>(beside, digits * chunks_of(size, sort_chunk(size)), loc);
  Field<K> other = temporary<K>(beside, size, loc);
  auto pass = [&](int shift, const Field<K>& from, const Field<K>& to, const Field<R>&... with,
                  const Field<R>&... with_to) {
    count_digits<K, order>(from, counts, shift, loc);
    scan<Scan::exclusive, Plus>(counts, counts, int64_t(0), false, loc);
    if constexpr (sizeof...(R) == 0)
      place_keys<K, order>(from, to, counts, shift, loc);
    else
      place_keys<K, order>(from, to, with..., with_to..., counts, shift, loc);
  };
  auto passes = [&](const Field<R>&... other_rider) {
    bool there = false;
    for (int shift = 0; shift < int(8 * sizeof(K)); shift += 8) {
      if ((different >> shift & 255) == 0) continue;
      if (there)
        pass(shift, other, keys, other_rider..., rider...);
      else
        pass(shift, keys, other, rider..., other_rider...);
      there = !there;
    }
    if (!there) return;
    copy_elements(other, keys, loc);
    (copy_elements(other_rider, rider, loc), ...);
  };
  passes(temporary<R>(beside, size, loc)...);
}

/// value[i] = old value[order[i]].
template <class T, class I>
void permute(const Field<T>& value, const Field<I>& order, Loc loc) {
  Field<T> moved = temporary<T>(value.object(), value.size(loc), loc);
  kernel_of([](bool) {
    return Kernel{[](Field<T> from, Field<I> places, Field<T> to) {
                    for (auto i : lang::range(length_of(places)))
                      nth(to, i) = nth(from, lang::cast<int64_t>(nth(places, i)));
                  },
                  modes("sort_by_key")};
  })(value, order, moved, loc);
  copy_elements(moved, value, loc);
}

template <class I, class K, Order order, class... V>
void sort_indirectly(const Field<K>& keys, Loc loc, const Field<V>&... values) {
  Field<I> places = temporary<I>(keys.object(), keys.size(loc), loc);
  kernel_of([](bool) {
    return Kernel{[](Field<I> to) {
                    for (auto i : lang::range(length_of(to))) nth(to, i) = lang::cast<I>(i);
                  },
                  modes("sort_by_key")};
  })(places, loc);
  radix_sort<K, order>(keys, loc, places);
  (permute(values, places, loc), ...);
}

template <class T>
inline constexpr bool rides = is_scalar<T>;

/// A single scalar value takes part in every pass; more, and larger ones, are moved once, to where
/// a permutation says.
template <Order order, class K, class... V>
void sort_in_order(const Field<K>& keys, Loc loc, const Field<V>&... values) {
  if constexpr (sizeof...(V) == 0 || (sizeof...(V) == 1 && (rides<V> && ...)))
    radix_sort<K, order>(keys, loc, values...);
  else if (keys.size(loc) <= INT32_MAX)
    sort_indirectly<int32_t, K, order>(keys, loc, values...);
  else
    sort_indirectly<int64_t, K, order>(keys, loc, values...);
}

template <class K, class... V>
void begin_sort(const char* name, Order order, Loc loc, const Field<K>& keys,
                const Field<V>&... values) {
  static_assert(DeviceScalar<K>, "quern: keys are integers, floats or bool");
  begin_algorithm(name, keys.object(), loc);
  FieldObject* all[] = {keys.object(), values.object()...};
  for (FieldObject* const* a = all; a != all + 1 + sizeof...(V); a++) {
    expect_same_shape(name, keys.object(), *a, loc);
    for (FieldObject* const* b = all; b != a; b++) expect_apart(name, *a, *b, loc);
  }
  const AlgorithmCall call(name, {updated(keys), updated(values)...}, loc);
  if (order == Order::descending)
    sort_in_order<Order::descending>(keys, loc, values...);
  else
    sort_in_order<Order::ascending>(keys, loc, values...);
}

}  // namespace detail

/// Sorts the keys: integers, bool (false first), or floats, -0 before +0 and every NaN last.
/// Order::descending: the greatest first, and every NaN last. Elements are moved with all their
/// bits. Waits for the launches before it. Temporary memory: the keys' size once more, and a
/// little.
template <class K>
void sort(const Field<K>& keys, Order order = Order::ascending, Loc l = Loc::here()) {
  detail::begin_sort("sort", order, l, keys);
}
/// Sorts the keys, and the values, of any type, with them; equal keys keep their order. Throws
/// Error for fields of different sizes, and for fields that share memory.
template <class K, class A>
void sort_by_key(const Field<K>& keys, const Field<A>& a, Order order = Order::ascending,
                 Loc l = Loc::here()) {
  detail::begin_sort("sort_by_key", order, l, keys, a);
}
template <class K, class A, class B>
void sort_by_key(const Field<K>& keys, const Field<A>& a, const Field<B>& b,
                 Order order = Order::ascending, Loc l = Loc::here()) {
  detail::begin_sort("sort_by_key", order, l, keys, a, b);
}
template <class K, class A, class B, class C>
void sort_by_key(const Field<K>& keys, const Field<A>& a, const Field<B>& b, const Field<C>& c,
                 Order order = Order::ascending, Loc l = Loc::here()) {
  detail::begin_sort("sort_by_key", order, l, keys, a, b, c);
}

}  // namespace quern

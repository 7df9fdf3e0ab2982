#pragma once
// Loops: ranges of indices for the language's own range-for. A loop is parallel unless it stands
// inside a parallel loop or a function, or is wrapped in serial().
#include "quern/values/elem.h"

namespace quern {
namespace detail {

struct End {};

/// What a loop counts: a value that may go unused, for its destructor is not trivial.
template <class T>
struct LoopIndex : Val<T> {
  using Val<T>::Val;
  LoopIndex(const LoopIndex&) = default;
  ~LoopIndex() {}
};

/// Its destructor sees a native break, return or goto.
template <class I, int N>
class LoopIterator {
 public:
  QUERN_RECORDS LoopIterator(const LoopSpec& spec, Loc loc) : spec_(spec), loc_(loc) {}
  LoopIterator(const LoopIterator&) = delete;
  QUERN_RECORDS ~LoopIterator() {
    if (open_) block_end(Block::loop, false, loc_);
  }
  bool operator!=(End) const { return !done_; }
  QUERN_RECORDS auto operator*() {
    using T = typename std::conditional_t<N == 1, std::type_identity<I>,
                                          std::type_identity<Vec<I, N == 1 ? 2 : N>>>::type;
    Ids<T> index;
    loop_begin(spec_, index.v, loc_);
    open_ = true;
    return LoopIndex<T>(index);
  }
  void operator++() {
    done_ = true;
    open_ = false;
    block_end(Block::loop, true, loc_);
  }

 private:
  LoopSpec spec_;
  Loc loc_;
  bool open_ = false, done_ = false;
};

/// A domain of N axes with indices of type I.
template <class I, int N>
struct Range {
  LoopSpec spec;
  Loc loc;
  LoopIterator<I, N> begin() const { return {spec, loc}; }
  End end() const { return {}; }
};

/// The index type of loops with these bounds.
template <class... U>
using index_t = std::conditional_t<((Device<U> && (sizeof(scalar_t<elem_t<U>>) == 8 ||
                                                   std::is_same_v<elem_t<U>, uint32_t>)) ||
                                    ...),
                                   int64_t, int32_t>;

template <class U>
struct Bound {
  static constexpr bool integer = Integer<scalar_t<elem_t<U>>> && is_scalar<elem_t<U>>;
  static_assert(integer, "quern: the bound of a loop is an integer; write cast<int>(value)");
  static_assert(!Device<U> || !std::is_same_v<elem_t<U>, uint64_t>,
                "quern: the bound of a loop is signed: an unsigned 64-bit value narrows; write "
                "cast<int64_t>(value)");
  static constexpr bool ok = true;
};

/// A bound as written: host numbers must fit the index type.
template <class I, Operand U>
Id bound(const U& u, Loc loc) {
  if constexpr (Integer<scalar_t<elem_t<U>>>)
    return convert(operand_ids<I>(u, loc).v[0], scalar_of<I>(), loc);
  else
    return {};
}

/// An axis of a grid: a number of indices from 0 on, or a range of one axis.
template <class X>
struct AxisOf {
  static_assert(Bound<X>::ok);
  using index = index_t<X>;
  template <class I>
  static void write(LoopSpec& spec, int k, const X& n, Id zero, Loc loc) {
    spec.lo[k] = zero;
    spec.hi[k] = bound<I>(n, loc);
  }
};
template <class J>
struct AxisOf<Range<J, 1>> {
  using index = J;
  template <class I>
  static void write(LoopSpec& spec, int k, const Range<J, 1>& range, Id, Loc loc) {
    if (range.spec.serial || range.spec.deterministic || range.spec.has_block)
      fail(range.loc,
           "serial(), deterministic() and block_size() take the whole grid, not an axis");
    const LoopSpec axis = bounded(range.spec, range.loc);
    spec.lo[k] = convert(axis.lo[0], scalar_of<I>(), loc);
    spec.hi[k] = convert(axis.hi[0], scalar_of<I>(), loc);
    if (axis.step[0].recording) spec.step[k] = convert(axis.step[0], scalar_of<I>(), loc);
  }
};
template <class X>
inline constexpr bool is_range = false;
template <class J>
inline constexpr bool is_range<Range<J, 1>> = true;
template <class X>
concept Axis = Operand<X> || is_range<X>;

template <Axis... X>
auto grid_of(Loc loc, const X&... axes) {
  constexpr bool wide = (std::is_same_v<typename AxisOf<X>::index, int64_t> || ...);
  using I = std::conditional_t<wide, int64_t, int32_t>;
  Range<I, int(sizeof...(X))> out{{}, loc};
  const Id zero = host_constant<I>(0, loc);
  (AxisOf<X>::template write<I>(out.spec, out.spec.rank++, axes, zero, loc), ...);
  return out;
}

}  // namespace detail

namespace lang {

/// 0 … n-1.
template <detail::Operand U>
auto range(const U& n, Loc l = Loc::here()) {
  return detail::grid_of(l, n);
}
/// a … b-1.
template <detail::Operand A, detail::Operand B>
auto range(const A& a, const B& b, Loc l = Loc::here()) {
  static_assert(detail::Bound<A>::ok && detail::Bound<B>::ok);
  using I = detail::index_t<A, B>;
  detail::Range<I, 1> r{{}, l};
  r.spec.rank = 1;
  r.spec.lo[0] = detail::bound<I>(a, l);
  r.spec.hi[0] = detail::bound<I>(b, l);
  return r;
}
/// a, a + step … below b; step is 1 or more.
template <detail::Operand A, detail::Operand B, detail::Operand S>
auto range(const A& a, const B& b, const S& step, Loc l = Loc::here()) {
  static_assert(detail::Bound<A>::ok && detail::Bound<B>::ok && detail::Bound<S>::ok);
  using I = detail::index_t<A, B, S>;
  detail::Range<I, 1> r{{}, l};
  r.spec.rank = 1;
  r.spec.lo[0] = detail::bound<I>(a, l);
  r.spec.hi[0] = detail::bound<I>(b, l);
  r.spec.step[0] = detail::bound<I>(step, l);
  return r;
}

/// All index tuples, the last axis innermost. An axis is a number n, for 0 … n-1, or a range, as
/// in grid(n, range(1, m - 1)).
template <detail::Axis A, detail::Axis B>
auto grid(const A& a, const B& b, Loc l = Loc::here()) {
  return detail::grid_of(l, a, b);
}
template <detail::Axis A, detail::Axis B, detail::Axis C>
auto grid(const A& a, const B& b, const C& c, Loc l = Loc::here()) {
  return detail::grid_of(l, a, b, c);
}
template <detail::Axis A, detail::Axis B, detail::Axis C, detail::Axis D>
auto grid(const A& a, const B& b, const C& c, const D& d, Loc l = Loc::here()) {
  return detail::grid_of(l, a, b, c, d);
}

/// One iteration after another; loops inside may be parallel.
template <class I, int N>
detail::Range<I, N> serial(detail::Range<I, N> r) {
  r.spec.serial = true;
  return r;
}
/// A parallel loop that runs `n` (1 to 1024) iterations together: as one block of a GPU's threads;
/// the chunks of a CPU's threads are multiples of it.
template <class I, int N>
detail::Range<I, N> block_size(detail::Range<I, N> r, int n) {
  r.spec.block = n;
  r.spec.has_block = true;
  return r;
}
/// A parallel loop whose reductions are combined in a fixed order: the same bits in every run on a
/// device, and in strict mode on every device.
template <class I, int N>
detail::Range<I, N> deterministic(detail::Range<I, N> r) {
  r.spec.deterministic = true;
  return r;
}

}  // namespace lang
}  // namespace quern

template <class T, int N>
struct std::tuple_size<quern::detail::LoopIndex<quern::Vec<T, N>>>
    : std::integral_constant<std::size_t, N> {};
template <std::size_t K, class T, int N>
struct std::tuple_element<K, quern::detail::LoopIndex<quern::Vec<T, N>>> {
  using type = quern::Val<T>;
};

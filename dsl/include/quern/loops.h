#pragma once
// Loops: ranges of indices for the language's own range-for. A loop is parallel unless it stands
// inside a parallel loop or a function, or is wrapped in serial().
#include "quern/elem.h"

namespace quern {
namespace detail {

struct End {};

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
    return Val<T>(index);
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

}  // namespace detail

namespace lang {

/// 0 … n-1.
template <detail::Operand U>
auto range(const U& n, Loc l = Loc::here()) {
  static_assert(detail::Bound<U>::ok);
  using I = detail::index_t<U>;
  detail::Range<I, 1> r{{}, l};
  r.spec.rank = 1;
  r.spec.lo[0] = detail::host_constant<I>(0, l);
  r.spec.hi[0] = detail::bound<I>(n, l);
  return r;
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

/// All index pairs below (n, m), the last axis innermost.
template <detail::Operand A, detail::Operand B>
auto grid(const A& n, const B& m, Loc l = Loc::here()) {
  static_assert(detail::Bound<A>::ok && detail::Bound<B>::ok);
  using I = detail::index_t<A, B>;
  detail::Id z = detail::host_constant<I>(0, l);
  detail::Range<I, 2> r{{}, l};
  r.spec = {2, false, false, {z, z}, {detail::bound<I>(n, l), detail::bound<I>(m, l)}};
  return r;
}
template <detail::Operand A, detail::Operand B, detail::Operand C>
auto grid(const A& n, const B& m, const C& p, Loc l = Loc::here()) {
  static_assert(detail::Bound<A>::ok && detail::Bound<B>::ok && detail::Bound<C>::ok);
  using I = detail::index_t<A, B, C>;
  detail::Id z = detail::host_constant<I>(0, l);
  detail::Range<I, 3> r{{}, l};
  r.spec = {3,
            false,
            false,
            {z, z, z},
            {detail::bound<I>(n, l), detail::bound<I>(m, l), detail::bound<I>(p, l)}};
  return r;
}
template <detail::Operand A, detail::Operand B, detail::Operand C, detail::Operand D>
auto grid(const A& n, const B& m, const C& p, const D& q, Loc l = Loc::here()) {
  static_assert(detail::Bound<A>::ok && detail::Bound<B>::ok && detail::Bound<C>::ok &&
                detail::Bound<D>::ok);
  using I = detail::index_t<A, B, C, D>;
  detail::Id z = detail::host_constant<I>(0, l);
  detail::Range<I, 4> r{{}, l};
  r.spec = {4,
            false,
            false,
            {z, z, z, z},
            {detail::bound<I>(n, l), detail::bound<I>(m, l), detail::bound<I>(p, l),
             detail::bound<I>(q, l)}};
  return r;
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
/// A parallel loop whose reductions give the same bits on every device.
template <class I, int N>
detail::Range<I, N> deterministic(detail::Range<I, N> r) {
  r.spec.deterministic = true;
  return r;
}

}  // namespace lang
}  // namespace quern

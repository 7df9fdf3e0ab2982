#pragma once
// Level sets on trees (quern/sparse.h includes it).
#include <limits>

#include "quern/sparse/fields.h"

namespace quern::detail {

/// What a band leaves out along the last axis between elements below 0.
template <class I, int N>
struct Gaps {
  Field<TreeIndex<N, I>> first;  ///< that is not active
  Field<I> length;               ///< of elements that are not
};

/// Is the element one below 0 that the next one along the last axis is not active behind?
template <class I, class T, int N>
Val<bool> begins_gap(const Field<T, N>& u, const Val<TreeIndex<N, I>>& i,
                     const Val<TreeIndex<N, I>>& next) {
  using namespace lang;
  return u[i] < T(0) && is_inside<I>(u, next) && !is_active(u, next);
}
template <int N, class I>
Val<TreeIndex<N, I>> moved_along_last(const Val<TreeIndex<N, I>>& i, const Val<I>& by) {
  return index_from<N, I>(
      [&](int axis) { return axis + 1 == N ? along<N, I>(i, axis) + by : along<N, I>(i, axis); });
}

template <class I, class T, int N>
int64_t count_gaps(const Field<T, N>& u, Loc loc) {
  return kernel_of([](bool) {
           return Kernel{[](Field<T, N> x) -> Val<int64_t> {
                           Var<int64_t> count = 0;
                           for (auto i : x.template indices<I>()) {
                             Val<TreeIndex<N, I>> at = i;
                             count += lang::cast<int64_t>(
                                 begins_gap<I>(x, at, moved_along_last<N, I>(at, I(1))));
                           }
                           return count;
                         },
                         modes("signed_flood_fill")};
         })(u, loc)
      .value(loc);
}

/// Where they begin, in any order.
template <class I, class T, int N>
void find_gaps(const Field<T, N>& u, const Gaps<I, N>& gaps, const Field<int64_t>& found, Loc loc) {
  kernel_of([](bool) {
    return Kernel{[](Field<T, N> x, Field<TreeIndex<N, I>> first, Field<int64_t> count) {
                    for (auto i : x.template indices<I>()) {
                      Val<TreeIndex<N, I>> at = i, next = moved_along_last<N, I>(at, I(1));
                      for ([[maybe_unused]] auto _ : lang::when(begins_gap<I>(x, at, next)))
                        first[lang::atomic_add(count[0], int64_t(1))] = next;
                    }
                  },
                  modes("signed_flood_fill")};
  })(u, gaps.first, found, loc);
}

/// How long they are; how many of them nothing below 0 ends.
template <class I, class T, int N>
int64_t measure_gaps(const Field<T, N>& u, const Gaps<I, N>& gaps, Loc loc) {
  return kernel_of([](bool) {
           return Kernel{
               [](Field<T, N> x, Field<TreeIndex<N, I>> first, Field<I> length) -> Val<int64_t> {
                 using namespace lang;
                 // No element behind the last one of the band ends any.
                 Var<I> last = std::numeric_limits<I>::min();
                 for (auto i : x.template indices<I>())
                   atomic_max(last, along<N, I>(Val<TreeIndex<N, I>>(i), N - 1));
                 Var<int64_t> open = 0;
                 for (auto k : length.wide()) {
                   Val<TreeIndex<N, I>> from = first[k];
                   Val<I> most = last - along<N, I>(from, N - 1);
                   Var<I> n = 1;
                   for (auto _ : repeat_while([&] {
                          return n <= most && !is_active(x, moved_along_last<N, I>(from, n));
                        }))
                     n += I(1);
                   length[k] = n;
                   Val<bool> ends = n <= most && x[moved_along_last<N, I>(from, n)] < T(0);
                   open += cast<int64_t>(!ends);
                 }
                 return open;
               },
               modes("signed_flood_fill")};
         })(u, gaps.first, gaps.length, loc)
      .value(loc);
}

template <class I, class T, int N>
void fill_gaps(const Field<T, N>& u, const Gaps<I, N>& gaps, T value, Loc loc) {
  kernel_of([](bool) {
    return Kernel{[](Field<T, N> x, Field<TreeIndex<N, I>> first, Field<I> length, Val<T> v) {
                    for (auto k : length.wide()) {
                      Val<TreeIndex<N, I>> from = first[k];
                      for (auto n : lang::range(length[k])) x[moved_along_last<N, I>(from, n)] = v;
                    }
                  },
                  modes("signed_flood_fill")};
  })(u, gaps.first, gaps.length, value, loc);
}

template <class I, class T, int N>
void signed_flood_fill(const Field<T, N>& u, T outside, Loc loc) {
  const int64_t count = count_gaps<I>(u, loc);
  if (count == 0) return;
  const Gaps<I, N> gaps{temporary<TreeIndex<N, I>>(u.object(), count, loc),
                        temporary<I>(u.object(), count, loc)};
  const auto found = temporary<int64_t>(u.object(), 1, loc);
  found.fill(0, loc);
  find_gaps<I>(u, gaps, found, loc);
  if (const int64_t open = measure_gaps<I>(u, gaps, loc))
    throw Error(loc, "signed_flood_fill: behind " + std::to_string(open) +
                         " elements below 0 nothing active below 0 follows along the last axis; a "
                         "level set has a closed band on both sides of 0");
  fill_gaps<I>(u, gaps, T(-outside), loc);
}

template <class T, int N>
void signed_flood_fill(TreeData& tree, const Field<T, N>& u, Loc loc) {
  constexpr const char* name = "signed_flood_fill";
  begin_algorithm(name, u.object(), loc);
  expect_on_tree(name, tree, u.object(), loc);
  expect_no_lists(name, tree, loc);
  const T outside = background_of(name, u, loc);
  if (!(outside > T(0)))
    throw Error(loc, std::string(name) +
                         " of a field whose background is not above 0; that of a level set is how "
                         "far from 0 its band goes");
  const AlgorithmCall call(name, {updated(u)}, loc);
  with_index(is_wide(u.object()), [&]<class I>(I) { signed_flood_fill<I>(u, outside, loc); });
}

}  // namespace quern::detail

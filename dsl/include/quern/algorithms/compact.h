#pragma once
// Keeping some elements of a field, in order.
#include "quern/algorithms/scan.h"

namespace quern {
namespace detail {

struct IsTrue {
  Val<bool> operator()(const Val<bool>& v) const { return v; }
};

template <class K, class F>
void count_kept(const Field<F>& flags, const Field<int64_t>& kept, bool checked, Loc loc) {
  kernel_of(
      [](bool on) {
        return Kernel{[](Field<F> from, Field<int64_t> to) {
                        using namespace lang;
                        for (auto c : range(length_of(to))) {
                          Val<int64_t> lo = c * chunk_length;
                          Val<int64_t> hi = min(lo + chunk_length, length_of(from));
                          Var<int64_t> found;
                          for (auto i : range(lo, hi))
                            found += cast<int64_t>(K{}(Val<F>(nth(from, i))));
                          nth(to, c) = found;
                        }
                      },
                      modes("compact", on)};
      },
      checked)(flags, kept, loc);
}

/// Every element is written to the next free place of its chunk, and stays there if it is kept; a
/// guard that turns false once replaces a branch for each element.
template <class K, class F, class T>
void write_kept(const Field<T>& in, const Field<F>& flags, const Field<int64_t>& start,
                int64_t total, const Field<T>& out, bool checked, Loc loc) {
  kernel_of(
      [](bool on) {
        return Kernel{[](Field<T> from, Field<F> test, Field<int64_t> starts, Field<T> to,
                         Val<int64_t> kept) {
                        using namespace lang;
                        Val<int64_t> chunks = length_of(starts);
                        for (auto c : range(chunks)) {
                          Val<int64_t> lo = c * chunk_length;
                          Val<int64_t> hi = min(lo + chunk_length, length_of(from));
                          Var<int64_t> end = kept;
                          for (auto _ : when(c + 1 < chunks)) end = nth(starts, c + 1);
                          Var<int64_t> at = nth(starts, c);
                          for (auto i : range(lo, hi)) {
                            for (auto _ : when(at < end)) {
                              nth(to, Val<int64_t>(at)) = nth(from, i);
                              at += cast<int64_t>(K{}(Val<F>(nth(test, i))));
                            }
                          }
                        }
                      },
                      modes("compact", on)};
      },
      checked)(in, flags, start, out, total, loc);
}

void expect_room(FieldObject* in, FieldObject* out, int64_t kept, Loc loc);

template <class K, class F, class T>
int64_t compact(const Field<T>& in, const Field<F>& flags, const Field<T>& out, Source source) {
  const Loc loc = source.loc;
  const bool checked = is_checked({}, source.checked);
  begin_algorithm("compact", in.object(), loc);
  expect_same_shape("compact", in.object(), flags.object(), loc);
  expect_apart("compact", in.object(), out.object(), loc);
  expect_apart("compact", flags.object(), out.object(), loc);
  const AlgorithmCall call("compact", {read(in), read(flags), written(out)}, loc);
  Field<int64_t> start = temporary<int64_t>(in.object(), chunks_of(in.size(loc)), loc);
  count_kept<K>(flags, start, checked, loc);
  const int64_t kept = scan<Scan::exclusive, Plus>(start, start, int64_t(0), false, loc);
  expect_room(in.object(), out.object(), kept, loc);
  write_kept<K>(in, flags, start, kept, out, checked, loc);
  return kept;
}

}  // namespace detail

/// Copies the elements of `in` whose flag is true to the front of `out`, in order, and returns how
/// many there are; what lies behind them in `out` stays. Elements are of any type. Waits for the
/// count. Throws Error, and writes nothing, where `out` has less room than that; also for sizes
/// that differ, and where `out` shares memory with the others.
template <class T>
int64_t compact(const Field<T>& in, const Field<bool>& flags, const Field<T>& out,
                detail::Source source = detail::Source::here(QUERN_CHECKED_HERE)) {
  return detail::compact<detail::IsTrue>(in, flags, out, source);
}
/// The same with a predicate of the elements, as in `[](auto v) { return v > 0; }`.
template <class T, class P>
int64_t compact(const Field<T>& in, P, const Field<T>& out,
                detail::Source source = detail::Source::here(QUERN_CHECKED_HERE)) {
  detail::expect_captureless<P>();
  return detail::compact<P>(in, in, out, source);
}

}  // namespace quern

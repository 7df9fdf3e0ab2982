#pragma once
// Scans (prefix sums) along fields of one axis.
#include "quern/algorithms/common.h"

namespace quern {

/// Associative operators for scans; `[](auto a, auto b) {…}` is one too.
struct Plus {
  template <class A, class B>
  auto operator()(const A& a, const B& b) const {
    return a + b;
  }
};
struct Minimum {
  template <class A, class B>
  auto operator()(const A& a, const B& b) const {
    return lang::min(a, b);
  }
};
struct Maximum {
  template <class A, class B>
  auto operator()(const A& a, const B& b) const {
    return lang::max(a, b);
  }
};

namespace detail {

enum class Scan : bool { inclusive, exclusive };

/// Elements lo … hi-1 behind what `made` holds: writes what each makes; then `made` is what all
/// make. Four at a time are combined with each other first, so that only one operation of four
/// waits for the four before.
template <Scan kind, class O, class T, class U>
void scan_from(const Field<T>& in, const Field<U>& out, Var<U>& made, const Val<int64_t>& lo,
               const Val<int64_t>& hi) {
  using namespace lang;
  auto element = [&](const Val<int64_t>& i) { return element_as<U>(nth(in, i)); };
  auto both = [](const Val<U>& a, const Val<U>& b) { return applied<O, U>(a, b); };
  Val<int64_t> rounds = max(hi - lo, 0) / 4;
  for (auto k : serial(range(rounds))) {
    Val<int64_t> i = lo + k * 4;
    Val<U> a = element(i), b = element(i + 1), c = element(i + 2), d = element(i + 3);
    Val<U> ab = both(a, b), cd = both(c, d), before = made;
    Val<U> after[] = {both(before, a), both(before, ab), both(before, both(ab, c)),
                      both(before, both(ab, cd))};
    if constexpr (kind == Scan::exclusive) nth(out, i) = before;
    for (int e = kind == Scan::exclusive; e < 4; e++)
      nth(out, i + e) = after[kind == Scan::exclusive ? e - 1 : e];
    made = after[3];
  }
  for (auto i : serial(range(lo + rounds * 4, hi))) {
    Val<U> v = element(i);
    if constexpr (kind == Scan::exclusive) nth(out, i) = made;
    made = both(made, v);
    if constexpr (kind == Scan::inclusive) nth(out, i) = made;
  }
}

template <Scan kind, class O, class T, class U>
Result<U> scan_serially(const Field<T>& in, const Field<U>& out, U init, bool checked, Loc loc) {
  return kernel_of(
      [](bool on) {
        return Kernel{[](Field<T> from, Field<U> to, Val<U> first) {
                        using namespace lang;
                        Var<U> made = first;
                        Val<int64_t> size = length_of(from);
                        if constexpr (kind == Scan::exclusive) {
                          scan_from<kind, O>(from, to, made, 0, size);
                        } else {
                          for (auto _ : when(size > 0)) {
                            made = element_as<U>(nth(from, 0));
                            nth(to, 0) = made;
                            scan_from<kind, O>(from, to, made, 1, size);
                          }
                        }
                        return made;
                      },
                      modes("scan", on)};
      },
      checked)(in, out, init, loc);
}

/// total[c] becomes what chunk c makes.
template <class O, class T, class U>
void scan_totals(const Field<T>& in, const Field<U>& total, bool checked, Loc loc) {
  kernel_of(
      [](bool on) {
        return Kernel{[](Field<T> from, Field<U> to) {
                        using namespace lang;
                        for (auto c : range(length_of(to))) {
                          Val<int64_t> lo = c * chunk_length;
                          Val<int64_t> hi = min(lo + chunk_length, length_of(from));
                          nth(to, c) = combined<U, O>(from, lo, hi);
                        }
                      },
                      modes("scan", on)};
      },
      checked)(in, total, loc);
}

/// Given what all chunks up to c make, scans each.
template <Scan kind, class O, class T, class U>
Result<U> scan_chunks(const Field<T>& in, const Field<U>& total, const Field<U>& out, U init,
                      bool checked, Loc loc) {
  return kernel_of(
      [](bool on) {
        return Kernel{[](Field<T> from, Field<U> totals, Field<U> to, Val<U> first) {
                        using namespace lang;
                        Val<int64_t> chunks = length_of(totals);
                        for (auto c : range(chunks)) {
                          Val<int64_t> lo = c * chunk_length;
                          Val<int64_t> hi = min(lo + chunk_length, length_of(from));
                          Var<U> made = first;
                          if constexpr (kind == Scan::exclusive) {
                            for (auto _ : when(c > 0))
                              made = applied<O, U>(first, nth(totals, c - 1));
                            scan_from<kind, O>(from, to, made, lo, hi);
                          } else {
                            made = element_as<U>(nth(from, lo));
                            for (auto _ : when(c > 0))
                              made = applied<O, U>(nth(totals, c - 1), made);
                            nth(to, lo) = made;
                            scan_from<kind, O>(from, to, made, lo + 1, hi);
                          }
                        }
                        Val<U> all = nth(totals, chunks - 1);
                        if constexpr (kind == Scan::exclusive)
                          return applied<O, U>(first, all);
                        else
                          return all;
                      },
                      modes("scan", on)};
      },
      checked)(in, total, out, init, loc);
}

/// Totals of chunks, their scan, and the chunks again (Blelloch 1990, section 1.4).
template <Scan kind, class O, class T, class U>
Result<U> scan(const Field<T>& in, const Field<U>& out, U init, bool checked, Loc loc) {
  const int64_t size = in.size(loc);
  if (size <= chunk_length) return scan_serially<kind, O>(in, out, init, checked, loc);
  Field<U> total = temporary<U>(in.object(), chunks_of(size), loc);
  scan_totals<O>(in, total, checked, loc);
  scan<Scan::inclusive, O>(total, total, init, checked, loc);
  return scan_chunks<kind, O>(in, total, out, init, checked, loc);
}

template <Scan kind, class O, class T, class U>
Result<U> begin_scan(const Field<T>& in, const Field<U>& out, U init, const char* name,
                     Source source) {
  expect_captureless<O>();
  begin_algorithm(name, in.object(), source.loc);
  expect_same_shape(name, in.object(), out.object(), source.loc);
  expect_apart_or_same(name, in.object(), out.object(), source.loc);
  const AlgorithmCall call(name, {read(in), written(out)}, source.loc);
  return scan<kind, O>(in, out, init, is_checked({}, source.checked), source.loc);
}

}  // namespace detail

/// out[i] = in[0] op … op in[i], for an associative `op` of two device values. Elements are
/// converted to the type of `out` before they are combined. `in` and `out` may be one field. How
/// operands are grouped depends on the size alone, so float results are the same in every run.
/// Returns what all elements make (zero without any), as a Result. Throws Error for different
/// sizes, and for fields that share memory otherwise.
template <class T, class U, class O = Plus>
Result<U> inclusive_scan(const Field<T>& in, const Field<U>& out, O = {},
                         detail::Source source = detail::Source::here(QUERN_CHECKED_HERE)) {
  return detail::begin_scan<detail::Scan::inclusive, O>(in, out, U{}, "inclusive_scan", source);
}
/// out[i] = init op in[0] op … op in[i-1]; returns init op all elements. Otherwise as
/// inclusive_scan.
template <class T, class U, class O = Plus>
Result<U> exclusive_scan(const Field<T>& in, const Field<U>& out, std::type_identity_t<U> init = {},
                         O = {}, detail::Source source = detail::Source::here(QUERN_CHECKED_HERE)) {
  return detail::begin_scan<detail::Scan::exclusive, O>(in, out, init, "exclusive_scan", source);
}

}  // namespace quern

#pragma once
// Counting values in bins.
#include "quern/algorithms/common.h"

namespace quern {
namespace detail {

/// Where values belong: the number of their bin, or `bins` if they have none.
struct IntegerBins {
  template <class T>
  static Val<int64_t> bin(const Val<T>& v, const Val<int64_t>& bins, const Val<T>&, const Val<T>&,
                          const Val<T>&) {
    using namespace lang;
    Val<uint64_t> end = cast<uint64_t>(bins);
    return cast<int64_t>(min(cast<uint64_t>(v), end));  // negative values become large ones
  }
};
struct EqualBins {
  template <class T>
  static Val<int64_t> bin(const Val<T>& v, const Val<int64_t>& bins, const Val<T>& lo,
                          const Val<T>& hi, const Val<T>& scale) {
    using namespace lang;
    Val<bool> inside = (v >= lo) & (v <= hi);
    Val<int64_t> at = cast<int64_t>(select(inside, (v - lo) * scale, T(0)));
    return select(inside, min(at, bins - 1), bins);
  }
};

/// Values that a table of so many bins counts: many more than its bins, which are all added up.
constexpr int64_t histogram_chunk(int slots) { return slots <= 256 ? 32768 : 131072; }

/// Counts in tables of `slots` bins, `copies` for each chunk, which are then added to the bins.
/// Neighbours count in different copies: an increment need not wait for the one before it.
template <int slots, int copies, class O, class T, int N, class B>
Result<int64_t> count_in_tables(const Field<T, N>& values, const Field<B>& bins, T lo, T hi,
                                T scale, Loc loc) {
  return kernel_of([](bool) {
    return Kernel{[](Field<T, N> from, Field<B> to, Val<T> low, Val<T> high, Val<T> factor,
                     Val<int64_t> size) {
                    using namespace lang;
                    constexpr int64_t chunk = histogram_chunk(slots);
                    for (auto b : range(length_of(to))) nth(to, b) = 0;
                    Var<int64_t> outside;
                    for (auto c : range((size + (chunk - 1)) / chunk)) {
                      Val<int64_t> first = c * chunk;
                      Val<int64_t> end = length_of(to);
                      Var<Array<uint32_t, (slots + 1) * copies>> found;
                      each_of<4>(
                          from, first, min(first + chunk, size), [&](const auto& i, int lane) {
                            Val<int64_t> bin = O::template bin<T>(from[i], end, low, high, factor);
                            found[bin + lane % copies * (slots + 1)] += 1;
                          });
                      auto total = [&](const Val<int64_t>& bin) {
                        Var<uint32_t> sum;
                        for (int k = 0; k < copies; k++) sum += found[bin + k * (slots + 1)];
                        return Val<uint32_t>(sum);
                      };
                      for (auto b : range(end)) {
                        Val<uint32_t> here = total(b);
                        for (auto _ : when(here != 0)) nth(to, b) += cast<B>(here);
                      }
                      outside += cast<int64_t>(total(end));
                    }
                    return outside;
                  },
                  modes("histogram")};
  })(values, bins, lo, hi, scale, values.size(loc), loc);
}

/// Counts in the bins themselves.
template <class O, class T, int N, class B>
Result<int64_t> count_in_place(const Field<T, N>& values, const Field<B>& bins, T lo, T hi, T scale,
                               Loc loc) {
  return kernel_of([](bool) {
    return Kernel{[](Field<T, N> from, Field<B> to, Val<T> low, Val<T> high, Val<T> factor) {
                    using namespace lang;
                    for (auto b : range(length_of(to))) nth(to, b) = 0;
                    Var<int64_t> outside;
                    all_of(from, false, [&](const auto& v, const auto&) {
                      Val<int64_t> bin = O::template bin<T>(v, length_of(to), low, high, factor);
                      for (auto _ : when(bin < length_of(to))) nth(to, bin) += 1;
                      for (auto _ : otherwise()) outside += 1;
                    });
                    return outside;
                  },
                  modes("histogram")};
  })(values, bins, lo, hi, scale, loc);
}

[[noreturn]] void refuse_outside(int64_t outside, int64_t size, int64_t bins, Loc loc);
void expect_interval(double lo, double hi, double width, Loc loc);
/// Throws Error where one bin, an integer of `bits` bits, could not count all values.
void expect_countable(int64_t size, int bits, bool is_signed, Loc loc);

template <class O, class T, int N, class B>
Result<int64_t> count_in_bins(const Field<T, N>& values, const Field<B>& bins, T lo, T hi, T scale,
                              Loc loc) {
  static_assert(N > 0, "quern: a field without axes has one value");
  static_assert(Integer<B> && sizeof(B) >= 4, "quern: bins are integers of 32 or 64 bits");
  begin_algorithm("histogram", values.object(), loc);
  expect_apart("histogram", values.object(), bins.object(), loc);
  const int64_t slots = bins.size(loc), size = values.size(loc);
  expect_countable(size, 8 * sizeof(B), std::is_signed_v<B>, loc);
  const AlgorithmCall call("histogram", {read(values), written(bins)}, loc);
  if (slots <= 256) return count_in_tables<256, 4, O>(values, bins, lo, hi, scale, loc);
  if (slots <= 4096 && slots <= size / 8)
    return count_in_tables<4096, 1, O>(values, bins, lo, hi, scale, loc);
  return count_in_place<O>(values, bins, lo, hi, scale, loc);
}

}  // namespace detail

/// bins[v] becomes the number of values v, for a field of integers of any rank. A value that is not
/// one of 0 … bins.size() - 1 counts in no bin; where the caller's file is compiled for debugging
/// it is an Error, and the call waits to find out. Returns the number of such values, as a Result.
/// Bins are integers of 32 or 64 bits; no count wraps: with more values than one bin can count,
/// 2^31 - 1 for int and 2^32 - 1 for uint32_t, it throws Error.
template <class T, int N, class B>
Result<int64_t> histogram(const Field<T, N>& values, const Field<B>& bins,
                          detail::Source source = detail::Source::here(QUERN_CHECKED_HERE)) {
  static_assert(detail::Integer<T>,
                "quern: without an interval, histogram takes integers; of floats it is "
                "histogram(values, bins, lo, hi)");
  auto outside =
      detail::count_in_bins<detail::IntegerBins>(values, bins, T(0), T(0), T(0), source.loc);
  if (detail::is_checked({}, source.checked))
    if (int64_t n = outside; n > 0)
      detail::refuse_outside(n, values.size(), bins.size(), source.loc);
  return outside;
}
/// bins[b] becomes the number of values in the b-th of bins.size() equal parts of [lo, hi]: bin
/// ⌊(v - lo) · (bins / (hi - lo))⌋ in the arithmetic of the values, hi itself in the last one.
/// Values outside, and NaNs, count in no bin; returns their number, as a Result. Throws Error
/// unless lo < hi and hi - lo is finite, and for more values than one bin can count.
template <class T, int N, class B>
Result<int64_t> histogram(const Field<T, N>& values, const Field<B>& bins,
                          std::type_identity_t<T> lo, std::type_identity_t<T> hi,
                          Loc l = Loc::here()) {
  static_assert(std::is_floating_point_v<T>,
                "quern: with an interval, histogram takes floats; of integers it is "
                "histogram(values, bins)");
  detail::expect_interval(double(lo), double(hi), double(hi - lo), l);
  return detail::count_in_bins<detail::EqualBins>(values, bins, lo, hi, T(bins.size(l)) / (hi - lo),
                                                  l);
}

}  // namespace quern

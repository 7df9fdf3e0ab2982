#pragma once
// What the algorithms share: chunks, kernels recorded once, temporary fields, tests of arguments.
#include "quern/quern.h"

namespace quern {
namespace detail {

/// Elements that one iteration of a chunked loop goes through, one after another. Fixed, so that
/// what is combined with what depends on the size alone; small enough for the devices that bound
/// the rounds of an iteration.
inline constexpr int64_t chunk_length = 1024;

constexpr int64_t chunks_of(int64_t size, int64_t length = chunk_length) {
  return size / length + (size % length != 0);
}

/// Gives the kernel up when the process exits, while the devices it has run on still stand.
void keep_until_exit(KernelObject* kernel);
/// The kernel that `make(choice)` yields, made at the first call for each choice. `make` is a
/// lambda without captures: its type stands for the kernel.
template <class F>
const auto& kernel_of(F make, bool choice = false) {
  auto kept = [&](bool on) {
    const auto* kernel = new auto(make(on));
    keep_until_exit(kernel->object());
    return kernel;
  };
  if (choice) {
    static const auto* kernel = kept(true);
    return *kernel;
  }
  static const auto* kernel = kept(false);
  return *kernel;
}
/// Algorithms stay within their fields; only the code of users' operators is checked.
constexpr Options modes(const char* name, bool checked = false) {
  return {.checked = checked, .name = name};
}

/// An operator or predicate is known by its type alone.
template <class F>
constexpr void expect_captureless() {
  static_assert(std::is_empty_v<F> && std::is_default_constructible_v<F>,
                "quern: the operators and predicates of algorithms capture nothing, since their "
                "kernels are recorded once; write what depends on host values with a kernel of "
                "your own, for instance into a field of flags");
}

// ---- arguments
/// A field of one axis on the device of `beside`.
FieldObject* make_beside(FieldObject* beside, FieldType type, int64_t size, Loc loc);
template <class T>
Field<T> temporary(FieldObject* beside, int64_t size, Loc loc) {
  return Field<T>(Ref<FieldObject>(make_beside(beside, Field<T>::type(), size, loc)));
}
/// Comes first in every algorithm. Throws Error inside a recording, for a released field, and once
/// the process is ending.
void begin_algorithm(const char* name, FieldObject* field, Loc loc);
/// Throws Error unless the fields have the same extents.
void expect_same_shape(const char* algorithm, FieldObject* a, FieldObject* b, Loc loc);
/// Throws Error if an element of one may be an element of the other.
void expect_apart(const char* algorithm, FieldObject* a, FieldObject* b, Loc loc);
/// The same, except where both are one field: what is done in place reads an element before it
/// writes it.
void expect_apart_or_same(const char* algorithm, FieldObject* a, FieldObject* b, Loc loc);
/// A field of an algorithm's, and what the algorithm does with its elements.
struct Used {
  FieldObject* field;
  bool reads, writes;
};
template <class T, int N>
Used read(const Field<T, N>& x) {
  return {x.object(), true, false};
}
template <class T, int N>
Used written(const Field<T, N>& x) {
  return {x.object(), false, true};
}
template <class T, int N>
Used updated(const Field<T, N>& x) {
  return {x.object(), true, true};
}
/// A call of an algorithm whose arguments fit: those who observe launches are told of it as one.
/// Throws what they throw.
class AlgorithmCall {
 public:
  AlgorithmCall(const char* name, std::initializer_list<Used> fields, Loc loc);
  ~AlgorithmCall();
  AlgorithmCall(const AlgorithmCall&) = delete;

 private:
  struct State;
  State* state_;
};
[[noreturn]] void refuse_empty(const char* algorithm, Loc loc);

// ---- inside kernels
/// Element number k, counted from 0, of a field of one axis.
template <class T>
Elem<T> nth(const Field<T>& x, const Val<int64_t>& k) {
  return x[k + x.template first<int64_t>(0)];
}
template <class T>
Val<int64_t> length_of(const Field<T>& x) {
  return x.template dim<int64_t>(0);
}
/// An element as a T: numbers are converted.
template <class T, class E>
Val<T> element_as(const E& e) {
  if constexpr (std::is_same_v<T, elem_t<E>>)
    return Val<T>(e);
  else
    return lang::cast<scalar_t<T>>(e);
}

/// O{}(a, b) as a value of the operands' type: arithmetic on small integers promotes them.
template <class O, class T>
Val<T> applied(const Val<T>& a, const Val<T>& b) {
  return element_as<T>(O{}(a, b));
}

/// The index of element number k, counted from 0 in row-major order.
template <class T, int N>
auto index_of(const Field<T, N>& x, const Val<int64_t>& k) {
  if constexpr (N == 1) {
    return k + x.template first<int64_t>(0);
  } else {
    Var<Vec<int64_t, N>> index;
    Var<int64_t> left = k;
    for (int axis = N - 1; axis > 0; axis--) {
      Val<int64_t> extent = x.template dim<int64_t>(axis);
      index[axis] = left % extent + x.template first<int64_t>(axis);
      left = left / extent;
    }
    index[0] = left + x.template first<int64_t>(0);
    return Val<Vec<int64_t, N>>(index);
  }
}

/// The number of the element at `index`.
template <class T, int N, class I>
Val<int64_t> number_of(const Field<T, N>& x, const I& index) {
  if constexpr (N == 1) {
    return index - x.template first<int64_t>(0);
  } else {
    Var<int64_t> number;
    for (int axis = 0; axis < N; axis++)
      number =
          number * x.template dim<int64_t>(axis) + (index[axis] - x.template first<int64_t>(axis));
    return number;
  }
}
/// The index in `to` of the element that `index` names in `from`, counted from their first ones.
template <class T, class U, int N, class I>
auto counterpart(const Field<T, N>& from, const Field<U, N>& to, const I& index) {
  auto shift = [&](int axis) {
    return to.template first<int64_t>(axis) - from.template first<int64_t>(axis);
  };
  if constexpr (N == 1) {
    return index + shift(0);
  } else {
    Var<Vec<int64_t, N>> moved = index;
    for (int axis = 0; axis < N; axis++) moved[axis] += shift(axis);
    return Val<Vec<int64_t, N>>(moved);
  }
}

/// Calls `body(i, lane)` for i = lo … hi-1 in order, in a loop that takes `lanes` of them a round;
/// the host's `lane` says which. What is left over comes one by one, as lane 0.
template <int lanes, class F>
void each_below(const Val<int64_t>& lo, const Val<int64_t>& hi, F body) {
  using namespace lang;
  Val<int64_t> rounds = max(hi - lo, 0) / lanes;
  if constexpr (lanes > 1)
    for (auto k : serial(range(rounds)))
      for (int lane = 0; lane < lanes; lane++) body(lo + k * lanes + lane, lane);
  for (auto i : serial(range(lanes > 1 ? lo + rounds * lanes : lo, hi))) body(i, 0);
}
/// Calls `body(index, lane)` for each element numbered lo … hi-1, in order: row by row, so that
/// divisions come once a row.
template <int lanes = 1, class T, int N, class F>
void each_of(const Field<T, N>& x, const Val<int64_t>& lo, const Val<int64_t>& hi, F body) {
  using namespace lang;
  if constexpr (N == 1) {
    Val<int64_t> first = x.template first<int64_t>(0);
    each_below<lanes>(lo + first, hi + first, body);
  } else {
    Val<int64_t> row = x.template dim<int64_t>(N - 1);
    Var<int64_t> at = lo;
    for (auto _ : repeat_while([&] { return at < hi; })) {
      Val<int64_t> end = min(hi, at + (row - at % row));
      Var<Vec<int64_t, N>> index = index_of(x, at);
      Val<int64_t> shift = index[N - 1] - at;
      each_below<lanes>(at + shift, end + shift, [&](const auto& j, int lane) {
        index[N - 1] = j;
        body(Val<Vec<int64_t, N>>(index), lane);
      });
      at = end;
    }
  }
}

/// What `count` elements from number i on make: combined by halves, which need not wait for each
/// other.
template <int count, class A, class O, class T>
Val<A> combined_halves(const Field<T>& x, const Val<int64_t>& i) {
  if constexpr (count == 1)
    return element_as<A>(nth(x, i));
  else
    return applied<O, A>(combined_halves<count / 2, A, O>(x, i),
                         combined_halves<count / 2, A, O>(x, i + count / 2));
}
/// What elements lo … hi-1, at least one, make from left to right. Grouped by their number alone.
template <class A, class O, class T, int N>
Val<A> combined(const Field<T, N>& x, const Val<int64_t>& lo, const Val<int64_t>& hi) {
  using namespace lang;
  Var<A> made = element_as<A>(x[index_of(x, lo)]);
  if constexpr (N == 1) {
    constexpr int together = 8;
    Val<int64_t> rounds = (hi - lo - 1) / together;
    for (auto k : serial(range(rounds)))
      made = applied<O, A>(made, combined_halves<together, A, O>(x, lo + 1 + k * together));
    for (auto i : serial(range(lo + 1 + rounds * together, hi)))
      made = applied<O, A>(made, element_as<A>(nth(x, i)));
  } else {
    each_of(x, lo + 1, hi,
            [&](const auto& i, int) { made = applied<O, A>(made, element_as<A>(x[i])); });
  }
  return made;
}

/// Calls `body` with each element and its index in a parallel loop.
template <class T, int N, class F>
void all_of(const Field<T, N>& x, bool deterministic, F body) {
  if constexpr (N == 0) {
    body(x(), Val<int64_t>(0));
  } else {
    auto indices = x.wide();
    for (auto i : deterministic ? lang::deterministic(indices) : indices) body(x[i], i);
  }
}

}  // namespace detail
}  // namespace quern

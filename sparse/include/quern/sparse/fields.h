#pragma once
// Operations on trees that go by what fields hold (quern/sparse.h includes it).
#include "quern/algorithms/reduce.h"
#include "quern/sparse/kernels.h"
#include "quern/sparse/operations.h"

namespace quern::detail {

template <class T, int N>
T background_of(const char* name, const Field<T, N>& u, Loc loc) {
  T value{};
  background_of(name, u.object(), &value, loc);
  return value;
}

/// Calls `f` with each component of both.
template <class T, class F>
void each_component(const Val<T>& a, const Val<T>& b, F&& f) {
  static_assert(!is_structure<T>,
                "quern: structures have no distance; write a predicate, or give a member");
  if constexpr (is_matrix<T>) {
    for (int r = 0; r < Traits<T>::rows; r++)
      for (int c = 0; c < Traits<T>::columns; c++) f(a(r, c), b(r, c));
  } else if constexpr (is_vector<T>) {
    for (int k = 0; k < count_of<T>; k++) f(a[k], b[k]);
  } else {
    f(a, b);
  }
}
/// Is no component further from the other's than `tolerance`? Equal ones are not, infinities too;
/// a NaN always is. Of bool: are they equal?
template <class T>
Val<bool> is_near(const Val<T>& a, const Val<T>& b, const Val<scalar_t<T>>& tolerance) {
  using namespace lang;
  using S = scalar_t<T>;
  Var<bool> near = true;
  each_component<T>(a, b, [&](const Val<S>& x, const Val<S>& y) {
    if constexpr (std::is_same_v<S, bool>)
      near = near & (x == y);
    else if constexpr (Integer<S>)
      near = near &
             (cast<uint64_t>(max(x, y)) - cast<uint64_t>(min(x, y)) <= cast<uint64_t>(tolerance));
    else
      near = near & ((x == y) | (abs(x - y) <= tolerance));
  });
  return near;
}

template <class T>
void expect_tolerance(const char* name, scalar_t<T> tolerance, Loc loc) {
  if (!(tolerance >= scalar_t<T>()))
    throw Error(loc, std::string(name) + " with a tolerance below 0, or one that is no number");
}

/// Ends what `is_dropped(element, parameters…)` holds for: units of which it holds for all elements, and
/// of lists what is behind the first of which it does.
template <class I, class T, int N, class F, class... A>
void prune_where(TreeData& tree, const Field<T, N>& u, F, bool checked, Loc loc, A... parameters) {
  const AlgorithmCall call("prune", {updated(u)}, loc);
  if (has_lists(tree)) {
    kernel_of(
        [](bool on) {
          return Kernel{[](Field<T, N> x, Val<A>... a) {
                          for (auto i : x.template indices<I>())
                            for (auto _ : lang::when(F{}(Val<T>(x[i]), a...)))
                              lang::deactivate(x, i);
                        },
                        modes("prune", on)};
        },
        checked)(u, parameters..., loc);
    return;
  }
  const auto kept = empty_like(tree, loc);
  const Field<uint8_t, N> marks{Ref<FieldObject>(topology_beside(*kept, u.object(), loc))};
  kernel_of(
      [](bool on) {
        return Kernel{[](Field<T, N> x, Field<uint8_t, N> keep, Val<A>... a) {
                        for (auto i : x.template indices<I>())
                          for (auto _ : lang::when(!F{}(Val<T>(x[i]), a...)))
                            lang::activate(keep, i);
                      },
                      modes("prune", on)};
      },
      checked)(u, marks, parameters..., loc);
  end_unmarked(tree, *kept, u.object(), loc);
}

template <class P, class T, int N>
void prune(TreeData& tree, const Field<T, N>& u, P, Source source) {
  expect_captureless<P>();
  begin_algorithm("prune", u.object(), source.loc);
  expect_on_tree("prune", tree, u.object(), source.loc);
  with_index(is_wide(u.object()), [&]<class I>(I) {
    prune_where<I>(
        tree, u, [](const auto& v) { return P{}(v); }, is_checked({}, source.checked), source.loc);
  });
}
template <class T, int N>
void prune_near(TreeData& tree, const Field<T, N>& u, scalar_t<T> tolerance, Loc loc) {
  begin_algorithm("prune", u.object(), loc);
  expect_on_tree("prune", tree, u.object(), loc);
  expect_tolerance<T>("prune", tolerance, loc);
  const T none = background_of("prune", u, loc);
  with_index(is_wide(u.object()), [&]<class I>(I) {
    prune_where<I>(
        tree, u,
        [](const auto& v, const auto& background, const auto& most) {
          return is_near<T>(v, background, most);
        },
        false, loc, none, tolerance);
  });
}

/// A field on the tree with the background of another, which may be on another tree.
template <class T, int N>
Field<T, N> field_like(const char* name, const std::shared_ptr<TreeData>& tree,
                       const Field<T, N>& u, const Layout& layout, Loc loc) {
  begin_algorithm(name, u.object(), loc);
  expect_same_device(name, *tree, u.object(), loc);
  const T none = background_of(name, u, loc);
  return Field<T, N>(
      Ref<FieldObject>(make_tree_field(tree, Field<T, N>::type(), layout, &none, loc)));
}

/// What u has where the tree's elements are.
template <class T, int N>
Field<T, N> copied(const std::shared_ptr<TreeData>& tree, const Field<T, N>& u,
                   const Layout& layout, Loc loc) {
  const Field<T, N> made = field_like("copy_of", tree, u, layout, loc);
  const AlgorithmCall call("copy_of", {read(u), written(made)}, loc);
  with_index(is_wide(u.object()) || is_wide(made.object()), [&]<class I>(I) {
    kernel_of([](bool) {
      return Kernel{[](Field<T, N> from, Field<T, N> to) {
                      for (auto i : to.template indices<I>())
                        for (auto _ : lang::when(is_inside<I>(from, i))) to[i] = from[i];
                    },
                    modes("copy_of")};
    })(u, made, loc);
  });
  return made;
}

/// Throws Error where the tree, or the one the field is on, is one of lists.
inline void expect_elements(const char* name, const TreeData& tree, FieldObject* field, Loc loc) {
  expect_no_lists(name, tree, loc);
  expect_no_lists(name, *tree_of(field), loc);
}

/// Elements of u at half the resolution.
template <class I, class T, int N>
void coarsen(const Field<T, N>& u, const Field<T, N>& made, Coarsening how, Loc loc) {
  using S = scalar_t<T>;
  using Sum = rebind_t<T, std::conditional_t<std::is_same_v<S, half>, float, sum_scalar_t<S>>>;
  kernel_of([](bool) {
    return Kernel{
        [](Field<T, N> from, Field<T, N> to, Val<int> kind) {
          using namespace lang;
          for (auto i : to.template indices<I>()) {
            Var<Sum> sum{};
            Var<T> least{}, most{}, first{};
            Var<int> count = 0;
            for (auto k : range(1 << N)) {
              Val<TreeIndex<N, I>> child = child_of<N, I>(i, k);
              for (auto _ : when(is_inside<I>(from, child) && is_active(from, child))) {
                Val<T> v = from[child];
                sum = sum + element_as<Sum>(v);
                Val<bool> is_first = count == 0;
                least = select(is_first, v, min(least, v));
                most = select(is_first, v, max(most, v));
                first = select(is_first, v, first);
                count += 1;
              }
            }
            const auto is = [&](Coarsening one) { return kind == int(one); };
            Val<Sum> mean = sum / cast<scalar_t<Sum>>(max(count, 1));
            Val<T> total = element_as<T>(select(is(Coarsening::mean), mean, Val<Sum>(sum)));
            Val<T> extreme = select(is(Coarsening::min), Val<T>(least), Val<T>(most));
            Val<T> summed = select(is(Coarsening::mean) || is(Coarsening::sum), total, extreme);
            for (auto _ : when(count > 0))
              to[i] = select(is(Coarsening::first), Val<T>(first), summed);
          }
        },
        modes("coarsened")};
  })(u, made, int(how), loc);
}
template <class T, int N>
Field<T, N> coarsened(const std::shared_ptr<TreeData>& tree, const Field<T, N>& u, Coarsening how,
                      const Layout& layout, Loc loc) {
  using S = scalar_t<T>;
  static_assert(!is_structure<T> && !std::is_same_v<S, bool>,
                "quern: numbers, vectors and matrices are coarsened; of structures the members");
  const Field<T, N> made = field_like("coarsened", tree, u, layout, loc);
  expect_elements("coarsened", *tree, u.object(), loc);
  const AlgorithmCall call("coarsened", {read(u), written(made)}, loc);
  with_index(is_wide(u.object()) || is_wide(made.object()),
             [&]<class I>(I) { coarsen<I>(u, made, how, loc); });
  return made;
}

/// Elements of u at twice the resolution.
template <class T, int N>
Field<T, N> refined(const std::shared_ptr<TreeData>& tree, const Field<T, N>& u,
                    const Layout& layout, Loc loc) {
  const Field<T, N> made = field_like("refined", tree, u, layout, loc);
  expect_elements("refined", *tree, u.object(), loc);
  const AlgorithmCall call("refined", {read(u), written(made)}, loc);
  with_index(is_wide(u.object()), [&]<class I>(I) {
    kernel_of([](bool) {
      return Kernel{[](Field<T, N> from, Field<T, N> to) {
                      for (auto i : to.wide()) {
                        Val<TreeIndex<N, I>> parent = parent_of<N, I>(i);
                        for (auto _ : lang::when(is_inside<I>(from, parent))) to[i] = from[parent];
                      }
                    },
                    modes("refined")};
    })(u, made, loc);
  });
  return made;
}

template <class T, int N>
Field<T, N> to_dense(const Field<T, N>& u, const Layout& layout, Loc loc) {
  begin_algorithm("to_dense", u.object(), loc);
  const T none = background_of("to_dense", u, loc);
  const Field<T, N> made{
      Ref<FieldObject>(dense_beside(u.object(), Field<T, N>::type(), layout, loc))};
  const AlgorithmCall call("to_dense", {read(u), written(made)}, loc);
  made.fill(none, loc);
  with_index(is_wide(u.object()), [&]<class I>(I) {
    kernel_of([](bool) {
      return Kernel{[](Field<T, N> from, Field<T, N> to) {
                      for (auto i : from.template indices<I>()) to[i] = from[i];
                    },
                    modes("to_dense")};
    })(u, made, loc);
  });
  return made;
}

/// How many elements of a dense field that are to be active the tree has none for.
template <class I, class T, int N>
int64_t count_outside(const Field<T, N>& u, const Field<T, N>& dense, T none, scalar_t<T> tolerance,
                      Loc loc) {
  return kernel_of([](bool) {
           return Kernel{[](Field<T, N> to, Field<T, N> from, Val<T> background,
                            Val<scalar_t<T>> most) -> Val<int64_t> {
                           using namespace lang;
                           Var<int64_t> count = 0;
                           for (auto i : from.template indices<I>())
                             count += cast<int64_t>(!is_near<T>(from[i], background, most) &&
                                                    !is_inside<I>(to, i));
                           return count;
                         },
                         modes("from_dense")};
         })(u, dense, none, tolerance, loc)
      .value(loc);
}

template <class I, class T, int N>
void take_dense(const Field<T, N>& u, const Field<T, N>& dense, T none, scalar_t<T> tolerance,
                Loc loc) {
  kernel_of([](bool) {
    return Kernel{[](Field<T, N> to, Field<T, N> from, Val<T> background, Val<scalar_t<T>> most) {
                    using namespace lang;
                    for (auto i : from.template indices<I>())
                      for (auto _ : when(!is_near<T>(from[i], background, most))) activate(to, i);
                    for (auto i : to.template indices<I>())
                      for (auto _ : when(is_inside<I>(from, i))) to[i] = from[i];
                  },
                  modes("from_dense")};
  })(u, dense, none, tolerance, loc);
}

template <class T, int N>
void from_dense(TreeData& tree, const Field<T, N>& u, const Field<T, N>& dense,
                scalar_t<T> tolerance, Loc loc) {
  constexpr const char* name = "from_dense";
  begin_algorithm(name, u.object(), loc);
  begin_algorithm(name, dense.object(), loc);
  expect_on_tree(name, tree, u.object(), loc);
  expect_no_lists(name, tree, loc);
  expect_same_device(name, tree, dense.object(), loc);
  if (tree_of(dense.object()))
    throw Error(loc, "from_dense is given a field that is on a tree; copy_of takes such a one");
  expect_tolerance<T>(name, tolerance, loc);
  const T none = background_of(name, u, loc);
  const AlgorithmCall call(name, {read(dense), written(u)}, loc);
  const int64_t outside = with_index(is_wide(u.object()), [&]<class I>(I) {
    return count_outside<I>(u, dense, none, tolerance, loc);
  });
  if (outside > 0) refuse_outside(name, tree, outside, "elements that are not the background", loc);
  clear(tree, loc);
  with_index(is_wide(u.object()),
             [&]<class I>(I) { take_dense<I>(u, dense, none, tolerance, loc); });
}

}  // namespace quern::detail

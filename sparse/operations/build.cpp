// Trees made of what the host or a field says: points, indices, boxes, masks, other trees.
#include "quern/algorithms.h"
#include "sparse/operations/topology.h"

namespace quern::detail {

namespace {

using namespace lang;

constexpr const char* name = "build_from";
/// Of all cells there can be.
constexpr double most_elements = double(most_cells << 24);

template <class T, int N>
Val<T> component(const Val<PerAxis<T, N>>& of, int axis) {
  if constexpr (N == 1)
    return of;
  else
    return of[axis];
}

/// Where a point lies along the axis: the index of its element, in 64 bits, which keep every float
/// that can be inside of a tree. A NaN is outside of all.
template <int N>
I64 index_along(const Val<PerAxis<float, N>>& point, const Val<PerAxis<float, N>>& origin,
                const F32& size, int axis) {
  F32 at = component<float, N>(point, axis), from = component<float, N>(origin, axis);
  return select(at == at, cast<int64_t>(floor((at - from) / size)), I64(INT64_MIN));
}
/// Its coordinates are indices.
template <int N>
I64 index_along(const Val<PerAxis<int, N>>& point, const Val<PerAxis<float, N>>&, const F32&,
                int axis) {
  return cast<int64_t>(component<int, N>(point, axis));
}

template <class T, int N>
struct PointKernels {
  using Points = Field<PerAxis<T, N>>;
  using Origin = Val<PerAxis<float, N>>;

  static auto is_inside_at(const Topology<N>& x, const std::array<I64, N>& index) {
    Var<bool> inside = true;
    for (int axis = 0; axis < N; axis++) {
      I64 first = x.template first<int64_t>(axis), at = index[size_t(axis)];
      inside = inside & (at >= first) & (at < first + x.template dim<int64_t>(axis));
    }
    return B1(inside);
  }
  template <size_t... K>
  static std::array<I64, N> index_of(const Val<PerAxis<T, N>>& p, const Origin& o, const F32& size,
                                     std::index_sequence<K...>) {
    return {index_along<N>(p, o, size, int(K))...};
  }
  static std::array<I64, N> index_of(const Val<PerAxis<T, N>>& p, const Origin& o,
                                     const F32& size) {
    return index_of(p, o, size, std::make_index_sequence<size_t(N)>());
  }
};

/// Strict, so that all devices find a point in the same element.
constexpr Options strict(const char* what) {
  return {.strict = true, .checked = false, .name = what};
}

template <class I, class T, int N>
void build_from_points(TreeData& tree, const Field<PerAxis<T, N>>& points, const float* from,
                       float size, Loc loc) {
  using K = PointKernels<T, N>;
  PerAxis<float, N> origin{};
  if constexpr (N == 1)
    origin = from[0];
  else
    for (int axis = 0; axis < N; axis++) origin[axis] = from[axis];
  const Topology<N> x = topology<N>(tree);
  const int64_t outside =
      kernel_of([](bool) {
        return Kernel{
            [](Topology<N> u, Field<PerAxis<T, N>> p, typename K::Origin o, F32 s) -> I64 {
              Var<int64_t> count = 0;
              for (auto k : p.wide())
                count += cast<int64_t>(!K::is_inside_at(u, K::index_of(p[k], o, s)));
              return count;
            },
            strict("looking at points")};
      })(x, points, origin, size, loc)
          .value(loc);
  if (outside > 0) refuse_outside(name, tree, outside, "points", loc);
  clear(tree, loc);
  kernel_of([](bool) {
    return Kernel{[](Topology<N> u, Field<PerAxis<T, N>> p, typename K::Origin o, F32 s) {
                    for (auto k : p.wide()) {
                      const std::array<I64, N> at = K::index_of(p[k], o, s);
                      activate(
                          u, index_from<N, I>([&](int axis) { return cast<I>(at[size_t(axis)]); }));
                    }
                  },
                  strict("activating points")};
  })(x, points, origin, size, loc);
}

template <class I, int N>
void activate_box(TreeData& tree, const int64_t* lo, const int64_t* hi, Loc loc) {
  using Corner = PerAxis<I, N>;
  Corner first{}, extent{};
  int64_t size = 1;
  for (int axis = 0; axis < N; axis++)
    if (lo[axis] == hi[axis]) return;
  for (int axis = 0; axis < N; axis++) {
    size *= hi[axis] - lo[axis];
    if constexpr (N == 1) {
      first = I(lo[0]), extent = I(hi[0] - lo[0]);
    } else {
      first[axis] = I(lo[axis]);
      extent[axis] = I(hi[axis] - lo[axis]);
    }
  }
  kernel_of([](bool) {
    return Kernel{[](Topology<N> x, Val<Corner> from, Val<Corner> n, I64 count) {
                    for (auto k : range(count)) {
                      std::array<Var<I>, N> at;
                      Var<int64_t> rest = k;
                      for (int axis = N; axis-- > 0;) {
                        I64 extent_along = cast<int64_t>(component<I, N>(n, axis));
                        at[size_t(axis)] =
                            cast<I>(rest % extent_along) + component<I, N>(from, axis);
                        rest = rest / extent_along;
                      }
                      activate(x, index_from<N, I>([&](int axis) { return at[size_t(axis)]; }));
                    }
                  },
                  modes("activating a box")};
  })(topology<N>(tree), first, extent, size, loc);
}

template <class I, class T, int N>
void build_from_mask(TreeData& tree, const Field<T, N>& mask, Loc loc) {
  const Topology<N> x = topology<N>(tree);
  const int64_t outside =
      kernel_of([](bool) {
        return Kernel{[](Topology<N> u, Field<T, N> m) -> I64 {
                        Var<int64_t> count = 0;
                        for (auto i : m.template indices<I>())
                          count += cast<int64_t>(cast<bool>(m[i]) && !is_inside<I>(u, i));
                        return count;
                      },
                      modes("looking at a mask")};
      })(x, mask, loc)
          .value(loc);
  if (outside > 0) refuse_outside(name, tree, outside, "elements of the mask that are true", loc);
  clear(tree, loc);
  kernel_of([](bool) {
    return Kernel{[](Topology<N> u, Field<T, N> m) {
                    for (auto i : m.template indices<I>()) {
                      If(cast<bool>(m[i])) { activate(u, i); }
                    }
                  },
                  modes("activating a mask")};
  })(x, mask, loc);
}

}  // namespace

void expect_input(TreeData& tree, FieldObject* field, Loc loc) {
  expect_no_lists(name, tree, loc);
  begin_algorithm(name, field, loc);
  expect_same_device(name, tree, field, loc);
  if (field->storage->tree() == &tree)
    throw Error(loc, std::string(name) +
                         " is given a field on the tree, which ends with what was active; prune "
                         "goes by what such fields hold");
}

void expect_size(float size, Loc loc) {
  if (!(size > 0) || size > std::numeric_limits<float>::max())
    throw Error(loc, std::string(name) + " with elements of size " + std::to_string(size) +
                         "; it is above 0");
}

void build_from_points(TreeData& tree, FieldObject* points, bool are_indices, const float* origin,
                       float size, Loc loc) {
  const Operation operation(name, tree, loc);
  expect_input(tree, points, loc);
  expect_size(size, loc);
  with_indices(tree, tree, [&]<int N, class I>(Rank<N>, I) {
    if (are_indices)
      build_from_points<I, int, N>(tree, shared<PerAxis<int, N>>(points), origin, size, loc);
    else
      build_from_points<I, float, N>(tree, shared<PerAxis<float, N>>(points), origin, size, loc);
  });
}

void build_from_boxes(TreeData& tree, const int64_t* corners, size_t count, Loc loc) {
  const Operation operation(name, tree, loc);
  expect_no_lists(name, tree, loc);
  const auto rank = size_t(tree.rank);
  for (size_t box = 0; box < count; box++) {
    double size = 1;
    for (size_t axis = 0; axis < rank; axis++) {
      const int64_t lo = corners[2 * box * rank + axis], hi = corners[(2 * box + 1) * rank + axis];
      const int64_t first = tree.firsts[axis], end = first + tree.shape[axis];
      if (lo > hi || (lo < hi && (lo < first || hi > end)))
        throw Error(loc, std::string(name) + ": box " + std::to_string(box) + " goes from " +
                             std::to_string(lo) + " to below " + std::to_string(hi) +
                             " along axis " + std::to_string(axis) + ", whose indices go from " +
                             std::to_string(first) + " to below " + std::to_string(end));
      size *= double(hi - lo);
    }
    if (size > most_elements)
      throw Error(loc, std::string(name) + ": box " + std::to_string(box) +
                           " has more elements than the 2^55 that trees can have");
  }
  clear(tree, loc);
  for (size_t box = 0; box < count; box++) {
    const int64_t *lo = corners + 2 * box * rank, *hi = lo + rank;
    with_indices(tree, tree,
                 [&]<int N, class I>(Rank<N>, I) { activate_box<I, N>(tree, lo, hi, loc); });
  }
}

void build_from_mask(TreeData& tree, FieldObject* mask, bool is_bool, Loc loc) {
  const Operation operation(name, tree, loc);
  expect_input(tree, mask, loc);
  const auto on = tree_of(mask);
  with_indices(tree, on ? *on : tree, [&]<int N, class I>(Rank<N>, I) {
    if (is_bool)
      build_from_mask<I>(tree, shared<bool, N>(mask), loc);
    else
      build_from_mask<I>(tree, shared<uint8_t, N>(mask), loc);
  });
}

void build_from_tree(TreeData& tree, TreeData& other, Loc loc) {
  const Operation operation(name, tree, loc);
  expect_no_lists(name, tree, loc);
  expect_same_device(name, tree, *other.device, loc);
  expect_inside(name, tree, other, loc);
  const auto kept = &tree == &other ? copy_tree(tree, loc) : other.shared_from_this();
  clear(tree, loc);
  activate_all(tree, *kept, loc);
}

}  // namespace quern::detail

#pragma once
// Trees of every kind beside sets and maps of the host's that say what is to be active in them.
#include <quern/sparse.h>

#include <array>
#include <map>
#include <random>
#include <set>

#include "tests/end_to_end/devices.h"

/// An index.
template <int N>
using At = std::array<int, size_t(N)>;
template <int N>
using Places = std::set<At<N>>;
template <int N>
using Elements = std::map<At<N>, int>;
template <int N>
using Coordinates = std::conditional_t<N == 1, int, qn::Vec<int, N == 1 ? 2 : N>>;

/// How a tree divides its axes, of 16 elements each or without an end; `unit` elements along each are
/// active as one.
struct Levels {
  const char* text;
  std::array<qn::TreeLevel, 3> levels;
  int unit;
};
inline const std::array<Levels, 6> kinds_of_trees = {{
    {"pointer, pointer, bitmasked", {{qn::pointer(4), qn::pointer(2), qn::bitmasked(2)}}, 1},
    {"pointer, pointer, dense", {{qn::pointer(2), qn::pointer(4), qn::dense(2)}}, 2},
    {"dense, pointer, bitmasked", {{qn::dense(2), qn::pointer(2), qn::bitmasked(4)}}, 1},
    {"dense, bitmasked, dense", {{qn::dense(2), qn::bitmasked(4), qn::dense(2)}}, 2},
    {"hash, pointer, bitmasked", {{qn::hash(), qn::pointer(2), qn::bitmasked(2)}}, 1},
    {"hash, bitmasked, dense", {{qn::hash(), qn::bitmasked(2), qn::dense(2)}}, 2},
}};

/// The first index and extent of each axis of all trees here, which cut some of the 16 off.
template <int N>
inline constexpr At<N> first_of = [] {
  At<N> first{};
  for (int k = 0; k < N; k++) first[size_t(k)] = 3 * k - 4;
  return first;
}();
template <int N>
inline constexpr At<N> extent_of = [] {
  At<N> extent{};
  for (int k = 0; k < N; k++) extent[size_t(k)] = k == 0 ? 13 : k == 1 ? 16 : 7;
  return extent;
}();

template <int N, size_t... K>
qn::Tree<N> tree_of(const qn::Device& device, const Levels& kind, int cells,
                    std::index_sequence<K...>) {
  return qn::Tree<N>(
      device, {kind.levels[0], kind.levels[1], kind.levels[2]},
      {.shape = {extent_of<N>[K]...}, .offset = {first_of<N>[K]...}, .cells = cells});
}
template <int N>
qn::Tree<N> tree_of(const qn::Device& device, const Levels& kind, int cells = 0) {
  return tree_of<N>(device, kind, cells, std::make_index_sequence<size_t(N)>());
}

template <int N>
bool is_inside(const At<N>& at) {
  for (size_t k = 0; k < size_t(N); k++)
    if (at[k] < first_of<N>[k] || at[k] >= first_of<N>[k] + extent_of<N>[k]) return false;
  return true;
}
/// Calls visit(at) for all indices of a box, its ends not included.
template <int N, class F>
void each_at(const At<N>& from, const At<N>& to, F&& visit) {
  At<N> at = from;
  for (size_t k = 0; k < size_t(N); k++)
    if (from[k] >= to[k]) return;
  while (true) {
    visit(at);
    size_t axis = size_t(N);
    while (axis-- > 0) {
      if (++at[axis] < to[axis]) break;
      at[axis] = from[axis];
    }
    if (axis == size_t(-1)) return;
  }
}
template <int N, class F>
void each_at_all(F&& visit) {
  At<N> end = first_of<N>;
  for (size_t k = 0; k < size_t(N); k++) end[k] += extent_of<N>[k];
  each_at<N>(first_of<N>, end, visit);
}
/// What is active where these are: with them the others of their units.
template <int N>
Places<N> in_units(const Places<N>& places, int unit) {
  Places<N> all;
  for (const At<N>& at : places) {
    At<N> from{}, to{};
    for (size_t k = 0; k < size_t(N); k++) {
      from[k] = first_of<N>[k] + (at[k] - first_of<N>[k]) / unit * unit;
      to[k] = from[k] + unit;
    }
    each_at<N>(from, to, [&](const At<N>& one) {
      if (is_inside<N>(one)) all.insert(one);
    });
  }
  return all;
}

template <int N>
Places<N> random_places(std::mt19937& random, int count) {
  Places<N> places;
  for (int draw = 0; draw < count; draw++) {
    At<N> at{};
    // Some in a corner, so that there are neighbours.
    const bool near = random() % 2;
    for (size_t k = 0; k < size_t(N); k++)
      at[k] = first_of<N>[k] + int(random() % unsigned(near ? 4 : extent_of<N>[k]));
    places.insert(at);
  }
  return places;
}

/// A value that tells where it is.
template <int N>
int value_at(const At<N>& at) {
  int v = 17;
  for (int k : at) v = v * 31 + k;
  return v;
}
template <int N>
Elements<N> values_at(const Places<N>& places) {
  Elements<N> all;
  for (const At<N>& at : places) all[at] = value_at<N>(at);
  return all;
}

template <int N>
Places<N> places_of(const Elements<N>& elements) {
  Places<N> all;
  for (const auto& [at, v] : elements) all.insert(at);
  return all;
}

/// Of fields of these trees, where nothing says otherwise.
inline constexpr int usual_background = -7;
/// What a field has where these become active, if they are not, with the others of their units.
template <int N>
void make_active(Elements<N>& elements, const Places<N>& places, int unit) {
  for (const At<N>& at : in_units<N>(places, unit)) elements.emplace(at, usual_background);
}

/// Kernels that take a field on any tree, made once for a device.
template <int N>
struct Kernels {
  using Coords = qn::Field<Coordinates<N>>;
  using Ints = qn::Field<int, N>;

  qn::Kernel<void(Coords, qn::Field<int>, Ints)> write_ =
      qn::Kernel{[](Coords at, qn::Field<int> values, Ints u) {
        for (auto k : values) u[qn::Val<Coordinates<N>>(at[k])] = values[k];
      }};
  qn::Kernel<void(Ints, Coords, qn::Field<int>, qn::Field<int>)> list_ =
      qn::Kernel{[](Ints u, Coords at, qn::Field<int> values, qn::Field<int> count) {
        for (auto i : u.indices()) {
          auto k = qn::lang::atomic_add(count[0], 1);
          at[k] = i;
          values[k] = u[i];
        }
      }};

  /// Writes elements, which makes them active.
  void write(const qn::Device& device, const Ints& u, const Elements<N>& elements) const {
    if (elements.empty()) return;
    std::vector<Coordinates<N>> at;
    std::vector<int> values;
    for (const auto& [where, v] : elements) {
      Coordinates<N> c{};
      if constexpr (N == 1)
        c = where[0];
      else
        for (int k = 0; k < N; k++) c[k] = where[size_t(k)];
      at.push_back(c);
      values.push_back(v);
    }
    Coords coords{device, {int64_t(at.size())}};
    qn::Field<int> all{device, {int64_t(at.size())}};
    coords.copy_from(at);
    all.copy_from(values);
    write_(coords, all, u);
  }
  /// The active elements, by a loop over the field; `order`: as it ran, where it runs in order.
  Elements<N> elements(const qn::Device& device, const Ints& u) const {
    const int64_t most = u.size();
    Coords at{device, {most}};
    qn::Field<int> values{device, {most}}, count{device, {1}};
    list_(u, at, values, count);
    const int found = count.at(0);
    std::vector<Coordinates<N>> places(static_cast<size_t>(most));
    at.copy_to(places);
    const std::vector<int> all = qn::to_vector(values);
    Elements<N> out;
    for (size_t k = 0; k < size_t(found); k++) {
      At<N> where{};
      if constexpr (N == 1)
        where[0] = places[k];
      else
        for (int axis = 0; axis < N; axis++) where[size_t(axis)] = places[k][axis];
      out[where] = all[k];
    }
    CHECK(int(out.size()) == found);  // each once
    return out;
  }
  Places<N> places(const qn::Device& device, const Ints& u) const {
    Places<N> out;
    for (const auto& [at, v] : elements(device, u)) out.insert(at);
    return out;
  }
};

/// A tree with a field that has been written to, and what is active on it then.
template <int N>
struct Written {
  Written(const qn::Device& device, const Kernels<N>& kernels, const Levels& kind,
          const Elements<N>& written)
      : tree(tree_of<N>(device, kind)),
        u(tree.template field<int>(usual_background)),
        elements(written) {
    kernels.write(device, u, written);
    make_active<N>(elements, places_of<N>(written), kind.unit);
  }
  qn::Tree<N> tree;
  qn::Field<int, N> u;
  Elements<N> elements;
};

/// Calls body(kernels, kind) for trees of each kind; where kernels are compiled, which takes most of the
/// time, for two of them, others for each number of axes.
template <int N, class F>
void on_every_tree(const qn::Device& device, F&& body) {
  const Kernels<N> kernels;
  const bool all = device.name() == std::string("interpreter");
  for (size_t k = 0; k < kinds_of_trees.size(); k++) {
    if (!all && k != size_t(N) && k != size_t(N + 4) % kinds_of_trees.size()) continue;
    INFO(N << " axes: " << kinds_of_trees[k].text);
    body(kernels, kinds_of_trees[k]);
  }
}

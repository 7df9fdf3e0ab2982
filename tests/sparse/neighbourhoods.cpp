// Loops that reach several elements around a place, whose cells are looked for together, against a map
// of the host's: what is active, and what it holds.
#include <algorithm>
#include <cstdlib>
#include <vector>

#include "tests/sparse/places.h"

using namespace qn::lang;

namespace {

/// Which elements around a place a loop reaches.
struct Shape {
  const char* text;
  int from, to;  ///< along each axis
  bool cross;    ///< those on the axes alone
};
constexpr Shape shapes[] = {{"of 3", 0, 3, false},
                            {"around", -1, 2, false},
                            {"of 5", 0, 5, false},
                            {"a cross", -1, 2, true}};

template <int N>
std::vector<At<N>> offsets_of(const Shape& shape) {
  std::vector<At<N>> all;
  At<N> from{}, to{};
  from.fill(shape.from);
  to.fill(shape.to);
  each_at<N>(from, to, [&](const At<N>& at) {
    int off_axis = 0;
    for (int k : at) off_axis += k != 0;
    if (!shape.cross || off_axis <= 1) all.push_back(at);
  });
  return all;
}

/// Places from which a shape reaches no further than the tree.
template <int N>
std::vector<Coordinates<N>> places_for(const Shape& shape, int count, std::vector<At<N>>& host) {
  std::mt19937 random(5);
  std::vector<Coordinates<N>> all;
  for (int k = 0; k < count; k++) {
    At<N> at{};
    Coordinates<N> coordinates;
    for (size_t axis = 0; axis < size_t(N); axis++) {
      const int room = extent_of<N>[axis] - (shape.to - 1) + shape.from;
      at[axis] = first_of<N>[axis] - shape.from + int(random() % unsigned(room));
      coordinates[int(axis)] = at[axis];
    }
    host.push_back(at);
    all.push_back(coordinates);
  }
  return all;
}

template <int N>
At<N> sum(At<N> a, const At<N>& b) {
  for (size_t k = 0; k < size_t(N); k++) a[k] += b[k];
  return a;
}

/// What the o-th element of a shape is given, and how much it counts.
int gift(int o) { return 3 + 7 * o; }

/// Some of the places, from which a shape reaches no element twice.
template <int N>
std::vector<int> far_apart(const std::vector<At<N>>& places) {
  std::vector<int> some;
  const auto is_far = [&](const At<N>& a, const At<N>& b) {
    for (size_t k = 0; k < size_t(N); k++)
      if (std::abs(a[k] - b[k]) >= 5) return true;
    return false;
  };
  for (size_t k = 0; k < places.size(); k++)
    if (std::ranges::all_of(some, [&](int j) { return is_far(places[k], places[size_t(j)]); }))
      some.push_back(int(k));
  return some;
}

/// `both`: fields of one tree.
template <int N>
void compare(const qn::Device& device, const Levels& kind, const Shape& shape, bool both = true) {
  INFO(N << " axes, " << kind.text << ", " << shape.text);
  const auto offsets = offsets_of<N>(shape);
  const int count = 40;
  std::vector<At<N>> host;
  qn::Field<Coordinates<N>> places{device, {count}};
  places.copy_from(places_for<N>(shape, count, host));
  const std::vector<int> apart = far_apart<N>(host);
  qn::Field<int> gathered{device, {count}}, some{device, {apart.size()}};
  some.copy_from(apart);
  const qn::Tree<N> tree = tree_of<N>(device, kind, 1), flags = tree_of<N>(device, kind, 1);
  auto u = tree.template field<int>(5), v = tree.template field<int>(-2);
  auto flag = flags.template field<int>(9);
  const auto each = [&](const auto& place, auto visit) {
    for (size_t o = 0; o < offsets.size(); o++) {
      Var<Coordinates<N>> at = place;
      for (int axis = 0; axis < N; axis++) at[axis] += offsets[o][size_t(axis)];
      visit(Val<Coordinates<N>>(at), int(o));
    }
  };
  qn::Kernel scatter = {[&] {
                          for (auto k : places)
                            each(places[k], [&](const auto& at, int o) {
                              u[at] += gift(o);
                              if (both) v[at] += 1;
                            });
                        },
                        {.checked = false}};
  qn::Kernel mark = {[&] {
                       for (auto k : some)
                         each(places[some[k]], [&](const auto& at, int o) { flag[at] = gift(o); });
                     },
                     {.checked = false}};
  qn::Kernel gather = {[&] {
                         for (auto k : places) {
                           Var<int> total = 0;
                           each(places[k], [&](const auto& at, int o) {
                             total += gift(o) * (u[at] + v[at] + flag[at]);
                           });
                           gathered[k] = total;
                         }
                       },
                       {.checked = false}};
  Elements<N> expected_u, expected_v, expected_flag;
  Places<N> reached, flagged;
  for (int turn = 0; turn < 2; turn++) {
    scatter();
    mark();
    for (const At<N>& place : host)
      for (size_t o = 0; o < offsets.size(); o++) {
        const At<N> at = sum<N>(place, offsets[o]);
        expected_u.try_emplace(at, 5).first->second += gift(int(o));
        expected_v.try_emplace(at, -2).first->second += both;
        reached.insert(at);
      }
  }
  for (int k : apart)
    for (size_t o = 0; o < offsets.size(); o++) {
      const At<N> at = sum<N>(host[size_t(k)], offsets[o]);
      expected_flag[at] = gift(int(o));
      flagged.insert(at);
    }
  gather();
  const std::vector<int> got = qn::to_vector(gathered);
  for (size_t k = 0; k < host.size(); k++) {
    int total = 0;
    for (size_t o = 0; o < offsets.size(); o++) {
      const At<N> at = sum<N>(host[k], offsets[o]);
      const auto flagged_here = expected_flag.find(at);
      total += gift(int(o)) * (expected_u.at(at) + expected_v.at(at) +
                               (flagged_here == expected_flag.end() ? 9 : flagged_here->second));
    }
    REQUIRE(got[k] == total);
  }
  CHECK(tree.active_count() == int64_t(in_units<N>(reached, kind.unit).size()));
  CHECK(flags.active_count() == int64_t(in_units<N>(flagged, kind.unit).size()));
  int wrong = 0;
  const auto expect = [&](const qn::Field<int, N>& field, const Elements<N>& held, int none) {
    const std::vector<int> all = qn::to_vector(qn::to_dense(field));
    size_t place = 0;
    each_at_all<N>([&](const At<N>& at) {
      const auto found = held.find(at);
      wrong += all[place++] != (found == held.end() ? none : found->second);
    });
  };
  expect(u, expected_u, 5);
  expect(v, expected_v, -2);
  expect(flag, expected_flag, 9);
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("what loops reach around places of a plane is active and holds what they put there") {
  on_every_device([](const qn::Device& device) {
    const bool slow = device.name() == std::string("vulkan");  // to compile
    for (size_t k = 0; k < (slow ? 1 : kinds_of_trees.size()); k++)
      compare<2>(device, kinds_of_trees[k], shapes[(k + 1) % std::size(shapes)]);
  });
}

TEST_CASE("what loops reach around places in space is active and holds what they put there") {
  on_every_device(
      [](const qn::Device& device) { compare<3>(device, kinds_of_trees[2], shapes[0], false); });
}

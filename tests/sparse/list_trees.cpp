// What the host does with whole trees of lists, against vectors of its own.
#include <quern/sparse.h>

#include <algorithm>
#include <map>
#include <random>

#include "tests/end_to_end/devices.h"

using namespace qn::lang;
using Catch::Matchers::Contains;

namespace {

using Lists = std::map<int, std::vector<int>>;
constexpr int most = 23, background = 7;

/// Where lists are: on a tree of few, or of as many as there are numbers.
struct Kind {
  const char* text;
  std::array<qn::TreeLevel, 2> levels;
  int chunk, unit;  ///< so many lists' worth of cells, of which `unit` are made together
  std::vector<int> places;
};
const std::vector<Kind> kinds = {
    {"pointer", {{qn::pointer(6, 1), qn::dense(2, 1)}}, 4, 2, {0, 1, 2, 5, 8, 11}},
    {"dense", {{qn::dense(3, 1), qn::dense(4, 1)}}, 5, 4, {0, 1, 2, 5, 8, 11}},
    {"hash", {{qn::hash(), qn::dense(2, 1)}}, 3, 2, {-1 << 30, -5, -4, 0, 77, (1 << 30) - 2}},
};

qn::Tree<2> tree_of(const qn::Device& device, const Kind& kind, int cells = 0) {
  return {
      device, {kind.levels[0], kind.levels[1], qn::dynamic(most, kind.chunk)}, {.cells = cells}};
}

struct Kernels {
  using Ints = qn::Field<int, 2>;
  qn::Kernel<void(Ints, I32, I32)> add = qn::Kernel{[](Ints u, I32 i, I32 v) { append(u, i, v); }};
  qn::Kernel<void(Ints, qn::Field<int>, qn::Field<int>)> lengths =
      qn::Kernel{[](Ints u, qn::Field<int> at, qn::Field<int> to) {
        for (auto k : at) to[k] = length(u, at[k]);
      }};
  /// Of each element its list, place and value.
  qn::Kernel<void(Ints, qn::Field<ivec3>, qn::Field<int>)> list =
      qn::Kernel{[](Ints u, qn::Field<ivec3> to, qn::Field<int> count) {
        for (auto [i, k] : u) to[atomic_add(count[0], 1)] = vec(i, k, u(i, k));
      }};

  void fill(const Ints& u, const Lists& lists) const {
    for (const auto& [i, all] : lists)
      for (int v : all) add(u, i, v);
  }
  void check(const qn::Device& device, const Ints& u, Lists expected) const {
    std::erase_if(expected, [](const auto& one) { return one.second.empty(); });
    qn::Field<ivec3> found{device, {1000}};
    qn::Field<int> count{device, {1}};
    list(u, found, count);
    const std::vector<ivec3> all = qn::to_vector(found);
    std::map<std::pair<int, int>, int> seen, wanted;
    for (int k = 0; k < count.at(0); k++)
      seen[{all[size_t(k)].x, all[size_t(k)].y}] = all[size_t(k)].z;
    for (const auto& [i, one] : expected)
      for (size_t k = 0; k < one.size(); k++) wanted[{i, int(k)}] = one[k];
    CHECK(int(seen.size()) == count.at(0));
    CHECK(seen == wanted);
    std::vector<int> at, long_ones;
    for (const auto& [i, one] : expected) {
      at.push_back(i);
      long_ones.push_back(int(one.size()));
      CHECK(u.at(i, int(one.size()) - 1) == one.back());
      if (one.size() < most) CHECK(u.at(i, int(one.size())) == background);
    }
    if (at.empty()) return;
    qn::Field<int> places{device, {int64_t(at.size())}}, to{device, {int64_t(at.size())}};
    places.copy_from(at);
    lengths(u, places, to);
    CHECK(qn::to_vector(to) == long_ones);
  }
};

Lists random_lists(std::mt19937& random, const Kind& kind) {
  Lists lists;
  for (int i : kind.places) {
    std::vector<int>& one = lists[i];
    one.resize(random() % 3 ? random() % (most + 1) : 0);
    for (int& v : one) v = 100 + int(random() % 50);
  }
  return lists;
}
int64_t count_of(const Lists& lists) {
  int64_t n = 0;
  for (const auto& [i, one] : lists) n += int64_t(one.size());
  return n;
}

template <class F>
void on_every_tree(F body) {
  on_every_device([&](const qn::Device& device) {
    const Kernels k;
    std::mt19937 random(1);
    for (const Kind& kind : kinds) {
      INFO(kind.text);
      body(device, k, kind, random);
    }
  });
}

}  // namespace

TEST_CASE("trees of lists are counted, cleared, copied and compared") {
  on_every_tree([](const auto& device, const Kernels& k, const Kind& kind, std::mt19937& random) {
    const qn::Tree<2> tree = tree_of(device, kind);
    auto u = tree.template field<int>(background);
    const Lists lists = random_lists(random, kind);
    k.fill(u, lists);
    k.check(device, u, lists);
    CHECK(tree.active_count() == count_of(lists));
    const qn::TreeStats stats = tree.stats();
    CHECK(stats.active == count_of(lists));
    REQUIRE(stats.levels.size() == 3);
    CHECK(stats.levels[2].name == "dynamic(23, " + std::to_string(kind.chunk) + ")");
    int64_t chunks = 0;
    for (const auto& [i, one] : lists)
      chunks += (int64_t(one.size()) + kind.chunk - 1) / kind.chunk;
    CHECK(stats.levels[2].cells == chunks);
    CHECK_THAT(tree.describe(), Contains(std::to_string(count_of(lists)) + " active elements"));

    const qn::Tree<2> copy = tree.copy();
    CHECK(qn::same_activity(tree, copy));
    auto v = copy.copy_of(u);
    k.check(device, v, lists);
    k.add(v, kind.places[0], 3);
    CHECK_FALSE(qn::same_activity(tree, copy));
    tree.clear();
    CHECK(tree.active_count() == 0);
    k.check(device, u, {});
    k.fill(u, lists);
    k.check(device, u, lists);
  });
}

TEST_CASE("trees of lists give memory back and go on") {
  on_every_tree([](const auto& device, const Kernels& k, const Kind& kind, std::mt19937& random) {
    const qn::Tree<2> tree = tree_of(device, kind, 50);
    auto u = tree.template field<int>(background);
    auto w = tree.template field<qn::Vec<double, 2>>({1.5, -2}, qn::aos);
    k.fill(u, random_lists(random, kind));
    for (int round = 0; round < 4; round++) {
      tree.clear();
      const Lists lists = random_lists(random, kind);
      k.fill(u, lists);
      qn::Kernel derive = [&] {
        for (auto [i, j] : u) {
          w(i, j)[0] = cast<double>(u(i, j));
          w(i, j)[1] = cast<double>(j);
        }
      };
      derive();
      const qn::TreeStats full = tree.stats();
      tree.shrink();
      const qn::TreeStats shrunk = tree.stats();
      CHECK(shrunk.bytes <= full.bytes);
      CHECK(shrunk.levels[2].cells == full.levels[2].cells);
      if (kind.text != std::string("dense") || round > 0)
        CHECK(shrunk.levels[2].room == shrunk.levels[2].cells);
      k.check(device, u, lists);
      Lists longer = lists;
      for (int i : kind.places)
        for (size_t j = 0; j < longer[i].size(); j++) {
          CHECK(w.at(i, int(j))[0] == longer[i][j]);
          CHECK(w.at(i, int(j))[1] == double(j));
        }
      for (int i : kind.places)
        while (longer[i].size() < most && random() % 5) {
          longer[i].push_back(1000 + round);
          k.add(u, i, 1000 + round);
        }
      k.check(device, u, longer);
    }
  });
}

TEST_CASE("prune ends lists at the first element that it ends") {
  on_every_tree([](const auto& device, const Kernels& k, const Kind& kind, std::mt19937& random) {
    const qn::Tree<2> tree = tree_of(device, kind);
    auto u = tree.template field<int>(background);
    Lists lists = random_lists(random, kind);
    k.fill(u, lists);
    const auto drop = [&](auto is_dropped) {
      for (auto& [i, one] : lists) one.erase(std::ranges::find_if(one, is_dropped), one.end());
    };
    tree.prune(u, [](auto v) { return v > 145; });
    drop([](int v) { return v > 145; });
    k.check(device, u, lists);
    tree.prune(u, 100);
    drop([](int v) { return v - background <= 100; });
    k.check(device, u, lists);
  });
}

TEST_CASE("lists end where those of another tree do, or begin") {
  on_every_tree([](const auto& device, const Kernels& k, const Kind& kind, std::mt19937& random) {
    const qn::Tree<2> a = tree_of(device, kind), b = tree_of(device, kind);
    auto u = a.template field<int>(background), v = b.template field<int>(background);
    Lists of_a = random_lists(random, kind), of_b = random_lists(random, kind);
    k.fill(u, of_a);
    k.fill(v, of_b);
    a.merge(b);
    for (auto& [i, one] : of_a) one.resize(std::max(one.size(), of_b[i].size()), background);
    k.check(device, u, of_a);
    a.intersect(b);
    for (auto& [i, one] : of_a) one.resize(std::min(one.size(), of_b[i].size()));
    k.check(device, u, of_a);
    CHECK(qn::same_activity(a, b));
    b.subtract(a);
    k.check(device, v, {});
  });
}

TEST_CASE("trees of lists refuse what has no meaning for lists") {
  qn::Device device("interpreter");
  const qn::Tree<2> tree = tree_of(device, kinds[0]);
  auto u = tree.field<int>();
  u.set(0, 2, 5);
  const auto refused = [&](const char* name, auto f) {
    int line = 0;
    const std::string text = error_of(f, &line);
    INFO(name);
    CHECK_THAT(text, Contains(std::string(name) + " of a tree of lists"));
    CHECK(line > 0);
    CHECK(tree.active_count() == 3);
  };
  refused("dilate", [&] { tree.dilate(); });
  refused("dilate", [&] { tree.dilate(0); });
  refused("erode", [&] { tree.erode(); });
  refused("coarsen", [&] { tree.coarsen(); });
  refused("coarsened", [&] { tree.coarsened(u, qn::Coarsening::sum); });
  refused("refine", [&] { tree.refine(); });
  refused("refined", [&] { tree.refined(u); });
  refused("build_from", [&] { tree.build_from({qn::IndexBox<2>{{0, 0}, {1, 1}}}); });
  refused("build_from", [&] { tree.build_from(tree); });
  refused("build_from", [&] { tree.build_from(qn::Field<ivec2>{device, {1}}); });
  refused("build_from", [&] { tree.build_from(qn::Field<bool, 2>{device, {1, 1}}); });
  refused("from_dense", [&] { tree.from_dense(u, qn::Field<int, 2>{device, {1, 1}}); });
  const qn::Tree<3> cube{device, {qn::pointer(2, 2, 1), qn::dynamic(4, 2)}};
  CHECK_THAT(error_of([&] {
               cube.build_from(qn::Field<qn::Vec<float, 3>>{device, {3}},
                               qn::Field<qn::Vec<int, 3>>{device, {1}}, {});
             }),
             Contains("build_from of a tree of lists"));
  int line = 0;
  error_of([&] { tree.dilate(); }, &line);
  CHECK(line == __LINE__ - 1);
  CHECK(qn::to_dense(u).at(0, 2) == 5);
}

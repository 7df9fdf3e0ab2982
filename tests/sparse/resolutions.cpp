// Trees of half and twice the resolution, and dense fields, against maps of the host's.
#include <algorithm>

#include "tests/sparse/places.h"

using namespace qn::lang;
using Catch::Matchers::Contains;

namespace {

int half_of(int i) { return (i - (i < 0)) / 2; }

/// An element and the values that it is made of.
template <int N>
std::map<At<N>, std::vector<int>> groups(const Elements<N>& elements) {
  std::map<At<N>, std::vector<int>> out;
  for (const auto& [at, v] : elements) {  // in row-major order
    At<N> parent{};
    for (size_t k = 0; k < size_t(N); k++) parent[k] = half_of(at[k]);
    out[parent].push_back(v);
  }
  return out;
}
int combined(const std::vector<int>& all, qn::Coarsening how) {
  const int sum = [&] {
    int s = 0;
    for (int v : all) s += v;
    return s;
  }();
  switch (how) {
    case qn::Coarsening::mean: return sum / int(all.size());
    case qn::Coarsening::sum: return sum;
    case qn::Coarsening::min: return *std::min_element(all.begin(), all.end());
    case qn::Coarsening::max: return *std::max_element(all.begin(), all.end());
    default: return all.front();
  }
}

template <int N>
void check_resolutions(const qn::Device& device) {
  std::mt19937 random(N);
  on_every_tree<N>(device, [&](const Kernels<N>& k, const Levels& kind) {
    Elements<N> written;
    for (const At<N>& at : random_places<N>(random, 30)) written[at] = int(random() % 2000) - 1000;
    const Written<N> start(device, k, kind, written);
    const qn::Tree<N>& tree = start.tree;
    const qn::Field<int, N>& u = start.u;
    const Elements<N>& fine = start.elements;
    CHECK(k.elements(device, u) == fine);
    const auto expected = groups<N>(fine);

    const qn::Tree<N> coarse = tree.coarsen();
    for (auto how : {qn::Coarsening::mean, qn::Coarsening::sum, qn::Coarsening::min,
                     qn::Coarsening::max, qn::Coarsening::first}) {
      INFO("coarsening " << int(how));
      const Elements<N> found = k.elements(device, coarse.coarsened(u, how));
      int wrong = 0;
      for (const auto& [at, all] : expected) {
        const auto one = found.find(at);
        wrong += one == found.end() || one->second != combined(all, how);
      }
      CHECK(wrong == 0);
      // What is active besides is so with its unit.
      Places<N> places;
      for (const auto& [at, v] : found) {
        bool has_unit = expected.contains(at);
        if (!has_unit) {
          wrong += kind.unit == 1 || v != -7;
          At<N> from{}, to{};
          for (size_t axis = 0; axis < size_t(N); axis++) {
            const int first = half_of(first_of<N>[axis]);
            from[axis] = first + (at[axis] - first) / kind.unit * kind.unit;
            to[axis] = from[axis] + kind.unit;
          }
          each_at<N>(from, to, [&](const At<N>& near) { has_unit |= expected.contains(near); });
        }
        wrong += !has_unit;
      }
      CHECK(wrong == 0);
    }

    const qn::Tree<N> finest = tree.refine();
    CHECK(finest.active_count() == (int64_t(1) << N) * tree.active_count());
    auto r = finest.refined(u);
    const Elements<N> refined = k.elements(device, r);
    CHECK(refined.size() == fine.size() << N);
    int wrong = 0;
    for (const auto& [at, v] : refined) {
      At<N> parent{};
      for (size_t axis = 0; axis < size_t(N); axis++) parent[axis] = half_of(at[axis]);
      const auto one = fine.find(parent);
      wrong += one == fine.end() || one->second != v;
    }
    CHECK(wrong == 0);
    // And back again.
    const qn::Tree<N> again = finest.coarsen();
    CHECK(qn::same_activity(again, tree));
    CHECK(k.elements(device, again.coarsened(r, qn::Coarsening::mean)) == fine);

    // Dense, and back on a tree of other levels.
    qn::Field<int, N> dense = qn::to_dense(u);
    std::vector<int> all(size_t(dense.size()));
    dense.copy_to(all);
    size_t n = 0;
    Elements<N> kept;
    each_at_all<N>([&](const At<N>& at) {
      const auto one = fine.find(at);
      const int v = one == fine.end() ? -7 : one->second;
      wrong += all[n++] != v;
      if (std::abs(v + 7) > 100) kept[at] = v;
    });
    CHECK(wrong == 0);
    const Levels& other_kind =
        kinds_of_trees[size_t(&kind - kinds_of_trees.data() + 1) % kinds_of_trees.size()];
    const qn::Tree<N> other = tree_of<N>(device, other_kind);
    auto v = other.template field<int>(-7);
    k.write(device, v, values_at<N>(random_places<N>(random, 10)));
    other.from_dense(v, dense, 100);
    Places<N> places;
    for (const auto& [at, value] : kept) places.insert(at);
    for (const At<N>& at : in_units<N>(places, other_kind.unit)) {
      const auto one = fine.find(at);
      kept.emplace(at, one == fine.end() ? -7 : one->second);
    }
    CHECK(k.elements(device, v) == kept);
  });
}

}  // namespace

TEST_CASE("trees are coarsened, refined, made dense and sparse again") {
  on_every_device([](const qn::Device& device) {
    check_resolutions<1>(device);
    check_resolutions<2>(device);
    check_resolutions<3>(device);
    check_resolutions<4>(device);
  });
}

TEST_CASE("vectors, halves and unsigned numbers are coarsened by components") {
  on_every_device([](const qn::Device& device) {
    qn::Tree<1> tree{device, {qn::pointer(8), qn::bitmasked(4)}, {.offset = {-3}}};
    auto v = tree.field<qn::Vec<float, 2>>({9, 9}, qn::aos);
    auto h = tree.field<qn::half>();
    auto w = tree.field<uint8_t>(3);
    for (int k = -3; k < 2; k++) {
      v.set(k, {float(k), float(-2 * k)});
      h.set(k, qn::half(float(k) * 0.5f));
      w.set(k, uint8_t(250 + k));
    }
    const qn::Tree<1> coarse = tree.coarsen();
    CHECK(coarse.active_count() == 3);
    auto mean = coarse.coarsened(v, qn::Coarsening::mean);
    // -3 is alone in -2; -2 and -1 are -1; 0 and 1 are 0.
    CHECK((mean.at(-2)[0] == -3 && mean.at(-2)[1] == 6));
    CHECK((mean.at(-1)[0] == -1.5f && mean.at(-1)[1] == 3));
    CHECK((mean.at(0)[0] == 0.5f && mean.at(0)[1] == -1));
    CHECK((mean.at(1)[0] == 9));
    auto most = coarse.coarsened(v, qn::Coarsening::max, qn::aos);
    CHECK((most.at(-1)[0] == -1 && most.at(-1)[1] == 4));
    CHECK(float(coarse.coarsened(h, qn::Coarsening::sum).at(-1)) == -1.5f);
    auto bytes = coarse.coarsened(w, qn::Coarsening::mean);
    CHECK((bytes.at(-1) == 248 && bytes.at(0) == 250 && bytes.at(5) == 3));
    CHECK(coarse.coarsened(w, qn::Coarsening::sum).at(-1) == uint8_t(248 + 249));
  });
}

TEST_CASE("dense fields that do not fit a tree are refused") {
  qn::Device device("interpreter");
  qn::Tree<2> tree{device, {qn::pointer(4), qn::bitmasked(4)}};
  auto u = tree.field<float>(1), v = tree.field<float>();
  u.set(2, 2, 5);
  qn::Field<float, 2> dense{device, {17, 3}};
  dense.fill(1.0f);
  dense.set(16, 1, 0.5f);
  int line = 0;
  std::string text = error_of([&] { tree.from_dense(u, dense); }, &line);
  CHECK_THAT(text, Contains("from_dense: 1 elements that are not the background lie outside"));
  CHECK(line == __LINE__ - 2);
  text = error_of([&] { tree.from_dense(u, dense, -0.5f); });
  CHECK_THAT(text, Contains("a tolerance below 0"));
  text = error_of([&] { tree.from_dense(u, v); });
  CHECK_THAT(text, Contains("a field that is on a tree; copy_of"));
  text = error_of([&] { tree.from_dense(dense, dense); });
  CHECK_THAT(text, Contains("a field that is not on this tree"));
  text = error_of([&] { qn::to_dense(dense); });
  CHECK_THAT(text, Contains("a field that is on no tree"));
  CHECK(u.at(2, 2) == 5);
  tree.from_dense(u, dense, 0.5f);
  CHECK(tree.active_count() == 0);
  qn::Tree<1> large{device, {qn::pointer(1 << 15), qn::pointer(1 << 15)}};
  text = error_of([&] { large.refine(); });
  CHECK_THAT(text, Contains("more than 2^31 elements along axis 0"));
}

TEST_CASE("trees of no elements go through all operations") {
  on_every_device([](const qn::Device& device) {
    for (bool dense : {false, true}) {
      qn::Tree<2> tree{device,
                       {qn::pointer(4), dense ? qn::dense(4) : qn::bitmasked(4)},
                       {.shape = {0, 5}, .offset = {3, -3}}};
      qn::Tree<2> other{device, {qn::pointer(2), qn::bitmasked(2)}, {.offset = {3, -3}}};
      auto u = tree.field<float>(2), v = other.field<float>(1);
      v.set(3, -3, 7);
      for (auto neighbours : {qn::Neighbours::faces, qn::Neighbours::vertices}) {
        tree.dilate(2, neighbours);
        tree.erode(2, neighbours);
      }
      tree.intersect(other);
      tree.subtract(other);
      CHECK_FALSE(qn::same_activity(tree, other));
      CHECK_THAT(error_of([&] { tree.merge(other); }), Contains("1 active elements lie outside"));
      other.merge(tree);
      CHECK(other.active_count() == 1);
      tree.prune(u);
      tree.prune(u, [](auto x) { return x > 0; });
      auto w = tree.copy().copy_of(v);
      CHECK(w.size() == 0);
      const qn::Tree<2> coarse = tree.coarsen(), fine = tree.refine();
      CHECK(coarse.coarsened(u, qn::Coarsening::mean).shape(1) == 3);  // -2, -1, 0
      CHECK(fine.refined(u).shape(1) == 10);
      auto all = qn::to_dense(u);
      CHECK((all.shape(0) == 0 && all.shape(1) == 5 && all.offset(0) == 3));
      tree.from_dense(u, all);
      tree.build_from({qn::IndexBox<2>{{3, -3}, {3, 2}}});
      tree.build_from(tree);
      CHECK(tree.active_count() == 0);
      other.build_from(tree);
      CHECK(other.active_count() == 0);
    }
  });
}

// What trees say of themselves, and what they give back.
#include "tests/sparse/places.h"

#include "dsl/objects.h"

using namespace qn::lang;
using Catch::Matchers::Contains;

namespace {

int64_t allocated(const qn::Device& device) {
  device.synchronize();
  return int64_t(device.object()->device->allocated());
}

template <int N>
struct Made {
  Made(const qn::Device& device, const Levels& kind) : tree(tree_of<N>(device, kind, 40)) {}
  qn::Tree<N> tree;
  qn::Field<int, N> u = tree.template field<int>(-7);
  qn::Field<qn::Vec<double, 2>, N> v = tree.template field<qn::Vec<double, 2>>({1.5, -2}, qn::aos);
};

template <int N>
void check_clear_and_shrink(const qn::Device& device) {
  std::mt19937 random(N);
  on_every_tree<N>(device, [&](const Kernels<N>& k, const Levels& kind) {
    auto made = std::make_unique<Made<N>>(device, kind);
    const qn::Tree<N>& tree = made->tree;
    const qn::Field<int, N>& u = made->u;
    CHECK(tree.active_count() == 0);

    const Places<N> many = random_places<N>(random, 60), few = random_places<N>(random, 7);
    k.write(device, u, values_at<N>(many));
    CHECK(tree.active_count() == int64_t(in_units<N>(many, kind.unit).size()));
    CHECK(tree.stats().active == tree.active_count());
    tree.clear();
    CHECK(tree.active_count() == 0);
    CHECK(k.elements(device, u).empty());
    for (const At<N>& at : many) {
      if constexpr (N == 1) CHECK(u.at(at[0]) == -7);
      if constexpr (N == 2) CHECK(u.at(at[0], at[1]) == -7);
    }

    k.write(device, u, values_at<N>(few));
    Elements<N> expected = values_at<N>(few);
    make_active<N>(expected, few, kind.unit);
    const qn::TreeStats full = tree.stats();
    tree.shrink();
    const qn::TreeStats shrunk = tree.stats();
    CHECK(k.elements(device, u) == expected);
    CHECK(shrunk.active == full.active);
    CHECK(shrunk.bytes <= full.bytes);
    for (size_t level = 0; level < full.levels.size(); level++)
      CHECK(shrunk.levels[level].cells == full.levels[level].cells);

    // It goes on as any tree does.
    k.write(device, u, values_at<N>(many));
    make_active<N>(expected, many, kind.unit);
    for (const At<N>& at : many) expected[at] = value_at<N>(at);
    CHECK(k.elements(device, u) == expected);
    tree.shrink();
    tree.shrink();
    CHECK(k.elements(device, u) == expected);
    tree.clear();
    tree.shrink();
    CHECK(tree.active_count() == 0);
    k.write(device, u, values_at<N>(few));
    CHECK(tree.active_count() == int64_t(in_units<N>(few, kind.unit).size()));

    const int64_t told = tree.stats().bytes, with_tree = allocated(device);
    made.reset();
    CHECK(with_tree - allocated(device) == told);
  });
}

}  // namespace

TEST_CASE("a tree is counted, cleared and shrunk, and goes on") {
  on_every_device([](const qn::Device& device) {
    check_clear_and_shrink<1>(device);
    check_clear_and_shrink<2>(device);
    check_clear_and_shrink<3>(device);
    check_clear_and_shrink<4>(device);
  });
}

TEST_CASE("a shrunk tree has the cells that live, and their elements in the order they had") {
  on_every_device([](const qn::Device& device) {
    qn::Tree<1> tree{device, {qn::pointer(64), qn::pointer(8), qn::bitmasked(4)}, {.cells = 20}};
    auto u = tree.field<float>(0.5f);
    auto w = tree.field<qn::half>(qn::half(2.0f));
    qn::Kernel write = [&](I32 n, I32 by) {
      for (auto k : range(n)) {
        u[k * by] = cast<float>(k);
        w[k * by] = cast<qn::half>(k % 7);
      }
    };
    write(200, 10);
    qn::Kernel drop = [&] {
      for (auto i : u) {
        If(i % 80 != 0) { deactivate(u, i); }
      }
    };
    drop();
    // Sums in a fixed order tell whether the order has changed.
    qn::Kernel sum = {[&]() -> F32 {
                        Var<float> s = 0.0f;
                        for (auto i : deterministic(u.indices())) s += 1.0f / (1.0f + u[i]);
                        return s;
                      },
                      {.strict = true}};
    const float before = float(sum());
    const qn::TreeStats full = tree.stats();
    CHECK(full.active == 25);
    REQUIRE(full.levels.size() == 3);
    CHECK(full.levels[0].name == "pointer(64)");
    CHECK(full.levels[0].cells == 1);
    CHECK(full.levels[2].cells == 25);
    CHECK(full.levels[2].room >= 200);
    tree.shrink();
    const qn::TreeStats shrunk = tree.stats();
    CHECK(shrunk.levels[2].cells == 25);
    CHECK(shrunk.levels[2].room == 25);
    CHECK(shrunk.levels[1].room == shrunk.levels[1].cells);
    CHECK(shrunk.bytes < full.bytes);
    CHECK(float(sum()) == before);
    for (int k = 0; k < 200; k++) {
      CHECK(u.at(k * 10) == (k % 8 == 0 ? float(k) : 0.5f));
      CHECK(float(w.at(k * 10)) == (k % 8 == 0 ? float(k % 7) : 2.0f));
    }
    CHECK_THAT(tree.describe(), Contains("bitmasked(4): 25 of 25 cells"));
    CHECK_THAT(tree.describe(), Contains("25 active elements"));
    write(200, 7);
    std::set<int> expected;
    for (int k = 0; k < 200; k++) {
      if (k % 8 == 0) expected.insert(k * 10);
      expected.insert(k * 7);
    }
    CHECK(tree.active_count() == int64_t(expected.size()));
  });
}

TEST_CASE("lists of cells are made anew once cells have come or gone, and not else") {
  on_every_device([](const qn::Device& device) {
    const auto check = [&](const qn::Tree<2>& tree, bool has_lists) {
      auto u = tree.field<int>();
      qn::Kernel write = [&](I32 i, I32 n) {
        for (auto k : range(n)) u(i, k) = k;
      };
      qn::Kernel loop = [&] {
        for (auto [i, k] : u) u(i, k) = u(i, k) + 1;
      };
      qn::Kernel drop = [&](I32 i, I32 from) {
        for (auto [j, k] : u) {
          If(i == j && k >= from) { deactivate(u, j, k); }
        }
      };
      // How often in what is done, and a few loops behind it.
      const auto made = [&](auto done) {
        const int64_t before = tree.stats().lists_made;
        done();
        for (int k = 0; k < 5; k++) loop();
        return tree.stats().lists_made - before;
      };
      CHECK(made([&] { write(3, 5); }) == 1);
      CHECK(made([] {}) == 0);
      CHECK(made([&] { write(3, 5); }) == 0);  // which are active already
      CHECK(made([&] { write(3, 6); }) == 0);  // in a cell that is there
      CHECK(made([&] { u.set(3, 2, 8); }) == 0);
      CHECK(made([&] { drop(3, 100); }) == 0);
      CHECK(made([&] { drop(3, 5); }) == 0);
      CHECK(made([&] { write(0, 1); }) == 1);
      CHECK(made([&] { write(9, 1); }) == 1);
      CHECK(made([&] { drop(9, 0); }) == 1);
      if (has_lists) {
        qn::Kernel add = [&](I32 i) { append(u, i, 1); };
        CHECK(made([&] { add(3); }) == 0);
        CHECK(made([&] { add(7); }) == 1);
      }
      CHECK(made([&] { tree.clear(); }) == 1);
      CHECK(tree.active_count() == 0);
    };
    check({device, {qn::pointer(4), qn::pointer(2), qn::bitmasked(2, 8)}}, false);
    check({device, {qn::hash(), qn::bitmasked(2, 8)}}, false);
    check({device, {qn::hash(), qn::pointer(2), qn::bitmasked(1, 8)}}, false);
    check({device, {qn::pointer(16, 1), qn::dynamic(16, 8)}}, true);
  });
}

TEST_CASE("trees without fields, without elements and without pointers are counted and cleared") {
  on_every_device([](const qn::Device& device) {
    qn::Tree<2> bare{device, {qn::pointer(4), qn::bitmasked(4)}};
    CHECK(bare.active_count() == 0);
    bare.clear();
    bare.shrink();
    CHECK(bare.stats().bytes > 0);
    qn::Tree<2> empty{device, {qn::pointer(4), qn::bitmasked(4)}, {.shape = {0, 5}}};
    auto e = empty.field<int>();
    CHECK(empty.active_count() == 0);
    empty.clear();
    empty.shrink();
    // Without a level that makes anything, all is there always.
    qn::Tree<1> dense{device, {qn::dense(8)}, {.shape = {6}}};
    auto u = dense.field<int>(3);
    u.set(2, 9);
    CHECK(dense.active_count() == 6);
    dense.clear();
    dense.shrink();
    CHECK(dense.active_count() == 6);
    CHECK(u.at(2) == 3);
  });
}

TEST_CASE("operations on trees are called by the host alone") {
  qn::Device device("interpreter");
  qn::Tree<1> tree{device, {qn::pointer(4)}};
  int line = 0;
  const std::string text = error_of([&] { qn::Kernel k = [&] { tree.clear(); }; }, &line);
  CHECK_THAT(text, Contains("clear is called while a kernel or function is recorded"));
  CHECK(line == __LINE__ - 2);
}

// Fields whose elements are cells of a tree's levels.
#include "tests/sparse/places.h"

using namespace qn::lang;
using Catch::Matchers::Contains;

namespace {

int floor_div(int a, int b) { return a / b - (a % b < 0); }

/// The cell that an element is in.
template <int N>
At<N> cell_of(const At<N>& at, const std::array<int64_t, size_t(N)>& extents) {
  At<N> cell{};
  for (size_t k = 0; k < size_t(N); k++) {
    const int n = int(extents[k]), first = first_of<N>[k];
    cell[k] = floor_div(at[k] - first, n) + floor_div(first, n);
  }
  return cell;
}

/// Kernels over a field of cells, and over one of elements that says which cells they are in.
template <int N>
struct CellKernels {
  using Index = Coordinates<N>;
  qn::Kernel<void(qn::Field<int, N>, qn::Field<int>)> visit{
      [](qn::Field<int, N> cells, qn::Field<int> count) {
        for (auto i : cells.indices()) {
          cells[i] += 1;
          atomic_add(count[0], 1);
        }
      }};
  qn::Kernel<void(qn::Field<int, N>, qn::Field<Index>, qn::Field<int>, qn::Field<bool>)> read{
      [](qn::Field<int, N> cells, qn::Field<Index> at, qn::Field<int> values,
         qn::Field<bool> active) {
        for (auto k : at) {
          values[k] = cells[at[k]];
          active[k] = is_active(cells, at[k]);
        }
      }};
  qn::Kernel<void(qn::Field<int, N>, qn::Field<Index>)> write{
      [](qn::Field<int, N> u, qn::Field<Index> at) {
        for (auto k : at) u[at[k]] = k;
      }};
  qn::Kernel<void(qn::Field<int, N>, qn::Field<Index>)> end{
      [](qn::Field<int, N> u, qn::Field<Index> at) {
        for (auto k : at) deactivate(u, at[k]);
      }};
};

template <int N>
qn::Field<Coordinates<N>> field_of(const qn::Device& device, const Places<N>& places) {
  std::vector<Coordinates<N>> all;
  for (const At<N>& at : places) {
    Coordinates<N> one{};
    if constexpr (N == 1)
      one = at[0];
    else
      for (int k = 0; k < N; k++) one[k] = at[size_t(k)];
    all.push_back(one);
  }
  qn::Field<Coordinates<N>> field{device, {int64_t(all.size())}};
  field.copy_from(all);
  return field;
}

template <int N>
void expect_cells(const qn::Device& device, const CellKernels<N>& kernels, const Levels& kind,
                  int number, std::mt19937& random) {
  INFO(kind.text << ", level " << number);
  const qn::Tree<N> tree = tree_of<N>(device, kind, 2);
  const auto u = tree.template field<int>();
  const qn::Level<N> level = tree.level(number);
  const auto cells = level.template field<int>(-5);
  std::map<At<N>, int> expected;
  Places<N> active;
  Places<N> all;
  each_at_all<N>([&](const At<N>& at) { all.insert(cell_of<N>(at, level.extents())); });
  const auto all_cells = field_of<N>(device, all);
  qn::Field<int> count{device, {1}}, values{device, {int64_t(all.size())}};
  qn::Field<bool> there{device, {int64_t(all.size())}};
  for (int round = 0; round < 4; round++) {
    const Places<N> made = random_places<N>(random, round == 1 ? 40 : 3);
    kernels.write(u, field_of<N>(device, made));
    for (const At<N>& at : in_units<N>(made, kind.unit)) active.insert(at);
    if (round >= 2) {
      Places<N> ended;
      for (const At<N>& at : active)
        if (random() % 3) ended.insert(at);
      kernels.end(u, field_of<N>(device, ended));
      for (const At<N>& at : in_units<N>(ended, kind.unit)) active.erase(at);
    }
    if (round == 2) tree.shrink();
    Places<N> live;
    for (const At<N>& at : active) live.insert(cell_of<N>(at, level.extents()));
    std::erase_if(expected, [&](const auto& cell) { return !live.contains(cell.first); });
    for (const At<N>& cell : live) expected.try_emplace(cell, -5).first->second++;
    count.fill(0);
    kernels.visit(cells, count);
    CHECK(count.at(0) == int(live.size()));
    kernels.read(cells, all_cells, values, there);
    const auto value = qn::to_vector(values);
    size_t wrong = 0, k = 0;
    for (const At<N>& cell : all) {
      const auto found = expected.find(cell);
      const bool is_there = found != expected.end();
      wrong += value[k] != (is_there ? found->second : -5) || there.at(int64_t(k)) != is_there;
      k++;
    }
    CHECK(wrong == 0);
  }
}

}  // namespace

TEST_CASE("fields of cells are active where an element in the cell is") {
  on_every_device([](const qn::Device& device) {
    std::mt19937 random(5);
    const CellKernels<2> flat;
    const CellKernels<3> solid;
    for (const auto& [kind, number] : {std::pair(0, 1),
                                       {0, 2},
                                       {1, 1},
                                       {1, 2},
                                       {2, 2},
                                       {3, 2},
                                       {4, 1},
                                       {4, 2},
                                       {5, 1},
                                       {5, 2}}) {
      expect_cells<2>(device, flat, kinds_of_trees[size_t(kind)], number, random);
      if (number == 2 && kind % 2)
        expect_cells<3>(device, solid, kinds_of_trees[size_t(kind)], number, random);
    }
  });
}

TEST_CASE("what is written to a cell that is not there is not stored") {
  on_every_device([](const qn::Device& device) {
    qn::Tree<2> tree{device, {qn::pointer(4), qn::pointer(4), qn::bitmasked(2)}};
    auto u = tree.field<int>();
    auto cells = tree.level(2).field<int>(3);
    u.set({5, 9}, 1);
    qn::Field<int, 2> before{device, {16, 16}};
    qn::Kernel write{[&] {
                       for (auto [i, j] : before) {
                         before(i, j) = atomic_add(cells(i, j), 10);
                         If(i % 2 == 0) { cells(i, j) = i * 16 + j; }
                       }
                     },
                     {.checked = false}};
    write();
    CHECK(cells.at(2, 4) == 2 * 16 + 4);
    for (int i = 0; i < 16; i++)
      for (int j = 0; j < 16; j++) {
        CHECK(before.at(i, j) == 3);
        if (i != 2 || j != 4) CHECK(cells.at(i, j) == 3);
      }
    CHECK(tree.active_count() == 1);
    CHECK(tree.stats().levels.back().cells == 1);
  });
}

TEST_CASE("in checked mode a write to a cell that is not there names field, index and line") {
  on_every_device([](const qn::Device& device) {
    qn::Tree<2> tree{device, {qn::pointer(4), qn::bitmasked(4)}};
    auto u = tree.field<int>();
    auto cells = tree.level(1).field<int>();
    u.set({5, 9}, 1);
    int here = 0;
    qn::Kernel write{[&](qn::Field<int, 2> blocks, I32 i) {
                       for (auto j : range(2, 3)) {
                         here = __LINE__ + 1;
                         blocks(i, j) = 7;
                       }
                     },
                     {.checked = true}};
    write(cells, 1);
    CHECK(cells.at(1, 2) == 7);
    int line = 0;
    CHECK_THAT(error_of(
                   [&] {
                     write(cells, 3);
                     (void)cells.at(1, 2);
                   },
                   &line),
               Contains("parameter 1 is written at (3, 2), where its tree has no cell"));
    CHECK(line == here);
  });
}

TEST_CASE("a loop counts in cells what elements it makes in them") {
  on_every_device([](const qn::Device& device) {
    qn::Tree<1> tree{device, {qn::hash(), qn::pointer(8), qn::bitmasked(8)}, {.cells = 1}};
    auto u = tree.field<int>();
    auto blocks = tree.level(2).field<int>(), big = tree.level(1).field<int>();
    qn::Kernel scatter = [&](I32 n) {
      for (auto k : range(n)) {
        I32 i = k * 37 % 1000 - 500;
        u(i) += 1;
        // Below 0, too: what is left of a division is of the same sign as i.
        blocks((i + 512) / 8 - 64) += 1;
        big((i + 512) / 64 - 8) += 1;
      }
    };
    scatter(3000);
    std::map<int, int> in_block, in_big;
    for (int k = 0; k < 3000; k++) {
      const int i = k * 37 % 1000 - 500;
      in_block[floor_div(i, 8)]++;
      in_big[floor_div(i, 64)]++;
    }
    for (const auto& [at, n] : in_block) CHECK(blocks.at(at) == n);
    for (const auto& [at, n] : in_big) CHECK(big.at(at) == n);
    CHECK(blocks.at(70) == 0);
    CHECK(tree.stats().levels.back().cells == int64_t(in_block.size()));
  });
}

TEST_CASE("the host writes to cells that are there, and to no others") {
  on_every_device([](const qn::Device& device) {
    for (const bool masked : {false, true}) {
      qn::Tree<2> tree{device,
                       {qn::pointer(4), masked ? qn::bitmasked(4) : qn::pointer(4), qn::dense(2)}};
      auto u = tree.field<int>();
      auto cells = tree.level(2).field<float>(0.5f);
      u.set({5, 9}, 1);
      cells.set({2, 4}, 2.0f);
      CHECK(cells.at(2, 4) == 2.0f);
      CHECK(cells.at(2, 5) == 0.5f);
      int line = 0;
      const int here = __LINE__ + 1;
      CHECK_THAT(error_of([&] { cells.set({2, 5}, 1.0f); }, &line),
                 Contains("is written at (2, 5), where its tree has no cell"));
      CHECK(line == here);
      CHECK(cells.at(2, 5) == 0.5f);
      const auto dense = qn::to_dense(cells);
      CHECK(dense.at(2, 4) == 2.0f);
      CHECK(dense.at(3, 4) == 0.5f);
      u.set({4, 8}, 1);
      CHECK(cells.at(2, 4) == 2.0f);
      tree.clear();
      CHECK(cells.at(2, 4) == 0.5f);
      u.set({4, 8}, 1);
      CHECK(cells.at(2, 4) == 0.5f);
    }
  });
}

TEST_CASE("what a field of cells cannot do is refused") {
  qn::Device device("interpreter");
  qn::Tree<2> tree{device, {qn::pointer(4), qn::dense(4), qn::bitmasked(2)}};
  auto u = tree.field<int>();
  auto cells = tree.level(1).field<int>();
  int line = 0;
  CHECK_THAT(error_of([&] { tree.level(0); }, &line), Contains("inside of the tree are 1 to 2"));
  CHECK(line == __LINE__ - 1);
  CHECK_THAT(error_of([&] { tree.level(3); }), Contains("level 3 of a tree of 3 levels"));
  CHECK_THAT(error_of([&] { tree.level(2); }), Contains("make that one pointer"));
  CHECK_THAT(error_of([&] { qn::Tree<1>(device, {qn::dense(4)}).level(1); }),
             Contains("its cells are its elements"));
  CHECK_THAT(error_of([&] { tree.prune(cells, 0); }, &line), Contains("one of its tree's levels"));
  CHECK(line == __LINE__ - 1);
  qn::Kernel end = [](qn::Field<int, 2> x) {
    for (auto i : x) deactivate(x, i);
  };
  CHECK_THAT(error_of([&] { end(cells); }), Contains("are cells of a level of its tree"));
  qn::Kernel make = [](qn::Field<int, 2> x) {
    for (auto i : range(4)) activate(x, i, i);
  };
  CHECK_THAT(error_of([&] { make(cells); }), Contains("activate or deactivate those"));
  end(u);
}

TEST_CASE("a write where an element is active takes no cell") {
  on_every_device([](const qn::Device& device) {
    // There is no slice of this loop: what it asks, it changes. It takes no room all the same.
    for (const bool checked : {false, true}) {
      INFO("checked " << checked);
      qn::Tree<1> tree{device, {qn::pointer(64), qn::bitmasked(16)}, {.cells = 3}};
      auto u = tree.field<int>(), v = tree.field<int>(2);
      for (int i : {3, 17, 40}) u.set(i, i);
      const int64_t bytes = tree.stats().bytes;
      qn::Kernel add{[&] {
                       for (auto i : range(1024)) {
                         If(i < 2000 && is_active(u, i)) {
                           v(i) += u(i);
                           u(i) = v(i);
                         }
                       }
                     },
                     {.checked = checked}};
      add();
      CHECK(tree.active_count() == 3);
      CHECK(tree.stats().bytes == bytes);
      for (int i : {3, 17, 40}) {
        CHECK(u.at(i) == i + 2);
        CHECK(v.at(i) == i + 2);
      }
      CHECK(v.at(4) == 2);
    }
  });
}

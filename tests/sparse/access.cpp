// Reading, writing and walking fields on trees, on every device.
#include <quern/sparse.h>

#include <map>

#include "tests/end_to_end/devices.h"

using namespace qn::lang;

TEST_CASE("what is not active reads as the background, and a write makes it active") {
  on_every_device([](const qn::Device& device) {
    qn::Tree<2> tree{device, {qn::pointer(8), qn::bitmasked(4)}};
    auto u = tree.field<float>(7.0f);
    qn::Field<float, 2> out{device, {32, 32}};
    qn::Field<bool, 2> active{device, {32, 32}};
    qn::Kernel write = [&](I32 n) {
      for (auto i : range(n)) u(i, i) = cast<float>(i) * 2.0f;
    };
    qn::Kernel read = [&] {
      for (auto [i, j] : out) {
        out(i, j) = u(i, j);
        active(i, j) = is_active(u, i, j);
      }
    };
    read();
    CHECK(out.at(3, 3) == 7.0f);
    CHECK_FALSE(active.at(3, 3));
    write(20);
    read();
    for (int i = 0; i < 32; i++)
      for (int j = 0; j < 32; j++) {
        const bool written = i == j && i < 20;
        CHECK(out.at(i, j) == (written ? float(i) * 2 : 7.0f));
        CHECK(active.at(i, j) == written);
      }
  });
}

TEST_CASE("a loop over a field on a tree runs its active elements") {
  on_every_device([](const qn::Device& device) {
    qn::Tree<3> tree{device, {qn::pointer(4), qn::pointer(2, 4, 2), qn::bitmasked(4, 2, 4)}};
    auto u = tree.field<int>();
    qn::Kernel write = [&] {
      for (auto i : range(100)) u(i * 7 % 32, i * 5 % 32, i / 32 * 3) = i + 1;
    };
    qn::Field<int, 0> total{device}, count{device};
    qn::Kernel sum = [&] {
      Var<int> s = 0, n = 0;
      for (auto [i, j, k] : u) {
        s += u(i, j, k) * (i + 32 * j);
        n += 1;
        u(i, j, k) = -k;
      }
      total() = s;
      count() = n;
    };
    std::map<std::array<int, 3>, int> model;
    write();
    for (int i = 0; i < 100; i++) model[{i * 7 % 32, i * 5 % 32, i / 32 * 3}] = i + 1;
    int expected = 0;
    for (const auto& [at, v] : model) expected += v * (at[0] + 32 * at[1]);
    sum();
    CHECK(count.at({}) == int(model.size()));
    CHECK(total.at({}) == expected);
    expected = 0;
    for (const auto& [at, v] : model) expected += -at[2] * (at[0] + 32 * at[1]);
    sum();
    CHECK(total.at({}) == expected);
  });
}

TEST_CASE("a tree grows while a kernel writes to it") {
  on_every_device([](const qn::Device& device) {
    qn::Tree<2> tree{device, {qn::pointer(64), qn::pointer(8), qn::dense(2)}, {.cells = 1}};
    auto u = tree.field<float>(-1.0f);
    qn::Kernel write = [&](I32 n) {
      for (auto i : range(n)) u(i * 37 % 1024, i * 101 % 1024) = cast<float>(i);
    };
    write(10);
    write(500);
    qn::Field<float, 0> total{device};
    qn::Field<int, 0> count{device};
    qn::Kernel sum = [&] {
      Var<float> s = 0;
      Var<int> n = 0;
      for (auto [i, j] : u) {
        s += select(u(i, j) >= 0.0f, u(i, j), 0.0f);
        n += 1;
      }
      total() = s;
      count() = n;
    };
    sum();
    CHECK(total.at({}) == 500 * 499 / 2);
    CHECK(count.at({}) == 4 * 500);
  });
}

namespace {
/// The active elements of a field of two axes, by a loop over it.
std::map<std::array<int, 2>, int> elements_of(const qn::Device& device,
                                              const qn::Field<int, 2>& u) {
  const int first0 = int(u.offset(0)), first1 = int(u.offset(1));
  qn::Field<int, 2> out{device, {u.shape(0), u.shape(1)}}, seen{device, {u.shape(0), u.shape(1)}};
  qn::Kernel copy = [&] {
    for (auto [i, j] : u) {
      out(i - first0, j - first1) = u(i, j);
      seen(i - first0, j - first1) += 1;
    }
  };
  copy();
  std::map<std::array<int, 2>, int> all;
  for (int i = 0; i < u.shape(0); i++)
    for (int j = 0; j < u.shape(1); j++)
      if (int times = seen.at(i, j)) {
        CHECK(times == 1);
        all[{i + first0, j + first1}] = out.at(i, j);
      }
  return all;
}
}  // namespace

TEST_CASE("what is deactivated becomes the background, and its cells are used again") {
  on_every_device([](const qn::Device& device) {
    qn::Tree<2> tree{device, {qn::pointer(16), qn::bitmasked(2)}, {.cells = 20}};
    auto u = tree.field<int>(5);
    auto other = tree.field<double>(0.5);
    qn::Kernel write = [&](I32 row) {
      for (auto j : range(32)) {
        u(row, j) = j;
        other(row, j) = cast<double>(j);
      }
    };
    qn::Kernel end = [&](I32 step) {
      for (auto [i, j] : u) {
        If(j % step == 0) { deactivate(u, i, j); }
      }
    };
    for (int round = 0; round < 20; round++) {
      write(round);
      end(2);
      std::map<std::array<int, 2>, int> expected;
      for (int j = 1; j < 32; j += 2) expected[{round, j}] = j;
      CHECK(elements_of(device, u) == expected);
      CHECK(u.at(round, 4) == 5);
      CHECK(other.at(round, 4) == 0.5);
      CHECK(other.at(round, 5) == 5);
      end(1);
      CHECK(elements_of(device, u).empty());
    }
    CHECK(tree.describe().find(": 0 of ") != std::string::npos);
    CHECK(u.at(3, 3) == 5);
  });
}

TEST_CASE("slices and rebased views of a field on a tree are fields on it") {
  on_every_device([](const qn::Device& device) {
    qn::Tree<2> tree{
        device, {qn::pointer(8), qn::bitmasked(4)}, {.shape = {30, 29}, .offset = {-3, 5}}};
    auto u = tree.field<int>();
    u.set(-3, 5, 7);
    u.set(26, 33, 8);
    u.set(10, 20, 9);
    using Elements = std::map<std::array<int, 2>, int>;
    CHECK(elements_of(device, u) == Elements{{{-3, 5}, 7}, {{10, 20}, 9}, {{26, 33}, 8}});
    auto part = u.slice(0, 0, 27).slice(1, 10, 34);
    CHECK(part.shape(0) == 27);
    CHECK(part.at(10, 10) == 9);
    CHECK(elements_of(device, part) == Elements{{{10, 10}, 9}, {{26, 23}, 8}});
    auto moved = part.rebased({100, 200});
    CHECK(elements_of(device, moved) == Elements{{{110, 210}, 9}, {{126, 223}, 8}});
    moved.set(100, 200, 11);
    CHECK(u.at(0, 10) == 11);
    CHECK_THROWS_AS(u.at(27, 5), qn::Error);
  });
}

TEST_CASE("the host copies a field on a tree as any other") {
  on_every_device([](const qn::Device& device) {
    qn::Tree<1> tree{device, {qn::pointer(10), qn::dense(3)}, {.shape = {28}}};
    auto u = tree.field<qn::Vec<float, 3>>({1, 2, 3}, qn::aos);
    std::vector<qn::Vec<float, 3>> all(28), back(28);
    u.copy_to(back);
    for (const auto& v : back) CHECK((v[0] == 1 && v[1] == 2 && v[2] == 3));
    for (int k = 0; k < 28; k++) all[size_t(k)] = {float(k), float(k * k), -1.0f};
    u.copy_from(all);
    u.copy_to(back);
    for (int k = 0; k < 28; k++) CHECK(back[size_t(k)][1] == float(k * k));
  });
}

TEST_CASE("a view of components follows its field when the tree grows and shrinks") {
  on_every_device([](const qn::Device& device) {
    qn::Tree<1> tree{device, {qn::pointer(4096), qn::bitmasked(4)}, {.cells = 2}};
    auto u = tree.field<qn::Vec<float, 2>>({1, 2}, qn::aos);
    auto y = u.component(1);
    auto w = tree.field<qn::Vec<int, 2>>();
    auto z = w.component(1);
    qn::Kernel write = [&](I32 n) {
      for (auto k : range(n)) {
        y[k * 4] = cast<float>(k);
        z[k * 4] = k;
      }
    };
    write(1);
    write(1000);
    for (int k : {0, 5, 500, 999}) {
      CHECK(y.at(k * 4) == float(k));
      CHECK(z.at(k * 4) == k);
      CHECK(u.at(k * 4)[1] == float(k));
      CHECK(u.at(k * 4)[0] == 1);
    }
    qn::Kernel drop = [&] {
      for (auto i : y) {
        If(i < 2000) { deactivate(y, i); }
      }
    };
    drop();
    tree.shrink();
    for (int k : {500, 999}) CHECK((y.at(k * 4) == float(k) && z.at(k * 4) == k));
    write(1000);
    for (int k : {0, 5, 500, 999}) CHECK((y.at(k * 4) == float(k) && z.at(k * 4) == k));
  });
}

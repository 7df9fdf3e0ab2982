// Who makes elements active, and what a tree does where it has no room: nothing is ever lost.
#include <quern/sparse.h>

#include <algorithm>

#include <random>
#include <set>

#include "tests/end_to_end/output.h"

using namespace qn::lang;

namespace {

int count_of(const qn::Device& device, const qn::Field<int, 2>& u) {
  qn::Field<int, 0> count{device};
  qn::Kernel sum = [&] {
    Var<int> n = 0;
    for (auto [i, j] : u) n += 1;
    count() = n;
  };
  sum();
  return count.at({});
}

}  // namespace

TEST_CASE("iterations that make the same cells at once lose none") {
  on_every_device([](const qn::Device& device) {
    const int threads = device.name() == std::string("cpu") ? 100'000 : 5'000;
    for (int cells : {1, 3, 100}) {
      qn::Tree<2> tree{
          device, {qn::pointer(2), qn::pointer(2), qn::bitmasked(4)}, {.cells = cells}};
      auto u = tree.field<int>();
      qn::Kernel count = [&](I32 n) {
        for (auto k : range(n)) u(k % 16, k / 16 % 16) += 1;
      };
      count(threads);
      count(threads);
      for (int k = 0; k < 256; k++) {
        const int expected = 2 * (threads / 256 + (k < threads % 256));
        CHECK(u.at(k % 16, k / 16) == expected);
      }
      CHECK(count_of(device, u) == 256);
    }
  });
}

TEST_CASE("updates that change nothing make their elements active, however many meet") {
  on_every_device([](const qn::Device& device) {
    const int n = device.name() == std::string("cpu") ? 100'000 : 1'000;
    qn::Tree<2> tree{device, {qn::pointer(2), qn::bitmasked(2)}};
    auto u = tree.field<int>(), v = tree.field<int>(100);
    qn::Kernel count = {[&] {
                          for (auto k : range(n)) u(k % 4, 0) += 0;
                          for (auto k : range(n)) atomic_min(v(k % 4, 1), INT32_MAX);
                        },
                        {.checked = false}};
    count();
    CHECK(count_of(device, u) == 8);
    CHECK(u.at(2, 0) == 0);
    CHECK(v.at(2, 1) == 100);
  });
}

TEST_CASE("activate, is_active and the value of what was never written") {
  on_every_device([](const qn::Device& device) {
    qn::Tree<2> tree{device, {qn::pointer(4), qn::bitmasked(4)}};
    auto u = tree.field<int>(9);
    qn::Field<int> seen{device, {3}};
    qn::Kernel k = [&] {
      activate(u, 3, 3);
      seen[0] = u(3, 3);
      seen[1] = cast<int>(is_active(u, 3, 3));
      seen[2] = cast<int>(is_active(u, 3, 4));
    };
    k();
    CHECK(qn::to_vector(seen) == std::vector<int>{9, 1, 0});
    CHECK(count_of(device, u) == 1);
  });
}

TEST_CASE("later loops of a kernel see what earlier ones made active") {
  on_every_device([](const qn::Device& device) {
    qn::Tree<2> tree{device, {qn::pointer(8), qn::pointer(4), qn::bitmasked(2)}};
    auto u = tree.field<int>(), v = tree.field<int>();
    qn::Field<int> counts{device, {4}};
    qn::Kernel spread = [&](I32 rounds) {
      u(32, 32) = 1;
      for (auto r : serial(range(rounds))) {
        for (auto [i, j] : u) {
          v(i + 1, j) += 1;
          v(i - 1, j) += 1;
          v(i, j + 1) += 1;
          v(i, j - 1) += 1;
        }
        Var<int> n = 0;
        for (auto [i, j] : v) n += 1;
        counts[r] = n;
      }
    };
    spread(4);
    // Both fields share what is active: a diamond that grows.
    for (int r = 0; r < 4; r++) CHECK(counts.at(r) == 2 * (r + 1) * (r + 1) + 2 * (r + 1) + 1);
  });
}

TEST_CASE("random trees of no room find room, or say that there is no memory") {
  on_every_device([](const qn::Device& device) {
    std::mt19937 random(1);
    const int rounds = device.name() == std::string("cpu") ? 40 : 8;
    for (int round = 0; round < rounds; round++) {
      const auto below = [&](int n) { return int(random() % unsigned(n)); };
      qn::Tree<2> tree{device,
                       {qn::pointer(1 + below(6), 1 + below(6)), qn::pointer(1 + below(6)),
                        below(2) ? qn::bitmasked(1 + below(5)) : qn::dense(1 + below(3))},
                       {.cells = 1 + below(4)}};
      auto u = tree.field<int>();
      const int n = int(u.shape(0)), m = int(u.shape(1)), writes = 1 + below(300);
      qn::Field<int> at{device, {writes}};
      std::vector<int> places(static_cast<size_t>(writes));
      std::set<int> different;
      for (int& p : places) different.insert(p = below(n * m));
      at.copy_from(places);
      qn::Kernel write = [&](I32 columns) {
        for (auto k : at) {
          I32 p = at[k];
          u(p / columns, p % columns) += 1;
        }
      };
      write(m);
      std::vector<int> expected(size_t(n * m), 0), found(size_t(n * m));
      for (int p : places) expected[size_t(p)]++;
      u.copy_to(found);
      CHECK(found == expected);
    }
  });
}

TEST_CASE("a kernel that decides by what it changes runs without a slice") {
  on_every_device([](const qn::Device& device) {
    qn::Tree<2> tree{device, {qn::pointer(16), qn::bitmasked(2)}, {.cells = 1}};
    auto u = tree.field<int>();
    qn::Field<int> next{device, {1}};
    qn::Kernel take = [&](I32 n) {
      for (auto k : range(n)) {
        I32 place = atomic_add(next[0], 1);
        u(place / 32, place % 32) = k + 1;
      }
    };
    take(700);
    CHECK(count_of(device, u) == 700);
    qn::Kernel mark = [&] {
      for (auto k : range(1024)) {
        If(!is_active(u, k / 32, k % 32)) { u(k / 32, k % 32) = -1; }
      }
    };
    mark();
    for (int k = 0; k < 1024; k++) CHECK((u.at(k / 32, k % 32) == -1) == (k >= 700));
  });
}

TEST_CASE("particles that move in the loop that scatters them find room") {
  on_every_device([](const qn::Device& device) {
    qn::Tree<1> tree{device, {qn::pointer(1000), qn::pointer(10), qn::bitmasked(4)}, {.cells = 1}};
    auto mass = tree.field<int>();
    const int count = 300;
    qn::Field<float> x{device, {count}};
    qn::Kernel start = [&] {
      for (auto p : x) x[p] = cast<float>(p) * 100.0f;
    };
    qn::Kernel step = [&] {
      for (auto p : x) {
        x[p] = x[p] + 13.0f;
        I32 cell = cast<int>(x[p]);
        for (int near = -1; near <= 1; near++) mass[cell + near] += 1;
      }
    };
    start();
    for (int k = 0; k < 3; k++) step();
    std::vector<int> expected(size_t(mass.size()), 0), found(expected.size());
    for (int p = 0; p < count; p++)
      for (int k = 1; k <= 3; k++)
        for (int near = -1; near <= 1; near++) expected[size_t(p * 100 + 13 * k + near)]++;
    mass.copy_to(found);
    CHECK(found == expected);
  });
}

TEST_CASE("what a kernel without a slice has taken is not taken for free afterwards") {
  on_every_device([](const qn::Device& device) {
    for (bool counted : {false, true}) {
      qn::Tree<2> tree{device, {qn::pointer(16), qn::bitmasked(2)}, {.cells = 100}};
      auto u = tree.field<int>();
      qn::Field<int> next{device, {1}};
      const auto write = [&](const I32& place) { u(place / 16 * 2, place % 16 * 2) = 1; };
      // Places that the loop draws itself; how many an iteration takes is known, or is not.
      qn::Kernel draw = [&](I32 n) {
        for (auto k : range(1)) {
          for (auto r : serial(range(n + k))) write(atomic_add(next[0], 1));
        }
      };
      qn::Kernel draw_one = [&](I32 n) {
        for (auto k : range(n)) {
          next[0] += 0 * k;
          write(atomic_add(next[0], 1));
        }
      };
      counted ? draw_one(95) : draw(95);
      qn::Kernel rest = [&] {
        for (auto k : range(50)) write(k + 95);
      };
      rest();
      CHECK(count_of(device, u) == 145);
    }
  });
}

TEST_CASE("what becomes active depends on what a field of the same tree holds elsewhere") {
  on_every_device([](const qn::Device& device) {
    qn::Tree<1> tree{device, {qn::pointer(64), qn::bitmasked(4)}, {.cells = 1}};
    auto u = tree.field<int>(-1), v = tree.field<int>();
    qn::Kernel write = [&] {
      for (auto k : range(20)) u[k * 3] = k;
    };
    qn::Kernel spread = [&] {
      for (auto i : u) {
        If(u[i + 3] >= 10) v[i * 4 + 2] = u[i];
      }
    };
    write();
    spread();
    for (int i = 0; i < 256; i++) {
      const int from = (i - 2) / 4, k = from / 3;
      const bool written = i % 4 == 2 && from % 3 == 0 && k + 1 >= 10 && k + 1 < 20;
      CHECK(v.at(i) == (written ? k : 0));
    }
  });
}

TEST_CASE("cells are not lost where a level above has none left") {
  on_every_device([](const qn::Device& device) {
    qn::Tree<1> tree{device, {qn::pointer(64), qn::pointer(8), qn::bitmasked(4)}, {.cells = 20}};
    auto u = tree.field<int>();
    qn::Kernel write = [&](I32 n, I32 by) {
      for (auto k : range(n)) u[k * by] = 1;
    };
    // The inner level has more room than the outer one.
    write(20 * 8, 4);
    tree.clear();
    // Wherever a cell of the outer level is missing, another child of one is wanted.
    write(50, 36);
    const qn::TreeStats stats = tree.stats();
    CHECK(stats.active == 50);
    CHECK(stats.levels[2].cells == 50);
  });
}

TEST_CASE("a loop that changes what it reads, or speaks, runs once however much room it wants") {
  on_every_device([](const qn::Device& device) {
    qn::Tree<1> tree{device, {qn::pointer(64), qn::pointer(4), qn::bitmasked(2)}, {.cells = 1}};
    auto u = tree.field<int>(-1);
    qn::Field<int> x{device, {100}}, y{device, {100}};
    qn::Kernel count = [&] {
      for (auto i : x) {
        x[i] = x[i] + 1;
        u[i * 5] = i;
      }
    };
    qn::Kernel copy = [&] {
      for (auto i : x) {
        y[i] = x[i] * 2;
        u[i * 5 + 1] = x[i];
      }
    };
    qn::Kernel speak = [&] {
      for (auto i : range(20)) {
        u[i * 7 + 3] = 1;
        print("{}", i);
      }
    };
    count();
    copy();
    for (int i = 0; i < 100; i++) {
      CHECK(x.at(i) == 1);
      CHECK(y.at(i) == 2);
      CHECK(u.at(i * 5) == i);
      CHECK(u.at(i * 5 + 1) == 1);
    }
    const std::string text = output_of([&] {
      speak();
      device.synchronize();
    });
    CHECK(std::ranges::count(text, '\n') == 20);
  });
}

TEST_CASE("iterations that all update one element, which is not active before") {
  on_every_device([](const qn::Device& device) {
    for (bool strict : {false, true}) {
      qn::Tree<1> tree{device, {qn::pointer(64), qn::pointer(4), qn::bitmasked(2)}, {.cells = 1}};
      auto u = tree.field<int>();
      auto v = tree.field<float>(-1.0f);
      qn::Field<int> x{device, {1000}};
      qn::Kernel update{[&] {
                          for (auto i : x) {
                            u[7] += i;
                            atomic_max(v[300], cast<float>(i * 37 % 1000));
                          }
                        },
                        {.strict = strict}};
      update();
      CHECK(u.at(7) == 999 * 1000 / 2);
      CHECK(v.at(300) == 999);
      CHECK(tree.active_count() == 2);
    }
  });
}

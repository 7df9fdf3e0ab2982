// The same again and again: activations that race, room that is short, cells that come and go. What
// the suite does a thousandth of, the long tests (tests/long.txt) do in full.
#include <quern/sparse.h>

#include <random>
#include <set>

#include "tests/end_to_end/devices.h"

using namespace qn::lang;

namespace {

bool is(const qn::Device& device, const char* name) { return device.name() == std::string(name); }

/// Of a whole number of rounds, on a device: what the long test does there, or a thousandth.
int64_t share(const qn::Device& device, int64_t on_cpu, int64_t on_vulkan, int64_t elsewhere,
              bool all) {
  const int64_t whole = is(device, "cpu") ? on_cpu : is(device, "vulkan") ? on_vulkan : elsewhere;
  return std::max<int64_t>(all ? whole : whole / 1000, 1);
}

// ---- races

/// Iterations n apart make the same element active, each a part of the loop at a time: as many as
/// there are threads for them race for each element, and for its cells.
void race(const qn::Device& device, const std::vector<qn::TreeLevel>& levels, int64_t total) {
  const int most = is(device, "cpu") ? 1'000'000 : is(device, "vulkan") ? 100'000 : 1000;
  const int n = int(std::min<int64_t>(total, most));
  std::mt19937 random(1);
  qn::Kernel add = [&](qn::Field<int, 2> u, I32 count, I32 elements, I32 stride) {
    for (auto k : range(count)) {
      I32 e = k % elements * stride;
      u(e / 1024, e % 1024) += 1;
    }
  };
  qn::Kernel measure = [&](qn::Field<int, 2> u, qn::Field<int64_t> sums) {
    Var<int64_t> count = 0, sum = 0, wrong = 0;
    for (auto [i, j] : u) {
      count += 1;
      sum += cast<int64_t>(u(i, j));
      wrong += cast<int64_t>(u(i, j) <= 0);
    }
    sums[0] = count;
    sums[1] = sum;
    sums[2] = wrong;
  };
  qn::Field<int64_t> sums{device, {3}};
  for (int64_t done = 0; done < total; done += n) {
    const int parts[] = {2, 4, 8, 64};
    const int elements = std::max(n / parts[random() % 4], 1);
    const int stride = elements * 5 < 1024 * 1024 ? 5 : 1;
    auto tree = levels.size() == 2
                    ? qn::Tree<2>(device, {levels[0], levels[1]}, {.cells = 1 + int(random() % 64)})
                    : qn::Tree<2>(device, {levels[0], levels[1], levels[2]},
                                  {.cells = 1 + int(random() % 64)});
    auto u = tree.field<int>();
    add(u, n, elements, stride);
    measure(u, sums);
    REQUIRE(sums.at(0) == std::min(n, elements));
    REQUIRE(sums.at(1) == n);
    REQUIRE(sums.at(2) == 0);
  }
}

void race_everywhere(bool all) {
  on_every_device([&](const qn::Device& device) {
    const std::vector<std::vector<qn::TreeLevel>> trees = {
        {qn::pointer(256), qn::bitmasked(4)},
        {qn::pointer(16), qn::pointer(32), qn::bitmasked(2)},
        {qn::hash(), qn::bitmasked(4)}};
    const int64_t total = share(device, 1'000'000'000, 100'000'000, 1'000'000, all);
    for (const auto& levels : trees) race(device, levels, total / 3 + 1);
  });
}

// ---- room

/// Random writes into trees that have room for next to nothing.
void fill_random_trees(const qn::Device& device, int64_t rounds) {
  std::mt19937 random(7);
  const auto below = [&](int n) { return int(random() % unsigned(n)); };
  constexpr int most = 64;
  qn::Field<int> at{device, {most}};
  qn::Kernel write = [&](qn::Field<int, 2> u, I32 n, I32 columns) {
    for (auto k : range(n)) u(at[k] / columns, at[k] % columns) += 1;
  };
  // Of which elements, the loop itself decides.
  qn::Field<int> next{device, {1}};
  qn::Kernel draw = [&](qn::Field<int, 2> u, I32 n, I32 columns) {
    next[0] = 0;
    for (auto k : range(n)) {
      I32 place = at[atomic_add(next[0], 1) + 0 * k];
      u(place / columns, place % columns) += 1;
    }
  };
  for (int64_t round = 0; round < rounds; round++) {
    const int shape = below(4), cells = 1 + below(5);
    qn::Tree<2> tree =
        shape == 0   ? qn::Tree<2>(device, {qn::pointer(6), qn::pointer(3, 2), qn::bitmasked(2, 3)},
                                   {.cells = cells})
        : shape == 1 ? qn::Tree<2>(device, {qn::pointer(36, 12), qn::dense(1, 3)}, {.cells = cells})
        : shape == 2
            ? qn::Tree<2>(device, {qn::hash(), qn::pointer(2), qn::bitmasked(2)},
                          {.shape = {36, 36}, .cells = cells})
            : qn::Tree<2>(device, {qn::pointer(36, 1), qn::dynamic(36, 5)}, {.cells = cells});
    auto u = tree.field<int>();
    for (int launch = 0; launch < 2; launch++) {
      const int n = 1 + below(most);
      std::vector<int> places(most);
      for (int& p : places) p = below(36 * 36);
      at.copy_from(places);
      (below(2) ? write : draw)(u, n, 36);
      std::vector<int> expected(36 * 36, 0), found(expected.size());
      u.copy_to(found);
      for (int k = 0; k < n; k++) expected[size_t(places[size_t(k)])]++;
      REQUIRE(found == expected);
      tree.clear();
    }
  }
}

// ---- cells that come and go

/// Elements in a window that moves over the tree; nothing of what it leaves stays.
template <class Tree>
void move_on(const qn::Device& device, const Tree& tree, int cell, int rounds) {
  auto u = tree.template field<int>(-1);
  qn::Field<int> wrong{device, {1}};
  qn::Kernel step = [&](I32 t) {
    for (auto [i, j] : u) {
      If(i * 7 % 64 < t % 64) { deactivate(u, i, j); }
    }
    for (auto k : range(20)) u((t * 3 + k * 11) % 256, (t * 5 + k * k) % 256) = t;
    for (auto [i, j] : u) {
      If(u(i, j) < 0 || u(i, j) > t) { wrong[0] += 1; }
    }
  };
  std::set<std::pair<int, int>> active;
  int64_t most = 0;
  for (int t = 1; t <= rounds; t++) {
    step(t);
    std::erase_if(active, [&](const auto& at) { return at.first * 7 % 64 < t % 64; });
    for (int k = 0; k < 20; k++) active.insert({(t * 3 + k * 11) % 256, (t * 5 + k * k) % 256});
    std::set<std::pair<int, int>> cells;
    for (const auto& [i, j] : active) cells.insert({i / cell, j / cell});
    most = std::max(most, int64_t(cells.size()));
    if (t % 16 != 0 && t != rounds) continue;
    const qn::TreeStats stats = tree.stats();
    REQUIRE(stats.active == int64_t(active.size()));
    REQUIRE(stats.levels.back().cells == int64_t(cells.size()));
    REQUIRE(stats.levels.back().room <= 2 * (most + 20));  // 20 may be taken in vain
  }
  CHECK(wrong.at(0) == 0);
  tree.clear();
  const std::vector<qn::TreeStats::Level> levels = tree.stats().levels;
  for (size_t k = 1; k < levels.size(); k++) CHECK(levels[k].cells == 0);
}

}  // namespace

TEST_CASE("activations race and none is lost") { race_everywhere(false); }
TEST_CASE("activations race and none is lost: 10^9 on CPUs and 10^8 on Vulkan",
          "[.long][sparse-races]") {
  race_everywhere(true);
}

TEST_CASE("trees without room find it for whatever is written") {
  on_every_device([](const qn::Device& device) {
    fill_random_trees(device, share(device, 1'000'000, 10'000, 10'000, false));
  });
}
TEST_CASE("trees without room find it for whatever is written: 10^6 times on CPUs",
          "[.long][sparse-room]") {
  on_every_device([](const qn::Device& device) {
    fill_random_trees(device, share(device, 1'000'000, 10'000, 10'000, true));
  });
}

TEST_CASE("10000 rounds of cells that come and go leave none behind") {
  on_every_device([](const qn::Device& device) {
    const int rounds = is(device, "cpu") ? 10'000 : is(device, "vulkan") ? 500 : 100;
    move_on(device, qn::Tree<2>(device, {qn::pointer(32), qn::bitmasked(8)}, {.cells = 16}), 8,
            rounds);
    move_on(device,
            qn::Tree<2>(device, {qn::hash(), qn::pointer(4), qn::bitmasked(2)}, {.cells = 16}), 2,
            rounds / 10);
  });
}

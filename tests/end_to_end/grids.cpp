// Programs whose kernels do not know it, on dense fields and on trees with all elements active: what the
// first ones yield, other tests compare with mathematics.
#include "examples/grids.h"

#include <cmath>
#include <cstring>

#include "examples/edges.h"
#include "examples/fluids.h"
#include "examples/poisson.h"
#include "examples/programs.h"
#include "tests/end_to_end/devices.h"

using examples::Grid;

namespace {

constexpr int side = 20;  // no multiple of the trees' cells

enum Kind { bits, endless, mixed };
const std::initializer_list<Kind> every_kind = {bits, endless, mixed};

/// A grid on a tree in which all elements are active.
Grid<2> on_tree(const qn::Device& device, Kind kind) {
  const auto with = [&](std::initializer_list<qn::TreeLevel> levels) {
    const Grid<2> grid{device, {side, side}, levels};
    grid.activate_all();
    return grid;
  };
  switch (kind) {
    case bits: return with({qn::pointer(4), qn::bitmasked(8)});
    case endless: return with({qn::hash(), qn::pointer(2), qn::dense(4, 8)});
    default: return with({qn::dense(3), qn::pointer(8), qn::bitmasked(1, 16)});
  }
}

/// In strict mode, where all that differs is what memory lies where.
struct Strict {
  Strict() { setenv("QUERN_STRICT", "1", 1); }
  ~Strict() { unsetenv("QUERN_STRICT"); }
};

/// Has `run(grid)`, an array, the same bits on trees as on dense fields?
template <class F>
void expect_same_bits(std::initializer_list<Kind> kinds, F&& run) {
  const Strict strict;
  on_every_device([&](const qn::Device& device) {
    const auto expected = run(Grid<2>{device, {side, side}});
    for (Kind kind : kinds) {
      INFO("tree " << kind);
      const auto found = run(on_tree(device, kind));
      REQUIRE(found.size() == expected.size());
      size_t differ = 0;
      for (size_t k = 0; k < found.size(); k++)
        differ += std::memcmp(&found[k], &expected[k], sizeof(found[k])) != 0;
      CHECK(differ == 0);
    }
  });
}

/// A smooth picture with an edge in it.
std::vector<uint8_t> picture() {
  std::vector<uint8_t> p;
  for (int i = 0; i < side; i++)
    for (int j = 0; j < side; j++)
      p.push_back(uint8_t(std::hypot(i - 9.3, j - 11.1) < 6 ? 200 - 3 * i : 20 + 2 * j));
  return p;
}

}  // namespace

TEST_CASE("the Julia set on trees is that on a dense field") {
  expect_same_bits(every_kind,
                   [](const Grid<2>& on) { return examples::julia(on, -0.75f, 0.125f, 60); });
}

TEST_CASE("a program on a tree runs where elements are active") {
  on_every_device([](const qn::Device& device) {
    const Grid<2> empty{device, {side, side}, {qn::pointer(4), qn::bitmasked(8)}};
    CHECK(examples::julia(empty, 0, 0, 60) == std::vector<int>(side * side));
  });
}

TEST_CASE("Jacobi's iteration on trees is that on dense fields") {
  expect_same_bits(every_kind, [](const Grid<2>& on) { return examples::jacobi(on, 1e-3); });
}

TEST_CASE("Game of Life on trees is that on dense fields") {
  expect_same_bits(every_kind, [](const Grid<2>& on) {
    std::vector<int> board(side * side);
    for (size_t k = 0; k < board.size(); k++) board[k] = k % 3 == 0 || k % 7 == 1;
    return examples::life(on, board, 12);
  });
}

TEST_CASE("Sobel and Canny on trees are those on dense fields") {
  expect_same_bits({endless}, [](const Grid<2>& on) {
    auto grey = on.field<uint8_t>(), result = on.field<uint8_t>();
    grey.copy_from(picture());
    examples::sobel()(grey, result);
    std::vector<uint8_t> both = qn::to_vector(result);
    const int rounds = examples::Canny(on, {.sigma = 0.8f, .low = 20, .high = 200})(grey, result);
    for (uint8_t pixel : qn::to_vector(result)) both.push_back(pixel);
    both.push_back(uint8_t(rounds));
    return both;
  });
}

TEST_CASE("stable fluids on trees are those on dense fields") {
  expect_same_bits({bits}, [](const Grid<2>& on) {
    examples::Fluids fluids(on,
                            {.dt = 0.02f, .viscosity = 0.001f, .projection = 8, .diffusion = 4});
    std::vector<float> dye;
    std::vector<quern::lang::vec2> velocity;
    for (int i = 0; i < side; i++)
      for (int j = 0; j < side; j++) {
        dye.push_back(float((i + 2 * j) % 5));
        velocity.emplace_back(std::sin(0.3f * float(i)), std::cos(0.3f * float(j)));
      }
    fluids.dye.copy_from(dye);
    fluids.velocity.copy_from(velocity);
    fluids.advance(3);
    std::vector<float> all = qn::to_vector(fluids.dye);
    for (const quern::lang::vec2& v : qn::to_vector(fluids.velocity)) {
      all.push_back(v.x);
      all.push_back(v.y);
    }
    return all;
  });
}

TEST_CASE("conjugate gradients on trees are those on dense fields, but for the order of sums") {
  on_every_device([](const qn::Device& device) {
    const auto solve = [](const Grid<2>& on) {
      examples::Poisson poisson(on);
      std::vector<double> f;
      for (int k = 0; k < side * side; k++) f.push_back(k % 11 - 5);
      poisson.f.copy_from(f);
      CHECK(poisson.solve(1e-12).residual <= 1e-12);
      return qn::to_vector(poisson.u);
    };
    const std::vector<double> expected = solve(Grid<2>{device, {side, side}});
    const std::vector<double> found = solve(on_tree(device, mixed));
    double worst = 0, largest = 0;
    for (size_t k = 0; k < found.size(); k++) {
      worst = std::max(worst, std::fabs(found[k] - expected[k]));
      largest = std::max(largest, std::fabs(expected[k]));
    }
    // |u - v| ≤ κ · (residuals of both) · |u|, with κ = cot²(πh/2) < 146.
    CHECK(worst < 2 * 146 * 1e-12 * side * largest);
    CHECK(largest > 0);
  });
}

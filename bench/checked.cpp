// What checked mode costs: the same kernels checked and not. The reference is the unchecked kernel,
// so that the ratio is the share of its speed that is left.
#include <array>
#include <string>

#include "bench/harness.h"
#include "bench/lattice_node.h"

namespace bench {
namespace qn = quern;
using namespace qn::lang;

namespace {

/// Both forms of a kernel of `bytes`.
template <class Body>
void pair(Report& report, const char* name, const std::string& size, double bytes, Body body) {
  qn::Kernel with{body, {.checked = true}}, without{body, {.checked = false}};
  report.run({name, size, bytes, 0,
              [&] {
                with();
                report.complete();
              },
              [&] {
                without();
                report.complete();
              },
              report.bandwidth(bytes)});
}

/// The picture's gradient, but for a border of one pixel that a test in the loop leaves out.
void guarded_sobel(Report& report) {
  constexpr int height = 2160, width = 3840;
  qn::Field<uint8_t, 2> picture{report.device(), {height, width}},
      result{report.device(), {height, width}};
  pair(report, "checked sobel", "3840x2160", 2.0 * height * width, [&] {
    auto h = picture.dim(0), w = picture.dim(1);
    for (auto [i, j] : result) {
      If(i > 0 && i < h - 1 && j > 0 && j < w - 1) {
        auto at = [&](int a, int b) { return cast<int>(picture(i + a, j + b)); };
        auto right = at(-1, 1) + 2 * at(0, 1) + at(1, 1) - at(-1, -1) - 2 * at(0, -1) - at(1, -1);
        auto down = at(1, -1) + 2 * at(1, 0) + at(1, 1) - at(-1, -1) - 2 * at(-1, 0) - at(-1, 1);
        auto x = cast<float>(right), y = cast<float>(down);
        result(i, j) = cast<uint8_t>(min(round(sqrt(x * x + y * y)), 255.0f));
      }
    }
  });
}

/// What a multigrid solver does on one level, whose size is a parameter, inside of the boundary: a
/// sweep, the residual, and its restriction to the next level.
void guarded_multigrid(Report& report) {
  constexpr int n = 1025, m = 513;
  qn::Field<float, 2> u{report.device(), {n, n}}, f{report.device(), {n, n}},
      r{report.device(), {n, n}}, coarse{report.device(), {m, m}};
  auto body = [&](I32 size) {
    auto inside = [](I32 i, I32 j, I32 k) { return i > 0 && i < k - 1 && j > 0 && j < k - 1; };
    auto around = [&](I32 i, I32 j) {
      return u(i - 1, j) + u(i + 1, j) + u(i, j - 1) + u(i, j + 1);
    };
    for (int colour = 0; colour < 2; colour++)
      for (auto [i, j] : grid(size, size)) If(inside(i, j, size) && (i + j) % 2 == colour) {
          u(i, j) = 0.25f * (f(i, j) + around(i, j));
        }
    for (auto [i, j] : grid(size, size))
      If(inside(i, j, size)) r(i, j) = f(i, j) - 4.0f * u(i, j) + around(i, j);
    auto half = (size + 1) / 2;
    for (auto [i, j] : grid(half, half)) If(inside(i, j, half)) {
        auto y = 2 * i, x = 2 * j;
        coarse(i, j) =
            0.25f * r(y, x) + 0.125f * (r(y - 1, x) + r(y + 1, x) + r(y, x - 1) + r(y, x + 1));
      }
  };
  qn::Kernel<void(I32)> with{body, {.checked = true}}, without{body, {.checked = false}};
  const double bytes = 4.0 * (6.0 * n * n + m * m);
  report.run({"checked multigrid", std::to_string(n) + "^2", bytes, 0,
              [&] {
                with(n);
                report.complete();
              },
              [&] {
                without(n);
                report.complete();
              },
              report.bandwidth(bytes)});
}

/// Streaming and collision of bench/lattice.cpp on a smaller lattice.
void guarded_lattice(Report& report) {
  constexpr int n = 66;
  qn::Field<float, 4> now{report.device(), {19, n, n, n}}, next{report.device(), {19, n, n, n}};
  const double bytes = 19.0 * 2 * sizeof(float) * n * n * n;
  pair(report, "checked lbm_d3q19", std::to_string(n) + "^3", bytes, [&] {
    for (auto [k, j, i] : grid(n, n, n)) {
      If(k > 0 && k < n - 1 && j > 0 && j < n - 1 && i > 0 && i < n - 1) {
        stream_and_collide(now, next, k, j, i, 1.6f);
      }
    }
  });
}

}  // namespace

void checked(Report& report) {
  qn::Device& device = report.device();
  constexpr int n = 1 << 22, side = 2048;
  qn::Field<float> x{device, {n}}, y{device, {n}};
  qn::Field<int> at{device, {n}}, quotient{device, {n}};
  qn::Field<float, 2> u{device, {side, side}}, v{device, {side, side}};
  qn::Kernel spread = [&] {
    for (auto i : at) at[i] = cast<int>(random<uint32_t>() >> 10);
  };
  spread();
  const std::string size = std::to_string(n);
  pair(report, "checked saxpy", size, 12.0 * n, [&] {
    for (auto i : y) y[i] = 0.5f * x[i] + y[i];
  });
  pair(report, "checked stencil5", std::to_string(side) + "^2", 8.0 * side * side, [&] {
    for (auto [i, j] : grid(v.dim(0) - 2, v.dim(1) - 2))
      v(i + 1, j + 1) = 0.25f * (u(i, j + 1) + u(i + 2, j + 1) + u(i + 1, j) + u(i + 1, j + 2));
  });
  pair(report, "checked gather", size, 12.0 * n, [&] {
    for (auto i : y) y[i] = x[at[i]];
  });
  pair(report, "checked division", size, 8.0 * n, [&] {
    for (auto i : at) quotient[i] = at[i] / (at[i] % 7 + 1);
  });
  guarded_sobel(report);
  guarded_multigrid(report);
  guarded_lattice(report);
}

}  // namespace bench

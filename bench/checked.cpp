// What checked mode costs: the same kernels checked and not. The reference is the unchecked kernel,
// so that the ratio is the share of its speed that is left.
#include <string>
#include <vector>

#include "bench/harness.h"

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
}

}  // namespace bench

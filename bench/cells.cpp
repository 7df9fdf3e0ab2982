#include "bench/cells.h"

#include <quern/host.h>

#include <string>

#include "bench/harness.h"
#include "bench/pages.h"

namespace bench {
namespace qn = quern;
using namespace qn::lang;

namespace {

using Cells = qn::Field<uint8_t, 2>;

template <class F>
void neighbours(F visit) {
  for (int di = -1; di <= 1; di++)
    for (int dj = -1; dj <= 1; dj++)
      if (di != 0 || dj != 0) visit(di, dj);
}

U8 lives(const Cells& from, I32 i, I32 j, U8 alive) {
  return cast<uint8_t>(alive == 3 || (alive == 2 && from(i, j) == 1));
}

qn::Kernel<void(Cells, Cells)> around() {
  return [](Cells from, Cells to) {
    auto h = from.dim(0), w = from.dim(1);
    for (auto [i, j] : from) {
      Var<uint8_t> alive = 0;
      neighbours([&](int di, int dj) { alive += from((i + di + h) % h, (j + dj + w) % w); });
      to(i, j) = lives(from, i, j, alive);
    }
  };
}

qn::Kernel<void(Cells, Cells)> bounded() {
  return [](Cells from, Cells to) {
    auto h = from.dim(0), w = from.dim(1);
    for (auto [i, j] : from) {
      Var<uint8_t> alive = 0;
      neighbours([&](int di, int dj) {
        auto y = i + di, x = j + dj;
        If(y >= 0 && y < h && x >= 0 && x < w) alive += from(y, x);
      });
      to(i, j) = lives(from, i, j, alive);
    }
  };
}

}  // namespace

void cells(Report& report) {
  constexpr int n = 2048;
  constexpr size_t count = size_t(n) * n;
  Array<uint8_t> start(count), next(count);
  for (size_t k = 0; k < count; k++) start[k] = uint8_t(uint32_t(k) * 2654435761u >> 31);
  Cells a{report.device(), {n, n}}, b{report.device(), {n, n}};
  a.copy_from(start);
  const double bytes = 2.0 * double(count);
  auto add = [&](const char* name, auto step, auto hand_written) {
    report.run({name, std::to_string(n) + "^2", bytes, 0,
                [&] {
                  step(a, b);
                  report.complete();
                },
                [&] { hand_written(start.data(), next.data(), n); }, report.bandwidth(bytes),
                double(count)});
    step(a, b);
    hand_written(start.data(), next.data(), n);
    if (qn::to_vector(b) != std::vector(next.begin(), next.end()))
      throw qn::Error(std::string(name) + " and its reference differ");
  };
  add("life, bytes, around", around(), reference::life_around);
  add("life, bytes, bounded", bounded(), reference::life_bounded);
}

}  // namespace bench

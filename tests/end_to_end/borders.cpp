// Indices and guards of stencils at borders, by random expressions, against plain C++: the CPU's
// back end takes the inside of a row apart from its ends.
#include <algorithm>
#include <random>

#include "tests/end_to_end/devices.h"

using namespace qn::lang;

namespace {

/// A step of an index, or the answer of a guard: the same on the host and in a kernel.
struct Step {
  enum Kind { add, add_n, sub_n, wrap, mask, at_most, at_least, jump, border };
  Kind kind = add;
  int k = 0;
};

int wrapped(int64_t v) { return int(uint32_t(uint64_t(v))); }

int host(const std::vector<Step>& steps, int v, int n) {
  for (const Step& s : steps) switch (s.kind) {
      case Step::add: v = wrapped(int64_t(v) + s.k); break;
      case Step::add_n: v = wrapped(int64_t(v) + n); break;
      case Step::sub_n: v = wrapped(int64_t(v) - n); break;
      case Step::wrap: v = n == 0 ? v : v % n; break;
      case Step::mask: v = v & (n - 1); break;
      case Step::at_most: v = std::min(v, n - s.k); break;
      case Step::at_least: v = std::max(v, s.k); break;
      case Step::jump: v = v == s.k ? n - 1 : v; break;
      case Step::border: v = v < n - s.k ? v : wrapped(int64_t(v) - s.k); break;
    }
  return v;
}

I32 kernel(const std::vector<Step>& steps, I32 v, I32 n) {
  Var<int> at = v;
  for (const Step& s : steps) switch (s.kind) {
      case Step::add: at = at + s.k; break;
      case Step::add_n: at = at + n; break;
      case Step::sub_n: at = at - n; break;
      case Step::wrap: at = select(n == 0, at, at % n); break;
      case Step::mask: at = at & (n - 1); break;
      case Step::at_most: at = min(at, n - s.k); break;
      case Step::at_least: at = max(at, s.k); break;
      case Step::jump: at = select(at == s.k, n - 1, at); break;
      case Step::border: at = select(at < n - s.k, at, at - s.k); break;
    }
  return at;
}

bool host_guard(int kind, int a, int b) {
  switch (kind) {
    case 0: return a < b;
    case 1: return a <= b;
    case 2: return a > b;
    case 3: return a >= b;
    case 4: return a == b;
    case 5: return a != b;
    default: return uint32_t(a) < uint32_t(b);
  }
}
B1 guard(int kind, I32 a, I32 b) {
  switch (kind) {
    case 0: return a < b;
    case 1: return a <= b;
    case 2: return a > b;
    case 3: return a >= b;
    case 4: return a == b;
    case 5: return a != b;
    default: return cast<unsigned>(a) < cast<unsigned>(b);
  }
}

}  // namespace

TEST_CASE("indices and guards at borders mean what they do in C++") {
  std::mt19937 random(7);
  auto below = [&](int n) { return int(random() % unsigned(n)); };
  const int count = 24;
  for (int round = 0; round < count; round++) {
    std::vector<Step> steps(size_t(1 + below(3)));
    for (Step& s : steps)
      s = {Step::Kind(below(9)), below(4) == 0 ? (1 << 30) + below(9) : below(7) - 2};
    const int row_guard = below(7), guard_kind = below(7), bound = below(5) - 1;
    const bool by_constant = below(2) == 0;
    on_every_device([&](qn::Device& device) {
      INFO("round " << round);
      const int h = 5, w = 67;
      qn::Field<int, 2> x{device, {h, w}}, y{device, {h, w}};
      std::vector<int> in(size_t(h * w)), expected(in.size());
      for (size_t k = 0; k < in.size(); k++) in[k] = int(k * 7919 % 1009);
      x.copy_from(in);
      qn::Kernel step = [&](I32 n) {
        for (auto [i, j] : x) {
          // Any number becomes an index, 0 to w - 1.
          auto at = (kernel(steps, j, n) % w + w) % w;
          Var<int> v = -1;
          If(guard(row_guard, i, by_constant ? I32(1) : n - 30) &&
             guard(guard_kind, j + 1, by_constant ? I32(bound) : n + bound)) {
            v = x(i, at);
          }
          y(i, j) = v + x(i, (j + 1) % w);
        }
      };
      for (int n : {64, 67, 30, 1, -3}) {
        step(n);
        for (int i = 0; i < h; i++)
          for (int j = 0; j < w; j++) {
            const int at = (host(steps, j, n) % w + w) % w;
            const bool in_row = host_guard(row_guard, i, by_constant ? 1 : n - 30);
            const bool inside = host_guard(guard_kind, j + 1, by_constant ? bound : n + bound);
            const int v = in_row && inside ? in[size_t(i * w + at)] : -1;
            expected[size_t(i * w + j)] = v + in[size_t(i * w + (j + 1) % w)];
          }
        CHECK(qn::to_vector(y) == expected);
      }
    });
  }
}

TEST_CASE("the Game of Life wraps around, or ends at borders") {
  const int h = 37, w = 70;
  std::vector<uint8_t> cells(size_t(h * w));
  for (size_t k = 0; k < cells.size(); k++) cells[k] = uint8_t(uint32_t(k) * 2654435761u >> 31);
  auto next = [&](bool around) {
    std::vector<uint8_t> out(cells.size());
    for (int i = 0; i < h; i++)
      for (int j = 0; j < w; j++) {
        int alive = 0;
        for (int a = i - 1; a <= i + 1; a++)
          for (int b = j - 1; b <= j + 1; b++) {
            const bool outside = a < 0 || b < 0 || a == h || b == w;
            if ((a == i && b == j) || (outside && !around)) continue;
            alive += cells[size_t((a + h) % h * w + (b + w) % w)];
          }
        const bool lives = cells[size_t(i * w + j)] == 1;
        out[size_t(i * w + j)] = alive == 3 || (lives && alive == 2);
      }
    return out;
  };
  on_every_device([&](qn::Device& device) {
    qn::Field<uint8_t, 2> a{device, {h, w}}, b{device, {h, w}};
    a.copy_from(cells);
    auto neighbours = [](auto&& visit) {
      for (int di = -1; di <= 1; di++)
        for (int dj = -1; dj <= 1; dj++)
          if (di != 0 || dj != 0) visit(di, dj);
    };
    auto lives = [&](I32 alive, I32 i, I32 j) {
      return cast<uint8_t>(alive == 3 || (alive == 2 && a(i, j) == 1));
    };
    qn::Kernel around = [&] {
      for (auto [i, j] : a) {
        Var<int> alive = 0;
        neighbours([&](int di, int dj) { alive += a((i + di + h) % h, (j + dj + w) % w); });
        b(i, j) = lives(alive, i, j);
      }
    };
    around();
    CHECK(qn::to_vector(b) == next(true));
    qn::Kernel bounded = [&] {
      for (auto [i, j] : a) {
        Var<int> alive = 0;
        neighbours([&](int di, int dj) {
          auto y = i + di, x = j + dj;
          If(y >= 0 && y < h && x >= 0 && x < w && a(y, x) == 1) alive += 1;
        });
        b(i, j) = lives(alive, i, j);
      }
    };
    bounded();
    CHECK(qn::to_vector(b) == next(false));
  });
}

TEST_CASE("a sum over a row with a guarded border keeps every term") {
  on_every_device([](qn::Device& device) {
    const int n = 1000;
    qn::Field<int> x{device, {n}};
    std::vector<int> in(n);
    for (int k = 0; k < n; k++) in[size_t(k)] = k * k % 97;
    x.copy_from(in);
    qn::Kernel sum = [&] {
      Var<int> s = 0;
      for (auto i : x) {
        If(i > 0 && i < n - 1) s += x[i - 1] * x[i + 1];
        else s += x[(i + n - 1) % n];
      }
      return s;
    };
    int expected = in[n - 1] + in[n - 2];
    for (size_t k = 1; k + 1 < n; k++) expected += in[k - 1] * in[k + 1];
    CHECK(int(sum()) == expected);
  });
}

// Loops that read around them what the loop before has made, or overwrite what it has read: whatever order
// back ends run them in, the second finds what all of the first left.
#include <algorithm>
#include <array>
#include <functional>

#include <quern/host.h>
#include <quern/sample.h>

#include "tests/end_to_end/devices.h"
#include "tests/end_to_end/numbers.h"

#include <quern/else.h>

using namespace quern::lang;

namespace {

const std::array<std::array<int, 2>, 9> shapes = {
    {{1, 1}, {1, 90}, {90, 1}, {2, 3}, {3, 2}, {17, 9}, {64, 33}, {301, 40}, {5, 4000}}};

/// The picture beyond its borders: the nearest element.
int nearest(const std::vector<int>& v, int rows, int columns, int i, int j) {
  i = std::clamp(i, 0, rows - 1), j = std::clamp(j, 0, columns - 1);
  return v[size_t(i * columns + j)];
}

std::vector<int> made(int rows, int columns, const std::function<int(int, int)>& value) {
  std::vector<int> all;
  for (int i = 0; i < rows; i++)
    for (int j = 0; j < columns; j++) all.push_back(value(i, j));
  return all;
}

}  // namespace

TEST_CASE("a stencil of what a stencil has made") {
  on_every_device([](const qn::Device& device) {
    for (const auto& [rows, columns] : shapes) {
      INFO(rows << " x " << columns);
      const int n = rows, m = columns;
      const std::vector<int> seen = numbers(n * m, 3);
      const auto x = field_of(device, seen, m);
      qn::Field<int, 2> t{device, {n, m}}, up{device, {n, m}}, down{device, {n, m}};
      qn::Kernel kernel = [&] {
        auto u = bordered(x, border::clamp), v = bordered(t, border::clamp);
        for (auto [i, j] : t) t(i, j) = u(i, j) + 2 * u(i + 1, j) - u(i, j - 1);
        for (auto [i, j] : t) up(i, j) = 3 * v(i, j) + v(i - 2, j + 1);
        for (auto [i, j] : t) t(i, j) = u(i, j + 1) - 5 * u(i, j);
        for (auto [i, j] : t) down(i, j) = v(i - 1, j) + 7 * v(i + 3, j) - v(i, j - 1);
      };
      kernel();
      const auto at = [&](const std::vector<int>& v, int i, int j) {
        return nearest(v, n, m, i, j);
      };
      const std::vector<int> first = made(n, m, [&](int i, int j) {
        return at(seen, i, j) + 2 * at(seen, i + 1, j) - at(seen, i, j - 1);
      });
      const std::vector<int> second =
          made(n, m, [&](int i, int j) { return at(seen, i, j + 1) - 5 * at(seen, i, j); });
      CHECK(qn::to_vector(up) == made(n, m, [&](int i, int j) {
              return 3 * at(first, i, j) + at(first, i - 2, j + 1);
            }));
      CHECK(qn::to_vector(down) == made(n, m, [&](int i, int j) {
              return at(second, i - 1, j) + 7 * at(second, i + 3, j) - at(second, i, j - 1);
            }));
    }
  });
}

TEST_CASE("what a stencil has read is overwritten") {
  on_every_device([](const qn::Device& device) {
    for (const auto& [rows, columns] : shapes) {
      INFO(rows << " x " << columns);
      const int n = rows, m = columns, steps = 3;
      std::vector<int> want = numbers(n * m, 5);
      const auto x = field_of(device, want, m);
      qn::Field<int, 2> next{device, {n, m}};
      qn::Kernel kernel = [&] {
        auto u = bordered(x, border::clamp);
        for (auto step : serial(range(steps))) {
          for (auto [i, j] : x) next(i, j) = u(i - 2, j) + u(i + 1, j) - u(i, j + 1) + step;
          for (auto [i, j] : x) x(i, j) = next(i, j) % 1000;
        }
      };
      kernel();
      for (int step = 0; step < steps; step++) {
        const std::vector<int> before = want;
        want = made(n, m, [&](int i, int j) {
          const auto at = [&](int k, int l) { return nearest(before, n, m, k, l); };
          return (at(i - 2, j) + at(i + 1, j) - at(i, j + 1) + step) % 1000;
        });
      }
      CHECK(qn::to_vector(x) == want);
    }
  });
}

TEST_CASE("a second loop finds sums, and elements far away, that the first has made") {
  on_every_device([](const qn::Device& device) {
    for (const auto& [rows, columns] : shapes) {
      INFO(rows << " x " << columns);
      const int n = rows, m = columns;
      const std::vector<int> seen = numbers(n * m, 7);
      const auto x = field_of(device, seen, m);
      qn::Field<int, 2> t{device, {n, m}}, shifted{device, {n, m}}, turned{device, {n, m}};
      qn::Field<int> counted{device, {n}};
      qn::Kernel kernel = [&] {
        Var<int> sum = 0;
        for (auto [i, j] : x) {
          t(i, j) = 2 * x(i, j);
          sum += x(i, j);
          counted(i) += x(i, j);
        }
        for (auto [i, j] : x) shifted(i, j) = t(i, j) - sum + counted(i);
        for (auto [i, j] : x) t(i, j) = x(i, j) + 1;
        for (auto [i, j] : x) turned(i, j) = t(n - 1 - i, j) - t((i + 1) % n, m - 1 - j);
      };
      counted.fill(0);
      kernel();
      std::vector<int> of_row(size_t(n), 0);
      int sum = 0;
      for (int i = 0; i < n; i++)
        for (int j = 0; j < m; j++) {
          sum += seen[size_t(i * m + j)];
          of_row[size_t(i)] += seen[size_t(i * m + j)];
        }
      const auto at = [&](int i, int j) { return seen[size_t(i * m + j)]; };
      CHECK(qn::to_vector(shifted) ==
            made(n, m, [&](int i, int j) { return 2 * at(i, j) - sum + of_row[size_t(i)]; }));
      CHECK(qn::to_vector(turned) == made(n, m, [&](int i, int j) {
              return at(n - 1 - i, j) - at((i + 1) % n, m - 1 - j);
            }));
    }
  });
}

TEST_CASE("a stencil of what a loop has scattered") {
  on_every_device([](const qn::Device& device) {
    for (const auto& [rows, columns] : shapes) {
      INFO(rows << " x " << columns);
      const int n = rows, m = columns;
      const std::vector<int> seen = numbers(n * m, 11);
      const auto x = field_of(device, seen, m);
      qn::Field<int, 2> t{device, {n, m}}, y{device, {n, m}}, sums{device, {n, 2}},
          centred{device, {n, m}}, first{device, {n, m}};
      qn::Kernel kernel = [&] {
        auto v = bordered(t, border::clamp);
        for (auto [i, j] : t) t(max(i - 2, 0), min(j + 1, t.dim(1) - 1)) += x(i, j);
        for (auto [i, j] : t) y(i, j) = v(i, j) - 2 * v(i - 1, j);
        for (auto [i, j] : x) sums(i, 0) += x(i, j);
        for (auto [i, j] : x) centred(i, j) = m * x(i, j) - sums(i, 0);
        for (auto [i, j] : x) {
          If(i == 0) { sums(0, 1) += x(i, j); }
        }
        for (auto [i, j] : x) {
          If(i == 0) { first(i, j) = x(i, j) - sums(0, 1); }
        }
      };
      t.fill(0);
      sums.fill(0);
      first.fill(0);
      kernel();
      std::vector<int> scattered(size_t(n * m), 0);
      for (int i = 0; i < n; i++)
        for (int j = 0; j < m; j++)
          scattered[size_t(std::max(i - 2, 0) * m + std::min(j + 1, m - 1))] +=
              seen[size_t(i * m + j)];
      CHECK(qn::to_vector(y) == made(n, m, [&](int i, int j) {
              return nearest(scattered, n, m, i, j) - 2 * nearest(scattered, n, m, i - 1, j);
            }));
      std::vector<int> of_row(size_t(n), 0);
      for (int i = 0; i < n * m; i++) of_row[size_t(i / m)] += seen[size_t(i)];
      CHECK(qn::to_vector(centred) == made(n, m, [&](int i, int j) {
              return m * seen[size_t(i * m + j)] - of_row[size_t(i)];
            }));
      CHECK(qn::to_vector(first) ==
            made(n, m, [&](int i, int j) { return i == 0 ? seen[size_t(j)] - of_row[0] : 0; }));
    }
  });
}

TEST_CASE("stages over three axes, and over fields whose first indices are not 0") {
  on_every_device([](const qn::Device& device) {
    for (const auto& [a, b, c] : {std::array{1, 1, 1}, {3, 1, 8}, {9, 5, 4}, {20, 21, 22}}) {
      INFO(a << " x " << b << " x " << c);
      const int first = a % 2 ? -3 : 0;
      const auto placed = qn::offset(first, first + 1, 2);
      qn::Field<int, 3> x{device, {a, b, c}, placed}, t{device, {a, b, c}, placed},
          y{device, {a, b, c}, placed};
      const std::vector<int> seen = numbers(a * b * c, 9);
      x.copy_from(seen);
      qn::Kernel kernel = [&] {
        auto u = bordered(x, border::clamp), v = bordered(t, border::clamp);
        for (auto [i, j, k] : t) t(i, j, k) = u(i, j, k) - u(i - 1, j + 1, k) + u(i, j, k + 1);
        for (auto [i, j, k] : t)
          y(i, j, k) = v(i + 1, j, k) + 2 * v(i, j - 2, k) - 3 * v(i - 1, j, k + 1);
      };
      kernel();
      const auto near = [&](const std::vector<int>& v, int i, int j, int k) {
        i = std::clamp(i, 0, a - 1), j = std::clamp(j, 0, b - 1), k = std::clamp(k, 0, c - 1);
        return v[size_t((i * b + j) * c + k)];
      };
      std::vector<int> between, want;
      for (int i = 0; i < a; i++)
        for (int j = 0; j < b; j++)
          for (int k = 0; k < c; k++)
            between.push_back(near(seen, i, j, k) - near(seen, i - 1, j + 1, k) +
                              near(seen, i, j, k + 1));
      for (int i = 0; i < a; i++)
        for (int j = 0; j < b; j++)
          for (int k = 0; k < c; k++)
            want.push_back(near(between, i + 1, j, k) + 2 * near(between, i, j - 2, k) -
                           3 * near(between, i - 1, j, k + 1));
      CHECK(qn::to_vector(y) == want);
    }
  });
}

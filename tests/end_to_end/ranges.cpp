// Ranges with steps and grids with lower bounds, against the loops of plain C++.
#include "tests/end_to_end/devices.h"
#include "tests/message_of.h"

using namespace qn::lang;

TEST_CASE("a range with a step runs through a, a + step … below b") {
  struct Case {
    int a, b, step;
  };
  const Case cases[] = {{0, 10, 3},         {0, 9, 3},    {2, 3, 5},
                        {5, 5, 1},          {7, 2, 2},    {-7, 12, 4},
                        {0, 40, 1},         {-20, 20, 7}, {1, 39, 1000},
                        {3, 4, 2147483647}, {0, 17, 2},   {-2147483647, -2147483640, 3}};
  constexpr int n = 64;
  on_every_device([&](qn::Device& device) {
    qn::Field<int> parallel{device, {n}}, serial_{device, {n}}, wide{device, {n}},
        inner{device, {n}};
    // Indices far below are brought into the field, from the first on.
    qn::Kernel k = [&](I32 a, I32 b, I32 step, I64 far) {
      for (auto i : range(a, b, step)) parallel[(i - a) % n] += 1 + i - a;
      for (auto i : serial(range(a, b, step))) serial_[(i - a) % n] += 1 + i - a;
      for (auto i : range(a + far, b + far, step)) wide[cast<int>(i - a - far) % n] += 1;
      for (auto task : range(1))
        for (auto i : range(a, b, step)) inner[(i - a) % n] += 1 + i - a + task;
    };
    for (auto [a, b, step] : cases) {
      INFO(a << " " << b << " " << step);
      const int64_t far = 3'000'000'000;
      k(a, b, step, far);
      std::vector<int> expected(n), counted(n);
      for (int64_t i = a; i < b; i += step) {
        expected[size_t((i - a) % n)] += int(1 + i - a);
        counted[size_t((i - a) % n)] += 1;
      }
      REQUIRE(qn::to_vector(parallel) == expected);
      REQUIRE(qn::to_vector(serial_) == expected);
      REQUIRE(qn::to_vector(inner) == expected);
      REQUIRE(qn::to_vector(wide) == counted);
      for (auto* f : {&parallel, &serial_, &wide, &inner}) f->fill(0);
    }
    qn::Kernel host = [&] {
      for (auto i : range(1, n, 5)) parallel[i] = i;
      for (auto task : range(1))
        for (auto i : range(0, n, 9)) inner[i + task] = i;
    };
    host();
    for (int i = 0; i < n; i++) {
      REQUIRE(parallel.at(i) == (i % 5 == 1 ? i : 0));
      REQUIRE(inner.at(i) == (i % 9 == 0 ? i : 0));
    }
  });
}

TEST_CASE("a range from the least to the greatest index") {
  on_every_device([](qn::Device& device) {
    qn::Field<int64_t, 0> count{device, {}}, sum{device, {}};
    constexpr int least = -2147483647 - 1, greatest = 2147483647, step = 100'000'007;
    qn::Kernel k = [&](I32 by) {
      for (auto i : range(least, greatest, by)) {
        count() += 1;
        sum() += i;
      }
      for (auto task : range(1))
        for (auto i : range(least, greatest, by)) sum() += i + task;
    };
    k(step);
    int64_t n = 0, total = 0;
    for (int64_t i = least; i < greatest; i += step) n++, total += i;
    REQUIRE(count.at({}) == n);
    REQUIRE(sum.at({}) == 2 * total);
  });
}

TEST_CASE("reductions over a range with a step") {
  on_every_device([](qn::Device& device) {
    qn::Field<double> zero{device, {1}};
    qn::Kernel k = [&](I32 n, I32 step) {
      Var<double> sum = 0.0, fixed = 0.0;
      for (auto i : range(0, n, step)) sum += 1.0 * i + zero[0];
      for (auto i : deterministic(range(0, n, step))) fixed += 1.0 * i + zero[0];
      return result(sum, fixed);
    };
    auto [sum, fixed] = k(100'000, 7);
    double expected = 0;
    for (int i = 0; i < 100'000; i += 7) expected += i;
    REQUIRE(double(sum) == expected);
    REQUIRE(double(fixed) == expected);
  });
}

TEST_CASE("a grid of ranges") {
  on_every_device([](qn::Device& device) {
    qn::Field<int, 2> u{device, {9, 11}};
    qn::Field<int, 3> v{device, {4, 5, 6}};
    qn::Field<int, 4> w{device, {3, 4, 3, 5}};
    qn::Kernel k = [&](I32 n, I32 m, I32 step) {
      for (auto [i, j] : grid(range(1, n - 1), range(1, m - 1))) u(i, j) += 1;
      for (auto [i, j] : grid(n, range(0, m, step))) u(i, j) += 10;
      for (auto [i, j] : serial(grid(range(2, n, 3), m))) u(i, j) += 100;
      for (auto [i, j, l] : grid(range(1, 3), 5, range(1, 6, 2))) v(i, j, l) += 1;
      for (auto [i, j, l, p] : grid(range(1, 3), 4, range(0, 3, 2), range(1, 5)))
        w(i, j, l, p) += 1;
      for (auto task : range(1))
        for (auto [i, j] : grid(range(1, n, step), range(3, m))) {
          If(j > 7) { Break(); }
          u(i, j) += 1000 + task;
        }
    };
    k(9, 11, 4);
    for (int i = 0; i < 9; i++)
      for (int j = 0; j < 11; j++) {
        int expected = (i > 0 && i < 8 && j > 0 && j < 10 ? 1 : 0) + (j % 4 == 0 ? 10 : 0) +
                       (i >= 2 && (i - 2) % 3 == 0 ? 100 : 0) +
                       (i == 1 && j >= 3 && j <= 7 ? 1000 : 0);  // Break() leaves both axes
        REQUIRE(u.at(i, j) == expected);
      }
    for (int i = 0; i < 4; i++)
      for (int j = 0; j < 5; j++)
        for (int l = 0; l < 6; l++)
          REQUIRE(v.at(i, j, l) == (i >= 1 && i < 3 && l % 2 == 1 ? 1 : 0));
    for (int i = 0; i < 3; i++)
      for (int j = 0; j < 4; j++)
        for (int l = 0; l < 3; l++)
          for (int p = 0; p < 5; p++)
            REQUIRE(w.at({i, j, l, p}) == (i >= 1 && l % 2 == 0 && p >= 1 ? 1 : 0));
  });
}

TEST_CASE("a step that is not positive") {
  auto refuses = [](int step, int line, const auto& f) {
    const std::string text = quern::test::message_of(f);
    CHECK_THAT(text, Catch::Matchers::Contains("a loop's step is " + std::to_string(step) + ";"));
    CHECK_THAT(text, Catch::Matchers::Contains("ranges.cpp:" + std::to_string(line)));
  };
  on_every_device([&](qn::Device& device) {
    qn::Field<int> x{device, {8}};
    for (int step : {0, -1}) {
      const int line = __LINE__ + 3;
      auto record = [&] {
        qn::Kernel k = [&] {
          for (auto i : range(0, 8, step)) x[i] = 1;
        };
      };
      refuses(step, line, record);
    }
    const int line = __LINE__ + 2;
    auto body = [&](I32 step) {
      for (auto i : range(0, 8, step)) x[i] = 1;
      for (auto task : range(1))
        for (auto i : range(0, 8, step)) x[i] = 2 + task;
    };
    qn::Kernel checked{body, {.checked = true}}, unchecked{body, {.checked = false}};
    for (int step : {0, -3}) {
      checked(step);
      refuses(step, line, [&] { device.synchronize(); });
      unchecked(step);
      REQUIRE(qn::to_vector(x) == std::vector<int>(8, 0));
    }
    unchecked(3);
    REQUIRE(qn::to_vector(x) == std::vector<int>{2, 0, 0, 2, 0, 0, 2, 0});
  });
}

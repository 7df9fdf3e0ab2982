// What the rounds of an inner loop do to memory, for numbers of iterations and rounds around those that
// back ends take together: elements that each round updates, and branches that some iterations take.
#include <algorithm>
#include <cstdint>

#include <quern/host.h>
#include <quern/sparse.h>

#include "tests/end_to_end/devices.h"
#include "tests/end_to_end/numbers.h"

using namespace quern::lang;

TEST_CASE("elements that inner loops update, with no round, one and many") {
  on_every_device([](const qn::Device& device) {
    for (int n : {1, 14, 64, 257})
      for (int rounds : {0, 1, 2, 9}) {
        INFO(n << " iterations of " << rounds << " rounds");
        const std::vector<int> seen = numbers(n * 9, 5), start = numbers(n * 3, 6);
        const auto x = field_of(device, seen, n);
        const auto sums = field_of(device, start, 3), shifted = field_of(device, start, 3);
        qn::Kernel kernel = [&](I32 count, I32 repeats) {
          for (auto i : range(n)) {
            for (auto k : range(repeats)) {
              for (auto j : range(count)) {
                sums(i, 0) += x(j, i);
                sums(i, 1) = sums(i, 1) * 3 + x(j, i) * k;
                If(i % 2 == 1) { sums(i, 2) = sums(i, 0) - j; }
                If(x(j, i) > 500) { shifted(i, 0) = x(j, i); }
                shifted(i, (j + 1) % 3) += shifted(i, 1);
              }
            }
          }
        };
        const int repeats = 3;
        kernel(rounds, repeats);
        std::vector<int> want = start, want_shifted = start;
        for (int i = 0; i < n; i++)
          for (int k = 0; k < repeats; k++)
            for (int j = 0; j < rounds; j++) {
              const int v = seen[size_t(j * n + i)];
              int *s = want.data() + 3 * i, *t = want_shifted.data() + 3 * i;
              s[0] += v;
              s[1] = int(uint32_t(s[1]) * 3u + uint32_t(v * k));
              if (i % 2 == 1) s[2] = s[0] - j;
              if (v > 500) t[0] = v;
              t[(j + 1) % 3] = int(uint32_t(t[(j + 1) % 3]) + uint32_t(t[1]));
            }
        CHECK(qn::to_vector(sums) == want);
        CHECK(qn::to_vector(shifted) == want_shifted);
      }
  });
}

TEST_CASE("an element that an inner loop updates through one field and reads through another") {
  on_every_device([](const qn::Device& device) {
    const int n = 50, rounds = 7;
    qn::Field<int> a{device, {n}};
    a.copy_from(numbers(n, 3));
    qn::Kernel kernel = [&](qn::Field<int> to, qn::Field<int> from) {
      for (auto i : range(n))
        for (auto j : serial(range(rounds))) to[i] += from[i] + j;
    };
    kernel(a, a);
    std::vector<int> want = numbers(n, 3);
    for (int& v : want)
      for (int j = 0; j < rounds; j++) v = int(uint32_t(v) * 2u + uint32_t(j));
    CHECK(qn::to_vector(a) == want);
  });
}

TEST_CASE("pairs that some iterations leave out, by Continue and by a branch") {
  on_every_device([](const qn::Device& device) {
    for (int n : {0, 1, 3, 33, 64, 100}) {
      INFO(n << " points");
      const std::vector<int> at = numbers(n, 21);
      const auto x = field_of(device, at);
      qn::Field<int> given{device, {n}}, taken{device, {n}}, last{device, {n}};
      const qn::Field<int, 0> all{device};
      qn::Kernel kernel = [&] {
        for (auto i : x) {
          Var<Array<int, 3>> kept;
          Var<int> sum = 0, seen = -1;
          for (auto j : range(n)) {
            If(i == j) { Continue(); }
            I32 off = x[j] - x[i];
            If(off % 3 == 0) {
              I32 more = x[j] * 7 + j;
              given[j] += more;
              taken[i] += off;
              sum += more - off;
              kept[j % 3] = more;
              all() += 1;
            }
            else {
              seen = j;
            }
          }
          last[i] = sum + 5 * seen + kept[0] - kept[2];
        }
      };
      kernel();
      std::vector<int> want_given(size_t(n), 0), want_taken(size_t(n), 0), want_last;
      int want_all = 0;
      for (int i = 0; i < n; i++) {
        int kept[3] = {}, sum = 0, seen = -1;
        for (int j = 0; j < n; j++) {
          if (i == j) continue;
          const int off = at[size_t(j)] - at[size_t(i)];
          if (off % 3 != 0) {
            seen = j;
            continue;
          }
          const int more = at[size_t(j)] * 7 + j;
          want_given[size_t(j)] += more;
          want_taken[size_t(i)] += off;
          sum += more - off;
          kept[j % 3] = more;
          want_all++;
        }
        want_last.push_back(sum + 5 * seen + kept[0] - kept[2]);
      }
      CHECK(qn::to_vector(given) == want_given);
      CHECK(qn::to_vector(taken) == want_taken);
      CHECK(qn::to_vector(last) == want_last);
      CHECK(all.at({}) == want_all);
    }
  });
}

TEST_CASE("branches in rounds that read and update what all iterations share, or their own") {
  on_every_device([](const qn::Device& device) {
    for (int n : {1, 7, 64, 65})
      for (int rounds : {0, 1, 6}) {
        INFO(n << " iterations of " << rounds << " rounds");
        const std::vector<int> at = numbers(n, 31), table = numbers(8, 32);
        const auto x = field_of(device, at), shared = field_of(device, table);
        qn::Field<int> most{device, {8}}, own{device, {n}}, out{device, {n}}, put{device, {n * 8}};
        most.fill(-5000);
        qn::Kernel kernel = [&](I32 count) {
          for (auto i : x) {
            Var<int> sum = 1;
            for (auto j : range(count)) {
              If(x[i] > sum) {
                sum = sum * 2 + shared[j];
                atomic_max(most[j], x[i]);
                put[i * 8 + j] = shared[j + 1] - x[i];
                own[i] += shared[j];
              }
              If(sum % 2 == 0) { sum += 1; }
              else {
                sum -= shared[j] / 9;
              }
            }
            out[i] = sum;
          }
        };
        kernel(rounds);
        std::vector<int> want_most(8, -5000), want_own(size_t(n), 0), want_out,
            want_put(size_t(n) * 8, 0);
        for (int i = 0; i < n; i++) {
          int sum = 1;
          for (int j = 0; j < rounds; j++) {
            if (at[size_t(i)] > sum) {
              sum = sum * 2 + table[size_t(j)];
              want_most[size_t(j)] = std::max(want_most[size_t(j)], at[size_t(i)]);
              want_put[size_t(i * 8 + j)] = table[size_t(j + 1)] - at[size_t(i)];
              want_own[size_t(i)] += table[size_t(j)];
            }
            if (sum % 2 == 0)
              sum += 1;
            else
              sum -= table[size_t(j)] / 9;
          }
          want_out.push_back(sum);
        }
        CHECK(qn::to_vector(most) == want_most);
        CHECK(qn::to_vector(own) == want_own);
        CHECK(qn::to_vector(out) == want_out);
        CHECK(qn::to_vector(put) == want_put);
      }
  });
}

TEST_CASE("what rounds store to a list comes before what they append to it through another field") {
  on_every_device([](const qn::Device& device) {
    for (int way : {0, 1}) {
      INFO((way == 0 ? "stores" : "atomics"));
      qn::Tree<2> tree{device, {qn::dense(4, 1), qn::dynamic(32, 8)}};
      auto f = tree.field<int>(), g = tree.field<int>();
      const qn::Field<int> last{device, {4}};
      qn::Kernel kernel = [&](I32 rounds) {
        for (auto i : range(4))
          for (auto j : serial(range(rounds))) {
            if (way == 0)
              f(i, 4) = j + 1;
            else
              atomic_max(f(i, 4), j + 1);
            last[i] = cast<int>(append(g, i, j + 100));
          }
      };
      kernel(2);
      // Elements 0 to 4 are there before the first is appended.
      CHECK(qn::to_vector(last) == std::vector<int>(4, 6));
      CHECK(f.at(1, 4) == 2);
      CHECK(g.at(1, 5) == 100);
      CHECK(g.at(1, 6) == 101);
    }
  });
}

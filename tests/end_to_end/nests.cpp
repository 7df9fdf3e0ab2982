// Iterations with loops of their own: back ends may take many iterations through these together, so
// what each of them does is compared with plain loops, for numbers of iterations around those that
// are taken together.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

#include <quern/host.h>

#include "tests/end_to_end/devices.h"
#include "tests/end_to_end/numbers.h"

using namespace quern::lang;

namespace {

constexpr std::array sizes = {0, 1, 3, 31, 32, 63, 64, 65, 255, 256, 257, 1000};

constexpr int dimensions = 17, centres = 5, side = 9, bins = 19;

}  // namespace

TEST_CASE("a sum over iterations of what their loops give") {
  on_every_device([](const qn::Device& device) {
    for (int n : sizes)
      for (int rounds : {0, 1, 3, 4, 5, 16, 21}) {
        INFO(n << " iterations of " << rounds << " rounds");
        const std::vector<int> points = numbers(n, 1), weights = numbers(32, 2);
        const auto x = field_of(device, points), w = field_of(device, weights);
        qn::Kernel kernel = [&](I32 count) -> U32 {
          Var<uint32_t> sum = 0;
          for (auto i : x) {
            Var<uint32_t> value = 7, power = 1;
            for (auto j : range(count)) {
              value += cast<uint32_t>(w[j]) * power;
              power *= cast<uint32_t>(x[i]);
            }
            sum += value * value;
          }
          return sum;
        };
        uint32_t want = 0;
        for (int v : points) {
          uint32_t value = 7, power = 1;
          for (int j = 0; j < rounds; j++) {
            value += uint32_t(weights[size_t(j)]) * power;
            power *= uint32_t(v);
          }
          want += value * value;
        }
        CHECK(uint32_t(kernel(rounds)) == want);
      }
  });
}

TEST_CASE("loops in loops over rows that lie far apart") {
  on_every_device([](const qn::Device& device) {
    qn::Kernel kernel = [](qn::Field<int, 2> points, qn::Field<int, 2> centre,
                           qn::Field<int> nearest, qn::Field<int> of_centre) {
      for (auto i : nearest) {
        Var<Array<int, centres>> square;
        for (auto c : range(centres)) {
          Var<int> sum = 0;
          for (auto d : range(dimensions)) {
            I32 off = centre(c, d) - points(i, d);
            sum += off * off;
          }
          square[c] = sum;
        }
        Var<int> least = std::numeric_limits<int>::max(), which = 0;
        for (auto c : range(centres)) {
          If(square[c] < least) {
            least = square[c];
            which = c;
          }
        }
        nearest[i] = which;
        atomic_add(of_centre[which], 1);
      }
    };
    for (int n : sizes) {
      INFO(n << " points");
      const std::vector<int> host = numbers(n * dimensions, 3),
                             middle = numbers(centres * dimensions, 4);
      const auto points = field_of(device, host, dimensions),
                 centre = field_of(device, middle, dimensions);
      const qn::Field<int> nearest{device, {n}}, of_centre{device, {centres}};
      of_centre.fill(0);
      kernel(points, centre, nearest, of_centre);
      std::vector<int> want, count(centres, 0);
      for (int i = 0; i < n; i++) {
        int least = std::numeric_limits<int>::max(), which = 0;
        for (int c = 0; c < centres; c++) {
          int sum = 0;
          for (int d = 0; d < dimensions; d++) {
            const int off = middle[size_t(c * dimensions + d)] - host[size_t(i * dimensions + d)];
            sum += off * off;
          }
          if (sum < least) {
            least = sum;
            which = c;
          }
        }
        want.push_back(which);
        count[size_t(which)]++;
      }
      CHECK(qn::to_vector(nearest) == want);
      CHECK(qn::to_vector(of_centre) == count);
    }
  });
}

TEST_CASE("triangles of rounds, with local arrays that later loops read backwards") {
  on_every_device([](const qn::Device& device) {
    for (int n : sizes) {
      INFO(n << " rows");
      const std::vector<int> host = numbers(n * side, 5), matrix = numbers(side * side, 6);
      const auto x = field_of(device, host, side), a = field_of(device, matrix, side);
      const qn::Field<int, 2> out{device, {n, side}};
      qn::Kernel kernel = [&] {
        for (auto i : range(n)) {
          Var<Array<uint32_t, side>> row;
          for (auto r : range(side)) {
            Var<uint32_t> sum = cast<uint32_t>(x(i, r));
            for (auto c : range(r))
              sum += cast<uint32_t>(a(r, c)) * cast<uint32_t>(x(i, c)) + row[c];
            row[r] = sum;
          }
          for (auto r : range(side)) out(i, r) = cast<int>(row[side - 1 - r] ^ row[r]);
        }
      };
      kernel();
      std::vector<int> want;
      for (int i = 0; i < n; i++) {
        std::array<uint32_t, side> row{};
        for (int r = 0; r < side; r++) {
          row[size_t(r)] = uint32_t(host[size_t(i * side + r)]);
          for (int c = 0; c < r; c++)
            row[size_t(r)] +=
                uint32_t(matrix[size_t(r * side + c)]) * uint32_t(host[size_t(i * side + c)]) +
                row[size_t(c)];
        }
        for (int r = 0; r < side; r++)
          want.push_back(int(row[size_t(side - 1 - r)] ^ row[size_t(r)]));
      }
      CHECK(qn::to_vector(out) == want);
    }
  });
}

TEST_CASE("what rounds count alike in all iterations says which elements they touch") {
  on_every_device([](const qn::Device& device) {
    for (int n : sizes)
      for (int rounds : {0, 1, 4, 5, 18}) {
        INFO(n << " iterations of " << rounds << " rounds");
        const int row = std::max(n, 1), all = rounds * (rounds + 1) / 2 + 1;
        const std::vector<int> entries = numbers(all * row, 5);
        const auto w = field_of(device, entries, row);
        qn::Field<uint32_t> y{device, {row}};
        qn::Kernel kernel = [&](I32 count, I32 m) {
          for (auto i : range(count)) {
            Var<int> element = 0, last = 0, hash = 1;
            Var<uint32_t> value = 3u, own = 0u;
            for (auto t : range(m)) {
              for (auto j : range(m - t)) {  // as many elements as a triangle has
                value = value * 5u + cast<uint32_t>(w(element, i));
                last = element;
                element += 1;
              }
              hash = hash * 3 + t;
              own += cast<uint32_t>(w(last, i)) ^ cast<uint32_t>(hash);
            }
            y[i] = value + own * 7u + cast<uint32_t>(element - last);
          }
        };
        kernel(n, rounds);
        for (int i = 0; i < n; i++) {
          uint32_t value = 3, own = 0, hash = 1;
          int element = 0, last = 0;
          for (int t = 0; t < rounds; t++) {
            for (int j = 0; j < rounds - t; j++) {
              value = value * 5 + uint32_t(entries[size_t(element * row + i)]);
              last = element++;
            }
            hash = hash * 3 + uint32_t(t);
            own += uint32_t(entries[size_t(last * row + i)]) ^ hash;
          }
          REQUIRE(y.at(i) == value + own * 7 + uint32_t(element - last));
        }
      }
  });
}

TEST_CASE("sums of all iterations that their inner loops add to") {
  on_every_device([](const qn::Device& device) {
    for (int n : sizes)
      for (int rounds : {0, 1, 5, 18}) {
        INFO(n << " iterations of " << rounds << " rounds");
        const std::vector<int> points = numbers(std::max(n, 1), 6), weights = numbers(32, 7);
        const auto x = field_of(device, points), w = field_of(device, weights);
        qn::Kernel kernel = [&](I32 count, I32 m) {
          Var<uint32_t> first = 5u, second = 0u;
          Var<double> real = 0.5;
          for (auto i : range(count)) {
            Var<uint32_t> power = 1u;
            for (auto j : range(m)) {
              power = power * 3u + cast<uint32_t>(x[i]);
              first += power;
              for (auto k : range(j)) real += cast<double>(w[k] * x[i]);
            }
            second += power;
          }
          return result(first, second, real);
        };
        uint32_t first = 5, second = 0;
        double real = 0.5;  // whole numbers below 2⁵³ and a half: exact in any order
        for (int i = 0; i < n; i++) {
          uint32_t power = 1;
          for (int j = 0; j < rounds; j++) {
            power = power * 3 + uint32_t(points[size_t(i)]);
            first += power;
            for (int k = 0; k < j; k++) real += weights[size_t(k)] * points[size_t(i)];
          }
          second += power;
        }
        const auto [one, two, three] = kernel(n, rounds);
        REQUIRE(uint32_t(one) == first);
        REQUIRE(uint32_t(two) == second);
        REQUIRE(double(three) == real);
      }
  });
}

TEST_CASE("local arrays of which few iterations' fit the cache") {
  on_every_device([](const qn::Device& device) {
    constexpr int length = 700;
    for (int n : {1, 7, 8, 9, 17, 65}) {
      INFO(n << " iterations");
      const std::vector<int> points = numbers(n, 8);
      const auto x = field_of(device, points);
      qn::Field<uint32_t> y{device, {n}};
      qn::Kernel kernel = [&](I32 m) {
        for (auto i : x) {
          Var<Array<uint32_t, length>> v;
          for (auto j : range(length)) v[j] = cast<uint32_t>(x[i] + j);
          for (auto t : range(m))
            for (auto j : range(length - 1 - t)) v[j] = v[j] * 3u + v[j + 1];
          y[i] = v[0];
        }
      };
      kernel(5);
      for (int i = 0; i < n; i++) {
        std::vector<uint32_t> v;
        for (int j = 0; j < length; j++) v.push_back(uint32_t(points[size_t(i)] + j));
        for (int t = 0; t < 5; t++)
          for (size_t j = 0; j + 1 + size_t(t) < length; j++) v[j] = v[j] * 3 + v[j + 1];
        REQUIRE(y.at(i) == v[0]);
      }
    }
  });
}

TEST_CASE("contributions of all iterations to the locations of each round") {
  on_every_device([](const qn::Device& device) {
    for (int n : sizes) {
      INFO(n << " iterations");
      const std::vector<int> host = numbers(n, 7);
      const auto x = field_of(device, host);
      const qn::Field<int> sums{device, {bins}}, least{device, {bins}}, most{device, {bins}},
          bits{device, {bins}};
      sums.fill(5);
      least.fill(1'000'000);
      most.fill(-1'000'000);
      bits.fill(1);
      qn::Kernel kernel = [&](I32 rounds) {
        for (auto i : x) {
          Var<int> value = x[i];
          for (auto k : range(rounds)) {
            atomic_add(sums[k], value);
            atomic_min(least[k], value - 2 * k);
            for (auto _ : range(2)) {
              atomic_max(most[k], value);
              value += k - 3;
            }
            atomic_or(bits[k], value & 0xff);
          }
        }
      };
      kernel(bins);
      std::vector<int> sum(bins, 5), low(bins, 1'000'000), high(bins, -1'000'000), any(bins, 1);
      for (int value : host)
        for (size_t k = 0; k < bins; k++) {
          sum[k] += value;
          low[k] = std::min(low[k], value - 2 * int(k));
          for (int twice = 0; twice < 2; twice++) {
            high[k] = std::max(high[k], value);
            value += int(k) - 3;
          }
          any[k] |= value & 0xff;
        }
      CHECK(qn::to_vector(sums) == sum);
      CHECK(qn::to_vector(least) == low);
      CHECK(qn::to_vector(most) == high);
      CHECK(qn::to_vector(bits) == any);
    }
  });
}

TEST_CASE("more sums in a round than stay in registers, through triangles of constant sides") {
  on_every_device([](const qn::Device& device) {
    qn::Kernel kernel = [](qn::Field<int, 2> points, qn::Field<int, 2> centre,
                           qn::Field<int, 2> first, qn::Field<int, 3> second) {
      for (auto i : range(points.dim(0)))
        for (auto c : range(centres))
          for (auto r : range(side)) {
            I32 off = points(i, r) - centre(c, r);
            for (auto j : range(r)) {
              atomic_add(second(c, r, j), off * (points(i, j) - centre(c, j)));
              atomic_add(second(c, j, r), off * centre(c, j));
            }
            If(off > 0) { atomic_add(first(c, r), off); }
          }
    };
    for (int n : sizes) {
      INFO(n << " points");
      const std::vector<int> host = numbers(n * side, 9), middle = numbers(centres * side, 10);
      const auto points = field_of(device, host, side), centre = field_of(device, middle, side);
      const qn::Field<int, 2> first{device, {centres, side}};
      const qn::Field<int, 3> second{device, {centres, side, side}};
      first.fill(0);
      second.fill(0);
      kernel(points, centre, first, second);
      std::vector<uint32_t> sums(centres * side), products(centres * side * side);
      for (int i = 0; i < n; i++)
        for (int c = 0; c < centres; c++)
          for (int r = 0; r < side; r++) {
            const auto off = [&](int k) {
              return uint32_t(host[size_t(i * side + k)]) - uint32_t(middle[size_t(c * side + k)]);
            };
            if (int32_t(off(r)) > 0) sums[size_t(c * side + r)] += off(r);
            for (int j = 0; j < r; j++) {
              products[size_t((c * side + r) * side + j)] += off(r) * off(j);
              products[size_t((c * side + j) * side + r)] +=
                  off(r) * uint32_t(middle[size_t(c * side + j)]);
            }
          }
      const auto same = [](const std::vector<int>& got, const std::vector<uint32_t>& want) {
        return std::ranges::equal(got, want, {}, [](int v) { return uint32_t(v); });
      };
      CHECK(same(qn::to_vector(first), sums));
      CHECK(same(qn::to_vector(second), products));
    }
  });
}

TEST_CASE("a round of more code than one loop over iterations may have") {
  on_every_device([](const qn::Device& device) {
    constexpr int steps = 12;
    qn::Kernel kernel = [](qn::Field<int, 2> points, qn::Field<int, 2> matrix,
                           qn::Field<uint32_t> out, qn::Field<uint32_t> all) {
      for (auto i : out) {
        Var<uint32_t> sum = 1;
        for (auto c : range(centres))
          for (auto r : range(side)) {
            Var<uint32_t> row = cast<uint32_t>(points(i, r));
            for (auto j : range(r)) {
              U32 a = cast<uint32_t>(matrix(c, j)), b = cast<uint32_t>(points(i, j));
              Var<uint32_t> value = a * b;
              for (int k = 0; k < steps; k++) value = (value ^ a) * 3u + b + sum;
              row += value;
            }
            sum += row * row;
            atomic_add(all[c], row);
          }
        out[i] = sum;
      }
    };
    for (int n : sizes) {
      INFO(n << " points");
      const std::vector<int> host = numbers(n * side, 11), middle = numbers(centres * side, 12);
      const auto points = field_of(device, host, side), matrix = field_of(device, middle, side);
      const qn::Field<uint32_t> out{device, {n}}, all{device, {centres}};
      all.fill(0);
      kernel(points, matrix, out, all);
      std::vector<uint32_t> want, rows(centres);
      for (int i = 0; i < n; i++) {
        uint32_t sum = 1;
        for (int c = 0; c < centres; c++)
          for (int r = 0; r < side; r++) {
            uint32_t row = uint32_t(host[size_t(i * side + r)]);
            for (int j = 0; j < r; j++) {
              const uint32_t a = uint32_t(middle[size_t(c * side + j)]),
                             b = uint32_t(host[size_t(i * side + j)]);
              uint32_t value = a * b;
              for (int k = 0; k < steps; k++) value = (value ^ a) * 3u + b + sum;
              row += value;
            }
            sum += row * row;
            rows[size_t(c)] += row;
          }
        want.push_back(sum);
      }
      CHECK(qn::to_vector(out) == want);
      CHECK(qn::to_vector(all) == rows);
    }
  });
}

TEST_CASE("loops behind branches that all iterations take, and that some do") {
  on_every_device([](const qn::Device& device) {
    for (int n : sizes)
      for (int way : {0, 1, 2}) {
        INFO(n << " iterations, way " << way);
        const std::vector<int> host = numbers(n, 8), table = numbers(40, 9);
        const auto x = field_of(device, host), t = field_of(device, table);
        const qn::Field<int> out{device, {n}};
        qn::Kernel kernel = [&](I32 which) {
          for (auto i : x) {
            Var<int> value = x[i], seen = 0;
            for (auto k : range(which * 10 + 20)) {
              If(which == 1) {
                for (auto j : range(k)) value += t[j] & 3;
              }
              else {
                value ^= t[k % 40];
              }
              If(value % 5 == 0) { seen += k; }
            }
            // alone: how often differs from one iteration to the next
            While(value > 100) {
              value /= 3;
              for (auto j : range(value & 7)) seen += t[j];
            }
            for (auto k : range(which * 20)) value += seen ^ t[k % 40];
            out[i] = value;
          }
        };
        kernel(way);
        std::vector<int> want;
        for (int value : host) {
          int seen = 0;
          for (int k = 0; k < way * 10 + 20; k++) {
            if (way == 1)
              for (int j = 0; j < k; j++) value += table[size_t(j)] & 3;
            else
              value ^= table[size_t(k % 40)];
            if (value % 5 == 0) seen += k;
          }
          while (value > 100) {
            value /= 3;
            for (int j = 0; j < (value & 7); j++) seen += table[size_t(j)];
          }
          for (int k = 0; k < way * 20; k++) value += seen ^ table[size_t(k % 40)];
          want.push_back(value);
        }
        CHECK(qn::to_vector(out) == want);
      }
  });
}

TEST_CASE("loops without rounds read nothing") {
  on_every_device([](const qn::Device& device) {
    // Rows of one element, of which the loops would read twenty.
    const int n = 300;
    qn::Field<int, 2> rows{device, {n, 1}};
    rows.fill(3);
    const qn::Field<int> out{device, {n}};
    qn::Kernel kernel = [&](I32 count, qn::Field<int, 2> x) {
      for (auto i : range(n)) {
        Var<int> sum = 1;
        for (auto c : range(count))
          for (auto d : range(20)) sum += x(i, d) * c;
        out[i] = sum;
      }
    };
    kernel(0, rows);
    CHECK(qn::to_vector(out) == std::vector<int>(n, 1));
    qn::Field<int, 2> wide{device, {n, 20}};
    wide.fill(3);
    kernel(4, wide);
    CHECK(qn::to_vector(out) == std::vector<int>(n, 1 + 3 * 20 * 6));
  });
}

TEST_CASE("rows are those that their numbers say, however these are made") {
  on_every_device([](const qn::Device& device) {
    const int n = 300, columns = 20, rounds = 5;
    const std::vector<int> host = numbers(n * 32, 10);
    const auto x = field_of(device, host, 32);
    const auto flat = field_of(device, host);
    const qn::Field<int> halves{device, {n}}, sums{device, {n}}, bytes{device, {n}};
    // A number that the rounds use and the place of the row is made of; an index that cancels; a
    // conversion that makes another row of the number.
    qn::Kernel kernel = [&](I32 count) {
      for (auto i : range(n)) {
        F32 half = cast<float>(i) * 0.5f;
        I32 row = cast<int>(half);
        Var<float> sum = 0.0f;
        for (auto k : range(count))
          for (auto j : range(columns)) sum += cast<float>(x(row, j)) * half;
        halves[i] = cast<int>(sum);
      }
      for (auto i : range(n)) {
        Var<int> sum = 0;
        for (auto k : range(rounds))
          for (auto j : range(columns)) {
            I32 at = k * columns + j;
            sum += flat[at] * flat[i * 32 + (at - k * columns)];
          }
        sums[i] = sum;
      }
      for (auto i : range(n)) {
        Var<int> sum = 0;
        for (auto k : range(count))
          for (auto j : range(columns))
            sum += (k + 1) * (flat[i * 32 + j] - flat[cast<int>(cast<uint8_t>(i)) * 32 + j]);
        bytes[i] = sum;
      }
    };
    kernel(rounds);
    std::vector<int> half_sums, index_sums, byte_sums;
    for (int i = 0; i < n; i++) {
      const float half = float(i) * 0.5f;
      float a = 0;
      int b = 0, c = 0;
      for (int k = 0; k < rounds; k++)
        for (int j = 0; j < columns; j++) {
          a += float(host[size_t(i / 2 * 32 + j)]) * half;  // exact: below 2^24 halves
          b += host[size_t(k * columns + j)] * host[size_t(i * 32 + j)];
          c += (k + 1) * (host[size_t(i * 32 + j)] - host[size_t(i % 256 * 32 + j)]);
        }
      half_sums.push_back(int(a));
      index_sums.push_back(b);
      byte_sums.push_back(c);
    }
    CHECK(qn::to_vector(halves) == half_sums);
    CHECK(qn::to_vector(sums) == index_sums);
    CHECK(qn::to_vector(bytes) == byte_sums);
  });
}

TEST_CASE("large local arrays that two loops share, in checked mode") {
  on_every_device([](const qn::Device& device) {
    const int n = 300;
    const auto x = field_of(device, numbers(n, 11));
    const qn::Field<int> out{device, {n}};
    qn::Options options;
    options.checked = true;
    qn::Kernel kernel{[&] {
                        for (auto i : range(n)) {
                          Var<Array<int, 1000>> a;
                          I32 v = x[(i + 1) % n] + x[(i + n - 1) % n];
                          for (auto k : serial(range(1000))) a[k] = v * k;
                          Var<int> sum = 0;
                          for (auto k : serial(range(1000))) sum += a[999 - k] ^ k;
                          out[i] = sum;
                        }
                      },
                      options};
    kernel();
    const std::vector<int> host = numbers(n, 11);
    std::vector<int> want;
    for (int i = 0; i < n; i++) {
      const int v = host[size_t((i + 1) % n)] + host[size_t((i + n - 1) % n)];
      int sum = 0;
      for (int k = 0; k < 1000; k++) sum += (v * (999 - k)) ^ k;
      want.push_back(sum);
    }
    CHECK(qn::to_vector(out) == want);
  });
}

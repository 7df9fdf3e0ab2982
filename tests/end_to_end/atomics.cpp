// Atomics by all iterations on one location: unchecked kernels combine them first.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "tests/end_to_end/devices.h"

using namespace qn::lang;

namespace {
const qn::Options fast = {.checked = false};
}

TEST_CASE("every operation on one location, whatever the number of iterations") {
  on_every_device([](qn::Device& device) {
    qn::Field<int> t{device, {8}};
    qn::Field<uint64_t> wide{device, {1}};
    qn::Kernel all{[&](I32 n) {
                     for (auto i : range(n)) {
                       auto h = i * 7919 % 1009 - 500;
                       t[0] += h;
                       atomic_max(t[1], h);
                       atomic_min(t[2], h);
                       atomic_or(t[3], h & 0xff0);
                       atomic_and(t[4], h | 0x0f0);
                       atomic_xor(t[5], h);
                       t[0] += i;  // twice on one element
                       wide[0] += cast<uint64_t>(i) * 4000000000u;
                     }
                   },
                   fast};
    for (int n : {0, 1, 63, 1000, 50'021}) {
      const std::vector<int> start = {5, -9000, 9000, 1, ~0, 77, 3, 4};
      std::vector<int> wanted = start;
      uint64_t sum = 1;
      for (int i = 0; i < n; i++) {
        const int h = i * 7919 % 1009 - 500;
        wanted[0] += h + i;
        wanted[1] = std::max(wanted[1], h);
        wanted[2] = std::min(wanted[2], h);
        wanted[3] |= h & 0xff0;
        wanted[4] &= h | 0x0f0;
        wanted[5] ^= h;
        sum += uint64_t(i) * 4000000000u;
      }
      t.copy_from(start);
      wide.fill(1);
      all(n);
      INFO(n << " iterations");
      CHECK(qn::to_vector(t) == wanted);
      CHECK(wide.at(0) == sum);
    }
  });
}

TEST_CASE("all iterations update one element after the other") {
  on_every_device([](qn::Device& device) {
    constexpr int width = 9;
    qn::Field<double> sums{device, {width}};
    qn::Field<uint32_t> turns{device, {width}};
    qn::Field<int64_t> least{device, {width}};
    qn::Field<int> some{device, {width}}, past{device, {width}};
    qn::Kernel all{[&](I32 n) {
                     for (auto i : range(n)) {
                       for (auto j : range(width)) {
                         sums[j] += cast<double>(i) + 0.5 * cast<double>(j);
                         atomic_min(least[j], cast<int64_t>(i % 37) - cast<int64_t>(j));
                         If(i % 3 == j % 3) { some[j] += i; }
                       }
                       // Left apart: each goes on for a time of its own, and comes again.
                       for (auto again : range(2)) {
                         Var<int> k = 0;
                         While(k < i % (width + 1)) {
                           turns[k] += cast<uint32_t>(1 + again);
                           k += select(k == i % 5, I32(2), I32(1));
                         }
                         If(k < width) { past[k] += 1; }
                       }
                     }
                   },
                   fast};
    for (int n : {0, 1, 31, 32, 33, 1000}) {
      std::vector<double> wanted_sums(width, 0.25);
      std::vector<uint32_t> wanted_turns(width, 7);
      std::vector<int64_t> wanted_least(width, 20);
      std::vector<int> wanted_some(width), wanted_past(width);
      for (int i = 0; i < n; i++) {
        for (int j = 0; j < width; j++) {
          wanted_sums[size_t(j)] += i + 0.5 * j;
          wanted_least[size_t(j)] = std::min<int64_t>(wanted_least[size_t(j)], i % 37 - j);
          if (i % 3 == j % 3) wanted_some[size_t(j)] += i;
        }
        for (uint32_t again = 0; again < 2; again++) {
          int k = 0;
          while (k < i % (width + 1)) {
            wanted_turns[size_t(k)] += 1 + again;
            k += k == i % 5 ? 2 : 1;
          }
          if (k < width) wanted_past[size_t(k)]++;
        }
      }
      sums.fill(0.25);
      turns.fill(7);
      least.fill(20);
      some.fill(0);
      past.fill(0);
      all(n);
      INFO(n << " iterations");
      CHECK(qn::to_vector(sums) == wanted_sums);  // whole halves: exact in any order
      CHECK(qn::to_vector(turns) == wanted_turns);
      CHECK(qn::to_vector(least) == wanted_least);
      CHECK(qn::to_vector(some) == wanted_some);
      CHECK(qn::to_vector(past) == wanted_past);
    }
  });
}

TEST_CASE("an atomic that no iteration comes to touches nothing") {
  on_every_device([](qn::Device& device) {
    qn::Field<int> x{device, {4}};
    qn::Field<float> low{device, {2}};
    low.fill(NAN);
    qn::Kernel some{[&](I32 n, I32 from, I32 far) {
                      for (auto i : range(n)) {
                        If(i >= from) {
                          x[far] += 1;  // far away where from says never
                          atomic_min(low[0], cast<float>(i));
                        }
                        If(i < 0) { atomic_min(low[1], 1.0f); }
                      }
                    },
                    fast};
    some(1000, 2000, 1 << 30);
    CHECK(qn::to_vector(x) == std::vector<int>(4, 0));
    CHECK(std::isnan(low.at(0)));
    some(1000, 998, 2);
    some(70'001, 10, 3);
    CHECK(qn::to_vector(x) == std::vector<int>{0, 0, 2, 69'991});
    CHECK(low.at(0) == 10);
    CHECK(std::isnan(low.at(1)));
  });
}

TEST_CASE("different operations through views of one field keep their order in the iteration") {
  on_every_device([](qn::Device& device) {
    qn::Field<int> x{device, {2}};
    auto view = x.slice(0, 0, 2, 1);
    qn::Kernel step{[&](I32 n) {
                      for (auto i : range(n)) {
                        x[0] += 1 + i;
                        atomic_max(view[0], 5);
                        x[0] += 1;
                        x[1] += i;
                        view[1] += 1;  // one operation: in any order
                      }
                    },
                    fast};
    step(1);
    CHECK(x.at(0) == 6);
    CHECK(x.at(1) == 1);
  });
}

TEST_CASE("vectors, loops within the iteration, and several loops in a row") {
  on_every_device([](qn::Device& device) {
    const int n = 30'000;
    qn::Field<vec3> p{device, {n}}, total{device, {2}};
    qn::Field<float> norm{device, {1}};
    qn::Kernel sums{[&](I32 where) {
                      for (auto i : p) p[i] = vec3(1, 2, 3) * cast<float>(i % 5);
                      for (auto i : p) {
                        total[where] += p[i];
                        for (auto j : range(3)) norm[0] += cast<float>(j);
                      }
                      for (auto i : range(2)) total[i] += vec3(1, 1, 1);
                    },
                    fast};
    sums(1);
    const qn::Vec<float, 3> sum = total.at(1);
    CHECK(sum.x == 60'001);  // small integers: exact in any order
    CHECK(sum.y == 120'001);
    CHECK(sum.z == 180'001);
    CHECK(total.at(0) == qn::Vec<float, 3>(1, 1, 1));
    CHECK(norm.at(0) == 90'000);
  });
}

TEST_CASE("atomics whose old value is used, or that are read, act one by one") {
  on_every_device([](qn::Device& device) {
    const int n = 5000;
    qn::Field<int> next{device, {2}}, ticket{device, {n}}, seen{device, {n}};
    qn::Kernel draw{[&] {
                      for (auto i : ticket) ticket[i] = atomic_add(next[0], 1);
                    },
                    fast};
    draw();
    std::vector<int> tickets = qn::to_vector(ticket), all(n);
    std::sort(tickets.begin(), tickets.end());
    std::iota(all.begin(), all.end(), 0);
    CHECK(tickets == all);
    qn::Kernel watch{[&] {
                       for (auto i : seen) {
                         next[1] += 1;
                         seen[i] = atomic_load(next[1]);
                       }
                     },
                     fast};
    for (int launch = 0; launch < 30; launch++) {  // orders differ from one to the next
      next.set(1, 0);
      watch();
      std::vector<int> counts = qn::to_vector(seen);
      CHECK(*std::min_element(counts.begin(), counts.end()) >= 1);
      CHECK(*std::max_element(counts.begin(), counts.end()) == n);
      CHECK(next.at(1) == n);
    }
  });
}

TEST_CASE("atomics on a field of few elements, or of many, count every iteration once") {
  on_every_device([](qn::Device& device) {
    // 16: four copies of a bin each; 3,000: one; 5,000: too many for an array of the chunk
    for (int bins : {1, 16, 3000, 5000}) {
      qn::Field<uint8_t> bytes{device, {bins}};
      qn::Field<int> sums{device, {bins}}, least{device, {bins}}, most{device, {bins}};
      qn::Field<uint64_t> wide{device, {bins}, qn::offset(-7)};
      qn::Field<float> floats{device, {bins}};
      qn::Field<uint16_t> bits{device, {bins}}, all{device, {bins}}, flips{device, {bins}};
      qn::Kernel count{[&](I32 n) {
                         for (auto i : range(n)) {
                           auto v = i * 7919 % 1009 - 500, at = i * 31 % bins;
                           bytes[at] += cast<uint8_t>(1);
                           sums[at] += v;
                           If(v > 100) sums[bins - 1 - at] += 3;
                           atomic_min(least[at], v);
                           atomic_max(most[at], v);
                           wide[at - 7] += cast<uint64_t>(i) * 4000000000u;
                           floats[at] += cast<float>(v);
                           atomic_or(bits[at], cast<uint16_t>(i & 0xff0));
                           atomic_and(all[at], cast<uint16_t>(i | 0x0f0));
                           atomic_xor(flips[at], cast<uint16_t>(i));
                         }
                       },
                       fast};
      for (int n : {0, 100, 100'000}) {
        if (device.name() == std::string("interpreter") && n > 1000) continue;
        std::vector<uint8_t> b(size_t(bins), uint8_t(250));
        std::vector<int> s(size_t(bins), 5), low(size_t(bins), 400), high(size_t(bins), -400);
        std::vector<uint64_t> w(size_t(bins), 1);
        std::vector<float> f(size_t(bins), 0.5f);
        std::vector<uint16_t> o(size_t(bins), 1), a(size_t(bins), 0xffff), x(size_t(bins), 77);
        bytes.copy_from(b), sums.copy_from(s), least.copy_from(low), most.copy_from(high);
        wide.copy_from(w), floats.copy_from(f), bits.copy_from(o), all.copy_from(a);
        flips.copy_from(x);
        count(n);
        for (int i = 0; i < n; i++) {
          const int v = i * 7919 % 1009 - 500;
          const size_t at = size_t(i * 31 % bins);
          b[at]++;
          s[at] += v;
          if (v > 100) s[size_t(bins) - 1 - at] += 3;
          low[at] = std::min(low[at], v);
          high[at] = std::max(high[at], v);
          w[at] += uint64_t(i) * 4000000000u;
          f[at] += float(v);
          o[at] = uint16_t(o[at] | (i & 0xff0));
          a[at] = uint16_t(a[at] & (i | 0x0f0));
          x[at] = uint16_t(x[at] ^ i);
        }
        INFO(n << " iterations, " << bins << " bins");
        CHECK(qn::to_vector(bytes) == b);
        CHECK(qn::to_vector(sums) == s);
        CHECK(qn::to_vector(least) == low);
        CHECK(qn::to_vector(most) == high);
        CHECK(qn::to_vector(wide) == w);
        CHECK(qn::to_vector(floats) == f);  // sums of integers and a half, below 2^23
        CHECK(qn::to_vector(bits) == o);
        CHECK(qn::to_vector(all) == a);
        CHECK(qn::to_vector(flips) == x);
      }
    }
  });
}

TEST_CASE("a small histogram of two axes, in one of several loops") {
  on_every_device([](qn::Device& device) {
    const int n = 20'000;
    qn::Field<int, 2> joint{device, {5, 7}, qn::offset(-2, 3)};
    qn::Field<qn::Vec<int, 2>> pairs{device, {6}};
    qn::Kernel count{[&] {
                       for (auto i : range(n))
                         for (auto k : serial(range(i % 3))) {
                           joint(i % 5 - 2, (i + k) % 7 + 3) += 1;
                           pairs[i % 6].x += k;
                           pairs[(i + 1) % 6].y += 1;
                         }
                     },
                     fast};
    count();
    std::vector<int> wanted(35), firsts(6), seconds(6);
    for (int i = 0; i < n; i++)
      for (int k = 0; k < i % 3; k++) {
        wanted[size_t(i % 5 * 7 + (i + k) % 7)]++;
        firsts[size_t(i % 6)] += k;
        seconds[size_t((i + 1) % 6)]++;
      }
    CHECK(qn::to_vector(joint) == wanted);
    for (int k = 0; k < 6; k++) {
      CHECK(pairs.at(k).x == firsts[size_t(k)]);
      CHECK(pairs.at(k).y == seconds[size_t(k)]);
    }
  });
}

// What CPUs have no instruction for is a call where a task has many: old values come back, and what
// iterations have computed before stays.
TEST_CASE("a hundred atomics of floats in a body, among values that stay in use") {
  on_every_device([](qn::Device& device) {
    constexpr int sites = 25, n = 4000, elements = 7;
    qn::Field<float> sum{device, {elements + sites}}, least{device, {elements + sites}},
        most{device, {elements + sites}};
    qn::Field<int> product{device, {elements + sites}}, kept{device, {n}}, olds{device, {1}};
    sum.fill(0), least.fill(1e9f), most.fill(-1e9f), product.fill(1), kept.fill(0), olds.fill(0);
    qn::Kernel many{[&] {
                      for (auto i : range(n)) {
                        auto a = i * 3, b = i ^ 5, c = i + 11;  // in use behind all atomics
                        auto at = i % elements;
                        auto v = cast<float>(i);
                        for (int k = 0; k < sites; k++) {
                          I32 negative = select(atomic_add(sum[at + k], 1.0f) < 0.0f, 1, 0);
                          atomic_min(least[at + k], v - float(k));
                          atomic_max(most[at + k], v + float(k));
                          atomic_mul(product[at + k], -1);
                          olds[0] += negative;
                        }
                        kept[i] = a + b + c;
                      }
                    },
                    fast};
    many();
    std::vector<float> sums(elements + sites), lows(elements + sites, 1e9f),
        highs(elements + sites, -1e9f);
    std::vector<int> signs(elements + sites, 1), values(n);
    for (int i = 0; i < n; i++) {
      for (int k = 0; k < sites; k++) {
        const auto at = size_t(i % elements + k);
        sums[at] += 1;
        lows[at] = std::min(lows[at], float(i) - float(k));
        highs[at] = std::max(highs[at], float(i) + float(k));
        signs[at] = -signs[at];
      }
      values[size_t(i)] = i * 3 + (i ^ 5) + i + 11;
    }
    CHECK(qn::to_vector(sum) == sums);
    CHECK(qn::to_vector(least) == lows);
    CHECK(qn::to_vector(most) == highs);
    CHECK(qn::to_vector(product) == signs);
    CHECK(qn::to_vector(kept) == values);
    CHECK(qn::to_vector(olds)[0] == 0);
  });
}

TEST_CASE("sums and maxima of the same values, of elements that all iterations share") {
  on_every_device([](qn::Device& device) {
    constexpr int n = 1000, rounds = 9;
    qn::Field<double> x{device, {n}}, w{device, {rounds}};
    std::vector<qn::Field<double>> sums, most;
    for (int k = 0; k < 3; k++) {
      sums.push_back(qn::Field<double>{device, {rounds}});
      most.push_back(qn::Field<double>{device, {rounds}});
      sums.back().fill(1), most.back().fill(-1e9);
    }
    std::vector<double> at(n), by(rounds);
    for (int i = 0; i < n; i++) at[size_t(i)] = (i * 37 % 101) - 50;
    for (int j = 0; j < rounds; j++) by[size_t(j)] = j - 4;
    x.copy_from(at), w.copy_from(by);
    qn::Kernel all = [&] {
      for (auto i : x) {
        F64 v = x[i];
        F64 square = v * v;
        x[i] = 0.0;
        for (auto j : range(rounds)) {
          F64 scaled = w[j] * v, turned = -(square * w[j]);
          atomic_add(sums[0][j], scaled);
          atomic_max(most[0][j], scaled);
          atomic_add(sums[1][j], v);
          atomic_max(most[1][j], v);
          atomic_add(sums[2][j], turned);
          atomic_max(most[2][j], turned);
        }
      }
    };
    all();
    for (size_t k = 0; k < 3; k++)
      for (int j = 0; j < rounds; j++) {
        double sum = 1, largest = -1e9;
        for (double v : at) {
          const double f = by[size_t(j)], values[] = {f * v, v, -(v * v * f)};
          sum += values[k];
          largest = std::max(largest, values[k]);
        }
        INFO("value " << k << ", element " << j);
        CHECK(sums[k].at(j) == sum);
        CHECK(most[k].at(j) == largest);
      }
    CHECK(x.at(n - 1) == 0);
  });
}

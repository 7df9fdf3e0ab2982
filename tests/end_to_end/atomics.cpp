// Atomics by all iterations on one location: unchecked kernels combine them first.
#include <algorithm>
#include <cmath>
#include <numeric>

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
    watch();
    std::vector<int> counts = qn::to_vector(seen);
    CHECK(*std::min_element(counts.begin(), counts.end()) >= 1);
    CHECK(*std::max_element(counts.begin(), counts.end()) == n);
    CHECK(next.at(1) == n);
  });
}

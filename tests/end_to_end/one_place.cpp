// Additions of neighbouring iterations to one place, to several, and in what else stands with them.
#include <quern/host.h>
#include <quern/quern.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "tests/end_to_end/devices.h"

#include <quern/else.h>

using namespace qn::lang;

namespace {

/// Where iterations add.
struct Places {
  std::string name;
  std::vector<int> at;
};
std::vector<Places> places(int n) {
  std::mt19937 random(5);
  std::vector<Places> all = {{"one", {}},
                             {"runs of 37", {}},
                             {"runs of 5", {}},
                             {"blocks", {}},
                             {"all but one of a block", {}},
                             {"turns", {}},
                             {"any", {}}};
  for (int i = 0; i < n; i++) {
    const std::vector<int> at = {
        3, i / 37 % 50, i / 5 % 50, i / 8 % 50, i % 8 == 3 ? 1 : 2, i % 7, int(random() % 50)};
    for (size_t k = 0; k < all.size(); k++) all[k].at.push_back(at[k]);
  }
  return all;
}

constexpr qn::Options unchecked = {.checked = false};

/// Of small integers, so that sums are exact in any order; with the language's numbers or the host's.
template <class T, class Number = T>
struct Terms {
  T a, b, c;
  static Terms of(const T& v) {
    const auto with = [&](Number p, Number q, Number r, Number s) {
      return T((((v + T(p)) * v - T(q)) * v + T(r)) * v * v - T(s) * v + T(p));
    };
    return {with(1, 2, 3, 4), with(-2, 1, 5, 3), with(3, -1, 2, 1)};
  }
};

/// Always to `sums`, and by the argument to `others`: from behind, or, in a branch of a branch, alike.
template <class Real, class Index>
void check_sums(const qn::Device& device, int n, int64_t size) {
  qn::Field<Real> v{device, {n}};
  qn::Field<Index> at{device, {n}};
  qn::Field<qn::Vec<Real, 3>> sums{device, {size}}, others{device, {size}};
  qn::Field<int> counts{device, {50}};
  for (int i = 0; i < n; i++) v.set(i, Real(i % 5 - 2));
  qn::Kernel<void(I32)> add{[&](I32 way) {
                              for (auto i : v) {
                                const auto [a, b, c] = Terms<Val<Real>, Real>::of(v[i]);
                                Val<Index> k = at[i];
                                atomic_add(sums[k].x, a);
                                atomic_add(sums[k].y, b);
                                atomic_add(sums[k].z, c);
                                If(way == 1) {
                                  Val<Index> other = Index(49) - k;
                                  atomic_add(others[other].x, a);
                                  atomic_add(others[other].y, b);
                                  atomic_add(others[other].z, c);
                                  atomic_add(counts[other], 1);
                                }
                                Else {
                                  If(way == 2) {
                                    atomic_add(others[k].x, c);
                                    atomic_add(others[k].y, b);
                                    atomic_add(others[k].z, a);
                                    atomic_add(counts[k], 1);
                                  }
                                }
                              }
                            },
                            unchecked};
  for (const Places& p : places(n))
    for (int way : {0, 1, 2}) {
      INFO(p.name << " of " << size << ", " << n << " iterations, way " << way);
      if (n > 0) at.copy_from(std::vector<Index>(p.at.begin(), p.at.end()));
      sums.fill({1, 2, 3});
      others.fill({});
      counts.fill(0);
      add(way);
      std::vector<Terms<double>> expected(50, {1, 2, 3}), beside(50, {0, 0, 0});
      std::vector<int> counted(50, 0);
      for (int i = 0; i < n; i++) {
        const auto [a, b, c] = Terms<double>::of(i % 5 - 2);
        const int k = p.at[size_t(i)];
        Terms<double>& to = expected[size_t(k)];
        to = {to.a + a, to.b + b, to.c + c};
        if (way == 0) continue;
        const size_t other = size_t(way == 1 ? 49 - k : k);
        Terms<double>& by = beside[other];
        by = {by.a + (way == 1 ? a : c), by.b + b, by.c + (way == 1 ? c : a)};
        counted[other]++;
      }
      const auto is = [](const auto& found, const Terms<double>& wanted) {
        return found.x == wanted.a && found.y == wanted.b && found.z == wanted.c;
      };
      const auto found = qn::to_vector(sums), found_beside = qn::to_vector(others);
      int wrong = qn::to_vector(counts) != counted;
      for (size_t k = 0; k < 50; k++)
        wrong += !is(found[k], expected[k]) + !is(found_beside[k], beside[k]);
      CHECK(wrong == 0);
    }
}

}  // namespace

TEST_CASE("additions of neighbours to one place and to several") {
  on_every_device([](const qn::Device& device) {
    for (int n : {0, 1, 7, 8, 9, 64, 65, 1003})
      for (int64_t size : {50, 5000}) {  // chunks have several copies of what is small
        check_sums<float, int>(device, n, size);
        check_sums<double, int>(device, n, size);
        check_sums<float, int64_t>(device, n, size);
      }
  });
}

TEST_CASE("places are added to themselves") {
  on_every_device([](const qn::Device& device) {
    constexpr int n = 1003;
    qn::Field<int> v{device, {n}}, at{device, {n}};
    qn::Field<qn::Vec<int, 3>> sums{device, {5000}};
    for (int i = 0; i < n; i++) {
      v.set(i, i % 5);
      at.set(i, i / 40);
    }
    qn::Kernel<void()> add{[&] {
                             for (auto i : v) {
                               const auto [a, b, c] = Terms<Val<int>, int>::of(v[i]);
                               I32 k = at[i];
                               atomic_add(sums[k].x, k);
                               atomic_add(sums[k].y, a + b);
                               atomic_add(sums[k].z, c);
                             }
                           },
                           unchecked};
    add();
    std::vector<Terms<int>> expected(5000, {0, 0, 0});
    for (int i = 0; i < n; i++) {
      const auto [a, b, c] = Terms<int>::of(i % 5);
      Terms<int>& to = expected[size_t(i / 40)];
      to = {to.a + i / 40, to.b + a + b, to.c + c};
    }
    int wrong = 0;
    const auto found = qn::to_vector(sums);
    for (size_t k = 0; k < 5000; k++)
      wrong +=
          found[k].x != expected[k].a || found[k].y != expected[k].b || found[k].z != expected[k].c;
    CHECK(wrong == 0);
  });
}

TEST_CASE("what an iteration does to one element with several atomics it does in their order") {
  on_every_device([](const qn::Device& device) {
    constexpr int n = 1003;
    qn::Field<int> v{device, {n}}, at{device, {n}}, again{device, {n}}, x{device, {n}};
    qn::Field<qn::Vec<int, 3>> y{device, {n}};
    for (int i = 0; i < n; i++) {
      v.set(i, i % 5);
      at.set(i, i * 7 % n);
      again.set(i, i * 7 % n);
    }
    qn::Kernel<void()> run{[&] {
                             for (auto i : v) {
                               const auto [a, b, c] = Terms<Val<int>, int>::of(v[i]);
                               I32 k = at[i], same = again[i];
                               atomic_add(x[k], a);
                               atomic_add(y[k].x, b);
                               atomic_max(x[same], c);
                               atomic_add(y[k].y, c);
                               atomic_add(y[k].z, a);
                               atomic_add(x[k], b);
                             }
                           },
                           unchecked};
    run();
    int wrong = 0;
    for (int i = 0; i < n; i++) {
      const auto [a, b, c] = Terms<int>::of(i % 5);
      const int k = i * 7 % n;
      wrong += x.at(k) != std::max(a, c) + b;
      wrong += y.at(k).x != b || y.at(k).y != c || y.at(k).z != a;
    }
    CHECK(wrong == 0);
  });
}

// Trees without an end: a root whose children are found by a hash.
#include <quern/sparse.h>

#include <map>
#include <random>

#include "tests/end_to_end/devices.h"

using namespace qn::lang;
using Catch::Matchers::Contains;

namespace {

using Index = std::array<int64_t, 3>;

}  // namespace

TEST_CASE("random operations on a tree without an end do what they do to a map") {
  on_every_device([](const qn::Device& device) {
    const bool fast = device.name() != std::string("cuda");
    for (uint32_t seed = 0; seed < (fast ? 4 : 1); seed++) {
      std::mt19937 random(seed);
      const auto below = [&](int n) { return int(random() % unsigned(n)); };
      qn::Tree<3> tree{device,
                       seed % 2
                           ? std::initializer_list<qn::TreeLevel>{qn::hash(), qn::bitmasked(4)}
                           : std::initializer_list<qn::TreeLevel>{qn::hash(), qn::pointer(3, 2, 1),
                                                                  qn::bitmasked(2, 1, 3)},
                       {.cells = 1 + below(30)}};
      auto u = tree.field<int>(-1);
      constexpr int most = 200;
      qn::Field<ivec3> batch{device, {most}};
      qn::Field<int> known{device, {most}}, count{device, {1}};
      qn::Kernel write = [&](I32 n) {
        for (auto k : range(n)) u[batch[k]] += k;
      };
      qn::Kernel end = [&](I32 n) {
        for (auto k : range(n)) deactivate(u, batch[k]);
      };
      qn::Kernel read = [&](I32 n) {
        for (auto k : range(n)) known[k] = u[batch[k]];
      };
      qn::Kernel visit = [&] {
        Var<int> n = 0;
        for (auto [i, j, k] : u) {
          n += 1;
          u(i, j, k) += i - 3 * j + 5 * k;
        }
        count[0] = n;
      };
      std::map<Index, int> model;
      const auto place = [&] {
        const int far = 1 << (below(2) ? 4 : 30);
        const auto at = [&] { return int(random() % unsigned(2 * int64_t(far) - 1)) - far; };
        return ivec3(at(), at() / (1 + below(3)), at());
      };
      for (int round = 0; round < 25; round++) {
        std::vector<ivec3> some(most);
        for (ivec3& p : some) p = place();
        const int n = below(most);
        batch.copy_from(some);
        const auto index = [&](int k) {
          const ivec3& p = some[size_t(k)];
          return Index{p.x, p.y, p.z};
        };
        write(n);
        for (int k = 0; k < n; k++) model.try_emplace(index(k), -1).first->second += k;
        visit();
        CHECK(count.at(0) == int(model.size()));
        for (auto& [at, v] : model)
          v = int(uint32_t(v) + uint32_t(at[0]) - 3u * uint32_t(at[1]) + 5u * uint32_t(at[2]));
        read(most);
        const std::vector<int> found = qn::to_vector(known);
        int wrong = 0;
        for (int k = 0; k < most; k++) {
          const auto there = model.find(index(k));
          wrong += found[size_t(k)] != (there == model.end() ? -1 : there->second);
        }
        CHECK(wrong == 0);
        const auto& [at, v] = *std::next(model.begin(), below(int(model.size())));
        CHECK(u.at(at[0], at[1], at[2]) == v);
        end(n / 2);
        for (int k = 0; k < n / 2; k++) model.erase(index(k));
      }
    }
  });
}

TEST_CASE("iterations that make the same entries at once lose none") {
  on_every_device([](const qn::Device& device) {
    const int threads = device.name() == std::string("cpu") ? 200'000 : 5'000;
    for (int cells : {1, 2000}) {
      qn::Tree<3> tree{device, {qn::hash(), qn::dense(2)}, {.cells = cells}};
      auto u = tree.field<int>();
      // Coordinates that share their first words.
      qn::Kernel count = [&](I32 n) {
        for (auto k : range(n)) u(k % 3 * 1000, k / 3 % 5 * -77, k / 15 % 29 * 4) += 1;
      };
      count(threads);
      count(threads);
      const int places = 3 * 5 * 29;
      int wrong = 0;
      for (int k = 0; k < places; k++)
        wrong += u.at(k % 3 * 1000, k / 3 % 5 * -77, k / 15 % 29 * 4) !=
                 2 * (threads / places + (k < threads % places));
      CHECK(wrong == 0);
    }
  });
}

TEST_CASE("coordinates of 64 bits") {
  on_every_device([](const qn::Device& device) {
    const int64_t far = int64_t(1) << 58;
    qn::Tree<2> tree{device,
                     {qn::hash(), qn::bitmasked(4)},
                     {.shape = {2 * far, 2 * far}, .offset = {-far, -far}}};
    auto u = tree.field<double>(0.5);
    qn::Field<int64_t> at{device, {6}};
    const std::vector<int64_t> places = {-far, 0, far - 1, (int64_t(1) << 32) + 3, 3, -1};
    at.copy_from(places);
    qn::Kernel write = [&] {
      for (auto k : range(6)) u(at[k], -1 - at[k]) = cast<double>(k);
    };
    qn::Field<double> sums{device, {2}};
    qn::Kernel sum = [&] {
      Var<double> s = 0.0, n = 0.0;
      for (auto [i, j] : u.wide()) {
        s += u(i, j);
        n += cast<double>(i + j);
      }
      sums[0] = s;
      sums[1] = n;
    };
    write();
    sum();
    CHECK(sums.at(0) == 15);
    CHECK(sums.at(1) == -6);
    for (int k = 0; k < 6; k++) CHECK(u.at(places[size_t(k)], -1 - places[size_t(k)]) == k);
    CHECK(u.at(3, 3) == 0.5);
    u.set(far - 1, far - 1, 8.0);
    CHECK(u.at(far - 1, far - 1) == 8.0);
    qn::Kernel narrow = [&] {
      for (auto [i, j] : u) u(i, j) = 0.0;
    };
    CHECK_THAT(error_of([&] { narrow(); }), Contains("loop over x.wide()"));
    CHECK_THAT(error_of([&] { u.at(far, 0); }), Contains("on axis 0 of a field of shape"));
  });
}

TEST_CASE("cells that move leave no entries behind") {
  on_every_device([](const qn::Device& device) {
    const int rounds = device.name() == std::string("cpu") ? 400 : 40;
    qn::Tree<2> tree{device, {qn::hash(), qn::bitmasked(2)}, {.cells = 16}};
    auto u = tree.field<int>();
    qn::Field<int> count{device, {1}};
    qn::Kernel move = [&](I32 t) {
      for (auto [i, j] : u) deactivate(u, i, j);
      for (auto k : range(10)) u(t * 100 + k * 3, -t * k) = t;
      Var<int> n = 0;
      for (auto [i, j] : u) n += u(i, j);
      count[0] = n;
    };
    int wrong = 0;
    for (int t = 1; t <= rounds; t++) {
      move(t);
      wrong += count.at(0) != 10 * t;
    }
    CHECK(wrong == 0);
  });
}

TEST_CASE("random numbers and sums on a tree without an end follow from its elements alone") {
  on_every_device([](const qn::Device& device) {
    std::vector<double> sums, drawn;
    for (int order : {1, 7, 11}) {
      qn::Tree<3> tree{device, {qn::hash(), qn::pointer(2), qn::bitmasked(2)}};
      auto u = tree.field<float>();
      qn::Field<double, 0> total{device}, random{device};
      qn::Kernel fill = [&](I32 by) {
        for (auto k : serial(range(30))) {
          I32 n = k * by % 30;
          u(n * 12345 - 70'000, n * n, -n * 99'999) = 1.0f / cast<float>(n + 1);
        }
      };
      qn::Kernel sum = [&] {
        Var<float> s = 0.0f;
        for (auto [i, j, k] : deterministic(u.indices())) s += u(i, j, k);
        total() = cast<double>(s);
        Var<float> r = 0.0f;
        for (auto [i, j, k] : deterministic(u.indices())) r += qn::lang::random<float>();
        random() = cast<double>(r);
      };
      fill(order);
      device.seed(7);
      sum();
      sums.push_back(total.at({}));
      drawn.push_back(random.at({}));
    }
    CHECK(sums[0] == sums[1]);
    CHECK(sums[0] == sums[2]);
    CHECK(drawn[0] == drawn[1]);
    CHECK(drawn[0] == drawn[2]);
    CHECK(drawn[0] > 5);
    CHECK(drawn[0] < 25);
  });
}

TEST_CASE("hash levels stand outside") {
  qn::Device device("interpreter");
  const auto refusal = [&](std::initializer_list<qn::TreeLevel> levels, qn::TreeOptions options) {
    return error_of([&] { qn::Tree<2>(device, levels, options); });
  };
  CHECK_THAT(refusal({qn::dense(2), qn::hash(), qn::dense(2)}, {}), Contains("outermost"));
  CHECK_THAT(refusal({qn::hash()}, {}), Contains("has no level below it"));
  CHECK_THAT(refusal({qn::hash(), qn::dense(2)}, {.shape = {-1, 4}}), Contains("room for"));
  CHECK_THAT(error_of([&] { qn::Tree<1>(device, {qn::hash(), qn::dynamic(4)}); }),
             Contains("has none for hash"));
}

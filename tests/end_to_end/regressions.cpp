// Defects that once were: each case failed before its fix.
#include <climits>
#include <cmath>
#include <string>
#include <vector>

#include "tests/end_to_end/devices.h"

using namespace qn::lang;

TEST_CASE("a loop under a false If may have any size") {
  on_every_device([](qn::Device& device) {
    qn::Field<int> x{device, {2}};
    qn::Kernel too_many = [&](I32 n) {
      x[1] = n;
      If(n < 100) {
        for (auto I : grid(n, n, n, n)) x[0] += I.x + 1;
      }
    };
    CHECK(error_of([&] { too_many(INT_MAX); }) == "");
    CHECK(x.at(0) == 0);
    CHECK(x.at(1) == INT_MAX);
    too_many(2);
    CHECK(x.at(0) == 8 * 1 + 8 * 2);

    qn::Kernel sum = [&](I32 n) {
      Var<int> s = 5;
      If(n < 100) {
        for (auto I : grid(n, n, n)) s += I.x;
      }
      return s;
    };
    CHECK(int(sum(100'000)) == 5);
    CHECK(int(sum(3)) == 5 + 9 * (0 + 1 + 2));
  });
}

TEST_CASE("a kernel and fields that go before their failed launch was read leave its error") {
  on_every_device([](qn::Device& device) {
    const int rounds = 70'000;  // more than software Vulkan runs in one iteration
    int line = 0;
    auto run = [&] {
      qn::Field<int> x{device, {4}};
      qn::Kernel k = [&](I32 n) {
        for (auto i : x) {
          Var<int> v = i;
          line = __LINE__ + 1;
          for (auto j : range(n)) v = (v ^ j) + (v << 1);
          x[i] = v;
        }
      };
      k(rounds);
    };
    run();
    int at = 0;
    std::string text = error_of([&] { device.synchronize(); }, &at);
    if (!text.empty()) {  // told, not lost, and not a crash
      CHECK(text.find("65,535") != std::string::npos);
      CHECK(at == line);
    }
    device.synchronize();
    qn::Field<int> y{device, {4}};
    qn::Kernel fill = [&](I32 v) {
      for (auto i : y) y[i] = v;
    };
    fill(3);
    CHECK(y.at(2) == 3);
  });
}

TEST_CASE("an argument that its parameter cannot hold is an error with the caller's line") {
  on_every_device([](qn::Device& device) {
    qn::Field<int> x{device, {4}};
    qn::Kernel k = [&](I32 n, U8 b, F32 f) {
      x[0] = n;
      x[1] = cast<int>(b);
      x[2] = cast<int>(f);
    };
    auto refused = [&](auto n, auto b, auto f, const std::string& value) {
      INFO(value);
      int at = 0, line = __LINE__ + 1;
      std::string text = error_of([&] { k(n, b, f); }, &at);
      CHECK(text.find("host value " + value + " ") != std::string::npos);
      CHECK(at == line);
    };
    refused(5'000'000'000, 1, 1, "5000000000");
    refused(1, 300, 1, "300");
    refused(1, -1, 1, "-1");
    refused(~0ull, 1, 1, "18446744073709551615");
    refused(1.5, 1, 1, "1.5");
    refused(1e300, 1, 1, "1e+300");
    refused(-0x1p63, 1, 1, "-9223372036854775808");
    refused(1, 1, 1e300, "1e+300");
    CHECK(x.at(0) == 0);
    k(size_t(7), 255u, 2.5);
    CHECK(qn::to_vector(x) == std::vector<int>{7, 255, 2, 0});
    k(-3.0, true, 4);
    CHECK(qn::to_vector(x) == std::vector<int>{-3, 1, 4, 0});
  });
}

TEST_CASE("what hangs on a special case of a function is done once that is known") {
  // The usual way is run for every argument first: nothing may be written by what it says.
  on_every_device([](qn::Device& device) {
    const int n = 1000;
    qn::Field<float> x{device, {n}};
    qn::Field<int> written{device, {n}}, at{device, {2 * n}};
    std::vector<float> host(n);
    for (int i = 0; i < n; i++) host[size_t(i)] = i % 3 == 0 ? 0.0f : float(i);
    x.copy_from(host);
    written.fill(7);
    at.fill(7);
    qn::Kernel guarded = [&] {
      for (auto i : x) {
        If(log(x[i]) > -1e30f) { written[i] = 1; }
      }
    };
    guarded();
    qn::Kernel indexed = [&] {
      for (auto i : x) {
        // log(0) is -∞, which becomes 0 here.
        auto place = select(log(x[i]) > -1e30f, i, i + n);
        at[place] = 1;
      }
    };
    indexed();
    int wrong = 0;
    for (int i = 0; i < n; i++) {
      bool zero = i % 3 == 0;
      wrong += written.at(i) != (zero ? 7 : 1);
      wrong += at.at(i) != (zero ? 7 : 1);
      wrong += at.at(i + n) != (zero ? 1 : 7);
    }
    CHECK(wrong == 0);
  });
}

TEST_CASE("an infinite half becomes the nearest integer where the compiler knows it") {
  on_every_device([](qn::Device& device) {
    qn::Field<int64_t> x{device, {3}};
    qn::Kernel k{[&] {
                   Var<Array<qn::half, 4>> zeros;  // which only the back end's compiler finds out
                   auto large = cast<int>(zeros[0]) + 505118679;
                   x[0] = cast<int>(cast<qn::half>(large));
                   x[1] = cast<int>(cast<qn::half>(-large));
                   x[2] = cast<int64_t>(cast<qn::half>(-large));
                 },
                 qn::Options{.checked = false}};
    k();
    CHECK(qn::to_vector(x) == std::vector<int64_t>{INT32_MAX, INT32_MIN, INT64_MIN});
  });
}

TEST_CASE("a loop whose condition reads a field ends for each iteration by itself") {
  on_every_device([](const qn::Device& device) {
    const std::vector<float> target = {2, 9, 0.25f, 1, 77};
    qn::Field<float> a{device, {target.size()}}, reached{device, {target.size()}};
    qn::Field<int> rounds{device, {target.size()}}, last{device, {target.size()}};
    a.copy_from(target);
    qn::Field<int> next{device, {6}};
    const std::vector<int> links = {3, 5, -1, 4, 1, -7};
    next.copy_from(links);
    qn::Kernel f = [&] {
      for (auto i : a) {
        Var<float> r = 1.0f;
        Var<int> n = 0;
        While(abs(r - a[i]) > 1e-3f && n < 50) {
          r = 0.5f * (r + a[i]);
          n += 1;
        }
        reached[i] = r;
        rounds[i] = n;
        Var<int> at = i, link = 0;
        While(link >= 0) {
          link = next[at];
          If(link >= 0) { at = link; }
        }
        last[i] = link - 10 * at;
      }
    };
    f();
    for (size_t k = 0; k < target.size(); k++) {
      float r = 1;
      int n = 0;
      while (std::abs(r - target[k]) > 1e-3f && n < 50) {
        r = 0.5f * (r + target[k]);
        n++;
      }
      int at = int(k);
      while (links[size_t(at)] >= 0) at = links[size_t(at)];
      CHECK(reached.at(int(k)) == r);  // halves and sums of these are exact, or rounded alike
      CHECK(rounds.at(int(k)) == n);
      CHECK(last.at(int(k)) == links[size_t(at)] - 10 * at);
    }
  });
}

TEST_CASE("behind a long branch an element is stored where its index says, not one further") {
  on_every_device([](qn::Device& device) {
    qn::Field<double> x{device, {5}};
    qn::Kernel kernel{[&](I32 n) {
                        for (auto i : x) {
                          Var<Array<double, 5>> v;
                          for (auto j : range(5)) v[j] = x[i] * cast<double>(j + 1);
                          for (auto j : range(n)) v[j] = tan(v[j]) + v[j + 1];
                          x[i] = v[0] + 2.0 * v[1] + 4.0 * v[2] + 8.0 * v[3];
                        }
                      },
                      {.checked = false}};
    std::vector<double> expected;
    for (int i = 0; i < 5; i++) {
      const double at = 0.1 * i - 0.15;
      x.set(i, at);
      double v[5];
      for (int j = 0; j < 5; j++) v[j] = at * (j + 1);
      for (int j = 0; j < 3; j++) v[j] = std::tan(v[j]) + v[j + 1];
      expected.push_back(v[0] + 2 * v[1] + 4 * v[2] + 8 * v[3]);
    }
    kernel(3);
    for (int i = 0; i < 5; i++) CHECK(x.at(i) == Approx(expected[size_t(i)]).epsilon(1e-12));
  });
}

TEST_CASE("a remainder that all iterations share, beside branches that only some take") {
  on_every_device([](const qn::Device& device) {
    const int n = 64, rounds = 8;
    std::vector<int> at;
    for (int i = 0; i < n; i++) at.push_back(i * 37 % 19 - 9);
    qn::Field<int> x{device, {n}}, sum{device, {n}}, seen{device, {n}}, other{device, {rounds}};
    x.copy_from(at);
    for (bool checked : {false, true}) {
      qn::Kernel kernel{[&](I32 count) {
                          for (auto i : range(count)) {
                            Var<Array<int, 4>> kept;
                            Var<int> own = 1, some = 0;
                            for (auto j : serial(range(rounds))) {
                              If(i != j) {
                                If(((i + j) & 3) == 1) { some += x[i] & 8; }
                              }
                              own =
                                  own * 3 + x[cast<int>(cast<uint32_t>(j) % cast<uint32_t>(count))];
                              other[j & 7] ^= I32(0);
                              kept[2] = kept[2] + j;
                            }
                            sum[i] = own;
                            seen[i] = some + kept[2];
                          }
                        },
                        {.checked = checked}};
      kernel(n);
      uint32_t want = 1;
      for (int j = 0; j < rounds; j++) want = want * 3 + uint32_t(at[size_t(j)]);
      std::vector<int> want_seen(size_t(n), rounds * (rounds - 1) / 2);
      for (int i = 0; i < n; i++)
        for (int j = 0; j < rounds; j++)
          if (i != j && ((i + j) & 3) == 1) want_seen[size_t(i)] += at[size_t(i)] & 8;
      CHECK(qn::to_vector(sum) == std::vector<int>(size_t(n), int(want)));
      CHECK(qn::to_vector(seen) == want_seen);
    }
  });
}

// Control flow nested deeper than drivers expect: chains of `else If`, nests of `If`, of loops, and
// of both, against the same functions in plain C++.
#include <functional>

#include "tests/end_to_end/devices.h"

using namespace qn::lang;

namespace {

constexpr int depths[] = {50, 76, 77, 78, 120, 500};

using Step = std::function<void(int)>;

/// out[i] = f(i) and calls[i] counts what ran, for i in [0, n): as recorded and as plain C++ say.
template <class Recorded, class Plain>
void compare(qn::Device& device, int n, bool checked, Recorded recorded, Plain plain) {
  qn::Field<int> out{device, {n}}, calls{device, {n}};
  qn::Kernel k{[&] {
                 for (auto i : out) {
                   Var<int> v = 0;
                   recorded(i, v, calls);
                   out[i] = v;
                 }
               },
               {.checked = checked}};
  k();
  std::vector<int> want(size_t(n), 0), want_calls(size_t(n), 0);
  for (int i = 0; i < n; i++) want[size_t(i)] = plain(i, want_calls[size_t(i)]);
  CHECK(qn::to_vector(out) == want);
  CHECK(qn::to_vector(calls) == want_calls);
}

}  // namespace

TEST_CASE("chains of else-ifs of any length choose the branch that C++ chooses") {
  on_every_device([](qn::Device& device) {
    for (int depth : depths) {
      for (bool checked : {false, true}) {
        CAPTURE(depth, checked);
        auto recorded = [&](I32 i, Var<int>& v, qn::Field<int>& calls) {
          Step from = [&](int k) {
            If(i * 7 % (depth + 3) == k) {
              v = v * 5 + k;
              if (k % 16 == 0) calls[i] += k + 1;
            }
            else {
              v = v + k % 3;
              if (k + 1 < depth)
                from(k + 1);
              else
                v = -1;
            }
          };
          from(0);
        };
        auto plain = [&](int i, int& calls) {
          int v = 0;
          for (int k = 0; k < depth; k++) {
            if (i * 7 % (depth + 3) == k) {
              calls += k % 16 == 0 ? k + 1 : 0;
              return v * 5 + k;
            }
            v += k % 3;
          }
          return -1;
        };
        compare(device, depth + 5, checked, recorded, plain);
      }
    }
  });
}

TEST_CASE("nests of ifs of any depth, with work before and behind each inner one") {
  on_every_device([](qn::Device& device) {
    for (int depth : depths) {
      for (bool checked : {false, true}) {
        CAPTURE(depth, checked);
        auto recorded = [&](I32 i, Var<int>& v, qn::Field<int>& calls) {
          Step from = [&](int k) {
            Var<int> before = v;
            If(i % (k + 2) != k % 5 || i % 3 == 0) {
              v = v * 3 + i;
              if (k + 1 < depth) from(k + 1);
              v = (v ^ before) + k;
              if (k % 16 == 0) calls[i] += 1;
            }
            else {
              v = v - k;
            }
          };
          from(0);
        };
        std::function<int(int, int, int, int&)> from = [&](int i, int k, int v, int& calls) {
          const unsigned before = unsigned(v);
          if (i % (k + 2) == k % 5 && i % 3 != 0) return v - k;
          v = int(unsigned(v) * 3 + unsigned(i));
          if (k + 1 < depth) v = from(i, k + 1, v, calls);
          calls += k % 16 == 0 ? 1 : 0;
          return int((unsigned(v) ^ before) + unsigned(k));
        };
        auto plain = [&](int i, int& calls) { return from(i, 0, 0, calls); };
        compare(device, 97, checked, recorded, plain);
      }
    }
  });
}

TEST_CASE("hundreds of early exits from one iteration") {
  on_every_device([](qn::Device& device) {
    for (int exits : depths) {
      CAPTURE(exits);
      auto recorded = [&](I32 i, Var<int>& v, qn::Field<int>& calls) {
        for (auto r : range(3)) {
          for (int k = 0; k < exits; k++) {
            If(i * 11 % exits == k - r) Continue();
            v = v * 3 + k;
          }
          calls[i] += 1;
        }
      };
      auto plain = [&](int i, int& calls) {
        unsigned v = 0;
        for (int r = 0; r < 3; r++) {
          bool ended = false;
          for (int k = 0; k < exits && !ended; k++) {
            ended = i * 11 % exits == k - r;
            if (!ended) v = v * 3 + unsigned(k);
          }
          calls += ended ? 0 : 1;
        }
        return int(v);
      };
      compare(device, 61, true, recorded, plain);
    }
  });
}

TEST_CASE("loops with breaks among deep ifs, and ifs within them again") {
  on_every_device([](qn::Device& device) {
    for (int depth : {20, 40, 60, 90}) {
      for (bool checked : {false, true}) {
        CAPTURE(depth, checked);
        // `depth` ifs around a counted loop, `depth` ifs around a While with a Break in that.
        auto recorded = [&](I32 i, Var<int>& v, qn::Field<int>& calls) {
          Step inner = [&](int k) {
            If(v % (k + 3) != 1) {
              v += k;
              if (k + 1 < depth) {
                inner(k + 1);
              } else {
                Var<int> left = i % 7;
                While(left > 0) {
                  left -= 1;
                  calls[i] += 1;
                  If(v % 5 == left) Break();
                  v += left;
                }
              }
            }
          };
          Step outer = [&](int k) {
            If(i % (k + 2) != 1 || i % 4 == 3) {
              if (k + 1 < depth) {
                outer(k + 1);
              } else {
                for (auto r : range(i % 4)) {
                  v += r;
                  inner(0);
                }
              }
              v += 1;
            }
          };
          outer(0);
        };
        auto plain = [&](int i, int& calls) {
          int v = 0;
          auto inner = [&] {
            for (int k = 0; k < depth; k++) {
              if (v % (k + 3) == 1) return;
              v += k;
            }
            for (int left = i % 7; left > 0;) {
              left--;
              calls++;
              if (v % 5 == left) break;
              v += left;
            }
          };
          int entered = 0;
          while (entered < depth && (i % (entered + 2) != 1 || i % 4 == 3)) entered++;
          if (entered == depth) {
            for (int r = 0; r < i % 4; r++) {
              v += r;
              inner();
            }
          }
          return v + entered;
        };
        compare(device, 67, checked, recorded, plain);
      }
    }
  });
}

TEST_CASE("loops inside loops run, or are refused with the line of the one too deep") {
  on_every_device([](qn::Device& device) {
    for (int depth : {10, 60, 66}) {
      // What compilers for CPUs do to a nest of loops takes a time exponential in its depth.
      if (depth > 10 && device.name() != std::string("vulkan")) continue;
      CAPTURE(depth);
      const int line = __LINE__ + 3;
      auto recorded = [&](I32 i, Var<int>& v, qn::Field<int>& calls) {
        Step from = [&](int k) {
          for (auto r : range(1 + (i + k) % 40 / 39)) {
            v += r + k;
            if (k + 1 < depth) from(k + 1);
          }
          if (k == depth - 1) calls[i] += 1;
        };
        from(0);
      };
      std::function<void(int, int, int&, int&)> from = [&](int i, int k, int& v, int& calls) {
        for (int r = 0; r < 1 + (i + k) % 40 / 39; r++) {
          v += r + k;
          if (k + 1 < depth) from(i, k + 1, v, calls);
        }
        if (k == depth - 1) calls++;
      };
      auto plain = [&](int i, int& calls) {
        int v = 0;
        from(i, 0, v, calls);
        return v;
      };
      int at = 0;
      std::string text = error_of([&] { compare(device, 43, false, recorded, plain); }, &at);
      if (text.empty()) continue;
      CHECK(depth > 60);
      CHECK(text.find("more than 64 loops inside each other") != std::string::npos);
      CHECK(at == line);
    }
  });
}

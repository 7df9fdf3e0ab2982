// Programs that name both the standard library's and the language's functions without a prefix, and
// expressions in which a value meets numbers that index the host's containers.
#include <quern/quern.h>

#include <cmath>
#include <vector>

#include "tests/catch.h"

using namespace std;
using namespace quern::lang;
using quern::Field;
using quern::Kernel;

TEST_CASE("run: the language's functions beside using namespace std") {
  Field<double> x{8};
  Kernel k = [&] {
    for (auto i : x) {
      auto t = cast<double>(i) * 0.25;
      x[i] = sin(t) + pow(t, 2) + pow(2.0, t) + floor(t) + abs(-t) + sqrt(t) + fmod(t, 0.5) +
             cast<double>(isnan(t));
    }
  };
  k();
  for (int i = 0; i < 8; i++) {
    double t = i * 0.25;
    double expected = sin(t) + t * t + pow(2.0, t) + floor(t) + t + sqrt(t) + fmod(t, 0.5);
    CHECK(abs(x.at(i) - expected) < 1e-14 * expected + 1e-15);
  }
}

TEST_CASE("run: values beside the host's size_t and ptrdiff_t") {
  Field<int64_t> x{4};
  const vector<int> host = {1, 2, 3};
  const int* first = host.data();
  Kernel k = [&](bool constant) {
    return [&, constant] {
      for (auto i : x) {
        auto n = constant ? i : 7;  // of the host: decided now
        x[i] = (n + host.size()) * (host.size() - i) + (&host[2] - first) * i +
               cast<int>(i < host.size()) + cast<int>(host.size() == i) + first[host.size() - 1];
      }
    };
  }(true);
  k();
  for (int i = 0; i < 4; i++) CHECK(x.at(i) == (i + 3) * (3 - i) + 2 * i + (i < 3) + (i == 3) + 3);
}

TEST_CASE("run: an assignment yields the value assigned") {
  Field<int> x{3};
  Kernel k = [&] {
    Var<int> a, b;
    Var<double> c;
    c = b = a = 5;
    x[0] = x[1] = a + 2;
    x[2] = cast<int>(c) + (b = 1) + b;
    return a;
  };
  CHECK(int(k()) == 5);
  CHECK(x.at(0) == 7);
  CHECK(x.at(1) == 7);
  CHECK(x.at(2) == 7);
}

// Errors found on the host around a launch, and those that a launch finds while it runs.
#include <quern/quern.h>

#include <cmath>
#include <string>
#include <vector>

#include "quern/host.h"
#include "tests/catch.h"

namespace qn = quern;
using namespace qn::lang;

namespace {

const qn::Options checked{.checked = true};

/// `f` throws Error that blames `line` of this file and says `text`.
template <class F>
void fails(int line, const std::string& text, const F& f) {
  try {
    f();
  } catch (const qn::Error& e) {
    INFO(e.what() << "\nexpected " << line << ": " << text);
    CHECK(e.message().find(text) != std::string::npos);
    CHECK(std::string(e.loc().file).find("errors/launch.cpp") != std::string::npos);
    CHECK(e.loc().line == line);
    return;
  }
  FAIL("no error: " << text);
}

std::string line_text(int line) { return "errors/launch.cpp:" + std::to_string(line); }

}  // namespace

TEST_CASE("a released field") {
  qn::Device device;
  qn::Field<float> x{device, {8}};
  qn::Kernel k = [&] {
    for (auto i : x) x[i] = 1;
  };
  k();
  x.release();
  const int released = __LINE__ - 1;
  fails(__LINE__, line_text(released), [&] { k(); });
  fails(__LINE__, line_text(released), [&] { (void)x.at(0); });
}

TEST_CASE("a kernel called while another is recorded") {
  qn::Device device;
  qn::Field<float> x{device, {8}};
  qn::Kernel inner = [&] {
    for (auto i : x) x[i] = 1;
  };
  fails(__LINE__ + 1, "a kernel is called while another kernel or function is recorded",
        [&] { qn::Kernel outer = [&] { inner(); }; });
}

TEST_CASE("host access while a kernel is recorded") {
  qn::Device device;
  qn::Field<float> x{device, {8}}, y{device, {8}};
  std::vector<float> eight(8);
  qn::Kernel one = [] { return F32(1.0f); };
  auto result = one();
  // Each is refused at its own line, and says where the recording began.
  auto refused = [&](int line, auto access) {
    fails(line, "once, while the kernel is recorded", [&] {
      qn::Kernel k = [&] {
        for (auto i : x) {
          access();
          x[i] = 1;
        }
      };
    });
  };
  refused(__LINE__, [&] { x.set(0, 2.0f); });
  refused(__LINE__, [&] { (void)x.at(0); });
  refused(__LINE__, [&] { x.fill(2.0f); });
  refused(__LINE__, [&] { x.copy_from(eight); });
  refused(__LINE__, [&] { x.copy_to(eight); });
  refused(__LINE__, [&] { (void)qn::to_vector(x); });
  refused(__LINE__, [&] { x.swap(y); });
  refused(__LINE__, [&] { y.release(); });
  refused(__LINE__, [&] { device.synchronize(); });
  refused(__LINE__, [&] { device.seed(7); });
  refused(__LINE__, [&] { (void)result.value(); });
  fails(__LINE__ + 2, "once, while the function is recorded (begun at ", [&] {
    qn::Func f = [&](F32 a) {
      x.set(0, 2.0f);
      return a;
    };
  });
  CHECK(qn::to_vector(x) == std::vector<float>(8, 0.0f));
  CHECK(float(result) == 1.0f);
  y.fill(3.0f);
}

TEST_CASE("a text that is null") {
  fails(__LINE__, "null", [] { qn::Kernel k = [] { print(nullptr); }; });
  fails(__LINE__ + 2, "null", [] {
    qn::Kernel k = [] {
      for (auto i : range(4)) check(i < 3, nullptr, i);
    };
  });
}

TEST_CASE("host access to a field") {
  qn::Device device;
  qn::Field<float, 2> u{device, {3, 4}}, v{device, {4, 3}};
  std::vector<float> five(5);
  fails(__LINE__, "index 3 on axis 0 of a field of shape", [&] { (void)u.at(3, 0); });
  fails(__LINE__, "index -1 on axis 1 of a field of shape", [&] { u.set(0, -1, 2.0f); });
  fails(__LINE__, "5 elements are copied to or from a field of 12", [&] { u.copy_from(five); });
  fails(__LINE__ + 1, "5 elements are copied to or from a field of 12",
        [&] { u.copy_to(five.data(), five.size()); });
  fails(__LINE__, "swap of fields of different shapes", [&] { u.swap(v); });
  fails(__LINE__, "shape(2) of a field with 2 axes", [&] { (void)u.shape(2); });
  fails(__LINE__, "an extent is negative", [&] { qn::Field<float> w{device, {-1}}; });
  fails(__LINE__ + 1, "a field of 2 axes is given 1 extents",
        [&] { qn::Field<float, 2> w{device, {5}}; });
}

TEST_CASE("a device that is not there") {
  fails(__LINE__, "there is no device 'abacus'", [] { qn::Device d("abacus"); });
}

TEST_CASE("an index out of range names its line at the next host wait") {
  qn::Device device;
  qn::Field<float> x{device, {8}}, y{device, {8}};
  qn::Kernel k{[&] {
                 for (auto i : x) {
                   auto v = y[i + 1];
                   x[i] = v;
                 }
               },
               checked};
  const int read = __LINE__ - 5;
  k();
  fails(read, "8", [&] { (void)x.at(0); });
  // The device is sound again.
  qn::Kernel fine{[&] {
                    for (auto i : x) x[i] = 3;
                  },
                  checked};
  fine();
  CHECK(x.at(7) == 3.0f);
}

TEST_CASE("a store out of range") {
  qn::Device device;
  qn::Field<int, 2> u{device, {4, 4}};
  qn::Kernel k{[&](I32 n) {
                 for (auto [i, j] : u) {
                   u(i - n, j) = 1;
                 }
               },
               checked};
  const int write = __LINE__ - 4;
  k(0);
  CHECK(u.at(3, 3) == 1);
  k(1);
  fails(write, "-1", [&] { device.synchronize(); });
}

TEST_CASE("a failed check says its text and values") {
  qn::Device device;
  qn::Field<int> x{device, {8}};
  qn::Kernel k{[&](I32 limit) {
                 for (auto i : x) {
                   check(i != limit, "iteration {} reached the limit {}", i, limit);
                   x[i] = i;
                 }
               },
               checked};
  const int line = __LINE__ - 5;
  k(9);
  CHECK(x.at(5) == 5);
  k(5);
  fails(line, "iteration 5 reached the limit 5", [&] { device.synchronize(); });
}

TEST_CASE("division by zero and an overflowing cast, in checked mode") {
  qn::Device device;
  qn::Field<int> x{device, {8}}, y{device, {8}};
  qn::Field<float> f{device, {8}};
  qn::Kernel divide{[&] {
                      for (auto i : x) x[i] = 7 / y[i];
                    },
                    checked};
  const int division = __LINE__ - 3;
  divide();
  fails(division, "zero", [&] { device.synchronize(); });
  f.fill(1e20f);
  qn::Kernel narrow{[&] {
                      for (auto i : x) x[i] = cast<int>(f[i]);
                    },
                    checked};
  const int conversion = __LINE__ - 3;
  narrow();
  fails(conversion, "i32", [&] { device.synchronize(); });
}

TEST_CASE("unchecked, the same operations have the values of the model") {
  qn::Device device;
  qn::Field<int> x{device, {4}}, y{device, {4}};
  qn::Field<float> f{device, {4}};
  f.copy_from(std::vector<float>{1e20f, -1e20f, NAN, -2.75f});
  qn::Kernel k{[&] {
                 for (auto i : x) {
                   x[i] = cast<int>(f[i]);
                   y[i] = (i + 5) / (i - i) + (i + 5) % (i - i);
                 }
               },
               {.checked = false}};
  k();
  CHECK(qn::to_vector(x) == std::vector<int>{2147483647, -2147483647 - 1, 0, -2});
  CHECK(qn::to_vector(y) == std::vector<int>{5, 6, 7, 8});  // a/0 = 0, a%0 = a
}

TEST_CASE("the result of a launch that failed throws") {
  qn::Device device;
  qn::Field<int> x{device, {8}};
  qn::Kernel k{[&] {
                 Var<int> s = 0;
                 for (auto i : x) {
                   check(i < 4, "too far");
                   s += 1;
                 }
                 return s;
               },
               checked};
  const int line = __LINE__ - 6;
  fails(line, "too far", [&] { (void)int(k()); });
}

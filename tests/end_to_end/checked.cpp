// Checked mode on every device: what goes wrong in a kernel is an exception with the user's line,
// the rest of the data is kept, and the next launch works.
#include <climits>
#include <string>

#include "tests/end_to_end/devices.h"

using namespace qn::lang;

namespace {
/// Whatever this file is compiled with.
const qn::Options checked = {.checked = true}, unchecked = {.checked = false};

struct Caught {
  std::string text;
  int line = 0;
};
/// The error that `f` throws; fails the test where it throws none.
template <class F>
Caught caught(F f) {
  try {
    f();
  } catch (const qn::Error& e) {
    return {e.what(), e.loc().line};
  }
  FAIL("no error was thrown");
  return {};
}
bool has(const Caught& c, const std::string& part) {
  return c.text.find(part) != std::string::npos;
}
}  // namespace

TEST_CASE("an index out of range names line, index and extent, and loses nothing else") {
  on_every_device([](qn::Device& device) {
    qn::Field<int> x{device, {100}}, y{device, {100}};
    y.fill(7);
    int line = 0;
    qn::Kernel k{[&](I32 shift) {
                   for (auto i : x) {
                     x[i] = i;
                     line = __LINE__ + 1;
                     x[i] = y[i + shift];
                   }
                 },
                 checked};
    k(3);
    Caught c = caught([&] { device.synchronize(); });
    CHECK(c.line == line);
    CHECK(has(c, "checked.cpp"));
    CHECK((has(c, "index 100 on") || has(c, "index 101 on") || has(c, "index 102 on")));
    CHECK(has(c, "axis 0"));
    CHECK(has(c, "out of range: the extent is 100"));
    std::vector<int> out = qn::to_vector(x);
    for (int i = 0; i < 97; i++) REQUIRE(out[size_t(i)] == 7);
    for (int i = 97; i < 100; i++) REQUIRE(out[size_t(i)] == 0);  // what a failed load gives
    k(0);
    device.synchronize();
    REQUIRE(qn::to_vector(x) == std::vector<int>(100, 7));
    k(-1);
    Caught below = caught([&] { x.at(0); });
    CHECK(has(below, "index -1 on axis 0"));
    CHECK(below.line == line);
  });
}

TEST_CASE("a store out of range does not happen") {
  on_every_device([](qn::Device& device) {
    qn::Field<int, 2> x{device, {4, 5}};
    qn::Kernel k{[&] {
                   for (auto i : range(5)) x(i, 5 - i) = 1;
                 },
                 checked};
    k();
    Caught c = caught([&] { device.synchronize(); });
    CHECK(((has(c, "index 5 on axis 1") && has(c, "extent is 5")) ||
           (has(c, "index 4 on axis 0") && has(c, "extent is 4"))));
    for (int i = 0; i < 4; i++)
      for (int j = 0; j < 5; j++) REQUIRE(x.at(i, j) == (i + j == 5 ? 1 : 0));
  });
}

TEST_CASE("launches after a failed one wait until the error was received") {
  on_every_device([](qn::Device& device) {
    qn::Field<int> x{device, {10}};
    qn::Kernel bad{[&](I32 at) {
                     for (auto i : range(1)) x[i + at] = 1;
                   },
                   checked};
    qn::Kernel add = [&] {
      for (auto i : x) x[i] = x[i] + 1;
    };
    bad(10);
    add();
    CHECK(has(caught([&] { device.synchronize(); }), "index 10 on axis 0"));
    REQUIRE(qn::to_vector(x) == std::vector<int>(10, 0));
    add();
    REQUIRE(qn::to_vector(x) == std::vector<int>(10, 1));
  });
}

TEST_CASE("check carries its message and values") {
  on_every_device([](qn::Device& device) {
    qn::Field<float> x{device, {64}};
    x.fill(1.0f);
    x.set(17, -2.5f);
    int line = 0;
    qn::Kernel k = [&] {
      for (auto i : x) {
        line = __LINE__ + 1;
        check(x[i] >= 0, "negative value {} at {}", x[i], i);
      }
    };
    k();
    Caught c = caught([&] { device.synchronize(); });
    CHECK(has(c, "negative value -2.5 at 17"));
    CHECK(c.line == line);
  });
}

TEST_CASE("integer division by zero and casts that overflow are errors in checked mode") {
  on_every_device([](qn::Device& device) {
    qn::Field<int> x{device, {8}};
    x.fill(6);
    int line = 0;
    qn::Kernel divide{[&](I32 by) {
                        for (auto i : x) {
                          line = __LINE__ + 1;
                          x[i] = x[i] / by;
                        }
                      },
                      checked};
    divide(2);
    REQUIRE(x.at(3) == 3);
    divide(0);
    Caught c = caught([&] { device.synchronize(); });
    CHECK(c.line == line);
    qn::Kernel narrow{[&](F32 v) {
                        for (auto i : x) {
                          line = __LINE__ + 1;
                          x[i] = cast<int>(v);
                        }
                      },
                      checked};
    narrow(3e9f);
    c = caught([&] { device.synchronize(); });
    CHECK(c.line == line);
    narrow(4.7f);
    REQUIRE(x.at(0) == 4);
  });
}

TEST_CASE("a While whose end depends on a failed read still ends") {
  on_every_device([](qn::Device& device) {
    qn::Field<int> x{device, {4}};
    qn::Kernel k{[&] {
                   for (auto i : range(1)) {
                     Var<int> n = i + 4;
                     While(x[n] == 0) { x[0] = 1; }
                   }
                 },
                 checked};
    k();
    CHECK(has(caught([&] { device.synchronize(); }), "index 4 on axis 0"));
  });
}

/// The check fails long after the other iterations have begun to turn. llvmpipe, which cuts all
/// loops short, may do so first.
TEST_CASE("a failed check ends an endless While beside it") {
  on_every_device([](qn::Device& device) {
    const std::string name = device.name();
    // Not more than a GPU has threads at the same time: those that turn leave no room for others.
    qn::Field<int> x{device, {name == "interpreter" ? 1000 : name == "cpu" ? 100'000 : 10'000}};
    int line = 0;
    qn::Kernel k{[&](I32 delay, I32 step) {
                   line = __LINE__ + 4;
                   for (auto i : x) {
                     Var<int> busy = 0;
                     If(i == 0) for (auto r : range(delay)) busy = (busy * 3 + r) % 1001;
                     check(i != 0, "the first, after {}", busy);
                     Var<int> turning = i;
                     While(turning >= 0) turning = (turning + step) % 1024;
                     x[i] = turning;
                   }
                 },
                 checked};
    k(name == "cpu" ? 10'000'000 : 1000, 1);
    Caught c = caught([&] { device.synchronize(); });
    if (name != "vulkan" || !has(c, "cut short")) {
      CHECK(has(c, "the first, after"));
      CHECK(c.line == line);
    }
    k(0, -2000);  // ends at once
    CHECK(has(caught([&] { device.synchronize(); }), "the first"));
  });
}

/// A division by zero and a cast that overflows have values (semantics.md, section 3).
TEST_CASE("unchecked kernels run without checks") {
  on_every_device([](qn::Device& device) {
    qn::Field<int> x{device, {6}}, y{device, {6}};
    auto wrong = [&](I32 by, F32 v) {
      for (auto i : x) {
        x[i] = 7 / by + i;
        y[i] = cast<int>(v);
      }
    };
    qn::Kernel without{wrong, unchecked}, with{wrong, checked};
    without(0, 3e9f);
    device.synchronize();
    CHECK(qn::to_vector(x) == std::vector<int>{0, 1, 2, 3, 4, 5});
    CHECK(qn::to_vector(y) == std::vector<int>(6, INT_MAX));
    with(0, 3e9f);
    CHECK(has(caught([&] { device.synchronize(); }), "checked.cpp"));
  });
}

TEST_CASE("a released field is refused where it is used") {
  on_every_device([](qn::Device& device) {
    qn::Field<int> x{device, {4}};
    qn::Kernel k = [&] {
      for (auto i : x) x[i] = 1;
    };
    k();
    int line = __LINE__ + 1;
    x.release();
    Caught c = caught([&] { k(); });
    CHECK(has(c, "released"));
    CHECK(has(c, ":" + std::to_string(line)));
  });
}

TEST_CASE("fields of two devices do not mix in one kernel", "[cpu]") {
  qn::Device a("interpreter"), b("cpu");
  qn::Field<int> x{a, {4}}, y{b, {4}};
  qn::Kernel k = [&] {
    for (auto i : x) x[i] = y[i];
  };
  Caught c = caught([&] { k(); });
  CHECK(has(c, "interpreter"));
  CHECK(has(c, "cpu"));
}

// Native jumps out of recorded blocks: in each place the error says what works there, and what it
// says works.
#include <quern/quern.h>

#include "quern/host.h"
#include "tests/catch.h"
#include "tests/dsl/record.h"

using namespace quern::lang;
using quern::Error;
using quern::Field;
using quern::Func;
using quern::Kernel;

namespace {

/// The message that recording `f` ends with; its line is `line` of this file.
template <class F>
std::string message(int line, const F& f) {
  try {
    quern::test::record(f);
  } catch (const Error& e) {
    CHECK(std::string(e.loc().file).find("errors/jumps.cpp") != std::string::npos);
    CHECK(e.loc().line == line);
    return e.message();
  }
  FAIL("no error");
  return "";
}

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

const char* in_host_code =
    "a C++ function or loop that runs while recording cannot end under a device condition: use "
    "select(c, a, b), a Var, a loop over range(n), or a Func with Return(value)";

}  // namespace

TEST_CASE("a native jump in a parallel loop: Continue()") {
  auto text = message(__LINE__ + 2, [](Field<float> x) {
    for (auto i : x) {
      If(x[i] > 1) { return; }
      x[i] = 2;
    }
  });
  INFO(text);
  CHECK(says(text,
             "native break, return or goto left this recorded If block; here Continue() ends "
             "the iteration"));
  CHECK(!says(text, "Break()"));
  CHECK(!says(text, "Return()"));
  CHECK(says(text, in_host_code));

  Field<float> x{3};
  x.copy_from(std::vector<float>{0, 3, 1});
  Kernel k = [&] {
    for (auto i : x) {
      If(x[i] > 1) { Continue(); }
      x[i] = 2;
    }
  };
  k();
  CHECK(quern::to_vector(x) == std::vector<float>{2, 3, 2});
}

TEST_CASE("a native jump in a serial loop: Break() and Continue()") {
  auto text = message(__LINE__ + 3, [](Field<float> x) {
    for (auto i : x)
      for (auto k : range(10)) {
        If(x[i] > 2) { break; }
        x[i] = x[i] + cast<float>(k);
      }
  });
  INFO(text);
  CHECK(says(text, "here Break() leaves the loop, Continue() ends the iteration"));
  CHECK(!says(text, "Return()"));

  Field<float> x{2};
  x.copy_from(std::vector<float>{0, 9});
  Kernel k = [&] {
    for (auto i : x)
      for (auto n : range(10)) {
        If(x[i] > 2) { Break(); }
        If(n == 1) { Continue(); }
        x[i] = x[i] + cast<float>(n);
      }
  };
  k();
  CHECK(quern::to_vector(x) == std::vector<float>{5, 9});  // 0 + 0 + 2 + 3
}

TEST_CASE("a native jump at the level of a kernel: Return()") {
  auto text = message(__LINE__ + 1, [](I32 a) {
    If(a > 2) { return a; }
    return I32(0);
  });
  INFO(text);
  CHECK(says(text, "here Return(value) ends the kernel"));
  CHECK(!says(text, "Break()"));
  CHECK(!says(text, "Continue()"));
  text = message(__LINE__ + 1, [](I32 a, Field<int> x) {
    If(a > 2) { return; }
    x[0] = 1;
  });
  CHECK(says(text, "here Return() ends the kernel"));
  text = message(__LINE__ + 2, [](I32 a, Field<int> x) {
    for (auto k : serial(range(3))) {
      If(a > 2) { return; }
      x[k] = 1;
    }
  });
  CHECK(says(text, "Continue() ends the iteration, Return() ends the kernel"));
  text = message(__LINE__ + 2, [](F32 a) {
    Func f = [](F32 v) {
      If(v > 2) { return v; }
      return F32(0);
    };
    return f(a);
  });
  CHECK(says(text, "here Return(value) ends the function"));

  Kernel result = [](I32 a) {
    If(a > 2) { Return(a); }
    return I32(0);
  };
  CHECK(int(result(3)) == 3);
  CHECK(int(result(2)) == 0);
  Field<int> x{3};
  Kernel none = [&](I32 a) {
    for (auto k : serial(range(3))) {
      If(k >= a) { Return(); }
      x[k] = 1;
    }
    x[2] = 5;
  };
  none(1);
  CHECK(quern::to_vector(x) == std::vector<int>{1, 0, 0});
}

TEST_CASE("a native jump in a C++ function that a kernel calls") {
  int line = __LINE__ + 2;
  auto helper = [](F32 v) {
    If(v > 2) { return F32(2); }
    return v;
  };
  auto text = message(line, [&](Field<float> x) {
    for (auto i : x) x[i] = helper(x[i]);
  });
  CHECK(says(text, in_host_code));

  auto by_select = [](F32 v) { return select(v > 2, F32(2), v); };
  auto by_variable = [](F32 v) {
    Var<float> out = v;
    If(v > 2) { out = 2; }
    return F32(out);
  };
  Func by_function = [](F32 v) {
    If(v > 2) { Return(2); }
    return v;
  };
  auto by_loop = [](F32 v) {
    Var<float> out = v;
    for (auto k : range(10)) {
      If(out <= 2) { Break(); }
      out -= 1;
    }
    return F32(out);
  };
  Field<float> x{2}, y{2}, z{2}, w{2};
  for (const auto& field : {x, y, z, w}) field.copy_from(std::vector<float>{1, 5});
  Kernel k = [&] {
    for (auto i : x) {
      x[i] = by_select(x[i]);
      y[i] = by_variable(y[i]);
      z[i] = by_function(z[i]);
      w[i] = by_loop(w[i]);
    }
  };
  k();
  for (const auto& field : {x, y, z, w}) CHECK(quern::to_vector(field) == std::vector<float>{1, 2});
}

TEST_CASE("a call that a place refuses says what works there") {
  auto text = message(__LINE__ + 2, [](Field<float> x) {
    for (auto i : x) {
      If(x[i] > 1) { Return(); }
    }
  });
  INFO(text);
  CHECK(says(text, "Return() in a parallel loop; here Continue() ends the iteration"));
  CHECK(says(text, in_host_code));
  text = message(__LINE__ + 2, [](I32 a, Field<float> x) {
    for (int k = 0; k < 3; k++) {
      If(a > k) { Break(); }
      x[k] = 1;
    }
  });
  INFO(text);
  CHECK(says(text, "Break() outside a loop; here Return() ends the kernel"));
  CHECK(says(text, in_host_code));
}

TEST_CASE("a native continue in an If leaves it empty") {
  auto text = message(__LINE__ + 2, [](Field<float> x) {
    for (auto i : x) {
      If(x[i] > 1) { continue; }
      x[i] = 2;
    }
  });
  INFO(text);
  CHECK(says(text,
             "this If is empty: nothing was recorded in it; an If that is to do nothing is left out, "
             "and a native continue leaves one so; here Continue() ends the iteration"));
  text = message(__LINE__ + 2, [](I32 a, Field<float> x) {
    for (int k = 0; k < 3; k++) {
      If(a > k) { continue; }
      x[k] = 1;
    }
  });
  INFO(text);
  CHECK(!says(text, "Continue()"));
  CHECK(says(text, in_host_code));
}

TEST_CASE("a native jump in the condition of a While: no exit works there") {
  int line = __LINE__ + 2;
  auto bound = [](I32 a) {
    If(a > 2) { return I32(1); }
    return I32(2);
  };
  auto text = message(line, [&](I32 a, Field<int> x) { While(x[0] > bound(a)) x[0] += 1; });
  INFO(text);
  for (const char* refused : {"Continue() ends", "Break() leaves", "Return() ends"})
    CHECK(!says(text, refused));
  CHECK(says(text, in_host_code));
}

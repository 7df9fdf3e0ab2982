// Errors found while recording: class, message and line.
#include <optional>
#include <vector>

#include "tests/catch.h"
#include "tests/dsl/record.h"

using namespace quern::lang;
using quern::Error;
using quern::Field;
using quern::Func;
using quern::Loc;

namespace {

/// Recording `f` fails on `line` of this file with `text` in its message. (A function, since in a
/// macro's argument every line is the first.)
template <class F>
void fails(int line, const std::string& text, const F& f) {
  try {
    quern::test::record(f);
  } catch (const Error& e) {
    INFO(e.what() << "\nexpected " << line << ": " << text);
    CHECK(e.message().find(text) != std::string::npos);
    std::string file = e.loc().file;
    CHECK(file.find("errors/recording.cpp") != std::string::npos);
    CHECK(std::string(e.what()).rfind(file + ":" + std::to_string(line) + ": ", 0) == 0);
    return;
  }
  FAIL("no error: " << text);
}

}  // namespace

TEST_CASE("native jumps out of a recorded block") {
  fails(__LINE__ + 3, "native break, return or goto left this recorded If block; here Continue()",
        [](Field<float> x) {
          for (auto i : x) {
            If(x[i] > 0) { break; }
          }
        });
  fails(__LINE__ + 1, "left this recorded for loop", [](Field<float> x) {
    for (auto i : x) {
      x[i] = 0;
      break;
    }
  });
  fails(__LINE__ + 1, "left this recorded While block", [](Field<float> x, B1 c) {
    While(c) {
      x[0] = 0;
      return;
    }
  });
  fails(__LINE__ + 1, "left this recorded else block", [](Field<float> x, B1 c) {
    If(c) { x[0] = 0; }
    else {
      return;
    }
  });
  fails(__LINE__ + 1, "left this recorded If block", [](Field<float> x, B1 c) {
    for (auto _ : when(c)) {
      x[0] = 0;
      break;
    }
  });
}

TEST_CASE("exits where there is nothing to leave") {
  fails(__LINE__ + 4,
        "Break() in a parallel loop, whose iterations have no order; here Continue() ends the",
        [](Field<float> x) {
          for (auto i : x) {
            If(x[i] > 0) { Break(); }
          }
        });
  fails(__LINE__, "Break() outside a loop", [] { Break(); });
  fails(__LINE__ + 1, "Continue() outside a loop", [](B1 c) {
    If(c) { Continue(); }
  });
  fails(__LINE__ + 2, "Return() in a parallel loop; here Continue() ends the iteration",
        [](Field<float> x) {
          for (auto i : x) If(i > 3) Return();
        });
  fails(__LINE__ + 2,
        "Return(i32) in a kernel without a result: end it with a native `return value;`",
        [](I32 a) { Return(a); });
  fails(__LINE__ + 1, "Return(i32) in a kernel whose result is f32", [](I32 a, F32 b) {
    If(a > 0) { Return(a); }
    return b;
  });
  fails(__LINE__ + 1, "Return() in a kernel whose result is i32", [](I32 a) {
    If(a > 0) { Return(); }
    return a;
  });
  auto leaves = [] {
    Break();
    return true;
  };
  fails(__LINE__ - 3, "Break() outside a loop", [&](I32 n) {
    While(n > (leaves() ? 1 : 2)) { check(n > 0, "n"); }
  });
}

TEST_CASE("variables and parallel loops") {
  fails(__LINE__ + 4,
        "inside it, so iterations race; use +=, atomic_min(v, x), ... or declare it inside",
        [](Field<float> x) {
          Var<float> s = 0;
          for (auto i : x) s = max(s, x[i]);
        });
  fails(__LINE__ + 3, "by an operator that is no reduction, so iterations race",
        [](Field<float> x) {
          Var<float> s = 1;
          for (auto i : x) s /= x[i];
        });
  fails(__LINE__ + 4, "read inside the loop", [](Field<float> x, Field<float> y) {
    Var<float> s = 0;
    for (auto i : x) {
      s += x[i];
      y[i] = s;
    }
  });
  fails(__LINE__ + 4, "read inside the loop", [](Field<float> x, Field<float> y) {
    Var<float> s = 0;
    for (auto i : x) {
      y[i] = s;
      s += x[i];
    }
  });
  const int both = __LINE__;
  fails(both + 6, "two operators: add at " + std::string(__FILE__) + ":" + std::to_string(both + 5),
        [](Field<float> x) {
          Var<float> s = 0;
          for (auto i : x) {
            s += x[i];
            atomic_max(s, x[i]);
          }
        });
}

TEST_CASE("host values that do not fit") {
  fails(__LINE__ + 2,
        "the host value 3000000000 does not fit i32, the device type it meets; cast one side",
        [](I32 a) { (void)(a + 3000000000); });
  fails(__LINE__, "the host value -1 does not fit u32", [](U32 a) { (void)(a * -1); });
  fails(__LINE__, "the host value 1e+300 does not fit f32", [](F32 a) { (void)(a + 1e300); });
  fails(__LINE__, "the host value 256 does not fit u8", [](Field<uint8_t> x) { x[0] = 256; });
  fails(__LINE__, "the host value -129 does not fit i8", [](Field<int8_t> x) { x[0] = -129; });
  fails(__LINE__ + 1, "the host value 18446744073709551615 does not fit i64",
        [](I64 a) { (void)(a < ~0ull); });
  fails(__LINE__ + 1, "the host value 1099511627776 does not fit i32", [] {
    for (auto i : range(std::size_t(1) << 40)) (void)i;
  });
}

TEST_CASE("values used where they do not belong") {
  std::vector<F32> kept;
  const int origin = __LINE__ + 1;
  quern::test::record([&](F32 v) { kept.push_back(v * 2); });
  fails(__LINE__ + 3,
        "a value recorded in another kernel or function (at " + std::string(__FILE__) + ":" +
            std::to_string(origin),
        [&](Field<float> x) { x[0] = kept[0]; });
  fails(__LINE__ + 4, "is used outside it; declare a Var before the block and assign it there",
        [](Field<float> x, B1 c) {
          std::vector<F32> leaked;
          If(c) { leaked.push_back(x[0] * 2); }
          x[1] = leaked[0];
        });
  fails(__LINE__ + 1, "pass it as an argument", [](F32 outer) {
    Func f = [&](F32 a) { return a + outer; };
    (void)f(outer);
  });
  std::vector<decltype(std::declval<Field<float>>().indices())> ranges;
  const int made = __LINE__ + 1;
  quern::test::record([&](Field<float> x) { ranges.push_back(x.indices()); });
  fails(made, "pass it as an argument", [&] {
    for (auto i : ranges[0]) (void)i;
  });
  fails(made, "pass it as an argument", [&] {
    for (auto i : serial(ranges[0])) (void)i;
  });
  std::vector<Field<float>> fields;
  quern::test::record([&](Field<float> x) { fields.push_back(x); });
  fails(__LINE__ + 1, "a field parameter of another kernel (at ",
        [&](I32 i) { (void)fields[0][i]; });
}

TEST_CASE("device values outside a recording") {
  int line = 0;
  try {
    line = __LINE__ + 1;
    Var<float> v = 1.0f;
    (void)v;
    FAIL("no error");
  } catch (const Error& e) {
    CHECK(e.loc().line == line);
    CHECK(e.message().find("outside a kernel") != std::string::npos);
  }
}

TEST_CASE("blocks") {
  fails(__LINE__ + 1, "this If is empty: nothing was recorded in it", [](B1 c) {
    If(c) {}
  });
  fails(__LINE__ + 2, "here Continue() ends", [](Field<float> x, B1 c) {
    for (auto i : x) {
      If(c) { continue; }
      x[i] = 0;
    }
  });
  fails(__LINE__ + 2, "otherwise() does not follow a when()", [](Field<float> x) {
    x[0] = 1;
    for (auto _ : otherwise()) x[0] = 2;
  });
  fails(__LINE__ + 2, "deterministic() on a loop that is not parallel", [](Field<float> x) {
    for (auto i : x)
      for (auto k : deterministic(range(3))) x[i] = k;
  });
  auto leaves = [](I32 i) {
    Continue();
    return i > 3;
  };
  fails(__LINE__ + 3, "Break(), Continue() or Return() in an operand of && or ||",
        [&](Field<float> x) {
          for (auto i : x) {
            If(i > 2 && leaves(i)) x[i] = 0;
          }
        });
}

TEST_CASE("texts, axes, shapes") {
  fails(__LINE__, "the text has 2 places {} for 1 values", [](I32 n) { print("{} {}", n); });
  fails(__LINE__ + 1, "the text has 0 places {} for 1 values",
        [](I32 n) { check(n > 0, "fine", n); });
  fails(__LINE__, "at most 16 values", [](Mat4 m, I32 n) { print("{} {}", m, n); });
  fails(__LINE__, "at most 16 values", [](Mat4 m, I32 n) { check(n > 0, "{} {}", m, n); });
  fails(__LINE__ + 1, "dim(2) of a field with 2 axes, numbered from 0",
        [](Field<float, 2> u) { (void)u.dim(2); });
  fails(__LINE__ + 1, "a field parameter has no shape and no elements while its kernel is recorded",
        [](Field<float> x) { (void)x.size(); });
}

TEST_CASE("a function cannot call itself") {
  auto at = [](int line) { return "errors/recording.cpp:" + std::to_string(line); };
  fails(__LINE__ + 1, "a function cannot call itself", [](F32 a) {
    Func<F32(F32)> f = [&](F32 x) { return f(x - 1); };
    (void)f(a);
  });
  fails(__LINE__ + 2, "calls itself", [](F32 a) {
    std::optional<Func<F32(F32)>> f;
    f.emplace([&](F32 x) { return (*f)(x - 1); });
    (void)(*f)(a);
  });
  // Through another: the cycle names both.
  int second = __LINE__ + 4;
  try {
    quern::test::record([](F32 a) {
      Func<F32(F32)> f = [&](F32 x) {
        Func g = [&](F32 y) { return f(y) + 1; };
        return g(x);
      };
      (void)f(a);
    });
    FAIL("no error");
  } catch (const Error& e) {
    INFO(e.what());
    std::string text = e.message();
    CHECK(e.loc().line == second);
    CHECK(text.find(" calls the one begun at ") != std::string::npos);
    CHECK(text.find(at(second) + ", which calls the first again") != std::string::npos);
  }
  // A copy taken while it is recorded is empty.
  fails(__LINE__ + 3, "holds no function", [](F32 a) {
    Func<F32(F32)> f = [&](F32 x) {
      auto copy = f;
      return copy(x);
    };
    (void)f(a);
  });
}

namespace {
Func<F32(F32)> endless() {
  return [](F32 x) { return endless()(x); };
}
}  // namespace

TEST_CASE("a function that records itself anew never ends") {
  fails(__LINE__ - 5, "a function that records itself never ends",
        [](F32 a) { (void)endless()(a); });
}

TEST_CASE("an exception of the user's drops the recording, and the next one is sound") {
  struct Mine {};
  CHECK_THROWS_AS(quern::test::record([](Field<float> x) {
                    for (auto i : x) {
                      If(x[i] > 0) { throw Mine(); }
                    }
                  }),
                  Mine);
  CHECK(quern::test::record([](F32 a) { return a; })->results.size() == 1);
}

TEST_CASE("the first error is the one thrown") {
  fails(__LINE__ + 1, "3000000000", [](I32 a) {
    (void)(a + 3000000000);
    Break();
  });
}

TEST_CASE("two effects in one expression") {
  const char* order = "two operations with effects (random, atomics) in one expression";
  fails(__LINE__ + 1, order, [](Field<int> x) {
    for (auto i : x) x[i] = cast<int>(random<float>() * 9) - atomic_add(x[0], 1);
  });
  // Draws that cannot change places: under a guard, in a function, in a loop.
  Func drawn = [](I32 n) { return n + random<int>(); };
  fails(__LINE__ + 1, order, [&](Field<int> x) {
    for (auto i : x) x[i] = drawn(i) - drawn(1);
  });
  fails(__LINE__ + 1, order, [](Field<int> x) {
    for (auto i : x) x[i] = max(atomic_add(x[0], 1), 2 * atomic_add(x[0], 1));
  });
  // One effect used twice, one that takes two words, and statements on one line are in order.
  quern::test::record([](Field<double> x) {
    for (auto i : x) {
      auto draw = [] { return random<double>(); };
      auto a = draw(), b = draw();
      auto old = atomic_add(x[0], 1), older = atomic_add(x[0], a);
      x[i] = a * a - b + (old - older) * draw();
    }
  });
}

TEST_CASE("blocks of iterations") {
  fails(__LINE__ + 1, "a block of 0 iterations; allowed are 1 to 1024", [](Field<float> x) {
    for (auto i : block_size(x, 0)) x[i] = 0;
  });
  fails(__LINE__ + 1, "a block of 2000 iterations", [](Field<float> x) {
    for (auto i : block_size(x, 2000)) x[i] = 0;
  });
  fails(__LINE__ + 2, "block_size() on a loop that is not parallel", [](Field<float> x) {
    for (auto i : x)
      for (auto j : block_size(range(4), 2)) x[i] = x[j];
  });
}

TEST_CASE("the old value of a reduction") {
  fails(__LINE__ + 4, "the old value of a reduction is used here", [](Field<int> x) {
    Var<int> sum = 0;
    for (auto i : x) {
      auto old = atomic_add(sum, 1);
      x[i] = old;
    }
  });
}

TEST_CASE("reassociate() in a strict kernel") {
  Func sum = [](F32 a, F32 b, F32 c) {
    Var<float> s = 0;
    for (auto _ : reassociate()) s = a + b + c;
    return s;
  };
  const int function_line = __LINE__ - 3;
  auto refused_at = [](int line, auto body) {
    try {
      quern::Kernel k{body, {.strict = true}};
      FAIL("no error");
    } catch (const Error& e) {
      CHECK(e.loc().line == line);
      CHECK(e.message().find("reassociate() in a strict kernel") != std::string::npos);
    }
  };
  refused_at(__LINE__ + 2, [](Field<float> x) {
    for (auto i : x)
      for (auto _ : reassociate()) x[i] = x[i] + 1 + 2;
  });
  refused_at(function_line, [&](Field<float> x) {
    for (auto i : x) x[i] = sum(x[i], 1, 2);
  });
}

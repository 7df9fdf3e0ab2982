// Loops, branches, exits, reductions, functions and results: what is recorded.
#include "tests/catch.h"
#include "tests/dsl/record.h"

using namespace quern::lang;
using quern::Field;
using quern::test::record;
using quern::test::recorded;

namespace {
size_t count(const std::string& text, const std::string& word) {
  size_t n = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) n++;
  return n;
}
}  // namespace

TEST_CASE("recorded: saxpy") {
  CHECK(recorded([](F32 a, Field<float> x, Field<float> y) {
          for (auto i : y) {
            auto v = a * x[i];
            y[i] = v;
          }
        }) ==
        "body {\n"
        "%0 = param<0> : f32\n"
        "parallel over=2 {(%1: i32)\n"
        "%2 = load<1.0> %1 : f32\n"
        "%3 = mul %0, %2 : f32\n"
        "%4 = load<2.0> %1 : f32\n"
        "store<2.0> %1, %3\n"
        "yield\n"
        "}\n"
        "yield\n"
        "}\n");
}

TEST_CASE("recorded: a loop is parallel unless it stands inside a parallel one") {
  std::string text = recorded([](Field<float, 2> u, I32 n) {
    for (auto i : range(n)) {
      (void)i;
      for (auto k : range(2, n)) (void)k;
    }
    for (auto [i, j] : grid(n, 7)) (void)(i + j);
    for (auto I : u) (void)(I.x + I.y);
    for (auto i : serial(range(n))) {
      (void)i;
      for (auto [a, b] : u) (void)(a + b);  // parallel: the serial loop stands at kernel level
    }
  });
  CHECK(count(text, "parallel ") == 4);
  CHECK(count(text, "loop ") == 2);
}

TEST_CASE("recorded: a loop over a field names it where it is parallel, and has bounds elsewhere") {
  const std::string parallel = recorded([](Field<float, 2> u) {
    auto all = u.wide();
    for (auto i : all) (void)i.x;
    for (auto i : deterministic(block_size(all, 32))) (void)i.x;
  });
  CHECK(count(parallel, "parallel over=0 {") == 1);
  CHECK(count(parallel, "parallel over=0 deterministic block=32 {") == 1);
  CHECK(count(parallel, "(%0: i64, %1: i64)") == 1);
  CHECK(count(parallel, "extent<") == 0);
  const char* bounds =
      "%0 = first<0.0> : i32\n"
      "%1 = extent<0.0> : i32\n"
      "%2 = add %0, %1 : i32\n";
  const std::string serially = recorded([](Field<float> x) {
    for (auto i : serial(x.indices())) (void)i;
  });
  CHECK(count(serially, bounds) == 1);
  CHECK(count(serially, "loop %0, %2, %3") == 1);
  const std::string axis = recorded([](Field<float> x) {
    for (auto [i, k] : grid(x.indices(), 4)) (void)(i + k);
  });
  CHECK(count(axis, "%2 = extent<0.0> : i32\n") == 1);
  CHECK(count(axis, "parallel %1, %3, %0, %4 {") == 1);
  const std::string inner = recorded([](Field<float> x, I32 n) {
    for (auto i : range(n)) {
      (void)i;
      for (auto k : x) (void)k;
    }
  });
  CHECK(count(inner, "over=") == 0);
  CHECK(count(inner, "loop ") == 1);
}

TEST_CASE("recorded: index types") {
  std::string text = recorded([](Field<float> x, I64 n) {
    for (auto i : range(n)) (void)(i + 1);
    for (auto i : x.wide()) (void)(i + 1);
    (void)x.dim<int64_t>(0);
  });
  CHECK(count(text, "(%3: i64)") == 0);
  CHECK(count(text, ": i64)") == 2);
  CHECK(count(text, "parallel over=0 {(") == 1);
}

TEST_CASE("recorded: deterministic loops say so") {
  std::string text = recorded([](Field<float> x) {
    Var<float> s = 0;
    for (auto i : deterministic(x)) s += x[i];
  });
  CHECK(count(text, " deterministic") == 1);
}

TEST_CASE("recorded: exits name the loops they leave") {
  CHECK(recorded([](Field<int> x) {
          for (auto i : x) {
            for (auto [a, b, c] : grid(2, 3, 4)) {
              If(a == b) { Continue(); }
              If(a == c) { Break(); }
            }
            While(x[i] > 0) {
              If(i == 3) { Break(); }
              x[i] = 0;
            }
            If(i == 2) { Continue(); }
            x[i] = 1;
          }
        }) ==
        "body {\n"
        "parallel over=0 {(%0: i32)\n"
        "%1 = constant<0> : i32\n"
        "%2 = constant<2> : i32\n"
        "%3 = constant<3> : i32\n"
        "%4 = constant<4> : i32\n"
        "%5 = constant<1> : i32\n"
        "loop %1, %2, %5 {(%6: i32)\n"
        "%7 = constant<1> : i32\n"
        "loop %1, %3, %7 {(%8: i32)\n"
        "%9 = constant<1> : i32\n"
        "loop %1, %4, %9 {(%10: i32)\n"
        "%11 = eq %6, %8 : b1\n"
        "if %11 {\n"
        "continue<0>\n"
        "} {\n"
        "yield\n"
        "}\n"
        "%12 = eq %6, %10 : b1\n"
        "if %12 {\n"
        "break<3>\n"
        "} {\n"
        "yield\n"
        "}\n"
        "yield\n"
        "}\n"
        "yield\n"
        "}\n"
        "yield\n"
        "}\n"
        "while {\n"
        "%13 = load<0.0> %0 : i32\n"
        "%14 = constant<0> : i32\n"
        "%15 = gt %13, %14 : b1\n"
        "yield %15\n"
        "} {\n"
        "%16 = constant<3> : i32\n"
        "%17 = eq %0, %16 : b1\n"
        "if %17 {\n"
        "break<1>\n"
        "} {\n"
        "yield\n"
        "}\n"
        "%18 = constant<0> : i32\n"
        "%19 = load<0.0> %0 : i32\n"
        "store<0.0> %0, %18\n"
        "yield\n"
        "}\n"
        "%20 = constant<2> : i32\n"
        "%21 = eq %0, %20 : b1\n"
        "if %21 {\n"
        "continue<0>\n"
        "} {\n"
        "yield\n"
        "}\n"
        "%22 = constant<1> : i32\n"
        "%23 = load<0.0> %0 : i32\n"
        "store<0.0> %0, %22\n"
        "yield\n"
        "}\n"
        "yield\n"
        "}\n");
}

TEST_CASE("recorded: what follows an exit in its block is dropped") {
  CHECK(recorded([](Field<int> x, B1 c) {
          for (auto i : x) {
            If(c) {
              Continue();
              x[i] = 3;
            }
          }
        }).find("store") == std::string::npos);
}

TEST_CASE("recorded: branches with and without macros record alike") {
  auto with = recorded([](Field<int> x, I32 n) {
    If(n > 1) { x[0] = 1; }
    else If(n > 0) {
      x[0] = 2;
    }
    else {
      x[0] = 3;
    }
    While(n > 5) { x[1] = 4; }
  });
  auto without = recorded([](Field<int> x, I32 n) {
    for (auto _ : when(n > 1)) x[0] = 1;
    for (auto _ : otherwise()) {
      for (auto _e : when(n > 0)) x[0] = 2;
      for (auto _e : otherwise()) x[0] = 3;
    }
    for (auto _ : repeat_while([&] { return n > 5; })) x[1] = 4;
  });
  CHECK(with == without);
}

TEST_CASE("recorded: updates of a kernel-level variable in a parallel loop are reductions") {
  std::string text = recorded([](Field<int> x) {
    Var<int> sum = 0, low = 100, all = -1, product = 1;
    Var<double> wide = 0;
    for (auto i : x) {
      sum += x[i];
      sum -= 1;
      atomic_min(low, x[i]);
      all &= x[i];
      product *= x[i];
      wide += x[i];
      Var<int> mine = 0;  // inside: an ordinary variable
      mine += 1;
    }
    sum += 1;  // after: an ordinary update
  });
  CHECK(count(text, "reduce.add") == 3);
  CHECK(count(text, "reduce.min") == 1);
  CHECK(count(text, "reduce.bit_and") == 1);
  CHECK(count(text, "reduce.mul") == 1);
}

TEST_CASE("recorded: a variable may be reduced by one loop and read by the next") {
  std::string text = recorded([](Field<float> x) {
    Var<float> s = 0;
    for (auto i : x) s += x[i];
    for (auto i : x) x[i] = x[i] / s;
  });
  CHECK(count(text, "reduce.add") == 1);
  CHECK(count(text, "get ") == 1);
}

TEST_CASE("recorded: parameters are numbered before captures and in order") {
  auto kernel = record([](B1 a, Field<bool, 2> m, I32 n) { If(a) m(n, n) = true; });
  REQUIRE(kernel->bindings.size() == 3);
  CHECK(kernel->bindings[0].kind == quern::ir::Binding::scalar);
  CHECK(kernel->bindings[1].kind == quern::ir::Binding::field);
  CHECK(int(kernel->bindings[1].rank) == 2);
  CHECK(kernel->bindings[1].components[0].type == quern::ir::Type::b1);
  CHECK(kernel->bindings[1].components[0].exact);
  CHECK(kernel->bindings[2].components[0].type == quern::ir::Type::i32);
}

TEST_CASE("recorded: results") {
  auto one = record([](F32 a) {
    If(a > 1) { Return(0); }  // a literal takes the result's type
    return a;
  });
  REQUIRE(one->results.size() == 1);
  CHECK(one->results[0] == quern::ir::Type::f32);
  auto two = record([](F32 a, I32 b) { return result(a + 1, b); });
  REQUIRE(two->results.size() == 2);
  CHECK(two->results[0] == quern::ir::Type::f32);
  CHECK(two->results[1] == quern::ir::Type::i32);
  CHECK(record([](F32) {})->results.empty());
}

TEST_CASE("recorded: a function is recorded once and called") {
  quern::Func twice = [](F32 x) { return x + x; };
  quern::Func four = [&](F32 x) {
    If(x > 100) { Return(x); }
    return twice(twice(x));
  };
  auto kernel = record([&](Field<float> x) {
    for (auto i : x) x[i] = four(x[i]) + twice(x[i]);
  });
  REQUIRE(kernel->callees.size() == 2);
  for (const auto& f : kernel->callees) {
    REQUIRE(f.results.size() == 1);
    CHECK(f.results[0] == quern::ir::Type::f32);
    CHECK(f.body->args.size() == 1);
  }
  std::string text = quern::ir::print(*kernel);
  CHECK(count(text, "call<") == 4);
}

TEST_CASE("recorded: every operation carries the user's line") {
  auto kernel = record([](F32 a, Field<float> x) {
    for (auto i : x) {
      auto t = a * a;
      x[i] = t;
    }
  });
  const int first = __LINE__ - 5;
  int mul = 0, store = 0, loop = 0;
  quern::ir::walk(*kernel, [&](quern::ir::Inst* inst) {
    if (inst->is(quern::ir::Op::mul)) mul = inst->loc.line;
    if (inst->is(quern::ir::Op::store)) store = inst->loc.line;
    if (inst->is(quern::ir::Op::parallel)) loop = inst->loc.line;
    CHECK(inst->loc.line >= first - 1);
  });
  CHECK(loop == first);
  CHECK(mul == first + 1);
  CHECK(store == first + 2);
}

TEST_CASE("recorded: print and check carry their text") {
  auto kernel = record([](I32 n) {
    print("n {{}} is {}", n);
    check(n > 0, "{} and {}", n, 2.5);
  });
  REQUIRE(kernel->sites.size() == 2);
  CHECK(kernel->sites[0].kind == quern::ir::Site::print);
  CHECK(kernel->sites[0].values.size() == 1);
  CHECK(kernel->sites[1].kind == quern::ir::Site::check);
  REQUIRE(kernel->sites[1].values.size() == 2);
  CHECK(kernel->sites[1].values[1] == quern::ir::Type::f64);
}

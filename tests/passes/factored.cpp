// Where factor_sums sums products in place of what is linear in them, and where it leaves all as it was.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "ir/passes/registry.h"
#include "quern/ir/text.h"
#include "quern/ir/verify.h"
#include "tests/catch.h"
#include "tests/passes/meaning.h"

using namespace quern;
using namespace quern::ir;

namespace {

/// What the derivative of Σ w |L (x - μ)|² / 2 by L is, for 4 matrices of 3 rows.
const std::string moments = R"(
quern 1
kernel @moments level=structured modes=contract
binding field rank=2 f64 "x"
binding field rank=2 f64 "w"
binding field rank=2 f64 "mu"
binding field rank=3 f64 "L"
binding field rank=3 f64 "adjoints"
body {
  %zero = constant<0> : i32
  %one = constant<1> : i32
  %rows = constant<3> : i32
  %parts = constant<4> : i32
  %n = extent<0.0> : i32
  %rank = extent<0.1> : i32
  parallel %zero, %n {(%p: i32)
    loop %zero, %parts, %one {(%k: i32)
      %w = load<1.0> %p, %k : f64
      loop %zero, %rows, %one {(%r: i32)
        %none = constant<0> : f64
        %t = loop %zero, %rows, %one, %none : f64 {(%j: i32, %sum: f64)
          %l = load<3.0> %k, %r, %j : f64
          %x = load<0.0> %p, %j : f64
          %m = load<2.0> %k, %j : f64
          %d = sub %x, %m : f64
          %ld = mul %l, %d : f64
          %more = add.distribute %sum, %ld : f64
          yield %more
        }
        %s = mul %w, %t : f64
        loop %zero, %rows, %one {(%j2: i32)
          %x2 = load<0.0> %p, %j2 : f64
          %m2 = load<2.0> %k, %j2 : f64
          %d2 = sub %x2, %m2 : f64
          %v = mul %s, %d2 : f64
          %o0 = atomic.add<4.0> %k, %r, %j2, %v : f64
          yield
        }
        yield
      }
      yield
    }
    yield
  }
  yield
}
)";

using Change = std::pair<std::string, std::string>;

bool is_factored(const std::vector<Change>& changes) {
  std::string text = moments;
  for (const auto& [from, to] : changes) {
    REQUIRE(text.find(from) != std::string::npos);
    for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
      text.replace(at, from.size(), to);
  }
  auto kernel = parse(text, "moments");
  expect_valid(*kernel, "parsing");
  const auto before = clone(*kernel);
  for (const char* pass : {"split_tasks", "bind", "factor_sums"}) {
    pass_named(pass)->run(*kernel);
    expect_valid(*kernel, pass);
  }
  const std::string difference = test::difference(*before, *kernel);
  INFO(difference);  // some kernels are too large for the fields and time that it has
  CHECK((difference.empty() || difference.find(": the case ") != std::string::npos));
  return std::ranges::any_of(kernel->bindings,
                             [](const Binding& b) { return b.kind == Binding::buffer; });
}

}  // namespace

TEST_CASE("products are summed where they are fewer than what computes the sums") {
  CHECK(is_factored({}));
  SECTION("also behind a loop for which it does not pay") {
    const std::string first = "  parallel %zero, %n {(%p: i32)\n";
    CHECK(is_factored({{first, first + R"(
    loop %zero, %parts, %one {(%q: i32)
      loop %zero, %rows, %one {(%a: i32)
        %xa = load<0.0> %p, %a : f64
        %fa = sqrt %xa : f64
        loop %zero, %rows, %one {(%c: i32)
          %xc = load<0.0> %p, %c : f64
          %gc = floor %xc : f64
          %fg = mul %fa, %gc : f64
          %o9 = atomic.add<4.0> %q, %a, %c, %fg : f64
          yield
        }
        yield
      }
      yield
    }
)"}}));
  }
  SECTION("not where sums may not be taken apart: they may cancel in each iteration") {
    CHECK_FALSE(is_factored({{"add.distribute", "add.reassociate"}}));
  }
  SECTION("not in an index that no task has") {
    CHECK_FALSE(is_factored({{"loop %zero, %parts, %one {(%k: i32)",
                              "loop %uzero, %uparts, %uone {(%uk: u32)\n%k = convert %uk : i32"},
                             {"%zero = constant<0> : i32",
                              "%zero = constant<0> : i32\n"
                              "%uzero = constant<0> : u32\n"
                              "%uone = constant<1> : u32\n"
                              "%uparts = constant<4> : u32"}}));
  }
  SECTION("not where the order counts, or an error names the iteration") {
    CHECK_FALSE(is_factored({{"modes=contract", "modes=strict"}}));
    CHECK_FALSE(is_factored({{"modes=contract", "modes=checked,contract"}}));
  }
  SECTION("not in f32, where products of more factors leave the range sooner") {
    CHECK_FALSE(is_factored({{"f64", "f32"}}));
  }
  SECTION("where a known number of iterations pays for the tasks") {
    CHECK(is_factored({{"%n = extent<0.0>", "%n = constant<100000>"}}));
    CHECK_FALSE(is_factored({{"%n = extent<0.0>", "%n = constant<100>"}}));
  }
  SECTION("not where rounds are not known, or many") {
    CHECK_FALSE(is_factored({{"%parts = constant<4>", "%parts = extent<1.1>"}}));
    CHECK_FALSE(is_factored({{"%parts = constant<4>", "%parts = constant<4097>"}}));
    CHECK_FALSE(is_factored({{"%rows = constant<3>", "%rows = extent<0.1>"}}));
    CHECK_FALSE(is_factored({{"%rows = constant<3>", "%rows = constant<17>"}}));
  }
  SECTION("not where the place is the iteration's") {
    CHECK_FALSE(is_factored({{"<4.0> %k, %r, %j2, %v", "<4.0> %p, %r, %j2, %v"}}));
  }
  SECTION("not where others see what is added") {
    CHECK_FALSE(is_factored({{"load<1.0> %p, %k", "load<4.0> %p, %k, %zero"}}));
    CHECK_FALSE(is_factored({{"%s = mul %w, %t : f64",
                              "%s = mul %w, %t : f64\n"
                              "store<4.0> %k, %r, %zero, %s"}}));
  }
  SECTION("not where a coefficient is the iteration's, or changes") {
    CHECK_FALSE(is_factored({{"load<3.0> %k, %r, %j", "load<3.0> %p, %r, %j"}}));
    CHECK_FALSE(is_factored({{"%s = mul %w, %t : f64",
                              "%s = mul %w, %t : f64\n"
                              "store<3.0> %p, %r, %zero, %s"}}));
  }
}

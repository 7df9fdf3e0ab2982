// Arrays with an element for each iteration of a strip: what is masked as iterations end is not their
// elements, so that a round's load does not wait for the stores of the round before.
#include <cmath>
#include <regex>
#include <string>
#include <vector>

#include "tests/backend/harness/harness.h"
#include "tests/cpu/instructions/x86.h"

using namespace quern;

namespace {

constexpr int rounds = 5;

/// x[i] / 2 becomes its half and 1, as often as there are rounds; x[i] 1 more than that. Iterations are
/// no more than 256. `slot`: the instruction that makes what crosses rounds.
std::string halved(const std::string& slot) {
  return R"(quern 1
  kernel @halved level=lowered modes=contract
  task range rank=1 walk=chunked domain { yield } {
    %x = arg<64> : address
    %lo = builtin.begin : i64
    %hi = builtin.end : i64
    %n = sub %hi, %lo : i64
    %zero = constant<0> : i64
    %one = constant<1> : i64
    %four = constant<4> : i64
    %rounds = constant<)" +
         std::to_string(rounds) + R"(> : i64
    %half = constant<0.5> : f32
    %unit = constant<1> : f32
    %a = )" +
         slot + R"(<256> : slot f32
    loop.parallel_walk.brief %zero, %n, %one {(%i: i64)
      %k = add %lo, %i : i64
      %o = mul %k, %four : i64
      %p = offset %x, %o : address
      %v = read<1> %p : f32
      %h = mul %v, %half : f32
      put %a, %i, %h
      yield
    }
    loop %zero, %rounds, %one {(%r: i64)
      loop.parallel_walk.brief %zero, %n, %one {(%i: i64)
        %v = get %a, %i : f32
        %h = mul %v, %half : f32
        %w = add %h, %unit : f32
        put %a, %i, %w
        yield
      }
      yield
    }
    loop.parallel_walk.brief %zero, %n, %one {(%i: i64)
      %k = add %lo, %i : i64
      %o = mul %k, %four : i64
      %p = offset %x, %o : address
      %v = get %a, %i : f32
      %w = add %v, %unit : f32
      write<1> %p, %w
      yield
    }
    yield
  })";
}

/// Vector accesses with a mask.
struct Counts {
  int loads, stores;
};

std::string optimised(const test::X86& cpu, const std::string& slot) {
  return test::compiler(test::driver("cpu"))
      .listing(*ir::parse(halved(slot)), test::target_of(cpu), "llvm-optimised");
}

Counts masked(const test::X86& cpu, const std::string& slot) {
  const std::string code = optimised(cpu, slot);
  const auto calls = [&](const std::string& name) {
    const std::regex call("call [^\n]*@llvm\\.masked\\." + name);
    return int(std::distance(std::sregex_iterator(code.begin(), code.end(), call), {}));
  };
  return {calls("load"), calls("store")};
}

}  // namespace

TEST_CASE("an array of a strip is read and written whole where lanes are masked") {
  for (const test::X86& cpu : test::with_avx512) {
    INFO(cpu.name);
    const Counts whole = masked(cpu, "slot.unset"), others = masked(cpu, "slot");
    CHECK(whole.loads == 1);  // of the field
    CHECK(whole.stores == 1);
    CHECK(others.loads > 1);
    CHECK(others.stores > 1);
  }
}

TEST_CASE("arrays of strips are a line of 64 bytes longer, not to share sets of the cache") {
  for (const test::X86& cpu : test::with_avx512) {
    INFO(cpu.name);
    CHECK(optimised(cpu, "slot.unset").find("[272 x float]") != std::string::npos);
    CHECK(optimised(cpu, "slot").find("[256 x float]") != std::string::npos);
  }
}

TEST_CASE("strips of any number of iterations leave alone what is behind their ends") {
  runtime::Driver& driver = test::driver("cpu");
  for (const int64_t end : {1, 15, 16, 17, 77, 255, 256}) {
    INFO(end);
    const test::Buffer x(driver, std::vector<float>(300, 8));
    test::Program(driver, halved("slot.unset")).entry(0, x).run(0, end, 3);
    std::vector<float> expected(300, 8);
    std::fill_n(expected.begin(), end, 3 + 2 * std::pow(0.5f, float(rounds)));
    CHECK(x.read<float>() == expected);
  }
}

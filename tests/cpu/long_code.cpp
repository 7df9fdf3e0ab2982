// Long code: its loops are there once, and what is wanted much later waits in memory.
#include <string>
#include <vector>

#include "quern/ir/text.h"
#include "tests/backend/harness/harness.h"

using namespace quern;

namespace {

/// x[i] becomes what `steps` sums of halves lead to, and as many that take those up again, the last one
/// first.
std::string there_and_back(int steps) {
  std::string body = R"(
      %o = mul %i, %four : i64
      %px = offset %x, %o : address
      %v0 = read<1> %px : f32)";
  const auto step = [&](const std::string& made, const std::string& from, const std::string& with) {
    body += "\n      %h" + made + " = mul %" + from + ", %half : f32";
    body += "\n      %" + made + " = add %h" + made + ", %" + with + " : f32";
  };
  const auto v = [](int k) { return "v" + std::to_string(k); };
  const auto t = [&](int k) { return k == 0 ? v(steps) : "t" + std::to_string(k); };
  for (int k = 0; k < steps; k++) step(v(k + 1), v(k), v(k / 2));
  for (int k = 0; k < steps; k++) step(t(k + 1), t(k), v(steps - 1 - k));
  body += "\n      write<1> %px, %" + t(steps);
  return test::each(test::driver("cpu"), R"(
    %x = arg<64> : address
    %four = constant<4> : i64
    %half = constant<0.5> : f32)",
                    body);
}

float on_host(float x, int steps) {
  std::vector<float> v = {x};
  for (int k = 0; k < steps; k++) v.push_back(v[size_t(k)] * 0.5f + v[size_t(k / 2)]);
  float t = v.back();
  for (int k = 0; k < steps; k++) t = t * 0.5f + v[size_t(steps - 1 - k)];
  return t;
}

/// `axes`: of the loop, whose last one this walks.
std::string optimised(int steps, const std::string& isa, int axes = 1) {
  std::string code = there_and_back(steps);
  const std::string rank = "range rank=";
  code.replace(code.find(rank) + rank.size(), 1, std::to_string(axes));
  const auto kernel = ir::parse(code);
  runtime::Target target = test::driver("cpu").target();
  target.isa = isa;
  return test::compiler(test::driver("cpu")).listing(*kernel, target, "llvm-optimised");
}

int count(const std::string& text, const std::string& what) {
  int found = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) found++;
  return found;
}

bool is_x86() { return test::driver("cpu").target().isa.starts_with("x86-64"); }

const std::string avx2 = "x86-64 +avx2 +fma";
const std::string avx512 = avx2 + " +avx512f +evex512 +avx512bw +avx512vl";

}  // namespace

TEST_CASE("what long code wants much later waits in memory") {
  if (!is_x86()) NOT_RUN("the CPU is not of x86-64");
  constexpr int steps = 600;
  const std::string text = optimised(steps, avx512);
  // A vector for each step but those that there are registers for; each is stored and loaded once
  // for the way back, and some of the first half once more for the second.
  CHECK(count(text, "store volatile <16 x float>") > steps - 32);
  CHECK(count(text, "store volatile <16 x float>") < steps);
  CHECK(count(text, "load volatile <16 x float>") > steps - 32);
  CHECK(count(text, "load volatile <16 x float>") < steps + steps / 2);
  CHECK(count(optimised(100, avx512), "volatile") == 0);
}

TEST_CASE("long loops are one loop over vectors, where CPUs mask lanes") {
  if (!is_x86()) NOT_RUN("the CPU is not of x86-64");
  constexpr int steps = 300;
  const std::string text = optimised(steps, avx512);
  CHECK(count(text, "llvm.masked.store.v16f32.p0(") == 2);  // the store, and its declaration
  CHECK(count(text, "fmul") == 2 * steps);
  CHECK(count(optimised(20, avx512), "llvm.masked.store") == 0);
  CHECK(count(optimised(steps, avx2), "llvm.masked.store") == 0);
}

TEST_CASE("rows of several are one loop over vectors, where bodies take more than masks do") {
  if (!is_x86()) NOT_RUN("the CPU is not of x86-64");
  const auto masked = [](int steps, const std::string& isa, int axes) {
    return count(optimised(steps, isa, axes), "llvm.masked.store");
  };
  constexpr int steps = 30;
  CHECK(masked(steps, avx512, 2) == 2);
  CHECK(count(optimised(steps, avx512, 2), "fmul") == 2 * steps);  // and no other loop
  CHECK(masked(steps, avx512, 1) == 0);
  CHECK(masked(steps, avx2, 2) == 0);
}

TEST_CASE(
    "rows of several are whole vectors, and one with some lanes masked, where bodies take less") {
  if (!is_x86()) NOT_RUN("the CPU is not of x86-64");
  constexpr int steps = 10;
  const std::string text = optimised(steps, avx512, 2);
  CHECK(count(text, "llvm.masked.store") == 2);  // the one, and its declaration
  CHECK(count(text, "store <16 x float>") == 1);
  CHECK(count(optimised(steps, avx512, 1), "llvm.masked.store") == 0);
  CHECK(count(optimised(steps, avx2, 2), "llvm.masked.store") == 0);
}

TEST_CASE("long loops leave alone what is behind their ends") {
  runtime::Driver& driver = test::driver("cpu");
  for (const int steps : {20, 300, 900}) {
    const test::Buffer x(driver, std::vector<float>(100, 1.5f));
    test::Program(driver, there_and_back(steps)).entry(0, x).run(0, 77, 3);
    std::vector<float> expected(100, 1.5f);
    std::fill_n(expected.begin(), 77, on_host(1.5f, steps));
    CHECK(x.read<float>() == expected);
  }
}

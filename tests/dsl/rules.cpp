// Functions of the library with a derivative of their own: calls from the recording to the end of
// optimising, code of the kernel's from there on.
#include <quern/decompose.h>
#include <quern/matrix.h>

#include <algorithm>
#include <string>
#include <vector>

#include "quern/ir/lower.h"
#include "tests/catch.h"
#include "tests/dsl/record.h"

using namespace quern;
using namespace quern::lang;

namespace {

/// The functions of a kernel by the rules of their derivatives, in order; "" is a user's.
std::vector<std::string> rules(const ir::Kernel& kernel) {
  std::vector<std::string> out;
  for (const ir::Function& f : kernel.callees) out.push_back(f.derivative);
  return out;
}
using Rules = std::vector<std::string>;

/// How often a kernel's body applies such functions.
size_t applied(const ir::Kernel& kernel) {
  size_t count = 0;
  ir::walk(kernel.body, [&](const ir::Inst* inst) { count += inst->is(ir::Op::apply); });
  return count;
}

std::unique_ptr<ir::Kernel> optimised(const ir::Kernel& kernel) {
  auto copy = ir::clone(kernel);
  ir::finish_recording(*copy);
  ir::optimise(*copy);
  return copy;
}

}  // namespace

TEST_CASE("rules: a function is recorded once a kernel for each of its types") {
  auto kernel = test::record([](Val<mat2> a, Val<mat3> b, Val<dmat2> c) {
    auto [u, s, v] = svd(a);
    auto [p, t, q] = svd(a + u);
    auto of_b = svd(b);
    auto of_c = svd(c);
    return result(s, t, of_b.s, of_c.s, inverse(a), determinant(a));
  });
  CHECK(rules(*kernel) == Rules{"svd", "svd", "svd", "inverse"});
  CHECK(applied(*kernel) == 5);
  std::vector<size_t> sizes;
  for (const ir::Function& f : kernel->callees) {
    sizes.push_back(f.body->args.size());
    sizes.push_back(f.results.size());
  }
  CHECK(sizes == std::vector<size_t>{4, 10, 9, 21, 4, 10, 4, 4});
}

TEST_CASE("rules: systems with as many numbers on their left are told apart") {
  auto kernel = test::record([](Val<mat2> a, Val<Mat<float, 2, 4>> b, Val<mat3> c, Val<vec3> d) {
    return result(solve(a, b), solve(c, d), solve(c, transpose(c)), solve(mat2(1, 2, 3, 4), b));
  });
  CHECK(rules(*kernel) == Rules{"solve", "solve", "solve"});
  CHECK(applied(*kernel) == 4);
}

TEST_CASE("rules: what uses another function applies it") {
  auto kernel = test::record([](Val<mat3> a) { return result(polar(a).r, svd_rotations(a).s); });
  CHECK(rules(*kernel) == Rules{"svd", "polar"});
  size_t nested = 0;
  ir::walk(kernel->callees[1].body,
           [&](const ir::Inst* inst) { nested += inst->is(ir::Op::apply); });
  CHECK(nested == 1);
}

TEST_CASE("rules: calls stay until a kernel is split, once for the same operands") {
  auto kernel = test::record([](Field<mat3> x, Field<vec3> y, Val<mat3> a) {
    for (auto i : x) {
      svd(x[i]);
      Val<mat3> m = x[i];
      y[i] = svd(m).s + svd(m).s + sym_eig(a).values;
    }
  });
  CHECK(applied(*kernel) == 4);
  auto structured = optimised(*kernel);
  // One svd of each element; the eigenvalues of what all iterations share.
  CHECK(applied(*structured) == 2);
  size_t operations = 0;
  ir::walk(structured->body, [&](const ir::Inst*) { operations++; });
  CHECK(operations < 100);

  ir::split(*structured);
  CHECK(structured->callees.empty());
  operations = 0;
  for (const ir::Region* root : ir::roots(*structured))
    ir::walk(const_cast<ir::Region*>(root), [&](const ir::Inst* inst) {
      operations++;
      CHECK_FALSE(inst->is(ir::Op::apply));
    });
  CHECK(operations > 1000);
}

TEST_CASE("rules: code has the line of its call") {
  auto kernel = test::record([](Val<mat2> a) {
    Val<mat2> b = inverse(a);
    return inverse(b);
  });
  std::vector<int> lines;
  ir::walk(kernel->body, [&](const ir::Inst* inst) {
    if (inst->is(ir::Op::apply)) lines.push_back(inst->loc.line);
  });
  REQUIRE(lines.size() == 2);
  CHECK(lines[1] == lines[0] + 1);
  auto structured = optimised(*kernel);
  ir::split(*structured);
  size_t quotients[2] = {0, 0};
  ir::walk(*structured, [&](const ir::Inst* inst) {
    for (int k : {0, 1})
      quotients[k] += inst->is(ir::Op::div) && inst->loc.line == lines[size_t(k)];
  });
  CHECK(quotients[0] == 1);
  CHECK(quotients[1] == 1);
}

TEST_CASE("rules: functions of users bring them along, and share them") {
  Func largest = [](Val<mat2> a) { return svd(a).s.x; };
  Func both = [&](Val<mat2> a) { return largest(a) + svd(a).s.y + inverse(a)(0, 0); };
  auto kernel = test::record([&](Val<mat2> a) { return result(both(a), largest(a), svd(a).s); });
  const Rules found = rules(*kernel);
  CHECK(std::count(found.begin(), found.end(), "svd") == 1);
  CHECK(std::count(found.begin(), found.end(), "inverse") == 1);
  CHECK(std::count(found.begin(), found.end(), "") == 2);
  CHECK(applied(*optimised(*kernel)) == 2);
}

TEST_CASE("rules: where they are called does not show in their code") {
  auto plain = test::record([](Field<mat2> x) {
    for (auto i : x) x[i] = inverse(x[i]);
  });
  auto elsewhere = test::record([](Field<mat2> x) {
    for (auto i : x) {
      Var<int> n = 0;
      While(n < 3) {
        If(n == 1) {
          for (auto _ : reassociate()) x[i] = inverse(x[i]);
        }
        n += 1;
      }
    }
  });
  auto code = [](const ir::Kernel& kernel) {
    std::string text = ir::print(kernel);
    return text.substr(text.find("function"), text.find("body {") - text.find("function"));
  };
  CHECK(code(*plain) == code(*elsewhere));
}

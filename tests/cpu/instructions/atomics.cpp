// What code atomics become.
#include "quern/ir/lower.h"
#include "quern/ir/text.h"
#include "tests/cpu/instructions/x86.h"

using namespace quern;

namespace {

/// Locked instructions of a loop whose iterations do rmw.`op` on one location, for a CPU of
/// `workers` threads.
int locks(const test::X86& cpu, const std::string& op, const std::string& type, uint32_t workers) {
  runtime::Target target = test::target_of(cpu);
  target.workers = workers;
  auto kernel =
      ir::parse(test::each(test::driver("cpu"), "%at = arg<64> : address\n%v = arg<72> : " + type,
                           "%old = rmw." + op + "<1> %at, %v : " + type, " modes=contract"));
  return test::count(target, *kernel, "\\block\\b|\\bxchg");
}

/// For each row of matrices `u` and `v` of vectors: x[j] += g[row] · u(row, j), and y likewise, for all
/// j below `columns`, a value of i32.
std::string rows(const std::string& columns) {
  return R"(quern 1
  kernel @rows level=structured modes=contract
  binding field rank=2 f32, f32, f32, f32 "u"
  binding field rank=2 f32, f32, f32, f32 "v"
  binding field rank=1 f32 "g"
  binding field rank=1 f32, f32, f32, f32 "x"
  binding field rank=1 f32, f32, f32, f32 "y"
  body {
    %zero = constant<0> : i32
    %one = constant<1> : i32
    %n = extent<0.0> : i32
    %columns = )" +
         columns +
         R"( : i32
    parallel %zero, %n {(%i: i32)
      %g = load<2.0> %i : f32
      loop %zero, %columns, %one {(%j: i32)
        %w0 = load<0.0> %i, %j : f32
        %p0 = mul %g, %w0 : f32
        %old0 = atomic.add<3.0> %j, %p0 : f32
        %w1 = load<0.1> %i, %j : f32
        %p1 = mul %g, %w1 : f32
        %old1 = atomic.add<3.1> %j, %p1 : f32
        %w2 = load<0.2> %i, %j : f32
        %p2 = mul %g, %w2 : f32
        %old2 = atomic.add<3.2> %j, %p2 : f32
        %w3 = load<0.3> %i, %j : f32
        %p3 = mul %g, %w3 : f32
        %old3 = atomic.add<3.3> %j, %p3 : f32
        %w4 = load<1.0> %i, %j : f32
        %p4 = mul %g, %w4 : f32
        %old4 = atomic.add<4.0> %j, %p4 : f32
        %w5 = load<1.1> %i, %j : f32
        %p5 = mul %g, %w5 : f32
        %old5 = atomic.add<4.1> %j, %p5 : f32
        %w6 = load<1.2> %i, %j : f32
        %p6 = mul %g, %w6 : f32
        %old6 = atomic.add<4.2> %j, %p6 : f32
        %w7 = load<1.3> %i, %j : f32
        %p7 = mul %g, %w7 : f32
        %old7 = atomic.add<4.3> %j, %p7 : f32
        yield
      }
      yield
    }
    yield
  })";
}

}  // namespace

TEST_CASE("what all rows add to is added by vectors, in copies and where no other thread runs") {
  for (const test::X86& cpu : test::all_x86)
    for (const char* columns : {"extent<0.1>", "constant<32>"}) {
      INFO(cpu.name << " " << columns);
      auto kernel = ir::parse(rows(columns));
      ir::Signature signature;
      for (uint32_t k = 0; k < 5; k++) signature.fields.push_back({true, k + 1});
      signature.modes = kernel->modes;
      runtime::Target target = test::target_of(cpu);
      target.workers = 2;
      ir::optimise(*kernel);
      ir::split(*kernel);
      ir::lower(*kernel, signature, target.traits);
      // One loop for the copies of both, one for the fields themselves.
      CHECK(test::count(target, *kernel, "vmulps\\s[^\n]*[yz]mm") >= 2 * 8);
      CHECK(test::count(target, *kernel, "gather|scatter|vmaskmov") == 0);
    }
}

TEST_CASE("atomics lock with several threads, and are plain updates with one") {
  for (const test::X86& cpu : {test::haswell, test::sapphire_rapids})
    for (const char* type : {"i32", "u64", "f32", "f64"})
      for (const char* op : {"add", "mul", "min", "exchange"}) {
        INFO(cpu.name << " " << op << " " << type);
        CHECK(locks(cpu, op, type, 2) > 0);
        CHECK(locks(cpu, op, type, 1) == 0);
      }
}

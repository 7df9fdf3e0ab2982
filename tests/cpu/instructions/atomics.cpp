// What code atomics become.
#include "quern/ir/abi.h"
#include "quern/ir/lower.h"
#include "quern/ir/text.h"
#include "tests/cpu/instructions/x86.h"

using namespace quern;

namespace {

/// Locked instructions of a loop whose iterations do rmw.`op` on one location of an alias class, for a
/// CPU of `workers` threads.
int locks(const test::X86& cpu, const std::string& op, const std::string& type, uint32_t workers,
          uint64_t alias_class = 1) {
  runtime::Target target = test::target_of(cpu);
  target.workers = workers;
  auto kernel = ir::parse(
      test::each(test::driver("cpu"), "%at = arg<64> : address\n%v = arg<72> : " + type,
                 "%old = rmw." + op + "<" + std::to_string(alias_class) + "> %at, %v : " + type,
                 " modes=contract"));
  return test::count(target, *kernel, "\\block\\b|\\bxchg");
}

/// For each row of matrices `u` and `v` of vectors: x[j] += g[row] · u(row, j), and y likewise, for
/// all j below `columns`, a value of i32.
std::string rows(const std::string& columns) {
  std::string updates;
  for (int field : {0, 1})
    for (int part = 0; part < 4; part++) {
      const std::string of = "." + std::to_string(part) + ">", n = std::to_string(4 * field + part);
      updates += "%w" + n + " = load<" + std::to_string(field) + of + " %i, %j : f32\n" +  //
                 "%p" + n + " = mul %g, %w" + n + " : f32\n" +                             //
                 "%old" + n + " = atomic.add<" + std::to_string(3 + field) + of + " %j, %p" + n +
                 " : f32\n";
    }
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
         columns + R"( : i32
    parallel %zero, %n {(%i: i32)
      %g = load<2.0> %i : f32
      loop %zero, %columns, %one {(%j: i32)
)" + updates +
         R"(
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
        for (uint64_t alias_class : {uint64_t(1), ir::abi::first_buffer_class}) {
          CHECK(locks(cpu, op, type, 2, alias_class) > 0);
          CHECK(locks(cpu, op, type, 1, alias_class) == 0);
        }
        CHECK(locks(cpu, op, type, 1, ir::abi::error_class) > 0);
      }
}

TEST_CASE(
    "few updates of fields are plain where the launch is one chunk, whatever else is atomic") {
  constexpr int count = 24, others = 8;  // those are of the error record
  std::string updates = "%none = constant<0> : u32\n";
  for (int k = 0; k < count; k++) {
    const std::string n = std::to_string(k);
    updates += "%o" + n + " = constant<" + std::to_string(4 * k) + "> : i64\n" +  //
               "%p" + n + " = offset %at, %o" + n + " : address\n" +              //
               "%old" + n + " = rmw.add<1> %p" + n + ", %v : f32\n";
  }
  for (int k = 0; k < others; k++)
    updates += "%cas" + std::to_string(k) + " = rmw.cas<" + std::to_string(ir::abi::error_class) +
               "> %at, %none, %none : u32\n";
  const auto kernel =
      ir::parse(test::each(test::driver("cpu"), "%at = arg<64> : address\n%v = arg<72> : f32",
                           updates, " modes=contract"));
  for (const test::X86& cpu : {test::haswell, test::sapphire_rapids}) {
    INFO(cpu.name);
    runtime::Target target = test::target_of(cpu);
    target.workers = 2;
    CHECK(test::count(target, *kernel, "vaddss") >= 2 * count);  // one in a loop, one without
    CHECK(test::count(target, *kernel, "\\block\\b") >= count + others);
  }
}

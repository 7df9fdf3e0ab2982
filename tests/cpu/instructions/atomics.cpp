// What code atomics become.
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

}  // namespace

TEST_CASE("atomics lock with several threads, and are plain updates with one") {
  for (const test::X86& cpu : {test::haswell, test::sapphire_rapids})
    for (const char* type : {"i32", "u64", "f32", "f64"})
      for (const char* op : {"add", "mul", "min", "exchange"}) {
        INFO(cpu.name << " " << op << " " << type);
        CHECK(locks(cpu, op, type, 2) > 0);
        CHECK(locks(cpu, op, type, 1) == 0);
      }
}

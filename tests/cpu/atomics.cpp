// What code atomics become.
#include <regex>
#include <string>

#include "tests/backend/harness/harness.h"

using namespace quern;

namespace {

/// Assembly of a loop whose iterations do rmw.`op` on one location, for a CPU of `workers` threads.
std::string assembly(const std::string& op, const std::string& type, uint32_t workers) {
  runtime::Driver& driver = test::driver("cpu");
  runtime::Target target = driver.target();
  target.workers = workers;
  auto kernel =
      ir::parse(test::each(driver, "%at = arg<64> : address\n%v = arg<72> : " + type,
                           "%old = rmw." + op + "<1> %at, %v : " + type, " modes=contract"));
  return test::compiler(driver).listing(*kernel, target, "asm");
}

int locks(const std::string& code) {
  const std::regex locked("\\block\\b|\\bxchg");
  return int(std::distance(std::sregex_iterator(code.begin(), code.end(), locked), {}));
}

}  // namespace

TEST_CASE("atomics lock with several threads, and are plain updates with one") {
  if (test::driver("cpu").target().isa.find("x86") == std::string::npos) return;
  for (const char* type : {"i32", "u64", "f32", "f64"})
    for (const char* op : {"add", "mul", "min", "exchange"}) {
      INFO(op << " " << type);
      CHECK(locks(assembly(op, type, 2)) > 0);
      CHECK(locks(assembly(op, type, 1)) == 0);
    }
}

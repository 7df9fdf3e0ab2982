#include "tests/cpu/instructions/x86.h"

#include <iterator>
#include <regex>

namespace quern::test {

runtime::Target target_of(const X86& cpu) {
  runtime::Target target = driver("cpu").target();
  target.isa = std::string("x86-64 ") + cpu.extensions;
  target.traits.half_conversions = true;
  return target;
}

int count(const runtime::Target& target, const ir::Kernel& kernel, const std::string& pattern) {
  const std::string code = compiler(driver("cpu")).listing(kernel, target, "asm");
  const std::regex expression(pattern);
  return int(std::distance(std::sregex_iterator(code.begin(), code.end(), expression), {}));
}

}  // namespace quern::test

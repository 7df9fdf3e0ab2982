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

std::string lowered(const X86& cpu, const std::string& text) {
  auto kernel = ir::parse(text);
  ir::Signature signature;
  for (uint32_t k = 0; k < kernel->bindings.size(); k++) signature.fields.push_back({true, k + 1});
  signature.modes = kernel->modes;
  ir::optimise(*kernel);
  ir::split(*kernel);
  ir::lower(*kernel, signature, target_of(cpu).traits);
  return ir::print(*kernel);
}

int count_compiled(const X86& cpu, const std::string& text, const std::string& pattern) {
  return count(target_of(cpu), *ir::parse(lowered(cpu, text)), pattern);
}

}  // namespace quern::test

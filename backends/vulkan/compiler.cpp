#include "backends/vulkan/compiler.h"

#include <cstdlib>
#include <cstring>
#include <spirv-tools/libspirv.hpp>

#include "backends/vulkan/codegen.h"
#include "backends/vulkan/rounding.h"
#include "quern/error.h"
#include "quern/ir/abi.h"
#include "quern/ir/text.h"

namespace quern::vulkan {

namespace {

/// Debug builds check every module.
bool checks_modules() {
#ifdef NDEBUG
  const char* wanted = std::getenv("QUERN_VULKAN_VALIDATION");
  return wanted && std::strcmp(wanted, "1") == 0;
#else
  return true;
#endif
}

/// So many accesses to memory inside loops take Mesa's software device, whose time grows with their
/// third power, minutes to compile.
constexpr size_t most_accesses_in_loops = 500;

bool is_in_loop(const ir::Inst* inst) {
  for (const ir::Inst* at = inst->parent->parent; at; at = at->parent->parent)
    if (at->is(ir::Op::loop) || at->is(ir::Op::while_)) return true;
  return false;
}

void expect_few_accesses(const ir::Kernel& kernel, const ir::Task& task) {
  size_t found = 0;
  ir::walk(task.body, [&](const ir::Inst* inst) {
    const bool accesses =
        ir::accesses_memory(inst->op) &&
        inst->imm != ir::abi::error_class;  // what a failed check reports costs little
    if (!accesses || !is_in_loop(inst) || ++found <= most_accesses_in_loops) return;
    throw Error(inst->loc, "kernel '" + kernel.name + "' reads and writes memory at more than " +
                               std::to_string(most_accesses_in_loops) +
                               " places of a loop, for which Mesa's software driver of Vulkan "
                               "takes minutes to compile: let an inner loop run over them, "
                               "or take another device");
  });
}

std::vector<uint32_t> module_of(const ir::Kernel& kernel, size_t task,
                                const runtime::Target& target) {
  const Abilities abilities = Abilities::parse(target.isa);
  if (abilities.mesa_software) expect_few_accesses(kernel, kernel.tasks[task]);
  std::vector<uint32_t> module = generate(kernel, task, abilities);
  if (!checks_modules()) return module;
  if (std::string why = invalidity(module); !why.empty())
    throw InternalError("kernel '" + kernel.name + "' became invalid SPIR-V: " + why);
  return module;
}

}  // namespace

std::string invalidity(std::span<const uint32_t> module) {
  spvtools::SpirvTools tools(SPV_ENV_VULKAN_1_3);
  std::string text;
  tools.SetMessageConsumer(
      [&](spv_message_level_t level, const char*, const spv_position_t&, const char* message) {
        if (level <= SPV_MSG_ERROR) text += std::string(message) + "\n";
      });
  bool valid = tools.Validate(module.data(), module.size());
  return valid ? "" : text + disassemble(module);
}

std::string disassemble(std::span<const uint32_t> module) {
  spvtools::SpirvTools tools(SPV_ENV_VULKAN_1_3);
  std::string text;
  tools.Disassemble(module.data(), module.size(), &text,
                    SPV_BINARY_TO_TEXT_OPTION_FRIENDLY_NAMES | SPV_BINARY_TO_TEXT_OPTION_INDENT);
  return text;
}

runtime::Target Compiler::target_on(runtime::Driver& driver) const {
  runtime::Target target = driver.target();
  measure_rounding(driver, *this, target);
  return target;
}

std::vector<std::byte> Compiler::code(const ir::Kernel& kernel,
                                      const runtime::Target& target) const {
  std::vector<Module> modules;
  for (size_t k = 0; k < kernel.tasks.size(); k++) {
    Module module{module_of(kernel, k, target), {}};
    for (const ir::Inst* loop : loops_of(kernel.tasks[k])) module.loops.push_back(loop->loc);
    modules.push_back(std::move(module));
  }
  return pack(std::move(modules));
}

std::string Compiler::listing(const ir::Kernel& kernel, const runtime::Target& target,
                              std::string_view kind) const {
  if (kind == "ir") return ir::print(kernel);
  if (kind != "spirv")
    throw Error("the vulkan back end has no listing '" + std::string(kind) + "'; it has ir, spirv");
  std::string text;
  for (size_t k = 0; k < kernel.tasks.size(); k++) {
    text += "; task " + std::to_string(k) + "\n";
    text += disassemble(module_of(kernel, k, target));
  }
  return text;
}

const runtime::Compiler& compiler() {
  static const Compiler one;
  return one;
}

}  // namespace quern::vulkan

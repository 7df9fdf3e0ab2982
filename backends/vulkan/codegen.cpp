#include "backends/vulkan/codegen.h"

#include "backends/vulkan/emitter.h"

namespace quern::vulkan {

std::vector<const ir::Inst*> loops_of(const ir::Task& task) {
  std::vector<const ir::Inst*> loops;
  ir::walk(task.body, [&](const ir::Inst* inst) {
    if (inst->is(Op::loop) || inst->is(Op::while_) || is_long_array(inst)) loops.push_back(inst);
  });
  return loops;
}

std::vector<uint32_t> generate(const ir::Kernel& kernel, size_t task, const Abilities& abilities) {
  return Emitter(kernel, task, abilities).run();
}

}  // namespace quern::vulkan

#include "backends/llvm/gpu.h"

namespace quern::codegen {

namespace {
/// Both vendors' parameters of a kernel take 4 KB at most; four words stand behind the block.
constexpr uint32_t max_value_bytes = 4096 - 4 * 8;
/// Batches of more commands are worth a graph (gpu::Graphs::shortest), which wants a block that
/// stays where it is.
constexpr uint32_t max_value_tasks = 7;
}  // namespace

runtime::Target gpu_target(const std::string& backend, const Isa& isa) {
  runtime::Target t = target(backend, isa);
  t.traits.walk = ir::Task::element;
  t.traits.block_reductions = true;
  t.traits.narrow_atomics = false;
  t.traits.native_math = {{ir::Op::rsqrt, ir::Type::f32}};
  t.traits.value_bytes = max_value_bytes;
  t.traits.value_tasks = max_value_tasks;
  return t;
}

Machine gpu_machine(const Isa& isa, const llvm::TargetMachine& machine) {
  Machine out = machine_of(isa, machine);
  out.global_space = 1;
  out.read_only_loads = true;
  return out;
}

}  // namespace quern::codegen

#include "backends/rocm/compiler.h"

#include <llvm/Config/llvm-config.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/IntrinsicsAMDGPU.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/TargetParser/TargetParser.h>

#include "backends/llvm/emitter.h"
#include "backends/llvm/gpu.h"
#include "backends/rocm/link.h"
#include "quern/error.h"

namespace quern::rocm {

namespace {

void initialise() {
  LLVMInitializeAMDGPUTargetInfo();
  LLVMInitializeAMDGPUTarget();
  LLVMInitializeAMDGPUTargetMC();
  LLVMInitializeAMDGPUAsmPrinter();
}

/// Block and thread come in registers, the sizes from the packet that launched the kernel
/// (hsa_kernel_dispatch_packet_t: u16 workgroup_size_x at byte 4, u32 grid_size_x at 12).
codegen::Grid grid(llvm::IRBuilderBase& b) {
  using namespace llvm::Intrinsic;
  llvm::Value* packet = b.CreateIntrinsic(amdgcn_dispatch_ptr, {}, {});
  auto entry = [&](llvm::Type* type, uint64_t byte) {
    llvm::Value* place = b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), packet, byte);
    auto* load = b.CreateAlignedLoad(type, place, llvm::Align(4));
    load->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(b.getContext(), {}));
    return load;
  };
  llvm::Value* size = b.CreateZExt(entry(b.getInt16Ty(), 4), b.getInt32Ty());
  llvm::Value* threads = b.CreateZExt(entry(b.getInt32Ty(), 12), b.getInt64Ty());
  return {b.CreateIntrinsic(amdgcn_workgroup_id_x, {}, {}),
          b.CreateIntrinsic(amdgcn_workitem_id_x, {}, {}), size, threads};
}

/// Threads of the upper half of a wave of 64 count on from 32: they stay among themselves.
llvm::Value* shuffle_down(llvm::IRBuilderBase& b, llvm::Value* v, unsigned distance) {
  using namespace llvm::Intrinsic;
  llvm::Value* low = b.CreateIntrinsic(amdgcn_mbcnt_lo, {}, {b.getInt32(~0u), b.getInt32(0)});
  llvm::Value* lane = b.CreateIntrinsic(amdgcn_mbcnt_hi, {}, {b.getInt32(~0u), low});
  llvm::Value* byte = b.CreateShl(b.CreateAdd(lane, b.getInt32(distance)), 2);
  return b.CreateIntrinsic(amdgcn_ds_bpermute, {}, {byte, v});
}

void barrier(llvm::IRBuilderBase& b) {
  llvm::SyncScope::ID block = b.getContext().getOrInsertSyncScopeID("workgroup");
  b.CreateFence(llvm::AtomicOrdering::Release, block);
  b.CreateIntrinsic(llvm::Intrinsic::amdgcn_s_barrier, {}, {});
  b.CreateFence(llvm::AtomicOrdering::Acquire, block);
}

/// Threads of a block where the task does not say.
constexpr uint32_t default_block = 256;

/// Code object version 4: what every HIP since ROCm 4.1 loads.
constexpr unsigned code_object_version = 400;

void finish(llvm::Function& f, const ir::Task& task) {
  f.setCallingConv(llvm::CallingConv::AMDGPU_KERNEL);
  unsigned threads = std::max<unsigned>(task.options.block, default_block);
  f.addFnAttr("amdgpu-flat-work-group-size", "1," + std::to_string(threads));
  f.addFnAttr("uniform-work-group-size", "true");
  // Sums of floats in memory without a loop: field memory is the device's own, coarse-grained.
  f.addFnAttr("amdgpu-unsafe-fp-atomics", "true");
  llvm::Module& module = *f.getParent();
  if (!module.getModuleFlag("amdhsa_code_object_version"))
    module.addModuleFlag(llvm::Module::Error, "amdhsa_code_object_version", code_object_version);
}

/// The ISA manuals: within a unit in the last place, of normal numbers; others are scaled.
llvm::Value* native(llvm::IRBuilderBase& b, ir::Op op, llvm::Value* x) {
  if (op != ir::Op::rsqrt) return nullptr;
  auto number = [&](double v) { return llvm::ConstantFP::get(x->getType(), v); };
  llvm::Value* small = b.CreateFCmpOLT(x, number(0x1p-126));
  llvm::Value* scaled = b.CreateFMul(x, b.CreateSelect(small, number(0x1p24), number(1)));
  llvm::Value* root = b.CreateIntrinsic(llvm::Intrinsic::amdgcn_rsq, {x->getType()}, {scaled});
  return b.CreateFMul(root, b.CreateSelect(small, number(0x1p12), number(1)));
}

bool is_product(const llvm::Value* v) {
  while (true) {
    const auto* inst = llvm::dyn_cast<llvm::Instruction>(v);
    const auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(v);
    const bool sign = inst && (inst->getOpcode() == llvm::Instruction::FNeg ||
                               (call && call->getIntrinsicID() == llvm::Intrinsic::fabs));
    if (!sign) return inst && inst->getOpcode() == llvm::Instruction::FMul;
    v = inst->getOperand(0);
  }
}

template <class Is>
std::vector<llvm::Instruction*> all_that(llvm::Module& module, Is&& is) {
  std::vector<llvm::Instruction*> found;
  for (llvm::Function& f : module)
    for (llvm::Instruction& inst : llvm::instructions(f))
      if (is(inst)) found.push_back(&inst);
  return found;
}

/// LLVM divides halves itself where it can, and its code for that, a product with an approximate
/// reciprocal, is not correctly rounded: they are divided in f32.
void widen_quotients(llvm::Module& module) {
  for (llvm::Instruction* quotient : all_that(module, [](const llvm::Instruction& inst) {
         return inst.getOpcode() == llvm::Instruction::FDiv && inst.getType()->isHalfTy();
       })) {
    llvm::IRBuilder<> b(quotient);
    llvm::Value* x = b.CreateFPExt(quotient->getOperand(0), b.getFloatTy());
    llvm::Value* y = b.CreateFPExt(quotient->getOperand(1), b.getFloatTy());
    quotient->replaceAllUsesWith(b.CreateFPTrunc(b.CreateFDiv(x, y), b.getHalfTy()));
    quotient->eraseFromParent();
  }
}

/// LLVM makes x * y + 0 of a product that is rounded to a half, in one instruction that loses the
/// sign of -0. A canonicalize, no instruction itself, keeps product and rounding apart.
void keep_signs_of_products(llvm::Module& module) {
  for (llvm::Instruction* rounding : all_that(module, [](const llvm::Instruction& inst) {
         return inst.getOpcode() == llvm::Instruction::FPTrunc && is_product(inst.getOperand(0));
       })) {
    llvm::IRBuilder<> b(rounding);
    rounding->setOperand(
        0, b.CreateUnaryIntrinsic(llvm::Intrinsic::canonicalize, rounding->getOperand(0)));
  }
}

/// For faults of LLVM 19 (docs/platform.md).
void mend(llvm::Module& module) {
  widen_quotients(module);
  keep_signs_of_products(module);
  codegen::keep_zeros_of_choices(module);
}

codegen::Machine describe(const codegen::Isa& isa, const llvm::TargetMachine& machine) {
  codegen::Machine out = codegen::gpu_machine(isa, machine);
  out.args_space = 4;
  out.value_space = 4;
  out.by_value = llvm::Attribute::getWithByRefType;
  out.slot_space = 5;
  out.atomic_scope = "agent";
  out.grid = grid;
  out.shuffle_down = shuffle_down;
  out.barrier = barrier;
  out.native = native;
  out.finish = finish;
  return out;
}

std::string known(const std::string& isa) {
  const std::string name = codegen::Isa::parse(isa).cpu;
  if (llvm::AMDGPU::parseArchAMDGCN(name) == llvm::AMDGPU::GK_NONE)
    throw Error("LLVM " LLVM_VERSION_STRING " does not know the architecture '" + name + "'");
  return isa;
}

const codegen::Toolchain tools = {.backend = "rocm",
                                  .isa = known,
                                  .initialise = initialise,
                                  .describe = describe,
                                  .mend = mend,
                                  .vectorise = false,
                                  .assembly = "amdgcn",
                                  .max_local_bytes = codegen::max_gpu_local_bytes,
                                  .link = link};

}  // namespace

const runtime::Compiler& compiler() {
  static const codegen::Compiler one(tools);
  return one;
}

}  // namespace quern::rocm

#include "backends/cuda/compiler.h"

#include <llvm/Config/llvm-config.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicsNVPTX.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/PatternMatch.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetMachine.h>

#include "backends/llvm/emitter.h"
#include "backends/llvm/gpu.h"
#include "quern/error.h"

namespace quern::cuda {

namespace {

void initialise() {
  LLVMInitializeNVPTXTargetInfo();
  LLVMInitializeNVPTXTarget();
  LLVMInitializeNVPTXTargetMC();
  LLVMInitializeNVPTXAsmPrinter();
}

codegen::Grid grid(llvm::IRBuilderBase& b) {
  auto special = [&](llvm::Intrinsic::ID id) { return b.CreateIntrinsic(id, {}, {}); };
  auto wide = [&](llvm::Value* v) { return b.CreateZExt(v, b.getInt64Ty()); };
  llvm::Value* size = special(llvm::Intrinsic::nvvm_read_ptx_sreg_ntid_x);
  llvm::Value* blocks = special(llvm::Intrinsic::nvvm_read_ptx_sreg_nctaid_x);
  return {special(llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x),
          special(llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x), size,
          b.CreateMul(wide(blocks), wide(size), "", true, true)};
}

llvm::Value* shuffle_down(llvm::IRBuilderBase& b, llvm::Value* v, unsigned distance) {
  llvm::Value *all = b.getInt32(~0u), *last = b.getInt32(31);
  return b.CreateIntrinsic(llvm::Intrinsic::nvvm_shfl_sync_down_i32, {},
                           {all, v, b.getInt32(distance), last});
}

llvm::Value* all_here(llvm::IRBuilderBase& b) {
  llvm::Value* mask = b.CreateIntrinsic(llvm::Intrinsic::nvvm_activemask, {}, {});
  return b.CreateICmpEQ(mask, b.getInt32(~0u));
}

llvm::Value* all_alike(llvm::IRBuilderBase& b, llvm::Value* v) {
  return b.CreateExtractValue(
      b.CreateIntrinsic(llvm::Intrinsic::nvvm_match_all_sync_i64p, {}, {b.getInt32(~0u), v}), 1);
}

void barrier(llvm::IRBuilderBase& b) {
#if LLVM_VERSION_MAJOR >= 21
  b.CreateIntrinsic(llvm::Intrinsic::nvvm_barrier_cta_sync_aligned_all, {}, {b.getInt32(0)});
#else
  b.CreateIntrinsic(llvm::Intrinsic::nvvm_barrier0, {}, {});
#endif
}

void finish(llvm::Function& f, const ir::Task&) {
  f.setCallingConv(llvm::CallingConv::PTX_Kernel);
  llvm::LLVMContext& context = f.getContext();
  auto* one = llvm::ConstantInt::get(llvm::Type::getInt32Ty(context), 1);
  f.getParent()
      ->getOrInsertNamedMetadata("nvvm.annotations")
      ->addOperand(llvm::MDNode::get(
          context, {llvm::ValueAsMetadata::get(&f), llvm::MDString::get(context, "kernel"),
                    llvm::ValueAsMetadata::get(one)}));
}

/// The PTX manual: a relative error of 2^-22.9 over the whole range, subnormal numbers included.
llvm::Value* native(llvm::IRBuilderBase& b, ir::Op op, llvm::Value* x) {
  if (op != ir::Op::rsqrt) return nullptr;
  return b.CreateIntrinsic(llvm::Intrinsic::nvvm_rsqrt_approx_f, {}, {x});
}

/// Blocks have one axis, of which ptxas is not told.
llvm::Value* thread_of_other_axis(llvm::IRBuilderBase& b) {
  return b.CreateZExt(b.CreateIntrinsic(llvm::Intrinsic::nvvm_read_ptx_sreg_tid_y, {}, {}),
                      b.getInt64Ty());
}

/// NVPTX's address space of a thread's own memory.
constexpr unsigned local_space = 5;

codegen::Machine describe(const codegen::Isa& isa, const llvm::TargetMachine& machine) {
  codegen::Machine out = codegen::gpu_machine(isa, machine);
  out.args_space = 1;
  out.by_value = llvm::Attribute::getWithByValType;
  out.atomic_scope = "device";
  out.grid = grid;
  out.shuffle_down = shuffle_down;
  out.all_here = all_here;
  out.all_alike = all_alike;
  out.barrier = barrier;
  out.native = native;
  out.finish = finish;
  return out;
}

/// Is it a 32-bit number that is 0 where it would be below?
bool is_clamped(const llvm::Value* v) {
  using namespace llvm::PatternMatch;
  if (const auto* frozen = llvm::dyn_cast<llvm::FreezeInst>(v)) v = frozen->getOperand(0);
  return v->getType()->isIntegerTy(32) && match(v, m_c_SMax(m_Value(), m_Zero()));
}

bool compares_clamped(const llvm::ICmpInst& compare) {
  return compare.isEquality() &&
         (is_clamped(compare.getOperand(0)) || is_clamped(compare.getOperand(1)));
}

/// ptxas (seen in 12.9, 13.0 and a driver of 13.0) makes one instruction of max(min(a, b), 0) == b,
/// and of max(max(a, b), 0) == b, for compute capabilities 9.0 and 10.0, which says whether a was
/// chosen. It leaves a test of their bits' difference alone.
void keep_comparisons_of_clamped(llvm::Module& module) {
  std::vector<llvm::ICmpInst*> compares;
  for (llvm::Function& f : module)
    for (llvm::Instruction& inst : llvm::instructions(f))
      if (auto* compare = llvm::dyn_cast<llvm::ICmpInst>(&inst);
          compare && compares_clamped(*compare))
        compares.push_back(compare);
  for (llvm::ICmpInst* compare : compares) {
    llvm::IRBuilder<> b(compare);
    llvm::Type* word = b.getInt32Ty();
    auto* difference =
        llvm::InlineAsm::get(llvm::FunctionType::get(word, {word, word}, false),
                             "xor.b32 $0, $1, $2;", "=r,r,r", /*hasSideEffects=*/false);
    llvm::CallInst* bits =
        b.CreateCall(difference, {compare->getOperand(0), compare->getOperand(1)});
    bits->setDoesNotAccessMemory();
    bits->setDoesNotThrow();
    compare->setOperand(0, bits);
    compare->setOperand(1, b.getInt32(0));
  }
}

void mend(llvm::Module& module) {
  codegen::keep_zeros_of_choices(module);
  keep_comparisons_of_clamped(module);
}

/// Of the 255 that a thread can have; the rest are for addresses and what ptxas moves.
constexpr codegen::Registers long_code = {
    .count = 200, .bits = 32, .memory_space = local_space, .hidden_zero = thread_of_other_axis};

const codegen::Toolchain tools = {.backend = "cuda",
                                  .initialise = initialise,
                                  .describe = describe,
                                  .mend = mend,
                                  .vectorise = false,
                                  .long_code = long_code,
                                  .assembly = "ptx",
                                  .text = true,
                                  .max_local_bytes = codegen::max_gpu_local_bytes,
                                  .reduce_strength = false};

}  // namespace

const runtime::Compiler& compiler() {
  static const codegen::Compiler one(tools);
  return one;
}

}  // namespace quern::cuda

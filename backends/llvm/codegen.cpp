#include "backends/llvm/codegen.h"

#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>

#include "backends/llvm/callees.h"
#include "backends/llvm/emitter.h"
#include "backends/llvm/scalar.h"
#include "backends/llvm/vector_functions.h"
#include "quern/error.h"
#include "quern/ir/abi.h"
#include "quern/runtime/image.h"

namespace quern::codegen {

namespace {

void attributes(llvm::Function* f, const Machine& machine) {
  for (const auto& [key, value] : machine.attributes) f->addFnAttr(key, value);
  f->addFnAttr(llvm::Attribute::NoUnwind);
}

llvm::Function* declare_task(llvm::Module& module, const Machine& machine, size_t index,
                             uint64_t args_bytes, bool takes_value) {
  auto& context = module.getContext();
  auto* word = llvm::Type::getInt64Ty(context);
  unsigned space = takes_value ? machine.value_space : machine.args_space;
  std::vector<llvm::Type*> params = {llvm::PointerType::get(context, space)};
  if (machine.grid) params.push_back(llvm::PointerType::get(context, machine.global_space));
  params.resize(machine.grid ? 5 : 4, word);
  auto* type = llvm::FunctionType::get(llvm::Type::getVoidTy(context), params, false);
  auto* f = llvm::Function::Create(type, llvm::Function::ExternalLinkage,
                                   runtime::task_symbol(index), module);
  attributes(f, machine);
  if (takes_value)
    f->addParamAttr(0, machine.by_value(context, llvm::ArrayType::get(word, args_bytes / 8)));
  f->addParamAttr(0, llvm::Attribute::NoAlias);
  f->addParamAttr(0, llvm::Attribute::ReadOnly);
  f->addDereferenceableParamAttr(0, args_bytes);
  f->addParamAttr(0, llvm::Attribute::getWithAlignment(context, llvm::Align(8)));
  return f;
}

llvm::Function* declare_callee(llvm::Module& module, const Machine& machine,
                               const ir::Kernel& kernel, const ir::Function& source) {
  auto& context = module.getContext();
  std::vector<llvm::Type*> params;
  for (const ir::Value& a : source.body->args)
    params.push_back(type_of(context, a.type, machine.global_space));
  std::vector<llvm::Type*> results;
  for (ir::Type t : source.results) results.push_back(type_of(context, t, machine.global_space));
  llvm::Type* result = llvm::Type::getVoidTy(context);
  if (results.size() == 1) result = results[0];
  if (results.size() > 1) result = llvm::StructType::get(context, results);
  auto* type = llvm::FunctionType::get(result, params, false);
  auto* f = llvm::Function::Create(type, llvm::Function::InternalLinkage, "callee_" + source.name,
                                   module);
  attributes(f, machine);
  f->addFnAttr(llvm::Attribute::NoInline);  // what is to be copied was copied before
  if (reports_error(kernel, source.body)) f->addFnAttr(llvm::Attribute::Cold);
  if (is_pure(source)) {
    f->setDoesNotAccessMemory();
    f->addFnAttr(llvm::Attribute::WillReturn);
  }
  return f;
}

}  // namespace

std::unique_ptr<llvm::Module> generate(llvm::LLVMContext& context, const ir::Kernel& kernel,
                                       const Machine& machine, const ir::TargetTraits& traits) {
  auto module = std::make_unique<llvm::Module>(kernel.name, context);
#if LLVM_VERSION_MAJOR >= 21
  module->setTargetTriple(llvm::Triple(machine.triple));
#else
  module->setTargetTriple(machine.triple);
#endif
  module->setDataLayout(machine.data_layout);
  std::vector<llvm::Function*> callees;
  for (const ir::Function& f : kernel.callees)
    callees.push_back(declare_callee(*module, machine, kernel, f));
  Emitter emitter(*module, kernel, machine, callees);
  for (size_t k = 0; k < callees.size(); k++) {
    emitter.callee(callees[k], kernel.callees[k]);
    for (unsigned length : vector_lengths(machine, kernel.callees[k]))
      emitter.vector_function(callees[k], kernel.callees[k], length);
  }
  const uint64_t args_bytes = ir::abi::layout(kernel).bytes;
  const bool takes_value = ir::takes_value(kernel, traits);
  for (size_t k = 0; k < kernel.tasks.size(); k++) {
    llvm::Function* f = declare_task(*module, machine, k, args_bytes, takes_value);
    emitter.task(f, kernel.tasks[k]);
    if (machine.finish) machine.finish(*f, kernel.tasks[k]);
  }
  std::string text;
  llvm::raw_string_ostream out(text);
  if (llvm::verifyModule(*module, &out))
    throw InternalError("kernel '" + kernel.name + "' gives LLVM an invalid module: " + text);
  return module;
}

}  // namespace quern::codegen

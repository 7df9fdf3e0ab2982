#include "tools/gpus/code_object.h"

#include <llvm/BinaryFormat/MsgPackDocument.h>
#include <llvm/MC/MCAsmInfo.h>
#include <llvm/MC/MCContext.h>
#include <llvm/MC/MCDisassembler/MCDisassembler.h>
#include <llvm/MC/MCInst.h>
#include <llvm/MC/MCInstrInfo.h>
#include <llvm/MC/MCRegisterInfo.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Object/ELFObjectFile.h>
#include <llvm/Support/TargetSelect.h>

#include "backends/llvm/codegen.h"
#include "backends/llvm/toolchain.h"

namespace quern::gpus {

namespace {

using Elf = llvm::object::ELF64LEObjectFile;

/// Instructions of one architecture.
class Disassembler {
 public:
  explicit Disassembler(const codegen::Isa& isa) {
    LLVMInitializeAMDGPUDisassembler();
    std::string why;
    const llvm::Target* target = llvm::TargetRegistry::lookupTarget(isa.triple, why);
    if (!target) throw std::runtime_error(why);
    registers_.reset(target->createMCRegInfo(isa.triple));
    assembly_.reset(target->createMCAsmInfo(*registers_, isa.triple, {}));
    subtarget_.reset(target->createMCSubtargetInfo(isa.triple, isa.cpu, isa.features));
    context_.emplace(llvm::Triple(isa.triple), assembly_.get(), registers_.get(), subtarget_.get());
    decoder_.reset(target->createMCDisassembler(*subtarget_, *context_));
    instructions_.reset(target->createMCInstrInfo());
  }

  /// The number of instructions, or -1 where some bytes are none; adds to `classes`.
  int count(llvm::ArrayRef<uint8_t> bytes, Classes& classes) {
    int found = 0;
    for (uint64_t at = 0; at < bytes.size(); found++) {
      llvm::MCInst inst;
      uint64_t size = 0;
      if (decoder_->getInstruction(inst, size, bytes.slice(at), at, llvm::nulls()) !=
          llvm::MCDisassembler::Success)
        return -1;
      at += size;
      gpus::count(std::string_view(instructions_->getName(inst.getOpcode())), classes);
    }
    return found;
  }

 private:
  std::unique_ptr<llvm::MCRegisterInfo> registers_;
  std::unique_ptr<llvm::MCAsmInfo> assembly_;
  std::unique_ptr<llvm::MCSubtargetInfo> subtarget_;
  std::optional<llvm::MCContext> context_;
  std::unique_ptr<llvm::MCDisassembler> decoder_;
  std::unique_ptr<llvm::MCInstrInfo> instructions_;
};

template <class T>
T want(llvm::Expected<T> value) {
  if (!value) throw std::runtime_error(llvm::toString(value.takeError()));
  return static_cast<T&&>(*value);
}

/// The document of metadata, amdhsa.kernels, in the note that LLVM's AMDGPU page describes.
std::string metadata_of(const Elf& elf) {
  const auto& file = elf.getELFFile();
  const auto sections = want(file.sections());
  for (const auto& section : sections) {
    if (section.sh_type != llvm::ELF::SHT_NOTE) continue;
    llvm::Error error = llvm::Error::success();
    for (const auto& note : file.notes(section, error))
      if (note.getName() == "AMDGPU" && note.getType() == llvm::ELF::NT_AMDGPU_METADATA)
        return note.getDescAsStringRef(section.sh_addralign).str();
    if (error) throw std::runtime_error(llvm::toString(std::move(error)));
  }
  return "";
}

void read_metadata(const std::string& text, CodeObject& object) {
  llvm::msgpack::Document document;
  if (text.empty() || !document.readFromBlob(text, false)) return;
  object.has_metadata = true;
  for (auto& node : document.getRoot().getMap()["amdhsa.kernels"].getArray()) {
    auto& map = node.getMap();
    auto number = [&](const char* key) { return map[key].isEmpty() ? 0 : map[key].getUInt(); };
    ObjectKernel kernel;
    kernel.name = map[".name"].getString();
    kernel.symbol = map[".symbol"].getString();
    for (auto& argument : map[".args"].getArray())
      kernel.arguments.push_back(
          {argument.getMap()[".offset"].getUInt(), argument.getMap()[".size"].getUInt()});
    kernel.vector_registers = number(".vgpr_count");
    kernel.scalar_registers = number(".sgpr_count");
    kernel.accumulation_registers = number(".agpr_count");
    kernel.spilled_vectors = number(".vgpr_spill_count");
    kernel.spilled_scalars = number(".sgpr_spill_count");
    kernel.shared_bytes = number(".group_segment_fixed_size");
    kernel.scratch_bytes = number(".private_segment_fixed_size");
    object.kernels.push_back(std::move(kernel));
  }
}

void read_symbols(const Elf& elf, Disassembler& assembly, CodeObject& object) {
  for (const llvm::object::ELFSymbolRef& symbol : elf.getDynamicSymbolIterators()) {
    std::string name = want(symbol.getName()).str();
    if (want(symbol.getFlags()) & llvm::object::SymbolRef::SF_Undefined) {
      object.undefined.push_back(name);
      continue;
    }
    for (ObjectKernel& kernel : object.kernels) {
      if (name == kernel.symbol) kernel.descriptor_bytes = symbol.getSize();
      if (name != kernel.name) continue;
      auto section = want(symbol.getSection());
      uint64_t at = want(symbol.getAddress()) - section->getAddress();
      llvm::StringRef body = want(section->getContents()).substr(at, symbol.getSize());
      kernel.has_code = true;
      kernel.instructions = assembly.count({body.bytes_begin(), body.size()}, kernel.classes);
    }
  }
}

}  // namespace

CodeObject read_code_object(std::span<const std::byte> code, const runtime::Target& target) {
  llvm::StringRef bytes(reinterpret_cast<const char*>(code.data()), code.size());
  auto elf = want(Elf::create({bytes, target.device}));
  CodeObject object;
  object.format = elf.getFileFormatName().str();
  object.cpu = elf.tryGetCPUName().value_or("").str();
  read_metadata(metadata_of(elf), object);
  Disassembler assembly(codegen::Isa::parse(target.isa));
  read_symbols(elf, assembly, object);
  return object;
}

}  // namespace quern::gpus

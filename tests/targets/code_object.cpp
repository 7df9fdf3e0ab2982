#include "tests/targets/code_object.h"

#include <llvm/BinaryFormat/MsgPackDocument.h>
#include <llvm/MC/MCAsmInfo.h>
#include <llvm/MC/MCContext.h>
#include <llvm/MC/MCDisassembler/MCDisassembler.h>
#include <llvm/MC/MCInst.h>
#include <llvm/MC/MCRegisterInfo.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Object/ELFObjectFile.h>
#include <llvm/Support/TargetSelect.h>

#include "backends/llvm/codegen.h"
#include "backends/llvm/toolchain.h"

namespace quern::test {

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
  }

  /// The number of instructions, or -1 where some bytes are none.
  int count(llvm::ArrayRef<uint8_t> bytes) {
    int found = 0;
    for (uint64_t at = 0; at < bytes.size(); found++) {
      llvm::MCInst inst;
      uint64_t size = 0;
      if (decoder_->getInstruction(inst, size, bytes.slice(at), at, llvm::nulls()) !=
          llvm::MCDisassembler::Success)
        return -1;
      at += size;
    }
    return found;
  }

 private:
  std::unique_ptr<llvm::MCRegisterInfo> registers_;
  std::unique_ptr<llvm::MCAsmInfo> assembly_;
  std::unique_ptr<llvm::MCSubtargetInfo> subtarget_;
  std::optional<llvm::MCContext> context_;
  std::unique_ptr<llvm::MCDisassembler> decoder_;
};

template <class T>
T want(llvm::Expected<T> value) {
  if (!value) throw std::runtime_error(llvm::toString(value.takeError()));
  return static_cast<T&&>(*value);
}

/// The document of metadata, amdhsa.kernels, in the note that LLVM's AMDGPU page describes.
std::string metadata_of(const Elf& elf) {
  const auto& file = elf.getELFFile();
  for (const auto& section : want(file.sections())) {
    if (section.sh_type != llvm::ELF::SHT_NOTE) continue;
    llvm::Error error = llvm::Error::success();
    for (const auto& note : file.notes(section, error))
      if (note.getName() == "AMDGPU" && note.getType() == llvm::ELF::NT_AMDGPU_METADATA)
        return note.getDescAsStringRef(section.sh_addralign).str();
    if (error) throw std::runtime_error(llvm::toString(std::move(error)));
  }
  return "";
}

std::string fault_of_metadata(const std::string& text, const ir::Kernel& kernel) {
  llvm::msgpack::Document document;
  if (text.empty() || !document.readFromBlob(text, false)) return "it has no metadata";
  auto kernels = document.getRoot().getMap()["amdhsa.kernels"].getArray();
  if (kernels.size() != kernel.tasks.size())
    return "its metadata tells of " + std::to_string(kernels.size()) + " kernels";
  for (size_t k = 0; k < kernels.size(); k++) {
    auto& map = kernels[k].getMap();
    std::string name = codegen::task_symbol(k);
    if (map[".name"].getString() != name || map[".symbol"].getString() != name + ".kd")
      return "kernel " + std::to_string(k) + " is called " + map[".name"].getString().str();
    if (map[".args"].getArray().size() < 5) return name + " has too few arguments";
    for (size_t a = 0; a < 5; a++) {
      auto& arg = map[".args"].getArray()[a].getMap();
      if (arg[".offset"].getUInt() != 8 * a || arg[".size"].getUInt() != 8)
        return "argument " + std::to_string(a) + " of " + name + " is not where it belongs";
    }
    if (map[".vgpr_count"].getUInt() > 512) return name + " has too many registers";
  }
  return "";
}

std::string fault_of_symbols(const Elf& elf, const ir::Kernel& kernel, Disassembler& assembly) {
  const auto& file = elf.getELFFile();
  std::map<std::string, llvm::object::ELFSymbolRef> found;
  for (const auto& symbol : elf.getDynamicSymbolIterators()) {
    std::string name = want(symbol.getName()).str();
    if (symbol.getFlags() && (want(symbol.getFlags()) & llvm::object::SymbolRef::SF_Undefined))
      return "it leaves " + name + " undefined";
    found.emplace(name, symbol);
  }
  for (size_t k = 0; k < kernel.tasks.size(); k++) {
    std::string name = codegen::task_symbol(k);
    auto code = found.find(name), descriptor = found.find(name + ".kd");
    if (code == found.end() || descriptor == found.end()) return "it lacks " + name;
    if (descriptor->second.getSize() != 64) return name + ".kd is not a kernel descriptor";
    auto section = want(code->second.getSection());
    llvm::StringRef bytes = want(section->getContents());
    uint64_t at = want(code->second.getAddress()) - section->getAddress();
    auto body = bytes.substr(at, code->second.getSize());
    int count = assembly.count({body.bytes_begin(), body.size()});
    if (count < 1) return name + " does not disassemble";
  }
  (void)file;
  return "";
}

}  // namespace

std::string fault_of_code_object(const std::vector<std::byte>& code, const ir::Kernel& kernel,
                                 const runtime::Target& target) {
  codegen::Isa isa = codegen::Isa::parse(target.isa);
  llvm::StringRef bytes(reinterpret_cast<const char*>(code.data()), code.size());
  auto elf = want(Elf::create({bytes, kernel.name}));
  if (elf.getArch() != llvm::Triple::amdgcn) return "it is for " + elf.getFileFormatName().str();
  if (elf.tryGetCPUName().value_or("") != isa.cpu)
    return "it is for " + elf.tryGetCPUName().value_or("?").str();
  std::string fault = fault_of_metadata(metadata_of(elf), kernel);
  if (!fault.empty()) return fault;
  Disassembler assembly(isa);
  return fault_of_symbols(elf, kernel, assembly);
}

}  // namespace quern::test

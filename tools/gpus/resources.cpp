#include "tools/gpus/resources.h"

#include <llvm/Object/ELFObjectFile.h>

#include <regex>

#include "quern/error.h"
#include "tools/gpus/code_object.h"
#include "tools/gpus/ptxas.h"

namespace quern::gpus {

namespace {

constexpr int64_t instruction_bytes = 16;  ///< of NVIDIA's GPUs since Volta

/// The bytes of each function's code, by the names of the sections.
std::map<std::string, int64_t> code_sizes(const std::vector<char>& cubin) {
  llvm::StringRef bytes(cubin.data(), cubin.size());
  auto elf = llvm::object::ELF64LEFile::create(bytes);
  if (!elf) throw Error("the cubin is no ELF file: " + llvm::toString(elf.takeError()));
  std::map<std::string, int64_t> sizes;
  const auto sections = llvm::cantFail(elf->sections());
  for (const auto& section : sections) {
    llvm::StringRef name = llvm::cantFail(elf->getSectionName(section));
    if (name.consume_front(".text.")) sizes[name.str()] = int64_t(section.sh_size);
  }
  return sizes;
}

int64_t number_before(const std::string& text, const char* words) {
  std::smatch found;
  return std::regex_search(text, found, std::regex("(\\d+) " + std::string(words)))
             ? std::stoll(found[1])
             : 0;
}

std::vector<Resources> of_ptx(const runtime::Image& image, const ir::Kernel& kernel,
                              const std::string& arch) {
  Assembled assembled = assemble(image.code, arch);
  if (!assembled.done) throw Error("ptxas: " + assembled.log);
  std::map<std::string, int64_t> sizes = code_sizes(assembled.cubin);
  std::vector<Resources> all;
  for (size_t k = 0; k < kernel.tasks.size(); k++) {
    std::string name = runtime::task_symbol(k);
    size_t from = assembled.log.find("entry function '" + name + "'");
    if (from == std::string::npos) throw Error("ptxas says nothing of " + name);
    size_t to = assembled.log.find("entry function '", from + 1);
    std::string said = assembled.log.substr(from, to - from);
    all.push_back({number_before(said, "registers"), number_before(said, "bytes spill stores"),
                   number_before(said, "bytes smem"), sizes.at(name) / instruction_bytes});
  }
  return all;
}

std::vector<Resources> of_object(const runtime::Image& image, const runtime::Target& target) {
  std::vector<Resources> all;
  for (const ObjectKernel& k : read_code_object(image.code, target).kernels)
    all.push_back({int64_t(k.vector_registers), 4 * int64_t(k.spilled_vectors),
                   int64_t(k.shared_bytes), k.instructions, k.classes});
  return all;
}

}  // namespace

std::vector<Resources> resources(const Gpu& gpu, const ir::Kernel& lowered) {
  bool amd = gpu.target.backend == "rocm";
  if (!amd && !ptxas()) return {};
  runtime::Image image = gpu.compiler->compile(lowered, gpu.target);
  return amd ? of_object(image, gpu.target) : of_ptx(image, lowered, gpu.ptxas_arch);
}

}  // namespace quern::gpus

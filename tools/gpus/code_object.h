#pragma once
// Code objects of AMD's, as HIP's loader reads them.
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "quern/runtime/backend.h"
#include "tools/gpus/classes.h"

namespace quern::gpus {

/// A kernel of a code object, by its metadata, its descriptor and its code. Registers are counted
/// for a lane (vector, accumulation) and a wave (scalar), bytes for a block (shared) and a lane
/// (scratch).
struct ObjectKernel {
  std::string name, symbol;
  struct Argument {
    uint64_t offset = 0, size = 0;
  };
  std::vector<Argument> arguments;
  uint64_t vector_registers = 0, scalar_registers = 0, accumulation_registers = 0;
  uint64_t spilled_vectors = 0, spilled_scalars = 0;  ///< registers
  uint64_t shared_bytes = 0, scratch_bytes = 0;
  uint64_t descriptor_bytes = 0;  ///< 0: it has none
  bool has_code = false;
  int instructions = 0;  ///< -1: some bytes of its code are none
  Classes classes;
};

struct CodeObject {
  std::string format;  ///< "elf64-amdgpu"
  std::string cpu;     ///< "gfx90a"
  bool has_metadata = false;
  std::vector<ObjectKernel> kernels;   ///< in the order of the metadata
  std::vector<std::string> undefined;  ///< dynamic symbols that it leaves to others
};

/// Throws std::runtime_error for bytes that are no ELF file. `target` says how to disassemble.
CodeObject read_code_object(std::span<const std::byte> code, const runtime::Target& target);

}  // namespace quern::gpus

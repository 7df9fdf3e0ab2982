#pragma once
// NVIDIA's assembler, where it is installed.
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace quern::gpus {

/// The program: from PATH, or the usual folder of the CUDA Toolkit.
const std::optional<std::string>& ptxas();

struct Assembled {
  bool done = false;
  std::string log;          ///< what ptxas says: why not, or what the functions take (-v)
  std::vector<char> cubin;  ///< an ELF file
};
/// `arch` such as "sm_80". Needs ptxas() and writes below the folder for temporary
/// files.
Assembled assemble(std::span<const std::byte> ptx, const std::string& arch);

}  // namespace quern::gpus

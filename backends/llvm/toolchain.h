#pragma once
// From a kernel to machine code: LLVM's target machines, its optimiser and its emitters, for every
// target that the code generator serves.
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backends/llvm/codegen.h"
#include "backends/llvm/keep_in_memory.h"
#include "backends/llvm/sanitizer.h"
#include "quern/runtime/compiler.h"

namespace llvm {
class TargetMachine;
}

namespace quern::codegen {

/// What an LLVM target is named by: "triple cpu features", Target::isa on GPUs.
struct Isa {
  std::string triple, cpu, features;
  static Isa parse(const std::string& text);  ///< throws InternalError
  std::string text() const { return triple + " " + cpu + " " + features; }
};

/// The start of its description for the generator.
Machine machine_of(const Isa& isa, const llvm::TargetMachine& machine);

/// How a back end uses LLVM. Constant for the life of the process.
struct Toolchain {
  std::string backend;  ///< its name, for messages
  /// Target::isa in LLVM's words; null: it is. Throws Error where this LLVM does not know it.
  std::string (*isa)(const std::string& isa) = nullptr;
  void (*initialise)() = nullptr;  ///< registers the target with LLVM; called once
  /// Describes the target to the generator; `machine` gives the data layout.
  Machine (*describe)(const Isa& isa, const llvm::TargetMachine& machine) = nullptr;
  /// Changes optimised code so that LLVM's code generator does no wrong to it; null: nothing.
  void (*mend)(llvm::Module&) = nullptr;
  bool vectorise = true;  ///< loops into vector code; a GPU has its lanes already
  /// What long code may hold at once (keep_in_memory.h); none: LLVM's allocator sees to it.
  std::optional<Registers> long_code = std::nullopt;
  std::string assembly;          ///< what the listing in the target's assembly language is called
  bool text = false;             ///< images are text in that language, not object files
  uint64_t max_local_bytes = 0;  ///< of the local arrays of a loop
  /// Loop strength reduction: a pointer for each field that goes along with the index. Not where
  /// the fields' addresses are constants that take no registers.
  bool reduce_strength = true;
  Sanitizer sanitizer = Sanitizer::none;  ///< that watches what the code does to memory
  /// The image's code, of LLVM's object file; null: that is it. `kernel` is for messages.
  std::vector<std::byte> (*link)(std::span<const std::byte> object,
                                 const std::string& kernel) = nullptr;
  /// What code depends on besides kernel, target and LLVM's version; null: nothing.
  std::string (*besides)() = nullptr;
};

/// The compiler of a back end on LLVM. Listings are of kind "ir", "llvm", "llvm-optimised" or
/// Toolchain::assembly. Throws Error at the line of the first local array that makes those of a task
/// exceed what there is; InternalError with LLVM's words where it fails, fatal errors included.
class Compiler final : public runtime::Compiler {
 public:
  explicit Compiler(const Toolchain& tools) : tools_(tools) {}
  std::string listing(const ir::Kernel& kernel, const runtime::Target& target,
                      std::string_view kind) const override;
  std::string version() const override;

 protected:
  std::vector<std::byte> code(const ir::Kernel& kernel,
                              const runtime::Target& target) const override;

 private:
  const Toolchain& tools_;
};

}  // namespace quern::codegen

#include "backends/llvm/split_blocks.h"

#include <llvm/IR/Instructions.h>
#include <llvm/IR/Module.h>

#include <algorithm>
#include <unordered_map>

namespace quern::codegen {

namespace {

/// Instructions of a block that is cut, and of its parts.
constexpr size_t least_size = 1500, usual_size = 500, most_size = 600;

/// A bool, or a mask. It stays in the block that it is made in: in another one not every CPU has a
/// register for it.
bool is_condition(const llvm::Instruction& inst) { return inst.getType()->isIntOrIntVectorTy(1); }

/// Of each condition the place of its last use in its block, counted from the block's start.
class Conditions {
 public:
  explicit Conditions(const llvm::BasicBlock& block) {
    std::unordered_map<const llvm::Instruction*, size_t> places;
    for (const llvm::Instruction& inst : block) places.emplace(&inst, places.size());
    for (const llvm::Instruction& inst : block) {
      if (!is_condition(inst)) continue;
      size_t& last = last_[&inst];
      for (const llvm::User* user : inst.users()) {
        const auto found = places.find(llvm::cast<llvm::Instruction>(user));
        if (found != places.end()) last = std::max(last, found->second);
      }
    }
  }
  size_t last_use(const llvm::Instruction& inst) const {
    const auto found = last_.find(&inst);
    return found == last_.end() ? 0 : found->second;
  }

 private:
  std::unordered_map<const llvm::Instruction*, size_t> last_;
};

/// The place behind all that must stand at the start of the block, or in the function's first one.
size_t first_split(const llvm::BasicBlock& block) {
  size_t place = 0, first = 0;
  for (const llvm::Instruction& inst : block) {
    place++;
    if (llvm::isa<llvm::AllocaInst, llvm::PHINode>(inst)) first = place;
  }
  return first;
}

void split(llvm::BasicBlock& block) {
  const Conditions conditions(block);
  llvm::BasicBlock* part = &block;
  size_t place = 0, in_part = 0, wanted_until = 0, first = first_split(block);
  for (auto at = block.begin(); !at->isTerminator(); ++at, ++place, ++in_part) {
    const bool is_long = in_part >= (wanted_until < place ? usual_size : most_size);
    if (is_long && place >= first) {
      part = part->splitBasicBlock(at);
      at = part->begin();
      in_part = 0;
    }
    wanted_until = std::max(wanted_until, conditions.last_use(*at));
  }
}

}  // namespace

bool has_long_blocks(const llvm::Module& module) {
  return std::ranges::any_of(module, [](const llvm::Function& function) {
    return std::ranges::any_of(
        function, [](const llvm::BasicBlock& block) { return block.size() >= least_size; });
  });
}

void split_long_blocks(llvm::Module& module) {
  for (llvm::Function& function : module)
    for (auto block = function.begin(); block != function.end();) {
      llvm::BasicBlock& whole = *block++;
      if (whole.size() >= least_size) split(whole);
    }
}

}  // namespace quern::codegen

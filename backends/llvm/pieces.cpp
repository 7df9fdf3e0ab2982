#include "backends/llvm/pieces.h"

#include <llvm/IR/Function.h>
#include <llvm/Transforms/Utils/CodeExtractor.h>

#include "quern/error.h"

namespace quern::codegen {

size_t Pieces::size(const ir::Inst* inst) {
  if (inst->is(ir::Op::constant)) return 0;
  size_t all = 1;
  for (const ir::Region* r : inst->regions) all += size(r);
  return all;
}

size_t Pieces::size(const ir::Region* region) {
  auto known = sizes_.find(region);
  if (known != sizes_.end()) return known->second;
  size_t all = 0;
  for (const ir::Inst* inst = region->first; inst; inst = inst->next) all += size(inst);
  if (most_ && all > most_) all = starts(region).size();
  return sizes_[region] = all;
}

std::vector<const ir::Inst*> Pieces::starts(const ir::Region* region) {
  std::vector<const ir::Inst*> all;
  size_t now = 0;
  for (const ir::Inst* inst = region->first; inst != region->last; inst = inst->next) {
    const size_t next = size(inst);
    if (all.empty() || now + next > most_) {
      all.push_back(inst);
      now = 0;
    }
    now += next;
  }
  return most_ && all.size() > 1 ? all : std::vector<const ir::Inst*>();
}

void Pieces::move_out(llvm::Function& function) {
  if (made_.empty()) return;
  const llvm::CodeExtractorAnalysisCache facts(function);
  for (const Piece& piece : made_) {
    std::vector<llvm::BasicBlock*> blocks;
    for (auto* at = piece.first; at != piece.behind; at = at->getNextNode()) blocks.push_back(at);
    llvm::CodeExtractor extractor(blocks);
    llvm::Function* moved = extractor.extractCodeRegion(facts);
    if (!moved) throw InternalError("LLVM cannot move a part of a task into its own function");
    moved->setLinkage(llvm::Function::InternalLinkage);
    moved->addFnAttr(llvm::Attribute::NoInline);
  }
  made_.clear();
}

}  // namespace quern::codegen

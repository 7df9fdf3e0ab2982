#include "backends/llvm/pieces.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/DataLayout.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/InstrTypes.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Module.h>
#include <llvm/Transforms/Utils/CodeExtractor.h>

#include <algorithm>

#include "quern/error.h"

namespace quern::codegen {

namespace {
/// So many values may pass between pieces that need not be cut yet.
constexpr size_t few_values = 16;
/// Fewer operations are not worth a piece of their own.
constexpr size_t least_size = 64;

using Places = std::unordered_map<const ir::Inst*, size_t>;

/// The last place in the region that uses what the instruction at `place` computes.
size_t last_use(const ir::Inst& inst, size_t place, const Places& places) {
  size_t last = place;
  for (const ir::Value& v : inst.results)
    for (const ir::Use* use = v.uses; use; use = use->next) {
      const ir::Inst* user = use->user;
      while (user->parent != inst.parent) user = user->parent->parent;
      last = std::max(last, places.at(user));
    }
  return last;
}

/// For each place of the region: the values computed before it that are used there or behind.
std::vector<size_t> values_that_pass(const ir::Region& region) {
  Places places;
  for (const ir::Inst* inst = region.first; inst; inst = inst->next)
    places.emplace(inst, places.size());
  std::vector<size_t> passing(places.size() + 1);
  size_t now = 0, place = 0;
  std::vector<size_t> ends(places.size() + 1);
  for (const ir::Inst* inst = region.first; inst; inst = inst->next, place++) {
    now -= ends[place];
    passing[place] = now;
    if (inst->is(ir::Op::constant)) continue;
    const size_t last = last_use(*inst, place, places);
    if (last == place) continue;
    now++;
    ends[last + 1]++;
  }
  return passing;
}
}  // namespace

size_t Pieces::size(const ir::Inst* inst) {
  if (inst->is(ir::Op::constant)) return 0;
  size_t all = 1;
  for (const ir::Region* r : inst->regions) all += size(r);
  return all;
}

size_t Pieces::size(const ir::Region* region) {
  auto known = sizes_.find(region);
  if (known != sizes_.end()) return known->second;
  const size_t pieces = starts(region).size();
  return sizes_[region] = pieces ? pieces : operations(region);
}

size_t Pieces::operations(const ir::Region* region) {
  size_t all = 0;
  for (const ir::Inst* inst = region->first; inst; inst = inst->next) all += size(inst);
  return all;
}

std::vector<const ir::Inst*> Pieces::starts(const ir::Region* region) {
  std::vector<const ir::Inst*> all;
  size_t left = operations(region);
  if (!limits_.usual || left <= limits_.usual) return all;
  const std::vector<size_t> passing = values_that_pass(*region);
  const size_t at_most = left <= limits_.whole ? limits_.whole : limits_.most;
  size_t now = 0, place = 0;
  for (const ir::Inst* inst = region->first; inst != region->last; inst = inst->next, place++) {
    const size_t next = size(inst);
    const bool cheap = passing[place] <= few_values && left >= least_size;
    const size_t limit = cheap ? limits_.usual : at_most;
    if (all.empty() || (now >= least_size && now + next > limit)) {
      all.push_back(inst);
      now = 0;
    }
    now += next;
    left -= next;
  }
  return all.size() > 1 ? all : std::vector<const ir::Inst*>();
}

namespace {
/// What a piece is passed with zeros in its last bits, as strides are, has them there too: LLVM looks
/// for them, or makes a loop's vectors for strides of a byte alone.
void keep_zeros(llvm::Function& moved) {
  auto* call = llvm::cast<llvm::CallInst>(*moved.user_begin());
  llvm::IRBuilder<> b(&*moved.getEntryBlock().getFirstInsertionPt());
  for (llvm::Argument& passed : moved.args()) {
    auto* masked = llvm::dyn_cast<llvm::BinaryOperator>(call->getArgOperand(passed.getArgNo()));
    if (!masked || masked->getOpcode() != llvm::Instruction::And) continue;
    auto* mask = llvm::dyn_cast<llvm::ConstantInt>(masked->getOperand(1));
    if (!mask || !mask->getValue().isNegatedPowerOf2()) continue;
    auto* again = llvm::cast<llvm::Instruction>(b.CreateAnd(&passed, mask));
    passed.replaceUsesWithIf(again, [&](llvm::Use& use) { return use.getUser() != again; });
  }
}
}  // namespace

void Pieces::move_slots(const Piece& piece, llvm::Function& moved) {
  auto* call = llvm::cast<llvm::CallInst>(*moved.user_begin());
  for (const Slot& slot : slots_) {
    // Else its elements may outlast the piece, which runs more often than the slot is reached.
    if (!ir::encloses(piece.region, slot.inst->parent)) continue;
    if (!slot.memory->hasOneUser() || *slot.memory->user_begin() != call) continue;
    for (llvm::Argument& passed : moved.args())
      if (call->getArgOperand(passed.getArgNo()) == slot.memory) {
        passed.replaceAllUsesWith(slot.memory);
        call->setArgOperand(passed.getArgNo(), llvm::PoisonValue::get(passed.getType()));
      }
    slot.memory->moveBefore(&*moved.getEntryBlock().begin());
  }
}

namespace {
using Offsets =
    std::unordered_map<const llvm::Value*, int64_t>;  ///< of places in a frame, in bytes

/// Of the places in one frame that are passed to a piece only the first is: the others are constant
/// distances from it.
void pass_one_place(llvm::Function& function, const Offsets& offsets) {
  for (llvm::Instruction& inst : llvm::instructions(function)) {
    auto* call = llvm::dyn_cast<llvm::CallInst>(&inst);
    llvm::Function* piece = call ? call->getCalledFunction() : nullptr;
    if (!piece || piece->isDeclaration()) continue;
    llvm::IRBuilder<> b(&*piece->getEntryBlock().getFirstInsertionPt());
    Offsets inside;
    llvm::Argument* first = nullptr;
    for (llvm::Argument& passed : piece->args()) {
      const auto known = offsets.find(call->getArgOperand(passed.getArgNo()));
      if (known == offsets.end()) continue;
      if (!first) {
        first = &passed;
        inside[first] = known->second;
        continue;
      }
      llvm::Value* place = b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), first,
                                                        uint64_t(known->second - inside.at(first)));
      inside[place] = known->second;
      passed.replaceAllUsesWith(place);
      call->setArgOperand(passed.getArgNo(), llvm::PoisonValue::get(passed.getType()));
    }
    if (inside.size() > 1) pass_one_place(*piece, inside);
  }
}
}  // namespace

void Pieces::share_frame(llvm::Function& function) {
  const auto is_passed = [](const llvm::AllocaInst& array) {
    return llvm::any_of(array.users(), [](const llvm::User* user) {
      const auto* call = llvm::dyn_cast<llvm::CallInst>(user);
      return call && call->getCalledFunction() && !call->getCalledFunction()->isDeclaration();
    });
  };
  std::vector<llvm::AllocaInst*> arrays;
  for (const Slot& slot : slots_)
    if (slot.memory->getFunction() == &function && slot.memory->getAllocatedType()->isArrayTy() &&
        is_passed(*slot.memory))
      arrays.push_back(slot.memory);
  if (arrays.size() < 2) return;
  const llvm::DataLayout& layout = function.getParent()->getDataLayout();
  llvm::IRBuilder<> b(&function.getEntryBlock(), function.getEntryBlock().begin());
  llvm::Align alignment;
  uint64_t bytes = 0;
  std::vector<uint64_t> places;
  for (const llvm::AllocaInst* array : arrays) {
    alignment = std::max(alignment, array->getAlign());
    bytes = llvm::alignTo(bytes, array->getAlign());
    places.push_back(bytes);
    bytes += layout.getTypeAllocSize(array->getAllocatedType());
  }
  llvm::AllocaInst* frame =
      b.CreateAlloca(llvm::ArrayType::get(b.getInt8Ty(), bytes), arrays[0]->getAddressSpace());
  frame->setAlignment(alignment);
  Offsets offsets;
  for (size_t k = 0; k < arrays.size(); k++) {
    llvm::Value* place = b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), frame, places[k]);
    offsets[place] = int64_t(places[k]);
    arrays[k]->replaceAllUsesWith(place);
    arrays[k]->eraseFromParent();
  }
  pass_one_place(function, offsets);
}

void Pieces::move_out(llvm::Function& function) {
  if (made_.empty()) return slots_.clear();
  const llvm::CodeExtractorAnalysisCache facts(function);
  for (const Piece& piece : made_) {
    std::vector<llvm::BasicBlock*> blocks;
    for (auto* at = piece.first; at != piece.behind; at = at->getNextNode()) blocks.push_back(at);
    llvm::CodeExtractor extractor(blocks);
    llvm::Function* moved = extractor.extractCodeRegion(facts);
    if (!moved) throw InternalError("LLVM cannot move a part of a task into its own function");
    moved->setLinkage(llvm::Function::InternalLinkage);
    moved->addFnAttr(llvm::Attribute::NoInline);
    keep_zeros(*moved);
    move_slots(piece, *moved);
  }
  share_frame(function);
  made_.clear();
  slots_.clear();
}

}  // namespace quern::codegen

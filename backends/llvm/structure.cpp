#include <llvm/IR/MDBuilder.h>

#include "backends/llvm/callees.h"
#include "backends/llvm/emitter.h"
#include "backends/llvm/scalar.h"
#include "backends/llvm/vector_functions.h"
#include "ir/analysis/affine.h"
#include "quern/ir/abi.h"

namespace quern::codegen {

using ir::Op;
using llvm::BasicBlock;
using llvm::Value;

namespace {

/// Of so many operations on an iteration of a row takes more than masks do.
constexpr size_t masked_row = 100;
/// So many iterations left of a row take less one by one than as a vector of which most is masked.
constexpr int64_t few_left = 3;

const ir::Region* region_of(const ir::Value* v) { return v->inst ? v->inst->parent : v->region; }

bool has_atomics(const ir::Kernel& kernel, const ir::Region* region) {
  bool found = false;
  ir::walk(const_cast<ir::Region*>(region),
           [&](const ir::Inst* inst) { found |= is_atomic(kernel, *inst); });
  return found;
}

/// Does `region` combine partial results of a reduction? There are few of them: not worth the time
/// to compile unrolled vector code. Of copies there may be many.
bool combines(const ir::Kernel& kernel, const ir::Region* region) {
  bool found = false;
  ir::walk(const_cast<ir::Region*>(region), [&](const ir::Inst* inst) {
    if (!inst->is(Op::read) || inst->imm < ir::abi::first_buffer_class) return;
    const ir::Binding& buffer = kernel.bindings[inst->imm - ir::abi::first_buffer_class];
    found |= buffer.size.rule != ir::BufferSize::copies;
  });
  return found;
}

/// A sum is waited for, unless two go on beside each other.
unsigned vectors_together(const ir::Inst& loop) { return loop.results.empty() ? 1 : 2; }

/// Do vectors of floats do it, or ask it, as fast as single ones?
bool is_float_arithmetic(const Machine& machine, const ir::Kernel& kernel, const ir::Inst* inst) {
  if (inst->is(Op::call)) return !vector_lengths(machine, kernel.callees.at(inst->imm)).empty();
  if (ir::info(inst->op).rule == ir::OperandRule::special) return false;
  const ir::Type type = inst->operand(0)->type;
  return ir::is_float(type) || type == ir::Type::b1;
}

/// Of values in a loop's body: which are sums of multiples of its index and of what its rounds
/// share?
class EvenValues {
 public:
  explicit EvenValues(const ir::Region* body) : body_(body) {}

  bool contains(const ir::Value* v) {
    if (v == body_->arg(0) || is_shared(v)) return true;
    if (const auto known = known_.find(v); known != known_.end()) return known->second;
    return known_[v] = v->inst && is_even(v->inst);
  }

 private:
  bool is_shared(const ir::Value* v) const { return !ir::encloses(body_, region_of(v)); }

  bool is_even(const ir::Inst* inst) {
    const bool product = inst->is(Op::mul);
    if (!product && !inst->is(Op::add) && !inst->is(Op::sub) && !inst->is(Op::offset) &&
        !inst->is(Op::convert))
      return false;
    for (size_t k = 0; k < inst->operand_count(); k++)
      if (!contains(inst->operand(k))) return false;
    return !product || is_shared(inst->operand(0)) || is_shared(inst->operand(1));
  }

  const ir::Region* body_;
  std::unordered_map<const ir::Value*, bool> known_;
};

/// Where carried value k of a loop is only the running fmin or fmax of something: which of them.
std::optional<Op> running_extreme(const ir::Inst& loop, size_t k) {
  const ir::Region* body = loop.region(0);
  const ir::Value* arg = body->arg(k + 1);
  const ir::Value* next = body->last->operand(k);
  const ir::Inst* step = next->inst;
  if (!arg->uses || arg->uses->next || arg->uses->user != step || step->parent != body)
    return std::nullopt;
  if (step->is(Op::loop) && step->operand_count() > next->index + 3 &&
      step->operand(next->index + 3) == arg)
    return running_extreme(*step, next->index);
  if (step->is(Op::fmin) || step->is(Op::fmax)) return step->op;
  return std::nullopt;
}

}  // namespace

void Emitter::if_else(const ir::Inst& inst) {
  if (inst.kind == ir::rarely && inst.parent == in_vector_) return usual_side(inst);
  BasicBlock* side[2] = {block("then"), block("else")};
  BasicBlock* join = block("join");
  auto* branch = b_.CreateCondBr(value(inst.operand(0)), side[0], side[1]);
  for (int k = 0; k < 2; k++)
    if (reports_error(kernel_, inst.region(size_t(k))))
      branch->setMetadata(llvm::LLVMContext::MD_prof, llvm::MDBuilder(context_).createBranchWeights(
                                                          k ? 1 << 20 : 1, k ? 1 : 1 << 20));
  Values results[2];
  BasicBlock* end[2];
  for (int k = 0; k < 2; k++) {
    b_.SetInsertPoint(side[k]);
    results[k] = region(inst.region(k));
    end[k] = b_.GetInsertBlock();
    b_.CreateBr(join);
  }
  b_.SetInsertPoint(join);
  for (size_t r = 0; r < inst.results.size(); r++) {
    auto* phi = b_.CreatePHI(type(inst.results[r].type), 2);
    for (int k = 0; k < 2; k++) phi->addIncoming(results[k][r], end[k]);
    values_[inst.result(r)] = phi;
  }
}

void Emitter::any_loop(const ir::Inst& inst) {
  bool outer = brief_;
  brief_ |= combines(kernel_, inst.region(inst.regions.size() - 1));
  if (inst.is(Op::loop))
    counted_loop(inst);
  else
    while_loop(inst);
  brief_ = outer;
}

Value* Emitter::key_of(const ir::Value* v, Op op) {
  auto it = keys_.find(v);
  if (it != keys_.end() && it->second.op == op) return it->second.value;
  return emit_key(b_, value(v), op == Op::fmin);
}

void Emitter::set_key(const ir::Value* v, Key key) {
  keys_[v] = key;
  values_[v] = emit_unkey(b_, key.value, type(v->type));
}

/// fmin or fmax with a running extreme.
bool Emitter::extreme_step(const ir::Inst& inst) {
  if (!inst.is(Op::fmin) && !inst.is(Op::fmax)) return false;
  const ir::Value *x = inst.operand(0), *y = inst.operand(1);
  auto running = [&](const ir::Value* v) {
    auto it = keys_.find(v);
    return it != keys_.end() && it->second.op == inst.op;
  };
  if (!running(x) && !running(y)) return false;
  auto id = inst.is(Op::fmin) ? llvm::Intrinsic::smin : llvm::Intrinsic::smax;
  Value* key = b_.CreateBinaryIntrinsic(id, key_of(x, inst.op), key_of(y, inst.op));
  set_key(inst.result(), {inst.op, key});
  return true;
}

/// Operations of what the instruction calls.
size_t Emitter::called(const ir::Inst* inst) const {
  size_t operations = 0;
  if (inst->is(Op::call))
    ir::walk(kernel_.callees.at(inst->imm).body, [&](const ir::Inst*) { operations++; });
  return operations;
}

/// Operations of a body, those of what it calls among them.
size_t Emitter::operations_of(const ir::Region* body) const {
  size_t operations = 0;
  ir::walk(const_cast<ir::Region*>(body),
           [&](const ir::Inst* inst) { operations += !inst->is(Op::constant) + called(inst); });
  return operations;
}

/// As many as there are in a vector of the widest elements that the loop reads, writes, updates or carries.
unsigned Emitter::most_lanes(const ir::Inst& loop) const {
  unsigned widest = 1;
  for (const ir::Value& carried : loop.results)
    widest = std::max(widest, ir::byte_size(carried.type));
  ir::walk(loop.region(0), [&](const ir::Inst* inst) {
    if (inst->is(Op::read) || inst->is(Op::write) || inst->is(Op::rmw))
      widest = std::max(widest, ir::byte_size(inst->elem));
  });
  return machine_.vector_bits / 8 / widest;
}

/// As many where nearly all of the body is arithmetic; else 0, and LLVM estimates what it takes with
/// each number of lanes, which takes it most of its time where the body is long.
unsigned Emitter::lanes_of(const ir::Inst& loop) const {
  const ir::Region* body = loop.region(0);
  size_t operations = 0, arithmetic = 0, accesses = 0;
  ir::walk(const_cast<ir::Region*>(body), [&](const ir::Inst* inst) {
    if (inst->is(Op::constant)) return;
    operations++;
    arithmetic += is_float_arithmetic(machine_, kernel_, inst);
    accesses += inst->is(Op::read) || inst->is(Op::write);
  });
  return accesses > 0 && arithmetic * 4 >= operations * 3 ? most_lanes(loop) : 0;
}

/// A thread's share of the iterations goes by in such steps: short rounds are mostly the test for
/// the next.
unsigned Emitter::rounds_together(const ir::Region* body) {
  constexpr size_t short_round = 40;
  size_t operations = 0;
  ir::walk(const_cast<ir::Region*>(body), [&](const ir::Inst*) { operations++; });
  return operations <= short_round ? 4 : 0;
}

/// Slots in which a round of a walk may find what another one has put, or put where another one does. Not
/// those that are only read, or only written at a place for each round.
std::unordered_set<const ir::Value*> Emitter::shared_slots(const ir::Region* body) {
  std::unordered_map<const ir::Value*, int> uses;
  std::unordered_set<const ir::Value*> shared;
  ir::AffineForms forms;
  ir::walk(const_cast<ir::Region*>(body), [&](const ir::Inst* inst) {
    if (inst->is(Op::slot)) shared.insert(inst->result());
    if (inst->is(Op::get) || inst->is(Op::put)) uses[inst->operand(0)]++;
  });
  ir::walk(const_cast<ir::Region*>(body), [&](const ir::Inst* inst) {
    if (!inst->is(Op::put) || (inst->operand(0)->inst->kind & ir::by_round)) return;
    bool apart = uses[inst->operand(0)] == 1 && inst->operand_count() == 3 && inst->parent == body;
    if (apart) {
      const ir::Affine& index = forms.of(inst->operand(1));
      const int64_t distance = index.factor_of(body->arg(0));  // no so many rounds that it wraps
      apart =
          distance != 0 && std::abs(distance) < 1 << 20 && inst->operand(1)->type == ir::Type::i64;
      for (const auto& term : index.terms)
        apart &= term.symbol == body->arg(0) || !ir::encloses(body, region_of(term.symbol));
    }
    if (!apart) shared.insert(inst->operand(0));
  });
  return shared;
}

/// Rounds of the walk at hand do not depend on each other by this access of a slot.
void Emitter::in_group(llvm::Instruction* access, const ir::Value* slot) {
  if (memory_.group() && !shared_.count(slot))
    access->setMetadata(llvm::LLVMContext::MD_access_group, memory_.group());
}

/// Does each round of a loop only add to all that it carries, in any order?
bool Emitter::sums_up(const ir::Inst& loop) const {
  if (kernel_.modes.strict) return false;
  for (const ir::Use& next : loop.region(0)->last->operands) {
    const ir::Inst* sum = next.value->inst;
    if (!sum || !(sum->is(Op::add) || sum->is(Op::sub)) || !ir::is_float(sum->type())) return false;
    if ((sum->kind & ~ir::unasked) != ir::reassociate) return false;
  }
  return true;
}

/// Is it a loop in an iteration's code of so many rounds of straight code that it pays to do them
/// by vectors: sums in any order, or updates, of elements that lie at even distances?
bool Emitter::is_for_vectors(const ir::Inst& loop) const {
  constexpr int64_t vector = 8;
  if (machine_.grid) return false;  // threads are its vectors
  const ir::Inst *lo = loop.operand(0)->inst, *hi = loop.operand(1)->inst;
  const ir::Inst* step = loop.operand(2)->inst;
  for (const ir::Inst* made : {lo, hi, step})
    if (!made || !made->is(Op::constant)) return false;
  const ir::Type type = lo->type();
  int64_t rounds = 0;
  if (step->imm != 1 || !sums_up(loop) ||
      __builtin_sub_overflow(ir::to_signed(hi->imm, type), ir::to_signed(lo->imm, type), &rounds) ||
      rounds < vector)
    return false;
  const ir::Region* body = loop.region(0);
  const bool updates = memory_.updates_plainly(body);
  EvenValues even(body);
  bool pays = updates || !loop.results.empty();
  ir::walk(const_cast<ir::Region*>(body), [&](const ir::Inst* inst) {
    const bool is_access = inst->is(Op::rmw) || inst->is(Op::read) || inst->is(Op::write);
    pays &= inst->regions.empty() && (updates || !inst->is(Op::rmw)) &&
            (!is_access || even.contains(inst->operand(0)));
  });
  return pays;
}

/// Is it a walk along a row of several, short enough in an iteration that a loop over whole vectors
/// and one whose only vector has some lanes masked are better than masks in all, or than one iteration
/// after the other behind the last whole vector?
bool Emitter::ends_apart(const ir::Inst& loop) const {
  constexpr size_t least = 6;          // LLVM makes one call of less
  constexpr size_t least_of_sum = 24;  // what a vector's lanes have is added up behind both loops
  if (!(loop.kind & ir::parallel_walk) || loop.kind & ir::brief || brief_) return false;
  if (!machine_.masks || !task_ || task_->rank < 2) return false;
  const ir::Inst* step = loop.operand(2)->inst;
  if (!step || !step->is(Op::constant) || step->imm != 1 || step->type() != ir::Type::i64)
    return false;
  const ir::Region* body = loop.region(0);
  if (!loop.results.empty() && !sums_up(loop)) return false;
  const size_t operations = operations_of(body);
  return operations >= (loop.results.empty() ? least : least_of_sum) && operations < masked_row &&
         !has_atomics(kernel_, body);
}

void Emitter::counted_loop(const ir::Inst& inst) {
  Values carried;
  for (size_t k = 0; k < inst.results.size(); k++) {
    const auto extreme = running_extreme(inst, k);
    const ir::Value* init = inst.operand(k + 3);
    carried.push_back(extreme ? key_of(init, *extreme) : value(init));
  }
  Value *lo = value(inst.operand(0)), *hi = value(inst.operand(1));
  if (ends_apart(inst)) {
    const auto number = [&](int64_t n) { return llvm::ConstantInt::getSigned(lo->getType(), n); };
    const int64_t together = int64_t(most_lanes(inst) * vectors_together(inst));
    Value* count = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, b_.CreateSub(hi, lo), number(0));
    Value* rest = b_.CreateAnd(count, number(together - 1));
    Value* is_short = b_.CreateICmpSLE(rest, number(few_left));
    Value* middle = b_.CreateSub(hi, b_.CreateSelect(is_short, number(0), rest));
    carried = rounds(inst, lo, middle, carried, Rounds::whole_vectors);
    carried = rounds(inst, middle, hi, carried, Rounds::rest);
  } else {
    carried = rounds(inst, lo, hi, carried, Rounds::all);
  }
  for (size_t k = 0; k < carried.size(); k++) hold(inst, k, inst.result(k), carried[k]);
}

/// `v` is what the loop carries as number k.
void Emitter::hold(const ir::Inst& loop, size_t k, const ir::Value* v, Value* held) {
  if (const auto extreme = running_extreme(loop, k))
    set_key(v, {*extreme, held});
  else
    values_[v] = held;
}

/// Those of a loop from `lo` to below `hi`; yields what it carries behind the last one.
/// Rotated: guard, body, test at the end, which LLVM's loop passes want. A step other than 1
/// counts rounds, so that an index that would wrap ends the loop.
Emitter::Values Emitter::rounds(const ir::Inst& inst, Value* lo, Value* hi, const Values& init,
                                Rounds which) {
  const ir::Region* body = inst.region(0);
  const bool is_walk = inst.kind & ir::parallel_walk;
  bool strides = inst.kind == ir::thread_walk;  // as unsigned numbers these cannot wrap
  bool is_signed = ir::is_signed(inst.operand(0)->type) && !strides;
  Value* step = value(inst.operand(2));
  llvm::Type* t = lo->getType();
  Value* one = llvm::ConstantInt::get(t, 1);
  bool plain = step == one || strides;

  Value* rounds = nullptr;
  BasicBlock* before = b_.GetInsertBlock();
  BasicBlock* head = block("loop");
  BasicBlock* after = block("after");
  Value* runs = is_signed ? b_.CreateICmpSLT(lo, hi) : b_.CreateICmpULT(lo, hi);
  if (!plain) {
    Value* last = b_.CreateSub(b_.CreateSub(hi, lo), one);
    Value* positive = b_.CreateBinaryIntrinsic(llvm::Intrinsic::umax, step, one);
    rounds = b_.CreateAdd(b_.CreateUDiv(last, positive), one);
  }
  b_.CreateCondBr(runs, head, after);

  b_.SetInsertPoint(head);
  auto phi = [&](Value* first, llvm::Type* of) {
    auto* p = b_.CreatePHI(of, 2);
    p->addIncoming(first, before);
    return p;
  };
  llvm::PHINode* index = phi(lo, t);
  llvm::PHINode* round = plain ? nullptr : phi(llvm::ConstantInt::get(t, 0), t);
  std::vector<llvm::PHINode*> carried;
  for (Value* v : init) carried.push_back(phi(v, v->getType()));
  values_[body->arg(0)] = index;
  for (size_t k = 0; k < carried.size(); k++) hold(inst, k, body->arg(k + 1), carried[k]);

  llvm::MDNode* outer_group = memory_.group();
  auto outer_shared = shared_;
  llvm::MDNode* group = nullptr;
  if (is_walk && !has_atomics(kernel_, body)) {
    group = llvm::MDNode::getDistinct(context_, {});
    memory_.set_group(group);
    shared_ = shared_slots(body);
  }
  statements(body);
  memory_.set_group(outer_group);
  shared_ = std::move(outer_shared);
  Values next;
  for (size_t k = 0; k < carried.size(); k++) {
    const ir::Value* v = body->last->operand(k);
    const auto extreme = running_extreme(inst, k);
    next.push_back(extreme ? key_of(v, *extreme) : value(v));
  }

  BasicBlock* latch = b_.GetInsertBlock();
  Value* next_index = b_.CreateAdd(index, step, "", plain && !is_signed, plain && is_signed);
  Value* more;
  if (plain) {
    more = is_signed ? b_.CreateICmpSLT(next_index, hi) : b_.CreateICmpULT(next_index, hi);
  } else {
    Value* next_round = b_.CreateNUWAdd(round, one);
    more = b_.CreateICmpULT(next_round, rounds);
    round->addIncoming(next_round, latch);
  }
  auto* branch = b_.CreateCondBr(more, head, after);
  branch->setMetadata(llvm::LLVMContext::MD_loop,
                      metadata_of(facts_of(inst, lo, hi, which, group)));
  index->addIncoming(next_index, latch);
  for (size_t k = 0; k < carried.size(); k++) carried[k]->addIncoming(next[k], latch);

  b_.SetInsertPoint(after);
  Values results;
  for (size_t k = 0; k < carried.size(); k++) {
    auto* result = b_.CreatePHI(init[k]->getType(), 2);
    result->addIncoming(init[k], before);
    result->addIncoming(next[k], latch);
    results.push_back(result);
  }
  return results;
}

LoopFacts Emitter::facts_of(const ir::Inst& inst, Value* lo, Value* hi, Rounds which,
                            llvm::MDNode* group) const {
  const ir::Region* body = inst.region(0);
  LoopFacts facts{.group = group};
  const bool is_short = (inst.kind & ir::parallel_walk || is_for_vectors(inst)) &&
                        llvm::isa<llvm::Constant>(lo) && llvm::isa<llvm::Constant>(hi);
  if (inst.kind == ir::thread_walk)
    facts.unroll = rounds_together(body);
  else if (is_short)
    facts.unroll = 1;  // LLVM would unroll it before it vectorises
  if (which == Rounds::whole_vectors) facts.interleave = vectors_together(inst);
  if (!group || !machine_.masks) return facts;
  // What is left over behind whole vectors is a vector with some lanes masked, not a loop over half a
  // vector and another one over single iterations besides, where the body is long and to be there once,
  // or the walk so brief that these would take most of its time. So may be a row of several, where the
  // body takes more than masks do.
  constexpr size_t long_body = 500;
  const size_t operations = operations_of(body);
  const bool is_row = task_ && task_->rank > 1 && operations >= masked_row;
  facts.masks = operations >= long_body || is_row || inst.kind & ir::brief || which == Rounds::rest;
  if (operations >= long_body) facts.width = lanes_of(inst);
  return facts;
}

llvm::MDNode* Emitter::metadata_of(const LoopFacts& facts) {
  const auto named = [&](const char* name, llvm::Metadata* value) -> llvm::Metadata* {
    std::vector<llvm::Metadata*> items = {llvm::MDString::get(context_, name)};
    if (value) items.push_back(value);
    return llvm::MDNode::get(context_, items);
  };
  const auto number = [&](unsigned n) { return llvm::ConstantAsMetadata::get(b_.getInt32(n)); };
  std::vector<llvm::Metadata*> out = {nullptr, named("llvm.loop.mustprogress", nullptr)};
  if (facts.group) out.push_back(named("llvm.loop.parallel_accesses", facts.group));
  const unsigned width = brief_ ? 1 : facts.width;
  const unsigned interleave = width ? 1 : facts.interleave;
  if (facts.unroll == 1 || width) out.push_back(named("llvm.loop.unroll.disable", nullptr));
  if (facts.unroll > 1) out.push_back(named("llvm.loop.unroll.count", number(facts.unroll)));
  if (facts.masks)
    out.push_back(
        named("llvm.loop.vectorize.predicate.enable", llvm::ConstantAsMetadata::get(b_.getTrue())));
  if (width) out.push_back(named("llvm.loop.vectorize.width", number(width)));
  if (interleave) out.push_back(named("llvm.loop.interleave.count", number(interleave)));
  llvm::MDNode* id = llvm::MDNode::getDistinct(context_, out);
  id->replaceOperandWith(0, id);
  return id;
}

void Emitter::while_loop(const ir::Inst& inst) {
  const ir::Region* condition = inst.region(0);
  const ir::Region* body = inst.region(1);
  Values init = operands(inst);
  BasicBlock* before = b_.GetInsertBlock();
  BasicBlock* head = block("while");
  BasicBlock* inside = block("do");
  BasicBlock* after = block("after");
  b_.CreateBr(head);

  b_.SetInsertPoint(head);
  std::vector<llvm::PHINode*> carried;
  for (size_t k = 0; k < init.size(); k++) {
    carried.push_back(b_.CreatePHI(init[k]->getType(), 2));
    carried[k]->addIncoming(init[k], before);
    values_[condition->arg(k)] = carried[k];
  }
  Values tested = region(condition);
  b_.CreateCondBr(tested[0], inside, after);

  b_.SetInsertPoint(inside);
  for (size_t k = 0; k < init.size(); k++) values_[body->arg(k)] = tested[k + 1];
  Values next = region(body);
  for (size_t k = 0; k < init.size(); k++) carried[k]->addIncoming(next[k], b_.GetInsertBlock());
  b_.CreateBr(head);

  b_.SetInsertPoint(after);
  for (size_t k = 0; k < init.size(); k++) values_[inst.result(k)] = tested[k + 1];
}

}  // namespace quern::codegen

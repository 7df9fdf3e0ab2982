#include "autodiff/reverse/read_copies.h"

#include <unordered_map>
#include <vector>

#include "quern/ir/builder.h"

namespace quern::autodiff {

using namespace ir;

namespace {

/// As far as is known: a loop without constant bounds may have one.
double rounds_of(const Inst* loop) {
  double v[3];
  for (size_t k = 0; k < 3; k++) {
    const Inst* made = loop->is(Op::loop) ? loop->operand(k)->inst : nullptr;
    if (!made || !made->is(Op::constant)) return 1;
    v[k] = double(to_signed(made->imm, made->type()));
  }
  return v[0] < v[1] && v[2] > 0 ? (v[1] - v[0]) / v[2] : 0;
}

const Inst* directly_in(const Region* body, const Inst* inst) {
  while (inst->parent != body) inst = inst->parent->parent;
  return inst;
}

/// How often an instruction runs in a round, as far as is known.
double times(const Region* body, const Inst* inst) {
  double n = 1;
  for (const Region* r = inst->parent; r != body; r = r->parent->parent)
    if (!r->parent->is(Op::if_)) n *= rounds_of(r->parent);
  return n;
}

class Copier {
 public:
  explicit Copier(Kernel& kernel) : b_(kernel) {}

  /// Of a round's body.
  void copy_in(Region* body) {
    std::vector<const Value*> arrays;
    std::unordered_map<const Value*, std::vector<Inst*>> reads;
    std::unordered_map<const Inst*, size_t> order;
    for (const Inst* inst : *body) order[inst] = order.size();
    std::unordered_map<const Value*, size_t> first_write;
    walk(body, [&](Inst* inst) {
      if (!inst->is(Op::get) && !inst->is(Op::put)) return;
      const Value* array = inst->operand(0);
      if (array->inst->imm <= 1 || encloses(body, array->inst->parent)) return;
      if (inst->is(Op::put)) {
        first_write.try_emplace(array, order.at(directly_in(body, inst)));
      } else {
        if (!reads.contains(array)) arrays.push_back(array);
        reads[array].push_back(inst);
      }
    });
    for (const Value* array : arrays) {
      const auto write = first_write.find(array);
      if (write == first_write.end()) continue;
      std::erase_if(reads[array], [&](const Inst* read) {
        return order.at(directly_in(body, read)) >= write->second;
      });
      double n = 0;
      for (const Inst* read : reads[array]) n += times(body, read);
      if (n < 2 * double(array->inst->imm)) continue;
      Value* copied = copy(body, const_cast<Value*>(array));
      for (Inst* read : reads[array]) read->operands[0].set(copied);
    }
  }

 private:
  Value* copy(Region* body, Value* array) {
    const Type index = Type::i32;
    b_.before(body->first).at(array->inst->loc);
    Value* made = b_.slot(array->inst->elem, array->inst->imm);
    Value* zero = b_.integer(index, 0);
    Value* count = b_.integer(index, int64_t(array->inst->imm));
    Value* one = b_.integer(index, 1);
    Inst* loop = b_.loop(zero, count, one);
    Region* round = b_.make_region({index});
    b_.at_end(round);
    Value* v = b_.get(array, round->arg(0));
    b_.put(made, round->arg(0), v);
    b_.yield();
    b_.set_regions(loop, {round});
    return made;
  }

  Builder b_;
};

}  // namespace

void copy_arrays_that_change(Kernel& kernel) {
  Copier copier(kernel);
  std::vector<Region*> bodies;
  walk(kernel.body, [&](Inst* inst) {
    if (inst->is(Op::loop) || inst->is(Op::while_)) bodies.push_back(inst->regions.back());
  });
  for (Region* body : bodies) copier.copy_in(body);
}

}  // namespace quern::autodiff

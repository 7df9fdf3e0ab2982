#include "ir/passes/atomics/privatise_atomics.h"

#include <algorithm>
#include <map>

#include "ir/passes/atomics/atomic_rules.h"
#include "ir/passes/atomics/counted.h"
#include "ir/passes/atomics/follow.h"
#include "ir/passes/tasks/open_tasks.h"
#include "quern/ir/abi.h"
#include "quern/ir/builder.h"

namespace quern::ir {

namespace {

constexpr size_t most_sites = 128;  ///< atomics on a component; each is there twice, to compile
/// Rounds of an inner loop that are not known, and one of how many times a branch is taken: borders
/// of stencils are.
constexpr uint64_t likely_rounds = 8, seldom = 64;
/// So many updates of a field by an iteration share much of where their elements lie: it pays to
/// keep what they share until they are done.
constexpr size_t many_updates = 8;
/// So many updates ask together whether there are copies. With more of them what they add would not
/// stay in registers until it is asked.
constexpr size_t most_together = 8;
/// So many updates apart those of one element do not wait for each other.
constexpr uint64_t many_rounds = 16;

/// A field, or a buffer like one, with the components that are updated, and the buffer of copies.
struct Copied {
  uint32_t field = 0, buffer = 0;
  uint8_t rank = 0;
  struct Part {
    uint32_t component;
    AtomicOp op;
    Type elem;
  };
  bool from_zero = false;        ///< every axis
  std::vector<Part> parts = {};  ///< component k of the buffer is parts[k]
  std::vector<Inst*> atomics = {};

  uint32_t number(const Inst* inst) const {
    const auto part = std::ranges::find(parts, inst->component(), &Part::component);
    return uint32_t(part - parts.begin());
  }
};

Value* integer(Builder& b, int64_t v) { return b.integer(Type::i64, v); }

Value* start_of(Builder& b, const Copied::Part& part) {
  return b.constant(part.elem, identity(part.op, part.elem));
}

Value* combined(Builder& b, const Copied::Part& part, Value* a, Value* v) {
  Value* out = b.binary(operation(part.op, part.elem), a, v);
  if (rounds(part.op, part.elem)) out->inst->kind |= reassociate;
  return out;
}

Value* first_index(Builder& b, const Copied& c, uint32_t axis) {
  return c.from_zero ? integer(b, 0) : b.first(c.field, axis, Type::i64);
}

/// What a task, or the one that merges its copies, asks of a field. Element (i, j) of a copy has
/// number i strides[0] + j strides[1] - first.
struct Shape {
  std::vector<Value*> strides;
  Value* first = nullptr;
  Value* count = nullptr;   ///< elements
  Value* copies = nullptr;  ///< elements of all copies

  Shape(Builder& b, const Copied& c) : strides(c.rank) {
    count = integer(b, 1);
    for (uint32_t axis = c.rank; axis-- > 0;) {
      strides[axis] = count;
      Value* offset = b.mul(first_index(b, c, axis), count);
      first = first ? b.add(first, offset) : offset;
      count = b.mul(count, b.extent(c.field, axis, Type::i64));
    }
    copies = b.extent(c.buffer, 0, Type::i64);
  }
};

uint64_t rounds_of(const Inst* loop) {
  if (!loop->is(Op::loop)) return likely_rounds;
  int64_t bounds[3];
  for (size_t k = 0; k < 3; k++) {
    const Inst* made = loop->operand(k)->inst;
    if (!made || !made->is(Op::constant)) return likely_rounds;
    bounds[k] = to_signed(made->imm, loop->operand(k)->type);
  }
  if (bounds[2] <= 0 || bounds[1] <= bounds[0]) return 0;
  return uint64_t(bounds[1] - bounds[0] - 1) / uint64_t(bounds[2]) + 1;
}

/// How often so many iterations as BufferSize::updates speaks of run it, by what is known of the
/// loops around it.
uint64_t times(const Inst* inst, const Region* iteration) {
  uint64_t product = BufferSize::updating;
  for (const Region* r = inst->parent; r != iteration; r = r->parent->parent) {
    if (r->parent->is(Op::if_))
      product /= seldom;
    else if (__builtin_mul_overflow(product, rounds_of(r->parent), &product))
      return UINT32_MAX;
  }
  return std::min<uint64_t>(product, UINT32_MAX);
}

/// Do updates of one element by neighbouring iterations follow so closely that these take copies in
/// turns? Where loops around it have many rounds, all of these lie between.
bool comes_in_turns(const Inst* inst, const Region* iteration) {
  uint64_t rounds = 1;
  for (const Region* r = inst->parent; r != iteration && rounds < many_rounds;
       r = r->parent->parent)
    if (!r->parent->is(Op::if_)) rounds *= std::min(rounds_of(r->parent), many_rounds);
  return rounds < many_rounds;
}

bool is_in_rounds(const Inst* inst, const Region* iteration) {
  const Region* r = inst->parent;
  while (r != iteration && r->parent->is(Op::if_)) r = r->parent->parent;
  return r != iteration;
}

/// Updates of one region, a few together; in rounds of a loop, which are there for each place where
/// updates may go (version_rounds), each for itself.
std::vector<std::vector<Inst*>> grouped(const std::vector<Inst*>& atomics,
                                        const Region* iteration) {
  std::vector<std::vector<Inst*>> all;
  const auto stands_between = [](const Inst* a, const Inst* b) {
    for (; a != b; a = a->next)
      if (!a->regions.empty()) return true;
    return false;
  };
  for (Inst* inst : atomics) {
    const bool is_next = !all.empty() && all.back().size() < most_together &&
                         all.back().back()->parent == inst->parent &&
                         !is_in_rounds(inst, iteration) && !stands_between(all.back().back(), inst);
    if (!is_next) all.emplace_back();
    all.back().push_back(inst);
  }
  return all;
}

/// The fields whose updates by a task may go to copies.
std::vector<Copied> copied_fields(const Kernel& kernel, Region* iteration) {
  std::vector<Copied> all;
  const auto any = [](const Inst*) { return true; };
  for (const std::vector<Inst*>& atomics : combinable_atomics(kernel, iteration, any)) {
    std::map<Part, size_t> sites;
    for (const Inst* inst : atomics) sites[inst->part]++;
    for (Inst* inst : atomics) {
      const Binding& binding = kernel.bindings[inst->binding()];
      if (sites[inst->part] > most_sites || binding.rank == 0 || binding.layout.is_sparse())
        continue;
      auto copied = std::ranges::find(all, inst->binding(), &Copied::field);
      if (copied == all.end())
        copied = all.insert(copied, {.field = inst->binding(),
                                     .rank = binding.rank,
                                     .from_zero = binding.kind == Binding::buffer});
      if (copied->number(inst) == copied->parts.size())
        copied->parts.push_back({inst->component(), inst->atomic(), inst->elem});
      copied->atomics.push_back(inst);
    }
  }
  return all;
}

uint64_t updates_of_component(const Copied& c, const Region* iteration) {
  std::vector<uint64_t> updates(c.parts.size());
  for (const Inst* inst : c.atomics) updates[c.number(inst)] += times(inst, iteration);
  return *std::ranges::max_element(updates);
}

/// The updates of a chunk become those of its copies.
class Privatiser {
 public:
  Privatiser(Kernel& kernel, Task& task, const Copied& c)
      : b_(kernel), loop_(parallel_of(task)), c_(c), at_(task.loc) {}

  void run() {
    b_.before(loop_).at(at_);
    const Shape shape(b_, c_);
    Value* none = integer(b_, 0);
    own_ = b_.lt(none, shape.copies);
    Value* values = b_.mul(shape.count, integer(b_, int64_t(c_.parts.size())));
    Value* few = b_.binary(Op::le, values, integer(b_, int64_t(abi::few_values)));
    Value* copies = b_.select(few, integer(b_, int64_t(abi::most_copies)), integer(b_, 1));
    Value* length = b_.mul(shape.count, copies);
    from_ = b_.mul(b_.builtin(Builtin::chunk), length);
    origin_ = b_.sub(from_, shape.first);
    mask_ = b_.sub(copies, integer(b_, 1));
    counted(b_, b_.select(own_, length, none), [&](Value* k) {
      Value* at = b_.add(from_, k);
      for (uint32_t n = 0; n < c_.parts.size(); n++)
        b_.store(c_.buffer, n, {&at, 1}, start_of(b_, c_.parts[n]));
    });
    for (const std::vector<Inst*>& group : grouped(c_.atomics, loop_->region(0)))
      update(group, shape);
  }

 private:
  /// In the loop: to the copy, or as they were. Where elements lie in the copy is computed outside
  /// of the branch where many updates share parts of it, in 32 bits, which vectors multiply faster;
  /// but in rounds of a loop, where registers are few.
  void update(const std::vector<Inst*>& all, const Shape& shape) {
    const bool shares =
        c_.atomics.size() >= many_updates && !is_in_rounds(all[0], loop_->region(0));
    b_.before(all.back()).at(all.back()->loc);
    // A chunk's elements are fewer than 2^31; where there are no copies it may be any number.
    std::vector<Value*> places;
    Value* narrow = shares ? b_.unary(Op::neg, b_.convert(shape.first, Type::i32)) : nullptr;
    for (size_t k = 0; shares && k < all.size(); k++)
      places.push_back(place_of(all[k], shape, narrow));
    Inst* branch = b_.if_(own_);
    b_.at_end(branch->region(0));
    for (size_t k = 0; k < all.size(); k++) {
      const Inst* inst = all[k];
      b_.at(inst->loc);
      Value* at =
          shares ? b_.add(from_, b_.convert(places[k], Type::i64)) : place_of(inst, shape, origin_);
      Value* v = inst->operand(shape.strides.size());
      b_.atomic(inst->atomic(), c_.buffer, c_.number(inst), inst->elem, {&at, 1}, {&v, 1});
    }
    b_.yield();
    b_.at_end(branch->region(1));
    for (Inst* inst : all) move(b_, inst);
    b_.yield();
  }

  /// Where the element lies in the copies, from `origin` on, modulo what its type holds.
  Value* place_of(const Inst* inst, const Shape& shape, Value* origin) {
    const auto as = [&](Value* v) { return b_.convert(v, origin->type); };
    Value* at = origin;
    if (comes_in_turns(inst, loop_->region(0))) {
      Value* copy = b_.binary(Op::bit_and, b_.builtin(Builtin::iteration), mask_);
      at = b_.add(at, b_.mul(as(copy), as(shape.count)));
    }
    for (size_t axis = 0; axis < shape.strides.size(); axis++)
      at = b_.add(at, b_.mul(as(inst->operand(axis)), as(shape.strides[axis])));
    return at;
  }

  Builder b_;
  Inst* loop_;
  const Copied& c_;
  const Loc at_;
  Value* own_ = nullptr;     ///< are there copies?
  Value* from_ = nullptr;    ///< where the chunk's begin
  Value* origin_ = nullptr;  ///< where element (0, 0) would be there
  Value* mask_ = nullptr;    ///< of the copies that iterations take in turns
};

/// The task that combines the copies with the field.
class Merger {
 public:
  Merger(Kernel& kernel, const Copied& c, Loc loc) : b_(kernel), c_(c), loc_(loc) {}

  Task task() {
    Task task;
    task.kind = Task::range;
    task.walk = Task::chunked;
    task.rank = c_.rank;
    task.merges = c_.buffer;
    task.loc = loc_;
    task.domain = b_.make_region();
    b_.at_end(task.domain).at(loc_);
    b_.yield(bounds());
    task.body = b_.make_region();
    b_.at_end(task.body).at(loc_);
    const Shape shape(b_, c_);
    combine_copies(shape);
    Inst* loop = b_.make(Op::parallel, {}, bounds());
    loop->kind = c_.rank;
    const std::vector<Type> index(c_.rank, Type::i64);
    Region* iteration = b_.make_region(index);
    b_.set_regions(loop, {iteration});
    b_.at_end(iteration);
    for (uint32_t n = 0; n < c_.parts.size(); n++) merge(n, iteration);
    b_.yield();
    b_.at_end(task.body).yield();
    return task;
  }

 private:
  std::vector<Value*> bounds() {
    std::vector<Value*> out;
    for (uint32_t axis = 0; axis < c_.rank; axis++) {
      out.push_back(first_index(b_, c_, axis));
      out.push_back(b_.add(out.back(), b_.extent(c_.field, axis, Type::i64)));
    }
    return out;
  }

  /// Into the first one, as far as this chunk goes; copy after copy, which vectorises.
  void combine_copies(const Shape& shape) {
    Value* begin = b_.builtin(Builtin::begin);
    Value* length = b_.sub(b_.builtin(Builtin::end), begin);
    Value* more = b_.sub(b_.div(shape.copies, shape.count), integer(b_, 1));
    counted(b_, more, [&](Value* k) {
      Value* from = b_.mul(b_.add(k, integer(b_, 1)), shape.count);
      Value* first = integer(b_, 0);
      Inst* elements = b_.loop(first, length, integer(b_, 1));
      elements->kind = parallel_walk;
      fill_loop(b_, elements, [&](Value* j) {
        Value* to = b_.add(begin, j);
        Value* at = b_.add(from, to);
        for (uint32_t n = 0; n < c_.parts.size(); n++) {
          Value* sum = load(n, to);
          b_.store(c_.buffer, n, {&to, 1}, combined(b_, c_.parts[n], sum, load(n, at)));
        }
      });
    });
  }

  /// What no update came to keeps its bits.
  void merge(uint32_t n, Region* iteration) {
    const Copied::Part& part = c_.parts[n];
    std::vector<Value*> index;
    for (Value& v : iteration->args) index.push_back(&v);
    Value* sum = load(n, b_.builtin(Builtin::iteration));
    Value* old = b_.load(c_.field, part.component, part.elem, index);
    Value* is_none = b_.binary(Op::eq, bits(sum), bits(start_of(b_, part)));
    Value* next = combined(b_, part, old, sum);
    b_.store(c_.field, part.component, index, b_.select(is_none, old, next));
  }

  Value* load(uint32_t n, Value* at) { return b_.load(c_.buffer, n, c_.parts[n].elem, {&at, 1}); }
  Value* bits(Value* v) { return is_float(v->type) ? b_.bitcast(v, bits_type(v->type)) : v; }

  Builder b_;
  const Copied& c_;
  const Loc loc_;
};

void declare_copies(Kernel& kernel, size_t task, Copied& c) {
  std::vector<Type> types;
  for (const Copied::Part& part : c.parts) types.push_back(part.elem);
  const Loc loc = kernel.tasks[task].loc;
  const Region* iteration = parallel_of(kernel.tasks[task])->region(0);
  c.buffer = abi::declare_buffer(kernel, "copies of a field", types,
                                 {.rule = BufferSize::copies,
                                  .task = uint32_t(task),
                                  .number = c.field,
                                  .updates = updates_of_component(c, iteration)},
                                 loc);
}

}  // namespace

void privatise_atomics(Kernel& kernel, const TargetTraits& target) {
  if (kernel.modes.checked || target.walk != Task::chunked) return;
  const size_t count = kernel.tasks.size();
  std::vector<std::vector<Step>> after(count);
  for (size_t k = 0; k < count; k++) {
    if (kernel.tasks[k].kind != Task::range || kernel.tasks[k].lanes) continue;
    for (Copied& c : copied_fields(kernel, parallel_of(kernel.tasks[k])->region(0))) {
      declare_copies(kernel, k, c);
      Privatiser(kernel, kernel.tasks[k], c).run();
      after[k].push_back(launch_of(kernel, Merger(kernel, c, kernel.tasks[k].loc).task()));
    }
  }
  follow(kernel.schedule, after);
}

}  // namespace quern::ir

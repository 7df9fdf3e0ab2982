#include "ir/passes/lower/lower_loops.h"

#include <algorithm>

#include "ir/passes/tasks/open_tasks.h"
#include "quern/ir/abi.h"
#include "quern/ir/builder.h"

namespace quern::ir {

namespace {

/// The axis along which most fields of this rank have neighbours side by side in memory.
uint32_t fast_axis(const Kernel& kernel, uint32_t rank) {
  uint32_t votes[Placement::max_axes] = {}, best = rank - 1;
  for (const Binding& b : kernel.bindings)
    if (b.kind == Binding::field && b.rank == rank && b.contiguous)
      votes[b.layout.fast_axis(rank)]++;
  for (uint32_t axis = rank - 1; axis-- > 0;)
    if (votes[axis] > votes[best]) best = axis;
  return best;
}

class Walker {
 public:
  Walker(Kernel& kernel, Task& task) : b_(kernel), loop_(parallel_of(task)) {
    b_.before(loop_).at(task.loc);
    const uint32_t rank = loop_->kind;
    const uint32_t fast = innermost_axis(kernel, task);
    task.innermost = uint8_t(fast);
    for (uint32_t k = 0; k < rank; k++)
      if (k != fast) axes_.push_back(k);
    axes_.push_back(fast);
    for (uint32_t axis : axes_) {
      Value* lo = b_.convert(loop_->operand(2 * axis), Type::i64);
      Value* hi = b_.convert(loop_->operand(2 * axis + 1), Type::i64);
      lo_.push_back(lo);
      const bool is_needed = axis != 0 || reordered() || task.bound;
      extent_.push_back(is_needed ? b_.sub(hi, lo) : nullptr);
    }
    if (task.bound) own_end_ = iterations();
  }

  /// A task that follows this one: its chunks run the other's rows too.
  void lead(const Task& follower) {
    reach_ = &follower.follows.reach;
    const Inst* loop = parallel_of(follower);
    ValueMap map;
    walk(loop->region(0), [&](const Inst* inst) {
      for (const Use& use : inst->operands)
        if (!encloses(loop->region(0),
                      use.value->inst ? use.value->inst->parent : use.value->region))
          bring(use.value, map);
    });
    led_ = b_.make(Op::parallel, std::span<const Type>(), std::span<Value* const>());
    led_->kind = loop->kind;
    b_.set_regions(led_, {clone_region(b_, loop->region(0), map)});
  }

  /// What the chunks of the task that it follows have not run.
  void rest(const Following& follows) {
    reach_ = &follows.reach;
    Value* begin = b_.builtin(Builtin::begin);
    Value* end = b_.builtin(Builtin::end);
    const auto [from, to] = led_rows(begin, end);
    const auto within = [&](Value* v, Value* least) {
      return b_.binary(Op::max, b_.binary(Op::min, v, end), least);
    };
    Value* first = within(b_.mul(from, extent_.back()), begin);
    Value* second = within(b_.mul(to, extent_.back()), first);
    Inst* parts = b_.loop(integer(0), integer(2), integer(1));
    b_.at_end(parts->region(0));
    Value* is_first = b_.binary(Op::eq, parts->region(0)->arg(0), integer(0));
    Value* part_begin = b_.select(is_first, begin, second);
    rows(part_begin, b_.select(is_first, first, end));
    b_.at_end(parts->region(0)).yield();
    loop_->erase();
  }

  void chunked() {
    Value* begin = b_.builtin(Builtin::begin);
    Value* end = b_.builtin(Builtin::end);
    if (lo_.size() == 1) {
      Value* from = b_.add(lo_[0], begin);
      Value* to = b_.add(lo_[0], end);
      row(from, to, b_.sub(begin, from), {});
    } else {
      rows(begin, end);
    }
    loop_->erase();
    if (led_) led_->erase();
  }

  /// Numbers below 2^31 leave room in 32 bits for a stride of as many threads.
  void elements(bool wide) {
    const Type t = wide ? Type::i64 : Type::u32;
    Value* thread = number_of(Builtin::thread, t);
    Value* end = own_end_ ? b_.convert(own_end_, t) : number_of(Builtin::end, t);
    share(thread, end, number_of(Builtin::threads, t));
  }

  /// One iteration at most.
  void once(Task& task) {
    task.once = true;
    Value* thread = number_of(Builtin::thread, Type::u32);
    Value* end = number_of(Builtin::end, Type::u32);
    const std::vector<Reciprocal> reciprocals = make_reciprocals();
    Inst* present = b_.if_(b_.lt(thread, end));
    b_.at_end(present->region(1)).yield();
    b_.at_end(present->region(0));
    take(thread, reciprocals);
  }

  /// Threads take lanes, and all of the body belongs to a lane.
  void lanes(bool wide) {
    const Type t = wide ? Type::i64 : Type::u32;
    auto integer = [&](uint64_t v) { return b_.integer(t, int64_t(v)); };
    Region* all = loop_->parent;
    std::vector<Inst*> of_a_lane;
    for (Inst* inst : *all)
      if (inst != all->last) of_a_lane.push_back(inst);
    b_.before(all->first);
    Value* thread = number_of(Builtin::thread, t);
    Value* end = number_of(Builtin::end, t);
    Value* whole = b_.add(end, integer(abi::chunk_iterations - 1));
    Value* chunks = b_.div(whole, integer(abi::chunk_iterations));
    Value* count = b_.mul(chunks, integer(abi::chunk_lanes));
    Inst* outer = b_.loop(thread, count, number_of(Builtin::threads, t));
    outer->kind = thread_walk;
    Value* lane = outer->region(0)->arg(0);
    b_.at_end(outer->region(0));
    for (Inst* inst : of_a_lane) move(b_, inst);
    b_.yield();
    walk(outer->region(0), [&](Inst* inst) {
      if (!inst->is(Op::builtin) || inst->builtin() != Builtin::chunk) return;
      b_.before(inst);
      inst->result()->replace_with(b_.convert(lane, Type::i64));
      inst->erase();
    });
    b_.before(loop_);
    Value* chunk = b_.div(lane, integer(abi::chunk_lanes));
    Value* before = b_.mul(chunk, integer(abi::chunk_iterations));
    Value* first = b_.add(before, b_.binary(Op::bit_and, lane, integer(abi::chunk_lanes - 1)));
    Value* last = b_.binary(Op::min, b_.add(before, integer(abi::chunk_iterations)), end);
    share(first, last, integer(abi::chunk_lanes));
  }

 private:
  /// The parts of abi::reciprocal.
  struct Reciprocal {
    Value *multiplier, *shift;
  };

  Value* number_of(Builtin which, Type t) { return b_.convert(b_.builtin(which), t); }

  /// Of the whole domain, none where it is empty along an axis.
  Value* iterations() {
    Value* total = nullptr;
    for (Value* extent : extent_) {
      Value* some = b_.binary(Op::max, extent, integer(0));
      total = total ? b_.mul(total, some) : some;
    }
    return total;
  }

  /// Iterations [from, to) by `step`, in the place of the parallel loop.
  void share(Value* from, Value* to, Value* step) {
    const bool has_reciprocals = from->type != Type::i64 && !own_end_;
    const std::vector<Reciprocal> reciprocals =
        has_reciprocals ? make_reciprocals() : std::vector<Reciprocal>();
    Inst* stride = b_.loop(from, to, step);
    stride->kind = thread_walk;
    b_.at_end(stride->region(0));
    take(stride->region(0)->arg(0), reciprocals);
  }

  /// The iteration of this number, at the builder's point, where it stays; the parallel loop goes.
  void take(Value* iteration, const std::vector<Reciprocal>& reciprocals) {
    std::vector<Value*> at = recover(iteration, reciprocals);
    for (size_t k = 0; k < at.size(); k++) at[k] = b_.add(lo_[k], b_.convert(at[k], Type::i64));
    Value* linear = nullptr;
    if (uses_iteration()) linear = reordered() ? number(at) : b_.convert(iteration, Type::i64);
    fill(at, linear);
    loop_->erase();
  }

  Value* integer(int64_t v) { return b_.integer(Type::i64, v); }

  bool reordered() const { return axes_.back() + 1 != axes_.size(); }

  /// The row-major number of an iteration, from its index in the order of the walk.
  Value* number(std::span<Value* const> index) {
    Value* linear = nullptr;
    for (uint32_t axis = 0; axis < axes_.size(); axis++) {
      size_t k = size_t(std::find(axes_.begin(), axes_.end(), axis) - axes_.begin());
      Value* at = b_.sub(index[k], lo_[k]);
      linear = linear ? b_.add(b_.mul(linear, extent_[k]), at) : at;
    }
    return linear;
  }

  std::vector<Reciprocal> make_reciprocals() {
    std::vector<Reciprocal> all;
    if (lo_.size() > 1) all.push_back(reciprocal(Builtin::reciprocal));
    if (lo_.size() > 2) all.push_back(reciprocal(Builtin::next_reciprocal));
    return all;
  }
  Reciprocal reciprocal(Builtin which) {
    Value* word = b_.builtin(which);
    return {b_.convert(b_.convert(word, Type::u32), Type::u64),
            b_.convert(b_.binary(Op::shr, word, integer(32)), Type::u32)};
  }

  /// The quotient of a u32 below 2^31.
  Value* divide(Value* n, const Reciprocal& by) {
    Value* twice = b_.binary(Op::shl, n, b_.integer(Type::u32, 1));
    Value* product = b_.mul(b_.convert(twice, Type::u64), by.multiplier);
    Value* high = b_.binary(Op::shr, product, b_.integer(Type::u64, 32));
    return b_.binary(Op::shr, b_.convert(high, Type::u32), by.shift);
  }

  /// Position along each axis in the order of the walk, counted from 0, of the iteration with this
  /// number, in its type. `reciprocals` are those of the innermost extents: a GPU has no
  /// instruction that divides.
  std::vector<Value*> recover(Value* linear, std::span<const Reciprocal> reciprocals = {}) {
    std::vector<Value*> at(lo_.size());
    for (size_t k = lo_.size(); k-- > 1;) {
      Value* extent = b_.convert(extent_[k], linear->type);
      const size_t from_inside = lo_.size() - 1 - k;
      Value* rest = from_inside < reciprocals.size() ? divide(linear, reciprocals[from_inside])
                                                     : b_.div(linear, extent);
      at[k] = b_.sub(linear, b_.mul(rest, extent));
      linear = rest;
    }
    at[0] = linear;
    return at;
  }

  /// Walks from row to row; carries the linear number and the position on each axis.
  void rows(Value* begin, Value* end) {
    size_t last = lo_.size() - 1;
    const Rows led = led_ ? led_rows(begin, end) : Rows{};
    std::vector<Value*> state = recover(begin);
    state.insert(state.begin(), begin);
    Inst* loop = b_.while_(state);
    Region* test = loop->region(0);
    b_.at_end(test);
    std::vector<Value*> out = {b_.lt(test->arg(0), end)};
    for (size_t k = 0; k < state.size(); k++) out.push_back(test->arg(k));
    b_.yield(out);

    Region* body = loop->region(1);
    b_.at_end(body);
    Value *linear = body->arg(0), *start = body->arg(last + 1);
    Value* in_row = b_.sub(extent_[last], start);
    Value* count = b_.binary(Op::min, in_row, b_.sub(end, linear));
    std::vector<Value*> outer;
    for (size_t k = 0; k < last; k++) outer.push_back(b_.add(lo_[k], body->arg(k + 1)));
    Value* from = b_.add(lo_[last], start);
    Value* to = b_.add(from, count);
    row(from, to, b_.sub(linear, from), outer);
    if (led_) led_row(led, number_of_row({body->args.begin() + 1, last}));

    std::vector<Value*> next(state.size());
    next[0] = b_.add(linear, count);
    next[last + 1] = integer(0);
    next[last] = b_.add(body->arg(last), integer(1));
    for (size_t k = last - 1; k >= 1; k--) {
      Value* full = b_.binary(Op::eq, next[k + 1], extent_[k]);
      next[k] = b_.add(body->arg(k), b_.convert(full, Type::i64));
      next[k + 1] = b_.select(full, integer(0), next[k + 1]);
    }
    b_.yield(next);
  }

  /// Of rows, as they are numbered in the order of the walk.
  struct Rows {
    Value *from = nullptr, *to = nullptr;
  };

  /// Those of the task that follows that depend on whole rows of the chunk alone.
  Rows led_rows(Value* begin, Value* end) {
    Value* extent = extent_.back();
    Value* above = b_.add(begin, b_.sub(extent, integer(1)));
    Value* first = b_.div(above, extent);
    Value* from = b_.add(first, reached(&Following::Reach::before));
    Value* whole = b_.div(end, extent);
    return {from, b_.sub(whole, reached(&Following::Reach::after))};
  }
  /// That far apart are rows of which one depends on the other.
  Value* reached(uint32_t Following::Reach::* side) {
    Value* rows = integer((*reach_)[0].*side);
    for (size_t k = 1; k < reach_->size(); k++)
      rows = b_.add(b_.mul(rows, extent_[k]), integer((*reach_)[k].*side));
    return rows;
  }
  Value* number_of_row(std::span<Value> position) {
    Value* number = &position[0];
    for (size_t k = 1; k < position.size(); k++)
      number = b_.add(b_.mul(number, extent_[k]), &position[k]);
    return number;
  }

  /// Behind a row of the chunk, the row of the task that follows that wanted it last.
  void led_row(const Rows& led, Value* number) {
    Value* row_behind = b_.sub(number, reached(&Following::Reach::after));
    Value* is_above = b_.binary(Op::ge, row_behind, led.from);
    Inst* branch = b_.if_(b_.binary(Op::bit_and, is_above, b_.lt(row_behind, led.to)));
    b_.at_end(branch->region(1)).yield();
    b_.at_end(branch->region(0));
    std::vector<Value*> outer(lo_.size() - 1);
    Value* rest = row_behind;
    for (size_t k = outer.size(); k-- > 0;) {
      Value* quotient = k > 0 ? b_.div(rest, extent_[k]) : nullptr;
      Value* place = k > 0 ? b_.sub(rest, b_.mul(quotient, extent_[k])) : rest;
      outer[k] = b_.add(lo_[k], place);
      rest = quotient;
    }
    Value* linear = b_.mul(row_behind, extent_.back());
    Value* to = b_.add(lo_.back(), extent_.back());
    std::swap(loop_, led_);
    row(lo_.back(), to, b_.sub(linear, lo_.back()), outer);
    std::swap(loop_, led_);
    b_.yield();
    b_.after(branch);
  }

  /// Computes a value of another task's body here, too.
  Value* bring(Value* v, ValueMap& map) {
    if (const auto known = map.find(v); known != map.end()) return known->second;
    if (!v->inst || !v->inst->regions.empty())
      throw InternalError("a task that follows another needs more than values");
    for (const Use& use : v->inst->operands) bring(use.value, map);
    Inst* copy = clone_inst(b_, v->inst, map);
    return map[v] = copy->result(size_t(v - v->inst->results.data()));
  }

  /// The innermost loop at the builder's point, which moves on behind it. `shift` turns the index
  /// into the linear number.
  void row(Value* from, Value* to, Value* shift, std::vector<Value*> outer) {
    Inst* loop = b_.loop(from, to, integer(1));
    loop->kind = has_walks() ? 0 : parallel_walk;
    Region* around = b_.region();
    Inst* behind = b_.point();
    b_.at_end(loop->region(0));
    outer.push_back(loop->region(0)->arg(0));
    Value* linear = nullptr;
    if (uses_iteration()) linear = reordered() ? number(outer) : b_.add(outer.back(), shift);
    fill(outer, linear);
    b_.at_end(around);
    if (behind) b_.before(behind);
  }

  /// Are there walks in the body? Then those are the innermost loops.
  bool has_walks() {
    bool found = false;
    walk(loop_->region(0),
         [&](Inst* inst) { found |= inst->is(Op::loop) && (inst->kind & parallel_walk); });
    return found;
  }

  bool uses_iteration() {
    bool uses = false;
    walk(loop_->region(0), [&](Inst* inst) {
      uses |= inst->is(Op::builtin) && inst->builtin() == Builtin::iteration;
    });
    return uses;
  }

  /// Moves the iteration's code to the builder's point.
  void fill(std::span<Value* const> index, Value* linear) {
    Region* body = loop_->region(0);
    for (size_t k = 0; k < index.size(); k++) bind(body->arg(axes_[k]), index[k]);
    walk(body, [&](Inst* inst) {
      if (!inst->is(Op::builtin) || inst->builtin() != Builtin::iteration) return;
      inst->result()->replace_with(linear);
      inst->erase();
    });
    splice(b_, body);
    b_.yield();
  }

  void bind(Value* arg, Value* wide) {
    if (arg->type == Type::i64) {
      arg->replace_with(wide);
      return;
    }
    for (Use* use = arg->uses; use;) {
      Inst* user = use->user;
      use = use->next;
      if (!user->is(Op::convert) || user->type() != Type::i64) continue;
      user->result()->replace_with(wide);
      user->erase();
    }
    if (arg->used()) arg->replace_with(b_.convert(wide, arg->type));
  }

  Builder b_;
  Inst* loop_;
  const std::vector<Following::Reach>* reach_ = nullptr;  ///< of a task that follows another
  Inst* led_ = nullptr;              ///< the parallel loop of the task that follows
  std::vector<uint32_t> axes_;       ///< in the order of the walk, the innermost last
  std::vector<Value*> lo_, extent_;  ///< of these axes
  Value* own_end_ = nullptr;         ///< iterations, where a launch says a bound of them
};

/// Do the threads of a block wait for each other?
bool combines(const Task& task) {
  bool found = false;
  walk(task.body, [&](Inst* inst) { found |= inst->is(Op::block_reduce); });
  return found;
}

}  // namespace

uint32_t innermost_axis(const Kernel& kernel, const Task& task) {
  const bool in_order = !task.reductions.empty() || task.merges != no_binding;
  return in_order ? task.rank - 1u : fast_axis(kernel, task.rank);
}

void lower_loops(Kernel& kernel, const Signature& signature, const TargetTraits& target) {
  kernel.level = Level::lowered;
  for (Task& task : kernel.tasks) {
    if (task.kind == Task::serial) {
      walk(task.body, [&](Inst* inst) {
        if (!inst->is(Op::builtin) || inst->builtin() != Builtin::iteration) return;
        inst->result()->replace_with(Builder(kernel).before(inst).integer(Type::i64, 0));
        inst->erase();
      });
      continue;
    }
    if (task.kind == Task::combining) continue;
    Walker walker(kernel, task);
    const auto number = uint32_t(&task - kernel.tasks.data());
    for (const Task& other : kernel.tasks)
      if (other.follows.task == number) walker.lead(other);
    if (task.follows.task != no_task)
      walker.rest(task.follows);
    else if (task.walk == Task::chunked)
      walker.chunked();
    else if (task.lanes)
      walker.lanes(signature.wide);
    else if (target.whole_grids && !signature.wide && !combines(task) && !task.bound)
      walker.once(task);
    else
      walker.elements(signature.wide);
  }
}

}  // namespace quern::ir

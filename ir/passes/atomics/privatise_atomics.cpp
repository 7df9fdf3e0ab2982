#include "ir/passes/atomics/privatise_atomics.h"

#include <algorithm>
#include <map>

#include "ir/analysis/slice.h"
#include "ir/passes/atomics/atomic_rules.h"
#include "ir/passes/atomics/counted.h"
#include "ir/passes/tasks/open_tasks.h"
#include "quern/ir/builder.h"

namespace quern::ir {

namespace {

constexpr uint64_t most_elements = 4096, most_bytes = 16 * 1024;
constexpr uint64_t most_of_a_task = 64 * 1024;  ///< bytes, with the program's own arrays
constexpr int64_t copies = 4;
constexpr size_t most_sites = 64;     ///< atomics on a component; each one more branch to compile
constexpr size_t longest_bound = 16;  ///< operations for a bound of an inner loop

class Privatiser {
 public:
  Privatiser(Kernel& kernel, Task& task)
      : kernel_(kernel), task_(task), b_(kernel), loop_(parallel_of(task)) {
    walk(task.body, [&](const Inst* inst) {
      if (inst->is(Op::slot)) bytes_ += inst->imm * byte_size(inst->elem);
    });
  }

  void run() {
    auto any = [](const Inst*) { return true; };
    for (const std::vector<Inst*>& atomics : combinable_atomics(kernel_, loop_, any)) {
      std::map<Part, size_t> sites;
      for (const Inst* inst : atomics) sites[inst->part]++;
      for (Inst* inst : atomics) {
        auto same = [&](const Target& t) { return t.part == inst->part; };
        auto target = std::ranges::find_if(targets_, same);
        if (target == targets_.end()) {
          if (sites[inst->part] > most_sites || !fits(inst)) continue;
          target = targets_.insert(target, Target{inst->part, inst->atomic(), inst->elem, inst});
          b_.before(loop_).at(task_.loc);
          begin(*target, updates(inst->part, atomics));
        }
        update(*target, inst);
      }
    }
    for (const Target& t : targets_) {
      b_.after(loop_).at(task_.loc);
      merge(t);
    }
  }

 private:
  /// One component of a field, and the chunk's own array for it.
  struct Target {
    Part part;
    AtomicOp op;
    Type elem;
    const Inst* first;
    Value *array = nullptr, *own = nullptr;   ///< own: is it used?
    Value *count = nullptr, *mask = nullptr;  ///< elements of the field; copies of it less 1
    std::vector<Value*> extents = {}, firsts = {};
  };

  Value* integer(int64_t v) { return b_.integer(Type::i64, v); }
  Value* start(const Target& t) { return b_.constant(t.elem, identity(t.op, t.elem)); }

  static uint64_t room(Type elem) { return std::min(most_elements, most_bytes / byte_size(elem)); }

  /// Not on a tree: an update that changes nothing makes its element active.
  bool fits(const Inst* inst) {
    const uint64_t bytes = room(inst->elem) * byte_size(inst->elem);
    const Binding& binding = kernel_.bindings[inst->binding()];
    if (binding.rank == 0 || binding.layout.is_sparse() || bytes_ + bytes > most_of_a_task)
      return false;
    bytes_ += bytes;
    return true;
  }

  /// The value before the loop, as i64; null where that is not known there.
  Value* before_loop(Value* v) {
    const Slice slice = Slicer(kernel_, loop_->region(0)).of(v);
    if (!slice || !slice.is_pure() || slice.code.size() > longest_bound) return nullptr;
    ValueMap map;
    repeat(b_, slice, map);
    const auto copy = map.find(v);
    return b_.convert(copy == map.end() ? v : copy->second, Type::i64);
  }

  /// How often an iteration updates the component, at most: rounds of inner loops count where they
  /// are known before the loop.
  Value* updates(const Part& part, const std::vector<Inst*>& atomics) {
    Value* sum = nullptr;
    for (const Inst* inst : atomics) {
      if (inst->part != part) continue;
      Value* times = integer(1);
      for (const Region* r = inst->parent; r != loop_->region(0); r = r->parent->parent) {
        const Inst* around = r->parent;
        if (!around->is(Op::loop)) continue;
        Value* from = before_loop(around->operand(0));
        Value* to = before_loop(around->operand(1));
        Value* step = before_loop(around->operand(2));
        if (!from || !to || !step) continue;
        times = b_.mul(times, b_.div(b_.sub(to, from), step));
      }
      sum = sum ? b_.add(sum, times) : times;
    }
    return sum;
  }

  /// Before the loop.
  void begin(Target& t, Value* updates) {
    const Binding& binding = kernel_.bindings[t.first->binding()];
    for (uint32_t axis = 0; axis < binding.rank; axis++) {
      t.extents.push_back(b_.extent(t.first->binding(), axis, Type::i64));
      t.firsts.push_back(b_.first(t.first->binding(), axis, Type::i64));
      t.count = t.count ? b_.mul(t.count, t.extents.back()) : t.extents.back();
    }
    Value* all = integer(int64_t(room(t.elem)));
    Value* length = b_.sub(b_.builtin(Builtin::end), b_.builtin(Builtin::begin));
    Value* pays = b_.binary(Op::le, t.count, b_.mul(length, updates));
    t.own = b_.binary(Op::bit_and, b_.binary(Op::le, t.count, all), pays);
    Value* several = b_.binary(Op::le, b_.mul(t.count, integer(copies)), all);
    t.mask = b_.select(several, integer(copies - 1), integer(0));
    t.array = b_.slot(t.elem, room(t.elem));
    if (identity(t.op, t.elem) == 0) return;
    Value* used = b_.mul(t.count, b_.add(t.mask, integer(1)));
    counted(b_, b_.select(t.own, used, integer(0)),
            [&](Value* k) { b_.put(t.array, k, start(t)); });
  }

  /// In the loop: to the array, or as it was.
  void update(const Target& t, Inst* inst) {
    b_.before(inst).at(inst->loc);
    Inst* branch = b_.if_(t.own);
    b_.at_end(branch->region(0));
    Value* at = nullptr;
    for (size_t axis = 0; axis < t.extents.size(); axis++) {
      Value* index = b_.sub(b_.convert(inst->operand(axis), Type::i64), t.firsts[axis]);
      at = at ? b_.add(b_.mul(at, t.extents[axis]), index) : index;
    }
    Value* copy = b_.binary(Op::bit_and, b_.builtin(Builtin::iteration), t.mask);
    at = b_.add(at, b_.mul(copy, t.count));
    b_.put(t.array, at, combined(t, b_.get(t.array, at), inst->operand(t.extents.size())));
    b_.yield();
    b_.at_end(branch->region(1));
    move(b_, inst);
    b_.yield();
  }

  Value* combined(const Target& t, Value* a, Value* v) {
    Value* out = b_.binary(operation(t.op, t.elem), a, v);
    if (rounds(t.op, t.elem)) out->inst->kind |= reassociate;
    return out;
  }

  /// Behind the loop.
  void merge(const Target& t) {
    Value* none = integer(0);
    Value* number = none;
    std::vector<Value*> index;
    each_element(t, b_.select(t.own, t.extents[0], none), number, index);
  }

  void each_element(const Target& t, Value* extent, Value* number, std::vector<Value*>& index) {
    const size_t axis = index.size();
    counted(b_, extent, [&](Value* k) {
      Value* at = b_.add(b_.mul(number, t.extents[axis]), k);
      index.push_back(b_.add(t.firsts[axis], k));
      if (axis + 1 == t.extents.size())
        apply(t, at, index);
      else
        each_element(t, t.extents[axis + 1], at, index);
      index.pop_back();
    });
  }

  void apply(const Target& t, Value* at, std::span<Value* const> index) {
    Value* none = start(t);
    Value* first = integer(0);
    Inst* turns = b_.loop(first, b_.add(t.mask, integer(1)), integer(1), {&none, 1});
    Region* around = b_.region();
    b_.at_end(turns->region(0));
    Value* copy = b_.add(at, b_.mul(turns->region(0)->arg(0), t.count));
    b_.yield({combined(t, turns->region(0)->arg(1), b_.get(t.array, copy))});
    b_.at_end(around);
    Value* sum = turns->result();
    Inst* branch = b_.if_(b_.binary(Op::ne, bits(sum), bits(none)));
    b_.at_end(branch->region(1)).yield();
    b_.at_end(branch->region(0));
    b_.atomic(t.op, t.first->binding(), t.first->component(), t.elem, index, {&sum, 1})->site =
        t.first->site;
    b_.yield();
    b_.at_end(around);
  }

  Value* bits(Value* v) { return is_float(v->type) ? b_.bitcast(v, bits_type(v->type)) : v; }

  Kernel& kernel_;
  Task& task_;
  Builder b_;
  Inst* loop_;
  uint64_t bytes_ = 0;
  std::vector<Target> targets_;
};

}  // namespace

void privatise_atomics(Kernel& kernel, const TargetTraits& target) {
  if (kernel.modes.checked || target.walk != Task::chunked) return;
  for (Task& task : kernel.tasks)
    if (task.kind == Task::range && !task.lanes) Privatiser(kernel, task).run();
}

}  // namespace quern::ir

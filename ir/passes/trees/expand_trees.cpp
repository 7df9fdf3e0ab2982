#include "ir/passes/trees/expand_trees.h"

#include <algorithm>
#include <map>
#include <optional>

#include "ir/analysis/effects.h"
#include "ir/passes/checks/guarded_access.h"
#include "ir/passes/trees/activation_slice.h"
#include "ir/passes/trees/descent.h"
#include "quern/ir/trees.h"

namespace quern::ir {

namespace {

/// Operations that make an element active unless it is.
bool claims(const Inst* inst) {
  return inst->is(Op::store) || inst->is(Op::activate) ||
         (inst->is(Op::atomic) && inst->atomic() != AtomicOp::load);
}

/// The element that an iteration of a loop over a tree is at.
struct Own {
  uint32_t field = 0;  ///< that the loop names
  std::vector<Value*> indices;
  Value* number = nullptr;
};

class Expander {
 public:
  explicit Expander(Kernel& kernel) : kernel_(kernel), b_(kernel), parts_(kernel) {}

  void run() {
    const size_t count = kernel_.tasks.size();
    for (uint32_t k = 0; k < count; k++) {
      before_.clear();
      after_.clear();
      own_.reset();
      if (const std::optional<uint32_t> field = walked(k)) loop(k, *field);
      accesses(k);
      if (!before_.empty() || !after_.empty()) surround(kernel_.schedule, k);
    }
  }

 private:
  bool is_sparse(uint32_t binding) const { return kernel_.bindings[binding].layout.is_sparse(); }
  bool is_sparse(const Inst* inst) const {
    return accesses_element(inst->op) && is_sparse(inst->binding());
  }
  uint32_t tree_of(uint32_t field) const { return kernel_.bindings[field].tree; }

  // ---- loops

  std::optional<uint32_t> walked(uint32_t number) const {
    const uint32_t field = kernel_.tasks[number].options.over;
    if (field == no_binding || !is_sparse(field)) return std::nullopt;
    return field;
  }

  void loop(uint32_t number, uint32_t field) {
    const uint32_t cell = count_cells(field, number);
    Task& task = kernel_.tasks[number];
    task.options.over = no_binding;
    task.rank = 2;
    const auto& pools = kernel_.bindings[field].layout.pools;
    auto bounds = [&] {
      Value* zero = b_.integer(Type::i32, 0);
      Value* cells = b_.load(kernel_.frame_binding(), cell, Type::i32, {});
      return std::vector<Value*>{zero, cells, zero, b_.integer(Type::i32, pools.back().children)};
    };
    task.domain = b_.make_region();
    b_.at_end(task.domain).at(task.loc);
    b_.yield(bounds());
    if (Inst* parallel = opened(task)) {
      b_.before(parallel).at(task.loc);
      b_.set_operands(parallel, bounds());
      parallel->kind = 2;
      parallel->options.over = no_binding;
      b_.set_regions(parallel, {body(parallel->region(0), field, task.loc)});
    } else {
      task.body = body(task.body, field, task.loc);
    }
  }

  static Inst* opened(const Task& task) {
    for (Inst* inst : *task.body)
      if (inst->is(Op::parallel)) return inst;
    return nullptr;
  }

  /// Puts the number of the tree's cells into a frame cell, before the task.
  uint32_t count_cells(uint32_t field, uint32_t number) {
    const uint32_t cell = uint32_t(kernel_.frame.size());
    kernel_.frame.push_back(Type::i32);
    const size_t last = kernel_.bindings[field].layout.pools.size() - 1;
    Step refresh;
    refresh.kind = Step::refresh;
    refresh.binding = field;
    before_.push_back(refresh);
    Region* body = begin_serial(number);
    Value* at = b_.integer(Type::i64, int64_t(last * tree::words_of_pool + tree::count));
    Value* count = b_.load(parts_.state(field), 0, Type::u32, {&at, 1});
    b_.store(kernel_.frame_binding(), cell, {}, b_.convert(count, Type::i32));
    before_.push_back(end_serial(body, number));
    return cell;
  }

  /// The loop's body with a cell and a child's number for its indices.
  Region* body(Region* old, uint32_t field, Loc loc) {
    const Binding binding = kernel_.bindings[field];  // parts become bindings meanwhile
    const Placement::Pool& leaf = binding.layout.pools.back();
    Region* region = b_.make_region({Type::i32, Type::i32});
    b_.at_end(region).at(loc);
    Value* cell = b_.convert(region->arg(0), Type::i64);
    Value* child = region->arg(1);
    Value* slot = b_.load(parts_.list(field), 0, Type::u32, {&cell, 1});
    Value* number =
        b_.add(b_.mul(b_.convert(slot, Type::i64), b_.integer(Type::i64, leaf.children)),
               b_.convert(child, Type::i64));
    own_ = Own{field, {}, number};
    Value* active = Descent(kernel_, parts_, field, b_).is_listed(number);
    for (uint32_t axis = 0; axis < binding.rank; axis++) {
      Value* place = b_.load(parts_.places(field), axis, Type::i32, {&cell, 1});
      Value* at = b_.add(place, offset_of(child, leaf, axis));
      const Type type = old->arg(axis)->type;
      Value* index = b_.convert(at, type);
      if (binding.layout.shifted) index = b_.sub(index, b_.origin(field, axis, type));
      if (binding.layout.cut) {
        Value* from_first = b_.convert(index, Type::i64);
        if (!binding.zero_based) from_first = b_.sub(from_first, b_.first(field, axis, Type::i64));
        Value* inside = in_range(b_, from_first, b_.extent(field, axis, Type::i64));
        active = active ? b_.binary(Op::bit_and, active, inside) : inside;
      }
      own_->indices.push_back(index);
      old->arg(axis)->replace_with(index);
    }
    if (!active) {
      splice(b_, old);
      b_.yield();
      return region;
    }
    Inst* branch = b_.if_(active);
    b_.yield();
    b_.at_end(branch->region(0));
    splice(b_, old);
    b_.yield();
    b_.at_end(branch->region(1)).yield();
    return region;
  }

  /// How far along the axis a child lies from the first one of its cell.
  Value* offset_of(Value* child, const Placement::Pool& pool, uint32_t axis) {
    Value* total = b_.integer(Type::i32, 0);
    int64_t size = 1;
    for (size_t k = pool.levels.size(); k-- > 0;) {
      const Placement::Level& level = pool.levels[k];
      if (level.extent[axis] == 1) continue;
      Value* above = divide(b_, b_.convert(child, Type::u32), level.stride[axis]).first;
      Value* digit = divide(b_, above, level.extent[axis]).second;
      total = b_.add(total, b_.mul(b_.convert(digit, Type::i32), b_.integer(Type::i32, size)));
      size *= level.extent[axis];
    }
    return total;
  }

  // ---- accesses

  void accesses(uint32_t number) {
    std::vector<Inst*> all;
    std::map<uint32_t, std::vector<Inst*>> claimed;  // by the tree, what may make elements active
    std::map<uint32_t, uint32_t> ended;  // by the tree, a field that elements are deactivated by
    walk(kernel_.tasks[number].body, [&](Inst* inst) {
      if (inst->is(Op::iteration) && own_) return replace(inst, iteration(inst));
      if (!is_sparse(inst)) return;
      all.push_back(inst);
      if (inst->is(Op::deactivate)) ended.insert({tree_of(inst->binding()), inst->binding()});
      if (claims(inst) && !is_own(inst)) claimed[tree_of(inst->binding())].push_back(inst);
    });
    for (Inst* inst : all)
      if (inst->site != no_site) check(inst);
    for (const auto& [tree, insts] : claimed) {
      reserve(insts, number);
      before_.push_back(allow_taking(insts[0]->binding(), number));
    }
    for (const auto& [tree, field] : ended) {
      Step collect;
      collect.kind = Step::collect;
      collect.binding = field;
      after_.push_back(collect);
    }
    for (Inst* inst : all) expand(inst, claimed.contains(tree_of(inst->binding())));
  }

  static void replace(Inst* inst, Value* v) {
    inst->result()->replace_with(v);
    inst->erase();
  }

  bool is_own(const Inst* inst) const {
    if (!own_ || tree_of(inst->binding()) != tree_of(own_->field)) return false;
    const Binding &mine = kernel_.bindings[inst->binding()], &loop = kernel_.bindings[own_->field];
    if (inst->binding() != own_->field && (mine.layout.shifted || loop.layout.shifted))
      return false;
    for (size_t k = 0; k < own_->indices.size(); k++)
      if (inst->operand(k) != own_->indices[k]) return false;
    return true;
  }

  /// The place of the iteration's element among those of the field, in row-major order.
  Value* iteration(Inst* inst) {
    b_.before(inst).at(inst->loc);
    const Binding& field = kernel_.bindings[own_->field];
    Value* total = nullptr;
    for (uint32_t axis = 0; axis < field.rank; axis++) {
      Value* at = b_.convert(own_->indices[axis], Type::i64);
      if (!field.zero_based) at = b_.sub(at, b_.first(own_->field, axis, Type::i64));
      if (total) total = b_.mul(total, b_.extent(own_->field, axis, Type::i64));
      total = total ? b_.add(total, at) : at;
    }
    return b_.convert(total, Type::u64);
  }

  /// Of a target whose pipeline has no check_access.
  void check(Inst* inst) {
    const Binding& binding = kernel_.bindings[inst->binding()];
    b_.before(inst).at(inst->loc);
    Value *ok = nullptr, *at = nullptr, *axis = nullptr, *extent = nullptr, *first = nullptr;
    for (uint32_t k = binding.rank; k-- > 0;) {
      Value* wide = b_.convert(inst->operand(k), Type::i64);
      Value* size = b_.extent(inst->binding(), k, Type::i64);
      Value* begin = binding.zero_based ? nullptr : b_.first(inst->binding(), k, Type::i64);
      Value* inside = in_range(b_, begin ? b_.sub(wide, begin) : wide, size);
      Value* number = b_.integer(Type::i32, k);
      at = ok ? b_.select(inside, at, wide) : wide;
      axis = ok ? b_.select(inside, axis, number) : number;
      extent = ok ? b_.select(inside, extent, size) : size;
      if (begin) first = ok ? b_.select(inside, first, begin) : begin;
      ok = ok ? b_.binary(Op::bit_and, ok, inside) : inside;
    }
    std::vector<Value*> told = {at, axis, extent};
    if (first) told.push_back(first);
    guard_access(b_, inst, ok, told);
  }

  /// A step that finds room for what the accesses take.
  void reserve(const std::vector<Inst*>& claims, uint32_t number) {
    const uint32_t field = claims[0]->binding();
    Step step;
    step.kind = Step::reserve;
    step.binding = field;
    step.task = number;
    const uint64_t most = activations_per_iteration(claims);
    step.claims = most <= UINT32_MAX ? uint32_t(most) : 0;
    if (auto slice = activation_slice(kernel_, kernel_.tasks[number], claims)) {
      step.body.push_back(allow_taking(field, number));
      for (Inst* inst : slice->activations) claim(inst);
      Task task = kernel_.tasks[number];
      task.reductions.clear();
      task.lanes = false;
      task.body = slice->body;
      ValueMap map;
      if (task.domain) task.domain = clone_region(b_, task.domain, map);
      step.body.push_back(add(std::move(task)));
    }
    before_.push_back(std::move(step));
  }

  /// Replaces an `activate` that nobody is told of, where there is no room for it.
  void claim(Inst* activate) {
    b_.before(activate).at(activate->loc);
    std::vector<Value*> indices;
    for (const Use& use : activate->operands) indices.push_back(use.value);
    Descent descent(kernel_, parts_, activate->binding(), b_, false);
    descent.claim(descent.children(indices));
    activate->erase();
  }

  void expand(Inst* inst, bool racing) {
    const uint32_t field = inst->binding();
    const size_t rank = kernel_.bindings[field].rank;
    b_.before(inst).at(inst->loc);
    Descent descent(kernel_, parts_, field, b_);
    const bool own = is_own(inst);
    std::vector<Value*> indices, values, children;
    for (size_t k = 0; k < inst->operand_count(); k++)
      (k < rank ? indices : values).push_back(inst->operand(k));
    if (!own) children = descent.children(indices);
    if (inst->is(Op::is_active))
      return replace(inst, own ? b_.boolean(true) : descent.is_active(children, racing));
    if (inst->is(Op::deactivate)) {
      deactivate(descent, own ? nullptr : descent.is_active(children, true),
                 [&] { return own ? own_->number : descent.find(children, true); });
      return inst->erase();
    }
    Value* number = own            ? own_->number
                    : claims(inst) ? descent.claim(children)
                                   : descent.find(children, racing);
    const uint32_t elements = parts_.elements(field);
    b_.before(inst);
    if (inst->is(Op::load)) {
      return replace(inst, b_.load(elements, inst->component(), inst->elem, {&number, 1}));
    } else if (inst->is(Op::store)) {
      b_.store(elements, inst->component(), {&number, 1}, values[0]);
    } else if (inst->is(Op::atomic)) {
      Inst* made =
          b_.atomic(inst->atomic(), elements, inst->component(), inst->elem, {&number, 1}, values);
      return replace(inst, made->result());
    }
    inst->erase();
  }

  /// Where `active` holds, or is null.
  template <class F>
  void deactivate(Descent& descent, Value* active, F&& number) {
    if (!active) return descent.end(number());
    Inst* point = b_.point();
    Inst* branch = b_.if_(active);
    b_.at_end(branch->region(0));
    descent.end(number());
    b_.yield();
    b_.at_end(branch->region(1)).yield();
    b_.before(point);
  }

  // ---- tasks before a task

  Region* begin_serial(uint32_t number) {
    Region* body = b_.make_region();
    b_.at_end(body).at(kernel_.tasks[number].loc);
    return body;
  }
  Step end_serial(Region* body, uint32_t before) {
    b_.yield();
    Task task;
    task.walk = kernel_.tasks[before].walk;
    task.loc = kernel_.tasks[before].loc;
    task.body = body;
    return add(std::move(task));
  }
  Step add(Task task) {
    Step step;
    step.task = uint32_t(kernel_.tasks.size());
    kernel_.tasks.push_back(std::move(task));
    return step;
  }

  /// What was given back until now may be taken; who found nothing has taken nothing.
  Step allow_taking(uint32_t field, uint32_t number) {
    Region* body = begin_serial(number);
    const uint32_t state = parts_.state(field);
    const std::vector<Placement::Pool> pools = kernel_.bindings[field].layout.pools;
    for (size_t p = 1; p < pools.size(); p++) {
      if (pools[p].direct) continue;
      const auto at = [&](uint32_t word) {
        return b_.integer(Type::i64, int64_t(p * tree::words_of_pool + word));
      };
      const auto load = [&](uint32_t word) {
        Value* place = at(word);
        return b_.load(state, 0, Type::u32, {&place, 1});
      };
      const auto store = [&](uint32_t word, Value* v) {
        Value* place = at(word);
        b_.store(state, 0, {&place, 1}, v);
      };
      Value *taken = load(tree::taken), *limit = load(tree::limit);
      Value* too_many = b_.bitcast(b_.sub(taken, limit), Type::i32);
      Value* some = b_.binary(Op::gt, too_many, b_.integer(Type::i32, 0));
      store(tree::taken, b_.select(some, limit, taken));
      store(tree::limit, load(tree::given));
    }
    return end_serial(body, number);
  }

  bool surround(std::vector<Step>& steps, uint32_t task) {
    for (size_t k = 0; k < steps.size(); k++) {
      if (steps[k].kind == Step::launch && steps[k].task == task) {
        const auto at = steps.begin() + std::ptrdiff_t(k);
        steps.insert(steps.insert(at + 1, after_.begin(), after_.end()) - 1, before_.begin(),
                     before_.end());
        return true;
      }
      if (surround(steps[k].condition, task) || surround(steps[k].body, task)) return true;
    }
    return false;
  }

  Kernel& kernel_;
  Builder b_;
  TreeParts parts_;
  std::optional<Own> own_;
  std::vector<Step> before_, after_;  ///< of the task at hand
};

}  // namespace

void expand_trees(Kernel& kernel) {
  if (std::ranges::any_of(kernel.bindings, [](const Binding& b) { return b.layout.is_sparse(); }))
    Expander(kernel).run();
}

}  // namespace quern::ir

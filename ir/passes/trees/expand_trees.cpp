#include "ir/passes/trees/expand_trees.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "ir/math/expr.h"
#include "ir/passes/checks/guarded_access.h"
#include "ir/passes/trees/accesses.h"
#include "ir/passes/trees/activation_slice.h"
#include "ir/passes/trees/list_access.h"
#include "ir/passes/trees/neighbourhood.h"
#include "ir/passes/trees/tree_loop.h"
#include "ir/passes/trees/tree_tasks.h"
#include "quern/ir/trees.h"

namespace quern::ir {

namespace {

class Expander {
 public:
  Expander(Kernel& kernel, bool by_cells)
      : kernel_(kernel),
        b_(kernel),
        parts_(kernel),
        tasks_(kernel, parts_),
        lists_(kernel, b_),
        by_cells_(by_cells) {}

  void run() {
    const size_t count = kernel_.tasks.size();
    for (uint32_t k = 0; k < count; k++) {
      before_.clear();
      after_.clear();
      repeats_ = false;
      lists_.begin_task();
      known_.clear();
      near_.clear();
      near_by_.clear();
      own_.reset();
      std::optional<TreeLoop> made;
      if (const std::optional<uint32_t> field = walked(k))
        loop(made.emplace(kernel_, parts_, b_, *field), k, *field);
      accesses(k);
      if (made) {
        made->number_checks();
        made->look_ahead();
      }
      if (!before_.empty() || !after_.empty()) surround(kernel_.schedule, k);
    }
  }

 private:
  bool is_sparse(uint32_t binding) const { return kernel_.bindings[binding].layout.is_sparse(); }
  bool is_sparse(const Inst* inst) const {
    return accesses_element(inst->op) && is_sparse(inst->binding());
  }
  bool is_of_cells(const Inst* inst) const {
    return kernel_.bindings[inst->binding()].layout.is_of_cells();
  }
  bool claims(const Inst* inst) const { return ir::claims(kernel_, inst); }
  uint32_t tree_of(uint32_t field) const { return kernel_.bindings[field].tree; }

  // ---- loops

  std::optional<uint32_t> walked(uint32_t number) const {
    const uint32_t field = kernel_.tasks[number].options.over;
    if (field == no_binding || !is_sparse(field)) return std::nullopt;
    return field;
  }

  void loop(TreeLoop& made, uint32_t number, uint32_t field) {
    const uint32_t cell = count_cells(field, number);
    Task& task = kernel_.tasks[number];
    Inst* parallel = opened(task);
    const bool by_cells =
        by_cells_ && parallel && task.walk == Task::chunked && made.can_take_cells(task);
    task.options.over = no_binding;
    task.rank = by_cells ? 1 : 2;
    const uint32_t children = kernel_.bindings[field].layout.pools.back().children;
    auto bounds = [&] {
      Value* zero = b_.integer(Type::i32, 0);
      Value* cells = b_.load(kernel_.frame_binding(), cell, Type::i32, {});
      std::vector<Value*> all = {zero, cells, zero, b_.integer(Type::i32, children)};
      all.resize(2 * task.rank);
      return all;
    };
    task.domain = b_.make_region();
    b_.at_end(task.domain).at(task.loc);
    b_.yield(bounds());
    Region* old = parallel ? parallel->region(0) : task.body;
    const bool racing = makes_cells(old, field);
    if (parallel) {
      b_.before(parallel).at(task.loc);
      b_.set_operands(parallel, bounds());
    }
    Region* body =
        by_cells ? made.of_cells(old, task, parallel, racing) : made.of_elements(old, racing);
    own_ = made.own();
    if (parallel) {
      parallel->kind = task.rank;
      parallel->options.over = no_binding;
      b_.set_regions(parallel, {body});
    } else {
      task.body = body;
    }
    if (!by_cells) before_elements(made, number, bounds);
  }

  /// A task over cells, in front of the one over elements.
  template <class F>
  void before_elements(TreeLoop& made, uint32_t number, F&& bounds) {
    const Task& task = kernel_.tasks[number];
    Task own;
    own.kind = Task::range;
    own.walk = task.walk;
    own.rank = 1;
    own.loc = task.loc;
    own.options.ordinal = task.options.ordinal;
    b_.at(task.loc);
    Region* body = made.before_elements();
    if (!body) return;
    own.domain = b_.make_region();
    const auto range = [&] {
      std::vector<Value*> all = bounds();
      all.resize(2);
      return all;
    };
    b_.at_end(own.domain);
    b_.yield(range());
    own.body = body;
    if (opened(task)) {
      own.body = b_.make_region();
      b_.at_end(own.body);
      Inst* loop = b_.make(Op::parallel, {}, range());
      loop->kind = own.rank;
      loop->options = own.options;
      b_.set_regions(loop, {body});
      b_.yield();
    }
    before_.push_back(add_task(kernel_, std::move(own)));
  }

  /// May the loop's iterations make cells of the field's tree?
  bool makes_cells(Region* body, uint32_t field) {
    own_ = Own{field, {}, {}};
    for (Value& index : body->args) own_->indices.push_back(&index);
    bool found = false;
    walk(body, [&](Inst* inst) {
      found |= is_sparse(inst) && claims(inst) && !is_own(inst) &&
               tree_of(inst->binding()) == tree_of(field) && !is_known(kernel_, inst);
    });
    return found;
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
    Step refresh;
    refresh.kind = Step::refresh;
    refresh.binding = field;
    before_.push_back(refresh);
    before_.push_back(tasks_.count_cells(field, cell, number));
    return cell;
  }

  // ---- accesses

  void accesses(uint32_t number) {
    std::vector<Inst*> all;
    std::map<uint32_t, std::vector<Inst*>> claimed;  // by the tree, what may make elements active
    std::map<uint32_t, uint32_t> ended;  // by the tree, a field that elements are deactivated by
    bool writes_cells = false;
    walk(kernel_.tasks[number].body, [&](Inst* inst) {
      if (inst->is(Op::iteration) && own_) return replace(inst, iteration(inst));
      if (!is_sparse(inst)) return;
      all.push_back(inst);
      lists_.note(inst);
      if (inst->is(Op::deactivate)) ended.insert({tree_of(inst->binding()), inst->binding()});
      if (is_known(kernel_, inst)) known_.insert(inst);
      writes_cells |= may_claim(inst) && is_of_cells(inst);
      if (claims(inst) && !is_own(inst) && !known_.contains(inst)) {
        auto& wanted = claimed[tree_of(inst->binding())];
        if (!lists_.is_appended(inst)) wanted.push_back(inst);
      }
    });
    // Of a target whose pipeline has no check_access.
    for (Inst* inst : all) {
      if (inst->site == no_site) continue;
      std::vector<uint32_t> axes(kernel_.bindings[inst->binding()].rank);
      std::iota(axes.begin(), axes.end(), 0u);
      guard_indices(b_, kernel_, inst, axes, nullptr);
    }
    gather(all, claimed);
    repeats_ = claimed.size() == 1 && !writes_cells && can_repeat(kernel_, kernel_.tasks[number]);
    for (const auto& [tree, insts] : claimed) {
      reserve(insts, number);
      if (!repeats_) before_.push_back(tasks_.allow_taking(insts[0]->binding(), number));
    }
    for (const auto& [tree, field] : ended) {
      Step collect;
      collect.kind = Step::collect;
      collect.binding = field;
      after_.push_back(collect);
    }
    for (Inst* inst : all) expand(inst, claimed.contains(tree_of(inst->binding())));
  }

  /// Finds the accesses that look for their cells together. What the others of a neighbourhood take, its
  /// corners do: they stay in `claimed`.
  void gather(const std::vector<Inst*>& all, std::map<uint32_t, std::vector<Inst*>>& claimed) {
    std::set<uint32_t> asked;  // trees of which something must know when cells are made
    for (const Inst* inst : all)
      if (inst->is(Op::is_active) || inst->is(Op::deactivate) || inst->is(Op::length) ||
          inst->is(Op::append) || inst->is(Op::empty_box))
        asked.insert(tree_of(inst->binding()));
    std::vector<Inst*> found, made;
    for (Inst* inst : all) {
      const Placement& layout = kernel_.bindings[inst->binding()].layout;
      const uint32_t tree = tree_of(inst->binding());
      if (layout.pools.size() < 2 || layout.pools.back().has_lists() || layout.is_of_cells() ||
          is_own(inst))
        continue;
      if (claims(inst) && !asked.contains(tree)) made.push_back(inst);
      const bool reads = inst->is(Op::load) || (inst->is(Op::atomic) && !may_claim(inst));
      if (reads && !claimed.contains(tree)) found.push_back(inst);
    }
    near_ = neighbourhoods(kernel_, parts_, b_, found, false);
    for (Neighbourhood& one : neighbourhoods(kernel_, parts_, b_, made, true)) {
      const std::vector<Inst*> corners = one.corners();
      std::erase_if(claimed.at(tree_of(corners[0]->binding())), [&](Inst* inst) {
        return std::ranges::count(one.members(), inst) > 0 &&
               std::ranges::count(corners, inst) == 0;
      });
      near_.push_back(std::move(one));
    }
    for (Neighbourhood& one : near_)
      for (const Inst* inst : one.members()) near_by_[inst] = &one;
  }

  static void replace(Inst* inst, Value* v) {
    inst->result()->replace_with(v);
    inst->erase();
  }

  bool is_own(const Inst* inst) const {
    if (!own_ || !share_elements(kernel_.bindings[inst->binding()], kernel_.bindings[own_->field]))
      return false;
    if (inst->is(Op::length) || inst->is(Op::append)) return false;
    if (!names_alike(kernel_, inst, own_->field)) return false;
    for (size_t k = 0; k < own_->indices.size(); k++)
      if (inst->operand(k) != own_->indices[k]) return false;
    return true;
  }

  /// The place of the iteration's element among those of the field, in row-major order; where the tree
  /// has no end, a number mixed of its indices.
  Value* iteration(Inst* inst) {
    b_.before(inst).at(inst->loc);
    const Binding& field = kernel_.bindings[own_->field];
    if (field.layout.pools[0].is_hashed()) return mixed_indices();
    Value* total = nullptr;
    for (uint32_t axis = 0; axis < field.rank; axis++) {
      Value* at = b_.convert(own_->indices[axis], Type::i64);
      if (!field.zero_based) at = b_.sub(at, b_.first(own_->field, axis, Type::i64));
      if (total) total = b_.mul(total, b_.extent(own_->field, axis, Type::i64));
      total = total ? b_.add(total, at) : at;
    }
    return b_.convert(total, Type::u64);
  }

  /// Each step is one-to-one in either operand (the multiplier is odd), so that elements that differ in
  /// one index have different numbers.
  Value* mixed_indices() {
    math::Writer writer{b_, 0};
    math::Expr h{&writer, b_.integer(Type::u64, 0)};
    for (Value* index : own_->indices) {
      Value* wide = b_.convert(b_.convert(index, Type::i64), Type::u64);
      h = (h ^ math::Expr{&writer, wide}) * uint64_t(0x9e3779b97f4a7c15);
      h = h ^ (h >> uint64_t(32));
    }
    return h.v;
  }

  /// A step that finds room for what the accesses take: what it launches runs until all is there, the
  /// task itself or its slice.
  void reserve(const std::vector<Inst*>& claims, uint32_t number) {
    const uint32_t field = claims[0]->binding();
    Step step;
    step.kind = Step::reserve;
    step.binding = field;
    step.task = number;
    const uint64_t most =
        activations_per_iteration(claims, kernel_.bindings[field].layout.pools.back().chunks);
    step.claims = most <= UINT32_MAX ? uint32_t(most) : 0;
    if (repeats_) {
      Step itself;
      itself.task = number;
      step.body = {tasks_.allow_taking(field, number), itself};
    } else if (auto slice = activation_slice(kernel_, kernel_.tasks[number], claims)) {
      step.body.push_back(tasks_.allow_taking(field, number));
      for (Inst* inst : slice->activations) claim(inst);
      std::vector<Inst*> reads;
      walk(slice->body, [&](Inst* inst) {
        if (is_sparse(inst)) reads.push_back(inst);
      });
      for (Inst* inst : reads) expand(inst, true);
      step.body.push_back(slice->loops ? add_loop(number, slice->body)
                                       : tasks_.add_serial(slice->body, number));
    }
    before_.push_back(std::move(step));
  }

  /// A task like this one, without its reductions.
  Step add_loop(uint32_t number, Region* body) {
    Task task = kernel_.tasks[number];
    task.reductions.clear();
    task.lanes = false;
    task.body = body;
    ValueMap map;
    if (task.domain) task.domain = clone_region(b_, task.domain, map);
    return add_task(kernel_, std::move(task));
  }

  /// Replaces an `activate` that nobody is told of, where there is no room for it.
  void claim(Inst* activate) {
    b_.before(activate).at(activate->loc);
    std::vector<Value*> indices;
    for (const Use& use : activate->operands) indices.push_back(use.value);
    Descent descent(kernel_, parts_, activate->binding(), b_, false);
    descent.claim(descent.path(indices));
    activate->erase();
  }

  void expand(Inst* inst, bool racing) {
    const uint32_t field = inst->binding();
    const size_t rank = kernel_.bindings[field].rank;
    b_.before(inst).at(inst->loc);
    Descent descent(kernel_, parts_, field, b_, !repeats_);
    const bool own = is_own(inst);
    std::vector<Value*> indices, values;
    for (size_t k = 0; k < inst->operand_count(); k++)
      (k < rank ? indices : values).push_back(inst->operand(k));
    Value* appended = lists_.number(inst);
    const auto near = near_by_.find(inst);
    const bool is_near = near != near_by_.end();
    Descent::Path path;
    if (!own && !appended && !is_near && !inst->is(Op::empty_box)) path = descent.path(indices);
    if (inst->is(Op::length) || inst->is(Op::append))
      return replace(inst, lists_.answer(inst, descent, path, racing));
    if (inst->is(Op::is_active))
      return replace(inst, own ? b_.boolean(true) : descent.is_active(path, racing));
    if (inst->is(Op::empty_box)) return box(inst, descent, own, indices, racing);
    if (inst->is(Op::deactivate)) {
      where(own ? nullptr : descent.is_active(path, true),
            [&] { descent.end(own ? own_->element : descent.find(path, true)); });
      return inst->erase();
    }
    const bool is_there = own || appended || known_.contains(inst);
    const bool takes = !is_there && claims(inst);
    Value* there = nullptr;  // where the element is one that may be written; null: everywhere
    if (!is_there && may_claim(inst) && !takes) there = cell_of(descent, path, indices, racing);
    Value* number = own        ? own_->element.number
                    : appended ? appended
                    : is_near  ? near->second->number(inst, !repeats_)
                    : takes    ? descent.claim(path).number
                               : descent.find(path, racing).number;
    // Of the elements of the lost cell any iteration may write any.
    if (takes && repeats_) there = descent.is_found(number);
    const uint32_t elements = parts_.elements(field);
    b_.before(inst);
    const auto load = [&] {
      return b_.load(elements, inst->component(), inst->elem, {&number, 1});
    };
    if (inst->is(Op::load)) {
      return replace(inst, load());
    } else if (inst->is(Op::store)) {
      where(there, [&] { b_.store(elements, inst->component(), {&number, 1}, values[0]); });
    } else if (inst->is(Op::atomic)) {
      const auto update = [&] {
        return b_
            .atomic(inst->atomic(), elements, inst->component(), inst->elem, {&number, 1}, values)
            ->result();
      };
      return replace(inst, there ? either(there, inst->elem, update, load) : update());
    }
    inst->erase();
  }

  /// Is there a cell that the element of a field of cells is? In checked mode a check tells where there
  /// is none, and it is written.
  Value* cell_of(Descent& descent, const Descent::Path& path, std::span<Value* const> indices,
                 bool racing) {
    Value* there = descent.is_active(path, racing);
    if (kernel_.modes.checked) descent.expect_cell(there, indices);
    return there;
  }

  /// The answers of an `empty_box`; `own`: of the loop's own element, which is active.
  void box(Inst* inst, Descent& descent, bool own, std::span<Value* const> indices, bool racing) {
    Descent::Box box;
    if (own) {
      Value* zero = b_.integer(Type::i32, 0);
      box = {b_.boolean(true), std::vector<Descent::Box::Axis>(indices.size(), {zero, zero})};
    } else {
      box = descent.empty_box(indices, racing);
    }
    inst->result(0)->replace_with(box.active);
    for (size_t axis = 0; axis < box.axes.size(); axis++) {
      inst->result(1 + 2 * axis)->replace_with(box.axes[axis].before);
      inst->result(2 + 2 * axis)->replace_with(box.axes[axis].behind);
    }
    inst->erase();
  }

  /// Runs what `emit` emits where the condition holds, or is null.
  template <class F>
  void where(Value* condition, F&& emit) {
    if (!condition) return emit();
    Inst* point = b_.point();
    Inst* branch = b_.if_(condition);
    b_.at_end(branch->region(0));
    emit();
    b_.yield();
    b_.at_end(branch->region(1)).yield();
    b_.before(point);
  }

  /// What one of both yields.
  template <class F, class G>
  Value* either(Value* condition, Type type, F&& then, G&& otherwise) {
    Inst* point = b_.point();
    const Type types[] = {type};
    Inst* branch = b_.if_(condition, types);
    b_.at_end(branch->region(0));
    Value* first = then();
    b_.yield({first});
    b_.at_end(branch->region(1));
    Value* second = otherwise();
    b_.yield({second});
    b_.before(point);
    return branch->result();
  }

  // ---- the schedule

  bool surround(std::vector<Step>& steps, uint32_t task) {
    for (size_t k = 0; k < steps.size(); k++) {
      if (steps[k].kind == Step::launch && steps[k].task == task) {
        auto at = steps.begin() + std::ptrdiff_t(k);
        at = steps.insert(at + 1, after_.begin(), after_.end()) - 1;
        if (repeats_) at = steps.erase(at);
        steps.insert(at, before_.begin(), before_.end());
        return true;
      }
      if (surround(steps[k].condition, task) || surround(steps[k].body, task)) return true;
    }
    return false;
  }

  Kernel& kernel_;
  Builder b_;
  TreeParts parts_;
  TreeTasks tasks_;
  ListAccess lists_;
  const bool by_cells_;
  std::optional<Own> own_;
  std::vector<Step> before_, after_;  ///< of the task at hand
  bool repeats_ = false;              ///< it is launched by a reserve step
  std::set<const Inst*> known_;       ///< writes to what is active already
  std::vector<Neighbourhood> near_;
  std::map<const Inst*, Neighbourhood*> near_by_;  ///< accesses in them
};

void expand(Kernel& kernel, bool by_cells) {
  if (std::ranges::none_of(kernel.bindings, [](const Binding& b) { return b.layout.is_sparse(); }))
    return;
  Expander(kernel, by_cells).run();
  walk(kernel, [&](const Inst* inst) {
    if (!inst->is(Op::store) && !(inst->is(Op::atomic) && inst->atomic() != AtomicOp::load)) return;
    if (Binding& b = kernel.bindings[inst->binding()]; b.is_derived()) b.is_written = true;
  });
}

}  // namespace

void expand_trees(Kernel& kernel) { expand(kernel, false); }

void expand_trees(Kernel& kernel, const TargetTraits& target) {
  expand(kernel, target.walk == Task::chunked);
}

}  // namespace quern::ir

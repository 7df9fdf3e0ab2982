#include "ir/passes/tasks/split_tasks.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "ir/analysis/facts.h"
#include "ir/passes/checks/guarded_access.h"
#include "quern/ir/builder.h"
#include "quern/ir/schedule.h"
#include "quern/ir/text.h"

namespace quern::ir {

namespace {

/// A value that takes more operations than this is kept, not recomputed. The host waits for what is
/// kept: it has time for more.
constexpr uint32_t cheap = 32, cheap_on_host = 300;

Region* root_of(const Value* v) {
  Region* r = v->inst ? v->inst->parent : v->region;
  while (r->parent) r = r->parent->parent;
  return r;
}

Region* root_of(const Inst* inst) {
  Region* r = inst->parent;
  while (r->parent) r = r->parent->parent;
  return r;
}

class Splitter {
 public:
  explicit Splitter(Kernel& kernel) : kernel_(kernel), b_(kernel) {}

  void run() {
    walk(kernel_.body, [&](Inst* inst) {
      if (!inst->is(Op::parallel)) return;
      for (Inst* at = inst; at && holds_parallel_.insert(at).second; at = at->parent->parent) {
      }
    });
    kernel_.frame = kernel_.results;
    Binding frame;
    frame.kind = Binding::frame;
    frame.name = "frame";
    frame_ = uint32_t(kernel_.bindings.size());
    kernel_.bindings.push_back(frame);

    Inst* end = steps_of(kernel_.body, kernel_.schedule);
    for (size_t k = 0; k < end->operand_count(); k++) store(uint32_t(k), end->operand(k));
    end->erase();
    flush(kernel_.schedule);

    share_slots();
    // Domains first: they recompute what a body, once it is localised, has loaded from a cell.
    for (const Task& task : kernel_.tasks)
      if (task.domain) localise(task.domain, true);
    for (const Task& task : kernel_.tasks) localise(task.body, false);
    // A later one may name the results of an earlier one.
    for (size_t k = husks_.size(); k-- > 0;) husks_[k]->erase();
    kernel_.body = nullptr;
    kernel_.level = Level::split;
    drop_empty_tasks();
  }

 private:
  // ---- forming tasks and steps

  /// Turns a kernel-level region into steps; its terminator comes back, still in place. Serial
  /// code may be pending.
  Inst* steps_of(Region* region, std::vector<Step>& steps) {
    for (Inst* inst : *region) {
      if (inst->is(Op::yield)) return inst;
      if (inst->is(Op::slot)) slots_.push_back({inst, region});
      if (inst->is(Op::parallel)) {
        range_task(inst, steps);
      } else if (holds_parallel_.contains(inst)) {
        if (inst->is(Op::if_)) branch(inst, steps);
        if (inst->is(Op::loop)) counted(inst, steps);
        if (inst->is(Op::while_)) conditional(inst, steps);
        husks_.push_back(inst);
      } else {
        origin_ = region;
        move(b_.at_end(serial(inst->loc)), inst);
      }
    }
    throw InternalError("a region of kernel '" + kernel_.name + "' has no end");
  }

  Region* serial(Loc loc = {}) {
    if (!pending_) {
      pending_ = b_.make_region();
      pending_loc_ = loc;
    }
    return pending_;
  }

  void flush(std::vector<Step>& steps) {
    if (!pending_) return;
    b_.at_end(pending_).at({}).yield();
    Task task;
    task.body = pending_;
    task.loc = pending_loc_;
    group_origin_[pending_] = origin_;
    pending_ = nullptr;
    launch(std::move(task), steps);
  }

  void launch(Task task, std::vector<Step>& steps) {
    Step step;
    step.task = uint32_t(kernel_.tasks.size());
    kernel_.tasks.push_back(std::move(task));
    steps.push_back(std::move(step));
  }

  void range_task(Inst* inst, std::vector<Step>& steps) {
    flush(steps);
    Task task;
    task.kind = Task::range;
    task.rank = inst->kind;
    task.options = inst->options;
    task.loc = inst->loc;
    if (task.options.over == no_binding) {
      task.domain = b_.make_region();
      std::vector<Value*> bounds;
      for (const Use& use : inst->operands) bounds.push_back(use.value);
      b_.at_end(task.domain).at(inst->loc).yield(bounds);
    }
    task.body = inst->region(0);
    task.body->parent = nullptr;
    inst->regions = {};
    inst->erase();
    launch(std::move(task), steps);
  }

  // ---- control of kernel level

  uint32_t new_cell(Type type, uint64_t count = 1) {
    uint32_t cell = uint32_t(kernel_.frame.size());
    kernel_.frame.insert(kernel_.frame.end(), count, type);
    if (kernel_.frame.size() > 0xffff)
      throw Error(kernel_.loc, "the kernel keeps more than 65,535 values between its loops");
    return cell;
  }

  Inst* store(uint32_t cell, Value* v) {
    return b_.at_end(serial(b_.loc())).store(frame_, cell, {}, v);
  }

  /// Stores the operands of a terminator, from number `first` on, in `cells` and erases it.
  void store_yield(Inst* yield, size_t first, const std::vector<uint32_t>& cells) {
    for (size_t k = 0; k < cells.size(); k++) {
      Value* v = yield->operand(first + k);
      auto same = cells_.find(v);
      if (same == cells_.end() || same->second != cells[k]) store(cells[k], v);
    }
    yield->erase();
  }

  void branch(Inst* inst, std::vector<Step>& steps) {
    b_.at(inst->loc);
    Step side[2];
    for (Step& s : side) {
      s.kind = Step::if_;
      s.cell = new_cell(Type::b1);
    }
    store(side[0].cell, inst->operand(0));
    store(side[1].cell, b_.at_end(serial()).unary(Op::bit_not, inst->operand(0)));
    flush(steps);
    std::vector<uint32_t> cells;
    for (const Value& v : inst->results) {
      cells.push_back(new_cell(v.type));
      cells_[&v] = cells.back();
    }
    for (int k = 0; k < 2; k++) {
      store_yield(steps_of(inst->region(size_t(k)), side[k].body), 0, cells);
      flush(side[k].body);
      steps.push_back(std::move(side[k]));
    }
  }

  /// Cells that start with operands `first`… of `inst` and are its results.
  std::vector<uint32_t> carried(Inst* inst, size_t first) {
    std::vector<uint32_t> cells;
    for (size_t k = 0; k < inst->results.size(); k++) {
      cells.push_back(new_cell(inst->results[k].type));
      cells_[inst->result(k)] = cells[k];
      store(cells[k], inst->operand(first + k));
    }
    return cells;
  }

  void bind_args(Region* region, size_t first, const std::vector<uint32_t>& cells) {
    for (size_t k = 0; k < cells.size(); k++) cells_[region->arg(first + k)] = cells[k];
  }

  void counted(Inst* inst, std::vector<Step>& steps) {
    b_.at(inst->loc);
    Value *lo = inst->operand(0), *hi = inst->operand(1), *step = inst->operand(2);
    Step repeat;
    repeat.kind = Step::repeat;
    repeat.cell = new_cell(Type::b1);
    uint32_t counter = new_cell(lo->type);
    store(counter, lo);
    store(repeat.cell, b_.at_end(serial()).lt(lo, hi));
    std::vector<uint32_t> cells = carried(inst, 3);
    flush(steps);
    Region* body = inst->region(0);
    cells_[body->arg(0)] = counter;
    bind_args(body, 1, cells);
    store_yield(steps_of(body, repeat.body), 0, cells);
    b_.at(inst->loc).at_end(serial());
    Value* next = b_.add(body->arg(0), step);
    Value* grown = b_.lt(body->arg(0), next);
    Value* more = b_.binary(Op::bit_and, grown, b_.lt(next, hi));
    store(counter, next);
    store(repeat.cell, more);
    flush(repeat.body);
    steps.push_back(std::move(repeat));
  }

  void conditional(Inst* inst, std::vector<Step>& steps) {
    b_.at(inst->loc);
    Step repeat;
    repeat.kind = Step::repeat;
    repeat.cell = new_cell(Type::b1);
    std::vector<uint32_t> cells = carried(inst, 0);
    flush(steps);
    bind_args(inst->region(0), 0, cells);
    bind_args(inst->region(1), 0, cells);
    Inst* tested = steps_of(inst->region(0), repeat.condition);
    store(repeat.cell, tested->operand(0));
    store_yield(tested, 1, cells);
    flush(repeat.condition);
    store_yield(steps_of(inst->region(1), repeat.body), 0, cells);
    flush(repeat.body);
    steps.push_back(std::move(repeat));
  }

  // ---- slots that several tasks share

  void share_slots() {
    for (auto [slot, region] : slots_) {
      Region* own = root_of(slot);
      Region* user = nullptr;
      bool shared = false;
      for (Use* use = slot->result()->uses; use; use = use->next) {
        Region* root = root_of(use->user);
        if (user && user != root) shared = true;
        user = root;
      }
      if (!user) {
        slot->erase();
      } else if (shared || (user != own && group_origin_[user] != region)) {
        to_cells(slot, region);
      } else if (user != own) {
        move(b_.before(user->first), slot);
      }
    }
  }

  void to_cells(Inst* slot, Region* region) {
    uint32_t cell = new_cell(slot->elem, slot->imm);
    if (region != kernel_.body) zero(slot, cell);
    std::vector<Inst*> users;
    for (Use* use = slot->result()->uses; use; use = use->next) users.push_back(use->user);
    for (Inst* user : users) to_cell_access(user, cell, slot->imm);
    slot->erase();
  }

  /// The frame starts zeroed; a slot in repeated code is zeroed each time.
  void zero(Inst* slot, uint32_t cell) {
    b_.before(slot).at(slot->loc);
    Value* v = b_.constant(slot->elem, 0);
    if (slot->imm == 1) {
      b_.store(frame_, cell, {}, v);
      return;
    }
    Value* from = b_.integer(Type::i64, 0);
    Value* to = b_.integer(Type::i64, int64_t(slot->imm));
    Inst* loop = b_.loop(from, to, b_.integer(Type::i64, 1));
    Region* body = loop->region(0);
    Value* index = body->arg(0);
    b_.at_end(body).store(frame_, cell, {&index, 1}, v);
    b_.yield();
  }

  void to_cell_access(Inst* user, uint32_t cell, uint64_t count) {
    b_.before(user).at(user->loc);
    if (user->is(Op::reduce)) {
      reduce(user, cell);
      return;
    }
    bool indexed = user->operand_count() == (user->is(Op::put) ? 3u : 2u);
    if (indexed)
      to_array_access(user, cell, count);
    else if (user->is(Op::put))
      b_.store(frame_, cell, {}, user->operand(1));
    else if (is_range(root_of(user)))
      user->result()->replace_with(load_at_start(root_of(user), cell, user->elem));
    else
      user->result()->replace_with(b_.load(frame_, cell, user->elem, {}));
    user->erase();
  }

  /// Checked here, in checked mode: later on nothing tells how many cells the array has.
  void to_array_access(Inst* user, uint32_t cell, uint64_t count) {
    Value* index = user->operand(1);
    Inst* access = user->is(Op::put) ? b_.store(frame_, cell, {&index, 1}, user->operand(2))
                                     : b_.load(frame_, cell, user->elem, {&index, 1})->inst;
    access->site = user->site;
    Value* v = access->results.empty() ? nullptr : access->result();
    if (user->site != no_site) v = guard_array(b_, access, index, count);
    if (v) user->result()->replace_with(v);
  }

  void reduce(Inst* inst, uint32_t cell) {
    for (Task& task : kernel_.tasks) {
      if (task.body != root_of(inst)) continue;
      auto& all = task.reductions;
      auto found =
          std::find_if(all.begin(), all.end(), [&](const Reduction& r) { return r.cell == cell; });
      inst->imm = uint64_t(found - all.begin());
      if (found == all.end()) all.push_back({cell, inst->atomic(), inst->elem});
      Value* v = inst->operand(1);
      b_.set_operands(inst, {&v, 1});
      return;
    }
  }

  bool is_range(Region* root) const { return !group_origin_.contains(root); }

  Value* load_at_start(Region* root, uint32_t cell, Type type) {
    Value*& v = start_loads_[{root, cell}];
    if (!v) v = b_.before(root->first).load(frame_, cell, type, {});
    return v;
  }

  // ---- values that cross tasks

  void localise(Region* root, bool on_host) {
    local_.clear();
    start_ = root->first;
    walk(root, [&](Inst* inst) {
      for (size_t k = 0; k < inst->operand_count(); k++) {
        Value* v = inst->operand(k);
        if (root_of(v) != root) inst->set_operand(k, local(v, root, on_host));
      }
    });
  }

  Value* local(Value* v, Region* root, bool on_host) {
    if (root_of(v) == root) return v;
    auto found = local_.find(v);
    if (found != local_.end()) return found->second;
    Value* copy;
    if (on_host ? is_known_to_host(v) : cost(v) <= cheap) {
      ValueMap map;
      for (const Use& use : v->inst->operands) map[use.value] = local(use.value, root, on_host);
      copy = clone_inst(b_.before(start_), v->inst, map)->result();
    } else {
      uint32_t cell = cell_of(v);
      copy = b_.before(start_).load(frame_, cell, v->type, {});
    }
    return local_[v] = copy;
  }

  uint32_t cell_of(Value* v) {
    auto found = cells_.find(v);
    if (found != cells_.end()) return found->second;
    if (!v->inst) throw InternalError("an index crosses tasks without a cell");
    auto kept = kept_.find(v);
    if (kept != kept_.end()) return kept->second;
    uint32_t cell = new_cell(v->type);
    kept_[v] = cell;
    b_.after(v->inst).at(v->inst->loc).store(frame_, cell, {}, v);
    return cell;
  }

  bool can_recompute(const Value* v) const {
    return v->inst && is_pure(v->inst->op) && !v->inst->is(Op::apply) &&
           !can_fail(kernel_, v->inst) && !cells_.contains(v);
  }

  /// Operations it takes to recompute `v`; more than `cheap` where it cannot be.
  uint32_t cost(Value* v) {
    uint32_t& c = cost_[v];
    if (c) return c;
    const bool can = can_recompute(v);
    uint32_t sum = can ? 1 : cheap + 1;
    if (can)
      for (const Use& use : v->inst->operands) sum = std::min(sum + cost(use.value), cheap + 1);
    return cost_[v] = sum;
  }

  bool is_known_to_host(const Value* v) {
    std::unordered_set<const Value*> seen = {v};
    std::vector<const Value*> open = {v};
    while (!open.empty()) {
      const Value* next = open.back();
      open.pop_back();
      if (!can_recompute(next) || info(next->inst->op).library || seen.size() > cheap_on_host)
        return false;
      for (const Use& use : next->inst->operands)
        if (seen.insert(use.value).second) open.push_back(use.value);
    }
    return true;
  }

  // ---- tasks without effect

  bool effect_free(const Inst* inst) const {
    return (inst->is(Op::load) && inst->binding() == frame_) || removable(kernel_, inst);
  }

  /// Erases what nothing uses; false where the task does nothing then.
  bool has_effect(Task& task) {
    for (Inst* at = task.body->last->prev; at;) {
      Inst* before = at->prev;
      if (at->regions.empty() && !at->used() && effect_free(at)) at->erase();
      at = before;
    }
    return task.body->first != task.body->last;
  }

  void drop_empty_tasks() {
    std::vector<bool> empty;
    const auto look = [&] {
      empty.clear();
      for (Task& task : kernel_.tasks) empty.push_back(!has_effect(task));
    };
    do look();
    while (drop_unread(empty));
    drop_tasks(kernel_, empty);
  }

  /// Who was to read a value that is kept may have had no effect. Says whether there was such a
  /// one.
  bool drop_unread(const std::vector<bool>& empty) {
    std::unordered_set<uint32_t> read;
    for (size_t k = 0; k < kernel_.tasks.size(); k++)
      for (Region* region : {kernel_.tasks[k].domain, kernel_.tasks[k].body})
        if (region && !empty[k])
          walk(region, [&](const Inst* inst) {
            if (inst->is(Op::load) && inst->binding() == frame_) read.insert(inst->component());
          });
    std::vector<Inst*> unread;
    std::unordered_set<uint32_t> cells;
    for (const auto& [value, cell] : kept_)
      if (!read.contains(cell)) cells.insert(cell);
    for (const Task& task : kernel_.tasks)
      walk(task.body, [&](Inst* inst) {
        if (inst->is(Op::store) && inst->binding() == frame_ && cells.contains(inst->component()))
          unread.push_back(inst);
      });
    for (Inst* store : unread) store->erase();
    std::erase_if(kept_, [&](const auto& kept) { return cells.contains(kept.second); });
    while (cells.erase(uint32_t(kernel_.frame.size()) - 1)) kernel_.frame.pop_back();
    return !unread.empty();
  }

  Kernel& kernel_;
  Builder b_;
  uint32_t frame_ = 0;
  std::unordered_set<Inst*> holds_parallel_;
  Region* pending_ = nullptr;  ///< serial code not yet a task
  Loc pending_loc_;
  Region* origin_ = nullptr;                           ///< where the last serial instruction stood
  std::unordered_map<Region*, Region*> group_origin_;  ///< of serial tasks
  std::vector<std::pair<Inst*, Region*>> slots_;       ///< of kernel level, and where they stood
  std::vector<Inst*> husks_;                           ///< control whose regions became steps
  std::unordered_map<const Value*, uint32_t> cells_;   ///< of what changes
  std::unordered_map<const Value*, uint32_t> kept_;    ///< of what another task computes
  std::map<std::pair<Region*, uint32_t>, Value*> start_loads_;
  std::unordered_map<const Value*, Value*> local_;  ///< of the task being localised
  std::unordered_map<const Value*, uint32_t> cost_;
  Inst* start_ = nullptr;
};

}  // namespace

void split_tasks(Kernel& kernel) { Splitter(kernel).run(); }

}  // namespace quern::ir

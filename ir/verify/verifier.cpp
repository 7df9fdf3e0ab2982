#include <algorithm>
#include <unordered_map>

#include "ir/analysis/divergence.h"
#include "ir/verify/rules.h"
#include "quern/ir/abi.h"
#include "quern/ir/schedule.h"
#include "quern/ir/verify.h"

namespace quern::ir {

namespace {

using text::Findings;
using text::Place;

/// Links, use lists, terminators and dominance, on which all other rules rely.
class Structure {
 public:
  Structure(Level level) : level_(level) {}

  void root(const Region* region, Findings& findings) {
    findings_ = &findings;
    root_ = region;
    if (region->parent) findings.add("the root has a parent");
    visit(region);
  }

  /// After all roots: every use of a value belongs to an instruction that was met.
  void finish(Findings& findings) const {
    for (const auto& [value, state] : values_) {
      size_t listed = 0;
      for (const Use* use = value->uses; use && listed <= state.uses; use = use->next) listed++;
      if (listed != state.uses) findings.add("a value's use list does not hold the uses there are");
    }
  }

 private:
  struct State {
    size_t uses = 0;
    bool visible = false;
  };

  void define(const Value& v, size_t index, const Inst* inst, const Region* region) {
    values_[&v].visible = true;
    if (v.index != index || v.inst != inst || v.region != region)
      findings_->add("a value does not know its place");
  }

  void visit(const Region* region) {
    for (size_t k = 0; k < region->args.size(); k++) define(region->args[k], k, nullptr, region);
    const Inst* before = nullptr;
    for (const Inst* inst = region->first; inst; before = inst, inst = inst->next) {
      if (inst->prev != before || inst->parent != region) {
        findings_->add(inst, "is not linked to its neighbours or region");
        return;
      }
      visit(inst, region);
    }
    if (region->last != before) findings_->add("a region does not know its last instruction");
    if (!before || !has(before->op, flag::ends)) {
      const std::string what = "a region does not end in a terminator";
      if (region->parent)
        findings_->add(region->parent, what);
      else
        findings_->add(what);
    }
    for (const Value& v : region->args) values_[&v].visible = false;
    for (const Inst* inst = region->first; inst; inst = inst->next)
      for (const Value& v : inst->results) values_[&v].visible = false;
  }

  void visit(const Inst* inst, const Region* region) {
    for (size_t k = 0; k < inst->operands.size(); k++) operand(inst, k);
    if (has(inst->op, flag::ends) && inst != region->last && level_ != Level::recorded)
      findings_->add(inst, "a terminator stands within a region");
    if (inst->regions.empty() == has(inst->op, flag::control))
      findings_->add(inst, "has " + std::to_string(inst->regions.size()) + " regions");
    for (const Region* r : inst->regions) {
      if (!r || r->parent != inst)
        findings_->add(inst, "a region does not know its owner");
      else
        visit(r);
    }
    for (size_t k = 0; k < inst->results.size(); k++) define(inst->results[k], k, inst, nullptr);
  }

  void operand(const Inst* inst, size_t k) {
    const Use& use = inst->operands[k];
    auto complain = [&](const char* what) {
      findings_->add(inst, "operand " + std::to_string(k) + what);
    };
    if (!use.value) {
      complain(" is missing");
      return;
    }
    const bool listed = use.user == inst && (!use.next || use.next->prev == &use) &&
                        (use.prev ? use.prev->next == &use : use.value->uses == &use);
    if (!listed) complain(" is not in its value's use list");
    State& state = values_[use.value];
    state.uses++;
    if (!state.visible)
      complain(root_of(use.value) != root_ ? " belongs to another root"
                                           : " is not defined where it is used");
  }

  static const Region* root_of(const Value* v) {
    const Region* r = v->inst ? v->inst->parent : v->region;
    while (r && r->parent) r = r->parent->parent;
    return r;
  }

  Level level_;
  Findings* findings_ = nullptr;
  const Region* root_ = nullptr;
  std::unordered_map<const Value*, State> values_;
};

class Verifier {
 public:
  explicit Verifier(const Kernel& kernel)
      : kernel_(kernel),
        level_(uint8_t(1u << unsigned(kernel.level))),
        kernel_findings_(out_, nullptr, "") {}

  std::vector<std::string> run() {
    parts();
    collect_roots();
    Structure structure(kernel_.level);
    for (Root& r : roots_) structure.root(r.region, *r.findings);
    structure.finish(kernel_findings_);
    if (!out_.empty()) return std::move(out_);  // the rules need sound structure
    for (Root& r : roots_) {
      const Place place{kernel_, *r.findings, r.at, r.region, r.task, r.callee};
      text::check_rules(place);
      ends(place, r);
      if (r.task && r.region == r.task->body) meetings(place);
    }
    recursion();
    return std::move(out_);
  }

 private:
  struct Root {
    const Region* region;
    uint8_t at;  ///< one of namespace level
    const Task* task;
    const Function* callee;
    std::unique_ptr<Findings> findings;
  };

  void require(bool holds, const std::string& message) {
    if (!holds) kernel_findings_.add(message);
  }
  static std::string numbered(const char* what, size_t k) {
    return std::string(what) + " " + std::to_string(k);
  }
  bool has_body() const { return kernel_.level <= Level::structured; }

  // ---- parts outside of code

  void parts() {
    require(has_body() == (kernel_.body != nullptr),
            has_body() ? "the kernel has no body" : "the kernel still has a body");
    require(!has_body() || (kernel_.tasks.empty() && kernel_.schedule.empty()),
            "the kernel has tasks or a schedule before it is split");
    size_t frames = 0;
    for (size_t k = 0; k < kernel_.bindings.size(); k++) {
      binding(kernel_.bindings[k], k, numbered("binding", k));
      frames += kernel_.bindings[k].kind == Binding::frame;
    }
    require(frames <= 1, "the kernel has several frame bindings");
    for (Type t : kernel_.results) require(is_scalar(t), "a result is no scalar");
    for (Type t : kernel_.frame) require(is_scalar(t), "a frame cell holds no scalar");
    if (!has_body())
      require(kernel_.frame.size() >= kernel_.results.size() &&
                  std::equal(kernel_.results.begin(), kernel_.results.end(), kernel_.frame.begin()),
              "the frame's first cells are not the kernel's results");
    for (size_t k = 0; k < kernel_.tasks.size(); k++) task(kernel_.tasks[k], numbered("task", k));
    for (size_t k = 0; k < kernel_.callees.size(); k++)
      function(kernel_.callees[k], numbered("function", k));
    for_each_step(kernel_.schedule, [&](const Step& s) { step(s); });
  }

  void function(const Function& f, const std::string& what) {
    if (!f.body) return require(false, what + " has no body");
    rule(f, f.pushforward, pushforward_types(f), what + ": its pushforward");
    rule(f, f.pullback, pullback_types(f), what + ": its pullback");
  }

  void rule(const Function& f, uint32_t number, const RuleTypes& types, const std::string& what) {
    if (number == no_function) return;
    if (f.derivative.empty() || number >= kernel_.callees.size())
      return require(false, what + " is no function, or not for one with a derivative of its own");
    const Function& given = kernel_.callees[number];
    if (!given.body) return;
    require(std::ranges::equal(given.body->args, types.arguments, {}, &Value::type),
            what + " takes other values");
    require(given.results.empty() || given.results == types.results, what + " gives other values");
  }

  void binding(const Binding& b, size_t number, const std::string& what) {
    for (const Component& c : b.components)
      require(is_scalar(c.type), what + ": a component is no scalar");
    require(b.encodings.empty() || b.encodings.size() == b.components.size(),
            what + ": another number of encodings than of components");
    for (Type t : b.encodings)
      require(is_scalar(t) && t != Type::b1, what + ": no encoding by that type");
    if (b.kind == Binding::scalar)
      require(b.components.size() == 1 && b.rank == 0,
              what + ": a scalar has one component and rank 0");
    if (b.kind == Binding::field)
      require(!b.components.empty() && b.rank <= 8,
              what + ": a field has components and at most 8 axes");
    if (b.kind == Binding::buffer) {
      require(!b.components.empty() && b.rank == 1, what + ": a buffer has components and rank 1");
      require(b.alias_class == abi::first_buffer_class + number,
              what + ": a buffer has an alias class of its own");
      buffer_size(b.size, what);
    }
    require(!b.is_kept || b.kind == Binding::buffer, what + ": only a buffer is kept");
    if (b.is_derived()) companion(b, number, what);
    const Placement& layout = b.layout;
    require(layout.offsets.empty() || layout.offsets.size() == b.components.size(),
            what + ": another number of offsets than of components");
    require(layout.fast == 0 || layout.fast < b.rank, what + ": its fast axis does not exist");
    for (const Placement::Level& level : layout.levels)
      for (uint32_t extent : level.extent) require(extent > 0, what + ": blocks of no element");
  }

  void companion(const Binding& b, size_t number, const std::string& what) {
    if (b.of >= number || b.kind != Binding::field || kernel_.bindings[b.of].kind != Binding::field)
      return require(false, what + ": a companion is a field of a field before it");
    const Binding& of = kernel_.bindings[b.of];
    if (of.layout.is_sparse() && !b.layout.is_sparse())
      return require(b.rank == 1, what + ": a tree's parts have one axis");
    require(b.rank == of.rank && b.components.size() == of.components.size(),
            what + ": a companion has the axes and components of its field");
    for (size_t k = number + 1; k < kernel_.bindings.size(); k++)
      require(kernel_.bindings[k].is_derived() || kernel_.bindings[k].kind == Binding::frame ||
                  kernel_.bindings[k].kind == Binding::buffer,
              what + ": companions come behind what is passed");
  }

  void buffer_size(const BufferSize& size, const std::string& what) {
    if (size.task >= kernel_.tasks.size())
      return require(false, what + ": it is made for a task that does not exist");
    const Task& task = kernel_.tasks[size.task];
    if (size.rule == BufferSize::rows)
      require(kernel_.level >= Level::opened && !task.reductions.empty(),
              what + ": it holds partial values of a task that leaves none");
    if (size.rule == BufferSize::iterations)
      require(task.kind == Task::range, what + ": it is made for iterations of a task without any");
    if (size.rule == BufferSize::cell)
      require(size.number < kernel_.frame.size() && is_int(kernel_.frame[size.number]),
              what + ": no integer cell of the frame says its size");
    if (size.rule == BufferSize::copies)
      require(task.walk == Task::chunked && size.number < kernel_.bindings.size() &&
                  (kernel_.bindings[size.number].kind == Binding::field ||
                   kernel_.bindings[size.number].size.rule == BufferSize::constant),
              what +
                  ": it holds copies of what is no field or constant buffer, or of a task "
                  "without chunks");
  }

  void task(const Task& t, const std::string& what) {
    require(t.body != nullptr, what + " has no body");
    if (t.kind == Task::serial || t.kind == Task::combining)
      require(!t.domain && t.options.over == no_binding && t.rank == 0,
              what + ": a serial or combine task has no domain and rank 0");
    else if (t.options.over != no_binding)
      walk_of_field(t, what);
    else
      require(t.domain && t.rank >= 1 && t.rank <= 8,
              what + ": a task over a domain has a domain and rank 1 to 8");
    require(!t.bound || (t.domain && t.walk == Task::element && !t.lanes && !t.once),
            what + ": a bound is of an element task whose threads loop");
    if (kernel_.level >= Level::opened && t.kind == Task::range)
      require(t.walk != Task::unlowered, what + " is not walked");
    require(
        t.merges == no_binding || (t.walk == Task::chunked && t.merges < kernel_.bindings.size() &&
                                   kernel_.bindings[t.merges].kind == Binding::buffer &&
                                   kernel_.bindings[t.merges].size.rule == BufferSize::copies),
        what + " merges what is no buffer of copies");
    require(t.together == 1 || (t.together > 1 && t.walk == Task::chunked),
            what + ": iterations that are together are of a chunked task");
    require(t.strip == 0 || t.walk == Task::chunked, what + ": strips are of a chunked task");
    if (t.follows.task != no_task) following(t, what);
    require(!t.lanes || (t.walk == Task::element && !t.reductions.empty()),
            what + ": lanes are of an element task with reductions");
    require(!t.once || (t.walk == Task::element && !t.lanes && t.kind == Task::range),
            what + ": threads that take one iteration are of an element task without lanes");
    for (const Reduction& r : t.reductions) {
      require(r.cell < kernel_.frame.size() && kernel_.frame[r.cell] == r.type,
              what + ": a reduction's cell does not exist or holds another type");
      require(r.op <= AtomicOp::bit_xor, what + ": a reduction by no reduction's operation");
    }
  }

  void following(const Task& t, const std::string& what) {
    const uint32_t number = t.follows.task;
    require(number < kernel_.tasks.size() && &kernel_.tasks[number] < &t,
            what + " follows no task before it");
    if (number >= kernel_.tasks.size()) return;
    const Task& first = kernel_.tasks[number];
    require(t.kind == Task::range && t.walk == Task::chunked && first.kind == Task::range &&
                first.walk == Task::chunked && first.rank == t.rank &&
                first.follows.task == no_task,
            what + ": a task with chunks follows one with chunks of its own, over the same axes");
    require(t.follows.reach.size() + 1 == t.rank,
            what + ": it follows along each axis but the last");
  }

  void walk_of_field(const Task& t, const std::string& what) {
    const bool exists = t.options.over < kernel_.bindings.size() &&
                        kernel_.bindings[t.options.over].kind == Binding::field;
    const bool is_sparse = exists && kernel_.bindings[t.options.over].layout.is_sparse();
    require(!t.domain && kernel_.level < (is_sparse ? Level::lowered : Level::opened),
            what + ": a field is named in place of a domain, until the task is opened");
    require(exists, what + ": the field that it walks does not exist");
    if (exists)
      require(t.rank >= 1 && t.rank == kernel_.bindings[t.options.over].rank,
              what + ": its rank is not that of the field that it walks");
  }

  bool combines(const Step& s) const {
    return s.kind == Step::launch && s.task < kernel_.tasks.size() &&
           kernel_.tasks[s.task].kind == Task::combining;
  }

  void step(const Step& s) {
    if (s.kind == Step::launch)
      require(s.task < kernel_.tasks.size(),
              "the schedule launches " + numbered("task", s.task) + ", which does not exist");
    if (s.kind == Step::combining)
      require(s.body.size() == 2 && combines(s.body[0]) && combines(s.body[1]),
              "a combine step wants launches of two combine tasks");
    if (s.kind == Step::reserve)
      require(s.task < kernel_.tasks.size() &&
                  std::ranges::all_of(
                      s.body, [](const Step& l) { return l.kind == Step::launch; }),
              "a reserve step wants a task and launches");
    if (sees_to_tree(s))
      require(s.binding < kernel_.bindings.size() &&
                  kernel_.bindings[s.binding].kind == Binding::field &&
                  kernel_.bindings[s.binding].layout.is_sparse(),
              "the schedule sees to the tree of binding " + std::to_string(s.binding) +
                  ", which is no field on one");
    if (reads_cell(s))
      require(s.cell < kernel_.frame.size() && kernel_.frame[s.cell] == Type::b1,
              "the schedule reads cell " + std::to_string(s.cell) + ", which is no b1 cell");
  }

  // ---- roots

  void add(const Region* region, uint8_t at, const Task* task, const Function* callee,
           const std::string& where) {
    if (!region) return;
    roots_.push_back(
        {region, at, task, callee, std::make_unique<Findings>(out_, region, where + ": ")});
  }

  void collect_roots() {
    add(kernel_.body, level_, nullptr, nullptr, "body");
    for (const Function& f : kernel_.callees)
      add(f.body, level_, nullptr, &f, "function " + f.name);
    for (size_t k = 0; k < kernel_.tasks.size(); k++) {
      const Task& t = kernel_.tasks[k];
      add(t.domain, level::domain, &t, nullptr, numbered("domain of task", k));
      add(t.bound, level::domain, &t, nullptr, numbered("bound of task", k));
      add(t.body, level_, &t, nullptr, numbered("task", k));
    }
  }

  /// Arguments of a root and what it yields.
  void ends(const Place& place, const Root& r) {
    std::vector<Type> args, yields;
    std::string owner = "the body";
    if (r.callee) {
      for (const Value& v : r.region->args) args.push_back(v.type);
      yields = r.callee->results;
      owner = "the function";
    } else if (!r.task) {
      yields = kernel_.results;
      owner = "the kernel";
    } else if (r.at == level::domain) {
      const Type t = index_type(*r.task);
      if (t != Type::i32 && t != Type::i64)
        place.findings.add("the domain does not yield bounds of type i32 or i64");
      yields.assign(size_t(2) * r.task->rank, t);
      owner = r.region == r.task->domain ? "the domain" : "the bound";
    } else if (r.task->kind != Task::serial && r.at == level::split) {
      const Type t = index_type(*r.task);
      if (!r.task->domain && t != Type::i32 && t != Type::i64)
        place.findings.add("the indices are not of type i32 or i64");
      args.assign(r.task->rank, t);
    }
    const bool fits = std::equal(r.region->args.begin(), r.region->args.end(), args.begin(),
                                 args.end(), [](const Value& v, Type t) { return v.type == t; });
    if (!fits) place.findings.add("the arguments are not what " + owner + " wants");
    text::check_yield(place, r.region, yields, owner);
  }

  /// The threads of a block must come to where they meet, all or none.
  void meetings(const Place& place) {
    std::vector<const Inst*> found;
    walk(const_cast<Region*>(place.root), [&](const Inst* inst) {
      if (inst->is(Op::block_reduce)) found.push_back(inst);
    });
    if (found.empty()) return;
    const Divergence divergence(kernel_, *place.task);
    for (const Inst* inst : found)
      if (const Inst* around = divergence.around(inst))
        place.findings.add(inst,
                           "not all threads of a block come here together: they may differ in " +
                               place.findings.named(around));
  }

  static Type index_type(const Task& t) {
    if (!t.domain) return t.body->args.empty() ? Type::none : t.body->args[0].type;
    const Inst* last = t.domain->last;
    return last->operands.empty() ? Type::none : last->operand(0)->type;
  }

  // ---- calls

  void recursion() {
    enum : uint8_t { unseen, open, done };
    std::vector<uint8_t> state(kernel_.callees.size(), unseen);
    auto visit = [&](auto&& self, size_t k) -> void {
      state[k] = open;
      walk(kernel_.callees[k].body, [&](Inst* inst) {
        if (info(inst->op).names != NameUse::callee || inst->imm >= state.size()) return;
        if (state[inst->imm] == open)
          kernel_findings_.add("function " + kernel_.callees[inst->imm].name + " calls itself");
        if (state[inst->imm] == unseen) self(self, inst->imm);
      });
      state[k] = done;
    };
    for (size_t k = 0; k < state.size(); k++)
      if (state[k] == unseen) visit(visit, k);
  }

  const Kernel& kernel_;
  const uint8_t level_;  ///< of the kernel, in namespace level
  std::vector<std::string> out_;
  Findings kernel_findings_;
  std::vector<Root> roots_;
};

}  // namespace

std::vector<std::string> verify(const Kernel& kernel) { return Verifier(kernel).run(); }

void expect_valid(const Kernel& kernel, std::string_view after) {
  const std::vector<std::string> findings = verify(kernel);
  if (findings.empty()) return;
  std::string all = "kernel '" + kernel.name + "' is not sound after " + std::string(after) + ":";
  for (const std::string& f : findings) all += "\n  " + f;
  throw InternalError(all);
}

}  // namespace quern::ir

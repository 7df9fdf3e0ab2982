#include "ir/text/rules.h"

#include <algorithm>

#include "quern/ir/abi.h"

namespace quern::ir::text {

void Findings::add(const std::string& message) {
  count_++;
  if (out_.size() < most) out_.push_back(where_ + message);
}

void Findings::add(const Inst* inst, const std::string& message) {
  if (!names_) names_ = std::make_unique<Names>(root_);
  add("`" + head(inst, *names_) + "`: " + message);
}

namespace {

// ---- messages, made only where a rule is broken

void put(std::string& out, std::string_view text) { out += text; }
void put(std::string& out, Type t) { out += name(t); }
void put(std::string& out, AtomicOp op) { out += name(op); }
void put(std::string& out, uint64_t n) { out += std::to_string(n); }

Type type_of(Type t) { return t; }
Type type_of(const Value& v) { return v.type; }
Type type_of(const Use& use) { return use.value->type; }

template <class List>
bool equal(const List& have, std::span<const Type> want) {
  return std::equal(have.begin(), have.end(), want.begin(), want.end(),
                    [](const auto& h, Type w) { return type_of(h) == w; });
}

template <class T>
void put(std::string& out, std::span<T> list) {
  out += "(";
  for (size_t k = 0; k < list.size(); k++) {
    if (k) out += ", ";
    put(out, type_of(list[k]));
  }
  out += ")";
}

template <class... Parts>
std::string message(const Parts&... parts) {
  std::string out;
  (put(out, parts), ...);
  return out;
}

std::span<const Type> list(const std::vector<Type>& types) { return types; }

std::vector<Type> types_of(std::span<const Use> operands, size_t from) {
  std::vector<Type> out;
  for (size_t k = from; k < operands.size(); k++) out.push_back(operands[k].value->type);
  return out;
}

/// One instruction under the rules.
class Case {
 public:
  Case(const Place& place, const Inst* inst) : place_(place), inst_(inst) {}

  const Kernel& kernel() const { return place_.kernel; }
  const Place& place() const { return place_; }
  const Inst& inst() const { return *inst_; }
  Type operand(size_t k) const { return inst_->operand(k)->type; }
  size_t operands() const { return inst_->operand_count(); }

  template <class... Parts>
  bool require(bool holds, const Parts&... parts) const {
    if (!holds) place_.findings.add(inst_, message(parts...));
    return holds;
  }
  bool takes(size_t least, size_t most) const {
    if (operands() >= least && operands() <= most) return true;
    std::string want = std::to_string(least);
    if (most == ~size_t(0))
      want += " or more";
    else if (most != least)
      want += " to " + std::to_string(most);
    return require(false, "has ", operands(), operands() == 1 ? " operand" : " operands",
                   ", expected ", want);
  }
  bool takes(size_t n) const { return takes(n, n); }
  bool gives(std::span<const Type> want) const {
    return require(equal(inst_->results, want), "gives ", inst_->results, ", expected ", want);
  }
  bool gives(std::initializer_list<Type> want) const {
    return gives(std::span<const Type>(want.begin(), want.size()));
  }
  bool is(size_t k, Type want) const {
    return require(operand(k) == want, "operand ", k, " is ", operand(k), ", expected ", want);
  }
  bool is_index(size_t k) const {
    return require(is_int(operand(k)), "operand ", k, " is ", operand(k),
                   ", expected an integer index");
  }
  bool moves(Type want) const {
    return require(inst_->elem == want, "moves ", inst_->elem, ", expected ", want);
  }
  bool regions(size_t n) const {
    const size_t have = inst_->regions.size();
    return require(have == n, "has ", have, have == 1 ? " region" : " regions", ", expected ", n);
  }
  void args(size_t region, std::span<const Type> want) const {
    const std::span<Value> have = inst_->region(region)->args;
    require(equal(have, want), "region ", region, " takes ", have, ", expected ", want);
  }
  void yields(size_t region, std::span<const Type> want) const {
    check_yield(place_, inst_->region(region), want, info(inst_->op).name, region);
  }
  const Binding* binding() const {
    const size_t count = kernel().bindings.size();
    const bool exists = inst_->binding() < count && inst_->imm >> 48 == 0;
    require(exists, "binding ", inst_->imm >> 16, " does not exist: the kernel has ", count);
    return exists ? &kernel().bindings[inst_->binding()] : nullptr;
  }
  /// The nearest enclosing instruction of an operation, or null.
  const Inst* enclosing(Op op) const {
    for (const Inst* at = inst_->parent->parent; at; at = at->parent->parent)
      if (at->is(op)) return at;
    return nullptr;
  }
  /// A site of one of the kinds.
  const Site* site(std::initializer_list<Site::Kind> kinds) const {
    if (!require(inst_->site != no_site, "has no site")) return nullptr;
    if (inst_->site >= kernel().sites.size()) return nullptr;  // said for every instruction
    const Site& s = kernel().sites[inst_->site];
    const bool fits = std::find(kinds.begin(), kinds.end(), s.kind) != kinds.end();
    return require(fits, "site ", inst_->site, " is of another kind") ? &s : nullptr;
  }
  void reports(const Site& s, size_t from) const {
    const std::span<Use> have = inst_->operands.subspan(from);
    require(equal(have, s.values), "reports ", have, ", its site says ", list(s.values));
  }

 private:
  const Place& place_;
  const Inst* inst_;
};

bool combines(AtomicOp op, Type t) {
  if (t == Type::f16) return false;
  switch (op) {
    case AtomicOp::add:
    case AtomicOp::mul:
    case AtomicOp::min:
    case AtomicOp::max: return is_number(t);
    case AtomicOp::bit_and:
    case AtomicOp::bit_or:
    case AtomicOp::bit_xor: return is_int(t) || t == Type::b1;
    default: return is_scalar(t);
  }
}

size_t atomic_operands(AtomicOp op) {
  return op == AtomicOp::load ? 0 : op == AtomicOp::cas ? 2 : 1;
}

// ---- values

void constant(const Case& c) {
  if (!c.takes(0) || !c.require(c.inst().results.size() == 1, "gives no value or several")) return;
  const Type t = c.inst().type();
  const bool nowhere = t == Type::address && c.inst().imm == 0;
  c.require(is_scalar(t) || nowhere, "gives ", t, ", expected a scalar");
  c.require(c.inst().imm == truncate(c.inst().imm, t), "has bits beyond its type");
}

void param(const Case& c) {
  const Binding* b = c.binding();
  if (!c.takes(0) || !b) return;
  if (!c.require(b->kind == Binding::scalar, "binding is no scalar")) return;
  if (c.require(c.inst().component() == 0, "a scalar has one component") && !b->components.empty())
    c.gives({b->components[0].value});
}

void extent(const Case& c) {
  const Binding* b = c.binding();
  if (!c.takes(0) || !b) return;
  c.require(b->kind == Binding::field, "binding is no field");
  c.require(c.inst().axis() < b->rank, "axis ", c.inst().axis(), " does not exist: the rank is ",
            b->rank);
  c.require(c.inst().results.size() == 1 && is_int(c.inst().type()), "gives no integer");
}

// ---- storage

/// The scalar an access moves, none where it is wrong; `values` operands follow the indices.
Type accessed(const Case& c, size_t values) {
  const Binding* b = c.binding();
  if (!b) return Type::none;
  const uint32_t component = c.inst().component();
  size_t indices = b->rank;
  Type elem = Type::none;
  if (b->kind == Binding::frame) {
    if (!c.require(component < c.kernel().frame.size(), "frame cell ", component,
                   " does not exist"))
      return Type::none;
    elem = c.kernel().frame[component];
    indices = c.operands() > values ? 1 : 0;  // an index counts cells
  } else {
    if (!c.require(b->kind == Binding::field, "binding is no field") ||
        !c.require(component < b->components.size(), "component ", component, " does not exist"))
      return Type::none;
    elem = b->components[component].value;
  }
  if (!c.takes(indices + values)) return Type::none;
  for (size_t k = 0; k < indices; k++) c.is_index(k);
  for (size_t k = indices; k < c.operands(); k++) c.is(k, elem);
  c.moves(elem);
  return elem;
}

void load(const Case& c) {
  const Type elem = accessed(c, 0);
  if (elem == Type::none) return;
  c.gives({elem});
  if (c.place().stage != stage_domain) return;
  c.require(c.operands() == 0 && c.kernel().bindings[c.inst().binding()].kind == Binding::frame,
            "a domain reads frame cells only");
}

void store(const Case& c) {
  accessed(c, 1);
  c.gives({});
}

void atomic(const Case& c) {
  const Type elem = accessed(c, atomic_operands(c.inst().atomic()));
  if (elem == Type::none) return;
  c.gives({elem});
  c.require(combines(c.inst().atomic(), elem), "no ", c.inst().atomic(), " on ", elem);
}

// ---- slots

const Inst* slot_of(const Case& c) {
  const Inst* made = c.inst().operand(0)->inst;
  const bool sound = made && made->is(Op::slot);
  c.require(sound, "operand 0 is ", c.operand(0), ", expected a slot");
  return sound ? made : nullptr;
}

void slot(const Case& c) {
  if (!c.takes(0) || !c.gives({Type::slot})) return;
  c.require(is_scalar(c.inst().elem), "holds ", c.inst().elem, ", expected a scalar");
  c.require(c.inst().imm > 0, "holds no element");
}

void slot_access(const Case& c, size_t values) {
  if (!c.takes(1 + values, 2 + values)) return;
  const Inst* s = slot_of(c);
  if (!s) return;
  const bool indexed = c.operands() == 2 + values;
  if (indexed)
    c.is_index(1);
  else
    c.require(s->imm == 1, "a slot of ", s->imm, " elements needs an index");
  c.moves(s->elem);
  if (values) c.is(c.operands() - 1, s->elem);
}

void get(const Case& c) {
  slot_access(c, 0);
  if (c.inst().elem != Type::none) c.gives({c.inst().elem});
}

void put(const Case& c) {
  slot_access(c, 1);
  c.gives({});
}

void reduction_step(const Case& c, Type t) {
  const AtomicOp op = c.inst().atomic();
  c.require(op <= AtomicOp::bit_xor && combines(op, t), "no reduction by ", op, " on ", t);
  c.moves(t);
  c.gives({});
}

void reduce(const Case& c) {
  if (c.place().task) {  // a value for one of the task's reductions
    const auto& all = c.place().task->reductions;
    if (!c.takes(1) || !c.require(c.inst().imm < all.size(), "reduction ", c.inst().imm,
                                  " of the task does not exist"))
      return;
    const Reduction& r = all[c.inst().imm];
    c.is(0, r.type);
    c.require(r.op == c.inst().atomic(), "the task's reduction is by ", r.op);
    reduction_step(c, r.type);
    return;
  }
  if (!c.takes(2)) return;
  const Inst* s = slot_of(c);
  if (!s) return;
  c.is(1, s->elem);
  c.require(s->imm == 1, "reduces into an array");
  reduction_step(c, s->elem);
  const Inst* loop = c.enclosing(Op::parallel);
  if (c.require(loop != nullptr, "stands in no parallel loop"))
    c.require(!encloses(loop->region(0), s->parent), "its slot stands in the parallel loop");
}

// ---- structure

void parallel(const Case& c) {
  const size_t rank = c.inst().kind;
  if (!c.require(rank >= 1 && rank <= 8, "has rank ", rank, ", expected 1 to 8")) return;
  if (!c.takes(2 * rank) || !c.regions(1) || !c.gives({})) return;
  const Type t = c.operand(0);
  c.require(t == Type::i32 || t == Type::i64, "bounds are ", t, ", expected i32 or i64");
  for (size_t k = 1; k < c.operands(); k++) c.is(k, t);
  c.args(0, std::vector<Type>(rank, t));
  c.yields(0, {});
  c.require(!c.enclosing(Op::parallel), "stands in another parallel loop");
  c.require(!c.place().callee, "stands in a function");
  c.require((c.inst().imm & 0xfffe0000) == 0, "has unknown bits in imm");
}

void loop(const Case& c) {
  if (!c.takes(3, ~size_t(0)) || !c.regions(1)) return;
  const Type t = c.operand(0);
  c.require(is_int(t), "bounds are ", t, ", expected integers");
  c.is(1, t);
  c.is(2, t);
  const std::vector<Type> carried = types_of(c.inst().operands, 3);
  std::vector<Type> args = {t};
  args.insert(args.end(), carried.begin(), carried.end());
  c.gives(carried);
  c.args(0, args);
  c.yields(0, carried);
}

void while_(const Case& c) {
  if (!c.regions(2)) return;
  const std::vector<Type> carried = types_of(c.inst().operands, 0);
  std::vector<Type> condition = {Type::b1};
  condition.insert(condition.end(), carried.begin(), carried.end());
  c.gives(carried);
  c.args(0, carried);
  c.args(1, carried);
  c.yields(0, condition);
  c.yields(1, carried);
}

void if_(const Case& c) {
  if (!c.takes(1) || !c.regions(2)) return;
  c.is(0, Type::b1);
  std::vector<Type> results;
  for (const Value& v : c.inst().results) results.push_back(v.type);
  for (size_t k : {0, 1}) {
    c.args(k, {});
    c.yields(k, results);
  }
}

void yield(const Case& c) { c.gives({}); }

/// break_<n> leaves n loops; continue_<n> leaves n and goes on with the next.
void leave(const Case& c, uint64_t loops, uint64_t leaves) {
  c.gives({});
  c.takes(0);
  for (const Inst* at = c.inst().parent->parent; at && loops; at = at->parent->parent) {
    const bool is_parallel = at->is(Op::parallel);
    if (!is_parallel && !at->is(Op::loop) && !at->is(Op::while_)) continue;
    c.require(!(is_parallel && leaves), "leaves a parallel loop");
    loops--;
    if (leaves) leaves--;
  }
  c.require(loops == 0, "leaves more loops than there are");
}

void break_(const Case& c) {
  if (c.require(c.inst().imm > 0, "leaves no loop")) leave(c, c.inst().imm, c.inst().imm);
}
void continue_(const Case& c) { leave(c, c.inst().imm + 1, c.inst().imm); }

void return_(const Case& c) {
  const auto& want = c.place().callee ? c.place().callee->results : c.kernel().results;
  const std::span<Use> have = c.inst().operands;
  c.require(equal(have, want), "returns ", have, ", expected ", list(want));
  c.require(!c.enclosing(Op::parallel), "leaves a parallel loop");
  c.gives({});
}

void call(const Case& c) {
  const auto& callees = c.kernel().callees;
  if (!c.require(c.inst().imm < callees.size(), "function ", c.inst().imm, " does not exist"))
    return;
  const Function& f = callees[c.inst().imm];
  if (!f.body) return;
  const std::span<Use> have = c.inst().operands;
  const std::span<Value> want = f.body->args;
  const bool fits =
      std::equal(have.begin(), have.end(), want.begin(), want.end(),
                 [](const Use& u, const Value& v) { return u.value->type == v.type; });
  c.require(fits, "passes ", have, ", ", f.name, " takes ", want);
  c.gives(f.results);
}

// ---- effects

void check(const Case& c) {
  if (!c.takes(1, ~size_t(0))) return;
  c.is(0, Type::b1);
  c.gives({});
  if (const Site* s =
          c.site({Site::check, Site::bounds, Site::division, Site::conversion, Site::other}))
    c.reports(*s, 1);
}

void print(const Case& c) {
  c.gives({});
  if (const Site* s = c.site({Site::print})) c.reports(*s, 0);
}

void random(const Case& c) {
  c.takes(0);
  c.gives({Type::u32});
}

// ---- addresses

void arg(const Case& c) {
  c.takes(0);
  c.require(c.inst().results.size() == 1 &&
                (is_scalar(c.inst().type()) || c.inst().type() == Type::address),
            "gives no scalar or address");
  c.require(!c.place().callee, "stands in a function");
  const uint32_t bytes = abi::layout(c.kernel()).bytes;
  c.require(c.inst().imm % 8 == 0 && c.inst().imm < bytes,
            "no entry of the argument block lies there (", bytes, " bytes)");
}

void builtin(const Case& c) {
  c.takes(0);
  c.gives({Type::i64});
  const Task* task = c.place().task;
  if (!c.require(task != nullptr, "stands in no task")) return;
  const Builtin b = c.inst().builtin();
  if (b == Builtin::iteration) {
    c.require(c.place().stage == stage_opened, "of a walked loop");
    return;
  }
  if (b == Builtin::asks) return;
  const bool chunk = b == Builtin::chunk || b == Builtin::begin;
  const bool element = b == Builtin::thread || b == Builtin::threads ||
                       b == Builtin::block_thread || b == Builtin::reciprocal ||
                       b == Builtin::next_reciprocal;
  const bool reciprocal = b == Builtin::reciprocal || b == Builtin::next_reciprocal;
  if (b == Builtin::first_row || b == Builtin::rows) {
    c.require(task->kind == Task::combining, "not of this kind of task");
    return;
  }
  if (b == Builtin::chunk && task->lanes) {
    c.require(c.place().stage == stage_opened, "of a walked loop");
    return;
  }
  c.require((task->kind != Task::serial || b == Builtin::end) && !(reciprocal && task->rank < 2) &&
                !(chunk && task->walk == Task::element) &&
                !(element && task->walk == Task::chunked),
            "not of this kind of task");
}

void offset(const Case& c) {
  if (!c.takes(2)) return;
  c.is(0, Type::address);
  c.is(1, Type::i64);
  c.gives({Type::address});
}

void memory(const Case& c) {
  c.is(0, Type::address);
  c.require(is_scalar(c.inst().elem), "moves ", c.inst().elem, ", expected a scalar");
  c.require(c.inst().imm <= abi::print_class, "alias class does not exist");
}

void read(const Case& c) {
  if (!c.takes(1)) return;
  memory(c);
  c.gives({c.inst().elem});
}

void write(const Case& c) {
  if (!c.takes(2)) return;
  memory(c);
  c.is(1, c.inst().elem);
  c.gives({});
}

void rmw(const Case& c) {
  const Type elem = c.inst().elem;
  if (!c.takes(1 + atomic_operands(c.inst().atomic()))) return;
  memory(c);
  for (size_t k = 1; k < c.operands(); k++) c.is(k, elem);
  c.require(combines(c.inst().atomic(), elem), "no ", c.inst().atomic(), " on ", elem);
  c.gives({elem});
}

void block_reduce(const Case& c) {
  if (!c.takes(1)) return;
  const Type t = c.inst().elem;
  const AtomicOp op = c.inst().atomic();
  c.is(0, t);
  c.gives({t});
  c.require(op <= AtomicOp::bit_xor && combines(op, t), "no reduction by ", op, " on ", t);
  const Task* task = c.place().task;
  bool all_threads = task && task->kind != Task::serial && task->walk == Task::element;
  for (const Region* r = c.inst().parent; r->parent; r = r->parent->parent)
    all_threads &= r->parent->is(Op::if_);
  c.require(all_threads, "is not reached by all threads of a block together");
}

// ---- the table

constexpr uint8_t bodies = stage_recorded | stage_structured | stage_split | stage_opened;
constexpr uint8_t code = bodies | stage_lowered;
constexpr uint8_t all = code | stage_domain;
constexpr uint8_t low = stage_opened | stage_lowered;

struct Rule {
  Op op;
  uint8_t stages;
  void (*check)(const Case&);
};

constexpr Rule rules[] = {
    {Op::constant, all, constant},
    {Op::param, bodies | stage_domain, param},
    {Op::extent, bodies | stage_domain, extent},
    {Op::first, bodies | stage_domain, extent},
    {Op::load, bodies | stage_domain, load},
    {Op::store, bodies, store},
    {Op::atomic, bodies, atomic},
    {Op::slot, code, slot},
    {Op::get, code, get},
    {Op::put, code, put},
    {Op::reduce, bodies, reduce},
    {Op::parallel, stage_recorded | stage_structured | stage_opened, parallel},
    {Op::loop, code, loop},
    {Op::while_, code, while_},
    {Op::if_, code, if_},
    {Op::yield, all, yield},
    {Op::break_, stage_recorded, break_},
    {Op::continue_, stage_recorded, continue_},
    {Op::return_, stage_recorded, return_},
    {Op::call, code, call},
    {Op::check, bodies, check},
    {Op::print, bodies, print},
    {Op::random, bodies, random},
    {Op::arg, low, arg},
    {Op::builtin, low, builtin},
    {Op::offset, low, offset},
    {Op::read, low, read},
    {Op::write, low, write},
    {Op::rmw, low, rmw},
    {Op::block_reduce, low, block_reduce},
};

constexpr const Rule* rule_of(Op op) {
  for (const Rule& r : rules)
    if (r.op == op) return &r;
  return nullptr;
}

#define QUERN_OP(name, rule, classes, flags, fold, partial, weight)                 \
  static_assert((OperandRule::rule == OperandRule::special) == !!rule_of(Op::name), \
                "a special operation has a rule in this file, no other has: " #name);
#include "quern/ir/ops.def"
#undef QUERN_OP

/// The rows whose types the operation table gives.
void element_wise(const Case& c) {
  const Inst& inst = c.inst();
  const OpInfo& row = info(inst.op);
  if (!c.takes(size_t(row.operands)) || !c.regions(0)) return;
  const Type t = c.operand(c.operands() - 1);
  const bool taken =
      (row.bools && t == Type::b1) || (row.ints && is_int(t)) || (row.floats && is_float(t));
  if (!c.require(taken, "does not take ", t)) return;
  const size_t first = row.rule == OperandRule::pick ? 1 : 0;
  if (first) c.is(0, Type::b1);
  for (size_t k = first; k + 1 < c.operands(); k++) c.is(k, t);
  switch (row.rule) {
    case OperandRule::compare: c.gives({Type::b1}); break;
    case OperandRule::convert:
    case OperandRule::bitcast:
      if (!c.require(inst.results.size() == 1 && is_scalar(inst.type()), "gives no scalar")) break;
      if (row.rule == OperandRule::bitcast)
        c.require(bit_width(t) == bit_width(inst.type()) && t != Type::b1, "from ", t, " to ",
                  inst.type(), ", expected equal widths");
      break;
    default: c.gives({t});
  }
  c.require(inst.kind == 0 || (row.rule == OperandRule::same && is_float(t) &&
                               inst.kind <= (reassociate | uncontracted)),
            "has a flag that only float arithmetic has");
}

/// What a kind says is known, and stands where it may.
bool kind_is_sound(const Inst& inst, Stage stage) {
  switch (inst.op) {
    case Op::atomic:
    case Op::rmw:
    case Op::reduce:
    case Op::block_reduce: return inst.kind <= uint8_t(AtomicOp::load);
    case Op::builtin: return inst.kind <= uint8_t(Builtin::iteration);
    case Op::parallel: return true;
    case Op::if_: return inst.kind <= rarely;
    case Op::loop: return inst.kind == 0 || (inst.kind <= thread_walk && (stage & low) != 0);
    default: return inst.kind == 0 || info(inst.op).rule != OperandRule::special;
  }
}

void check_inst(const Place& place, const Inst* inst) {
  const Case c(place, inst);
  c.require(inst->site == no_site || inst->site < place.kernel.sites.size(), "site ", inst->site,
            " does not exist");
  for (const Value& v : inst->results)
    c.require(is_scalar(v.type) || v.type == Type::address ||
                  (v.type == Type::slot && inst->is(Op::slot)),
              "gives ", v.type, ", which no value has");
  for (size_t k = 0; k < c.operands(); k++)
    c.require(c.operand(k) != Type::slot ||
                  (k == 0 && (inst->is(Op::get) || inst->is(Op::put) || inst->is(Op::reduce))),
              "uses a slot, which slot operations alone may");
  if (!c.require(kind_is_sound(*inst, place.stage), "has an unknown kind or flag")) return;
  const Rule* rule = rule_of(inst->op);
  if (!c.require(!rule || (rule->stages & place.stage), "not allowed at this level")) return;
  if (rule)
    rule->check(c);
  else
    element_wise(c);
}

void check_region(const Place& place, const Region* region) {
  for (const Inst* inst = region->first; inst; inst = inst->next) {
    check_inst(place, inst);
    for (const Region* r : inst->regions) check_region(place, r);
  }
}

}  // namespace

void check_yield(const Place& place, const Region* region, std::span<const Type> types,
                 std::string_view owner, std::optional<size_t> number) {
  const Inst* last = region->last;
  if (!last->is(Op::yield) || equal(last->operands, types)) return;
  std::string wants(owner);
  if (number) wants += message(" region ", *number);
  place.findings.add(last, message("yields ", last->operands, ", ", wants, " wants ", types));
}

void check_rules(const Place& place) { check_region(place, place.root); }

}  // namespace quern::ir::text

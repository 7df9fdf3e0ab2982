#include "ir/verify/rules.h"

#include <algorithm>

#include "ir/analysis/facts.h"
#include "quern/ir/abi.h"

namespace quern::ir::text {

void Findings::add(const std::string& message) {
  count_++;
  if (out_.size() < most) out_.push_back(where_ + message);
}

std::string Findings::named(const Inst* inst) {
  if (!names_) names_ = std::make_unique<Names>(root_);
  return "`" + head(inst, *names_) + "`";
}

void Findings::add(const Inst* inst, const std::string& message) {
  add(named(inst) + ": " + message);
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
  const Binding* binding(uint32_t number) const {
    const size_t count = kernel().bindings.size();
    const bool exists = number < count;
    require(exists, "binding ", number, " does not exist: the kernel has ", count);
    return exists ? &kernel().bindings[number] : nullptr;
  }
  const Binding* binding() const { return binding(inst_->binding()); }
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
  /// `more`: of one value that may come behind those.
  void reports(const Site& s, size_t from, Type more = Type::none) const {
    std::span<Use> have = inst_->operands.subspan(from);
    if (have.size() == s.values.size() + 1 && have.back().value->type == more)
      have = have.first(s.values.size());
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

// ---- what the table says of an operation

/// What stands in its attributes exists.
bool names_are_sound(const Case& c, NameUse use) {
  const Inst& inst = c.inst();
  switch (use) {
    case NameUse::nothing:
      return c.require(inst.imm == 0, "has an attribute that it does not take");
    case NameUse::bits:
    case NameUse::loops:
    case NameUse::reduction: return true;
    case NameUse::options: {
      if (inst.options.over == no_binding) return true;
      const Binding* b = c.binding(inst.options.over);
      return b && c.require(b->kind == Binding::field, "binding is no field");
    }
    case NameUse::binding: {
      const Binding* b = c.binding();
      return b && c.require(b->kind == Binding::scalar, "binding is no scalar");
    }
    case NameUse::axis: {
      const Binding* b = c.binding();
      const bool has_axis =
          b && (b->kind == Binding::field || (b->kind == Binding::buffer && inst.is(Op::extent)));
      return b && c.require(has_axis, "binding is no field") &&
             c.require(inst.axis() < b->rank, "axis ", inst.axis(), " does not exist: the rank is ",
                       b->rank);
    }
    case NameUse::component: {
      const Binding* b = c.binding();
      if (!b) return false;
      if (b->kind == Binding::frame)
        return c.require(inst.component() < c.kernel().frame.size(), "frame cell ",
                         inst.component(), " does not exist");
      return c.require(b->has_elements(), "binding has no elements") &&
             c.require(inst.component() < b->components.size(), "component ", inst.component(),
                       " does not exist");
    }
    case NameUse::elements: return c.require(inst.imm > 0, "holds no element");
    case NameUse::callee:
      return c.require(inst.imm < c.kernel().callees.size(), "function ", inst.imm,
                       " does not exist");
    case NameUse::entry: {
      const uint32_t bytes = abi::layout(c.kernel()).bytes;
      return c.require(inst.imm % 8 == 0 && inst.imm < bytes,
                       "no entry of the argument block lies there (", bytes, " bytes)");
    }
    case NameUse::alias_class:
      return c.require(inst.imm < abi::first_buffer_class + c.kernel().bindings.size(),
                       "alias class does not exist");
  }
  return false;
}

/// The slot that the first operand is, or null.
const Inst* slot_of(const Case& c) {
  const Inst* made = c.operands() > 0 ? c.inst().operand(0)->inst : nullptr;
  return made && made->is(Op::slot) ? made : nullptr;
}

/// Operands and results against the form of the operation.
class FormOf {
 public:
  FormOf(const Case& c, const OpInfo& row) : c_(c), form_(row.form) {
    for (const Item item : operands())
      if (item == Item::slot) slot_ = slot_of(c);
    elem_ = elem(row);
  }

  bool holds() const {
    size_t least = 0, most = 0;
    for (const Item item : operands()) {
      auto [few, many] = count(item);
      least += few;
      most = many == any_number ? any_number : most + many;
    }
    if (!c_.takes(least, most)) return false;
    bool sound = true;
    size_t k = 0;
    for (const Item item : operands()) {
      auto [few, many] = count(item);
      const size_t n = few == many ? few : few + c_.operands() - least;
      for (size_t end = k + n; k < end; k++) sound &= fits(k, item);
    }
    if (form_.elem != ElemUse::none && form_.elem != ElemUse::own) sound &= c_.moves(elem_);
    return gives() && sound;
  }

 private:
  static constexpr size_t any_number = ~size_t(0);

  std::span<const Item> operands() const { return {form_.operands, form_.operand_count}; }

  /// What Inst::elem must be: what the storage or slot holds, or else what it says itself.
  Type elem(const OpInfo& row) const {
    const Kernel& kernel = c_.kernel();
    if (row.names == NameUse::component) {
      const Binding& b = kernel.bindings[c_.inst().binding()];
      return b.kind == Binding::frame ? kernel.frame[c_.inst().component()]
                                      : b.components[c_.inst().component()].type;
    }
    return slot_ ? slot_->elem : c_.inst().elem;
  }

  std::pair<size_t, size_t> count(Item item) const {
    switch (item) {
      case Item::rest: return {0, any_number};
      case Item::indices: {
        const Binding& b = c_.kernel().bindings[c_.inst().binding()];
        if (b.kind == Binding::frame) return {0, 1};  // an index counts cells
        return {b.rank, b.rank};
      }
      case Item::values: {
        const size_t n = operand_count(c_.inst().atomic());
        return {n, n};
      }
      case Item::index: return {0, 1};
      case Item::slot:
        return c_.inst().is(Op::reduce) && c_.place().task ? std::pair<size_t, size_t>{0, 0}
                                                           : std::pair<size_t, size_t>{1, 1};
      default: return {1, 1};
    }
  }

  bool fits(size_t k, Item item) const {
    switch (item) {
      case Item::b1: return c_.is(k, Type::b1);
      case Item::u32: return c_.is(k, Type::u32);
      case Item::u64: return c_.is(k, Type::u64);
      case Item::i64: return c_.is(k, Type::i64);
      case Item::address: return c_.is(k, Type::address);
      case Item::slot:
        return c_.require(slot_ != nullptr, "operand ", k, " is ", c_.operand(k),
                          ", expected a slot");
      case Item::integer:
        return c_.require(is_int(c_.operand(k)), "operand ", k, " is ", c_.operand(k),
                          ", expected an integer");
      case Item::index:
      case Item::indices:
        return c_.require(is_int(c_.operand(k)), "operand ", k, " is ", c_.operand(k),
                          ", expected an integer index");
      case Item::elem:
      case Item::values: return c_.is(k, elem_);
      default: return true;
    }
  }

  bool gives() const {
    const std::span<Value> results = c_.inst().results;
    if (form_.result_count == 0) return c_.gives({});
    const bool one = results.size() == 1;
    const Type t = one ? results[0].type : Type::none;
    switch (form_.results[0]) {
      case Item::u32: return c_.gives({Type::u32});
      case Item::u64: return c_.gives({Type::u64});
      case Item::i64: return c_.gives({Type::i64});
      case Item::address: return c_.gives({Type::address});
      case Item::slot: return c_.gives({Type::slot});
      case Item::elem: return c_.gives({elem_});
      case Item::integer: return c_.require(is_int(t), "gives no integer");
      case Item::scalar: return c_.require(is_scalar(t), "gives no scalar");
      case Item::any:
        return c_.require(is_scalar(t) || t == Type::address, "gives no scalar or address");
      default: return true;
    }
  }

  const Case& c_;
  const Form& form_;
  const Inst* slot_ = nullptr;
  Type elem_ = Type::none;
};

/// What its kind says is known, and fits what it moves.
bool kind_is_sound(const Case& c, KindUse use) {
  const Inst& inst = c.inst();
  auto known = [&](bool holds) { return c.require(holds, "has an unknown kind or flag"); };
  switch (use) {
    case KindUse::none: return known(inst.kind == 0);
    case KindUse::rank: return true;
    case KindUse::arithmetic:
      return inst.kind == 0 ||
             c.require(info(inst.op).rule == OperandRule::same && is_float(inst.type()) &&
                           inst.kind <= (reassociate | uncontracted | unasked | distribute),
                       "has a flag that only float arithmetic has");
    case KindUse::loop:
      return known(inst.kind == 0 ||
                   ((inst.kind == thread_walk || (inst.kind & ~brief) == parallel_walk) &&
                    (c.place().at & (level::opened | level::lowered)) != 0));
    case KindUse::branch: return known(inst.kind <= sparing);
    case KindUse::slot:
      return known(inst.kind == 0 || (inst.kind <= (unset | by_round) &&
                                      (c.place().at & (level::opened | level::lowered)) != 0));
    case KindUse::builtin: return known(inst.kind <= uint8_t(Builtin::iteration));
    case KindUse::atomic: return known(inst.kind <= uint8_t(AtomicOp::load));
    case KindUse::combine:
      return known(inst.kind <= uint8_t(AtomicOp::load)) &&
             c.require(has_identity(inst.atomic()), "no reduction by ", inst.atomic(), " on ",
                       inst.elem);
  }
  return false;
}

/// The operation on the type that it moves.
void combines(const Case& c, KindUse use) {
  const Inst& inst = c.inst();
  if (use == KindUse::atomic)
    c.require(combines(inst.atomic(), inst.elem), "no ", inst.atomic(), " on ", inst.elem);
  if (use == KindUse::combine)
    c.require(combines(inst.atomic(), inst.elem), "no reduction by ", inst.atomic(), " on ",
              inst.elem);
}

// ---- what the table does not say: values, storage, slots

void constant(const Case& c) {
  const Type t = c.inst().type();
  const bool nowhere = t == Type::address && c.inst().imm == 0;
  c.require(is_scalar(t) || nowhere, "gives ", t, ", expected a scalar");
  c.require(c.inst().imm == truncate(c.inst().imm, t), "has bits beyond its type");
}

void param(const Case& c) {
  const Binding& b = c.kernel().bindings[c.inst().binding()];
  if (!b.components.empty()) c.gives({b.components[0].type});
}

void load(const Case& c) {
  if (c.place().at != level::domain) return;
  c.require(c.operands() == 0 && c.kernel().bindings[c.inst().binding()].kind == Binding::frame,
            "a domain reads frame cells only");
  c.require(c.place().root != c.place().task->bound, "a bound reads no frame cell");
}

void empty_box(const Case& c) {
  std::vector<Type> want(1 + 2 * size_t(c.binding()->rank), Type::i32);
  want[0] = Type::b1;
  c.gives(want);
}

void slot(const Case& c) {
  c.require(is_scalar(c.inst().elem), "holds ", c.inst().elem, ", expected a scalar");
}

void slot_access(const Case& c) {
  const size_t values = c.inst().is(Op::put) ? 1 : 0, count = slot_of(c)->imm;
  if (c.operands() == 1 + values)
    c.require(count == 1, "a slot of ", count, " elements needs an index");
}

void reduce(const Case& c) {
  if (c.place().task) {  // a value for one of the task's reductions
    const auto& all = c.place().task->reductions;
    if (!c.require(c.inst().imm < all.size(), "reduction ", c.inst().imm,
                   " of the task does not exist"))
      return;
    const Reduction& r = all[c.inst().imm];
    c.is(0, r.type);
    c.require(r.op == c.inst().atomic(), "the task's reduction is by ", r.op);
    return;
  }
  const Inst* s = slot_of(c);
  c.require(s->imm == 1, "reduces into an array");
  const Inst* loop = c.enclosing(Op::parallel);
  if (c.require(loop != nullptr, "stands in no parallel loop"))
    c.require(!encloses(loop->region(0), s->parent), "its slot stands in the parallel loop");
}

// ---- structure

void parallel(const Case& c) {
  const size_t rank = c.inst().kind;
  const bool names_field = c.inst().options.over != no_binding;
  if (!c.require(rank >= 1 && rank <= 8, "has rank ", rank, ", expected 1 to 8")) return;
  if (!c.takes(names_field ? 0 : 2 * rank)) return;
  const std::span<Value> indices = c.inst().region(0)->args;
  Type t = Type::none;
  if (!names_field)
    t = c.operand(0);
  else if (!indices.empty())
    t = indices[0].type;
  c.require(t == Type::i32 || t == Type::i64, names_field ? "indices are " : "bounds are ", t,
            ", expected i32 or i64");
  for (size_t k = 0; k < c.operands(); k++) c.is(k, t);
  if (names_field) {
    const Binding& field = c.kernel().bindings[c.inst().options.over];
    c.require(field.rank == rank, "has rank ", rank, ", its field ", field.rank);
    c.require(c.place().at != level::opened || field.layout.is_sparse(),
              "names a field, expected bounds");
  }
  c.args(0, std::vector<Type>(rank, t));
  c.yields(0, {});
  c.require(!c.enclosing(Op::parallel), "stands in another parallel loop");
  c.require(!c.place().callee, "stands in a function");
}

void loop(const Case& c) {
  const Type t = c.operand(0);
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
  std::vector<Type> results;
  for (const Value& v : c.inst().results) results.push_back(v.type);
  for (size_t k : {0, 1}) {
    c.args(k, {});
    c.yields(k, results);
  }
}

/// break_<n> leaves n loops; continue_<n> leaves n and goes on with the next.
void leave(const Case& c, uint64_t loops, uint64_t leaves) {
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
}

void call(const Case& c) {
  const Function& f = c.kernel().callees[c.inst().imm];
  if (!f.body) return;
  if (c.inst().is(Op::apply))
    c.require(!f.derivative.empty(), "of ", f.name, ", which has no derivative of its own");
  else
    c.require(f.derivative.empty(), "of ", f.name, ", which has a derivative of its own");
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
  if (const Site* s =
          c.site({Site::check, Site::bounds, Site::division, Site::conversion, Site::other}))
    c.reports(*s, 1, Type::i64);
}

void print(const Case& c) {
  if (const Site* s = c.site({Site::print})) c.reports(*s, 0);
}

// ---- addresses

void arg(const Case& c) { c.require(!c.place().callee, "stands in a function"); }

void builtin(const Case& c) {
  const Task* task = c.place().task;
  if (!c.require(task != nullptr, "stands in no task")) return;
  const Builtin b = c.inst().builtin();
  if (b == Builtin::iteration) {
    c.require(c.place().at == level::opened, "of a walked loop");
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
    c.require(c.place().at == level::opened, "of a walked loop");
    return;
  }
  c.require((task->kind != Task::serial || b == Builtin::end) && !(reciprocal && task->rank < 2) &&
                !(chunk && task->walk == Task::element) &&
                !(element && task->walk == Task::chunked),
            "not of this kind of task");
}

void read_or_write(const Case& c) {
  c.require(is_scalar(c.inst().elem), "moves ", c.inst().elem, ", expected a scalar");
}

void block_reduce(const Case& c) {
  const Task* task = c.place().task;
  c.require(task && task->kind != Task::serial && task->walk == Task::element,
            "stands where threads run in no blocks");
}

/// Called where the instruction is as the table says.
void (*rule_of(Op op))(const Case&) {
  switch (op) {
    case Op::constant: return constant;
    case Op::param: return param;
    case Op::load: return load;
    case Op::empty_box: return empty_box;
    case Op::slot: return slot;
    case Op::get:
    case Op::put: return slot_access;
    case Op::reduce: return reduce;
    case Op::parallel: return parallel;
    case Op::loop: return loop;
    case Op::while_: return while_;
    case Op::if_: return if_;
    case Op::break_: return break_;
    case Op::continue_: return continue_;
    case Op::return_: return return_;
    case Op::call:
    case Op::apply: return call;
    case Op::check: return check;
    case Op::print: return print;
    case Op::arg: return arg;
    case Op::builtin: return builtin;
    case Op::read:
    case Op::write:
    case Op::rmw: return read_or_write;
    case Op::block_reduce: return block_reduce;
    default: return [](const Case&) {};
  }
}

/// The rows whose types the operation table gives.
void element_wise(const Case& c) {
  const Inst& inst = c.inst();
  const OpInfo& row = info(inst.op);
  if (!c.takes(size_t(row.operands))) return;
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
}

void check_inst(const Place& place, const Inst* inst) {
  const Case c(place, inst);
  c.require(inst->site == no_site || inst->site < place.kernel.sites.size(), "site ", inst->site,
            " does not exist");
  for (const Value& v : inst->results)
    c.require(is_scalar(v.type) || v.type == Type::address ||
                  (v.type == Type::slot && inst->is(Op::slot)),
              "gives ", v.type, ", which no value has");
  const OpInfo& row = info(inst->op);
  for (size_t k = 0; k < c.operands(); k++)
    c.require(c.operand(k) != Type::slot || (k == 0 && row.form.operands[0] == Item::slot),
              "uses a slot, which slot operations alone may");
  if (!c.require((row.levels & place.at) != 0, "not allowed at this level")) return;
  if (!kind_is_sound(c, row.kind) || !names_are_sound(c, row.names) || !c.regions(row.regions))
    return;
  if (row.rule != OperandRule::special) return element_wise(c);
  if (!FormOf(c, row).holds()) return;
  combines(c, row.kind);
  rule_of(inst->op)(c);
}

void check_region(const Place& place, const Region* region) {
  const auto is_own = [&](const Inst* inst) {
    return inst->is(Op::call) ? !beyond_arguments(place.kernel, inst) : is_of_arguments(inst);
  };
  const bool has_rule = place.callee && !place.callee->derivative.empty();
  for (const Inst* inst = region->first; inst; inst = inst->next) {
    const size_t found = place.findings.count();
    check_inst(place, inst);
    if (has_rule && place.findings.count() == found && !is_own(inst))
      place.findings.add(inst,
                         "may fail, has an effect or depends on more than the arguments, in "
                         "a function with a derivative of its own");
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

#include "tests/fuzz/engine/generator.h"

#include <algorithm>
#include <string>
#include <utility>

#include "ir/analysis/facts.h"
#include "tests/fuzz/engine/generator_state.h"
#include "tests/fuzz/engine/shapes.h"
#include "tests/fuzz/engine/updates.h"

namespace quern::fuzz {

using namespace ir;

namespace {

class Generator {
 public:
  explicit Generator(uint64_t seed)
      : random_(seed), kernel_(std::make_unique<Kernel>()), b_(*kernel_) {
    kernel_->name = "fuzz" + std::to_string(seed);
    kernel_->modes = {random_.chance(30), random_.chance(60), false};
    const bool floats = kernel_->modes.strict || random_.chance(50);
    program_.on_devices = kernel_->modes.strict || !floats;
    values_ = std::make_unique<Values>(b_, random_, kernel_->modes.checked, floats);
    program_.seed = seed;
  }

  Program make() {
    bindings();
    for (uint64_t k = random_.below(3); k > 0; k--) function();
    for (uint64_t k = random_.below(4); k > 0; k--) kernel_->results.push_back(values_->type());
    kernel_->body = b_.make_region();
    b_.at_end(kernel_->body);
    budget_ = int(20 + random_.below(60));
    State top;
    top.returnable = true;
    for (uint32_t k = 0; k < kernel_->bindings.size(); k++)
      if (kernel_->bindings[k].kind == Binding::scalar)
        values_->add(b_.param(k, kernel_->bindings[k].components[0].type));
    for (uint64_t k = 1 + random_.below(3); k > 0; k--) slot(true);
    for (uint64_t k = 2 + random_.below(4); k > 0; k--) item(top);
    return_();
    program_.kernel = std::move(kernel_);
    return std::move(program_);
  }

 private:
  // ---- bindings and inputs

  uint32_t binding(Binding::Kind kind, uint8_t rank, const std::vector<Type>& types) {
    Binding made;
    made.kind = kind;
    made.rank = rank;
    made.name = "b" + std::to_string(kernel_->bindings.size());
    for (Type t : types) made.components.push_back({t});
    kernel_->bindings.push_back(made);
    program_.inputs.emplace_back();
    uint32_t number = uint32_t(program_.inputs.size() - 1);
    program_.inputs.back().memory = number;
    return number;
  }

  void bindings() {
    for (uint64_t k = 1 + random_.below(3); k > 0; k--) {
      Type type = values_->type();
      program_.inputs[binding(Binding::scalar, 0, {type})].scalar = interesting(random_, type);
    }
    const std::vector<int64_t> sizes = {1, 2, 3, 5, 8, 13};
    int64_t length = random_.chance(5) ? 2300 : random_.chance(50) ? 37 : random_.pick(sizes);
    large_ = length > 1000;
    const std::vector<int64_t> shapes[] = {
        {length},
        {random_.pick(sizes), random_.pick(sizes)},
        {int64_t(1 + random_.below(3)), int64_t(1 + random_.below(4)),
         int64_t(1 + random_.below(5))}};
    for (uint64_t k = 2 + random_.below(4); k > 0; k--) {
      uint8_t rank = random_.chance(60) ? 1 : uint8_t(1 + random_.below(3));
      std::vector<Type> types = {values_->type()};
      while (types.size() < 3 && random_.chance(25)) types.push_back(values_->type());
      const bool twin = !fields_.empty() && random_.chance(25);
      uint32_t other = twin ? random_.pick(fields_) : 0;
      if (twin) {
        rank = kernel_->bindings[other].rank;
        types.clear();
        for (const Component& c : kernel_->bindings[other].components) types.push_back(c.type);
      }
      uint32_t field = binding(Binding::field, rank, types);
      if (twin && random_.chance(70)) program_.inputs[field].memory = memory(other);
      fill(program_.inputs[field], shapes[rank - 1], types);
      fields_.push_back(field);
    }
    if (random_.chance(40)) frozen_ = memory(fields_[0]);
    // Strict mode refuses the updates that this field is for.
    if (!kernel_->modes.strict && random_.chance(50)) {
      const Type type = random_.chance(50) ? Type::f32 : Type::f64;
      counts_ = binding(Binding::field, 1, {type});
      Input& input = program_.inputs[counts_];
      input.shape = {int64_t(1 + random_.below(4))};
      input.components.emplace_back();
      for (int64_t k = 0; k < input.shape[0]; k++)
        input.components[0].push_back(bits_of_real(double(random_.below(100)), type));
    }
  }

  void fill(Input& input, const std::vector<int64_t>& shape, const std::vector<Type>& types) {
    input.shape = shape;
    int64_t count = 1;
    for (int64_t n : shape) count *= n;
    for (Type t : types) {
      input.components.emplace_back();
      for (int64_t i = 0; i < count; i++)
        input.components.back().push_back(interesting(random_, t));
    }
  }

  uint32_t memory(uint32_t field) const { return program_.inputs[field].memory; }
  Type type_of(uint32_t field, uint32_t component) const {
    return kernel_->bindings[field].components[component].type;
  }
  uint32_t component(uint32_t field) {
    return uint32_t(random_.below(kernel_->bindings[field].components.size()));
  }

  // ---- regions

  /// Fills a region; what is made in it is not seen outside.
  template <class F>
  void inside(Region* region, State state, F&& fill) {
    Region* outer = b_.region();
    size_t mark = values_->mark(), slots = slots_.size();
    b_.at_end(region);
    state.depth++;
    fill(state);
    values_->forget(mark);
    slots_.resize(slots);
    b_.at_end(outer);
  }

  void return_() {
    std::vector<Value*> values;
    for (Type t : results_of_function_ ? *results_of_function_ : kernel_->results)
      values.push_back(values_->value(t));
    b_.make(Op::return_, std::span<const Type>(), values);
  }

  void end_region(const State& s) {
    if (random_.chance(35)) {
      if (s.breakable && random_.chance(50)) {
        b_.make(Op::break_, {}, {}, 1 + random_.below(s.breakable));
        return;
      }
      if (s.continuable && random_.chance(50)) {
        b_.make(Op::continue_, {}, {}, random_.below(s.continuable));
        return;
      }
      if (s.returnable && random_.chance(30)) return return_();
    }
    b_.yield();
  }

  void statements(State& s, uint64_t count) {
    for (; count > 0 && budget_ > 0; count--) statement(s);
  }

  // ---- functions

  void function() {
    Function f;
    f.name = "f" + std::to_string(kernel_->callees.size());
    std::vector<Type> args;
    for (uint64_t k = 1 + random_.below(3); k > 0; k--) args.push_back(values_->type());
    for (uint64_t k = 1 + random_.below(2); k > 0; k--) f.results.push_back(values_->type());
    f.body = b_.make_region(args);
    b_.at_end(f.body);
    budget_ = 12;
    std::vector<Value*> reach = values_->hide();
    for (Value& v : f.body->args) values_->add(&v);
    results_of_function_ = &f.results;
    State s;
    s.function = s.returnable = true;
    slot(false);
    statements(s, 2 + random_.below(6));
    return_();
    results_of_function_ = nullptr;
    values_->restore(std::move(reach));
    slots_.clear();
    bool of_arguments = true;
    walk(f.body, [&](const Inst* inst) { of_arguments &= is_of_arguments(inst); });
    if (of_arguments) f.derivative = "rule";
    kernel_->callees.push_back(std::move(f));
  }

  void call() {
    if (kernel_->callees.empty()) return values_->operation();
    uint64_t number = random_.below(kernel_->callees.size());
    const Function& f = kernel_->callees[number];
    std::vector<Value*> in;
    for (const Value& v : f.body->args) in.push_back(values_->value(v.type));
    Inst* inst = b_.make(f.derivative.empty() ? Op::call : Op::apply, f.results, in, number);
    for (Value& v : inst->results) values_->add(&v);
  }

  // ---- kernel level

  uint64_t most_trips() const { return large_ ? 1 : 12; }

  void item(State& s) {
    if (s.depth < 3 && random_.chance(15)) return branch(s, true);
    const bool repeats = s.depth < 2 && s.trips < most_trips();
    if (repeats && random_.chance(12)) return loop(s, true);
    if (repeats && random_.chance(8)) return while_(s, true);
    if (random_.chance(60)) return parallel(s);
    statements(s, 1 + random_.below(4));
  }

  /// What stands in a region of kernel level: items; elsewhere statements.
  void content(State& s, bool items, uint64_t count) {
    if (!items) return statements(s, count);
    for (; count > 0 && budget_ > 0; count--) item(s);
  }

  Value* clamped(Value* extent) {
    Value* zero = b_.integer(extent->type, 0);
    return b_.binary(Op::min, extent, b_.binary(Op::max, zero, values_->value(extent->type)));
  }

  void parallel(State& s) {
    const Binding& over = kernel_->bindings[random_.pick(fields_)];
    uint32_t field = uint32_t(&over - kernel_->bindings.data());
    Type type = random_.chance(75) ? Type::i32 : Type::i64;
    std::vector<Value*> bounds;
    std::vector<Type> args(over.rank, type);
    bool whole = true;
    for (uint32_t axis = 0; axis < over.rank; axis++) {
      Value *zero = b_.integer(type, 0), *extent = b_.extent(field, axis, type);
      Value *lo = random_.chance(75) ? zero : b_.integer(type, 1), *hi = extent;
      if (random_.chance(10)) lo = clamped(extent);
      if (random_.chance(15)) hi = b_.sub(extent, b_.integer(type, int64_t(random_.below(3))));
      if (random_.chance(10)) hi = clamped(extent);
      whole = whole && lo == zero && hi == extent;
      bounds.push_back(lo);
      bounds.push_back(hi);
    }
    assign_roles(over.rank);
    const bool names_field = whole && loops_ % 2 == 0;
    if (names_field) bounds.clear();
    LoopOptions options;
    if (names_field) options.over = field;
    std::optional<Element> made;
    iterations(s, args, bounds, options, [&](State& in) {
      if (random_.chance(over.rank > 1 ? 50 : 30) && (made = shape(over.rank, field))) {
        b_.yield();
        return;
      }
      slot(false);
      for (uint64_t k = random_.below(3); k > 0; k--) load(in);
      statements(in, 3 + random_.below(10));
      for (const Slot& t : std::vector<Slot>(slots_))
        if (t.reducing && random_.chance(70)) reduce(t);
      for (uint64_t k = 1 + random_.below(4); k > 0; k--) store(in);
      if (random_.chance(90))
        b_.yield();
      else
        b_.make(Op::continue_, {}, {}, 0);
    });
    roles_.clear();
    for (Slot& t : slots_) {
      if (std::exchange(t.reducing, false) && random_.chance(70)) show(b_.get(t.value));
    }
    if (made && random_.chance(over.rank > 1 ? 90 : 20)) stage(s, *made, args, bounds, options);
  }

  template <class F>
  void iterations(State& s, const std::vector<Type>& args, std::span<Value* const> bounds,
                  LoopOptions options, F body) {
    Inst* inst = b_.make(Op::parallel, std::span<const Type>(), bounds);
    options.ordinal = loops_++;
    options.deterministic = random_.below(2) != 0;
    inst->options = options;
    inst->kind = uint8_t(args.size());
    b_.set_regions(inst, {b_.make_region(args)});
    State of = s.closed();
    of.parallel = true;
    of.continuable = 1;
    inside(inst->region(0), of, [&](State& in) {
      own_index_.clear();
      for (Value& v : inst->region(0)->args) {
        own_index_.push_back(&v);
        values_->add(&v);
      }
      body(in);
    });
  }

  /// A loop over the same indices as the one before, of what that has made around each.
  void stage(State& s, Element from, const std::vector<Type>& args, std::span<Value* const> bounds,
             const LoopOptions& options) {
    std::vector<uint32_t> others;
    for (uint32_t field : fields_)
      if (kernel_->bindings[field].rank == args.size() && memory(field) != memory(from.binding) &&
          memory(field) != frozen_)
        others.push_back(field);
    if (others.empty()) return;
    iterations(s, args, bounds, options, [&](State&) {
      const uint32_t to = random_.pick(others), c = component(to);
      from.index = own_index_;
      Shapes(b_, random_, *values_).stencil(from, {to, c, type_of(to, c), own_index_});
      b_.yield();
    });
  }

  void assign_roles(uint8_t rank) {
    roles_.assign(kernel_->bindings.size(), {});
    for (uint32_t field : fields_) {
      if (memory(field) != field || field == frozen_) continue;
      Role& role = roles_[field];
      if (kernel_->bindings[field].rank == rank && random_.chance(60))
        role.kind = Role::own;
      else if (random_.chance(50))
        role.kind = Role::atomic;
      if (role.kind == Role::atomic && random_.chance(50)) role.everywhere = any_index(field);
      for (const Component& c : kernel_->bindings[field].components)
        role.ops.push_back(update_of(random_, c.type));
    }
    for (Slot& t : slots_) {
      t.reducing = t.shared && t.count == 1 && t.type != Type::f16 && random_.chance(50);
      t.op = reduction_of(random_, t.type, kernel_->modes.strict);
    }
  }

  /// The whole body as a shape, where the fields' roles allow one: what it makes, of the `likely` field perhaps.
  std::optional<Element> shape(uint8_t rank, uint32_t likely) {
    Shapes shapes(b_, random_, *values_);
    std::vector<uint32_t> own, from, other, beside;
    for (uint32_t field : fields_) {
      const Role::Kind kind = roles_[memory(field)].kind;
      const bool same = kernel_->bindings[field].rank == rank;
      if (same && kind == Role::own) own.push_back(field);
      if (same && kind != Role::atomic) from.push_back(field);
      if (kind == Role::read) other.push_back(field);
      if (same && kind == Role::read) beside.push_back(field);
    }
    if (own.empty()) return {};
    auto element = [&](uint32_t field, bool mine) {
      const uint32_t c = component(field);
      std::vector<Value*> index(own_index_);
      if (!mine) index.assign(kernel_->bindings[field].rank, b_.integer(Type::i64, 0));
      return Element{field, c, type_of(field, c), index};
    };
    const bool is_likely = std::ranges::count(own, likely) > 0 && random_.chance(60);
    const uint32_t to = is_likely ? likely : random_.pick(own);
    // What reads and writes one memory may not run twice.
    const bool apart = random_.chance(70);
    std::erase_if(from, [&](uint32_t field) { return apart && memory(field) == memory(to); });
    const Element made = element(to, true);
    if (!beside.empty() && random_.chance(50))
      shapes.stencil(element(random_.pick(beside), true), made);
    else if (!from.empty() && (other.empty() || random_.chance(50)))
      shapes.rare_case(element(random_.pick(from), true), made);
    else if (!other.empty())
      shapes.inner_loop(made, element(random_.pick(other), false), made);
    else
      return {};
    return made;
  }

  void reduce(const Slot& t) {
    Inst* inst = b_.make(Op::reduce, {}, {t.value, values_->value(t.type)});
    inst->kind = uint8_t(t.op);
    inst->elem = t.type;
  }

  // ---- statements

  void statement(State& s) {
    budget_--;
    bool deep = s.depth >= 6 || s.trips > most_trips();
    switch (random_.below(30)) {
      case 0:
      case 1: return load(s);
      case 2:
      case 3: return store(s);
      case 4: return atomic(s);
      case 5:
      case 6: return get(s);
      case 7:
      case 8: return put(s);
      case 9: return slot(s.kernel_level());
      case 10:
      case 11:
        if (!deep) branch(s, false);
        return;
      case 12:
        if (!deep) guard(s);
        return;
      case 13:
      case 14:
        if (!deep) loop(s, false);
        return;
      case 15:
        if (!deep) while_(s, false);
        return;
      case 16:
        if (!s.function) call();
        return;
      case 17: return check();
      case 18:
        if (!large_ && !s.function) print();
        return;
      case 19:
        if (!s.function) values_->add(b_.random());
        return;
      case 20:
        if (counts_ != no_site && !s.function && random_.chance(60)) return count();
        if (s.parallel)
          for (const Slot& t : std::vector<Slot>(slots_))
            if (t.reducing) return reduce(t);
        return values_->operation();
      default:
        for (uint64_t k = 1 + random_.below(3); k > 0; k--) values_->operation();
    }
  }

  uint32_t site(Site::Kind kind, std::vector<Type> types) {
    Site made;
    made.kind = kind;
    made.text = "site " + std::to_string(kernel_->sites.size());
    for (size_t k = 0; k < types.size(); k++) made.text += " {}";
    made.values = std::move(types);
    kernel_->sites.push_back(std::move(made));
    return uint32_t(kernel_->sites.size() - 1);
  }

  void check() {
    Value *c = values_->condition(), *v = values_->value(values_->type());
    Value* holds = b_.binary(Op::bit_or, c, b_.unary(Op::bit_not, c));
    b_.make(Op::check, {}, {holds, v})->site = site(Site::check, {v->type});
  }

  void print() { show(values_->value(values_->type())); }
  void show(Value* v) {
    Value* w = values_->value(values_->type());
    b_.make(Op::print, {}, {v, w})->site = site(Site::print, {v->type, w->type});
  }

  // ---- memory

  std::vector<Value*> any_index(uint32_t field) {
    std::vector<Value*> at;
    const std::vector<Type> types = {Type::i32, Type::i32, Type::i64, Type::u32, Type::u64};
    for (uint32_t axis = 0; axis < kernel_->bindings[field].rank; axis++)
      at.push_back(values_->index(b_.extent(field, axis, random_.pick(types))));
    return at;
  }
  std::vector<Value*> own_index() {
    std::vector<Value*> at;
    for (Value* v : own_index_) {
      uint64_t how = random_.below(10);
      at.push_back(how == 0 ? b_.convert(v, Type::i64) : how == 1 ? b_.convert(v, Type::u32) : v);
    }
    return at;
  }

  Role role(const State& s, uint32_t field) const {
    if (s.parallel) return roles_[memory(field)];
    return {memory(field) == frozen_ ? Role::read : Role::own, {}};
  }
  std::vector<Value*> index(const State& s, uint32_t field, const Role& r) {
    return s.parallel && r.kind == Role::own ? own_index() : any_index(field);
  }

  void load(State& s) {
    uint32_t field = random_.pick(fields_), c = component(field);
    Role r = role(s, field);
    if (s.function || r.kind == Role::atomic) return values_->operation();
    values_->add(b_.load(field, c, type_of(field, c), index(s, field, r)));
  }

  void store(State& s) {
    uint32_t field = random_.pick(fields_), c = component(field);
    Role r = role(s, field);
    if (s.function || r.kind != Role::own) return values_->operation();
    std::vector<Value*> at = index(s, field, r);
    b_.store(field, c, at, values_->value(type_of(field, c)));
  }

  void atomic(State& s) {
    uint32_t field = random_.pick(fields_), c = component(field);
    Role r = role(s, field);
    Type type = type_of(field, c);
    if (s.function || r.kind == Role::read || type == Type::b1 || type == Type::f16)
      return values_->operation();
    const bool own = r.kind == Role::own;
    std::vector<Value*> at = r.everywhere.empty() ? index(s, field, r) : r.everywhere;
    AtomicOp op = own ? update_of(random_, type) : r.ops[c];
    if (own && random_.chance(30))
      op = random_.pick<AtomicOp>({AtomicOp::exchange, AtomicOp::load});
    if (own && is_int(type) && random_.chance(15)) op = AtomicOp::cas;
    std::vector<Value*> in;
    size_t count = op == AtomicOp::cas ? 2 : op == AtomicOp::load ? 0 : 1;
    for (size_t k = 0; k < count; k++) in.push_back(values_->value(type));
    Inst* inst = b_.atomic(op, field, c, type, at, in);
    if (own) values_->add(inst->result());
  }

  /// A sum of small integers: exact in any order.
  void count() {
    const Type type = type_of(counts_, 0);
    Value* at[] = {values_->index(b_.extent(counts_, 0, Type::i32))};
    Value* v = b_.binary(Op::bit_and, values_->value(Type::i32), b_.integer(Type::i32, 7));
    Value* amount[] = {b_.convert(v, type)};
    b_.atomic(AtomicOp::add, counts_, 0, type, at, amount);
  }

  // ---- variables

  void slot(bool shared) {
    uint64_t count = random_.chance(75) ? 1 : 2 + random_.below(4);
    Type type = values_->type();
    slots_.push_back({b_.slot(type, count), type, count, shared, false, AtomicOp::add});
    if (random_.chance(60) && count == 1) b_.put(slots_.back().value, values_->value(type));
  }

  Value* slot_index(const Slot& t) {
    const std::vector<Type> types = {Type::i32, Type::i32, Type::i64, Type::u32};
    return values_->index(b_.integer(random_.pick(types), int64_t(t.count)));
  }

  void get(State& s) {
    if (slots_.empty()) return;
    Slot t = random_.pick(slots_);
    if (t.reducing && s.parallel) return;
    values_->add(t.count == 1 ? b_.get(t.value) : b_.get(t.value, slot_index(t)));
  }

  void put(State& s) {
    if (slots_.empty()) return;
    Slot t = random_.pick(slots_);
    if (t.shared && s.parallel) return;
    Value* v = values_->value(t.type);
    if (t.count == 1)
      b_.put(t.value, v);
    else
      b_.put(t.value, slot_index(t), v);
  }

  // ---- control

  void branch(State& s, bool items) {
    std::vector<Type> types;
    if (random_.chance(40))
      for (uint64_t k = 1 + random_.below(2); k > 0; k--) types.push_back(values_->type());
    Inst* inst = b_.if_(values_->condition(), types);
    for (Region* r : inst->regions)
      inside(r, types.empty() ? s : s.closed(), [&](State& in) {
        content(in, items, random_.below(4));
        if (types.empty()) return end_region(in);
        b_.yield(some(types));
      });
    for (Value& v : inst->results) values_->add(&v);
  }

  std::vector<Value*> some(const std::vector<Type>& types) {
    std::vector<Value*> values;
    for (Type t : types) values.push_back(values_->value(t));
    return values;
  }

  /// a && b, a || b: the right operand runs under the left one.
  void guard(State& s) {
    bool both = random_.chance(50);
    Value* left = values_->condition();
    const Type type = Type::b1;
    Inst* inst = b_.if_(left, {&type, 1});
    inside(inst->region(both ? 0 : 1), s.closed(), [&](State& in) {
      statements(in, random_.below(3));
      b_.yield({values_->condition()});
    });
    inside(inst->region(both ? 1 : 0), s, [&](State&) { b_.yield({b_.boolean(!both)}); });
    values_->add(inst->result());
  }

  std::vector<Type> carried() {
    std::vector<Type> types;
    if (random_.chance(40))
      for (uint64_t k = 1 + random_.below(2); k > 0; k--) types.push_back(values_->type());
    return types;
  }

  State in_loop(const State& s, bool carries, uint64_t trips) {
    State in = carries ? s.closed() : s;
    in.trips *= trips;
    if (carries) return in;
    in.breakable++;
    in.continuable++;
    return in;
  }

  void loop(State& s, bool items) {
    const std::vector<Type> ints = {Type::i32, Type::i32, Type::i64, Type::u32,
                                    Type::u64, Type::i8,  Type::u16};
    Type type = random_.pick(ints);
    Value* lo = b_.integer(type, int64_t(random_.below(3)));
    Value* hi = b_.integer(type, int64_t(random_.below(5)));
    Value* step = b_.integer(type, random_.chance(70) ? 1 : 2 + int64_t(random_.below(2)));
    if (random_.chance(30)) hi = b_.binary(Op::bit_and, values_->value(type), b_.integer(type, 3));
    if (random_.chance(15)) {  // the index would wrap
      Bits most = truncate(~Bits(0), type) >> (is_signed(type) ? 1 : 0);
      lo = b_.constant(type, most - 4);
      hi = b_.constant(type, most - random_.below(2));
    }
    std::vector<Type> types = carried();
    std::vector<Value*> init = some(types);
    Inst* inst = b_.loop(lo, hi, step, init);
    inside(inst->region(0), in_loop(s, !types.empty(), 4), [&](State& in) {
      for (Value& v : inst->region(0)->args) values_->add(&v);
      content(in, items, 1 + random_.below(4));
      if (types.empty()) return end_region(in);
      b_.yield(some(types));
    });
    for (Value& v : inst->results) values_->add(&v);
  }

  /// At most four rounds: a counter that nothing else changes.
  void while_(State& s, bool items) {
    Value* counter = b_.slot(Type::i32);
    std::vector<Type> types = carried();
    std::vector<Value*> init = some(types);
    // An element of the iteration's own that the condition reads and rounds write.
    const uint32_t field = random_.pick(fields_), c = component(field);
    const Type type = type_of(field, c);
    const bool asks =
        s.parallel && !s.function && role(s, field).kind == Role::own && random_.chance(50);
    const std::vector<Value*> own = asks ? own_index() : std::vector<Value*>();
    Inst* inst = b_.while_(init);
    inside(inst->region(0), s.closed(), [&](State& in) {
      for (Value& v : inst->region(0)->args) values_->add(&v);
      statements(in, random_.below(3));
      Value* go = b_.lt(b_.get(counter), b_.integer(Type::i32, int64_t(1 + random_.below(4))));
      if (asks) {
        Value* read = b_.load(field, c, type, own);
        Value* holds = is_number(type) ? b_.lt(values_->value(type), read)
                                       : b_.binary(Op::ne, values_->value(type), read);
        go = b_.binary(Op::bit_and, go, holds);
      } else if (random_.chance(50)) {
        go = b_.binary(Op::bit_and, go, values_->condition());
      }
      std::vector<Value*> out = some(types);
      out.insert(out.begin(), go);
      b_.yield(out);
    });
    inside(inst->region(1), in_loop(s, !types.empty(), 4), [&](State& in) {
      for (Value& v : inst->region(1)->args) values_->add(&v);
      b_.put(counter, b_.add(b_.get(counter), b_.integer(Type::i32, 1)));
      content(in, items, 1 + random_.below(4));
      if (asks) {
        Value* read = b_.load(field, c, type, own);
        b_.store(field, c, own,
                 is_float(type) ? b_.mul(read, b_.real(type, 0.5)) : values_->value(type));
      }
      if (types.empty()) return end_region(in);
      b_.yield(some(types));
    });
    for (Value& v : inst->results) values_->add(&v);
  }

  Random random_;
  std::unique_ptr<Kernel> kernel_;
  Builder b_;
  std::unique_ptr<Values> values_;
  Program program_;
  std::vector<uint32_t> fields_;  ///< their bindings
  uint32_t frozen_ = ~0u;         ///< memory that nobody writes
  uint32_t counts_ = no_site;     ///< a float field for sums, if there is one
  bool large_ = false;
  int budget_ = 0;
  uint32_t loops_ = 0;  ///< parallel ones: each has its random numbers
  std::vector<Slot> slots_;
  std::vector<Role> roles_;  ///< of memory, in the current parallel loop
  std::vector<Value*> own_index_;
  const std::vector<Type>* results_of_function_ = nullptr;
};

}  // namespace

Program generate(uint64_t seed) { return Generator(seed).make(); }

Program copy(const Program& program) {
  return {program.seed, clone(*program.kernel), program.inputs, program.on_devices};
}

}  // namespace quern::fuzz

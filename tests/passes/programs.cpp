#include "tests/passes/programs.h"

#include <random>

#include "ir/analysis/facts.h"
#include "quern/ir/builder.h"

namespace quern::test {

using namespace ir;

namespace {

class Generator {
 public:
  explicit Generator(uint64_t seed)
      : kernel_(std::make_unique<Kernel>()), b_(*kernel_), rng_(seed) {}

  std::unique_ptr<Kernel> make() {
    for (int k = 0; k < 2; k++) kernel_->bindings.push_back(binding(Binding::field, 1, Type::i32));
    kernel_->bindings.push_back(binding(Binding::scalar, 0, Type::i32));
    kernel_->bindings.push_back(binding(Binding::scalar, 0, Type::b1));
    kernel_->results = {Type::i32, Type::i32};
    kernel_->sites.push_back({Site::check, {}, "a check", {Type::i32}});
    kernel_->sites.push_back({Site::print, {}, "{} {}", {Type::b1, Type::i32}});
    make_function();
    kernel_->body = b_.make_region();
    b_.at_end(kernel_->body);
    State top;
    top.at_kernel_level = true;
    top.ints = {b_.param(2, Type::i32), number(3)};
    top.bools = {b_.param(3, Type::b1)};
    for (int k = 0; k < 3; k++) top.slots.push_back(b_.slot(Type::i32));
    for (int k = 0; k < 2; k++) top.reductions.push_back(b_.slot(Type::i32));
    statements(top, 10);
    b_.make(Op::return_, {}, {b_.get(top.reductions[0]), b_.get(pick(top.slots))});
    return std::move(kernel_);
  }

 private:
  /// What can be named and left where the generator stands.
  struct State {
    std::vector<Value*> ints, bools, slots, reductions;
    bool at_kernel_level = false, in_function = false;
    int depth = 0;
    size_t breakable = 0;    ///< loops that break may leave
    size_t continuable = 0;  ///< those and the parallel loop
  };

  static Binding binding(Binding::Kind kind, uint8_t rank, Type type) {
    Binding made;
    made.kind = kind;
    made.rank = rank;
    made.components.push_back({type});
    return made;
  }

  uint64_t below(uint64_t n) { return rng_() % n; }
  Value* pick(const std::vector<Value*>& from) { return from[below(from.size())]; }
  Value* number(int64_t v) { return b_.integer(Type::i32, v); }

  void make_function() {
    Function f;
    f.name = "f";
    f.results = {Type::i32};
    const Type args[] = {Type::i32, Type::i32};
    f.body = b_.make_region(args);
    b_.at_end(f.body);
    State state;
    state.in_function = true;
    state.ints = {f.body->arg(0), f.body->arg(1), number(1)};
    state.bools = {b_.lt(f.body->arg(0), f.body->arg(1))};
    state.slots = {b_.slot(Type::i32)};
    statements(state, 4);
    b_.make(Op::return_, {}, {b_.get(state.slots[0])});
    bool of_arguments = true;
    walk(f.body, [&](const Inst* inst) { of_arguments &= is_of_arguments(inst); });
    if (of_arguments) f.derivative = "rule";
    kernel_->callees.push_back(f);
  }

  void statements(State& state, int count) {
    for (int k = 0; k < count; k++) statement(state);
  }

  /// A region of its own names: nothing made in it is seen outside.
  template <class F>
  void inside(Region* region, State state, F&& fill) {
    Region* outer = b_.region();
    b_.at_end(region);
    state.depth++;
    fill(state);
    b_.at_end(outer);
  }

  void end_region(const State& state) {
    if (below(3) == 0) {
      if (state.breakable && below(2)) {
        b_.make(Op::break_, {}, {}, 1 + below(state.breakable));
        return;
      }
      if (state.continuable && below(2)) {
        b_.make(Op::continue_, {}, {}, below(state.continuable));
        return;
      }
      if (state.in_function && below(2)) {
        b_.make(Op::return_, {}, {pick(state.ints)});
        return;
      }
      if (state.at_kernel_level && below(2)) {
        b_.make(Op::return_, {}, {pick(state.ints), pick(state.ints)});
        return;
      }
    }
    b_.yield();
  }

  void branch(State& state) {
    Inst* inst = b_.if_(pick(state.bools));
    for (Region* r : inst->regions) {
      inside(r, state, [&](State& s) {
        statements(s, int(below(4)));
        end_region(s);
      });
    }
  }

  void guard(State& state) {
    const Type type = Type::b1;
    Inst* inst = b_.if_(pick(state.bools), {&type, 1});
    for (Region* r : inst->regions) {
      inside(r, state, [&](State& s) {
        for (uint64_t k = below(3); k > 0; k--) expression(s);
        condition(s);
        b_.yield({s.bools.back()});
      });
    }
    state.bools.push_back(inst->result());
  }

  void loop(State& state) {
    const int64_t steps[] = {1, 1, 2, 3};
    Inst* inst =
        b_.loop(number(int64_t(below(2))), number(int64_t(below(5))), number(steps[below(4)]));
    inside(inst->region(0), state, [&](State& s) {
      s.breakable++;
      s.continuable++;
      s.ints.push_back(inst->region(0)->arg(0));
      statements(s, 1 + int(below(4)));
      end_region(s);
    });
  }

  void while_loop(State& state) {
    Value* counter = b_.slot(Type::i32);
    Inst* inst = b_.while_({});
    inside(inst->region(0), state, [&](State& s) {
      for (uint64_t k = below(2); k > 0; k--) expression(s);
      Value* go = b_.lt(b_.get(counter), number(4));
      b_.yield({below(2) ? go : b_.binary(Op::bit_and, go, pick(s.bools))});
    });
    inside(inst->region(1), state, [&](State& s) {
      s.breakable++;
      s.continuable++;
      b_.put(counter, b_.add(b_.get(counter), number(1)));
      statements(s, 1 + int(below(4)));
      end_region(s);
    });
  }

  void parallel(State& state) {
    Inst* inst = b_.make(Op::parallel, {}, {number(int64_t(below(2))), number(int64_t(below(6)))});
    inst->kind = 1;
    const Type type = Type::i32;
    b_.set_regions(inst, {b_.make_region({&type, 1})});
    inside(inst->region(0), state, [&](State& s) {
      s.at_kernel_level = false;
      s.breakable = 0;
      s.continuable = 1;
      for (Value* slot : s.slots) s.ints.push_back(b_.get(slot));
      s.slots = {b_.slot(Type::i32)};
      s.ints.push_back(inst->region(0)->arg(0));
      statements(s, 2 + int(below(4)));
      b_.make(Op::reduce, {}, {state.reductions[below(2)], pick(s.ints)})->elem = Type::i32;
      if (below(4))
        b_.yield();
      else
        b_.make(Op::continue_, {}, {}, 0);
    });
  }

  void expression(State& state) {
    const Op binary[] = {Op::add, Op::sub,    Op::mul,     Op::div,     Op::rem, Op::min,
                         Op::max, Op::bit_or, Op::bit_and, Op::bit_xor, Op::shl, Op::shr};
    const Type types[] = {Type::i8, Type::i16, Type::i64, Type::u32,
                          Type::u8, Type::f32, Type::f64};
    Value *x = pick(state.ints), *y = below(3) ? pick(state.ints) : number(int64_t(below(6)) - 2);
    Value* made = nullptr;
    switch (below(6)) {
      case 0: made = b_.convert(b_.convert(x, types[below(7)]), Type::i32); break;
      case 1: {
        Value *u = b_.convert(x, Type::u32), *n = b_.integer(Type::u32, 1 << below(5));
        made = b_.convert(b_.binary(below(2) ? Op::div : Op::rem, u, n), Type::i32);
        break;
      }
      case 2: made = b_.select(pick(state.bools), x, y); break;
      case 3: {
        const Op ops[] = {Op::add, Op::sub, Op::mul, Op::div, Op::neg, Op::abs};
        const double numbers[] = {0.0, -0.0, 1.0, -1.0, 4.0, 3.0};
        Value* f = b_.convert(x, Type::f32);
        Op op = ops[below(6)];
        made = op == Op::neg || op == Op::abs
                   ? b_.unary(op, f)
                   : b_.binary(op, f, b_.real(Type::f32, numbers[below(6)]));
        made = b_.convert(made, Type::i32);
        break;
      }
      default: made = b_.binary(binary[below(12)], x, y);
    }
    state.ints.push_back(made);
  }

  void condition(State& state) {
    const Op compare[] = {Op::eq, Op::ne, Op::lt, Op::le, Op::gt, Op::ge};
    const Op logic[] = {Op::bit_and, Op::bit_or, Op::bit_xor};
    Value* made = nullptr;
    switch (below(4)) {
      case 0: made = b_.unary(Op::bit_not, pick(state.bools)); break;
      case 1: made = b_.binary(logic[below(3)], pick(state.bools), pick(state.bools)); break;
      default: {
        Value* y = below(2) ? pick(state.ints) : number(int64_t(below(4)) - 1);
        made = b_.binary(compare[below(6)], pick(state.ints), y);
      }
    }
    state.bools.push_back(made);
  }

  Value* index(State& state) {
    Value* i = below(2) ? pick(state.ints) : b_.add(state.ints.back(), number(1));
    return b_.binary(Op::bit_and, i, number(15));
  }

  void memory(State& state) {
    uint32_t field = uint32_t(below(2));
    Value* at = index(state);
    switch (below(4)) {
      case 0: b_.store(field, 0, {&at, 1}, pick(state.ints)); break;
      case 1: {
        Value* v = pick(state.ints);
        Inst* old = b_.atomic(AtomicOp::add, field, 0, Type::i32, {&at, 1}, {&v, 1});
        state.ints.push_back(old->result());
        break;
      }
      default:
        state.ints.push_back(b_.load(field, 0, Type::i32, {&at, 1}));
        if (below(2)) b_.store(field, 0, {&at, 1}, pick(state.ints));
    }
  }

  void statement(State& state) {
    bool deep = state.depth >= 5;
    switch (below(16)) {
      case 0:
      case 1: expression(state); break;
      case 2: condition(state); break;
      case 3: state.ints.push_back(b_.get(pick(state.slots))); break;
      case 4:
      case 5: b_.put(pick(state.slots), pick(state.ints)); break;
      case 6:
      case 7: state.in_function ? expression(state) : memory(state); break;
      case 8: {
        uint32_t site = uint32_t(below(2));
        Inst* inst =
            b_.make(site ? Op::print : Op::check, {}, {pick(state.bools), pick(state.ints)});
        inst->site = site;
        break;
      }
      case 9:
        if (!state.in_function) {
          const Op op = kernel_->callees[0].derivative.empty() ? Op::call : Op::apply;
          state.ints.push_back(
              b_.make(op, {Type::i32}, {pick(state.ints), pick(state.ints)}, 0)->result());
        }
        break;
      case 10:
      case 11:
        if (!deep) branch(state);
        break;
      case 12:
        if (!deep) guard(state);
        break;
      case 13:
        if (!deep) loop(state);
        break;
      case 14:
        if (!deep) while_loop(state);
        break;
      default:
        if (state.at_kernel_level && !deep) parallel(state);
    }
  }

  std::unique_ptr<Kernel> kernel_;
  Builder b_;
  std::mt19937_64 rng_;
};

}  // namespace

std::unique_ptr<Kernel> random_program(uint64_t seed) { return Generator(seed).make(); }

void without_checks(Kernel& kernel) {
  kernel.sites[0].kind = Site::print;
  kernel.sites[0].values = {Type::b1, Type::i32};
  walk(kernel, [](Inst* inst) {
    if (inst->is(Op::check)) inst->op = Op::print;
  });
}

std::vector<std::vector<Bits>> random_inputs(uint64_t seed) {
  std::mt19937_64 rng(seed);
  std::vector<std::vector<Bits>> fields(4);
  for (int f = 0; f < 2; f++)
    for (int k = 0; k < 16; k++) fields[f].push_back(truncate(rng() % 7 - 3, Type::i32));
  fields[2] = {truncate(rng() % 9 - 4, Type::i32)};
  fields[3] = {rng() % 2};
  return fields;
}

}  // namespace quern::test

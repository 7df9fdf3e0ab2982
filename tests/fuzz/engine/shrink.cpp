#include "tests/fuzz/engine/shrink.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "quern/ir/builder.h"
#include "quern/ir/text.h"

namespace quern::fuzz {

using namespace ir;

namespace {

using Clock = std::chrono::steady_clock;

std::vector<Inst*> instructions(const Kernel& kernel) {
  std::vector<Inst*> all;
  for (Region* root : roots(kernel)) walk(root, [&](Inst* inst) { all.push_back(inst); });
  return all;
}

/// Replaces the uses of an instruction's results by zeros; false where it cannot.
bool unuse(Kernel& kernel, Inst* inst) {
  Builder b(kernel);
  b.before(inst);
  for (Value& v : inst->results) {
    if (!v.used()) continue;
    if (!is_scalar(v.type)) return false;
    v.replace_with(b.constant(v.type, 0));
  }
  return true;
}

bool erase(Kernel& kernel, Inst* inst) {
  if (has(inst->op, flag::ends) || !unuse(kernel, inst)) return false;
  inst->erase();
  return true;
}

/// The program under reduction. Every attempt works on a copy, which stays where it still fails.
class Shrinker {
 public:
  Shrinker(const Program& program, const Failure& failure, const Checks& checks, double seconds)
      : best_(copy(program)),
        failure_(failure),
        checks_(checks),
        end_(Clock::now() + std::chrono::milliseconds(int64_t(seconds * 1000))) {}

  Program run() {
    only_what_fails();
    limit_steps();
    for (size_t before = ~size_t(0); size() < before && in_time();) {
      before = size();
      leave_out();
      unwrap();
      forward_operands();
      smaller_constants();
      drop_parts();
      smaller_inputs();
      limit_steps();
    }
    return std::move(best_);
  }

 private:
  bool in_time() const { return Clock::now() < end_; }
  size_t size() const { return instructions(*best_.kernel).size(); }

  /// A failure of a device needs no passes and no other devices, and the other way round.
  void only_what_fails() {
    for (const auto& device : checks_.devices)
      if (device->name() == failure_.stage || "after " + device->name() == failure_.stage) {
        checks_.devices = {std::shared_ptr<runtime::Device>(device)};
        checks_.passes = false;
        return;
      }
    checks_.devices.clear();
  }

  /// What is left out may be what ends a loop.
  void limit_steps() {
    interpreter::Options options;
    options.max_steps = checks_.max_steps;
    checks_.max_steps = 2 * interpret(best_, *best_.kernel, options).steps + 1000;
  }

  /// Applies `change` to a copy; true, and kept, where the copy still fails at the same stage.
  template <class F>
  bool attempt(F&& change) {
    if (!in_time()) return false;
    Program smaller = copy(best_);
    if (!change(smaller)) return false;
    if (!sound(smaller, checks_)) return false;
    std::optional<Failure> failure = check(smaller, checks_);
    if (!failure || failure->stage != failure_.stage) return false;
    best_ = std::move(smaller);
    return true;
  }
  template <class F>
  bool attempt_at(size_t k, F&& change) {
    return attempt([&](Program& p) { return change(*p.kernel, instructions(*p.kernel)[k]); });
  }

  /// Runs of instructions, from long to short, last ones first.
  void leave_out() {
    for (size_t length = std::max<size_t>(size() / 2, 1); length > 0; length /= 2)
      for (size_t from = size(); from-- > 0 && in_time();) {
        if (from >= size()) continue;
        attempt([&](Program& p) {
          std::vector<Inst*> all = instructions(*p.kernel);
          size_t erased = 0;
          for (size_t k = std::min(from + 1, all.size()); k-- > 0 && from - k < length;)
            erased += all[k]->parent && erase(*p.kernel, all[k]);
          return erased > 0;
        });
        if (length > 1) from -= std::min(from, length / 2);
      }
  }

  /// An if becomes one of its sides, a loop its body run once.
  void unwrap() {
    for (size_t k = size(); k-- > 0 && in_time();)
      for (size_t side = 0; side < 2 && k < size(); side++)
        attempt_at(k, [&](Kernel& kernel, Inst* inst) {
          bool is_if = inst->is(Op::if_);
          if (!is_if && !(inst->is(Op::loop) && side == 0)) return false;
          Region* from = inst->region(side);
          if (!from->last->is(Op::yield)) return false;
          Builder b(kernel);
          b.before(inst);
          ValueMap map;
          for (size_t a = 0; a < from->args.size(); a++)
            map[from->arg(a)] = inst->operand(a == 0 ? 0 : a + 2);
          std::vector<Value*> values = inline_region(b, from, map);
          for (size_t r = 0; r < inst->results.size(); r++)
            inst->result(r)->replace_with(values[r]);
          inst->erase();
          return true;
        });
  }

  /// An operation's result becomes one of its operands.
  void forward_operands() {
    for (size_t k = size(); k-- > 0 && in_time();)
      for (size_t from = 0; from < 3 && k < size(); from++)
        if (attempt_at(k, [&](Kernel&, Inst* inst) {
              if (from >= inst->operand_count() || inst->results.size() != 1) return false;
              if (!inst->used() || inst->operand(from)->type != inst->type()) return false;
              inst->result()->replace_with(inst->operand(from));
              if (inst->regions.empty()) inst->erase();
              return true;
            }))
          break;
  }

  void smaller_constants() {
    for (size_t k = size(); k-- > 0 && in_time();)
      for (Bits to : {Bits(0), Bits(1)})
        attempt_at(k, [&](Kernel&, Inst* inst) {
          Bits wanted = is_float(inst->type()) ? bits_of_real(double(to), inst->type()) : to;
          bool simpler = inst->is(Op::constant) && inst->imm > wanted && (to == 0 || inst->imm > 1);
          if (simpler) inst->imm = wanted;
          return simpler;
        });
  }

  /// Results, functions and modes that nobody needs.
  void drop_parts() {
    attempt([](Program& p) {
      if (p.kernel->results.empty()) return false;
      for (Inst* inst : instructions(*p.kernel))
        if (inst->is(Op::return_) && !in_function(*p.kernel, inst))
          Builder(*p.kernel).set_operands(inst, {});
      p.kernel->results.clear();
      return true;
    });
    attempt([](Program& p) {
      bool had = !p.kernel->callees.empty();
      p.kernel->callees.clear();
      for (Inst* inst : instructions(*p.kernel)) had &= info(inst->op).names != NameUse::callee;
      return had;
    });
    attempt([](Program& p) { return std::exchange(p.kernel->modes.checked, false); });
  }

  static bool in_function(const Kernel& kernel, const Inst* inst) {
    for (const Function& f : kernel.callees)
      if (encloses(f.body, inst->parent)) return true;
    return false;
  }

  void smaller_inputs() {
    for (size_t k = 0; k < best_.inputs.size(); k++) {
      attempt([&](Program& p) {
        Bits old = std::exchange(p.inputs[k].scalar, 0);
        return old != 0;
      });
      attempt([&](Program& p) {
        bool changed = false;
        for (std::vector<Bits>& elements : p.inputs[k].components)
          for (Bits& v : elements) changed |= std::exchange(v, 0) != 0;
        return changed;
      });
    }
    for (int64_t length : {1, 2, 4, 8, 32})
      attempt([&](Program& p) {
        bool changed = false;
        for (Input& in : p.inputs) {
          int64_t count = 1;
          for (int64_t& n : in.shape) {
            changed |= n > length;
            n = std::min(n, length);
            count *= n;
          }
          for (std::vector<Bits>& elements : in.components) elements.resize(size_t(count));
        }
        return changed;
      });
  }

  Program best_;
  Failure failure_;
  Checks checks_;
  Clock::time_point end_;
};

}  // namespace

Program shrink(const Program& program, const Failure& failure, const Checks& checks,
               double seconds) {
  return Shrinker(program, failure, checks, seconds).run();
}

std::string text(const Program& program, const Failure& failure) {
  std::string out = "; seed " + std::to_string(program.seed) + "\n; " + failure.stage + ": ";
  for (char c : failure.what) out += c == '\n' ? std::string("\n;   ") : std::string(1, c);
  out += "\n";
  for (size_t k = 0; k < program.inputs.size(); k++) {
    const Input& in = program.inputs[k];
    out += "; input " + std::to_string(k) + ":";
    if (in.shape.empty()) out += " " + std::to_string(in.scalar);
    for (int64_t n : in.shape) out += " [" + std::to_string(n) + "]";
    for (const std::vector<Bits>& elements : in.components) {
      for (Bits v : elements) out += " " + std::to_string(v);
      out += ";";
    }
    if (in.memory != k) out += " (memory of " + std::to_string(in.memory) + ")";
    out += "\n";
  }
  return out + print(*program.kernel);
}

}  // namespace quern::fuzz

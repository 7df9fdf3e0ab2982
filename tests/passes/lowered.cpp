#include "tests/passes/lowered.h"

#include <cstring>
#include <unordered_map>

#include "quern/ir/abi.h"

namespace quern::test {

using namespace ir;

namespace {

struct OutOfSteps {};

class Machine {
 public:
  Machine(const Kernel& kernel, size_t steps, Cut cut)
      : kernel_(kernel), layout_(abi::layout(kernel)), steps_(steps), cut_(cut) {
    args_.resize(layout_.bytes / 8);
    frame_.resize(kernel.frame.size() + 1);
    ring_.next = 0;
    set_arg(abi::frame_address, address(frame_.data()));
    set_arg(abi::error_address, address(&error_));
    set_arg(abi::print_address, address(&ring_));
    set_arg(abi::random_seed, 7);
    set_arg(abi::launch_number, 3);
    set_arg(abi::random_launch, 2);
  }

  Outcome run(const std::vector<std::vector<Bits>>& fields, Report* report) {
    Outcome out;
    for (size_t k = 0; k < fields.size(); k++) bind(k, fields[k]);
    try {
      run(kernel_.schedule);
    } catch (OutOfSteps) {
      out.ended = false;
    }
    for (size_t k = 0; k < kernel_.results.size(); k++) out.results.push_back(frame_[k]);
    for (size_t k = 0; k < fields.size(); k++) out.fields.push_back(contents(k, fields[k]));
    for (uint32_t k = 0; k < ring_.next && k < abi::print_capacity; k++)
      for (uint32_t v = 0; v < ring_.entries[k].count; v++)
        out.effects.push_back(ring_.entries[k].values[v]);
    if (report) {
      *report = {error_.state != 0, error_.site, error_.iteration, {}};
      report->values.assign(error_.values, error_.values + error_.count);
    }
    return out;
  }

 private:
  template <class T>
  static uint64_t address(T* p) {
    return reinterpret_cast<uint64_t>(p);
  }
  void set_arg(uint32_t offset, uint64_t v) { args_.at(offset / 8) = v; }

  // ---- fields

  void bind(size_t k, const std::vector<Bits>& values) {
    const Binding& b = kernel_.bindings[k];
    const abi::Place& place = layout_.places[k];
    if (b.kind == Binding::scalar) {
      set_arg(place.value(), values[0]);
      return;
    }
    unsigned width = byte_size(b.components[0].storage);
    auto& memory = memory_[k];
    memory.resize(values.size() * width / 8 + 1);
    for (size_t i = 0; i < values.size(); i++)
      std::memcpy(reinterpret_cast<char*>(memory.data()) + i * width, &values[i], width);
    set_arg(place.base(0), address(memory.data()));
    set_arg(place.stride(0, 0), width);
    set_arg(place.extent(0), values.size());
  }

  std::vector<Bits> contents(size_t k, const std::vector<Bits>& before) {
    const Binding& b = kernel_.bindings[k];
    if (b.kind == Binding::scalar) return before;
    unsigned width = byte_size(b.components[0].storage);
    std::vector<Bits> out(before.size());
    for (size_t i = 0; i < out.size(); i++)
      std::memcpy(&out[i], reinterpret_cast<char*>(memory_[k].data()) + i * width, width);
    return out;
  }

  // ---- schedule and tasks

  bool condition(uint32_t cell) const { return (frame_[cell] & 0xff) != 0; }

  void run(const std::vector<Step>& steps) {
    for (const Step& s : steps) {
      if (s.kind == Step::launch) launch(kernel_.tasks[s.task]);
      if (s.kind == Step::if_ && condition(s.cell)) run(s.body);
      if (s.kind == Step::combining)
        for (const abi::Combination& c : abi::combinations(reduced_iterations_))
          run(kernel_.tasks[s.body[c.halves ? 1 : 0].task], c);
      if (s.kind == Step::repeat)
        for (run(s.condition); condition(s.cell); run(s.condition)) run(s.body);
    }
  }

  void launch(const Task& task) {
    if (task.kind == Task::serial) {
      builtin_ = {};
      builtin(Builtin::end) = reduced_;
      run(task.body);
      return;
    }
    run(task.domain);
    int64_t total = 1;
    std::vector<uint64_t> extents;
    for (size_t k = 0; k < yielded_.size(); k += 2) {
      Type t = task.domain->last->operand(k)->type;
      total *= std::max<int64_t>(0, to_signed(yielded_[k + 1], t) - to_signed(yielded_[k], t));
      extents.push_back(uint64_t(to_signed(yielded_[k + 1], t) - to_signed(yielded_[k], t)));
    }
    uint64_t grain = task.grain ? task.grain : cut_.grain;
    uint64_t chunks = (uint64_t(total) + grain - 1) / grain;
    reduced_ = task.lanes ? abi::total_rows(uint64_t(total)) : chunks;
    reduced_iterations_ = uint64_t(total);
    scratch_.assign(reduced_ * task.reductions.size() + 1, 0x5555555555555555);
    if (!task.reductions.empty()) set_arg(abi::scratch_address, address(scratch_.data()));
    if (task.walk == Task::chunked) {
      for (uint64_t c = 0; c < chunks; c++) {
        builtin_ = {};
        builtin(Builtin::chunk) = c;
        builtin(Builtin::begin) = c * grain;
        builtin(Builtin::end) = std::min<uint64_t>(uint64_t(total), (c + 1) * grain);
        run(task.body);
      }
    } else if (total > 0) {
      const auto [reciprocal, next] = abi::reciprocals(task.innermost, extents);
      builtin_ = {};
      builtin(Builtin::reciprocal) = reciprocal;
      builtin(Builtin::next_reciprocal) = next;
      threads(task, uint64_t(total));
    }
  }

  void run(const Task& task, const abi::Combination& c) {
    builtin_ = {};
    builtin(Builtin::first_row) = c.first_row;
    builtin(Builtin::rows) = c.rows;
    threads(task, c.threads);
  }

  void threads(const Task& task, uint64_t end) {
    builtin(Builtin::end) = end;
    const uint64_t count = task.once ? std::max(end, cut_.threads) : cut_.threads;
    builtin(Builtin::threads) = count;
    for (uint64_t t = 0; t < count; t++) {
      builtin(Builtin::thread) = t;
      run(task.body);
    }
  }

  Bits& builtin(Builtin which) { return builtin_.at(size_t(which)); }

  // ---- code

  Bits value(const Value* v) const { return values_.at(v); }
  std::vector<Bits> operands(const Inst* inst, size_t from = 0) const {
    std::vector<Bits> all;
    for (size_t k = from; k < inst->operand_count(); k++) all.push_back(value(inst->operand(k)));
    return all;
  }
  void bind(std::span<Value> to, const std::vector<Bits>& from, size_t at = 0) {
    for (size_t k = 0; k < to.size(); k++) values_[&to[k]] = from[at + k];
  }
  static bool below(Type t, Bits a, Bits b) {
    return is_signed(t) ? to_signed(a, t) < to_signed(b, t) : a < b;
  }

  void run(const Region* region) {
    for (const Inst* inst = region->first; inst; inst = inst->next) {
      if (steps_-- == 0) throw OutOfSteps{};
      if (inst->is(Op::yield))
        yielded_ = operands(inst);
      else
        step(inst);
    }
  }

  void loop(const Inst* inst) {
    Type t = inst->operand(0)->type;
    std::vector<Bits> in = operands(inst), carried(in.begin() + 3, in.end());
    for (Bits i = in[0]; below(t, i, in[1]);) {
      values_[inst->region(0)->arg(0)] = i;
      bind(inst->region(0)->args.subspan(1), carried);
      run(inst->region(0));
      carried = yielded_;
      Bits next = truncate(i + in[2], t);
      if (!below(t, i, next)) break;
      i = next;
    }
    bind(inst->results, carried);
  }

  void while_loop(const Inst* inst) {
    std::vector<Bits> carried = operands(inst);
    for (;;) {
      bind(inst->region(0)->args, carried);
      run(inst->region(0));
      carried.assign(yielded_.begin() + 1, yielded_.end());
      if (!yielded_[0]) break;
      bind(inst->region(1)->args, carried);
      run(inst->region(1));
      carried = yielded_;
    }
    bind(inst->results, carried);
  }

  Bits read(uint64_t at, Type t) const {
    Bits v = 0;
    if (at % byte_size(t)) throw InternalError("an address is not aligned");
    std::memcpy(&v, reinterpret_cast<const void*>(at), byte_size(t));
    return v;
  }
  void write(uint64_t at, Type t, Bits v) {
    if (at % byte_size(t)) throw InternalError("an address is not aligned");
    std::memcpy(reinterpret_cast<void*>(at), &v, byte_size(t));
  }

  Bits rmw(const Inst* inst) {
    uint64_t at = value(inst->operand(0));
    Bits old = read(at, inst->elem);
    if (inst->atomic() == AtomicOp::load) return old;
    if (inst->atomic() == AtomicOp::cas) {
      if (old == value(inst->operand(1))) write(at, inst->elem, value(inst->operand(2)));
    } else {
      write(at, inst->elem, combine(inst->atomic(), inst->elem, old, value(inst->operand(1))));
    }
    return old;
  }

  void step(const Inst* inst) {
    auto set = [&](Bits v) { values_[inst->result()] = v; };
    switch (inst->op) {
      case Op::constant: return set(inst->imm);
      case Op::param:
        return set(truncate(args_[layout_.places[inst->binding()].value() / 8], inst->type()));
      case Op::extent:
        return set(truncate(args_[layout_.places[inst->binding()].extent(inst->axis()) / 8],
                            inst->type()));
      case Op::load: return set(truncate(frame_.at(inst->component()), inst->elem));
      case Op::arg: return set(truncate(args_.at(inst->imm / 8), inst->type()));
      case Op::builtin: return set(builtin_.at(inst->kind));
      case Op::offset: return set(value(inst->operand(0)) + value(inst->operand(1)));
      case Op::read: return set(read(value(inst->operand(0)), inst->elem));
      case Op::write: return write(value(inst->operand(0)), inst->elem, value(inst->operand(1)));
      case Op::rmw: return set(rmw(inst));
      case Op::block_reduce: return set(value(inst->operand(0)));  // blocks of one thread
      case Op::slot: slots_[inst] = std::vector<Bits>(inst->imm); return;
      case Op::get: return set(element(inst, 1));
      case Op::put: element(inst, 2) = value(inst->operand(inst->operand_count() - 1)); return;
      case Op::if_:
        run(inst->region(value(inst->operand(0)) ? 0 : 1));
        return bind(inst->results, yielded_);
      case Op::call: {
        const Region* body = kernel_.callees.at(inst->imm).body;
        bind(body->args, operands(inst));
        run(body);
        return bind(inst->results, yielded_);
      }
      case Op::loop: return loop(inst);
      case Op::while_: return while_loop(inst);
      default: {
        Bits out = 0;
        Type operand = inst->operand(inst->operand_count() - 1)->type;
        if (!ir::evaluate(inst->op, operand, inst->type(), operands(inst), out))
          throw InternalError("'" + std::string(info(inst->op).name) + "' in a lowered kernel");
        set(out);
      }
    }
  }

  Bits& element(const Inst* inst, size_t plain) {
    bool indexed = inst->operand_count() > plain;
    return slots_.at(inst->operand(0)->inst).at(indexed ? value(inst->operand(1)) : 0);
  }

  const Kernel& kernel_;
  abi::Layout layout_;
  size_t steps_;
  Cut cut_;
  std::vector<uint64_t> args_, frame_, scratch_;
  std::unordered_map<size_t, std::vector<uint64_t>> memory_;
  abi::ErrorRecord error_;
  static abi::PrintRing ring_;
  std::array<Bits, size_t(Builtin::iteration)> builtin_{};
  // Of the task with reductions before:
  uint64_t reduced_ = 0;  ///< chunks or rows
  uint64_t reduced_iterations_ = 0;
  std::unordered_map<const Value*, Bits> values_;
  std::unordered_map<const Inst*, std::vector<Bits>> slots_;
  std::vector<Bits> yielded_;
};

abi::PrintRing Machine::ring_;

}  // namespace

Outcome run_lowered(const Kernel& kernel, const std::vector<std::vector<Bits>>& fields,
                    size_t steps, Cut cut, Report* report) {
  return Machine(kernel, steps, cut).run(fields, report);
}

}  // namespace quern::test

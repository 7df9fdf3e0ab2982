#include "ir/passes/checks/lower_checks.h"

#include <cstddef>
#include <string>
#include <unordered_map>

#include "ir/passes/checks/error_record.h"
#include "quern/ir/schedule.h"

namespace quern::ir {

namespace {

using abi::ErrorRecord;

/// What the report of a failed check consists of.
struct Failure {
  Value *record, *claim, *site, *task, *iteration, *launch;
  std::vector<Value*> values;  ///< as the host reads them
};

/// Claims the record if this is its state; whether it was.
Value* claim_from(Builder& b, const Failure& failure, uint32_t state) {
  Value* expected = b.integer(Type::u32, state);
  Value* claim = state ? b.binary(Op::bit_or, failure.claim, expected) : failure.claim;
  Value* both[2] = {expected, claim};
  Value* old = b.rmw(AtomicOp::cas, failure.record, Type::u32, both, abi::error_class)->result();
  return b.binary(Op::eq, old, expected);
}

/// Fills in the record, unless it was claimed before, and ends the region.
void report(Builder& b, const Failure& failure, bool stoppable) {
  Value* claimed = claim_from(b, failure, 0);
  if (stoppable) claimed = b.binary(Op::bit_or, claimed, claim_from(b, failure, abi::stop_bit));
  Inst* first = b.if_(claimed);
  b.yield();
  b.at_end(first->region(1)).yield();
  b.at_end(first->region(0));
  RecordWriter write(b, failure.record, abi::error_class);
  write.u32(offsetof(ErrorRecord, site), failure.site);
  write.u32(offsetof(ErrorRecord, task), failure.task);
  write.u32(offsetof(ErrorRecord, count), uint32_t(failure.values.size()));
  write.values(offsetof(ErrorRecord, values), failure.values);
  write.i64(offsetof(ErrorRecord, iteration), failure.iteration);
  write.u32(offsetof(ErrorRecord, launch), failure.launch);
  b.yield();
}

/// The functions of a kernel that report failures with so many values.
class Reports {
 public:
  Reports(Kernel& kernel, bool stoppable) : kernel_(kernel), stoppable_(stoppable) {}

  uint32_t with(size_t values) {
    auto [found, is_new] = made_.try_emplace(values, uint32_t(kernel_.callees.size()));
    if (is_new) kernel_.callees.push_back(make(values));
    return found->second;
  }

  static std::vector<Value*> arguments(const Failure& f) {
    std::vector<Value*> all = {f.record, f.claim, f.site, f.task, f.iteration, f.launch};
    all.insert(all.end(), f.values.begin(), f.values.end());
    return all;
  }

 private:
  Function make(size_t values) {
    std::vector<Type> types = {Type::address, Type::u32, Type::u32,
                               Type::u32,     Type::i64, Type::u32};
    types.resize(types.size() + values, Type::u64);
    Function f;
    f.name = "report_" + std::to_string(values);
    f.loc = kernel_.loc;
    Builder b(kernel_);
    f.body = b.make_region(std::span<const Type>(types));
    b.at_end(f.body);
    Region* body = f.body;
    Failure all{
        body->arg(0), body->arg(1), body->arg(2), body->arg(3), body->arg(4), body->arg(5), {}};
    for (size_t k = 0; k < values; k++) all.values.push_back(body->arg(6 + k));
    report(b, all, stoppable_);
    return f;
  }

  Kernel& kernel_;
  bool stoppable_;
  std::unordered_map<size_t, uint32_t> made_;
};

class Lowering {
 public:
  /// `reports` is null where they are to stand in place.
  Lowering(Kernel& kernel, uint32_t number, Reports* reports, const TargetTraits& target)
      : kernel_(kernel),
        task_(kernel.tasks[number]),
        number_(number),
        reports_(reports),
        stoppable_(target.stoppable),
        told_(target.told_of_failures),
        b_(kernel),
        record_(b_, number) {}

  void run(const std::set<uint32_t>& conditions) {
    walk(task_.body, [&](Inst* inst) {
      if (inst->is(Op::check)) {
        checks_ = true;
        check(inst);
      }
      if (inst->is(Op::while_) && (kernel_.modes.checked || stoppable_)) bound(inst);
    });
    start_test(conditions);
  }

 private:
  void check(Inst* inst) {
    b_.before(inst).at(inst->loc);
    Inst* branch = b_.if_(inst->operand(0));
    b_.at_end(branch->region(0)).yield();
    b_.at_end(branch->region(1));
    const size_t told = kernel_.sites[inst->site].values.size();
    const bool counted = inst->operand_count() > told + 1;
    Failure failure{record_.address(),
                    record_.claim(),
                    b_.integer(Type::u32, inst->site),
                    b_.integer(Type::u32, number_),
                    counted ? inst->operands.back().value : iteration(inst),
                    b_.arg(abi::launch_number, Type::u32),
                    host_bits(b_, inst->operands.subspan(1, told))};
    if (reports_) {
      b_.make(Op::call, std::span<const Type>(), Reports::arguments(failure),
              reports_->with(failure.values.size()));
      b_.yield();
    } else {
      report(b_, failure, stoppable_);
    }
    inst->erase();
  }

  /// Of what stands beside the task's loop, for a chunk: the chunk's first.
  Value* iteration(const Inst* inst) {
    const Inst* around = inst->parent->parent;
    while (around && !around->is(Op::parallel)) around = around->parent->parent;
    if (around || task_.kind != Task::range) return b_.builtin(Builtin::iteration);
    return task_.walk == Task::chunked ? b_.builtin(Builtin::begin) : b_.integer(Type::i64, 0);
  }

  void bound(Inst* loop) {
    Inst* test = loop->region(0)->terminator();
    b_.before(test).at(loop->loc);
    Value* state = record_.state();
    Value* goes_on = kernel_.modes.checked ? record_.is_clear(state) : nullptr;
    if (stoppable_) {
      Value* stops = record_.asks_to_stop(state);
      if (!goes_on) goes_on = b_.unary(Op::bit_not, stops);
      Inst* branch = b_.if_(stops);
      b_.at_end(branch->region(1)).yield();
      b_.at_end(branch->region(0));
      record_.report_stop(stop_site(kernel_, loop->loc));
      b_.yield();
      b_.before(test);
    }
    test->set_operand(0, b_.binary(Op::bit_and, test->operand(0), goes_on));
  }

  void start_test(const std::set<uint32_t>& conditions) {
    Region* all = task_.body;
    task_.body = b_.make_region();
    b_.at_end(task_.body).at(task_.loc);
    Inst* branch = b_.if_(told_ ? may_start_if_asked() : may_start());
    b_.yield();
    b_.at_end(branch->region(0));
    splice(b_, all);
    b_.yield();
    b_.at_end(branch->region(1));
    if (stoppable_) record_.report_stop(stop_site(kernel_, task_.loc));
    if (task_.kind == Task::serial) clear_conditions(branch->region(0), conditions);
    b_.at_end(branch->region(1)).yield();
  }

  Value* may_start() {
    Value* now = record_.state();
    Value* clear = record_.is_clear(now);
    Value* own = own_claim();
    return own ? b_.binary(Op::bit_or, clear, b_.binary(Op::eq, now, own)) : clear;
  }

  /// What the record holds where a check of the task failed that this one goes on with: itself, or the
  /// one whose copies it merges. Null: there is none.
  Value* own_claim() {
    if (task_.merges != no_binding)
      return ErrorRecordCode(b_, kernel_.bindings[task_.merges].size.task).claim();
    return task_.kind == Task::serial || !checks_ ? nullptr : record_.claim();
  }

  Value* may_start_if_asked() {
    const Type truth[] = {Type::b1};
    Value* asks = b_.binary(Op::ne, b_.builtin(Builtin::asks), b_.integer(Type::i64, 0));
    Inst* question = b_.if_(asks, truth);
    b_.at_end(question->region(0));
    b_.yield({may_start()});
    b_.at_end(question->region(1));
    b_.yield({b_.boolean(true)});
    b_.at_end(task_.body);
    return question->result();
  }

  void clear_conditions(Region* body, const std::set<uint32_t>& conditions) {
    uint32_t frame = kernel_.frame_binding();
    walk(body, [&](Inst* inst) {
      if (inst->is(Op::store) && inst->binding() == frame && conditions.contains(inst->component()))
        b_.store(frame, inst->component(), {}, b_.boolean(false));
    });
  }

  Kernel& kernel_;
  Task& task_;
  uint32_t number_;
  Reports* reports_;
  bool stoppable_, told_;
  bool checks_ = false;
  Builder b_;
  ErrorRecordCode record_;
};

}  // namespace

void lower_checks(Kernel& kernel, const TargetTraits& target) {
  Reports reports(kernel, target.stoppable);
  const std::set<uint32_t> conditions = condition_cells(kernel);
  for (uint32_t k = 0; k < kernel.tasks.size(); k++)
    Lowering(kernel, k, target.calls ? &reports : nullptr, target).run(conditions);
}

}  // namespace quern::ir

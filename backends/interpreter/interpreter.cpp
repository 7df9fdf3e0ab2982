#include "backends/interpreter/interpreter.h"

#include <algorithm>

#include "backends/interpreter/machine.h"
#include "backends/interpreter/memory.h"
#include "backends/interpreter/random.h"

namespace quern::interpreter {

using namespace ir;

namespace {

/// Runs the schedule of a kernel that has one.
class Schedule {
 public:
  Schedule(const Code& code, const Options& options, Machine& machine, std::byte* args)
      : code_(code), kernel_(code.kernel), options_(options), machine_(machine), args_(args) {}

  void run(const std::vector<ir::Step>& steps) {
    for (const ir::Step& s : steps) {
      if (s.kind == ir::Step::launch) {
        launch(s.task);
      } else if (s.kind == ir::Step::if_) {
        if (cell(s.cell)) run(s.body);
      } else if (s.kind == ir::Step::combining) {
        combine(s);
      } else {
        for (run(s.condition); cell(s.cell); run(s.condition)) run(s.body);
      }
    }
  }

 private:
  bool cell(uint32_t k) const { return read_memory(Type::b1, machine_.cell_address(k)) != 0; }

  void launch(uint32_t number) {
    const Task& task = kernel_.tasks[number];
    const Code::Task& code = code_.tasks[number];
    machine_.begin_task();
    Domain domain;
    if (code.domain) domain = machine_.domain(*code.domain);
    if (task.kind == Task::serial || task.walk == Task::unlowered) {
      Part whole;
      whole.end = reduced_;
      machine_.task(number, *code.body, domain, whole);
    } else if (task.walk == Task::chunked) {
      chunks(number, *code.body, domain);
    } else if (task.lanes && kernel_.level < Level::lowered) {
      lanes(number, *code.body, domain);
    } else {
      if (task.lanes) prepare_scratch(abi::total_rows(domain.total), task);
      elements(number, domain, domain.total, abi::reciprocals(task.innermost, domain.extent));
    }
    reduced_iterations_ = domain.total;
    machine_.finish_reductions(task, domain.total);
  }

  void elements(uint32_t number, const Domain& domain, uint64_t total,
                const std::array<uint64_t, 2>& words) {
    // Devices, too, start some threads more than there are iterations.
    const uint64_t threads = kernel_.tasks[number].once ? total + 1 : options_.threads;
    Order order(threads, options_.seed);
    for (uint64_t t = 0; t < threads; t++)
      machine_.task(number, *code_.tasks[number].body, domain,
                    {Task::element, 0, 0, total, order(t), threads, words});
  }

  /// Before lower_loops the body of a task with lanes is that of one lane.
  void lanes(uint32_t number, const Block& body, const Domain& domain) {
    prepare_scratch(abi::total_rows(domain.total), kernel_.tasks[number]);
    const uint64_t count = abi::lanes(domain.total);
    Order order(count, options_.seed);
    for (uint64_t k = 0; k < count; k++) {
      const uint64_t lane = order(k), begin = lane / abi::chunk_lanes * abi::chunk_iterations;
      const uint64_t end = std::min(begin + abi::chunk_iterations, domain.total);
      machine_.task(
          number, body, domain,
          {Task::element, lane, begin, end, begin + lane % abi::chunk_lanes, abi::chunk_lanes, {}});
    }
  }

  void combine(const ir::Step& step) {
    for (const abi::Combination& c : abi::combinations(reduced_iterations_)) {
      machine_.begin_task();
      elements(step.body[c.halves ? 1 : 0].task, {}, c.threads, {c.first_row, c.rows});
    }
  }

  void prepare_scratch(uint64_t rows, const Task& task) {
    reduced_ = rows;
    scratch_.assign(rows * task.reductions.size(), 0xa5a5a5a5a5a5a5a5);
    write_at<uint64_t>(args_, abi::scratch_address, reinterpret_cast<Bits>(scratch_.data()));
  }

  void chunks(uint32_t number, const Block& body, const Domain& domain) {
    const Task& task = kernel_.tasks[number];
    uint64_t grain = task.grain ? task.grain : options_.grain;
    uint64_t count = (domain.total + grain - 1) / grain;
    if (!task.reductions.empty()) prepare_scratch(count, task);
    Order order(count, options_.seed);
    for (uint64_t k = 0; k < count; k++) {
      uint64_t c = order(k), begin = c * grain;
      machine_.task(number, body, domain,
                    {Task::chunked, c, begin, std::min(begin + grain, domain.total), 0, 1, {}});
    }
  }

  const Code& code_;
  const Kernel& kernel_;
  const Options& options_;
  Machine& machine_;
  std::byte* args_;
  std::vector<uint64_t> scratch_;
  // Of the task with reductions launched last:
  uint64_t reduced_ = 0;  ///< chunks, or rows of partial values where it has lanes
  uint64_t reduced_iterations_ = 0;
};

}  // namespace

void run(const Kernel& kernel, std::byte* args, const Options& options, Report& report) {
  Code code(kernel);
  std::vector<Bits> frame(std::max(kernel.frame.size(), kernel.results.size()) + 1);
  auto ring = std::make_unique_for_overwrite<abi::PrintRing>();
  ring->next = 0;
  report = {};
  write_at(args, abi::frame_address, reinterpret_cast<Bits>(frame.data()));
  write_at(args, abi::scratch_address, Bits(0));
  write_at(args, abi::error_address, reinterpret_cast<Bits>(&report.error));
  write_at(args, abi::print_address, reinterpret_cast<Bits>(ring.get()));
  Machine machine(code, options, &report, args);
  try {
    if (kernel.level < Level::split)
      report.results = machine.body();
    else
      Schedule(code, options, machine, args).run(kernel.schedule);
  } catch (const OutOfSteps&) {
    report.ended = false;
  } catch (const Stopped&) {
    report.results.clear();
  }
  report.steps = options.max_steps - machine.steps_left();
  report.results.resize(kernel.results.size());
  if (kernel.level >= Level::split)
    std::copy_n(frame.begin(), kernel.results.size(), report.results.begin());
  report.printed = ring->next;
  report.prints.assign(ring->entries, ring->entries + std::min(ring->next, abi::print_capacity));
}

struct Tasks::State {
  explicit State(const Kernel& of) : kernel(clone(of)), code(*kernel) {}
  std::unique_ptr<Kernel> kernel;
  Code code;
  Options options;
  struct Serial {
    uint32_t launch = 0;
    uint32_t calls = 0;
  };
  /// Calls of `random` in serial code go on from task to task of one launch.
  std::unordered_map<const std::byte*, Serial> serial;
};

Tasks::Tasks(const Kernel& kernel) : state_(std::make_unique<State>(kernel)) {
  if (kernel.level != Level::split)
    throw InternalError("the interpreter runs tasks of level split only");
}
Tasks::~Tasks() = default;

void Tasks::run(uint32_t number, std::byte* args) {
  Machine machine(state_->code, state_->options, nullptr, args);
  State::Serial& serial = state_->serial[args];
  uint32_t launch = read_at<uint32_t>(args, abi::launch_number);
  if (serial.launch != launch) serial = {launch, 0};
  machine.serial_calls = serial.calls;
  const Code::Task& code = state_->code.tasks.at(number);
  Domain domain;
  if (code.domain) domain = machine.domain(*code.domain);
  machine.task(number, *code.body, domain, {});
  machine.finish_reductions(state_->kernel->tasks[number], domain.total);
  serial.calls = machine.serial_calls;
}

}  // namespace quern::interpreter

#include "backends/interpreter/interpreter.h"

#include <algorithm>
#include <map>

#include "backends/interpreter/machine.h"
#include "backends/interpreter/memory.h"
#include "backends/interpreter/random.h"
#include "quern/ir/schedule.h"

namespace quern::interpreter {

using namespace ir;

namespace {

/// Runs the schedule of a kernel that has one.
class Schedule {
 public:
  Schedule(const Kernel& kernel, const Options& options, Machine& machine,
           const abi::Layout& layout, std::byte* args)
      : kernel_(kernel), options_(options), machine_(machine), layout_(layout), args_(args) {}

  // ---- for run_schedule

  bool condition(uint32_t cell) const {
    return read_memory(Type::b1, machine_.launch().cell_address(cell)) != 0;
  }
  bool begin_guard(uint32_t) const { return false; }
  void end_guard() const {}

  void launch(uint32_t number) {
    const Task& task = kernel_.tasks[number];
    const Domain domain = machine_.begin_task(number);
    if (const auto rows = rows_of(task, domain.total)) reduced_ = *rows;
    make_buffers(number, domain.total);
    if (task.merges != no_binding && buffers_.at(task.merges).empty()) return;
    if (task.kind == Task::serial || task.walk == Task::unlowered) {
      Part whole;
      whole.end = reduced_;
      machine_.run(domain, whole);
    } else if (task.walk == Task::chunked) {
      chunks(task, domain);
    } else if (task.lanes && kernel_.level < Level::lowered) {
      lanes(domain);
    } else {
      // Lowered code with a bound counts its iterations itself.
      const bool counts = task.bound && kernel_.level >= Level::lowered;
      elements(task, counts ? abi::max_threads - 1 : domain.total,
               abi::reciprocals(task.innermost, domain.extent));
    }
    reduced_iterations_ = domain.total;
    machine_.finish_reductions(domain.total);
  }

  void reserve(const ir::Step&) const { throw InternalError("a tree's cells are the runtime's"); }
  void collect(uint32_t) const { throw InternalError("a tree's cells are the runtime's"); }
  void refresh(uint32_t) const { throw InternalError("a tree's lists are the runtime's"); }

  void combine(const ir::Step& step) {
    for (const abi::Combination& c : abi::combinations(reduced_iterations_)) {
      const uint32_t number = step.body[c.halves ? 1 : 0].task;
      machine_.begin_task(number);
      elements(kernel_.tasks[number], c.threads, {c.first_row, c.rows});
    }
  }

 private:
  void elements(const Task& task, uint64_t total, const std::array<uint64_t, 2>& words) {
    const uint64_t size = options_.block_threads;
    Part part;
    part.walk = Task::element;
    part.end = total;
    part.words = words;
    // Devices, too, start some threads more than there are iterations.
    machine_.run_blocks(task.once ? total / size + 1 : options_.blocks, size, part);
  }

  /// Before lower_loops the body of a task with lanes is that of one lane.
  void lanes(const Domain& domain) {
    const uint64_t count = abi::lanes(domain.total);
    Order order(count, options_.seed);
    for (uint64_t k = 0; k < count; k++) {
      Part part;
      part.walk = Task::element;
      part.chunk = order(k);
      part.begin = part.chunk / abi::chunk_lanes * abi::chunk_iterations;
      part.end = std::min(part.begin + abi::chunk_iterations, domain.total);
      part.thread = part.begin + part.chunk % abi::chunk_lanes;
      part.threads = abi::chunk_lanes;
      machine_.run(domain, part);
    }
  }

  uint64_t grain_of(const Task& task) const {
    if (task.follows.task != no_task) return grain_of(kernel_.tasks[task.follows.task]);
    return task.grain ? task.grain : options_.grain;
  }

  /// Of partial values, where the task leaves them.
  std::optional<uint64_t> rows_of(const Task& task, uint64_t iterations) const {
    if (task.reductions.empty() || task.walk == Task::unlowered) return std::nullopt;
    if (task.walk == Task::chunked) return (iterations + grain_of(task) - 1) / grain_of(task);
    if (task.lanes) return abi::total_rows(iterations);
    return std::nullopt;
  }

  /// Of the copies, each time: whether they pay is not asked here.
  uint64_t elements_of_copies(const Binding& buffer, uint64_t iterations) const {
    uint64_t count = 1;
    const abi::Place& place = layout_.places[buffer.size.number];
    for (uint32_t axis = 0; axis < place.rank; axis++)
      count *= read_memory(Type::u64, reinterpret_cast<Bits>(args_ + place.extent(axis)));
    const uint64_t grain = grain_of(kernel_.tasks[buffer.size.task]);
    return count * abi::copies(count * buffer.components.size()) *
           ((iterations + grain - 1) / grain);
  }

  uint64_t elements_of(const Binding& buffer, uint64_t iterations) const {
    const BufferSize& size = buffer.size;
    switch (size.rule) {
      case BufferSize::rows: return reduced_;
      case BufferSize::iterations: return iterations;
      case BufferSize::constant: return size.number;
      case BufferSize::cell: {
        const Type type = kernel_.frame[size.number];
        const Bits bits = read_memory(type, machine_.launch().cell_address(size.number));
        return is_signed(type) ? uint64_t(std::max<int64_t>(0, to_signed(bits, type))) : bits;
      }
      case BufferSize::copies: return elements_of_copies(buffer, iterations);
    }
    return 0;
  }

  void make_buffers(uint32_t task, uint64_t iterations) {
    for (uint32_t k = 0; k < kernel_.bindings.size(); k++) {
      const Binding& b = kernel_.bindings[k];
      if (b.kind != Binding::buffer || b.size.task != task) continue;
      const uint64_t elements = elements_of(b, iterations);
      std::vector<uint64_t>& memory = buffers_[k];
      const abi::Packed packed = abi::packed(b.components);
      memory.assign((elements * packed.bytes + 7) / 8, 0xa5a5a5a5a5a5a5a5);
      const int64_t stride = packed.bytes, extent = int64_t(elements);
      abi::Writer writer(layout_, args_);
      for (uint32_t c = 0; c < b.components.size(); c++)
        writer.component(k, c, reinterpret_cast<Bits>(memory.data()) + packed.offsets[c],
                         {&stride, 1});
      writer.axes(k, {&extent, 1});
    }
  }

  void chunks(const Task& task, const Domain& domain) {
    const uint64_t grain = grain_of(task);
    const uint64_t count = (domain.total + grain - 1) / grain;
    Order order(count, options_.seed);
    for (uint64_t k = 0; k < count; k++) {
      Part part;
      part.walk = Task::chunked;
      part.chunk = order(k);
      part.begin = part.chunk * grain;
      part.end = std::min(part.begin + grain, domain.total);
      machine_.run(domain, part);
    }
  }

  const Kernel& kernel_;
  const Options& options_;
  Machine& machine_;
  const abi::Layout& layout_;
  std::byte* args_;
  std::map<uint32_t, std::vector<uint64_t>> buffers_;  ///< by binding
  // Of the task with reductions launched last:
  uint64_t reduced_ = 0;  ///< chunks, or rows of partial values where it has lanes
  uint64_t reduced_iterations_ = 0;
};

}  // namespace

void run(const Kernel& kernel, const std::byte* passed, const Options& options, Report& report) {
  Code code(kernel);
  std::vector<Bits> frame(std::max(kernel.frame.size(), kernel.results.size()) + 1);
  auto ring = std::make_unique_for_overwrite<abi::PrintRing>();
  ring->next = 0;
  report = {};
  const abi::Layout layout = abi::layout(kernel);
  std::vector<std::byte> block(layout.bytes);
  std::copy_n(passed, abi::passed_bytes(kernel, layout), block.data());
  std::byte* args = block.data();
  abi::Head head = read_at<abi::Head>(args, 0);
  head.frame = reinterpret_cast<Bits>(frame.data());
  head.error = reinterpret_cast<Bits>(&report.error);
  head.print = reinterpret_cast<Bits>(ring.get());
  write_at(args, 0, head);
  Machine machine(code, options);
  machine.begin(args, &report);
  try {
    if (kernel.level < Level::split) {
      report.results = machine.body();
    } else {
      Schedule runner(kernel, options, machine, layout, args);
      run_schedule(kernel.schedule, runner);
    }
  } catch (const OutOfSteps&) {
    report.ended = false;
  } catch (const Stopped&) {
    report.results.clear();
  }
  report.steps = options.max_steps - machine.launch().steps_left;
  report.results.resize(kernel.results.size());
  if (kernel.level >= Level::split)
    std::copy_n(frame.begin(), kernel.results.size(), report.results.begin());
  report.printed = ring->next;
  report.prints.assign(ring->entries, ring->entries + std::min(ring->next, abi::print_capacity));
}

struct Tasks::State {
  explicit State(const Kernel& of) : kernel(clone(of)), code(*kernel), machine(code, options) {}
  std::unique_ptr<Kernel> kernel;
  Code code;
  Options options;
  Machine machine;
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
  Machine& machine = state_->machine;
  machine.begin(args, nullptr);
  State::Serial& serial = state_->serial[args];
  uint32_t launch = read_at<uint32_t>(args, abi::launch_number);
  if (serial.launch != launch) serial = {launch, 0};
  machine.launch().serial_calls = serial.calls;
  const Domain domain = machine.begin_task(number);
  machine.run(domain, {});
  machine.finish_reductions(domain.total);
  serial.calls = machine.launch().serial_calls;
}

}  // namespace quern::interpreter

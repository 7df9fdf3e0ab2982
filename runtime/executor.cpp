#include <algorithm>
#include <cstring>

#include "runtime/loaded.h"

namespace quern::runtime {

using namespace ir;

namespace {

/// Operations that are worth a chunk of its own, where the runtime chooses.
constexpr uint64_t chunk_cost = 10'000;
/// Chunks a thread gets at most: more even out uneven iterations and threads that come late or are
/// kept away, fewer cost less.
constexpr uint64_t most_chunks_per_worker = 8;
/// A chunk of this many operations ends soon enough after the host asks for it: about 0.1 s.
constexpr uint64_t longest_chunk_cost = 1u << 28;
/// Partial values of a reduction take memory: it has no more chunks than this.
constexpr uint64_t most_partials = 1u << 20;
/// From so many iterations on it is cheaper to read a guard back than to have each of them test it.
constexpr uint64_t read_guard_from = 1ull << 30;

void put(std::byte* args, uint32_t offset, uint64_t value) {
  std::memcpy(args + offset, &value, 8);
}

/// The rest of the launch is not to run: an error that a wait has taken ended it.
struct Ended {};

class Run {
 public:
  Run(Loaded& loaded, Block& block, LaunchRecord& record)
      : loaded_(loaded), block_(block), record_(record), driver_(loaded.device->driver()) {}

  /// The frame starts as zeros.
  void clear_frame() {
    const uint64_t bytes = loaded_.block_bytes - loaded_.frame_offset;
    if (bytes) commands_.push_back(Fill{loaded_.frame(block_), bytes, 0});
  }

  void steps(std::span<const Step> list, Address guard = 0) {
    for (const Step& step : list) {
      if (step.kind == Step::launch)
        launch(step.task, guard);
      else if (step.kind == Step::if_)
        branch(step);
      else if (step.kind == Step::combining)
        combine(step, guard);
      else
        for (steps(step.condition); read_cell(step.cell); steps(step.condition)) steps(step.body);
    }
  }

  /// Throws Ended.
  void flush() {
    std::optional<Ticket> ticket = loaded_.device->submit(record_, commands_);
    if (!ticket) throw Ended();
    block_.last = *ticket;
    commands_.clear();
  }

 private:
  Address cell(uint32_t k) const { return loaded_.frame(block_) + 8 * k; }

  void branch(const Step& step) {
    bool plain = true;
    for (const Step& s : step.body) plain &= s.kind == Step::launch || s.kind == Step::combining;
    if (plain)
      steps(step.body, cell(step.cell));
    else if (read_cell(step.cell))
      steps(step.body);
  }

  bool read_cell(uint32_t k) { return read_condition(cell(k)); }

  bool read_condition(Address at) {
    uint64_t value = 0;
    flush();
    driver_.download(std::as_writable_bytes(std::span(&value, 1)), at);
    return (value & 0xff) != 0;
  }

  const std::byte* frame() {
    flush();
    if (block_.host) {
      driver_.wait(block_.last);
      return block_.host + loaded_.frame_offset;
    }
    std::span<std::byte> part(block_.staging);
    part = part.subspan(loaded_.frame_offset);
    driver_.download(part, loaded_.frame(block_));
    return part.data();
  }

  struct Extent {
    uint64_t total = 1;
    uint64_t row = 1;  ///< iterations along the last axis
    std::array<uint64_t, Placement::max_axes> axes = {};
    bool fits = true;  ///< fewer than 2^63
  };
  Extent extent_of(const Image::Task& task) {
    Extent e;
    if (!task.domain) return e;
    int64_t bounds[16];
    const std::byte* cells = task.domain->reads_frame ? frame() : nullptr;
    task.domain->evaluate(block_.args(), cells, bounds);
    size_t axes = task.domain->results.size() / 2;
    for (size_t k = 0; k < axes; k++)
      if (bounds[2 * k + 1] <= bounds[2 * k]) return {0, 0, {}, true};
    for (size_t k = 0; k < axes; k++) {
      e.row = uint64_t(bounds[2 * k + 1]) - uint64_t(bounds[2 * k]);
      if (__builtin_mul_overflow(e.total, e.row, &e.total) || e.total > uint64_t(INT64_MAX))
        return {~0ull, 1, {}, false};
      e.axes[k] = e.row;
    }
    return e;
  }

  /// Iterations that end soon enough.
  uint64_t short_grain(const Image::Task& task, uint64_t total) const {
    const uint64_t grain = longest_chunk_cost / std::max<uint64_t>(1, task.operations) + 1;
    return task.reductions == 0 ? grain : std::max(grain, total / most_partials + 1);
  }

  void plan_chunks(Launch& launch, const Image::Task& task, uint64_t row) {
    uint64_t total = launch.iterations;
    if (task.walk == Task::element || task.walk == Task::unlowered) {
      launch.grain = 1;
      launch.chunks = total;
      return;
    }
    if (__builtin_mul_overflow(total, task.operations, &launch.operations))
      launch.operations = UINT64_MAX;
    uint64_t grain = task.grain;
    if (grain == 0) {
      uint64_t workers = driver_.target().workers;
      uint64_t most = workers > 1 ? workers * most_chunks_per_worker : 1;
      uint64_t wanted = std::clamp<uint64_t>(launch.operations / chunk_cost, 1, most);
      grain = (total + wanted - 1) / wanted;
      if (driver_.target().traits.stoppable) grain = std::min(grain, short_grain(task, total));
      // Whole rows, or whole cache lines of one row, keep the inner loop long and writes apart.
      uint64_t unit = grain >= row ? row : std::min<uint64_t>(grain, 64);
      grain = (grain + unit - 1) / unit * unit;
      if (uint64_t block = task.block_size) grain = (grain + block - 1) / block * block;
    }
    launch.grain = grain;
    launch.chunks = (total + grain - 1) / grain;
  }

  void launch(uint32_t index, Address guard) {
    const Image::Task& task = loaded_.image->tasks[index];
    Extent extent = extent_of(task);
    // What does not run may have any size: it wants neither memory nor an error.
    if (guard && extent.total >= read_guard_from && !read_condition(guard)) return;
    if (!extent.fits) throw Error(task.loc, "a parallel loop of more than 2^63 iterations");
    Launch command;
    command.executable = loaded_.executable.get();
    command.task = index;
    command.iterations = extent.total;
    command.args = arguments();
    command.guard = guard;
    if (extent.total == 0)
      command.chunks = 0;
    else if (task.kind == Task::serial)
      command.iterations = command.grain = reduced_;
    else
      plan_chunks(command, task, extent.row);
    if (task.walk == Task::element && abi::is_wide(extent.total))
      command.executable = &loaded_.wide();
    else if (task.walk == Task::element && extent.total > 0)
      command.words = abi::reciprocals(task.innermost, std::span(extent.axes).first(task.rank));
    if (task.reductions && task.walk == Task::chunked) {
      prepare_scratch(command.chunks, task);
    } else if (task.lanes) {
      reduced_iterations_ = extent.total;
      prepare_scratch(abi::total_rows(extent.total), task);
    }
    if (extent.total > 0) commands_.push_back(command);
  }

  /// Behind a task with lanes.
  void combine(const Step& step, Address guard) {
    for (const abi::Combination& c : abi::combinations(reduced_iterations_)) {
      Launch command;
      command.executable = loaded_.executable.get();
      command.task = step.body[c.halves ? 1 : 0].task;
      command.iterations = command.chunks = c.threads;
      command.args = arguments();
      command.guard = guard;
      command.words = {c.first_row, c.rows};
      commands_.push_back(command);
    }
  }

  Address arguments() const {
    return loaded_.image->takes_value ? reinterpret_cast<Address>(block_.args()) : block_.memory;
  }

  /// The task's partial values need room, and the task that combines them needs to know how many.
  void prepare_scratch(uint64_t rows, const Image::Task& task) {
    reduced_ = rows;
    uint64_t bytes = 0;
    if (__builtin_mul_overflow(rows, task.reductions * uint64_t(8), &bytes)) bytes = 1ull << 62;
    if (bytes <= block_.scratch_bytes) return;
    flush();
    driver_.wait(block_.last);
    if (block_.scratch) loaded_.device->release({&block_.scratch, 1});
    block_.scratch = 0;
    block_.scratch_bytes = 0;
    block_.scratch = loaded_.device->allocate(bytes, "the partial values of a reduction", task.loc);
    block_.scratch_bytes = bytes;
    put(block_.args(), abi::scratch_address, block_.scratch);
    if (!loaded_.image->takes_value && !block_.host)
      driver_.upload(block_.memory + abi::scratch_address,
                     std::as_bytes(std::span(&block_.scratch, 1)));
  }

  Loaded& loaded_;
  Block& block_;
  LaunchRecord& record_;
  Driver& driver_;
  std::vector<Command> commands_;
  // Of the task with reductions launched last:
  uint64_t reduced_ = 0;  ///< chunks, or rows of partial values where it has lanes
  uint64_t reduced_iterations_ = 0;
};

}  // namespace

void execute(Loaded& kernel, Block& block, LaunchRecord& launch) {
  Device& device = *kernel.device;
  std::byte* args = block.args();
  put(args, abi::frame_address, kernel.frame(block));
  put(args, abi::scratch_address, block.scratch);
  put(args, abi::error_address, device.error_record());
  put(args, abi::print_address, device.print_ring());
  put(args, abi::launch_number, launch.number);
  put(args, abi::random_seed, launch.seed);
  put(args, abi::random_launch, launch.since_seed);
  std::memset(args + kernel.frame_offset, 0, kernel.block_bytes - kernel.frame_offset);
  if (!kernel.image->takes_value && !block.host)
    device.driver().upload(block.memory, block.staging);
  Run run(kernel, block, launch);
  if (kernel.image->takes_value) run.clear_frame();
  try {
    run.steps(kernel.image->schedule);
    run.flush();
  } catch (const Ended&) {  // a launch does not wait for others, so it throws nothing of theirs
  }
}

}  // namespace quern::runtime

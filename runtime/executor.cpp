#include <algorithm>
#include <cstring>
#include <map>

#include "quern/ir/schedule.h"
#include "quern/runtime/tree.h"
#include "runtime/loaded.h"

namespace quern::runtime {

using namespace ir;

namespace {

/// Operations that are worth a chunk of its own, where the runtime chooses: 0.3 µs of vector code,
/// 10 µs of branches. Another thread takes up to 1 µs to begin one, and to hand back what it wrote.
constexpr uint64_t chunk_cost = 30'000;
/// Chunks a thread gets at most: more even out uneven iterations and threads that come late or are
/// kept away, fewer cost less.
constexpr uint64_t most_chunks_per_worker = 8;
/// Where another task follows in the chunks: its rows at both ends of each are left for later.
constexpr uint64_t most_followed_chunks_per_worker = 2;
/// A chunk of this many operations ends soon enough after the host asks for it: about 0.1 s.
constexpr uint64_t longest_chunk_cost = 1u << 28;
/// Of the copies of fields that a chunk updates in their place: so much stays in a second-level
/// cache, and all of a task in memory that a launch may take.
constexpr uint64_t cached_copy_bytes = 512 * 1024, most_bytes_of_copies = 256 << 20;
static_assert(most_bytes_of_copies < 1ull << 31, "code counts a chunk's elements in 32 bits");
/// An update without others that do the same saves a multiple of what it takes: one pays for two
/// values of copies, cleared and merged, in that cache, and for one beyond it. A chunk is to do so
/// much more than that.
constexpr uint64_t values_paid = 2, operations_of_copied = 64;
/// To merge a byte of a copy, which may lie in another thread's cache, takes as long as this.
constexpr uint64_t operations_of_merged_byte = 1;
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
  Run(Loaded& loaded, LaunchMemory& block, Stream& stream, LaunchRecord& record,
      TreeArguments& trees)
      : loaded_(loaded),
        trees_(trees),
        block_(block),
        stream_(stream),
        record_(record),
        driver_(loaded.device->driver()),
        commands_(block.commands) {}

  /// Those of the launch before with this block.
  void repeat() { submit(); }
  void begin() {
    commands_.clear();
    if (loaded_.image->takes_value) clear_frame();
  }

  /// The frame starts as zeros.
  void clear_frame() {
    const uint64_t bytes = loaded_.block_bytes - loaded_.frame_offset;
    if (bytes) commands_.push_back(Fill{loaded_.frame(block_), bytes, 0});
  }

  /// Throws Ended.
  void flush() {
    submit();
    commands_.clear();
  }
  /// Behind the schedule.
  void finish() {
    submit();
    block_.repeats = loaded_.repeats && !changed_memory_;
  }

  std::vector<std::shared_ptr<Storage>> kept() {
    std::vector<std::shared_ptr<Storage>> all;
    const std::vector<Image::Buffer>& buffers = loaded_.image->buffers;
    for (size_t k = 0; k < buffers.size(); k++)
      if (buffers[k].is_kept) all.push_back(std::move(kept_[k]));
    return all;
  }

  // ---- for run_schedule

  bool condition(uint32_t k) { return read_condition(cell(k)); }
  bool begin_guard(uint32_t k) {
    guard_ = cell(k);
    return true;
  }
  void end_guard() { guard_ = 0; }

  void launch(uint32_t index) {
    const Image::Task& task = loaded_.image->tasks[index];
    if (task.merges != no_binding && block_.buffers[buffer_number(task.merges)].elements == 0)
      return;
    Extent extent = extent_of(task);
    // What does not run may have any size: it wants neither memory nor an error.
    if (guard_ && !extent.is_bound && extent.total >= read_guard_from && !read_condition(guard_))
      return;
    if (!extent.fits) throw Error(task.loc, "a parallel loop of more than 2^63 iterations");
    Chunked chunks{.iterations = 0, .grain = 1};
    if (task.kind != Task::serial && task.walk == Task::chunked && extent.total > 0)
      chunks = chunked(index, extent);
    note_rows(task, extent, chunks.chunks());
    make_buffers(index, extent.total, chunks.chunks());
    if (task.kind == Task::serial)
      add(index, Serial{reduced_});
    else if (extent.total == 0)
      return;
    else if (task.walk == Task::chunked)
      add(index, chunks);
    else
      add_elements(index, task, extent);
  }

  /// Its launches are others than this one: what was submitted so far comes before them.
  void refresh(uint32_t parameter) {
    flush();
    trees_.of(parameter).refresh(trees_.loc());
    take_up_trees();
  }

  void collect(uint32_t parameter) {
    flush();
    trees_.of(parameter).collect(trees_.loc());
    take_up_trees();
  }
  void reserve(const Step& step) {
    const Image::Task& task = loaded_.image->tasks[step.task];
    const Extent extent = extent_of(task);
    uint64_t takes = UINT64_MAX;
    const bool is_known = extent.fits && step.claims > 0 &&
                          !__builtin_mul_overflow(extent.total, step.claims, &takes);
    if (extent.total == 0) return;
    flush();
    Tree& tree = trees_.of(step.binding);
    tree.begin_change();
    const bool has_room = is_known && tree.has_room(takes, task.loc);
    const bool is_itself =
        std::ranges::any_of(step.body, [&](const Step& s) { return s.task == step.task; });
    if (has_room && !is_itself) return;
    if (has_room) {
      for (const Step& s : step.body) launch(s.task);
      return;
    }
    if (step.body.empty()) {
      tree.make_room(is_known ? takes : 0, task.loc);
    } else {
      do {
        take_up_trees();
        for (const Step& s : step.body) launch(s.task);
        flush();
      } while (!tree.has_all(task.loc));
    }
    take_up_trees();
  }

  /// Behind a task with lanes.
  void combine(const Step& step) {
    for (const abi::Combination& c : abi::combinations(reduced_iterations_))
      add(step.body[c.halves ? 1 : 0].task, Combining{c.threads, c.first_row, c.rows});
  }

 private:
  void submit() {
    std::optional<Ticket> ticket = stream_.submit(record_, commands_);
    if (!ticket) throw Ended();
    block_.last = *ticket;
  }

  Address cell(uint32_t k) const { return loaded_.frame(block_) + 8 * k; }

  bool read_condition(Address at) {
    uint64_t value = 0;
    flush();
    driver_.download(std::as_writable_bytes(std::span(&value, 1)), at, stream_.queue());
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
    driver_.download(part, loaded_.frame(block_), stream_.queue());
    return part.data();
  }

  struct Extent {
    uint64_t total = 1;
    uint64_t row = 1;  ///< iterations along the last axis
    std::array<uint64_t, Placement::max_axes> axes = {};
    bool fits = true;       ///< fewer than 2^63
    bool is_bound = false;  ///< there may be fewer
  };
  /// A wait where only the device knows it and no bound is small enough.
  Extent extent_of(const Image::Task& task) {
    if (!task.domain) return {};
    if (task.bound) {
      Extent bound = extent_of(*task.bound);
      bound.is_bound = true;
      if (bound.fits && !abi::is_wide(bound.total)) return bound;
    }
    return extent_of(*task.domain);
  }
  Extent extent_of(const HostExpression& domain) {
    Extent e;
    int64_t bounds[16];
    evaluate(domain, bounds);
    size_t axes = domain.results.size() / 2;
    for (size_t k = 0; k < axes; k++)
      if (bounds[2 * k + 1] <= bounds[2 * k]) return {.total = 0, .row = 0};
    for (size_t k = 0; k < axes; k++) {
      e.row = uint64_t(bounds[2 * k + 1]) - uint64_t(bounds[2 * k]);
      if (__builtin_mul_overflow(e.total, e.row, &e.total) || e.total > uint64_t(INT64_MAX))
        return {.total = ~0ull, .fits = false};
      e.axes[k] = e.row;
    }
    return e;
  }

  /// Iterations that end soon enough.
  uint64_t short_grain(const Image::Task& task, uint64_t total) const {
    const uint64_t grain = longest_chunk_cost / std::max<uint64_t>(1, task.operations) + 1;
    return task.reductions == 0 ? grain : std::max(grain, total / most_partials + 1);
  }

  /// The grain, or a multiple of Task::together, and of Task::strip, where workers are ready no later
  /// by that. Vectors are of iterations of one row.
  uint64_t whole_vectors(const Image::Task& task, const Extent& extent, uint64_t grain) const {
    constexpr uint64_t lanes = ir::Task::lanes_together;
    const uint64_t together = task.together, workers = driver_.target().workers;
    if (together == 1) return grain;
    const auto quotient = [](uint64_t n, uint64_t by) { return (n + by - 1) / by; };
    const auto time = [&](uint64_t of_chunk) {
      of_chunk = std::min(of_chunk, extent.total);
      const uint64_t length = std::min(of_chunk, extent.row);
      const bool by_vectors = length >= together || together <= lanes;
      return quotient(quotient(extent.total, of_chunk), workers) * quotient(of_chunk, length) *
             (by_vectors ? quotient(length, lanes) : length);
    };
    const uint64_t strip =
        task.strip <= extent.row ? std::max(task.strip, task.together) : together;
    for (uint64_t unit : {together, strip}) {
      const uint64_t whole = quotient(grain, unit) * unit;
      if (time(whole) <= time(grain)) grain = whole;
    }
    return grain;
  }

  Chunked chunked(uint32_t index, const Extent& extent) {
    const Image::Task& task = loaded_.image->tasks[index];
    const uint64_t total = extent.total, row = extent.row;
    Chunked work{.iterations = total, .grain = task.grain};
    if (const auto first = grains_.find(task.follows); first != grains_.end())
      work.grain = first->second;
    const uint64_t operations =
        task.merges == no_binding ? task.operations : operations_to_merge(task.merges, total);
    if (__builtin_mul_overflow(total, operations, &work.operations)) work.operations = UINT64_MAX;
    if (work.grain == 0 && work.operations <= chunk_cost) {
      work.grain = total;  // the way below leads there too, by some divisions
    } else if (work.grain == 0) {
      const uint64_t workers = driver_.target().workers;
      const uint64_t of_worker =
          task.is_followed ? most_followed_chunks_per_worker : most_chunks_per_worker;
      const uint64_t most = workers > 1 ? workers * of_worker : 1;
      uint64_t wanted =
          std::clamp<uint64_t>(work.operations / chunk_cost, 1,
                               std::min(most, most_chunks(index, total, work.operations)));
      if (wanted > workers) wanted -= wanted % workers;  // else all wait for the last ones
      uint64_t grain = (total + wanted - 1) / wanted;
      grain = whole_vectors(task, extent, grain);
      if (driver_.target().traits.stoppable) grain = std::min(grain, short_grain(task, total));
      // Whole rows, or whole cache lines of one row, keep the inner loop long and writes apart.
      uint64_t unit = grain >= row ? row : std::min<uint64_t>(grain, 64);
      grain = (grain + unit - 1) / unit * unit;
      if (uint64_t block = task.block_size) grain = (grain + block - 1) / block * block;
      work.grain = grain;
    }
    if (task.is_followed) grains_[index] = work.grain;
    return work;
  }

  // ---- copies of fields: ir::BufferSize::copies

  size_t buffer_number(uint32_t binding) const {
    const std::vector<Image::Buffer>& buffers = loaded_.image->buffers;
    return size_t(std::ranges::find(buffers, binding, &Image::Buffer::binding) - buffers.begin());
  }

  /// What it takes to merge the copies of one element.
  uint64_t operations_to_merge(uint32_t binding, uint64_t elements) const {
    const size_t number = buffer_number(binding);
    const uint64_t copies = block_.buffers[number].elements / elements;
    return copies * loaded_.buffer_elements[number].bytes * operations_of_merged_byte;
  }

  uint64_t copied_fields(uint32_t task) const {
    const auto is_one = [&](const Image::Buffer& b) {
      return b.task == task && b.size == Image::Buffer::copies;
    };
    return uint64_t(std::ranges::count_if(loaded_.image->buffers, is_one));
  }

  /// Elements that each chunk has, and for how many chunks that pays; 0: for none.
  struct Copied {
    uint64_t elements = 0, chunks = 0;
  };
  Copied copied(size_t number, uint64_t iterations) {
    const Image::Buffer& buffer = loaded_.image->buffers[number];
    const uint64_t workers = driver_.target().workers;
    uint64_t updates = 0;
    if (__builtin_mul_overflow(iterations, buffer.updates * values_paid, &updates))
      updates = UINT64_MAX;
    updates /= BufferSize::updating;
    if (updates < workers) return {};
    const uint64_t count = evaluated_count(buffer), bytes = loaded_.buffer_elements[number].bytes;
    const uint64_t most_bytes = most_bytes_of_copies / copied_fields(buffer.task);
    if (count == 0 || count > most_bytes / bytes) return {};
    const uint64_t copies = abi::copies(count * buffer.components.size());
    const uint64_t elements = count * copies;
    if (workers == 1 && copies == 1) return {};
    if (elements * bytes > cached_copy_bytes) updates /= values_paid;
    return {elements, std::min(updates / elements, most_bytes / (elements * bytes))};
  }

  /// As many chunks as the copies that pay for all workers allow; each has much more to do than to
  /// clear and merge them.
  uint64_t most_chunks(uint32_t task, uint64_t iterations, uint64_t operations) {
    const uint64_t workers = driver_.target().workers;
    uint64_t most = UINT64_MAX, values = 0;
    const std::vector<Image::Buffer>& buffers = loaded_.image->buffers;
    for (size_t k = 0; k < buffers.size(); k++) {
      if (buffers[k].task != task || buffers[k].size != Image::Buffer::copies) continue;
      const Copied c = copied(k, iterations);
      if (c.chunks < workers) continue;
      most = std::min(most, c.chunks);
      values += c.elements * buffers[k].components.size();
    }
    if (values == 0) return most;
    // Two for each worker even out what is uneven; more of them where copies are nothing beside it.
    const uint64_t paid = operations / (operations_of_copied * values);
    return std::max({workers, std::min({most, paid, 2 * workers}), std::min(most, paid / 4)});
  }

  void add_elements(uint32_t index, const Image::Task& task, const Extent& extent) {
    Elements work{.iterations = extent.total, .is_bound = extent.is_bound};
    const bool wide = task.walk == Task::element && abi::is_wide(extent.total);
    if (!wide)
      work.reciprocals = abi::reciprocals(task.innermost, std::span(extent.axes).first(task.rank));
    add(index, work, wide ? loaded_.wide() : *loaded_.executable);
  }

  void add(uint32_t task, const Work& work) { add(task, work, *loaded_.executable); }
  void add(uint32_t task, const Work& work, const Executable& executable) {
    const Address args =
        loaded_.image->takes_value ? reinterpret_cast<Address>(block_.args()) : block_.memory;
    commands_.push_back(Launch{&executable, task, work, args, guard_});
  }

  /// For the task that combines the rows of partial values that this one leaves.
  void note_rows(const Image::Task& task, const Extent& extent, uint64_t chunks) {
    if (task.lanes) {
      reduced_iterations_ = extent.total;
      reduced_ = abi::total_rows(extent.total);
    } else if (task.reductions && task.walk == Task::chunked) {
      reduced_ = chunks;
    }
  }

  void make_buffers(uint32_t task, uint64_t iterations, uint64_t chunks) {
    const std::vector<Image::Buffer>& buffers = loaded_.image->buffers;
    for (size_t k = 0; k < buffers.size(); k++) {
      if (buffers[k].task != task) continue;
      const uint64_t elements = elements_of(k, iterations, chunks);
      if (buffers[k].size == Image::Buffer::copies)
        make_copies(k, elements);
      else
        make_room(k, elements);
    }
  }

  uint64_t elements_of(size_t number, uint64_t iterations, uint64_t chunks) {
    const Image::Buffer& buffer = loaded_.image->buffers[number];
    if (buffer.size == Image::Buffer::rows) return reduced_;
    if (buffer.size == Image::Buffer::iterations) return iterations;
    if (buffer.size == Image::Buffer::copies) {
      if (chunks == 1 && driver_.target().workers > 1) return 0;  // atomics are plain
      const Copied c = copied(number, iterations);
      return chunks <= c.chunks ? c.elements * chunks : 0;
    }
    return evaluated_count(buffer);
  }

  uint64_t evaluated_count(const Image::Buffer& buffer) {
    int64_t count = 0;
    evaluate(buffer.count, {&count, 1});
    return uint64_t(std::max<int64_t>(0, count));
  }

  /// Without memory for them the task does without.
  void make_copies(size_t number, uint64_t elements) {
    try {
      make_room(number, elements);
    } catch (const Error&) {
      make_room(number, 0);
    }
  }

  void make_room(size_t number, uint64_t elements) {
    const Image::Buffer& buffer = loaded_.image->buffers[number];
    const abi::Place& place = loaded_.image->layout.places[buffer.binding];
    LaunchMemory::Buffer& held = block_.buffers[number];
    if (held.elements != elements) set_argument(place.extent(0), held.elements = elements);
    uint64_t bytes = 0;
    if (__builtin_mul_overflow(elements, uint64_t(loaded_.buffer_elements[number].bytes), &bytes))
      bytes = 1ull << 62;
    if (buffer.is_kept) return keep(number, bytes);
    if (bytes <= held.bytes) return;
    changed_memory_ = true;
    flush();  // what uses the buffer so far comes before its release
    if (held.address)
      loaded_.device->release({&held.address, 1}, {&held.bytes, 1}, stream_.queue());
    held.address = held.bytes = 0;
    held.address = loaded_.device->allocate(bytes, what(buffer), buffer.loc, Device::Contents::any);
    held.bytes = bytes;
    name_buffer(number, held.address);
  }

  /// A buffer of its own, and for whoever launched.
  void keep(size_t number, uint64_t bytes) {
    const Image::Buffer& buffer = loaded_.image->buffers[number];
    const abi::Packed& packed = loaded_.buffer_elements[number];
    const Element element{packed.bytes, packed.offsets};
    std::vector<ir::Storage> stored;
    for (const Component& c : buffer.components) stored.push_back({c.type, storage_type(c.type)});
    const auto elements = int64_t(bytes / element.bytes);
    flush();  // what uses the one before comes before its release
    std::shared_ptr<Storage>& kept = kept_[number];
    kept.reset();
    kept =
        Storage::unset(loaded_.device, stored, {elements}, what(buffer), buffer.loc, aos, element);
    name_buffer(number, kept->base(0));
  }

  static std::string what(const Image::Buffer& buffer) {
    return "the " + buffer.name + " of a loop";
  }

  void name_buffer(size_t number, Address address) {
    const Image::Buffer& buffer = loaded_.image->buffers[number];
    const abi::Place& place = loaded_.image->layout.places[buffer.binding];
    const abi::Packed& packed = loaded_.buffer_elements[number];
    for (uint32_t c = 0; c < buffer.components.size(); c++)
      set_argument(place.base(c), address + packed.offsets[c]);
  }

  /// Trees may have got other parts.
  void take_up_trees() {
    trees_.look_up();
    for (const TreeArguments::Part& p : trees_.parts()) {
      if (!p.moved) continue;
      const abi::Place& place = loaded_.image->layout.places[p.part->binding];
      for (uint32_t c = 0; c < p.part->components.size(); c++)
        set_argument(place.base(c), p.storage->base(c));
      set_argument(place.extent(0), uint64_t(p.storage->shape()[0]));
    }
  }

  void evaluate(const HostExpression& expression, std::span<int64_t> out) {
    expression.evaluate(block_.args(), expression.reads_frame ? frame() : nullptr, out);
  }

  /// For the tasks launched from now on, while those before may still run.
  void set_argument(uint32_t offset, uint64_t value) {
    changed_memory_ = true;
    if (!block_.host) put(block_.args(), offset, value);
    if (loaded_.image->takes_value) return;  // which is read when a task is submitted
    commands_.push_back(Fill{block_.memory + offset, 4, uint32_t(value)});
    commands_.push_back(Fill{block_.memory + offset + 4, 4, uint32_t(value >> 32)});
  }

  Loaded& loaded_;
  TreeArguments& trees_;
  LaunchMemory& block_;
  Stream& stream_;
  LaunchRecord& record_;
  Driver& driver_;
  std::vector<Command>& commands_;
  std::map<size_t, std::shared_ptr<Storage>> kept_;  ///< by the buffer's number
  std::map<uint32_t, uint64_t> grains_;              ///< of tasks that others follow
  Address guard_ = 0;                                ///< of the launches made now
  bool changed_memory_ = false;  ///< of buffers, and so what the next launch finds
  // Of the task with reductions launched last:
  uint64_t reduced_ = 0;  ///< chunks, or rows of partial values where it has lanes
  uint64_t reduced_iterations_ = 0;
};

}  // namespace

std::vector<std::shared_ptr<Storage>> execute(Loaded& kernel, LaunchMemory& block, Stream& stream,
                                              LaunchRecord& launch, TreeArguments& trees) {
  std::byte* args = block.args();
  abi::Writer writer(kernel.image->layout, args);
  writer.head({.frame = kernel.frame(block),
               .error = stream.error_record(),
               .print = kernel.reporter->prints ? stream.print_ring() : 0,
               .random_seed = launch.key.seed,
               .launch_number = launch.number,
               .random_launch = launch.key.launch});
  for (const TreeArguments::Part& p : trees.parts()) {
    for (uint32_t c = 0; c < p.part->components.size(); c++) {
      const int64_t stride = p.storage->stride(c, 0);
      writer.component(p.part->binding, c, p.storage->base(c), {&stride, 1});
    }
    writer.axes(p.part->binding, p.storage->shape());
  }
  for (size_t k = 0; k < block.buffers.size(); k++) {
    const Image::Buffer& buffer = kernel.image->buffers[k];
    const LaunchMemory::Buffer& held = block.buffers[k];
    const abi::Packed& packed = kernel.buffer_elements[k];
    const auto stride = int64_t(packed.bytes), extent = int64_t(held.elements);
    for (uint32_t c = 0; c < buffer.components.size(); c++)
      writer.component(buffer.binding, c, held.address + packed.offsets[c], {&stride, 1});
    writer.axes(buffer.binding, {&extent, 1});
  }
  std::memset(args + kernel.frame_offset, 0, kernel.block_bytes - kernel.frame_offset);
  if (!kernel.image->takes_value && !block.host)
    kernel.device->driver().upload(block.memory, block.staging, stream.queue());
  Run run(kernel, block, stream, launch, trees);
  try {
    if (block.repeats) {
      run.repeat();
      return {};
    }
    run.begin();
    run_schedule(kernel.image->schedule, run);
    run.finish();
  } catch (const Ended&) {  // a launch does not wait for others, so it throws nothing of theirs
  }
  return run.kept();
}

}  // namespace quern::runtime

#include "backends/gpu/driver.h"

#include <algorithm>

#include "quern/ir/abi.h"

namespace quern::gpu {

using runtime::Command;
using runtime::Copy;
using runtime::Fill;
using runtime::Launch;

namespace {

class Executable : public runtime::Executable {
 public:
  explicit Executable(std::shared_ptr<const Program> p) : program(std::move(p)) {}
  const std::shared_ptr<const Program> program;
};

const std::shared_ptr<const Program>& program_of(const Launch& launch) {
  return static_cast<const Executable*>(launch.executable)->program;
}

bool overlap(const Copy& c) {
  return c.to != c.from && c.to < c.from + c.bytes && c.from < c.to + c.bytes;
}

/// As the kernels take it.
uint64_t guard_of(const Launch& launch) {
  return launch.guard | (launch.asks ? ir::abi::asks_bit : 0);
}

bool is_launch(const Command& command) { return std::holds_alternative<Launch>(command); }

/// A batch that may become a graph. Copies that overlap need memory of their own each time, and
/// arguments taken by value are others each time. Copies alone are few launches (Copies).
bool can_repeat(std::span<const Command> commands) {
  return commands.size() >= Graphs::shortest && std::ranges::any_of(commands, is_launch) &&
         std::ranges::none_of(commands, [](auto& command) {
           auto* copy = std::get_if<Copy>(&command);
           auto* launch = std::get_if<Launch>(&command);
           return (copy && overlap(*copy)) || (launch && program_of(*launch)->takes_value);
         });
}

std::vector<uint64_t> spell_out(std::span<const Command> commands) {
  std::vector<uint64_t> words;
  words.reserve(commands.size() * 8);
  for (const Command& command : commands) {
    words.push_back(command.index());
    if (auto* l = std::get_if<Launch>(&command)) {
      const auto [amount, by, more] = runtime::words_of(l->work);
      words.insert(words.end(), {reinterpret_cast<uint64_t>(program_of(*l).get()), l->task,
                                 l->work.index(), amount, by, more, l->args, guard_of(*l)});
    }
    if (auto* c = std::get_if<Copy>(&command))
      words.insert(words.end(), {c->to, c->from, c->bytes});
    if (auto* f = std::get_if<Fill>(&command))
      words.insert(words.end(), {f->to, f->bytes, f->pattern});
  }
  return words;
}

}  // namespace

Driver::Driver(std::shared_ptr<const Api> api, const Properties& device, runtime::Target target)
    : target_(std::move(target)),
      gpu_(std::make_shared<Gpu>(std::move(api), device)),
      copies_(gpu_),
      queues_(gpu_),
      first_stream_(queues_.stream(0)),
      memory_(gpu_, queues_),
      staging_(gpu_, queues_, memory_),
      graphs_(gpu_) {}

Driver::Driver(std::shared_ptr<const Api> api, const Properties& device, runtime::Target target,
               const Handles& on)
    : target_(std::move(target)),
      gpu_(std::make_shared<Gpu>(std::move(api), device, static_cast<Context>(on.context))),
      copies_(gpu_),
      queues_(gpu_, static_cast<StreamHandle>(on.stream)),
      first_stream_(queues_.stream(0)),
      memory_(gpu_, queues_),
      staging_(gpu_, queues_, memory_),
      graphs_(gpu_) {}

/// A submission: other queues may have to wait for it.
runtime::Address Driver::allocate(uint64_t bytes, uint32_t queue) {
  Address address = 0;
  queues_.submit({queue, {}}, [&](Work&) { address = memory_.allocate(bytes, queue); });
  return address;
}

void Driver::release(runtime::Address address, uint32_t queue) {
  if (queues_.lost()) return;  // the memory went with the device
  queues_.call([&] { memory_.release(address, queues_.current(queue)); });
}

std::unique_ptr<runtime::Executable> Driver::load(const runtime::Image& image) {
  runtime::expect_runs(image, target_, [](const std::string& code, const std::string& machine) {
    return code == machine;
  });
  std::shared_ptr<const Program> program;
  queues_.aside([&] {
    program = std::make_shared<const Program>(gpu_, image, modules_.load(gpu_, image.code));
  });
  return std::make_unique<Executable>(std::move(program));
}

// ---- commands

Ticket Driver::submit(std::span<const Command> commands, const Order& order) {
  if (commands.empty() && order.after.empty()) return queues_.last(order.queue);
  return queues_.submit(order, [&](Work& work) {
    for (const Command& command : commands) check(command);
    const StreamHandle stream = queues_.stream(order.queue);
    auto record_all = [&](Work& w) {
      for (size_t k = 0; k < commands.size();) {
        const size_t together = copies_.record(commands.subspan(k), stream);
        if (together == 0)
          std::visit([&](const auto& c) { record(w, order.queue, c); }, commands[k]);
        k += std::max<size_t>(together, 1);
      }
    };
    std::shared_ptr<const Graph> graph;
    // Capturing somebody else's stream would take their work into the graph.
    if (queues_.is_own(order.queue) && can_repeat(commands))
      graph = graphs_.find(spell_out(commands), stream, record_all);
    if (!graph) return record_all(work);
    work.push_back(graph);
    graph->launch(stream);
  });
}

/// What can be refused is refused before anything runs.
void Driver::check(const Command& command) const {
  if (auto* launch = std::get_if<Launch>(&command)) program_of(*launch)->geometry(*launch);
  if (auto* copy = std::get_if<Copy>(&command)) {
    memory_.expect(copy->to, copy->bytes);
    memory_.expect(copy->from, copy->bytes);
  }
  if (auto* fill = std::get_if<Fill>(&command)) memory_.expect(fill->to, fill->bytes);
}

void Driver::record(Work& work, uint32_t queue, const Launch& launch) {
  const std::shared_ptr<const Program>& program = program_of(launch);
  Geometry g = program->geometry(launch);
  if (g.grid == 0) return;
  if (work.empty() || work.back() != program) work.push_back(program);
  const auto [amount, by, more] = runtime::words_of(launch.work);
  uint64_t words[] = {launch.args, guard_of(launch), amount, by, more};
  void* parameters[] = {&words[0], &words[1], &words[2], &words[3], &words[4]};
  if (program->takes_value) parameters[0] = reinterpret_cast<void*>(launch.args);
  Code c = gpu_->api->launch(program->function(launch.task), g.grid, 1, 1, g.block, 1, 1, 0,
                             queues_.stream(queue), parameters, nullptr);
  if (c != code::success)
    fail(*gpu_->api, c,
         "launching task " + std::to_string(launch.task) + " of kernel '" +
             *program->kernels.begin() + "'");
}

void Driver::copy_apart(Address to, Address from, uint64_t bytes, uint32_t queue) {
  gpu_->expect(gpu_->api->copy(to, from, bytes, queues_.stream(queue)), "a copy");
}

void Driver::record(Work&, uint32_t queue, const Copy& copy) {
  if (copy.bytes == 0 || copy.to == copy.from) return;
  if (!overlap(copy)) return copy_apart(copy.to, copy.from, copy.bytes, queue);
  Address between = memory_.allocate(copy.bytes, queue);
  copy_apart(between, copy.from, copy.bytes, queue);
  copy_apart(copy.to, between, copy.bytes, queue);
  memory_.release(between, queues_.current(queue));
}

void Driver::record(Work&, uint32_t queue, const Fill& fill) {
  if (fill.bytes == 0) return;
  gpu_->expect(gpu_->api->fill(fill.to, fill.pattern, fill.bytes / 4, queues_.stream(queue)),
               "a fill");
}

}  // namespace quern::gpu

#include "backends/interpreter/machine.h"

#include <algorithm>

#include "backends/interpreter/memory.h"

namespace quern::interpreter {

using namespace ir;

Thread& Machine::thread(size_t k) {
  while (threads_.size() <= k) threads_.push_back(std::make_unique<Thread>(launch_));
  return *threads_[k];
}

namespace {

std::string place(Loc loc) { return std::string(loc.file) + ":" + std::to_string(loc.line); }

[[noreturn]] void diverged(std::span<Thread* const> waiting, uint64_t count) {
  const Thread& first = *waiting[0];
  const Step& at = *first.waits_at();
  auto together = std::ranges::count_if(waiting, [&](Thread* t) { return t->is_with(first); });
  std::string others = "the others have ended";
  for (const Thread* t : waiting) {
    if (t->is_with(first)) continue;
    const Step& there = *t->waits_at();
    others = &there == &at ? "another is in another round of a loop around it"
                           : "another is at " + place(there.inst->loc);
  }
  throw Error(at.inst->loc, std::to_string(together) + " of the " + std::to_string(count) +
                                " threads of a block reach a " + std::string(info(at.op).name) +
                                " together, " + others + ": all threads of a block must reach it");
}

}  // namespace

/// Between two meetings the threads of a block run one after another, in any order. Few ever wait:
/// a thread that has ended makes room for the next.
template <class F>
void Machine::run_together(uint64_t count, F&& start) {
  Order order(count, launch_.options.seed);
  std::vector<Thread*> waiting;
  for (uint64_t k = 0; k < count; k++) {
    Thread& t = thread(waiting.size());
    start(t, order(k));
    if (!t.run()) waiting.push_back(&t);
  }
  while (!waiting.empty()) {
    auto is_here = [&](Thread* t) { return t->is_with(*waiting[0]); };
    if (waiting.size() < count || !std::ranges::all_of(waiting, is_here)) diverged(waiting, count);
    meet(waiting);
    std::erase_if(waiting, [](Thread* t) { return t->run(); });
  }
}

std::vector<Bits> Machine::body() {
  Thread& t = thread(0);
  t.start(*launch_.code.body);
  t.run();
  return t.results();
}

Domain Machine::begin_task(uint32_t number) {
  launch_.task = number;
  launch_.races.begin();
  const Task& task = launch_.kernel.tasks.at(number);
  Thread& t = thread(0);
  if (task.options.over != no_binding) return t.indices_of(task.options.over, task.body->args);
  const Block* domain = launch_.code.tasks[number].domain;
  if (!domain) return {};
  t.start(*domain);
  t.run();
  return t.domain_of(domain->yields, domain->yield_types);
}

void Machine::run(const Domain& domain, const Part& part) {
  if (!may_start()) return;
  const Task& task = launch_.kernel.tasks[launch_.task];
  const Block& body = *launch_.code.tasks[launch_.task].body;
  run_together(1, [&](Thread& t, uint64_t) {
    if (task.kind != Task::serial && task.walk == Task::unlowered)
      t.start(body, domain, part, task.options.ordinal);
    else
      t.start(body, part);
  });
}

void Machine::run_blocks(uint64_t blocks, uint64_t size, const Part& of_all) {
  const Block& body = *launch_.code.tasks[launch_.task].body;
  Order order(blocks, launch_.options.seed);
  for (uint64_t k = 0; k < blocks; k++) {
    if (!may_start()) continue;
    const uint64_t first = order(k) * size;
    run_together(size, [&](Thread& t, uint64_t number) {
      Part part = of_all;
      part.thread = first + number;
      part.block_thread = number;
      part.threads = blocks * size;
      t.start(body, part);
    });
  }
}

/// `block_reduce`: the combined value to the first thread; to the others anything.
void Machine::meet(std::span<Thread* const> threads) {
  const Step& s = *threads[0]->waits_at();
  Bits all = identity(s.inst->atomic(), s.operand);
  for (const Thread* t : threads) all = combine(s.inst->atomic(), s.operand, all, t->brought());
  for (Thread* t : threads)
    t->take(t->number() == 0 ? all : truncate(0xa5a5a5a5a5a5a5a5, s.operand));
}

bool Machine::may_start() {
  const Code::Task& code = launch_.code.tasks[launch_.task];
  const Task& task = launch_.kernel.tasks[launch_.task];
  if (code.tests_record || (!launch_.stops(task.loc) && launch_.may_start(task))) return true;
  for (uint32_t cell : code.conditions) write_memory(Type::b1, launch_.cell_address(cell), 0);
  return false;
}

void Machine::finish_reductions(uint64_t iterations) {
  const Task& task = launch_.kernel.tasks[launch_.task];
  if (launch_.stops(task.loc)) launch_.reducing.clear();  // what was to be combined is not there
  for (Launch::Reducing& r : launch_.reducing) {
    const Reduction& to = task.reductions.at(r.key);
    Bits address = launch_.cell_address(to.cell);
    Bits old = read_memory(to.type, address);
    write_memory(to.type, address, r.contributions.combined(old, iterations));
  }
  launch_.reducing.clear();
}

}  // namespace quern::interpreter

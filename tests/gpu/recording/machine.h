#pragma once
// What the stand-ins work on: streams, memory and the record of what happened. For one source file,
// without linkage: two stand-ins in a process share nothing.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <set>

#include "execution.h"  // of the folder written/ or executed/, as the library is built

namespace quern::recording {

using gpu::EventHandle;
using gpu::StreamHandle;

namespace {

using Op = std::function<void(bool in_graph)>;

struct Stream {
  int device = 0;
  std::deque<Op> ops;
  uint64_t done = 0;
  std::shared_ptr<std::vector<Op>> capture;

  void put(Op op) {
    if (capture)
      capture->push_back(std::move(op));
    else
      ops.push_back(std::move(op));
  }
  void run_one() {
    Op op = std::move(ops.front());
    ops.pop_front();
    done++;
    op(false);
  }
  void run_to(uint64_t position) {
    while (done < position) run_one();
  }
  void run() { run_to(done + ops.size()); }
};

struct Event {
  int device = 0;
  Stream* stream = nullptr;
  uint64_t position = 0;
};
struct Module {
  std::string text;
  int device = 0;
  Execution::Program program = {};
};
struct Function {
  std::string name;
  Module* module = nullptr;
};
struct Pool {
  int device = 0;
  std::set<int> open_to;
};
struct Allocation {
  std::byte* host = nullptr;
  size_t bytes = 0;
  int device = 0;
  Pool* pool = nullptr;
  uintptr_t context = 0;  ///< of CUDA's; none for memory of pools
};
using Graph = std::shared_ptr<std::vector<Op>>;
struct Exec {
  Graph graph;
  int waiting = 0;  ///< launches that have not run
};

struct State {
  Recorder recorder;
  std::map<Address, Allocation> memory;
  std::map<const std::byte*, size_t> pinned;
  std::set<Stream*> streams;
  std::set<Event*> events;
  std::map<int, std::set<int>> peers;  ///< device -> those it reaches
  std::vector<std::unique_ptr<Function>> functions;
  uint64_t used = 0;
  int ran = 0;
  Execution execution{recorder};
};
State& state() {
  static State& s = *new State;
  return s;
}
Recorder& recorder() { return state().recorder; }

/// What a thread has entered. Without a destructor: programs call at their exit, too.
template <class T>
struct Entered {
  T entered[64] = {};
  size_t depth = 1;
  T& back() { return entered[depth - 1]; }
  void push_back(T v) { entered[depth++ % 64] = v; }
  void pop_back() { depth--; }
};
thread_local Entered<int> current_devices;
int current() { return current_devices.back(); }
thread_local Entered<uintptr_t> current_contexts;  ///< CUDA

void misuse(const std::string& what) { recorder().misuse.push_back(what); }
void expect_current(int device, const char* what) {
  if (device != current())
    misuse(std::string(what) + " for device " + std::to_string(device) + " while device " +
           std::to_string(current()) + " is current");
}

/// Streams go on by themselves now and then, where the schedule says so.
void run_on_at_random() {
  State& s = state();
  if (!s.execution.takes_turn(4)) return;
  for (Stream* stream : s.streams)
    if (!stream->ops.empty() && s.execution.takes_turn(2)) {
      stream->run_one();
      return;
    }
}

/// Counts a call; the code it fails with, or 0.
int call(const char* name) {
  Recorder& r = recorder();
  run_on_at_random();
  int number = ++r.calls[name];
  r.all_calls++;
  if (r.broken) return r.broken;
  auto named = r.failures.find(name);
  int failed = r.any.call == r.all_calls ? r.any.code : 0;
  if (named != r.failures.end() && named->second.call == number) failed = named->second.code;
  if (failed == 700 || failed == 719) r.broken = failed;
  return failed;
}
#define CALL(name)                                              \
  std::lock_guard<std::recursive_mutex> lock(recorder().mutex); \
  if (int failed = call(#name)) return failed

std::byte* host_of(Address address) {
  return reinterpret_cast<std::byte*>(address - Execution::hidden);
}

/// Allocated, and reached by the device.
bool reached(Address address, size_t bytes, int device) {
  auto next = state().memory.upper_bound(address);
  if (next == state().memory.begin()) return false;
  auto& [start, a] = *std::prev(next);
  if (address + bytes > start + a.bytes) return false;
  if (a.device == device) return true;
  return a.pool ? a.pool->open_to.contains(device) : state().peers[device].contains(a.device);
}
void expect_reached(Address address, size_t bytes, int device) {
  if (!reached(address, bytes, device)) recorder().broken = 700;
}

Stream* of(StreamHandle s) { return reinterpret_cast<Stream*>(s); }
Event* of(EventHandle e) { return reinterpret_cast<Event*>(e); }
/// Else says what is misused.
bool lives(StreamHandle s, const char* what) {
  const bool known = state().streams.contains(of(s));
  if (!known) misuse(std::string(what) + " in a stream that is none, or not any more");
  return known;
}
bool lives(EventHandle e, const char* what) {
  const bool known = state().events.contains(of(e));
  if (!known) misuse(std::string(what) + " an event that is none, or not any more");
  return known;
}
template <class Handle, class T>
void hand_out(Handle* handle, T* object, const char* what) {
  *handle = reinterpret_cast<Handle>(object);
  recorder().live[what]++;
}
template <class T, class Handle>
void take_back(Handle handle, const char* what) {
  delete reinterpret_cast<T*>(handle);
  recorder().live[what]--;
}

int allocate(Address* address, size_t bytes, Pool* pool, int device) {
  State& s = state();
  if (bytes > s.recorder.memory - s.used) return 2;
  void* memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (!memory) return 2;
  std::memset(memory, 0xcd, std::min<size_t>(bytes, 16 << 20));  // what nobody wrote yet
  *address = reinterpret_cast<Address>(memory) + Execution::hidden;
  s.memory[*address] = {static_cast<std::byte*>(memory), bytes, device, pool,
                        pool ? 0 : current_contexts.back()};
  s.used += bytes;
  s.recorder.live["allocations"]++;
  return 0;
}

void release(Address address) {
  State& s = state();
  auto found = s.memory.find(address);
  if (found == s.memory.end()) return misuse("a free of what was not allocated");
  s.used -= found->second.bytes;
  std::free(found->second.host);
  s.memory.erase(found);
  s.recorder.live["allocations"]--;
}

/// What kernels of a device reach.
Range range_of(Address address, int device) {
  auto next = state().memory.upper_bound(address);
  if (next == state().memory.begin()) return {};
  auto& [start, a] = *std::prev(next);
  if (address >= start + a.bytes || !reached(start, 1, device)) return {};
  return {start, start + a.bytes, a.host};
}

void run_kernel(Launch l, const Execution::Work& work, bool in_graph) {
  Recorder& r = recorder();
  if (r.broken) return;
  l.in_graph = in_graph;
  r.launches.push_back(l);
  const int number = ++state().ran;
  if (number == r.faulty_launch) r.broken = 700;
  auto memory = [&](Address address) { return range_of(address, l.device); };
  if (int failed = state().execution.run(work, l, r, number, memory)) r.broken = failed;
}

}  // namespace
}  // namespace quern::recording

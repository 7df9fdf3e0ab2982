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

#include "backends/gpu/api.h"
#include "tests/gpu/recording/recording.h"

namespace quern::recording {

using gpu::Address;
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
  std::map<int, std::set<int>> peers;  ///< device -> those it reaches
  std::vector<std::unique_ptr<Function>> functions;
  uint64_t used = 0;
  int ran = 0;
};
State& state() {
  static State& s = *new State;
  return s;
}
Recorder& recorder() { return state().recorder; }

thread_local std::vector<int> current_devices(1, 0);
int current() { return current_devices.back(); }
thread_local std::vector<uintptr_t> current_contexts(1, 0);  ///< CUDA

void misuse(const std::string& what) { recorder().misuse.push_back(what); }
void expect_current(int device, const char* what) {
  if (device != current())
    misuse(std::string(what) + " for device " + std::to_string(device) + " while device " +
           std::to_string(current()) + " is current");
}

/// Counts a call; the code it fails with, or 0.
int call(const char* name) {
  Recorder& r = recorder();
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
  std::memset(memory, 0xcd, std::min<size_t>(bytes, 16 << 20));  // what nobody wrote yet
  *address = reinterpret_cast<Address>(memory);
  s.memory[*address] = {bytes, device, pool, pool ? 0 : current_contexts.back()};
  s.used += bytes;
  s.recorder.live["allocations"]++;
  return 0;
}

void release(Address address) {
  State& s = state();
  auto found = s.memory.find(address);
  if (found == s.memory.end()) return misuse("a free of what was not allocated");
  s.used -= found->second.bytes;
  s.memory.erase(found);
  std::free(reinterpret_cast<void*>(address));
  s.recorder.live["allocations"]--;
}

void run_kernel(Launch l, bool in_graph) {
  Recorder& r = recorder();
  if (r.broken) return;
  l.in_graph = in_graph;
  r.launches.push_back(l);
  if (++state().ran == r.faulty_launch) r.broken = 700;
  auto word = [](uint64_t address) { return reinterpret_cast<uint32_t*>(address); };
  if (l.words[1] && reached(l.words[1], 4, l.device) && *word(l.words[1]) == 0) return;
  if (reached(l.words[0], 4, l.device)) ++*word(l.words[0]);
}

}  // namespace
}  // namespace quern::recording

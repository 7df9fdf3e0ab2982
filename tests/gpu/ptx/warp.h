#pragma once
// 32 threads of a block, and what their instructions work on.
#include <bit>
#include <cstring>

#include "tests/gpu/ptx/machine.h"
#include "tests/gpu/ptx/watch.h"

namespace quern::ptx {

/// What the warps of a launch share.
struct LaunchState {
  const Image& image;
  const Code& code;
  const Shape& shape;
  GlobalMemory& memory;
  const Schedule& schedule;
  Counts* counts;
  std::mt19937_64 random;
  uint64_t steps_left;
  Watch watch = {};  ///< of global memory
};

/// What the warps of a block share.
struct BlockState {
  std::array<unsigned, 3> index{};
  uint64_t number = 0;
  uint32_t barriers = 0;  ///< passed
  Watch watch;            ///< of shared memory
  std::vector<std::byte> shared;
};

class Warp {
 public:
  enum class State : uint8_t { ready, at_barrier, done };

  /// Threads from `first` of the block.
  Warp(LaunchState& launch, BlockState& block, unsigned first);

  /// Runs until all threads wait at a barrier or are done, or the turn is over.
  State run(uint64_t turn);
  /// Threads that wait at a barrier; the one they wait at.
  Lanes waiting(unsigned& barrier) const;
  /// Lets them go on.
  void pass_barrier();
  Lanes alive() const;

  // ---- for instructions

  uint64_t* to(int32_t number) { return &registers_[size_t(number) * warp_size]; }
  const uint64_t* from(int32_t number) const {
    return number >= 0 ? &registers_[size_t(number) * warp_size]
                       : &launch_.code.constants[size_t(~number) * warp_size];
  }
  Lanes& predicate(int32_t number) { return predicates_[size_t(number)]; }
  /// Sets the predicate for these lanes.
  void set_predicate(int32_t number, Lanes on, Lanes values) {
    Lanes& p = predicates_[size_t(number)];
    p = (p & ~on) | (values & on);
  }

  /// Where these bytes of a space lie; checks that they are there, and aligned, and shows them to the
  /// watch for races.
  std::byte* reach(const Inst& inst, Space space, uint64_t address, unsigned bytes, unsigned lane,
                   bool is_watched = true);
  bool is_watched() const { return launch_.schedule.watched; }
  /// The space that a generic address lies in, which becomes an address in that space.
  static Space space_of_generic(uint64_t& address);

  /// Where atomic operations of the lanes begin: any order is allowed.
  unsigned first_lane() {
    return launch_.schedule.switches ? unsigned(launch_.random() % warp_size) : 0;
  }

  Counts* counts() const { return launch_.counts; }
  LaunchState& launch() { return launch_; }
  [[noreturn]] void fault(int code, const Inst& inst, unsigned lane, const std::string& what) const;

 private:
  /// Threads at the same instruction.
  struct Group {
    Lanes lanes = 0;
    uint32_t pc = 0;
    bool at_barrier = false;
    bool waits = false;  ///< for the others that an instruction names
  };
  /// Threads that a branch has parted and that have not come to where they meet.
  struct Parted {
    uint32_t join = 0;
    Lanes lanes = 0;
  };
  size_t choose();
  bool waits_at_join(const Group& group) const;
  void step(size_t g);
  void branch(size_t g, const Inst& inst, Lanes taken);
  void part(uint32_t join, Lanes lanes);
  void leave(size_t g, Lanes lanes);
  bool all_have_come(const Group& group, const Inst& inst, Lanes lanes) const;
  void merge();
  Lanes guarded(const Group& g, const Inst& inst) const;
  void count(const Inst& inst, Lanes lanes);
  void watch(Watch& w, const Inst& inst, uint64_t address, unsigned bytes, unsigned lane);

  LaunchState& launch_;
  BlockState& block_;
  const unsigned first_;
  std::vector<uint64_t> registers_;
  std::vector<Lanes> predicates_;
  std::vector<std::byte> local_;
  std::vector<Group> groups_;
  std::vector<Parted> parted_;
  uint64_t divergent_steps_ = 0;  ///< since the threads were together
  GlobalMemory::Range last_;      ///< of global memory
};

// ---- values in registers: the low bits of a word, zeros above

template <class T>
T get(const uint64_t* r, unsigned lane) {
  T v;
  std::memcpy(&v, &r[lane], sizeof v);
  return v;
}
template <class T>
void put(uint64_t* r, unsigned lane, T v) {
  uint64_t word = 0;
  std::memcpy(&word, &v, sizeof v);
  r[lane] = word;
}

/// Calls f(lane) for each.
template <class F>
inline void for_lanes(Lanes on, F&& f) {
  if (on == all_lanes) {
    for (unsigned l = 0; l < warp_size; l++) f(l);
    return;
  }
  for (Lanes rest = on; rest; rest &= rest - 1) f(unsigned(std::countr_zero(rest)));
}

/// to[0] = F(inst, from[0], from[1], …), element by element.
template <class F, class D, class... S>
void map(Warp& w, const Inst& inst, Lanes on) {
  uint64_t* d = w.to(inst.to[0]);
  [&]<size_t... k>(std::index_sequence<k...>) {
    const uint64_t* s[] = {w.from(inst.from[k])...};
    for_lanes(on, [&](unsigned l) { put<D>(d, l, F()(inst, get<S>(s[k], l)...)); });
  }(std::index_sequence_for<S...>());
}

}  // namespace quern::ptx

#include "tests/gpu/ptx/warp.h"

#include <algorithm>

namespace quern::ptx {

namespace {
/// More than the loops take whose trips differ by thread, so that counts are those of hardware.
constexpr uint64_t most_steps_apart = 1 << 16, steps_of_turn = 256;

std::string hex(uint64_t v) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(v));
  return text;
}
std::string thread_of(const Shape& shape, unsigned number) {
  auto [x, y, z] = shape.block;
  std::string text = std::to_string(number % x);
  if (y * z > 1)
    text += "," + std::to_string(number / x % y) + "," + std::to_string(number / x / y);
  return text;
}
}  // namespace

Warp::Warp(LaunchState& launch, BlockState& block, unsigned first)
    : launch_(launch),
      block_(block),
      first_(first),
      registers_(size_t(launch.code.registers) * warp_size),
      predicates_(launch.code.predicates),
      local_(size_t(launch.code.local_bytes) * warp_size) {
  const auto threads = unsigned(launch.shape.threads_of_block());
  const unsigned count = std::min(warp_size, threads - first);
  groups_.push_back({count == warp_size ? all_lanes : (1u << count) - 1, 0, false, false});
  // What nobody has written is anything.
  uint64_t junk = launch.random() | 1;
  for (uint64_t& r : registers_) r = junk *= 0x5851f42d4c957f2d;
  for (Lanes& p : predicates_) p = Lanes(launch.random());
  std::ranges::fill(local_, std::byte(junk >> 56));
  const Shape& s = launch.shape;
  for (auto [special, number] : launch.code.special) {
    uint64_t* r = to(int32_t(number));
    for (unsigned l = 0; l < warp_size; l++) {
      const unsigned t = first + l;
      const unsigned values[] = {t % s.block[0],
                                 t / s.block[0] % s.block[1],
                                 t / s.block[0] / s.block[1],
                                 s.block[0],
                                 s.block[1],
                                 s.block[2],
                                 block.index[0],
                                 block.index[1],
                                 block.index[2],
                                 s.grid[0],
                                 s.grid[1],
                                 s.grid[2],
                                 l};
      r[l] = values[size_t(special)];
    }
  }
}

// ---- turns

Warp::State Warp::run(uint64_t turn) {
  while (!groups_.empty()) {
    const size_t g = choose();
    if (g == groups_.size()) return State::at_barrier;
    if (launch_.steps_left-- == 0)
      fault(Fault::timeout, launch_.code.code[groups_[g].pc], std::countr_zero(groups_[g].lanes),
            "the launch does not end");
    step(g);
    if (turn-- == 0) return groups_.empty() ? State::done : State::ready;
  }
  return State::done;
}

/// Threads that have parted wait for each other where they meet again, as on hardware; of those that
/// do not wait, the group that is behind runs, and at random points another. A warp that stays
/// apart for long gives each group turns: threads may spin until others do something. As many as
/// there are groups: all wait at a barrier.
size_t Warp::choose() {
  if (groups_.size() == 1) {
    parted_.clear();
    divergent_steps_ = 0;
    if (!groups_[0].at_barrier && !groups_[0].waits) return 0;
  }
  const size_t none = groups_.size();
  size_t found = none, behind = none;
  bool some_wait = false;
  for (size_t g = 0; g < groups_.size(); g++) {
    some_wait |= groups_[g].waits;
    if (groups_[g].at_barrier || groups_[g].waits) continue;
    if (behind == none || groups_[g].pc < groups_[behind].pc) behind = g;
    if (waits_at_join(groups_[g])) continue;
    if (found == none || groups_[g].pc < groups_[found].pc) found = g;
  }
  if (behind == none && some_wait) {
    const auto g = std::ranges::find_if(groups_, [](const Group& x) { return x.waits; });
    fault(Fault::launch_failed, launch_.code.code[g->pc], unsigned(std::countr_zero(g->lanes)),
          "waits for threads that do not come here");
  }
  if (behind == none) return none;
  if (found == none) found = behind;  // those that it waits for wait for it
  const bool in_turns = ++divergent_steps_ > most_steps_apart;
  if (!in_turns && !(launch_.schedule.switches && launch_.random() % 16 == 0)) return found;
  found = size_t(in_turns ? divergent_steps_ / steps_of_turn : launch_.random()) % groups_.size();
  while (groups_[found].at_barrier || groups_[found].waits) found = (found + 1) % groups_.size();
  return found;
}

bool Warp::waits_at_join(const Group& group) const {
  return std::ranges::any_of(parted_, [&](const Parted& p) {
    return p.join == group.pc && (p.lanes & group.lanes) && (p.lanes & ~group.lanes);
  });
}

Lanes Warp::guarded(const Group& g, const Inst& inst) const {
  if (inst.guard < 0) return g.lanes;
  const Lanes p = predicates_[size_t(inst.guard)];
  return g.lanes & (inst.guard_negated ? ~p : p);
}

void Warp::step(size_t g) {
  Group& group = groups_[g];
  const Inst& inst = launch_.code.code[group.pc];
  const Lanes lanes = guarded(group, inst);
  for (Parted& p : parted_)
    if (p.join == group.pc) p.lanes &= ~group.lanes;
  const bool joint = inst.control == Inst::together || inst.control == Inst::warp_barrier;
  if (joint && !all_have_come(group, inst, lanes)) {
    group.waits = true;
    merge();
    return;
  }
  if (launch_.counts) count(inst, lanes);
  switch (inst.control) {
    case Inst::plain:
    case Inst::together:
    case Inst::warp_barrier:
      if (lanes && inst.run) inst.run(*this, inst, lanes);
      group.pc++;
      break;
    case Inst::branch: branch(g, inst, lanes); break;
    case Inst::leave: leave(g, lanes); break;
    case Inst::barrier:
      if (lanes != group.lanes)
        fault(Fault::launch_failed, inst, unsigned(std::countr_zero(group.lanes)),
              "a barrier for some threads only");
      group.at_barrier = true;
      return;  // it goes on with the block
  }
  if (groups_.size() > 1) merge();
}

void Warp::branch(size_t g, const Inst& inst, Lanes taken) {
  Group& group = groups_[g];
  const Lanes rest = group.lanes & ~taken;
  if (!rest) {
    group.pc = inst.target;
  } else if (!taken) {
    group.pc++;
  } else {
    part(inst.join, group.lanes);
    group.lanes = rest;
    group.pc++;
    groups_.push_back({taken, inst.target, false, false});
  }
}

/// A loop parts its threads again and again, for one join.
void Warp::part(uint32_t join, Lanes lanes) {
  std::erase_if(parted_, [](const Parted& p) { return p.lanes == 0; });
  auto covers = [&](const Parted& p) { return p.join == join && (lanes & ~p.lanes) == 0; };
  if (join != no_join && std::ranges::none_of(parted_, covers)) parted_.push_back({join, lanes});
}

void Warp::leave(size_t g, Lanes lanes) {
  for (Parted& p : parted_) p.lanes &= ~lanes;
  groups_[g].lanes &= ~lanes;
  groups_[g].pc++;
  if (!groups_[g].lanes) groups_.erase(groups_.begin() + long(g));
}

/// Whether all threads are here that the last source of such an instruction names.
bool Warp::all_have_come(const Group& group, const Inst& inst, Lanes lanes) const {
  if (lanes != group.lanes)
    fault(Fault::launch_failed, inst, unsigned(std::countr_zero(group.lanes)),
          "an instruction of threads together, for some of them only");
  const uint64_t* masks = from(inst.from[4]);
  const unsigned first = unsigned(std::countr_zero(lanes));
  const Lanes named = Lanes(masks[first]);
  for_lanes(lanes, [&](unsigned l) {
    if (Lanes(masks[l]) != named)
      fault(Fault::launch_failed, inst, l, "threads that name different threads");
    if (!(named >> l & 1))
      fault(Fault::launch_failed, inst, l, "a thread that does not name itself");
  });
  if (named & ~alive()) fault(Fault::launch_failed, inst, first, "names threads that are gone");
  return (named & ~lanes) == 0;
}

/// Threads at the same instruction go on together.
void Warp::merge() {
  for (size_t a = 0; a < groups_.size(); a++) {
    for (size_t b = a + 1; b < groups_.size();) {
      if (groups_[a].pc == groups_[b].pc && groups_[a].at_barrier == groups_[b].at_barrier) {
        groups_[a].lanes |= groups_[b].lanes;
        groups_[a].waits = false;
        groups_.erase(groups_.begin() + long(b));
      } else {
        b++;
      }
    }
  }
}

Lanes Warp::alive() const {
  Lanes all = 0;
  for (const Group& g : groups_) all |= g.lanes;
  return all;
}

Lanes Warp::waiting(unsigned& barrier) const {
  Lanes all = 0;
  for (const Group& g : groups_) {
    if (!g.at_barrier) continue;
    all |= g.lanes;
    barrier = launch_.code.code[g.pc].operation;
  }
  return all;
}

void Warp::pass_barrier() {
  for (Group& g : groups_) {
    g.at_barrier = false;
    g.pc++;
  }
  merge();
}

void Warp::count(const Inst& inst, Lanes lanes) {
  Counts& c = *launch_.counts;
  c.instructions[size_t(inst.counted)]++;
  c.lanes[size_t(inst.counted)] += unsigned(std::popcount(lanes));
}

// ---- memory

Space Warp::space_of_generic(uint64_t& address) {
  const std::pair<uint64_t, Space> windows[] = {{local_window, Space::local},
                                                {shared_window, Space::shared},
                                                {constant_window, Space::constant}};
  for (auto [window, space] : windows) {
    if (address - window >= window_bytes) continue;
    address -= window;
    return space;
  }
  return Space::global;
}

std::byte* Warp::reach(const Inst& inst, Space space, uint64_t address, unsigned bytes,
                       unsigned lane, bool is_watched) {
  const uint64_t asked = address;
  if (space == Space::generic) space = space_of_generic(address);
  if (address % bytes != 0)
    fault(Fault::misaligned, inst, lane,
          "address " + hex(asked) + " is not a multiple of " + std::to_string(bytes));
  std::byte* memory = nullptr;
  uint64_t size = 0;
  switch (space) {
    case Space::global:
      if (address < last_.begin || address + bytes > last_.end)
        last_ = launch_.memory.range_of(address);
      if (address < last_.begin || address + bytes > last_.end || address + bytes < address)
        fault(Fault::illegal_address, inst, lane,
              std::to_string(bytes) + " bytes at " + hex(asked) + " are not allocated" +
                  (last_.host ? ": the allocation ends at " + hex(last_.end) : ""));
      if (is_watched && launch_.schedule.watched) watch(launch_.watch, inst, address, bytes, lane);
      return last_.host + (address - last_.begin);
    case Space::shared:
      if (is_watched && launch_.schedule.watched) watch(block_.watch, inst, address, bytes, lane);
      memory = block_.shared.data();
      size = block_.shared.size();
      break;
    case Space::local:
      memory = local_.data() + lane * launch_.code.local_bytes;
      size = launch_.code.local_bytes;
      break;
    case Space::param:
      memory = const_cast<std::byte*>(launch_.shape.parameters.data());
      size = launch_.shape.parameters.size();
      break;
    case Space::constant:
      memory = const_cast<std::byte*>(
          reinterpret_cast<const std::byte*>(launch_.image.constants.data()));
      size = launch_.image.constants.size();
      break;
    case Space::generic: break;
  }
  if (address > size || bytes > size - address)
    fault(Fault::illegal_address, inst, lane,
          std::to_string(bytes) + " bytes at " + hex(asked) + " of a memory of " +
              std::to_string(size) + " bytes");
  return memory + address;
}

void Warp::watch(Watch& w, const Inst& inst, uint64_t address, unsigned bytes, unsigned lane) {
  const Watch::Kind kind = inst.counted == Class::atomic  ? Watch::updates
                           : inst.counted == Class::store ? Watch::writes
                           : inst.read_only               ? Watch::reads_constant
                                                          : Watch::reads;
  const std::string wrong = w.access(address, bytes, kind,
                                     {block_.number, first_ + lane, block_.barriers, inst.line,
                                      inst.strong, false, inst.type.bytes()});
  if (!wrong.empty()) fault(Fault::launch_failed, inst, lane, "a race: " + wrong);
}

void Warp::fault(int code, const Inst& inst, unsigned lane, const std::string& what) const {
  auto [x, y, z] = block_.index;
  std::string block = std::to_string(x);
  if (launch_.shape.grid[1] * launch_.shape.grid[2] > 1)
    block += "," + std::to_string(y) + "," + std::to_string(z);
  throw Fault(code, what + ": block " + block + ", thread " +
                        thread_of(launch_.shape, first_ + lane) + ", kernel " + launch_.code.name +
                        ", PTX line " + std::to_string(inst.line) + ", " + *inst.text);
}

}  // namespace quern::ptx

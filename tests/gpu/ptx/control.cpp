// Branches, and what the threads of a warp or block do together (PTX ISA, "Control Flow
// Instructions", "Parallel Synchronization and Communication Instructions").
#include <bit>

#include "tests/gpu/ptx/arithmetic.h"

namespace quern::ptx {

namespace {

constexpr Type b32{Type::bits, 32}, b64{Type::bits, 64};

void decode_bra(Decoder& d) {
  Words words = d.words();
  words.take("uni");
  words.finish(1);
  Inst& inst = d.inst();
  inst.control = Inst::branch;
  inst.counted = Class::branch;
  inst.target = d.label(d.operand(0).name);
}

void decode_leave(Decoder& d) {
  Words words = d.words();
  words.take("uni");
  words.finish(0);
  d.inst().control = Inst::leave;
  d.inst().counted = Class::branch;
}

void trap(Warp& w, const Inst& inst, Lanes on) {
  w.fault(Fault::launch_failed, inst, unsigned(std::countr_zero(on)), "a trap");
}
void decode_trap(Decoder& d) {
  d.words().finish(0);
  d.inst().counted = Class::branch;
  d.inst().run = trap;
}

// ---- barriers

/// bar.sync of a whole block; bar.warp.sync.
void decode_bar(Decoder& d) {
  Words words = d.words();
  Inst& inst = d.inst();
  inst.counted = Class::barrier;
  if (words.take("warp")) {
    if (!words.take("sync")) throw words.refused("only sync is known in");
    words.finish(1);
    inst.control = Inst::warp_barrier;
    d.from(4, 0, b32);
    return;
  }
  words.take("cta");
  if (!words.take("sync")) throw words.refused("only sync is known in");
  words.take("aligned");
  words.finish(1);
  const Operand& number = d.operand(0);
  if (number.kind != Operand::number || number.value > 15)
    throw words.refused("no barrier's number in");
  inst.control = Inst::barrier;
  inst.operation = uint8_t(number.value);
}

// ---- shuffles

enum Shuffle : uint8_t { up, down, butterfly, index };

/// Of lane l the lane it reads, and whether that is in its part of the warp.
unsigned source_lane(Shuffle mode, unsigned l, uint32_t b, uint32_t c, bool& inside) {
  const unsigned mask = c >> 8 & 31, clamp = c & 31, by = b & 31;
  const unsigned most = (l & mask) | (clamp & ~mask), least = l & mask;
  unsigned from = 0;
  switch (mode) {
    case up:
      from = l - by;
      inside = int(l) - int(by) >= int(most);
      break;
    case down:
      from = l + by;
      inside = from <= most;
      break;
    case butterfly:
      from = l ^ by;
      inside = from <= most;
      break;
    case index:
      from = least | (by & ~mask);
      inside = from <= most;
      break;
  }
  return inside ? from : l;
}

void shuffle(Warp& w, const Inst& inst, Lanes on) {
  const uint64_t *a = w.from(inst.from[0]), *b = w.from(inst.from[1]), *c = w.from(inst.from[2]);
  uint64_t values[warp_size];
  Lanes found = 0;
  for_lanes(on, [&](unsigned l) {
    bool inside = false;
    const unsigned from =
        source_lane(Shuffle(inst.operation), l, uint32_t(b[l]), uint32_t(c[l]), inside);
    if (inside && !(on >> from & 1))
      w.fault(Fault::launch_failed, inst, l,
              "reads lane " + std::to_string(from) + ", which does not take part");
    values[l] = uint32_t(a[from]);
    found |= Lanes(inside) << l;
  });
  for_lanes(on, [&](unsigned l) { w.to(inst.to[0])[l] = values[l]; });
  if (inst.to[1] >= 0) w.set_predicate(inst.to[1], on, found);
}

void decode_shfl(Decoder& d) {
  Words words = d.words();
  Inst& inst = d.inst();
  if (!words.take("sync")) throw words.refused("only sync is known in");
  const char* const modes[] = {"up", "down", "bfly", "idx"};
  const int mode = words.take_one_of(modes);
  if (mode < 0) throw words.refused("an unknown direction in");
  if (words.take_type() != b32) throw words.refused("words are b32, not in");
  words.finish(5);
  inst.operation = uint8_t(mode);
  Operand to = d.operand(0);
  if (!to.second.empty()) inst.to[1] = d.predicate(to.second);
  to.second.clear();
  d.to(0, to, b32);
  for (size_t k = 0; k < 3; k++) d.from(k, k + 1, b32);
  d.from(4, 4, b32);
  inst.control = Inst::together;
  inst.counted = Class::shuffle;
  inst.run = shuffle;
}

// ---- votes

enum Vote : uint8_t { all, any, uniform, ballot };

void vote(Warp& w, const Inst& inst, Lanes on) {
  Lanes p = w.predicate(inst.from[0]);
  if (inst.saturate) p = ~p;  // !%p
  p &= on;
  const bool answer = inst.operation == all   ? p == on
                      : inst.operation == any ? p != 0
                                              : p == on || p == 0;
  if (inst.operation == ballot)
    for_lanes(on, [&](unsigned l) { w.to(inst.to[0])[l] = p; });
  else
    w.set_predicate(inst.to[0], on, answer ? all_lanes : 0);
}

void decode_vote(Decoder& d) {
  Words words = d.words();
  Inst& inst = d.inst();
  if (!words.take("sync")) throw words.refused("only sync is known in");
  const char* const modes[] = {"all", "any", "uni", "ballot"};
  const int mode = words.take_one_of(modes);
  if (mode < 0) throw words.refused("an unknown vote in");
  const Type t = words.take_type();
  words.finish(3);
  inst.operation = uint8_t(mode);
  if (mode == ballot)
    d.to(0, 0, t);
  else
    inst.to[0] = d.predicate(0);
  inst.from[0] = d.predicate(1, true);
  inst.saturate = d.operand(1).negated;
  d.from(4, 2, b32);
  inst.control = Inst::together;
  inst.counted = Class::shuffle;
  inst.run = vote;
}

// ---- matches

/// The lanes that take part, where all have one value.
void match_all(Warp& w, const Inst& inst, Lanes on) {
  const uint64_t* v = w.from(inst.from[0]);
  const uint64_t one = v[std::countr_zero(on)];
  bool alike = true;
  for_lanes(on, [&](unsigned l) { alike &= v[l] == one; });
  for_lanes(on, [&](unsigned l) { w.to(inst.to[0])[l] = alike ? on : 0; });
  if (inst.to[1] >= 0) w.set_predicate(inst.to[1], on, alike ? all_lanes : 0);
}

void decode_match(Decoder& d) {
  Words words = d.words();
  Inst& inst = d.inst();
  if (!words.take("all")) throw words.refused("only all is known in");
  if (!words.take("sync")) throw words.refused("only sync is known in");
  const Type t = words.take_type();
  if (t != b32 && t != b64) throw words.refused("b32 or b64 are compared, not in");
  words.finish(3);
  Operand to = d.operand(0);
  if (!to.second.empty()) inst.to[1] = d.predicate(to.second);
  to.second.clear();
  d.to(0, to, b32);
  d.from(0, 1, t);
  d.from(4, 2, b32);
  inst.control = Inst::together;
  inst.counted = Class::shuffle;
  inst.run = match_all;
}

void active(Warp& w, const Inst& inst, Lanes on) {
  for_lanes(on, [&](unsigned l) { w.to(inst.to[0])[l] = on; });
}
void decode_activemask(Decoder& d) {
  Words words = d.words();
  if (words.take_type() != b32) throw words.refused("masks are b32, not in");
  words.finish(1);
  d.to(0, 0, b32);
  d.inst().counted = Class::shuffle;
  d.inst().run = active;
}

}  // namespace

const Family& control_family() {
  static const Family family = {{"bra", decode_bra},     {"ret", decode_leave},
                                {"exit", decode_leave},  {"trap", decode_trap},
                                {"bar", decode_bar},     {"barrier", decode_bar},
                                {"shfl", decode_shfl},   {"vote", decode_vote},
                                {"match", decode_match}, {"activemask", decode_activemask}};
  return family;
}

}  // namespace quern::ptx

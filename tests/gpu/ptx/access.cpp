// Loads, stores and atomic operations (PTX ISA, "Data Movement and Conversion Instructions",
// "Parallel Synchronization and Communication Instructions").
#include <cmath>

#include "tests/gpu/ptx/arithmetic.h"

namespace quern::ptx {

namespace {

constexpr uint64_t sector_bytes = 32;
constexpr unsigned banks = 32, bank_bytes = 4;

uint64_t address_of(const Inst& inst, uint64_t base) {
  return (base & inst.address_mask) + uint64_t(inst.offset);
}

// ---- counts

/// Sectors that a request of a warp touches, beside those that its bytes would fill.
void count_sectors(Counts& c, const uint64_t* addresses, Lanes on, unsigned bytes) {
  uint64_t touched[2 * warp_size];
  size_t n = 0;
  for_lanes(on, [&](unsigned l) {
    for (uint64_t s = addresses[l] / sector_bytes; s <= (addresses[l] + bytes - 1) / sector_bytes;
         s++)
      touched[n++] = s;
  });
  std::sort(touched, touched + n);
  uint64_t distinct[warp_size];
  size_t lanes = 0;
  for_lanes(on, [&](unsigned l) { distinct[lanes++] = addresses[l]; });
  std::sort(distinct, distinct + lanes);
  const auto different = size_t(std::unique(distinct, distinct + lanes) - distinct);
  c.requests++;
  c.sectors += uint64_t(std::unique(touched, touched + n) - touched);
  c.ideal_sectors += (different * bytes + sector_bytes - 1) / sector_bytes;
}

/// Passes that shared memory needs: words of one bank come one after another.
void count_passes(Counts& c, const uint64_t* addresses, Lanes on, unsigned bytes) {
  uint64_t words[warp_size * 4];
  size_t n = 0;
  for_lanes(on, [&](unsigned l) {
    for (uint64_t w = addresses[l] / bank_bytes; w <= (addresses[l] + bytes - 1) / bank_bytes; w++)
      words[n++] = w;
  });
  std::sort(words, words + n);
  n = size_t(std::unique(words, words + n) - words);
  unsigned most = 1, in_bank[banks] = {};
  for (size_t k = 0; k < n; k++) most = std::max(most, ++in_bank[words[k] % banks]);
  c.shared_requests++;
  c.shared_passes += most;
  c.ideal_shared_passes += (n + banks - 1) / banks;
}

struct Addresses {
  uint64_t of_lane[warp_size];
  Addresses(Warp& w, const Inst& inst, Lanes on) {
    const uint64_t* base = w.from(inst.from[0]);
    for_lanes(on, [&](unsigned l) { of_lane[l] = address_of(inst, base[l]); });
  }
};

/// For accesses that were found right; generic ones by where they lie.
void count_access(Counts& c, const Inst& inst, Addresses at, Lanes on, unsigned bytes) {
  Lanes global = inst.space == Space::global ? on : 0;
  Lanes shared = inst.space == Space::shared ? on : 0;
  if (inst.space == Space::generic)
    for_lanes(on, [&](unsigned l) {
      const Space space = Warp::space_of_generic(at.of_lane[l]);
      if (space == Space::global) global |= 1u << l;
      if (space == Space::shared) shared |= 1u << l;
    });
  if (global) count_sectors(c, at.of_lane, global, bytes);
  if (shared) count_passes(c, at.of_lane, shared, bytes);
}

// ---- loads and stores

/// T as it lies in memory; signed ones are extended to the register.
template <class T>
void load(Warp& w, const Inst& inst, Lanes on) {
  const unsigned bytes = unsigned(sizeof(T)) * inst.count;
  const Addresses addresses(w, inst, on);
  for_lanes(on, [&](unsigned l) {
    const std::byte* at = w.reach(inst, inst.space, addresses.of_lane[l], bytes, l);
    for (unsigned k = 0; k < inst.count; k++) {
      T v;
      std::memcpy(&v, at + k * sizeof v, sizeof v);
      if (inst.to[k] >= 0) w.to(inst.to[k])[l] = uint64_t(v);
    }
  });
  if (w.counts()) count_access(*w.counts(), inst, addresses, on, bytes);
}

template <class T>
void store(Warp& w, const Inst& inst, Lanes on) {
  const unsigned bytes = unsigned(sizeof(T)) * inst.count;
  const Addresses addresses(w, inst, on);
  for_lanes(on, [&](unsigned l) {
    std::byte* at = w.reach(inst, inst.space, addresses.of_lane[l], bytes, l);
    for (unsigned k = 0; k < inst.count; k++) {
      const T v = T(w.from(inst.from[k + 1])[l]);
      std::memcpy(at + k * sizeof v, &v, sizeof v);
    }
  });
  if (w.counts()) count_access(*w.counts(), inst, addresses, on, bytes);
}

Handler loader(Type t) {
  if (t.kind == Type::signed_) {
    switch (t.width) {
      case 8: return &load<int8_t>;
      case 16: return &load<int16_t>;
      case 32: return &load<int32_t>;
      default: return &load<int64_t>;
    }
  }
  switch (t.width) {
    case 8: return &load<uint8_t>;
    case 16: return &load<uint16_t>;
    case 32: return &load<uint32_t>;
    default: return &load<uint64_t>;
  }
}
Handler storer(Type t) {
  switch (t.width) {
    case 8: return &store<uint8_t>;
    case 16: return &store<uint16_t>;
    case 32: return &store<uint32_t>;
    default: return &store<uint64_t>;
  }
}

/// Orders and scopes change nothing here: one instruction runs after the other.
void take_order(Words& words, Inst& inst) {
  const char* const orders[] = {"weak", "volatile", "relaxed", "acquire", "release", "acq_rel"};
  const char* const scopes[] = {"cta", "cluster", "gpu", "sys"};
  const int order = words.take_one_of(orders);
  inst.strong |= order > 0;
  if (order >= 2 || order < 0) words.take_one_of(scopes);
}

void take_space(Words& words, Inst& inst, std::initializer_list<const char*> allowed) {
  for (const char* name : allowed)
    if (words.take(name)) {
      space_of(name, inst.space);
      return;
    }
}

void decode_access(Decoder& d, bool loads) {
  Words words = d.words();
  Inst& inst = d.inst();
  take_order(words, inst);
  if (loads)
    take_space(words, inst, {"global", "shared", "local", "param", "const"});
  else
    take_space(words, inst, {"global", "shared", "local"});  // st.param was made local
  if (loads && words.take("nc")) {
    if (inst.space != Space::global) throw words.refused("nc is of global memory, not in");
    inst.read_only = true;
  }
  const char* const vectors[] = {"v2", "v4"};
  const int vector = words.take_one_of(vectors);
  inst.count = vector < 0 ? 1 : vector == 0 ? 2 : 4;
  const Type t = words.take_type();
  words.finish(2);
  if (t.kind == Type::predicate) throw words.refused("a predicate in memory,");
  if (inst.count * t.bytes() > 16) throw words.refused("more than 16 bytes in");
  inst.type = t;
  // Parameters are operands of machine code: a load of one is a move.
  inst.counted = inst.space == Space::param ? Class::move : loads ? Class::load : Class::store;
  d.address(loads ? 1 : 0);
  const Operand& values = d.operand(loads ? 0 : 1);
  const bool wider = t.kind != Type::floating;
  auto element = [&](size_t k, const Operand& o) {
    if (loads)
      d.to(k, o, t, wider);
    else
      d.from(k + 1, o, t, wider);
  };
  if (inst.count == 1) {
    element(0, values);
  } else {
    if (values.kind != Operand::vector || values.elements.size() != inst.count)
      throw words.refused("no vector of that length in");
    for (size_t k = 0; k < inst.count; k++) element(k, values.elements[k]);
  }
  inst.run = loads ? loader(t) : storer(t);
}

// ---- atomics

float flushed(float v) { return std::fpclassify(v) == FP_SUBNORMAL ? std::copysign(0.0f, v) : v; }

template <class T>
T combined(const Inst& inst, T old, T b, T c) {
  switch (Atomic(inst.operation)) {
    case Atomic::add:
      if constexpr (std::is_same_v<T, float>)
        return inst.flush ? flushed(flushed(old) + flushed(b)) : old + b;
      else
        return T(old + b);
    case Atomic::min: return std::min(old, b);
    case Atomic::max: return std::max(old, b);
    case Atomic::exchange: return b;
    case Atomic::compare_and_swap: return old == b ? c : old;
    case Atomic::increment: return old >= b ? T(0) : T(old + T(1));
    case Atomic::decrement: return old == T(0) || old > b ? b : T(old - T(1));
    default: break;
  }
  if constexpr (std::is_integral_v<T>) {
    switch (Atomic(inst.operation)) {
      case Atomic::and_: return T(old & b);
      case Atomic::or_: return T(old | b);
      case Atomic::xor_: return T(old ^ b);
      default: break;
    }
  }
  return old;
}

void count_atomics(Counts& c, const Addresses& at, Lanes on) {
  uint64_t addresses[warp_size];
  size_t n = 0;
  for_lanes(on, [&](unsigned l) { addresses[n++] = at.of_lane[l]; });
  std::sort(addresses, addresses + n);
  c.atomics += n;
  c.colliding_atomics += n - size_t(std::unique(addresses, addresses + n) - addresses);
}

/// The lanes come one after the other, in an order of the schedule's.
template <class T>
void update(Warp& w, const Inst& inst, Lanes on) {
  const Addresses addresses(w, inst, on);
  const uint64_t *b = w.from(inst.from[1]), *c = w.from(inst.from[2]);
  // A compare-and-swap of a word stands for an update of the bytes that it changes: beside it others
  // may write the rest of the word, and make it fail.
  const bool swaps = Atomic(inst.operation) == Atomic::compare_and_swap;
  auto show = [&](unsigned l, T old, T next) {
    const auto before = std::bit_cast<std::array<std::byte, sizeof(T)>>(old);
    const auto after = std::bit_cast<std::array<std::byte, sizeof(T)>>(next);
    for (unsigned k = 0; k < sizeof(T); k++)
      if (before[k] != after[k]) w.reach(inst, inst.space, addresses.of_lane[l] + k, 1, l);
  };
  auto one = [&](unsigned l) {
    std::byte* at = w.reach(inst, inst.space, addresses.of_lane[l], sizeof(T), l, !swaps);
    T old;
    std::memcpy(&old, at, sizeof old);
    const T next = combined(inst, old, get<T>(b, l), get<T>(c, l));
    std::memcpy(at, &next, sizeof next);
    if (swaps && w.is_watched()) show(l, old, next);
    if (inst.to[0] >= 0) put<T>(w.to(inst.to[0]), l, old);
  };
  const unsigned turn = w.first_lane();
  for (unsigned k = 0; k < warp_size; k++)
    if (const unsigned l = (k + turn) % warp_size; on >> l & 1) one(l);
  if (!w.counts()) return;
  count_access(*w.counts(), inst, addresses, on, sizeof(T));
  count_atomics(*w.counts(), addresses, on);
}

Handler updater(Type t) {
  if (t.kind == Type::floating)
    return t.width == 32 ? &update<float> : t.width == 64 ? &update<double> : nullptr;
  if (t.width < 32) return t.width == 16 ? &update<uint16_t> : nullptr;
  return for_integer(t, []<class T> { return Handler(&update<T>); });
}

bool is_allowed(Atomic a, Type t) {
  switch (a) {
    case Atomic::add:
      return t.kind == Type::floating ? t.width >= 32
                                      : t != Type{Type::signed_, 64} && t.kind != Type::bits;
    case Atomic::min:
    case Atomic::max: return t.kind == Type::signed_ || t.kind == Type::unsigned_;
    case Atomic::and_:
    case Atomic::or_:
    case Atomic::xor_:
    case Atomic::exchange: return t.kind == Type::bits && t.width >= 32;
    case Atomic::compare_and_swap: return t.kind == Type::bits;
    case Atomic::increment:
    case Atomic::decrement: return t == Type{Type::unsigned_, 32};
  }
  return false;
}

void decode_atomic(Decoder& d) {
  Words words = d.words();
  Inst& inst = d.inst();
  const bool returns = words.first() == "atom";
  take_order(words, inst);
  take_space(words, inst, {"global", "shared"});
  take_order(words, inst);
  inst.strong = true;
  const char* const operations[] = {"add", "min",  "max", "and", "or",
                                    "xor", "exch", "cas", "inc", "dec"};
  const int operation = words.take_one_of(operations);
  if (operation < 0) throw words.refused("an unknown operation,");
  inst.operation = uint8_t(operation);
  const Type t = words.take_type();
  const bool swaps = Atomic(operation) == Atomic::compare_and_swap;
  inst.type = t;
  if (!is_allowed(Atomic(operation), t)) throw words.refused(name_of(t) + " is no type of");
  words.finish((returns ? 3u : 2u) + swaps);
  const size_t first = returns ? 1 : 0;
  if (returns) d.to(0, 0, t);
  d.address(first);
  d.from(1, first + 1, t);
  if (swaps)
    d.from(2, first + 2, t);
  else
    inst.from[2] = inst.from[1];
  // Sums of f32 in global memory are without subnormal numbers.
  inst.flush = inst.space != Space::shared;
  inst.counted = Class::atomic;
  inst.run = updater(t);
  if (!inst.run) throw words.refused("this type is not known in");
}

void nothing(Warp&, const Inst&, Lanes) {}
/// What one instruction writes, the next one sees.
void decode_fence(Decoder& d) {
  d.inst().counted = Class::barrier;
  d.inst().run = nothing;
}

}  // namespace

const Family& memory_family() {
  static const Family family = {{"ld", [](Decoder& d) { decode_access(d, true); }},
                                {"st", [](Decoder& d) { decode_access(d, false); }},
                                {"atom", decode_atomic},
                                {"red", decode_atomic},
                                {"membar", decode_fence},
                                {"fence", decode_fence}};
  return family;
}

}  // namespace quern::ptx

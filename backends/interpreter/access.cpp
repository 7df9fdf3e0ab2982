// Memory, slots and what reaches the host.
#include <algorithm>

#include "backends/interpreter/memory.h"
#include "backends/interpreter/thread.h"
#include "ir/analysis/facts.h"

namespace quern::interpreter {

using namespace ir;

namespace {
Bits convert(Bits v, Type from, Type to) {
  Bits out = v;
  if (from != to) evaluate(Op::convert, from, to, {&v, 1}, out);
  return out;
}

/// An index as a number that is huge where it is negative.
uint64_t position(Bits bits, Type t) { return is_signed(t) ? uint64_t(to_signed(bits, t)) : bits; }
}  // namespace

bool Thread::locate_cell(const Step& s, size_t indices, Location& to) {
  uint64_t cell = s.inst->component();
  if (indices) cell += position(operand(s, 0), s.inst->operand(0)->type);
  if (cell >= kernel_.frame.size()) return false;
  to = {launch_.cell_address(cell), s.elem, storage_type(s.elem)};
  return true;
}

bool Thread::locate(const Step& s, size_t indices, Location& to) {
  const Binding& binding = kernel_.bindings[s.inst->binding()];
  if (binding.kind == Binding::frame) return locate_cell(s, indices, to);
  const abi::Place& place = code_.layout.places[s.inst->binding()];
  uint32_t component = s.inst->component();
  const Type storage = binding.encoding(component);
  Bits address = read_at<Bits>(launch_.args, place.base(component));
  for (uint32_t axis = 0; axis < place.rank; axis++) {
    uint64_t at = position(operand(s, axis), s.inst->operand(axis)->type);
    uint64_t extent = read_at<uint64_t>(launch_.args, place.extent(axis));
    uint64_t first = read_at<uint64_t>(launch_.args, place.first(axis));
    if (at - first >= extent) {
      const Bits values[] = {at, axis, extent, first};
      std::string what = "index " + std::to_string(int64_t(at)) + " on axis " +
                         std::to_string(axis) + " of " +
                         (binding.name.empty() ? "a field" : binding.name) +
                         " is out of range: the extent is " + std::to_string(extent);
      if (first != 0) what += ", the first index " + std::to_string(int64_t(first));
      out_of_range(s, std::span(values).first(binding.zero_based ? 3 : 4), what);
      return false;
    }
    const uint64_t stride = read_at<uint64_t>(launch_.args, place.stride(component, axis));
    at += read_at<uint64_t>(launch_.args, place.origin(axis));
    const int64_t outermost =
        binding.layout.split(axis, int64_t(at), [&](int64_t digit, int64_t, int64_t apart) {
          address += uint64_t(digit * binding.layout.bytes(apart, byte_size(storage)));
        });
    address += uint64_t(outermost) * stride;
  }
  to = {address, binding.components[component].type, storage};
  return true;
}

Bits* Thread::element(const Step& s, bool indexed) {
  Bits first = operand(s, 0);
  if (!indexed) return touched(s, first);
  uint64_t count = s.inst->operand(0)->inst->imm;
  uint64_t at = position(operand(s, 1), s.inst->operand(1)->type);
  if (at < count) return touched(s, first + at);
  const Bits values[] = {at, count};
  out_of_range(s, values,
               "index " + std::to_string(int64_t(at)) + " is out of range of an array of " +
                   std::to_string(count) + " elements");
  return nullptr;
}

/// An element of a slot that is by_round is accessed by one round of a walk.
Bits* Thread::touched(const Step& s, size_t element) {
  if (s.inst->operand(0)->inst->kind & by_round) {
    uint64_t& last = touched_[element];
    if (last >= first_of_walk_ && last != walk_rounds_)
      throw InternalError("two rounds of a walk access an element of a slot that is by_round");
    last = walk_rounds_;
  }
  return &slots_[element];
}

void Thread::slot(const Step& s) {
  const auto first = int64_t(value(s.result)), count = int64_t(s.imm);
  std::fill_n(slots_.begin() + first, count, 0);
  std::fill_n(touched_.begin() + first, count, 0);
  std::fill(unset_.begin() + first, unset_.begin() + first + count, (s.kind & unset) != 0);
}

void Thread::get(const Step& s) {
  const Bits* at = element(s, s.count > 1);
  if (at && unset_[size_t(at - slots_.data())])
    throw InternalError("an element of a slot is read that was never put");
  set(s, at ? *at : 0);
}

void Thread::put(const Step& s) {
  Bits* at = element(s, s.count > 2);
  if (!at) return;
  *at = operand(s, s.count - 1);
  unset_[size_t(at - slots_.data())] = false;
}

void Thread::load(const Step& s) {
  Location at;
  if (!locate(s, s.count, at)) return set(s, 0);
  if (watches_races()) race(s, launch_.races.read(at.address, {iteration_, s.inst}));
  set(s, convert(read_memory(at.storage, at.address), at.storage, at.value));
}

void Thread::store(const Step& s) {
  Location at;
  if (!locate(s, s.count - 1, at)) return;
  Bits bits = convert(operand(s, s.count - 1), at.value, at.storage);
  if (watches_races()) race(s, launch_.races.write(at.address, {iteration_, s.inst, bits}));
  write_memory(at.storage, at.address, bits);
}

void Thread::atomic(const Step& s) {
  AtomicOp op = s.inst->atomic();
  size_t values = op == AtomicOp::cas ? 2 : op == AtomicOp::load ? 0 : 1;
  Location at;
  if (!locate(s, s.count - values, at)) return set(s, 0);
  if (watches_races())
    race(s, launch_.races.atomic(at.address, {iteration_, s.inst}, op != AtomicOp::load));
  Bits in[2] = {};
  for (size_t k = 0; k < values; k++)
    in[k] = convert(operand(s, s.count - values + k), at.value, at.storage);
  set(s, convert(update(op, at.storage, at.address, in), at.storage, at.value));
}

void Thread::rmw(const Step& s) {
  if (is_hint(s.inst)) return;
  Bits in[2] = {};
  for (size_t k = 1; k < s.count; k++) in[k - 1] = operand(s, k);
  set(s, update(s.inst->atomic(), s.elem, aligned_address(s), in));
}

/// Of an access below access lowering: at its natural alignment.
Bits Thread::aligned_address(const Step& s) const {
  const Bits at = operand(s, 0);
  if (at & (stored_bytes(s.elem) - 1)) throw InternalError("an address is not aligned");
  return at;
}

Bits Thread::update(AtomicOp op, Type type, Bits address, const Bits (&in)[2]) {
  Bits old = read_memory(type, address);
  if (op == AtomicOp::cas) {
    if (old == in[0]) write_memory(type, address, in[1]);
  } else if (op != AtomicOp::load) {
    write_memory(type, address, combine(op, type, old, in[0]));
  }
  return old;
}

Bits Thread::arg(const Step& s) const {
  Bits word = read_at<Bits>(launch_.args, s.imm);
  return s.type == Type::address ? word : truncate(word, s.type);
}

Bits Thread::builtin(const Step& s) const {
  switch (s.inst->builtin()) {
    case Builtin::chunk: return part_.chunk;
    case Builtin::begin: return part_.begin;
    case Builtin::end: return part_.end;
    case Builtin::thread: return part_.thread;
    case Builtin::threads: return part_.threads;
    case Builtin::block_thread: return part_.block_thread;
    case Builtin::first_row:
    case Builtin::reciprocal: return part_.words[0];
    case Builtin::rows:
    case Builtin::next_reciprocal: return part_.words[1];
    case Builtin::asks: return 1;
    case Builtin::iteration: return iteration_;
  }
  return 0;
}

// ---- what reaches the host

/// How many values a check tells.
size_t Thread::told_by(const Step& s) const { return kernel_.sites[s.inst->site].values.size(); }

void Thread::fail(const Step& s, std::span<const Bits> values) {
  const uint32_t claim =
      abi::claim(read_at<uint32_t>(launch_.args, abi::launch_number), launch_.task);
  uint32_t clear = 0, asked = abi::stop_bit;
  if (!launch_.state().compare_exchange_strong(clear, claim) &&
      !launch_.state().compare_exchange_strong(asked, abi::stop_bit | claim))
    return;
  auto* record =
      reinterpret_cast<abi::ErrorRecord*>(read_at<Bits>(launch_.args, abi::error_address));
  record->site = s.inst->site;
  record->task = launch_.task;
  const bool counted = s.op == Op::check && s.count > told_by(s) + 1;
  record->iteration = int64_t(counted ? operand(s, s.count - 1) : iteration_);
  record->count = uint32_t(std::min<size_t>(values.size(), abi::reported_values));
  for (uint32_t k = 0; k < record->count; k++) record->values[k] = values[k];
  record->launch = read_at<uint32_t>(launch_.args, abi::launch_number);
}

void Thread::check(const Step& s) {
  if (operand(s, 0)) return;
  std::vector<Bits> values;
  for (size_t k = 1; k <= told_by(s); k++) values.push_back(operand(s, k));
  fail(s, values);
}

void Thread::print(const Step& s) {
  auto* ring = reinterpret_cast<abi::PrintRing*>(read_at<Bits>(launch_.args, abi::print_address));
  uint32_t number = ring->next++;
  if (number >= abi::print_capacity) return;
  abi::PrintEntry& entry = ring->entries[number];
  entry.site = s.inst->site;
  entry.count = std::min(s.count, abi::reported_values);
  for (uint32_t k = 0; k < entry.count; k++) entry.values[k] = operand(s, k);
  entry.launch = read_at<uint32_t>(launch_.args, abi::launch_number);
}

Bits Thread::random(const Step& s) {
  const Bits launch = operand(s, 0), iteration = operand(s, 2);
  const uint32_t counter[4] = {uint32_t(iteration), uint32_t(iteration >> 32),
                               uint32_t(operand(s, 3)), uint32_t(operand(s, 1))};
  const uint32_t key[2] = {uint32_t(launch), uint32_t(launch >> 32)};
  return philox(counter, key);
}

Bits Thread::launch_key() const {
  return read_at<uint32_t>(launch_.args, abi::random_seed) |
         Bits(read_at<uint32_t>(launch_.args, abi::random_launch)) << 32;
}

// ---- checks

void Thread::find(Finding::Kind kind, const Step& s, const std::string& message, Loc other) {
  if (launch_.report && launch_.report->findings.size() < 100)
    launch_.report->findings.push_back({kind, s.inst->loc, other, message});
}

/// Is a failure of `s` an error here? From `split` on failing operations have a site until their
/// check stands in the code.
bool Thread::claims(const Step& s) const {
  return launch_.checked && (kernel_.level < Level::split || s.inst->site != no_site);
}

void Thread::out_of_range(const Step& s, std::span<const Bits> values, const std::string& what) {
  if (launch_.options.check_bounds) find(Finding::bounds, s, what);
  if (claims(s)) fail(s, values);
}

void Thread::race(const Step& s, std::optional<Touch> before) {
  if (!before) return;
  const Binding& binding = kernel_.bindings[s.inst->binding()];
  if (binding.kind == Binding::frame) return;
  size_t rank = binding.rank;
  std::string index;
  for (size_t k = 0; k < rank; k++)
    index += (k ? ", " : "") +
             std::to_string(int64_t(position(operand(s, k), s.inst->operand(k)->type)));
  auto kind = [](const Inst* inst) {
    return inst->is(Op::load) ? "reads" : inst->is(Op::store) ? "writes" : "atomically updates";
  };
  auto line = [](Loc loc) { return std::string(loc.file) + ":" + std::to_string(loc.line); };
  find(Finding::race, s,
       "iteration " + std::to_string(iteration_) + " " + kind(s.inst) + " " +
           (binding.name.empty() ? "a field" : binding.name) + "[" + index + "] at " +
           line(s.inst->loc) + ", which iteration " + std::to_string(before->iteration) + " " +
           kind(before->inst) + " at " + line(before->inst->loc),
       before->inst->loc);
}

namespace {

/// Does the mathematical result of a signed operation lie outside the type?
bool wraps(Op op, Type t, std::span<const Bits> args) {
  if (!is_signed(t)) return false;
  __extension__ using Wide = __int128;
  Wide a = to_signed(args[0], t), b = args.size() > 1 ? Wide(to_signed(args[1], t)) : 0, r = 0;
  switch (op) {
    case Op::add: r = a + b; break;
    case Op::sub: r = a - b; break;
    case Op::mul: r = a * b; break;
    case Op::neg: r = -a; break;
    case Op::abs: r = a < 0 ? -a : a; break;
    case Op::div: r = b == 0 ? 0 : a / b; break;
    default: return false;
  }
  Wide end = Wide(1) << (bit_width(t) - 1);
  return r < -end || r >= end;
}

bool is_nan(Type t, Bits v) {
  double d = is_float(t) ? real_of(v, t) : 0;
  return d != d;
}

}  // namespace

void Thread::check_arithmetic(const Step& s, std::span<const Bits> args, Bits out) {
  std::string what(info(s.op).name);
  if (fails(s.op, s.operand, s.type, args)) {
    if (claims(s)) fail(s, s.op == Op::convert ? args : std::span<const Bits>());
    if (launch_.options.check_overflow)
      find(Finding::overflow, s,
           s.op == Op::convert ? "a conversion does not fit into " + std::string(name(s.type))
                               : "integer division by zero");
  } else if (launch_.options.check_overflow && wraps(s.op, s.operand, args)) {
    find(Finding::overflow, s, what + " overflows " + std::string(name(s.type)));
  }
  if (!launch_.options.check_nan || !is_nan(s.type, out)) return;
  for (Bits a : args)
    if (is_nan(s.operand, a)) return;
  if (s.op != Op::bitcast) find(Finding::nan, s, what + " makes a NaN of numbers");
}

}  // namespace quern::interpreter

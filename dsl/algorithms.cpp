// What the algorithms' templates ask: temporary fields, and tests of their arguments.
#include <cmath>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <set>

#include "dsl/recording.h"
#include "quern/algorithms.h"
#include "quern/runtime/observer.h"

namespace quern::detail {

namespace {

const runtime::Storage& storage_of(const char* algorithm, FieldObject* field, Loc loc) {
  if (!field->storage)
    throw Error(loc, std::string(algorithm) + " is given the field parameter of a recording");
  field->storage->expect_alive(loc);
  return *field->storage;
}

/// The kernels made so far. They hold the devices that they have run on, so they go at exit before
/// what those devices need: libraries that have registered for exit when the device was opened.
/// Hence a handler of our own is registered when a device is first seen.
struct Kept {
  std::mutex mutex;
  std::vector<KernelObject*> kernels;
  std::set<std::string> devices;
  bool dropped = false;
};
Kept& kept() {
  static Kept& one = *new Kept;
  return one;
}
void drop_kernels() {
  std::vector<KernelObject*> kernels;
  {
    std::lock_guard lock(kept().mutex);
    kept().dropped = true;
    kernels.swap(kept().kernels);
  }
  for (KernelObject* kernel : kernels) release(kernel);
}

std::string shape_of(FieldObject* field) { return runtime::shape_text(field->storage->shape()); }

bool are_apart(const char* algorithm, FieldObject* a, FieldObject* b, Loc loc) {
  return !storage_of(algorithm, a, loc).overlaps(storage_of(algorithm, b, loc));
}

}  // namespace

FieldObject* make_beside(FieldObject* beside, FieldType type, int64_t size, Loc loc) {
  DeviceObject device;
  device.device = beside->storage->shared_device();
  return make_field(&device, type, &size, {}, loc);
}

void keep_until_exit(KernelObject* kernel) {
  std::lock_guard lock(kept().mutex);
  kept().kernels.push_back(kernel);
}

void begin_algorithm(const char* name, FieldObject* field, Loc loc) {
  if (const Recording* r = active_recording())
    throw Error(loc, std::string(name) +
                         " is called while a kernel or function is recorded (begun at " +
                         place(r->loc) + "); algorithms on fields are called by the host");
  const std::string& device = storage_of(name, field, loc).device().name();
  std::lock_guard lock(kept().mutex);
  if (kept().dropped) throw Error(loc, std::string(name) + " is called while the process exits");
  if (kept().devices.insert(device).second) std::atexit(drop_kernels);
}

struct AlgorithmCall::State {
  runtime::LaunchCall call{runtime::LaunchCall::algorithm};
  std::vector<runtime::Image::Parameter> parameters;
  std::vector<runtime::Argument> arguments;
  std::unique_ptr<const runtime::LaunchEvent> event;
  int exceptions = std::uncaught_exceptions();
};

AlgorithmCall::AlgorithmCall(const char* name, std::initializer_list<Used> fields, Loc loc)
    : state_(new State) {
  if (!state_->call.is_observed()) return;
  for (const Used& used : fields) {
    const std::shared_ptr<runtime::Storage>& storage = used.field->storage;
    runtime::Image::Parameter& p = state_->parameters.emplace_back();
    p.is_field = true;
    p.rank = uint8_t(storage->shape().size());
    p.components = storage->components();
    p.reads = used.reads;
    p.writes = used.writes;
    state_->arguments.push_back({0, storage});
  }
  state_->event.reset(
      new runtime::LaunchEvent{.name = name,
                               .parameters = state_->parameters,
                               .arguments = state_->arguments,
                               .modes = {},
                               .device = state_->arguments.front().storage->shared_device(),
                               .loc = loc});
  try {
    state_->call.begin(*state_->event);
  } catch (...) {
    delete state_;
    throw;
  }
}

AlgorithmCall::~AlgorithmCall() {
  if (state_->call.is_observed() && std::uncaught_exceptions() == state_->exceptions)
    state_->call.end(*state_->event);
  delete state_;
}

void expect_same_shape(const char* algorithm, FieldObject* a, FieldObject* b, Loc loc) {
  if (storage_of(algorithm, a, loc).shape() == storage_of(algorithm, b, loc).shape()) return;
  throw Error(loc, std::string(algorithm) + " of fields of different shapes: " + shape_of(a) +
                       " and " + shape_of(b));
}

void expect_apart(const char* algorithm, FieldObject* a, FieldObject* b, Loc loc) {
  if (are_apart(algorithm, a, b, loc)) return;
  throw Error(loc, std::string(algorithm) +
                       " of fields that share memory: what it writes it would read again; give it "
                       "separate fields");
}

void expect_apart_or_same(const char* algorithm, FieldObject* a, FieldObject* b, Loc loc) {
  if (are_apart(algorithm, a, b, loc)) return;
  if (a == b || a->storage == b->storage) return;
  throw Error(loc, std::string(algorithm) +
                       " of different fields that share memory: give it one field twice, or "
                       "separate ones");
}

void refuse_empty(const char* algorithm, Loc loc) {
  throw Error(loc, std::string(algorithm) + " of a field without elements");
}

void expect_room(FieldObject* in, FieldObject* out, int64_t kept, Loc loc) {
  const int64_t room = out->storage->size();
  if (kept > room)
    throw Error(loc, "compact keeps " + std::to_string(kept) + " of " +
                         std::to_string(in->storage->size()) +
                         " elements; its output has room for " + std::to_string(room));
}

void refuse_outside(int64_t outside, int64_t size, int64_t bins, Loc loc) {
  throw Error(loc, "histogram: " + std::to_string(outside) + " of " + std::to_string(size) +
                       " values are not among its bins, 0 to " + std::to_string(bins - 1));
}

void expect_countable(int64_t size, int bits, bool is_signed, Loc loc) {
  const uint64_t most = ~uint64_t(0) >> (64 - bits + is_signed);
  if (uint64_t(size) <= most) return;
  throw Error(loc, "histogram of " + std::to_string(size) + " values: a bin of " +
                       std::to_string(bits) + " bits counts to " + std::to_string(most) +
                       "; give it bins of 64 bits");
}

void expect_interval(double lo, double hi, double width, Loc loc) {
  if (std::isfinite(width) && lo < hi) return;
  throw Error(loc, "histogram from " + std::to_string(lo) + " to " + std::to_string(hi) +
                       ": an interval has finite ends and width, the lower end first");
}

}  // namespace quern::detail

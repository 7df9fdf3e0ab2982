#include "quern/runtime/device.h"

#include <cstdio>
#include <cstdlib>

#include "runtime/uses.h"
#include "runtime/watchdog.h"

namespace quern::runtime {

namespace {
/// What a driver is asked for: whole words, at least one.
uint64_t in_words(uint64_t bytes) { return bytes == 0 ? 4 : (bytes + 3) / 4 * 4; }
}  // namespace

Device::Device(std::string name, std::unique_ptr<Driver> driver, bool is_joined, Loc loc)
    : name_(std::move(name)), is_joined_(is_joined), driver_(std::move(driver)) {
  first_ = &add_stream(0);
  try {
    limit_by_environment(loc);
  } catch (...) {  // no destructor runs
    first_->give_back_memory();
    delete first_;
    throw;
  }
}

Device::~Device() {
  each_stream([&](Stream& stream) {
    try {
      stream.synchronize();
    } catch (const Error& e) {
      if (handler_)
        handler_(e);
      else
        std::fprintf(stderr, "quern: an error on device %s was never read: %s\n", name_.c_str(),
                     e.what());
    } catch (const std::exception& e) {
      std::fprintf(stderr, "quern: closing device %s: %s\n", name_.c_str(), e.what());
    }
  });
  while (Stream* stream = newest_) {
    newest_ = stream->older_;
    stream->give_back_memory();
    delete stream;
  }
}

/// One whose record is ready.
Stream& Device::add_stream(uint32_t queue) {
  std::unique_ptr<Stream> stream(new Stream(*this, queue));
  stream->older_ = newest_;
  newest_ = stream.get();
  return *stream.release();
}

void Device::synchronize() {
  each_stream([](Stream& stream) { stream.wait(); });
  each_stream([](Stream& stream) { stream.collect_own(); });
}

void Device::seed(uint32_t seed) {
  std::scoped_lock lock(first_->mutex_, order_);
  seed_ = seed;
  since_seed_ = 0;
}

// ---- memory

Address Device::obtain(uint64_t bytes, std::string_view what, Loc loc, uint32_t queue) {
  try {
    return driver_->allocate(in_words(bytes), queue);
  } catch (const Error& e) {
    throw Error(loc, "no memory on device " + name_ + " for " + std::string(what) + " (" +
                         std::to_string(bytes) + " bytes): " + e.message());
  }
}

Address Device::allocate(uint64_t bytes, std::string_view what, Loc loc, Contents contents,
                         Uses* uses) {
  Stream& stream = Stream::current(*this);
  const Address address = obtain(bytes, what, loc, stream.queue());
  allocated_ += bytes;
  const Touch touch{uses, true};
  const std::span<const Touch> touched(&touch, uses ? 1 : 0);
  const Command zero = Fill{address, in_words(bytes), 0};
  if (contents == Contents::zeros)
    stream.submit({&zero, 1}, touched);
  else if (uses && several_)
    stream.submit({}, touched);
  return address;
}

/// Memory is about to go: copies that wait and name it are made, or where the device does not take
/// them are none.
void Device::expect_copied() noexcept {
  attempt([&] {
    try {
      first_->submit_waiting();
    } catch (...) {
      first_->drop_waiting();
      throw;
    }
  });
}

void Device::release(std::span<const Address> memory, std::span<const uint64_t> bytes,
                     uint32_t queue) noexcept {
  expect_copied();
  for (size_t k = 0; k < memory.size(); k++) {
    allocated_ -= bytes[k];
    attempt([&] { driver_->release(memory[k], queue); });
  }
}

Native& Device::native(Loc loc) {
  if (Native* native = driver_->native()) return *native;
  throw Error(
      loc, "device " + name_ + " has no streams or contexts of a vendor's; CUDA's and ROCm's have");
}

// ---- ending launches

void Device::expect_stoppable(Loc loc) const {
  if (!target().traits.stoppable)
    throw Error(loc, "launches on device " + name_ +
                         " cannot be ended from outside; those on cpu and interpreter can, and "
                         "GPUs' drivers have time limits of their own");
}

/// Nothing here waits or allocates: it may be a signal handler.
void Device::interrupt(Loc loc) {
  expect_stoppable(loc);
  each_stream([](Stream& stream) { stream.ask_to_stop(Stream::Stop::interrupt); });
}

void Device::time_limit(double seconds, Loc loc) {
  if (!(seconds >= 0 && seconds <= 1e9))
    throw Error(loc, "a time limit of " + format_value(ir::Type::f64, ir::bits_of(seconds)) +
                         " seconds; allowed are 0 (none) to 1e9");
  if (seconds > 0) expect_stoppable(loc);
  std::unique_ptr<Watchdog> dog;
  if (seconds > 0) dog = std::make_unique<Watchdog>(seconds);
  std::scoped_lock lock(first_->mutex_, order_);
  watchdog_.swap(dog);
  if (watchdog_) limit_ = seconds;
}

void Device::limit_by_environment(Loc loc) {
  const char* text = std::getenv("QUERN_TIME_LIMIT");
  if (!text || !*text) return;
  char* end = nullptr;
  const double seconds = std::strtod(text, &end);
  try {
    if (*end) throw Error("it is no number");
    time_limit(seconds);
  } catch (const Error& e) {
    throw Error(loc, "QUERN_TIME_LIMIT is '" + std::string(text) + "': " + e.message());
  }
}

}  // namespace quern::runtime

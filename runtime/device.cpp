#include "quern/runtime/device.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

#include "runtime/watchdog.h"

namespace quern::runtime {

namespace {
/// Launches remembered before the host looks for reports on its own.
constexpr size_t max_launched = 4096;

template <class T>
std::span<std::byte> bytes_of(T& v) {
  return std::as_writable_bytes(std::span(&v, 1));
}

struct Name {
  std::string backend;
  size_t index = 0;
};

Name parse_name(std::string_view text, Loc loc) {
  size_t colon = text.find(':');
  Name name{std::string(text.substr(0, colon)), 0};
  if (colon == std::string_view::npos) return name;
  std::string digits(text.substr(colon + 1));
  if (digits.empty() || digits.find_first_not_of("0123456789") != std::string::npos ||
      digits.size() > 4)
    throw Error(loc, "'" + std::string(text) +
                         "' names no device: after the colon stands a number, as in " +
                         name.backend + ":0");
  name.index = std::stoul(digits);
  return name;
}

/// Devices opened in this process; each dies with its last user.
struct Opened {
  std::mutex mutex;
  std::map<std::string, std::weak_ptr<Device>> devices;
};
Opened& opened() {
  static Opened o;
  return o;
}

/// A device that is present.
struct Found {
  const Backend* backend;
  Target target;
  size_t index;
};
/// The option of Quern's build that decides about a back end.
std::string option_of(std::string name) {
  for (char& c : name)
    if (c >= 'a' && c <= 'z') c += 'A' - 'a';
  return "QUERN_" + name;
}

Found find(std::string_view text, Loc loc) {
  Name name = parse_name(text, loc);
  std::string known;
  for (const Backend& b : backends()) {
    known += (known.empty() ? "" : ", ") + b.name;
    if (b.name != name.backend) continue;
    std::string why;
    std::vector<Target> targets = b.probe(why);
    if (targets.empty())
      throw Error(loc, "device '" + std::string(text) + "' is not present: " + why +
                           "; devices:\n" + Device::describe_all());
    if (name.index >= targets.size())
      throw Error(loc, "device '" + std::string(text) + "' is not present: " + b.name + " has " +
                           std::to_string(targets.size()) + " device(s)");
    return {&b, targets[name.index], name.index};
  }
  if (std::ranges::find(backends_left_out(), name.backend) != backends_left_out().end())
    throw Error(loc, "this build of Quern has no back end " + name.backend + "; it has " + known +
                         "; configure with " + option_of(name.backend) + "=ON");
  throw Error(loc, "there is no device '" + std::string(text) + "'; known are " + known +
                       " (with :1, :2, … for further devices)");
}

std::shared_ptr<Device> open_target(const Backend& backend, const Target& target, size_t index,
                                    Loc loc) {
  std::string name = index == 0 ? backend.name : backend.name + ":" + std::to_string(index);
  Opened& all = opened();
  std::lock_guard lock(all.mutex);
  if (auto device = all.devices[name].lock()) return device;
  auto device = std::make_shared<Device>(name, target, backend.open(target), false, loc);
  all.devices[name] = device;
  return device;
}
}  // namespace

std::string Device::describe_all() {
  std::string text;
  for (const Backend& b : backends()) {
    std::string why;
    std::vector<Target> targets = b.probe(why);
    if (targets.empty()) text += b.name + ": none (" + why + ")\n";
    for (size_t k = 0; k < targets.size(); k++)
      text += b.name + (k ? ":" + std::to_string(k) : "") + ": " + targets[k].device + "\n";
  }
  for (const std::string& name : backends_left_out())
    text += name + ": not built (" + option_of(name) + ")\n";
  return text;
}

std::shared_ptr<Device> Device::open(std::string_view text, Loc loc) {
  {
    Opened& all = opened();
    std::lock_guard lock(all.mutex);
    auto it = all.devices.find(std::string(text));
    if (it != all.devices.end())
      if (auto device = it->second.lock()) return device;
  }
  Found found = find(text, loc);
  return open_target(*found.backend, found.target, found.index, loc);
}

std::shared_ptr<Device> Device::join(std::string_view text, void* context, void* stream, Loc loc) {
  Found found = find(text, loc);
  if (!found.backend->join)
    throw Error(loc, "device '" + std::string(text) +
                         "' has no streams or contexts of a vendor's; CUDA's and ROCm's have");
  Native::Handles on;
  on.context = context;
  on.stream = stream;
  return std::make_shared<Device>(std::string(text), found.target,
                                  found.backend->join(found.target, on), true, loc);
}

std::shared_ptr<Device> Device::best() {
  const Backend* chosen = nullptr;
  std::vector<Target> targets;
  for (const Backend& b : backends()) {
    if (chosen && b.preference <= chosen->preference) continue;
    std::string why;
    std::vector<Target> found = b.probe(why);
    if (found.empty()) continue;
    chosen = &b;
    targets = std::move(found);
  }
  if (!chosen) throw Error("no device is present:\n" + describe_all());
  return open_target(*chosen, targets[0], 0, {});
}

std::shared_ptr<Device> Device::standard(Loc loc) {
  const char* name = std::getenv("QUERN_DEVICE");
  if (!name || !*name) return best();
  try {
    return open(name);
  } catch (const Error& e) {
    throw Error(loc, "QUERN_DEVICE: " + e.message());
  }
}

Device::Device(std::string name, const Target& target, std::unique_ptr<Driver> driver,
               bool is_joined, Loc loc)
    : name_(std::move(name)), is_joined_(is_joined), driver_(std::move(driver)) {
  error_ = allocate(sizeof(ir::abi::ErrorRecord), "the error record");
  ring_ = allocate(sizeof(ir::abi::PrintRing), "the print ring");
  if (target.traits.stoppable)
    state_ = &reinterpret_cast<ir::abi::ErrorRecord*>(driver_->host_pointer(error_))->state;
  limit_by_environment(loc);
}

Device::~Device() {
  try {
    synchronize();
  } catch (const Error& e) {
    if (handler_)
      handler_(e);
    else
      std::fprintf(stderr, "quern: an error on device %s was never read: %s\n", name_.c_str(),
                   e.what());
  } catch (const std::exception& e) {
    std::fprintf(stderr, "quern: closing device %s: %s\n", name_.c_str(), e.what());
  }
  const Address own[] = {error_, ring_};
  release(own);
}

Address Device::allocate(uint64_t bytes, const std::string& what, Loc loc, Contents contents) {
  Address address = 0;
  try {
    address = driver_->allocate(bytes == 0 ? 4 : (bytes + 3) / 4 * 4);
  } catch (const Error& e) {
    throw Error(loc, "no memory on device " + name_ + " for " + what + " (" +
                         std::to_string(bytes) + " bytes): " + e.message());
  }
  {
    std::lock_guard lock(memory_mutex_);
    memory_[address] = bytes;
  }
  if (contents == Contents::any) return address;
  Command zero = Fill{address, bytes == 0 ? 4 : (bytes + 3) / 4 * 4, 0};
  driver_->submit({&zero, 1});
  return address;
}

uint64_t Device::allocated() const {
  std::lock_guard lock(memory_mutex_);
  uint64_t sum = 0;
  for (const auto& [address, bytes] : memory_) sum += bytes;
  return sum;
}

void Device::keep(const Error& error) {
  std::lock_guard lock(mutex_);
  if (!kept_) kept_ = error;
  unread_ = true;
}

/// Keeps the error that `f` throws.
void Device::attempt(const std::function<void()>& f) noexcept {
  try {
    f();
  } catch (const Error& e) {
    keep(e);
  } catch (const std::exception& e) {
    keep(Error(e.what()));
  }
}

void Device::release(std::span<const Address> memory) noexcept {
  for (Address a : memory) {
    {
      std::lock_guard lock(memory_mutex_);
      memory_.erase(a);
    }
    attempt([&] { driver_->release(a); });
  }
}

void Device::disown(Address memory, uint64_t bytes) noexcept {
  attempt([&] { driver_->wait(driver_->submit({})); });
  if (Native* native = driver_->native()) attempt([&] { native->disown(memory, bytes); });
}

Native& Device::native(Loc loc) {
  if (Native* native = driver_->native()) return *native;
  throw Error(
      loc, "device " + name_ + " has no streams or contexts of a vendor's; CUDA's and ROCm's have");
}

std::shared_ptr<LaunchRecord> Device::begin_launch(
    const std::shared_ptr<const Reporter>& reporter) {
  std::unique_lock lock(mutex_);
  if (launched_.size() >= max_launched) {
    lock.unlock();
    synchronize();
    lock.lock();
  }
  auto launch = std::make_shared<LaunchRecord>();
  launch->number = next_launch_++ % ir::abi::max_launch_number;
  launch->seed = seed_;
  launch->since_seed = since_seed_++;
  launch->reporter = reporter;
  launch->begun = ++now_;
  launched_.push_back(launch);
  if (!reporter->sites.empty()) unread_ = true;
  return launch;
}

void Device::end_launch(LaunchRecord& launch) {
  std::lock_guard lock(mutex_);
  launch.submitted = ++now_;
  // Where nothing was launched that can fail, nothing has kept this launch from running.
  if (!unread_) std::erase_if(launched_, [&](const auto& l) { return l.get() == &launch; });
}

void Device::expect_success(const LaunchRecord& launch) {
  std::lock_guard lock(mutex_);
  if (launch.error) throw Error(*launch.error);
}

void Device::seed(uint32_t seed) {
  std::lock_guard lock(mutex_);
  seed_ = seed;
  since_seed_ = 0;
}

std::optional<Ticket> Device::submit(LaunchRecord& launch, std::span<Command> commands) {
  std::lock_guard lock(mutex_);
  if (!launch.has_run) {
    launch.error.reset();  // a wait has taken what would have kept it from running
    launch.has_run = true;
  }
  if (launch.error) return std::nullopt;
  for (Command& command : commands)
    if (auto* l = std::get_if<Launch>(&command)) l->asks = unread_;
  if (!watchdog_) return driver_->submit(commands);
  Ticket ticket = 0;
  const auto begin = Watchdog::Clock::now();
  if (launch.ran < watchdog_->limit()) {
    Watchdog::Watch watch(*watchdog_, begin - launch.ran);
    ticket = driver_->submit(commands);
  } else {  // its commands so far took too long, but had no loop that could be ended
    ask_to_stop(Stop::limit);
    ticket = driver_->submit(commands);
  }
  launch.ran += Watchdog::Clock::now() - begin;
  forget_limit();
  return ticket;
}

/// Where nothing answered, the commands ended by themselves: others are not to be ended for them.
void Device::forget_limit() {
  Stop reason = Stop::limit;
  uint32_t asked = ir::abi::stop_bit;
  if (std::atomic_ref(*state_) != asked || !stop_.compare_exchange_strong(reason, Stop::none))
    return;
  std::atomic_ref(*state_).compare_exchange_strong(asked, 0);
  // An interrupt that came just now had found the bit set.
  if (stop_ == Stop::interrupt) std::atomic_ref(*state_).fetch_or(ir::abi::stop_bit);
}

const LaunchRecord* Device::known(uint32_t launch) const {
  for (const auto& l : launched_)
    if (l->number == launch) return l.get();
  return nullptr;
}

/// May a launch have failed or printed that the host has not asked about?
bool Device::expects_reports() const {
  return kept_ ||
         std::ranges::any_of(launched_, [](const auto& l) { return !l->reporter->sites.empty(); });
}

void Device::print_lines() {
  using namespace ir::abi;
  uint32_t head[2];
  driver_->download(bytes_of(head), ring_);
  if (head[0] == 0) return;
  uint32_t kept = std::min(head[0], print_capacity);
  std::vector<PrintEntry> entries(kept);
  driver_->download(std::as_writable_bytes(std::span(entries)),
                    ring_ + offsetof(PrintRing, entries));
  for (const PrintEntry& e : entries) {
    const LaunchRecord* launch = known(e.launch);
    if (!launch || e.site >= launch->reporter->sites.size()) continue;
    const ir::Site& site = launch->reporter->sites[e.site];
    std::string line =
        format_values(site.text, site.values, {e.values, std::min(e.count, reported_values)});
    std::fwrite(line.data(), 1, line.size(), stdout);
    std::fputc('\n', stdout);
  }
  if (head[0] > kept)
    std::printf("(%u further lines were lost: a device keeps %u between two host reads)\n",
                head[0] - kept, print_capacity);
  std::fflush(stdout);
  uint32_t zero[2] = {0, 0};
  driver_->upload(ring_, std::as_bytes(std::span(zero)));
}

/// The state of the record, which is clear then; `record` is what it held a moment ago.
uint32_t Device::take_state(const ir::abi::ErrorRecord& record) {
  if (state_) return std::atomic_ref(*state_).exchange(0);
  const ir::abi::ErrorRecord none;
  if (record.state) driver_->upload(error_, std::as_bytes(std::span(&none, 1)));
  return record.state;
}

/// Of the record; the launch that failed keeps it, and so do those that may have come too late.
std::optional<Error> Device::take_error() {
  ir::abi::ErrorRecord record;
  driver_->download(bytes_of(record), error_);
  const uint32_t state = take_state(record);
  if (state == 0) return std::nullopt;
  if (state == ir::abi::stop_bit && some_launch_runs()) {  // which has not seen it yet
    std::atomic_ref(*state_).fetch_or(ir::abi::stop_bit);
    unread_ = true;
    return std::nullopt;
  }
  const Stop reason = state & ir::abi::stop_bit ? stop_.exchange(Stop::none) : Stop::none;
  if (!(state & ir::abi::claim_bit))
    return Error("device " + name_ + " was interrupted while nothing ran that could be ended");
  const LaunchRecord* failed = known(record.launch);
  std::optional<Error> error;
  if (!failed || record.site >= failed->reporter->sites.size()) {
    error.emplace("a check failed in a kernel that is not known any more");
  } else if (failed->reporter->sites[record.site].kind == ir::Site::stop) {
    error.emplace(failed->reporter->sites[record.site].loc,
                  describe(reason) + " while this ran (of " + failed->reporter->kernel + ")");
  } else {
    const ir::Site& site = failed->reporter->sites[record.site];
    std::string text = format_values(
        site.text, site.values, {record.values, std::min(record.count, ir::abi::reported_values)});
    error.emplace(site.loc, text + " (iteration " + std::to_string(record.iteration) + " of " +
                                failed->reporter->kernel + ")");
  }
  // What was submitted before the launch that failed began ran before it.
  for (const auto& l : launched_)
    if (!failed || !l->submitted || l->submitted > failed->begun)
      if (!l->error) l->error = error;
  return error;
}

bool Device::some_launch_runs() const {
  return std::ranges::any_of(launched_, [](const auto& l) { return l->submitted == 0; });
}

void Device::collect() {
  if (!unread_) return;
  std::optional<Error> error;
  {
    std::lock_guard lock(mutex_);
    if (!unread_) return;
    unread_ = false;  // before the record is read: who asks from now on is heard the next time
    try {
      print_lines();
      error = take_error();
    } catch (...) {
      unread_ = true;
      throw;
    }
    if (!error) error = std::exchange(kept_, std::nullopt);
    std::erase_if(launched_, [](const auto& l) { return l->submitted != 0; });
    if (expects_reports()) unread_ = true;
  }
  if (error) throw Error(*error);
}

void Device::expect_stoppable(Loc loc) const {
  if (!state_)
    throw Error(loc, "launches on device " + name_ +
                         " cannot be ended from outside; those on cpu and interpreter can, and "
                         "GPUs' drivers have time limits of their own");
}

/// Nothing here waits or allocates: it may be a signal handler. An interrupt goes before a limit.
void Device::ask_to_stop(Stop reason) {
  Stop none = Stop::none;
  if (reason == Stop::interrupt)
    stop_ = reason;
  else if (!stop_.compare_exchange_strong(none, reason))
    return;
  std::atomic_ref(*state_).fetch_or(ir::abi::stop_bit);
  unread_ = true;
}

void Device::interrupt(Loc loc) {
  expect_stoppable(loc);
  ask_to_stop(Stop::interrupt);
}

void Device::time_limit(double seconds, Loc loc) {
  if (!(seconds >= 0 && seconds <= 1e9))
    throw Error(loc, "a time limit of " + format_value(ir::Type::f64, ir::bits_of(seconds)) +
                         " seconds; allowed are 0 (none) to 1e9");
  if (seconds > 0) expect_stoppable(loc);
  std::unique_ptr<Watchdog> dog;
  if (seconds > 0) dog = std::make_unique<Watchdog>(seconds, [this] { ask_to_stop(Stop::limit); });
  std::lock_guard lock(mutex_);
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

std::string Device::describe(Stop reason) const {
  if (reason != Stop::limit) return "the launch was interrupted";
  return "the launch reached its time limit of " +
         format_value(ir::Type::f64, ir::bits_of(limit_)) + " s";
}

void Device::synchronize() {
  driver_->wait(driver_->submit({}));
  collect();
}

void Device::download(std::span<std::byte> to, Address from) {
  driver_->download(to, from);
  collect();
}

void Device::upload(Address to, std::span<const std::byte> from) {
  driver_->upload(to, from);
  collect();
}

}  // namespace quern::runtime

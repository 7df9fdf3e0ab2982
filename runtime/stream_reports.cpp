// What launches of a stream report: printed lines and the first failed check.
#include <algorithm>
#include <cstddef>
#include <cstdio>

#include "quern/runtime/device.h"

namespace quern::runtime {

namespace {
template <class T>
std::span<std::byte> bytes_of(T& v) {
  return std::as_writable_bytes(std::span(&v, 1));
}
}  // namespace

const LaunchRecord* Stream::known(uint32_t launch) const {
  for (const auto& l : launched_)
    if (l->number == launch) return l.get();
  return nullptr;
}

/// May a launch have failed or printed that the host has not asked about?
bool Stream::expects_reports() const {
  return kept_ ||
         std::ranges::any_of(launched_, [](const auto& l) { return !l->reporter->sites.empty(); });
}

Address Stream::print_ring() {
  std::lock_guard lock(mutex_);
  if (ring_) return ring_;
  ring_ = device_.obtain(sizeof(ir::abi::PrintRing), "the print ring of a stream", {}, queue_);
  const Command zero = Fill{ring_, sizeof(ir::abi::PrintRing), 0};
  driver_.submit({&zero, 1}, {queue_, {}});
  return ring_;
}

void Stream::print_lines() {
  using namespace ir::abi;
  if (!ring_) return;
  uint32_t head[2];
  driver_.download(bytes_of(head), ring_, queue_);
  if (head[0] == 0) return;
  uint32_t kept = std::min(head[0], print_capacity);
  std::vector<PrintEntry> entries(kept);
  driver_.download(std::as_writable_bytes(std::span(entries)), ring_ + offsetof(PrintRing, entries),
                   queue_);
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
    std::printf("(%u further lines were lost: a stream keeps %u between two host reads)\n",
                head[0] - kept, print_capacity);
  std::fflush(stdout);
  uint32_t zero[2] = {0, 0};
  driver_.upload(ring_, std::as_bytes(std::span(zero)), queue_);
}

ir::abi::ErrorRecord Stream::record_seen_by(uint32_t queue) {
  ir::abi::ErrorRecord record;
  driver_.download(bytes_of(record), error_, queue);
  return record;
}

/// Has a launch that ran up to this ticket? The queue is behind that.
bool Stream::has_failed(uint64_t up_to, uint32_t queue) {
  if (!unread_) return false;
  const ir::abi::ErrorRecord record = record_seen_by(queue);
  if (!(record.state & ir::abi::claim_bit)) return false;
  std::lock_guard lock(mutex_);
  const LaunchRecord* failed = known(record.launch);
  return failed && failed->first <= up_to;
}

/// The state of the record, which is clear then; `record` is what it held a moment ago.
uint32_t Stream::take_state(const ir::abi::ErrorRecord& record) {
  if (state_) return std::atomic_ref(*state_).exchange(0);
  const ir::abi::ErrorRecord none;
  if (record.state) driver_.upload(error_, std::as_bytes(std::span(&none, 1)), queue_);
  return record.state;
}

/// Of the record; the launch that failed keeps it, and so do those that may have come too late.
std::optional<Error> Stream::take_error() {
  const ir::abi::ErrorRecord record = record_seen_by(queue_);
  const uint32_t state = take_state(record);
  if (state == 0) return std::nullopt;
  if (state == ir::abi::stop_bit && some_launch_runs()) {  // which has not seen it yet
    std::atomic_ref(*state_).fetch_or(ir::abi::stop_bit);
    unread_ = true;
    return std::nullopt;
  }
  const Stop reason = state & ir::abi::stop_bit ? stop_.exchange(Stop::none) : Stop::none;
  if (reason == Stop::interrupt)
    device_.each_stream([&](Stream& other) {
      if (&other != this) other.forget_interrupt();
    });
  if (!(state & ir::abi::claim_bit))
    return Error("device " + device_.name() +
                 " was interrupted while nothing ran that could be ended");
  device_.failures_++;
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

bool Stream::some_launch_runs() const {
  return std::ranges::any_of(launched_, [](const auto& l) { return l->submitted == 0; });
}

void Stream::keep(const Error& error) {
  std::lock_guard lock(mutex_);
  if (!kept_) kept_ = error;
  unread_ = true;
}

/// It ran, and neither it nor any before it had anything to report. Asked where the host sees that
/// without a wait.
bool Stream::has_ended_well(const LaunchRecord& launch) const {
  return state_ && !launch.reporter->prints && launch.last != 0 &&
         driver_.done({queue_, launch.last}) && std::atomic_ref(*state_).load() == 0;
}

void Stream::forget(std::shared_ptr<LaunchRecord> launch) {
  if (launch.use_count() > 1) return;  // its results ask what became of it
  *launch = {};
  spare_.push_back(std::move(launch));
}

/// Of launches whose end is known.
void Stream::forget_submitted() {
  size_t left = 0;
  for (auto& launch : launched_)
    if (launch->submitted == 0) std::swap(launched_[left++], launch);
  for (auto& launch : std::span(launched_).subspan(left)) forget(std::move(launch));
  launched_.resize(left);
}

void Stream::collect() {
  collect_those_before();
  collect_own();
}

void Stream::collect_own() {
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
    forget_submitted();
    if (expects_reports()) unread_ = true;
  }
  if (error) throw Error(*error);
}

}  // namespace quern::runtime

// What commands wait for where a device has several streams.
#include "runtime/uses.h"

#include <algorithm>
#include <atomic>

#include "quern/runtime/device.h"

namespace quern::runtime {

uint64_t Uses::next_number() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

void Uses::note(const Use& use, bool writes) {
  Uses& all = root();
  if (writes) {
    all.writes_ = {use};
    all.reads_.clear();
    return;
  }
  auto same = std::ranges::find(all.reads_, use.stream, &Use::stream);
  if (same == all.reads_.end())
    all.reads_.push_back(use);
  else
    *same = use;
}

void Uses::join(const std::shared_ptr<Uses>& other) {
  Uses &mine = root(), &theirs = other->root();
  if (&mine == &theirs) return;
  theirs.writes_.insert(theirs.writes_.end(), mine.writes_.begin(), mine.writes_.end());
  theirs.reads_.insert(theirs.reads_.end(), mine.reads_.begin(), mine.reads_.end());
  mine.writes_.clear();
  mine.reads_.clear();
  mine.joined_ = other;
}

// ---- of a stream

/// Tickets of other queues that this one does not stand behind yet: of each the last. Notes whose
/// failures now concern the stream.
std::vector<Ticket> Stream::waits_for(std::span<const Touch> touched) {
  std::vector<Ticket> after;
  for (const Touch& touch : touched)
    touch.uses->each_before(touch.writes, [&](const Uses::Use& use) {
      if (use.stream == this) return;
      add_before(*use.stream, use.ticket.number);
      for (const auto& [stream, up_to] : use.stream->before_) add_before(*stream, up_to);
      const Ticket& t = use.ticket;
      if (t.queue == queue_ || (t.queue < waited_.size() && t.number <= waited_[t.queue])) return;
      auto known = std::ranges::find(after, t.queue, &Ticket::queue);
      if (known == after.end())
        after.push_back(t);
      else
        known->number = std::max(known->number, t.number);
    });
  return after;
}

void Stream::add_before(Stream& stream, uint64_t up_to) {
  if (&stream == this || !stream.unread_) return;
  uint64_t& known = before_[&stream];
  known = std::max(known, up_to);
}

void Stream::note_waits(std::span<const Ticket> after) {
  for (const Ticket& t : after) {
    if (waited_.size() <= t.queue) waited_.resize(t.queue + 1);
    waited_[t.queue] = std::max(waited_[t.queue], t.number);
  }
}

Ticket Stream::put_in_order(std::span<const Command> commands, std::span<const Touch> touched,
                            LaunchRecord* launch) {
  std::lock_guard lock(device_.order_);
  std::vector<Touch> all(touched.begin(), touched.end());
  if (launch && launch->touches) launch->touches->append_to(all);
  auto note = [&](const Ticket& ticket) {
    for (const Touch& touch : all) touch.uses->note({this, ticket}, touch.writes);
  };
  const std::vector<Ticket> after = waits_for(all);
  Ticket ticket;
  try {
    ticket = run(commands, {queue_, after}, launch);
  } catch (...) {  // some of the commands may run
    try {
      note(driver_.submit({}, {queue_, after}));
    } catch (const std::exception&) {  // the device is lost
    }
    throw;
  }
  note_waits(after);
  note(ticket);
  return ticket;
}

/// What those have to report that it waited for: the host waits for them, too.
void Stream::collect_those_before() {
  while (device_.several_) {
    std::pair<Stream*, uint64_t> before;
    {
      std::lock_guard lock(device_.order_);
      if (before_.empty()) return;
      before = *before_.begin();
      before_.erase(before_.begin());
    }
    if (before.first->has_failed(before.second, queue_)) before.first->collect_own();
  }
}

// ---- of a device

Stream& Device::writer(Uses& uses) {
  if (!several_) return stream();
  Stream* writer = nullptr;
  size_t writers = 0;
  {
    std::lock_guard lock(order_);
    uses.each_before(false, [&](const Uses::Use& use) {
      writer = use.stream;
      writers++;
    });
  }
  if (!writer) return stream();
  const Touch touch{&uses, false};
  if (writers > 1) writer->submit({}, {&touch, 1});
  return *writer;
}

void Device::release(std::span<const Address> memory, std::span<const uint64_t> bytes,
                     Uses& uses) noexcept {
  uint32_t queue = 0;
  if (several_)
    attempt([&] {
      std::lock_guard lock(order_);
      std::vector<Ticket> after;
      uses.each_before(true, [&](const Uses::Use& use) { after.push_back(use.ticket); });
      if (after.empty()) return;
      queue = after[0].queue;
      if (std::ranges::all_of(after, [&](const Ticket& t) { return t.queue == queue; })) return;
      if (!releasing_) releasing_ = driver_->make_queue();
      queue = *releasing_;
      driver_->submit({}, {queue, after});
    });
  release(memory, bytes, queue);
}

std::shared_ptr<Uses> Device::uses_of_wrapped(Address memory, uint64_t bytes) {
  std::lock_guard lock(order_);
  std::shared_ptr<Uses> uses;
  for (const Wrapped& w : wrapped_) {
    if (memory >= w.memory + w.bytes || w.memory >= memory + bytes) continue;
    if (uses)
      w.uses->join(uses);
    else
      uses = w.uses;
  }
  if (!uses) uses = std::make_shared<Uses>();
  wrapped_.push_back({memory, bytes, uses});
  return uses;
}

void Device::disown(Address memory, uint64_t bytes, Uses& uses) noexcept {
  expect_copied();
  attempt([&] {
    std::vector<Ticket> after;
    {
      std::lock_guard lock(order_);
      auto same = [&](const Wrapped& w) { return w.memory == memory && w.bytes == bytes; };
      wrapped_.erase(std::ranges::find_if(wrapped_, same));
      uses.each_before(true, [&](const Uses::Use& use) { after.push_back(use.ticket); });
    }
    if (after.empty()) after.push_back(driver_->submit({}));
    for (const Ticket& ticket : after) driver_->wait(ticket);
  });
  if (Native* native = driver_->native()) attempt([&] { native->disown(memory, bytes); });
}

}  // namespace quern::runtime

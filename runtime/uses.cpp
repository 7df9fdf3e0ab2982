// What commands wait for where a device has several streams.
#include "runtime/uses.h"

#include <algorithm>

#include "quern/runtime/device.h"

namespace quern::runtime {

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
      add_before({use.stream, use.ticket.number});
      for (const Before& b : use.stream->before_) add_before(b);
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

void Stream::add_before(const Before& before) {
  if (before.stream == this || !before.stream->unread_) return;
  auto known = std::ranges::find(before_, before.stream, &Before::stream);
  if (known == before_.end())
    before_.push_back(before);
  else
    known->up_to = std::max(known->up_to, before.up_to);
}

void Stream::note_waits(std::span<const Ticket> after) {
  for (const Ticket& t : after) {
    if (waited_.size() <= t.queue) waited_.resize(t.queue + 1);
    waited_[t.queue] = std::max(waited_[t.queue], t.number);
  }
}

/// The stream's lock is held.
Ticket Stream::put(std::span<const Command> commands, std::span<const Touch> touched,
                   LaunchRecord* launch) {
  if (!device_.several_.load(std::memory_order_relaxed)) return run(commands, {queue_, {}}, launch);
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
    Before before;
    {
      std::lock_guard lock(device_.order_);
      if (before_.empty()) return;
      before = before_.back();
      before_.pop_back();
    }
    if (before.stream->has_failed(before.up_to, queue_)) before.stream->collect_own();
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

void Device::release(std::span<const Address> memory, Uses& uses) noexcept {
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
  release(memory, queue);
}

std::shared_ptr<Uses> Device::uses_of_wrapped(Address memory, uint64_t bytes) {
  std::lock_guard lock(order_);
  std::erase_if(wrapped_, [](const Wrapped& w) { return w.uses.expired(); });
  auto uses = std::make_shared<Uses>();
  for (const Wrapped& w : wrapped_)
    if (const auto other = w.uses.lock(); memory < w.to && w.from < memory + bytes && other)
      other->join(uses);
  wrapped_.push_back({memory, memory + bytes, uses});
  return uses;
}

void Device::disown(Address memory, uint64_t bytes, Uses& uses) noexcept {
  attempt([&] {
    std::vector<Ticket> after;
    if (several_) {
      std::lock_guard lock(order_);
      uses.each_before(true, [&](const Uses::Use& use) { after.push_back(use.ticket); });
    }
    if (after.empty()) after.push_back(driver_->submit({}));
    for (const Ticket& ticket : after) driver_->wait(ticket);
  });
  if (Native* native = driver_->native()) attempt([&] { native->disown(memory, bytes); });
}

}  // namespace quern::runtime

#include "backends/gpu/staging.h"

#include <algorithm>
#include <cstring>
#include <optional>

namespace quern::gpu {

namespace {
constexpr uint64_t alignment = 64;
/// Pieces from this size on get an event of their own, so that the next one is on its way while the
/// host copies this.
constexpr uint64_t marked_bytes = 64 << 10;
uint64_t aligned(uint64_t bytes) { return (bytes + alignment - 1) & ~(alignment - 1); }
}  // namespace

Staging::~Staging() {
  queues_.finish();
  Current current(*gpu_);
  if (ring_) gpu_->api->host_free(ring_);
}

/// Room for a piece, once what was there is done with.
Staging::Piece Staging::take(uint64_t bytes) {
  if (!ring_) {
    void* memory = nullptr;
    queues_.call([&] {
      gpu_->expect(gpu_->api->host_allocate(&memory, ring_bytes, flag::host_portable),
                   "allocating pinned memory");
    });
    ring_ = static_cast<std::byte*>(memory);
  }
  uint64_t left = ring_bytes - head_ % ring_bytes;
  uint64_t begin = left < aligned(bytes) ? head_ + left : head_;
  uint64_t end = begin + aligned(bytes);
  while (end - tail_ > ring_bytes) {
    queues_.wait(taken_.front().ticket);
    tail_ = taken_.front().end;
    taken_.pop_front();
  }
  head_ = end;
  return {ring_ + begin % ring_bytes, end};
}

template <class F>
void Staging::alone(F&& f) {
  std::lock_guard lock(mutex_);
  try {
    f();
  } catch (...) {
    queues_.finish();
    taken_.clear();
    tail_ = head_;
    throw;
  }
}

Ticket Staging::send(Address to, const std::byte* from, uint64_t bytes, uint64_t left,
                     uint32_t queue) {
  Ticket ticket = queues_.submit({queue, {}}, [&](Work&) {
    memory_.expect(to, left);
    gpu_->expect(gpu_->api->upload(to, from, bytes, queues_.stream(queue)), "an upload");
  });
  if (bytes >= marked_bytes) queues_.mark(queue);
  return ticket;
}

Ticket Staging::fetch(std::byte* to, Address from, uint64_t bytes, uint64_t left, uint32_t queue) {
  Ticket ticket = queues_.submit({queue, {}}, [&](Work&) {
    memory_.expect(from, left);
    gpu_->expect(gpu_->api->download(to, from, bytes, queues_.stream(queue)), "a download");
  });
  if (bytes >= marked_bytes) queues_.mark(queue);
  return ticket;
}

/// Large pieces of pinned memory need no staging; small ones are not worth the question.
bool Staging::is_pinned(const std::byte* memory, uint64_t bytes) {
  if (bytes < piece_bytes) return false;
  bool pinned = true;
  queues_.call([&] {
    for (const std::byte* at : {memory, memory + bytes - 1}) {
      unsigned type = ~0u;  // unchanged, with an error, where the driver does not know the memory
      Code c = gpu_->api->pointer_attribute(&type, flag::pointer_memory_type,
                                            reinterpret_cast<Address>(at));
      pinned = pinned && c == code::success && type == gpu_->api->host_memory;
    }
  });
  return pinned;
}

void Staging::upload(Address to, std::span<const std::byte> from, uint32_t queue) {
  if (from.empty()) return;
  if (is_pinned(from.data(), from.size()))
    return queues_.wait(send(to, from.data(), from.size(), from.size(), queue));
  alone([&] {
    for (uint64_t first = 0; first < from.size(); first += piece_bytes) {
      uint64_t left = from.size() - first, bytes = std::min(left, piece_bytes);
      Piece piece = take(bytes);
      std::memcpy(piece.host, from.data() + first, bytes);
      give(piece, send(to + first, piece.host, bytes, left, queue));
    }
  });
}

void Staging::download(std::span<std::byte> to, Address from, uint32_t queue) {
  if (to.empty()) return;
  if (is_pinned(to.data(), to.size()))
    return queues_.wait(fetch(to.data(), from, to.size(), to.size(), queue));
  alone([&] {
    struct OnItsWay {
      Piece piece;
      Ticket ticket;
      uint64_t first, bytes;
    };
    auto finish = [&](const OnItsWay& w) {
      queues_.wait(w.ticket);
      std::memcpy(to.data() + w.first, w.piece.host, w.bytes);
      give(w.piece, w.ticket);
    };
    std::optional<OnItsWay> before;
    for (uint64_t first = 0; first < to.size(); first += piece_bytes) {
      uint64_t left = to.size() - first, bytes = std::min(left, piece_bytes);
      Piece piece = take(bytes);
      OnItsWay now{piece, fetch(piece.host, from + first, bytes, left, queue), first, bytes};
      if (before) finish(*before);
      before = now;
    }
    finish(*before);
  });
}

}  // namespace quern::gpu

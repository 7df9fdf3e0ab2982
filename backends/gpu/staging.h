#pragma once
// Copies between the host's memory and a device's, through pinned memory in pieces.
#include "backends/gpu/memory.h"

namespace quern::gpu {

/// A ring of pinned memory: while one piece is on its way the next is filled. Small uploads return
/// at once, and the device reads them when it gets there. All members may be called from any
/// thread.
class Staging {
 public:
  static constexpr uint64_t piece_bytes = 2 << 20, ring_bytes = 4 * piece_bytes;

  Staging(std::shared_ptr<Gpu> gpu, Queues& queues, const Memory& memory)
      : gpu_(std::move(gpu)), queues_(queues), memory_(memory) {}
  ~Staging();
  Staging(const Staging&) = delete;

  /// Ordered after everything submitted to the queue; `from` is not read any more when it returns.
  void upload(Address to, std::span<const std::byte> from, uint32_t queue);
  /// Ordered after everything submitted to the queue; `to` is filled when it returns.
  void download(std::span<std::byte> to, Address from, uint32_t queue);

 private:
  /// Positions count up for ever; their rest modulo ring_bytes is the place in the ring.
  struct Piece {
    std::byte* host;
    uint64_t end;
  };
  struct Taken {
    uint64_t end;
    Ticket ticket;  ///< the submission that uses it
  };
  Piece take(uint64_t bytes);
  /// In the order they were taken.
  void give(const Piece& piece, Ticket ticket) { taken_.push_back({piece.end, ticket}); }
  /// Calls `f` alone; pieces it leaves behind where it throws become free again.
  template <class F>
  void alone(F&& f);
  /// The first `bytes` of `left` bytes that belong together.
  Ticket send(Address to, const std::byte* from, uint64_t bytes, uint64_t left, uint32_t queue);
  Ticket fetch(std::byte* to, Address from, uint64_t bytes, uint64_t left, uint32_t queue);
  bool is_pinned(const std::byte* memory, uint64_t bytes);

  std::shared_ptr<Gpu> gpu_;
  Queues& queues_;
  const Memory& memory_;
  std::mutex mutex_;  ///< one copy at a time; guards everything below
  std::byte* ring_ = nullptr;
  uint64_t head_ = 0, tail_ = 0;  ///< [tail, head) is in use
  std::deque<Taken> taken_;
};

}  // namespace quern::gpu

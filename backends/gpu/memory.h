#pragma once
// A device's memory. Members are called within the functions of Queues.
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "backends/gpu/queues.h"

namespace quern::gpu {

/// What is released goes to the device's pool, by calls of the driver's, and from there to the next
/// allocations. Blocks of up to `most_kept_block` bytes wait here instead for the next of their
/// size in their queue, where it has asked for one: a tape keeps what launches overwrite, thousands
/// of times the same. Queues run in order, so that such a block is free when what comes next in its
/// queue begins. Where `most_kept` bytes would wait, or a quarter of the device's memory, all that
/// do go to the pool.
class Memory {
 public:
  /// `queues` must outlive it.
  Memory(std::shared_ptr<Gpu> gpu, Queues& queues);
  ~Memory();
  Memory(const Memory&) = delete;

  /// Memory for what is submitted to the queue from now on, and what comes behind it; 256-byte aligned. Throws Error with sizes where
  /// there is not enough.
  Address allocate(uint64_t bytes, uint32_t queue);
  /// Goes back once submission `after` and everything before it in its queue are done.
  void release(Address address, Ticket after);
  /// Memory of somebody else's, which `expect` knows until disown, once for each time. Throws Error
  /// where it is not this device's.
  void adopt(Address address, uint64_t bytes);
  void disown(Address address, uint64_t bytes);
  /// Throws InternalError where these bytes were not allocated.
  void expect(Address address, uint64_t bytes) const;
  /// Lets another device reach all of this memory; false where it cannot.
  bool open_to(const Gpu& peer);

  static constexpr uint64_t most_kept_block = 16 << 20, most_kept = 1 << 30;

 private:
  Address take_kept(uint64_t bytes, uint32_t queue);
  bool keep(Address address, uint64_t bytes, uint32_t queue);
  void give_kept();
  Code obtain(Address& address, uint64_t bytes, uint32_t queue);
  void collect();
  void reclaim();
  void free_now(Address address);

  std::shared_ptr<Gpu> gpu_;
  Queues& queues_;
  PoolHandle pool_ = nullptr;  ///< null where the device has none
  std::map<Address, uint64_t> live_;
  std::multimap<Address, uint64_t> foreign_;  ///< they may overlap
  uint64_t used_ = 0;                         ///< bytes of live_
  /// By queue and size, of all that were asked for not too long ago.
  std::map<std::pair<uint32_t, uint64_t>, std::vector<Address>> kept_;
  uint64_t kept_bytes_ = 0;
  struct Waiting {
    Ticket after;
    Address address;
  };
  /// Released, but not yet done with, by queue; without a pool.
  std::map<uint32_t, std::deque<Waiting>> waiting_;
  std::map<int, bool> peers_;  ///< devices asked about
};

}  // namespace quern::gpu

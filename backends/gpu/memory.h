#pragma once
// A device's memory. Members are called within the functions of a queue.
#include <deque>
#include <map>

#include "backends/gpu/queue.h"

namespace quern::gpu {

class Memory {
 public:
  /// `queue` must outlive it.
  Memory(std::shared_ptr<Gpu> gpu, Queue& queue);
  ~Memory();
  Memory(const Memory&) = delete;

  /// Memory for what is submitted from now on; 256-byte aligned. Throws Error with sizes where
  /// there is not enough.
  Address allocate(uint64_t bytes);
  /// Goes back once submission `after` and everything before it are done.
  void release(Address address, Ticket after);
  /// Memory of somebody else's, which `expect` knows until disown, once for each time. Throws Error
  /// where it is not this device's.
  void adopt(Address address, uint64_t bytes);
  void disown(Address address, uint64_t bytes);
  /// Throws InternalError where these bytes were not allocated.
  void expect(Address address, uint64_t bytes) const;
  /// Lets another device reach all of this memory; false where it cannot.
  bool open_to(const Gpu& peer);

 private:
  Code obtain(Address& address, uint64_t bytes);
  void collect();
  void reclaim();
  void free_now(Address address);

  std::shared_ptr<Gpu> gpu_;
  Queue& queue_;
  PoolHandle pool_ = nullptr;  ///< null where the device has none
  std::map<Address, uint64_t> live_;
  std::multimap<Address, uint64_t> foreign_;  ///< they may overlap
  uint64_t used_ = 0;                         ///< bytes of live_
  struct Waiting {
    Ticket after;
    Address address;
  };
  std::deque<Waiting> waiting_;  ///< released, but not yet done with; without a pool
  std::map<int, bool> peers_;    ///< devices asked about
};

}  // namespace quern::gpu

#include "backends/gpu/memory.h"

#include <algorithm>

namespace quern::gpu {

namespace {
/// A pool keeps what is released up to this share of the device's memory, for the next allocation;
/// more goes back to the system.
constexpr uint64_t kept_share = 4;
/// Sizes, by queue, that are remembered as asked for.
constexpr size_t most_sizes = 4096;
}  // namespace

Memory::Memory(std::shared_ptr<Gpu> gpu, Queues& queues) : gpu_(std::move(gpu)), queues_(queues) {
  if (!gpu_->properties.pools) return;
  Current current(*gpu_);
  PoolProperties properties;
  properties.location.device = gpu_->properties.index;
  gpu_->expect(gpu_->api->pool_create(&pool_, &properties), "making a pool of memory");
  uint64_t kept = gpu_->properties.memory / kept_share;
  gpu_->api->pool_set(pool_, flag::pool_release_threshold, &kept);
}

Memory::~Memory() {
  queues_.finish();
  Current current(*gpu_);
  for (const auto& [key, addresses] : kept_)
    for (Address address : addresses) free_now(address);
  for (const auto& [queue, released] : waiting_)
    for (const Waiting& w : released) free_now(w.address);
  for (const auto& [address, bytes] : live_) free_now(address);
  if (!pool_) return;
  gpu_->api->stream_synchronize(queues_.stream(0));
  gpu_->api->pool_destroy(pool_);
}

Address Memory::allocate(uint64_t bytes, uint32_t queue) {
  collect();
  Address address = take_kept(bytes, queue);
  Code c = address ? code::success : code::out_of_memory;
  if (!address && bytes <= gpu_->properties.memory) {
    c = obtain(address, bytes, queue);
    if (c == code::out_of_memory) {
      reclaim();
      c = obtain(address, bytes, queue);
    }
    if (c != code::success && c != code::out_of_memory)
      fail(*gpu_->api, c, "allocating " + std::to_string(bytes) + " bytes");
  }
  if (c == code::out_of_memory) {
    size_t free_bytes = 0, total = 0;
    gpu_->api->memory_info(&free_bytes, &total);
    throw Error("cannot allocate " + std::to_string(bytes) + " bytes on " + gpu_->properties.name +
                ": " + std::to_string(free_bytes) + " of its " +
                std::to_string(gpu_->properties.memory) + " bytes are free, " +
                std::to_string(used_) + " are in use here");
  }
  live_[address] = bytes;
  used_ += bytes;
  return address;
}

/// 0: there is none. Notes that such blocks are asked for.
Address Memory::take_kept(uint64_t bytes, uint32_t queue) {
  if (!pool_ || bytes > most_kept_block) return 0;
  if (kept_.size() >= most_sizes) {
    give_kept();
    kept_.clear();
  }
  std::vector<Address>& same = kept_[{queue, bytes}];
  if (same.empty()) return 0;
  const Address address = same.back();
  same.pop_back();
  kept_bytes_ -= bytes;
  return address;
}

bool Memory::keep(Address address, uint64_t bytes, uint32_t queue) {
  const auto same = kept_.find({queue, bytes});
  const uint64_t most = std::min(most_kept, gpu_->properties.memory / kept_share);
  if (same == kept_.end() || bytes > most) return false;
  if (bytes > most - kept_bytes_) give_kept();
  same->second.push_back(address);
  kept_bytes_ += bytes;
  return true;
}

/// To the pool.
void Memory::give_kept() {
  for (auto& [key, addresses] : kept_)
    while (!addresses.empty()) {
      const Address address = addresses.back();
      addresses.pop_back();
      kept_bytes_ -= key.second;
      gpu_->expect(gpu_->api->pool_free(address, queues_.stream(key.first)), "releasing memory");
    }
}

Code Memory::obtain(Address& address, uint64_t bytes, uint32_t queue) {
  return pool_ ? gpu_->api->pool_allocate(&address, bytes, pool_, queues_.stream(queue))
               : gpu_->api->allocate(&address, bytes);
}

void Memory::release(Address address, Ticket after) {
  auto found = live_.find(address);
  if (found == live_.end()) throw InternalError("release of memory that was not allocated");
  const uint64_t bytes = found->second;
  used_ -= bytes;
  live_.erase(found);
  if (keep(address, bytes, after.queue)) return collect();
  if (pool_)
    gpu_->expect(gpu_->api->pool_free(address, queues_.stream(after.queue)), "releasing memory");
  else
    waiting_[after.queue].push_back({after, address});
  collect();
}

void Memory::collect() {
  for (auto& [queue, released] : waiting_)
    while (!released.empty() && queues_.reached(released.front().after)) {
      Address address = released.front().address;
      released.pop_front();
      gpu_->expect(gpu_->api->free(address), "releasing memory");
    }
}

/// Waits until what was released can be had again.
void Memory::reclaim() {
  give_kept();
  queues_.each_stream([&](StreamHandle stream) {
    gpu_->expect(gpu_->api->stream_synchronize(stream), "waiting for the device");
  });
  if (pool_) gpu_->expect(gpu_->api->pool_trim(pool_, 0), "giving memory back");
  for (auto& [queue, released] : waiting_)
    for (; !released.empty(); released.pop_front())
      gpu_->expect(gpu_->api->free(released.front().address), "releasing memory");
}

void Memory::free_now(Address address) {
  if (pool_)
    gpu_->api->pool_free(address, queues_.stream(0));
  else
    gpu_->api->free(address);
}

void Memory::adopt(Address address, uint64_t bytes) {
  unsigned type = 0;
  int device = -1;
  Code c = gpu_->api->pointer_attribute(&type, flag::pointer_memory_type, address);
  const bool of_the_host = c == code::success && type == gpu_->api->host_memory;
  if (c == code::success && !of_the_host)
    c = gpu_->api->pointer_attribute(&device, flag::pointer_device, address);
  Context context = nullptr;  // memory of pools has none
  if (gpu_->context && c == code::success && !of_the_host &&
      gpu_->api->pointer_attribute(&context, flag::pointer_context, address) != code::success)
    context = nullptr;
  if (is_fatal(c)) fail(*gpu_->api, c, "asking for a pointer's device");
  std::string where;
  if (c != code::success)
    where = "no memory that " + gpu_->api->vendor + " knows";
  else if (of_the_host)
    where = "the host's memory";
  else if (device != gpu_->properties.index)
    where = "memory of device " + std::to_string(device) + ", and " + gpu_->properties.name +
            " is device " + std::to_string(gpu_->properties.index);
  else if (context && context != gpu_->context)
    where = "memory of another context";
  if (!where.empty()) throw Error("the pointer wrapped leads to " + where);
  foreign_.emplace(address, bytes);
}

void Memory::disown(Address address, uint64_t bytes) {
  auto [from, to] = foreign_.equal_range(address);
  for (auto it = from; it != to; ++it)
    if (it->second == bytes) {
      foreign_.erase(it);
      return;
    }
  throw InternalError("memory is given back that was not adopted");
}

void Memory::expect(Address address, uint64_t bytes) const {
  auto next = live_.upper_bound(address);
  if (next != live_.begin()) {
    auto [start, size] = *std::prev(next);
    uint64_t offset = address - start;
    if (offset <= size && bytes <= size - offset) return;
  }
  for (auto [start, size] : foreign_)
    if (address >= start && address - start <= size && bytes <= size - (address - start)) return;
  throw InternalError("no device memory of " + std::to_string(bytes) + " bytes at address " +
                      std::to_string(address));
}

bool Memory::open_to(const Gpu& peer) {
  int device = peer.properties.index;
  auto known = peers_.find(device);
  if (known != peers_.end()) return known->second;
  int can = 0;
  gpu_->expect(gpu_->api->can_access_peer(&can, device, gpu_->properties.index),
               "asking whether devices reach each other");
  if (can) {
    PoolAccess access;
    access.location.device = device;
    Current current(peer);
    Code c = pool_ ? gpu_->api->pool_access(pool_, &access, 1)
                   : gpu_->api->enable_peer(gpu_->context, gpu_->properties.index);
    if (c != code::peer_access_already_enabled) gpu_->expect(c, "opening memory to another device");
  }
  return peers_[device] = can != 0;
}

}  // namespace quern::gpu

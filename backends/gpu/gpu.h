#pragma once
// A device that Quern uses: what it can do, and its context.
#include <memory>
#include <vector>

#include "backends/gpu/failure.h"

namespace quern::gpu {

struct Properties {
  int index = 0;
  std::string name;          ///< each device's own: "NVIDIA H200", "NVIDIA H200 (2)"
  std::string architecture;  ///< "sm_90", "gfx942:sramecc+:xnack-"
  uint64_t memory = 0;       ///< bytes
  uint32_t multiprocessors = 1, warp_size = 32, max_threads = 1024;
  uint64_t max_grid = 0;      ///< blocks along x
  uint32_t shared_bytes = 0;  ///< of a block
  bool pools = false;         ///< allocates in the order of a stream
};

/// All devices of the vendor, in the driver's order. Empty and a reason where there are none.
std::vector<Properties> describe_all(const Api& api, std::string& why);

/// A device's primary context, or one of somebody else's.
class Gpu {
 public:
  Gpu(std::shared_ptr<const Api> api, Properties properties, Context foreign = nullptr);
  ~Gpu();
  Gpu(const Gpu&) = delete;

  void expect(Code c, const char* what) const { gpu::expect(*api, c, what); }

  const std::shared_ptr<const Api> api;
  const Properties properties;
  Context context = nullptr;

 private:
  bool retained_ = false;
};

/// Makes a device the calling thread's while it lives.
class Current {
 public:
  explicit Current(const Gpu& gpu) : gpu_(gpu) {
    code_ = gpu.api->enter(gpu.context, gpu.properties.index, &before_);
  }
  ~Current() {
    if (code_ == code::success) gpu_.api->leave(before_);
  }
  Current(const Current&) = delete;
  /// For work: throws where the device could not be entered. (Cleaning up goes on without.)
  void expect() const { gpu_.expect(code_, "entering the device"); }

 private:
  const Gpu& gpu_;
  Code code_;
  int before_ = 0;
};

/// An event without timing.
class Event {
 public:
  explicit Event(std::shared_ptr<Gpu> gpu);
  ~Event();
  Event(const Event&) = delete;

  void record(StreamHandle stream) {
    gpu_->expect(gpu_->api->event_record(handle, stream), "recording an event");
  }
  /// Has the last record been reached?
  bool done() const;
  /// Until it is.
  void wait() const {
    gpu_->expect(gpu_->api->event_synchronize(handle), "waiting for the device");
  }
  EventHandle handle = nullptr;

 private:
  std::shared_ptr<Gpu> gpu_;
};

}  // namespace quern::gpu

// The vendor's own code beside a driver.
#include "backends/gpu/driver.h"

namespace quern::gpu {

runtime::Native::Handles Driver::handles() const {
  return {gpu_->properties.index, gpu_->context, first_stream_};
}

/// What comes into `second` from now on runs after what is in `first`. Called within the queues.
void Driver::order(StreamHandle first, StreamHandle second) {
  if (first == second) return;
  Event reached(gpu_);
  reached.record(first);
  gpu_->expect(gpu_->api->stream_wait_event(second, reached.handle, 0),
               "making a stream wait for another");
}

void Driver::run_after(void* stream) {
  queues_.submit({}, [&](Work&) {
    queues_.each_stream([&](StreamHandle own) { order(static_cast<StreamHandle>(stream), own); });
  });
}

void Driver::run_before(void* stream) {
  queues_.submit({}, [&](Work&) {
    queues_.each_stream([&](StreamHandle own) { order(own, static_cast<StreamHandle>(stream)); });
  });
}

void Driver::adopt(runtime::Address address, uint64_t bytes) {
  queues_.call([&] { memory_.adopt(address, bytes); });
}

void Driver::disown(runtime::Address address, uint64_t bytes) {
  queues_.call([&] { memory_.disown(address, bytes); });
}

}  // namespace quern::gpu

// Copies between the devices of a vendor.
#include <algorithm>

#include "backends/gpu/driver.h"

namespace quern::gpu {

bool Driver::reaches(Driver& source) {
  bool reached = false;
  source.queues_.call([&] { reached = source.memory_.open_to(*gpu_); });
  return reached;
}

Ticket Driver::copy_from(Driver& source, runtime::Address to, runtime::Address from,
                         uint64_t bytes) {
  if (gpu_->api != source.gpu_->api)
    throw InternalError("a copy between devices of different drivers");
  if (&source == this) {
    runtime::Command command = runtime::Copy{to, from, bytes};
    return submit({&command, 1});
  }
  source.queues_.call([&] { source.memory_.expect(from, bytes); });
  queues_.call([&] { memory_.expect(to, bytes); });
  if (bytes == 0) return queues_.last(0);

  if (!reaches(source)) {
    std::vector<std::byte> piece(std::min(bytes, Staging::ring_bytes));
    for (uint64_t first = 0; first < bytes; first += piece.size()) {
      std::span<std::byte> part(piece.data(), std::min<uint64_t>(piece.size(), bytes - first));
      source.download(part, from + first);
      upload(to + first, part);
    }
    return queues_.last(0);
  }

  std::shared_ptr<Event> before = source.queues_.event(source.queues_.submit({}, [](Work&) {}));
  Ticket copied = queues_.submit({}, [&](Work&) {
    if (before)
      gpu_->expect(gpu_->api->stream_wait_event(queues_.stream(0), before->handle, 0),
                   "waiting for another device");
    copy_apart(to, from, bytes, 0);
  });
  // The source must not overwrite or release what is still being read.
  std::shared_ptr<Event> after = queues_.event(copied);
  source.queues_.submit({}, [&](Work&) {
    if (after)
      gpu_->expect(gpu_->api->stream_wait_event(source.queues_.stream(0), after->handle, 0),
                   "waiting for another device");
  });
  return copied;
}

}  // namespace quern::gpu

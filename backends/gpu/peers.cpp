// Copies between the devices of a vendor.
#include <algorithm>

#include "backends/gpu/driver.h"

namespace quern::gpu {

bool Driver::reaches(Driver& source) {
  bool reached = false;
  source.queue_.call([&] { reached = source.memory_.open_to(*gpu_); });
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
  source.queue_.call([&] { source.memory_.expect(from, bytes); });
  queue_.call([&] { memory_.expect(to, bytes); });
  if (bytes == 0) return queue_.last();

  if (!reaches(source)) {
    std::vector<std::byte> piece(std::min(bytes, Staging::ring_bytes));
    for (uint64_t first = 0; first < bytes; first += piece.size()) {
      std::span<std::byte> part(piece.data(), std::min<uint64_t>(piece.size(), bytes - first));
      source.download(part, from + first);
      upload(to + first, part);
    }
    return queue_.last();
  }

  std::shared_ptr<Event> before = source.queue_.event(source.queue_.submit([](Work&) {}));
  Ticket copied = queue_.submit([&](Work&) {
    if (before)
      gpu_->expect(gpu_->api->stream_wait_event(queue_.stream(), before->handle, 0),
                   "waiting for another device");
    copy_apart(to, from, bytes);
  });
  // The source must not overwrite or release what is still being read.
  std::shared_ptr<Event> after = queue_.event(copied);
  source.queue_.submit([&](Work&) {
    if (after)
      gpu_->expect(gpu_->api->stream_wait_event(source.queue_.stream(), after->handle, 0),
                   "waiting for another device");
  });
  return copied;
}

}  // namespace quern::gpu

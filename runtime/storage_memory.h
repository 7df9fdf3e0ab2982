#pragma once
#include "quern/runtime/storage.h"

namespace quern::runtime {

/// What a field and its views share. swap exchanges contents, so that views follow.
struct Storage::Memory {
  explicit Memory(std::shared_ptr<Device> on) : device(std::move(on)) {}
  ~Memory() { free(); }
  Memory(const Memory&) = delete;

  void free() {
    if (allocations.empty()) return;
    if (foreign)
      device->disown(allocations[0], bytes[0]);
    else
      device->release(allocations);
    allocations.clear();
    if (auto done = std::move(owner)) done();
    owner = nullptr;
  }

  std::shared_ptr<Device> device;
  std::vector<uint64_t> bytes;  ///< of each allocation
  std::vector<Address> allocations;
  bool foreign = false;
  std::function<void()> owner;  ///< told when foreign memory is used no more
  Loc released;
};

/// Throws Error unless these are first indices for a field of so many axes.
void expect_firsts(std::span<const int64_t> firsts, size_t rank, Loc loc);

/// Calls `visit` with the pieces of each allocation, which follow each other.
template <class Piece, class F>
void for_each_allocation(std::span<const Piece> pieces, F&& visit) {
  for (size_t from = 0; from < pieces.size();) {
    size_t to = from;
    while (to < pieces.size() && pieces[to].allocation == pieces[from].allocation) to++;
    visit(pieces.subspan(from, to - from));
    from = to;
  }
}

}  // namespace quern::runtime

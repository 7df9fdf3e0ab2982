#pragma once
#include <atomic>
#include <map>
#include <mutex>

#include "quern/runtime/storage.h"
#include "runtime/uses.h"

namespace quern::runtime {

/// As a field was declared, and how much memory that takes. A field that grows gets another one.
struct Storage::Declared {
  Declared(std::vector<ir::Storage> as, Element host, std::vector<int64_t> extents, Layout places,
           std::vector<uint64_t> of_allocations);

  const std::vector<ir::Storage> stored;
  const Element element;
  const std::vector<int64_t> shape;
  const Layout layout;
  const std::vector<uint64_t> bytes;  ///< of each allocation
  const uint64_t bytes_side_by_side;
  /// Do they lie so, in one allocation of the device's? Then versions are copied as one piece. What
  /// is not small does where each begins on a cache line even so.
  const bool is_one_piece;
  const uint64_t all_bytes;

  /// Bytes of what lies side by side: no piece is aligned less than Storage::alignment() may say.
  /// Pieces at one place of their pages collide in CPUs' caches: whole pages have a gap behind them.
  static uint64_t aligned(uint64_t n) {
    constexpr uint64_t page = 4096, gap = 192;
    return n > 0 && n % page == 0 ? n + gap : (n + 15) / 16 * 16;
  }
};

/// What a field and its views share. swap exchanges contents, so that views follow.
///
/// A snapshot's memory is one of its own, which names the allocations of another until that is
/// written (they are copied), freed (they are taken over), or the snapshot ends. There is one at a
/// time that shares: snapshots of one version are the same.
struct Storage::Memory {
  Memory(std::shared_ptr<Device> on, std::shared_ptr<const Declared> as,
         std::shared_ptr<Uses> of = std::make_shared<Uses>())
      : uses(std::move(of)), device(std::move(on)), declared(std::move(as)) {}
  ~Memory() { free(); }
  Memory(const Memory&) = delete;

  /// Allocations as declared, in the place of those it names. Throws Error where memory is short.
  void allocate(std::string_view what, Loc loc, Device::Contents contents);
  void free();
  void swap(Memory& other);
  /// Gives the snapshot that shares the allocations its own. Throws Error where there is no memory.
  void part_from_snapshot(Loc loc);
  std::shared_ptr<Memory> snapshot(Loc loc);
  /// The same contents, in memory of its own.
  std::shared_ptr<Memory> copy(Loc loc) const;
  /// Copies each allocation of `from`, of the same sizes.
  void copy_from(const Memory& from);
  /// The same before the next command, and not to be read soon (Copy::is_kept).
  void keep_from(const Memory& from);
  /// The same, to one allocation, from the first-th byte on: before `from` is written, or this is
  /// read.
  void copy_side_by_side(Memory& from, uint64_t first);
  /// To be called before it is written, and before what copy_side_by_side() wrote is read.
  void expect_copied() {
    if (const uint64_t waiting = copied_in_) device->stream().hurry(waiting);
  }
  /// Takes the name of what was copied so.
  void name(const Memory& block, uint64_t first, uint64_t version_there);
  /// The name is given up: it holds nothing.
  void forget_block();

  const std::vector<uint64_t>& bytes() const { return declared->bytes; }
  /// What it takes of the device.
  uint64_t all_bytes() const { return declared->all_bytes; }

  // What each launch looks at stands together: a tape keeps more snapshots than a cache holds.
  std::vector<Address> allocations;
  Loc released;
  std::shared_ptr<Uses> uses;  ///< of the allocations
  std::atomic<uint64_t> version = next_version();
  uint64_t identity = next_version();          ///< Storage::identity
  std::atomic<const char*> written_file = "";  ///< Storage::written_at
  std::atomic<int> written_line = 0;
  bool is_snapshot = false;
  bool foreign = false;   ///< wrapped
  bool is_shown = false;  ///< other code knows the address, and may write there
  // Of a snapshot:
  bool shares = false;                ///< the allocations are another's
  bool is_in_block = false;           ///< and stay, as they are of Versions
  mutable std::shared_mutex holding;  ///< held by who reads the addresses

  std::shared_ptr<Device> device;
  std::shared_ptr<const Declared> declared;  ///< copies and snapshots have that of their field
  std::function<void()> owner;               ///< told when foreign memory is used no more

  std::mutex companions_mutex;                                 ///< guards companions
  std::map<std::string, std::shared_ptr<Storage>> companions;  ///< of the whole field
  void release_companions(Loc loc);

  static uint64_t next_version();
  /// Storage::moves
  static inline std::atomic<uint64_t> moves = 1;

 private:
  void release();
  std::span<const Command> copies(const Memory& from, bool is_kept) const;

  std::atomic<uint64_t> copied_in_ = 0;   ///< Stream::submit_later, of the last copy_side_by_side
  std::mutex mutex_;                      ///< guards sharing_
  std::weak_ptr<Memory> sharing_;         ///< the snapshot that names these allocations
  std::atomic<bool> has_shared_ = false;  ///< it was set since memory was last parted
};

/// A C struct of the components.
Element natural_element(std::span<const ir::Storage> components);

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

// Versions of a field's contents, and snapshots that share memory until it is written.
#include <algorithm>
#include <numeric>

#include "quern/runtime/tree.h"
#include "runtime/storage_memory.h"

namespace quern::runtime {

namespace {
constexpr const char* what_snapshots_are = "a snapshot of a field";

/// The address sanitizer watches the ends of allocations: with it each component has its own.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool are_watched = true;
#elif defined(__has_feature)
constexpr bool are_watched = __has_feature(address_sanitizer);
#else
constexpr bool are_watched = false;
#endif
}  // namespace

uint64_t Storage::Number::next() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

uint64_t Storage::new_versions(uint64_t count) {
  static std::atomic<uint64_t> last{0};
  return last.fetch_add(count, std::memory_order_relaxed) + 1;
}

uint64_t Storage::Memory::next_version() { return new_versions(1); }

namespace {
uint64_t sum_of(std::span<const uint64_t> bytes) {
  return std::accumulate(bytes.begin(), bytes.end(), uint64_t(0));
}

bool lie_in_one_piece(std::span<const uint64_t> bytes, uint64_t side_by_side) {
  constexpr uint64_t line = 64, most = 4 << 20, small = 2048;
  if (are_watched || bytes.size() < 2 ||
      std::ranges::any_of(bytes, [](uint64_t n) { return n == 0 || n > most; }))
    return false;
  const auto whole_lines = [](uint64_t n) { return n % line == 0; };
  return side_by_side <= small || (side_by_side <= most && std::ranges::all_of(bytes, whole_lines));
}
}  // namespace

Storage::Declared::Declared(std::vector<ir::Storage> as, Element host, std::vector<int64_t> extents,
                            Layout places, std::vector<uint64_t> of_allocations)
    : stored(std::move(as)),
      element(std::move(host)),
      shape(std::move(extents)),
      layout(places),
      bytes(std::move(of_allocations)),
      bytes_side_by_side([&] {
        uint64_t all = 0;
        for (uint64_t n : bytes) all += aligned(n);
        return all;
      }()),
      is_one_piece(lie_in_one_piece(bytes, bytes_side_by_side)),
      all_bytes(is_one_piece ? bytes_side_by_side : sum_of(bytes)) {}

void Storage::Memory::allocate(std::string_view what, Loc loc, Device::Contents contents) {
  auto uses_made = allocations.empty() && uses ? uses : std::make_shared<Uses>();
  const auto obtain = [&](uint64_t n) {
    return device->allocate(n, what, loc, contents, uses_made.get());
  };
  std::vector<Address> made;
  made.reserve(bytes().size());
  if (declared->is_one_piece) {
    made.push_back(obtain(all_bytes()));
    for (size_t k = 1; k < bytes().size(); k++)
      made.push_back(made.back() + Declared::aligned(bytes()[k - 1]));
  } else {
    try {
      for (uint64_t n : bytes()) made.push_back(obtain(n));
    } catch (...) {
      device->release(made, bytes(), *uses_made);
      throw;
    }
  }
  allocations = std::move(made);
  uses = std::move(uses_made);
}

void Storage::Memory::release() {
  const uint64_t all = all_bytes();
  if (declared->is_one_piece)
    device->release({allocations.data(), 1}, {&all, 1}, *uses);
  else
    device->release(allocations, bytes(), *uses);
}

void Storage::Memory::free() {
  if (allocations.empty()) return;
  std::shared_ptr<Memory> heir;
  {
    std::lock_guard lock(mutex_);
    heir = std::exchange(sharing_, {}).lock();
  }
  if (heir) {
    std::lock_guard held(heir->holding);
    heir->shares = false;  // and so gives them back itself
  } else if (foreign) {
    device->disown(allocations[0], bytes()[0], *uses);
  } else if (!shares) {
    release();
  }
  allocations.clear();
  if (auto done = std::move(owner)) done();
  owner = nullptr;
}

void Storage::Memory::swap(Memory& other) {
  std::scoped_lock lock(mutex_, other.mutex_);
  std::swap(allocations, other.allocations);
  std::swap(uses, other.uses);
  std::swap(foreign, other.foreign);
  std::swap(is_shown, other.is_shown);
  std::swap(owner, other.owner);
  std::swap(sharing_, other.sharing_);
  has_shared_ = other.has_shared_.exchange(has_shared_);
  copied_in_ = other.copied_in_.exchange(copied_in_);
  version = other.version.exchange(version);
  written_file = other.written_file.exchange(written_file);
  written_line = other.written_line.exchange(written_line);
  std::swap(identity, other.identity);
  moves++;
}

/// Until the thread asks again.
std::span<const Command> Storage::Memory::copies(const Memory& from, bool is_kept) const {
  thread_local std::vector<Command> commands;  // kept, as most of these copies are small
  commands.clear();
  if (declared->is_one_piece)
    commands.push_back(Copy{allocations[0], from.allocations[0], all_bytes(), is_kept});
  else
    for (size_t k = 0; k < allocations.size(); k++)
      if (bytes()[k] > 0)
        commands.push_back(Copy{allocations[k], from.allocations[k], bytes()[k], is_kept});
  return commands;
}

void Storage::Memory::copy_from(const Memory& from) {
  const Touch touched[] = {{from.uses.get(), false}, {uses.get(), true}};
  Stream::current(*device).submit(copies(from, false), touched);
}

void Storage::Memory::keep_from(const Memory& from) {
  const Touch touched[] = {{from.uses.get(), false}, {uses.get(), true}};
  Stream::current(*device).submit_later(copies(from, true), touched, Stream::Later::before_next);
}

void Storage::Memory::copy_side_by_side(Memory& from, uint64_t first) {
  thread_local std::vector<Command> commands;  // kept, as nearly all of these copies are small
  commands.clear();
  if (from.declared->is_one_piece)
    commands.push_back(Copy{allocations[0] + first, from.allocations[0], from.all_bytes()});
  else
    for (size_t k = 0; k < from.allocations.size(); k++) {
      const uint64_t n = from.bytes()[k];
      if (n > 0) commands.push_back(Copy{allocations[0] + first, from.allocations[k], n});
      first += Declared::aligned(n);
    }
  const Touch touched[] = {{from.uses.get(), false}, {uses.get(), true}};
  Stream& stream = Stream::current(*device);
  if (from.foreign || from.is_shown) {  // nobody says when that is written
    stream.submit(commands, touched);
    return;
  }
  const uint64_t together = stream.submit_later(commands, touched, Stream::Later::any_time);
  copied_in_.store(together, std::memory_order_release);
  from.copied_in_.store(together, std::memory_order_release);
}

void Storage::Memory::name(const Memory& block, uint64_t first, uint64_t version_there) {
  allocations.resize(bytes().size());
  const uint64_t* n = bytes().data();
  first += block.allocations[0];
  for (Address& at : allocations) {
    at = first;
    first += Declared::aligned(*n++);
  }
  if (uses != block.uses) uses = block.uses;
  version.store(version_there, std::memory_order_release);
  shares = is_in_block = true;
}

void Storage::Memory::forget_block() {
  allocations.clear();
  version.store(next_version(), std::memory_order_release);
  shares = is_in_block = false;
}

void Storage::Memory::part_from_snapshot(Loc loc) {
  if (!has_shared_) return;
  std::lock_guard lock(mutex_);
  if (const std::shared_ptr<Memory> snapshot = sharing_.lock()) {
    std::lock_guard held(snapshot->holding);
    snapshot->allocate(what_snapshots_are, loc, Device::Contents::any);
    snapshot->shares = false;
    snapshot->keep_from(*this);
  }
  sharing_.reset();
  has_shared_ = false;
}

std::shared_ptr<Storage::Memory> Storage::Memory::snapshot(Loc loc) {
  std::lock_guard lock(mutex_);
  if (auto known = sharing_.lock()) return known;
  auto made = std::make_shared<Memory>(device, declared, nullptr);
  made->version = version.load();
  made->is_snapshot = true;
  if (foreign || is_shown) {
    made->allocate(what_snapshots_are, loc, Device::Contents::any);
    made->copy_from(*this);
  } else {
    made->allocations = allocations;
    made->uses = uses;
    made->shares = true;
    sharing_ = made;
    has_shared_ = true;
  }
  return made;
}

std::shared_ptr<Storage::Memory> Storage::Memory::copy(Loc loc) const {
  auto made = std::make_shared<Memory>(device, declared, nullptr);
  const std::shared_lock held(holding);
  made->allocate(what_snapshots_are, loc, Device::Contents::any);
  made->copy_from(*this);
  return made;
}

Uses& Storage::uses() const { return *memory_->uses; }

uint64_t Storage::moves() { return Memory::moves; }

uint64_t Storage::memory_number() const { return memory_->uses->number(); }

uint64_t Storage::identity() const { return memory_->identity; }

uint64_t Storage::version() const { return memory_->version; }

uint64_t Storage::last_version() { return Memory::next_version(); }

bool Storage::is_snapshot() const { return memory_->is_snapshot; }

Storage::Contents Storage::contents(Loc loc) const {
  expect_alive(loc);
  std::shared_ptr<const Contents::OnTree> on_tree;
  if (tree_)
    on_tree = std::make_shared<const Contents::OnTree>(
        Contents::OnTree{is_snapshot() ? tree_ : tree_->snapshot(loc), tree_});
  std::shared_ptr<Memory> memory = is_snapshot() ? memory_ : memory_->snapshot(loc);
  const uint64_t version = memory->version;
  Contents made(std::move(memory), version);
  made.on_tree_ = std::move(on_tree);
  return made;
}

uint64_t Storage::Contents::bytes() const {
  if (!memory_ || place_.bytes > 0) return place_.bytes;
  const std::shared_lock held(memory_->holding);
  if (memory_->shares || memory_->allocations.empty()) return 0;
  return memory_->all_bytes();
}

bool Storage::has(const Contents& contents) const {
  const bool has_elements =
      contents && (memory_ == contents.memory_ ||
                   (version() == contents.version_ && !memory_->foreign && !memory_->is_shown));
  return has_elements && (tree_.get() == contents.tree() || (tree_ && tree_->has(contents.tree())));
}

std::shared_ptr<Storage> Storage::empty_snapshot(Loc loc) const {
  std::shared_ptr<Storage> made = view(loc);
  made->is_view_ = is_view_;
  made->memory_ = std::make_shared<Memory>(device_, memory_->declared, nullptr);
  made->memory_->is_snapshot = true;
  if (tree_) made->elements_ = elements_->empty_snapshot(loc);
  return made;
}

void Storage::show(const Contents& contents) {
  if (!is_snapshot()) throw InternalError("a field shows what a snapshot holds");
  if (contents.is_in_block()) {
    if (memory_->is_in_block && memory_->version == contents.version_ &&
        memory_->allocations[0] == contents.memory_->allocations[0] + contents.place_.first)
      return;
    if (!memory_->is_in_block && !memory_->allocations.empty())
      throw InternalError("what lies in a block is shown in place of what does not");
    contents.memory_->expect_copied();
    return memory_->name(*contents.memory_, contents.place_.first, contents.version_);
  }
  if (memory_ == contents.memory_ && !tree_) {
    if (memory_->is_in_block) memory_->forget_block();
    return;
  }
  memory_ = contents.memory_;
  Memory::moves++;
  if (!tree_) return;
  // As long as the tree itself is the same, code that uses both finds its cells once.
  const auto& [tree, of] = *contents.on_tree_;
  tree_ = of->has(tree.get()) ? of : tree;
  elements_->memory_ = contents.memory_;
}

bool Storage::Versions::suit(const Storage& storage) {
  // To allocate memory when it is overwritten, and to give that back, takes as long as to copy
  // about so many bytes at once, which may turn out to be in vain for the last version alone.
  constexpr uint64_t most = 16384;
  return !storage.tree_ && !storage.is_snapshot() && storage.size_ > 0 &&
         storage.memory_->declared->bytes_side_by_side <= most;
}

const Storage::Contents& Storage::Versions::of(const Storage& storage, Loc loc) {
  const bool is_last = last_.version_ == storage.version() && last_ && !storage.memory_->foreign &&
                       !storage.memory_->is_shown;
  return is_last ? last_ : copied(storage, loc);
}

const Storage::Contents& Storage::Versions::copied(const Storage& storage, Loc loc) {
  storage.expect_alive(loc);
  Memory& from = *storage.memory_;
  const uint64_t bytes = from.declared->bytes_side_by_side;
  if (blocks_.empty() || blocks_.back()->all_bytes() - used_ < bytes)
    begin_block(storage, bytes, loc);
  Memory& block = *blocks_.back();
  const uint64_t version = from.version;  // who writes meanwhile writes another one
  block.copy_side_by_side(from, used_);
  last_.memory_ = {std::shared_ptr<void>(), &block};
  last_.version_ = version;
  last_.place_ = {used_, uint32_t(bytes)};
  used_ += uint32_t(bytes);
  return last_;
}

/// One has as many versions as all before together, up to what is small beside what else a tape
/// has.
void Storage::Versions::begin_block(const Storage& storage, uint64_t bytes, Loc loc) {
  constexpr uint64_t most_bytes = 64 << 10;
  const uint64_t twice = blocks_.empty() ? bytes : 2 * blocks_.back()->all_bytes();
  const uint64_t all = std::max(bytes, std::min(twice, most_bytes));
  auto declared = std::make_shared<const Declared>(
      std::vector<ir::Storage>(), Element(), std::vector<int64_t>(), Layout(), std::vector{all});
  auto made = std::make_shared<Memory>(storage.device_, std::move(declared));
  made->allocations = {storage.device_->allocate(all, "versions of a field", loc,
                                                 Device::Contents::any, made->uses.get())};
  blocks_.push_back(std::move(made));
  used_ = 0;
}

void Storage::begin_write(Loc loc, uint64_t version) {
  expect_alive(loc);
  if (is_snapshot())
    throw Error(loc,
                "a snapshot is written; snapshots are read only: write the field, or restore it");
  memory_->part_from_snapshot(loc);
  memory_->expect_copied();
  memory_->version.store(version, std::memory_order_release);
  memory_->written_file.store(loc.file, std::memory_order_relaxed);
  memory_->written_line.store(loc.line, std::memory_order_relaxed);
}

Loc Storage::written_at() const {
  return {memory_->written_file.load(std::memory_order_relaxed),
          memory_->written_line.load(std::memory_order_relaxed)};
}

std::shared_ptr<Storage> Storage::snapshot(Loc loc) const {
  expect_no_tree("a snapshot would not keep which elements are active", loc);
  const Contents now = contents(loc);
  std::shared_ptr<Storage> taken = view(loc);
  taken->is_view_ = is_view_;
  taken->memory_ = now.memory_;
  return taken;
}

void Storage::restore(const Storage& snapshot, Loc loc) {
  expect_alive(loc);
  if (!snapshot.is_snapshot())
    throw Error(loc, "a field is restored from what is no snapshot of a field");
  if (is_view_ || snapshot.is_view_)
    throw Error(loc, "restore takes whole fields, and this is a view of one");
  if (device_ != snapshot.device_ || !lies_like(snapshot))
    throw Error(loc, "a field of shape " + shape_text(shape_) +
                         " is restored from a snapshot of another kind of field, of shape " +
                         shape_text(snapshot.shape_));
  if (version() == snapshot.version()) return;
  begin_write(loc);
  const auto held = snapshot.hold();
  memory_->copy_from(*snapshot.memory_);
  memory_->version = snapshot.version();
}

void Storage::restore(const Contents& contents, Loc loc) {
  expect_alive(loc);
  expect_no_tree("its contents would not have its active elements", loc);
  if (has(contents)) return;
  begin_write(loc);
  const std::shared_lock held(contents.memory_->holding);
  memory_->copy_from(*contents.memory_);
  memory_->version = contents.version_;
}

std::shared_ptr<Storage> Storage::Copies::of(const Storage& storage, Loc loc) {
  storage.expect_no_tree("a copy would not have its active elements", loc);
  std::shared_ptr<Storage> copy = storage.view(loc);
  copy->is_view_ = storage.is_view_;
  // What a block holds has a memory for each snapshot that shows it.
  const Memory* whole = storage.is_in_block() ? nullptr : storage.memory_.get();
  std::shared_ptr<Memory>& made = made_[{whole, whole ? 0 : storage.memory_->allocations[0]}];
  if (!made) made = storage.memory_->copy(loc);
  copy->memory_ = made;
  return copy;
}

bool Storage::is_in_block() const { return memory_->is_in_block; }

bool Storage::may_move() const { return is_snapshot() && !is_in_block(); }

std::shared_lock<std::shared_mutex> Storage::hold() const {
  if (!may_move()) return {};
  return std::shared_lock(memory_->holding);
}

}  // namespace quern::runtime

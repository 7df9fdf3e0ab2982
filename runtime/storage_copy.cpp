// Host access to the elements of a field, whatever their layout.
#include <algorithm>
#include <cstring>

#include "quern/runtime/tree.h"
#include "runtime/storage_memory.h"

namespace quern::runtime {

namespace {

/// Elements of `width` bytes from one strided array to another.
void copy_strided(std::byte* to, int64_t to_step, const std::byte* from, int64_t from_step,
                  int64_t count, uint32_t width) {
  if (to_step == width && from_step == width) {
    std::memcpy(to, from, size_t(count) * width);
    return;
  }
  auto each = [&](auto size) {
    for (int64_t k = 0; k < count; k++, to += to_step, from += from_step)
      std::memcpy(to, from, size);
  };
  switch (width) {
    case 1: return each(std::integral_constant<size_t, 1>{});
    case 2: return each(std::integral_constant<size_t, 2>{});
    case 4: return each(std::integral_constant<size_t, 4>{});
    case 8: return each(std::integral_constant<size_t, 8>{});
    default: return each(size_t(width));
  }
}

}  // namespace

/// Components that lie as on the host are one piece.
std::vector<Storage::Piece> Storage::pieces() const {
  std::vector<Piece> all;
  bool as_host = facts_.layout.step == element_.bytes;
  for (uint32_t c = 0; c < places_.size(); c++) {
    as_host &= places_[c].offset - places_[0].offset ==
               int64_t(element_.offsets[c]) - int64_t(element_.offsets[0]);
    all.push_back({places_[c].allocation, width(c), element_.offsets[c], places_[c].offset});
  }
  if (as_host)
    return {{places_[0].allocation, element_.bytes, 0,
             places_[0].offset - int64_t(element_.offsets[0])}};
  return all;
}

/// The longest run from the first-th element on, `count` elements at most.
Storage::Run Storage::run_at(int64_t first, int64_t count) const {
  if (is_dense_) return {first, first, 0, count, 1};
  Run run{first, 0, 0, std::min<int64_t>(count, 1), 0};
  int64_t rest = first;
  for (size_t axis = axes_.size(); axis-- > 0;) {
    const Axis& a = axes_[axis];
    const int64_t at = rest % a.extent;
    int64_t left = a.extent - at, apart = 0;
    rest /= a.extent;
    const int64_t outermost = facts_.layout.split(
        uint32_t(axis), at + a.origin, [&](int64_t digit, int64_t extent, int64_t stride) {
          if (apart == 0) left = std::min(left, extent - digit);
          if (apart == 0) apart = stride;
          const bool in_group = facts_.layout.group && stride < facts_.layout.group;
          (in_group ? run.inner : run.outer) += digit * stride;
        });
    run.outer += outermost * a.stride;
    if (axis + 1 < axes_.size()) continue;
    run.count = std::min(count, left);
    run.stride = apart ? apart : a.stride;
  }
  return run;
}

/// `device` is the host's view of the pieces' allocation from byte `origin` on.
void Storage::copy_runs(Direction direction, std::span<const Piece> pieces, std::byte* device,
                        int64_t origin, std::byte* host, int64_t host_step, int64_t first,
                        int64_t count) const {
  const ir::Placement& placement = facts_.layout;
  for (int64_t done = 0; done < count;) {
    const Run run = run_at(first + done, count - done);
    for (const Piece& p : pieces) {
      std::byte* there = device + (p.offset - origin) + placement.bytes(run.outer, p.width) +
                         placement.bytes(run.inner, p.width);
      std::byte* here = host + done * host_step + p.host_offset;
      const int64_t step = placement.bytes(run.stride, p.width);
      if (direction == Direction::to_device)
        copy_strided(there, step, here, host_step, run.count, p.width);
      else
        copy_strided(here, host_step, there, step, run.count, p.width);
    }
    done += run.count;
  }
}

/// In a stream that all writes of the memory come before (to_host), or that takes the copy's place
/// among its uses.
void Storage::copy(Direction direction, Stream& stream, std::span<const Piece> pieces,
                   std::byte* host, int64_t host_step, int64_t first, int64_t count) const {
  if (count == 0) return;
  const Touch touched{memory_->uses.get(), true};
  const ir::Placement& placement = facts_.layout;
  const Piece& piece = pieces[0];
  const Address start = memory_->allocations[piece.allocation];
  const int64_t step = placement.bytes(1, piece.width);
  if (pieces.size() == 1 && is_dense_ && step == piece.width && host_step == piece.width) {
    const Address at = start + uint64_t(piece.offset + first * step);
    const size_t bytes = size_t(count * step);
    if (direction == Direction::to_device)
      stream.upload(at, {host, bytes}, {&touched, 1});
    else
      stream.download({host, bytes}, at);
    return;
  }
  if (device_->target().host_addresses) {
    if (direction == Direction::to_device) stream.submit({}, {&touched, 1});
    stream.synchronize();
    copy_runs(direction, pieces, reinterpret_cast<std::byte*>(start), 0, host, host_step, first,
              count);
    return;
  }
  // The bytes from the first to the last one meant go through a buffer of the host.
  int64_t from = INT64_MAX, to = INT64_MIN, meant = 0;
  for (int64_t done = 0; done < count;) {
    const Run run = run_at(first + done, count - done);
    for (const Piece& p : pieces) {
      int64_t at =
          p.offset + placement.bytes(run.outer, p.width) + placement.bytes(run.inner, p.width);
      int64_t last = at + placement.bytes(run.stride, p.width) * (run.count - 1);
      from = std::min({from, at, last});
      to = std::max({to, at + p.width, last + p.width});
      meant += run.count * p.width;
    }
    done += run.count;
  }
  std::vector<std::byte> buffer(size_t(to - from));
  const Address at = start + uint64_t(from);
  if (direction == Direction::to_device) stream.submit({}, {&touched, 1});
  if (direction == Direction::to_host || meant < to - from) stream.download(buffer, at);
  copy_runs(direction, pieces, buffer.data(), from, host, host_step, first, count);
  if (direction == Direction::to_device) stream.upload(at, buffer, {&touched, 1});
}

void Storage::write(const void* elements, int64_t first, int64_t count, Loc loc) {
  if (tree_) return tree_->write(view(loc), elements, position_of(first), count, loc);
  begin_write(loc);
  auto* host = static_cast<std::byte*>(const_cast<void*>(elements));  // only read
  Stream& stream = Stream::current(*device_);
  const std::vector<Piece> all = pieces();
  for_each_allocation<Piece>(all, [&](std::span<const Piece> some) {
    copy(Direction::to_device, stream, some, host, element_.bytes, first, count);
  });
}

void Storage::read(void* elements, int64_t first, int64_t count) const {
  expect_alive({});
  if (tree_) return tree_->read(view({}), elements, position_of(first), count);
  const auto held = hold();
  Stream& stream = device_->writer(uses());
  const std::vector<Piece> all = pieces();
  for_each_allocation<Piece>(all, [&](std::span<const Piece> some) {
    copy(Direction::to_host, stream, some, static_cast<std::byte*>(elements), element_.bytes, first,
         count);
  });
}

/// Of the number-th element in row-major order.
std::vector<int64_t> Storage::position_of(int64_t number) const {
  std::vector<int64_t> at(shape_.size(), 0);
  if (size_ > 0)
    for (size_t axis = shape_.size(); axis-- > 0; number /= shape_[axis])
      at[axis] = number % shape_[axis];
  return at;
}

void Storage::write_at(std::span<const int64_t> position, const void* element, Loc loc) {
  if (tree_) return tree_->write(view(loc), element, {position.begin(), position.end()}, 1, loc);
  int64_t number = 0;
  for (size_t k = 0; k < position.size(); k++) number = number * shape_[k] + position[k];
  write(element, number, 1, loc);
}

void Storage::read_at(std::span<const int64_t> position, void* element) const {
  expect_alive({});
  if (tree_) return tree_->read(view({}), element, {position.begin(), position.end()}, 1);
  int64_t number = 0;
  for (size_t k = 0; k < position.size(); k++) number = number * shape_[k] + position[k];
  read(element, number, 1);
}

void Storage::fill(const void* element, Loc loc) {
  expect_no_tree("a fill would make every element active; write the active ones in a loop over it",
                 loc);
  begin_write(loc);
  auto* host = static_cast<std::byte*>(const_cast<void*>(element));  // only read
  if (is_view_ || memory_->foreign) {
    // Component by component: what lies between them belongs to someone else.
    for (uint32_t c = 0; c < places_.size(); c++) {
      const Piece piece{places_[c].allocation, width(c), element_.offsets[c], places_[c].offset};
      copy(Direction::to_device, Stream::current(*device_), {&piece, 1}, host, 0, 0, size_);
    }
    return;
  }
  // Elements that pad blocks may be filled too. A unit is repeated through each allocation.
  for (uint32_t a = 0; a < memory_->allocations.size(); a++) {
    const ir::Placement& placement = facts_.layout;
    std::vector<std::byte> unit(placement.group ? placement.group_bytes : placement.step);
    for (uint32_t c = 0; c < places_.size(); c++) {
      if (places_[c].allocation != a) continue;
      if (unit.empty()) unit.resize(width(c));
      const uint32_t copies = std::max(1u, placement.group);
      for (uint32_t k = 0; k < copies; k++)
        std::memcpy(unit.data() + places_[c].offset + k * width(c), host + element_.offsets[c],
                    width(c));
    }
    fill_allocation(a, unit);
  }
}

void Storage::clear(Loc loc) {
  if (is_view_ || memory_->foreign) {
    const std::vector<std::byte> zero(element_.bytes);
    return fill(zero.data(), loc);
  }
  expect_no_tree("to clear it would make every element active", loc);
  begin_write(loc);
  constexpr std::byte zero[4] = {};
  for (uint32_t a = 0; a < memory_->allocations.size(); a++) fill_allocation(a, zero);
}

void Storage::fill_allocation(uint32_t allocation, std::span<const std::byte> unit) {
  const uint64_t total = memory_->bytes()[allocation];
  const Address start = memory_->allocations[allocation];
  if (total == 0) return;
  Stream& stream = Stream::current(*device_);
  const Touch touched{memory_->uses.get(), true};
  // One word that repeats: a fill. Allocations are whole words, so the last may be filled too.
  std::byte word[4];
  for (size_t k = 0; k < 4; k++) word[k] = unit[k % unit.size()];
  bool repeats = unit.size() <= 4 || unit.size() % 4 == 0;
  for (size_t k = 0; k < unit.size(); k++) repeats &= unit[k] == word[k % 4];
  if (repeats && unit.size() != 3) {
    uint32_t pattern;
    std::memcpy(&pattern, word, 4);
    Command command = Fill{start, (total + 3) / 4 * 4, pattern};
    stream.submit({&command, 1}, {&touched, 1});
    return;
  }
  // A chunk of whole units is made by copies that double it; copies in the device's memory go on.
  const uint64_t whole = std::max<uint64_t>(4096 / unit.size(), 1) * unit.size();
  std::vector<std::byte> chunk(std::min(whole, total));
  uint64_t made = std::min<uint64_t>(unit.size(), chunk.size());
  std::memcpy(chunk.data(), unit.data(), made);
  for (uint64_t n; made < chunk.size(); made += n) {
    n = std::min(made, chunk.size() - made);
    std::memcpy(chunk.data() + made, chunk.data(), n);
  }
  uint64_t done = chunk.size();
  stream.send(start, chunk, {&touched, 1});
  while (done < total) {
    uint64_t n = std::min(done, total - done);
    Command command = Copy{start + done, start, n};
    stream.submit({&command, 1}, {&touched, 1});
    done += n;
  }
}

}  // namespace quern::runtime

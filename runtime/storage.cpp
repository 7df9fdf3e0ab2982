// The memory of a field, and what a launch must know of it.
#include "quern/runtime/storage.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <iterator>
#include <string_view>

#include "runtime/storage_memory.h"

namespace quern::runtime {

std::string shape_text(std::span<const int64_t> shape) {
  std::string text = "(";
  for (size_t k = 0; k < shape.size(); k++) text += (k ? ", " : "") + std::to_string(shape[k]);
  return text + ")";
}

// ---- memory

namespace {
/// "a field of shape (2, 3)": what each field is made with, and hardly any message says.
class FieldText {
 public:
  explicit FieldText(std::span<const int64_t> shape) {
    add("a field of shape (");
    for (size_t k = 0; k < shape.size(); k++) {
      if (k > 0) add(", ");
      end_ = std::to_chars(end_, std::end(text_), shape[k]).ptr;
    }
    add(")");
  }
  operator std::string_view() const { return {text_, end_}; }

 private:
  void add(std::string_view part) { end_ = std::ranges::copy(part, end_).out; }

  char text_[32 + 22 * Layout::max_axes];
  char* end_ = text_;
};
}  // namespace

Storage::~Storage() = default;

Storage::Storage(std::shared_ptr<Device> device, std::vector<ir::Storage> components,
                 std::vector<int64_t> shape, Loc loc, const Layout& layout, Element element)
    : Storage(Unallocated{}, std::move(device), std::move(components), std::move(shape), loc,
              layout, std::move(element)) {
  memory_->allocate(FieldText(shape_), loc, Device::Contents::zeros);
}

std::shared_ptr<Storage> Storage::unset(std::shared_ptr<Device> device,
                                        std::vector<ir::Storage> components,
                                        std::vector<int64_t> shape, const std::string& what,
                                        Loc loc, const Layout& layout, Element element) {
  std::shared_ptr<Storage> s(new Storage(Unallocated{}, std::move(device), std::move(components),
                                         std::move(shape), loc, layout, std::move(element)));
  s->memory_->allocate(what, loc, Device::Contents::any);
  return s;
}

std::shared_ptr<Storage> Storage::wrap(std::shared_ptr<Device> device,
                                       std::vector<ir::Storage> components,
                                       std::vector<int64_t> shape, void* memory, Loc loc,
                                       const Layout& layout, Element element,
                                       std::function<void()> done) {
  Native* native = device->driver().native();
  if (!device->target().host_addresses && !native)
    throw Error(loc,
                "device " + device->name() +
                    " does not see the host's memory, so none can be wrapped; make a field and "
                    "copy_from");
  std::shared_ptr<Storage> s(new Storage(Unallocated{}, std::move(device), std::move(components),
                                         std::move(shape), loc, layout, std::move(element)));
  if (s->memory_->bytes().size() != 1)
    throw Error(loc, "memory is wrapped as one array of elements: " +
                         std::to_string(s->memory_->bytes().size()) +
                         " components want the layout aos");
  for (uint32_t axis = 0; axis < s->axes_.size(); axis++)
    if (s->shape_[axis] % s->block(axis) != 0)
      throw Error(loc, "memory is wrapped in whole blocks: extent " +
                           std::to_string(s->shape_[axis]) + " of axis " + std::to_string(axis) +
                           " is no multiple of " + std::to_string(s->block(axis)));
  uint64_t address = reinterpret_cast<uint64_t>(memory);
  if (!memory) throw Error(loc, "a null pointer is wrapped");
  for (uint32_t c = 0; c < s->components_.size(); c++)
    if (address % s->width(c) != 0)
      throw Error(loc, "the memory wrapped is not aligned to the " + std::to_string(s->width(c)) +
                           " bytes of its components");
  if (native) try {
      native->adopt(address, s->memory_->bytes()[0]);
    } catch (const Error& e) {
      throw Error(loc, e.message());
    }
  s->memory_->foreign = true;
  s->memory_->allocations = {address};
  s->memory_->uses = s->device_->uses_of_wrapped(address, s->memory_->bytes()[0]);
  s->memory_->owner = std::move(done);
  return s;
}

Storage::Array Storage::array(Loc loc) const {
  expect_alive(loc);
  expect_no_tree("other code sees no array in it", loc);
  bool blocks = false, together = true;
  for (uint32_t k = 0; k < axes_.size(); k++) blocks |= !is_linear(k);
  for (uint32_t c = 0; c < components_.size(); c++) {
    together &= places_[c].allocation == places_[0].allocation &&
                places_[c].offset - places_[0].offset ==
                    int64_t(element_.offsets[c]) - int64_t(element_.offsets[0]);
    for (uint32_t k = 0; k < axes_.size(); k++) together &= stride(c, k) == stride(0, k);
  }
  if (blocks || !together)
    throw Error(loc, std::string("other code sees no array in this field: its layout ") +
                         (blocks ? "has blocks" : "keeps components apart; make it with aos"));
  if (is_snapshot())
    throw Error(
        loc, "other code sees no array in a snapshot, which is read only: restore a field from it");
  memory_->part_from_snapshot(loc);
  Stream::current(*device_).submit_waiting();
  memory_->is_shown = true;
  Array a;
  for (uint32_t k = 0; k < axes_.size(); k++) a.strides.push_back(stride(0, k));
  if (size_ > 0)
    a.address = memory_->allocations[places_[0].allocation] + uint64_t(places_[0].offset) -
                element_.offsets[0];
  return a;
}

void Storage::swap(Storage& other, Loc loc) {
  if (&other == this) return;
  expect_alive(loc);
  other.expect_alive(loc);
  if (device_ != other.device_)
    throw Error(loc, "swap of fields on different devices: " + device_->name() + " and " +
                         other.device_->name());
  if (is_view_ || other.is_view_)
    throw Error(loc, "swap exchanges the memory of whole fields, and this is a view of one");
  if (is_snapshot() || other.is_snapshot())
    throw Error(loc, "a snapshot is read only: it exchanges its memory with none");
  if (shape_ != other.shape_)
    throw Error(loc, "swap of fields of different shapes: " + shape_text(shape_) + " and " +
                         shape_text(other.shape_));
  if (!std::ranges::equal(stored_, other.stored_, {}, &ir::Storage::storage, &ir::Storage::storage))
    throw Error(loc, "swap of fields of different element types");
  if (tree_ != other.tree_) throw Error(loc, "swap of fields on different trees");
  if (!lies_like(other)) throw Error(loc, "swap of fields of different layouts");
  swap_companions(other, loc);
  memory_->swap(*other.memory_);
}

/// Do elements of the same shape and types lie at the same places?
bool Storage::lies_like(const Storage& other) const {
  const ir::Placement &a = facts_.layout, &b = other.facts_.layout;
  bool alike =
      shape_ == other.shape_ && a.levels == b.levels && a.step == b.step && a.group == b.group &&
      memory_->bytes() == other.memory_->bytes() &&
      std::ranges::equal(stored_, other.stored_, {}, &ir::Storage::storage, &ir::Storage::storage);
  for (size_t k = 0; alike && k < axes_.size(); k++)
    alike &= axes_[k].stride == other.axes_[k].stride;
  for (size_t c = 0; alike && c < places_.size(); c++)
    alike &= places_[c].allocation == other.places_[c].allocation &&
             places_[c].offset == other.places_[c].offset;
  return alike;
}

void Storage::release(Loc loc) {
  if (is_view_) throw Error(loc, "this is a view: the field it was made from gives memory back");
  expect_alive(loc);
  memory_->release_companions(loc);
  memory_->free();
  memory_->released = loc.line ? loc : Loc{"?", 1};
  Memory::moves++;
}

bool Storage::released() const { return memory_->released.line != 0; }

void Storage::expect_alive(Loc loc) const {
  if (!released()) return;
  throw Error(loc, "this field was released at " + std::string(memory_->released.file) + ":" +
                       std::to_string(memory_->released.line) + " and has no memory any more");
}

// ---- what a launch needs

Address Storage::base(uint32_t component) const {
  const Component& c = places_[component];
  return memory_->allocations[c.allocation] + uint64_t(c.origin);
}

void Storage::put_bases(ir::abi::Writer& to, size_t binding) const {
  for (uint32_t c = 0; c < places_.size(); c++) to.base(binding, c, base(c));
}

uint32_t Storage::alignment() const {
  if (!steps_) return 1;
  return 1u << std::countr_zero(steps_ | memory_->allocations[places_[0].allocation] | 16);
}

int64_t Storage::stride(uint32_t component, uint32_t axis) const {
  return places_[component].strides[axis];
}

int64_t Storage::origin(uint32_t axis) const {
  return is_linear(axis) && !tree_ ? 0 : axes_[axis].origin - axes_[axis].first;
}

/// Bytes of its allocation that a component's elements lie in.
Storage::Range Storage::range(uint32_t component) const {
  Range r{places_[component].offset, places_[component].offset + int64_t(width(component))};
  for (uint32_t k = 0; k < axes_.size(); k++) {
    const Axis& a = axes_[k];
    int64_t first = a.origin / block(k), last = (a.origin + a.extent - 1) / block(k);
    int64_t from = first * stride(component, k), to = last * stride(component, k);
    r.from += std::min(from, to);
    r.to += std::max(from, to);
    facts_.layout.for_each_digit(k, [&](int64_t extent, int64_t stride) {
      r.to += facts_.layout.bytes(stride, width(component)) * (extent - 1);
    });
  }
  return r;
}

uint64_t Storage::bytes() const { return memory_->all_bytes(); }

bool Storage::is_wrapped() const { return memory_->foreign; }

bool Storage::overlaps(const Storage& other) const {
  const Memory &a = *memory_, &b = *other.memory_;
  if (&a != &b && !a.foreign && !b.foreign) return false;
  if (tree_ || other.tree_) return true;
  if (size_ == 0 || other.size_ == 0) return false;
  for (uint32_t c = 0; c < places_.size(); c++) {
    Range mine = range(c);
    Address at = a.allocations[places_[c].allocation];
    for (uint32_t d = 0; d < other.places_.size(); d++) {
      Range theirs = other.range(d);
      int64_t apart = int64_t(b.allocations[other.places_[d].allocation] - at);
      if (mine.from < theirs.to + apart && theirs.from + apart < mine.to) return true;
    }
  }
  return false;
}

}  // namespace quern::runtime

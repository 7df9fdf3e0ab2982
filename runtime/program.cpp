#include "quern/runtime/program.h"

#include <algorithm>
#include <cstring>

#include "runtime/variant.h"

namespace quern::runtime {

using namespace ir;

namespace {
std::string describe(const Binding& b, size_t index) {
  return b.name.empty() ? "argument " + std::to_string(index + 1) : b.name;
}

/// Fields that may share elements get the class of the first of them.
Signature signature_of(const Kernel& kernel, std::span<const Argument> arguments, Modes modes) {
  Signature s;
  s.modes = modes;
  s.fields.resize(kernel.bindings.size());
  auto root = [&](uint32_t k) {
    while (s.fields[k].alias_class != k) k = s.fields[k].alias_class;
    return k;
  };
  for (uint32_t k = 0; k < arguments.size(); k++) {
    const Storage* storage = arguments[k].storage.get();
    if (storage) {
      s.fields[k] = storage->facts();
      s.fields[k].alignment = storage->alignment();
    }
    s.fields[k].alias_class = k;
    if (!storage) continue;
    for (uint32_t other = 0; other < k; other++) {
      if (!arguments[other].storage || !storage->overlaps(*arguments[other].storage)) continue;
      uint32_t a = root(other), b = root(k);
      s.fields[std::max(a, b)].alias_class = std::min(a, b);
    }
  }
  for (uint32_t k = 0; k < s.fields.size(); k++)
    s.fields[k].alias_class = k < arguments.size() ? root(k) : k;
  return s;
}

std::string key_of(const Device& device, const Signature& s, std::span<const Argument> arguments) {
  // Of joined devices the last one's code is kept.
  std::string key = device.name() + (device.is_joined() ? "*" : "") +
                    (s.modes.checked ? " c" : " -") + (s.modes.strict ? "s" : "-") +
                    (s.modes.contract ? "f" : "-");
  for (size_t k = 0; k < s.fields.size(); k++) {
    key += ' ';
    key += std::to_string(s.fields[k].alias_class);
    if (k < arguments.size() && arguments[k].storage) key += arguments[k].storage->facts_key();
    if (s.fields[k].alignment > 1) key += 'a' + std::to_string(s.fields[k].alignment);
  }
  return key;
}

void fill_arguments(const Variant& variant, std::span<const Argument> arguments, std::byte* args) {
  auto put = [&](uint32_t offset, uint64_t v) { std::memcpy(args + offset, &v, 8); };
  for (size_t k = 0; k < arguments.size(); k++) {
    const abi::Place& place = variant.layout.places[k];
    const Storage* s = arguments[k].storage.get();
    if (!s) {
      put(place.value(), arguments[k].bits);
      continue;
    }
    for (uint32_t c = 0; c < s->components().size(); c++) {
      put(place.base(c), s->base(c));
      for (uint32_t axis = 0; axis < place.rank; axis++)
        put(place.stride(c, axis), uint64_t(s->stride(c, axis)));
    }
    for (uint32_t axis = 0; axis < place.rank; axis++) {
      put(place.extent(axis), uint64_t(s->shape()[axis]));
      put(place.first(axis), uint64_t(s->first(axis)));
      put(place.origin(axis), uint64_t(s->origin(axis)));
    }
  }
}
}  // namespace

Outcome::Outcome(std::shared_ptr<Device> device, std::shared_ptr<const LaunchRecord> launch,
                 std::shared_ptr<Block> block, size_t count)
    : device_(std::move(device)),
      launch_(std::move(launch)),
      block_(std::move(block)),
      values_(count) {}
Outcome::~Outcome() = default;

uint64_t Outcome::result(size_t k) {
  std::lock_guard lock(mutex_);
  if (!read_) {
    device_->download(std::as_writable_bytes(std::span(values_)), block_->variant->frame(*block_));
    read_ = true;
    block_.reset();
  }
  device_->expect_success(*launch_);
  return values_.at(k);
}

Program::Program(std::unique_ptr<Kernel> kernel) {
  if (kernel->level == Level::recorded) finish_recording(*kernel);
  walk(*kernel, [&](Inst* inst) {
    if (inst->op == Op::extent && bit_width(inst->type()) < 64)
      narrow_.push_back({inst->binding(), inst->axis(), inst->loc});
  });
  kernel_ = std::move(kernel);
}

Program::~Program() = default;

size_t Program::variants() const {
  std::lock_guard lock(mutex_);
  return variants_.size();
}

void Program::check_arguments(std::span<const Argument> arguments, Loc loc) const {
  const std::vector<Binding>& bindings = kernel_->bindings;
  if (arguments.size() != bindings.size())
    throw InternalError("kernel '" + kernel_->name + "' has " + std::to_string(bindings.size()) +
                        " bindings, launched with " + std::to_string(arguments.size()));
  for (size_t k = 0; k < arguments.size(); k++) {
    const Storage* s = arguments[k].storage.get();
    if (bindings[k].kind == Binding::scalar) continue;
    if (!s) throw Error(loc, describe(bindings[k], k) + " is a field without memory");
    s->expect_alive(loc);
    if (s->shape().size() != bindings[k].rank)
      throw Error(loc, describe(bindings[k], k) + " has " + std::to_string(s->shape().size()) +
                           " axes, the kernel wants " + std::to_string(bindings[k].rank));
  }
  for (const NarrowExtent& n : narrow_) {
    const Storage& s = *arguments[n.binding].storage;
    int64_t extent = s.shape()[n.axis], first = s.first(n.axis);
    if (first > 0 && extent <= INT32_MAX && first + extent > INT32_MAX)
      throw Error(n.loc, "the indices of axis " + std::to_string(n.axis) + " of " +
                             describe(bindings[n.binding], n.binding) + " go from " +
                             std::to_string(first) + " to " + std::to_string(first + extent - 1) +
                             ", farther than a 32-bit index reaches; loop over x.wide()");
    if (extent > INT32_MAX)
      throw Error(n.loc, "axis " + std::to_string(n.axis) + " of " +
                             describe(bindings[n.binding], n.binding) + " has " +
                             std::to_string(extent) +
                             " elements, more than a 32-bit index reaches; loop over x.wide()");
  }
}

std::shared_ptr<Device> Program::device_of(std::span<const Argument> arguments, Loc loc,
                                           const std::shared_ptr<Device>& fallback) const {
  const Argument* first = nullptr;
  for (const Argument& a : arguments) {
    if (!a.storage) continue;
    if (!first)
      first = &a;
    else if (a.storage->shared_device() != first->storage->shared_device())
      throw Error(loc, "the kernel's fields are on different devices: " +
                           describe(kernel_->bindings[size_t(first - arguments.data())],
                                    size_t(first - arguments.data())) +
                           " on " + first->storage->device().name() + ", " +
                           describe(kernel_->bindings[size_t(&a - arguments.data())],
                                    size_t(&a - arguments.data())) +
                           " on " + a.storage->device().name());
  }
  if (first) return first->storage->shared_device();
  return fallback ? fallback : Device::standard(loc);
}

std::shared_ptr<Variant> Program::variant(const std::shared_ptr<Device>& device,
                                          const Signature& signature,
                                          std::span<const Argument> arguments) {
  std::string key = key_of(*device, signature, arguments);
  std::lock_guard lock(mutex_);
  std::shared_ptr<Variant>& v = variants_[key];
  if (!v || v->device != device) v = std::make_shared<Variant>(device, kernel_, signature);
  return v;
}

std::shared_ptr<Outcome> Program::launch(std::span<const Argument> arguments, Modes modes, Loc loc,
                                         const std::shared_ptr<Device>& fallback) {
  check_arguments(arguments, loc);
  std::shared_ptr<Device> device = device_of(arguments, loc, fallback);
  std::shared_ptr<Variant> v = variant(device, signature_of(*kernel_, arguments, modes), arguments);
  std::shared_ptr<Block> block = Variant::take_block(v);
  block->variant = v.get();
  fill_arguments(*v, arguments, block->args());
  struct Launched {
    Device& device;
    std::shared_ptr<LaunchRecord> record;
    ~Launched() { device.end_launch(*record); }
  } launched{*device, device->begin_launch(v->reporter)};
  execute(*v, *block, *launched.record);
  if (kernel_->results.empty()) return nullptr;
  return std::make_shared<Outcome>(device, launched.record, std::move(block),
                                   kernel_->results.size());
}

std::string Program::listing(Device& device, Modes modes, std::string_view kind) {
  Signature s;
  s.modes = modes;
  for (uint32_t k = 0; k < kernel_->bindings.size(); k++) s.fields.push_back({true, k});
  std::unique_ptr<Kernel> prepared = prepare(*kernel_, s, device.target()).kernel;
  return device.driver().compiler().listing(*prepared, device.target(), kind);
}

}  // namespace quern::runtime

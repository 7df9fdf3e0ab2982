#include "quern/runtime/program.h"

#include <algorithm>
#include <atomic>
#include <unordered_map>

#include "runtime/compile/compile.h"
#include "runtime/loaded.h"

namespace quern::runtime {

using namespace ir;

namespace {
struct KeyHash {
  size_t operator()(const LaunchKey& key) const { return key.hash(); }
};
}  // namespace

struct Program::OnDevice {
  std::shared_ptr<Device> device;
  std::shared_ptr<const Target> target;
  std::unordered_map<LaunchKey, std::shared_ptr<Loaded>, KeyHash> variants;
};

Program::Program(std::unique_ptr<Kernel> kernel) {
  if (kernel->level == Level::recorded) finish_recording(*kernel);
  parameters_ = parameters_of(*kernel);
  recording_ = std::make_shared<Recording>(std::move(kernel));
  source_ = {recording_, &recording_->kernel()};
}

Program::~Program() = default;

const Kernel& Program::kernel() const { return recording_->kernel(); }

size_t Program::variants() const {
  std::lock_guard lock(mutex_);
  size_t count = 0;
  for (const auto& on : devices_) count += on->variants.size();
  return count;
}

std::shared_ptr<Device> Program::device_of(std::span<const Argument> arguments, Loc loc,
                                           const std::shared_ptr<Device>& fallback) const {
  const Argument* first = nullptr;
  auto name = [&](const Argument* a) {
    const size_t k = size_t(a - arguments.data());
    return describe(parameters_[k], k);
  };
  for (const Argument& a : arguments) {
    if (!a.storage) continue;
    if (!first)
      first = &a;
    else if (a.storage->shared_device() != first->storage->shared_device())
      throw Error(loc, "the kernel's fields are on different devices: " + name(first) + " on " +
                           first->storage->device().name() + ", " + name(&a) + " on " +
                           a.storage->device().name());
  }
  if (first) return first->storage->shared_device();
  return fallback ? fallback : Device::standard(loc);
}

/// A launch of the same storages, in memory that lies alike, is the same again: that its arguments
/// fit, its key and its code. It keeps none of them.
struct Program::Known {
  Known(std::span<const Argument> arguments, LaunchKey of, std::shared_ptr<Device> on,
        std::shared_ptr<Loaded> loaded)
      : key(std::move(of)),
        device(std::move(on)),
        same(next(), arguments),
        loaded_(std::move(loaded)) {
    parts.reserve(arguments.size());
    for (const Argument& a : arguments) parts.push_back(part(a.storage.get()));
  }
  /// What trees and wrapped memory lead to may be another thing each time. Not so snapshots: the
  /// memory of one is another as soon as its field is written, by any thread, but lies alike, is
  /// read only, and is asked for in each launch (fill_arguments).
  static bool suits(std::span<const Argument> arguments) {
    bool any = false;
    for (const Argument& a : arguments) {
      if (!a.storage) continue;
      if (a.storage->tree() || a.storage->is_wrapped()) return false;
      any = true;
    }
    return any;
  }
  bool is(std::span<const Argument> arguments, Modes modes, FixedArguments fixed) const {
    if (!key.has(modes)) return false;
    if (fixed != not_fixed && fixed_ == fixed && compared_at == Storage::moves()) return true;
    for (size_t k = 0; k < parts.size(); k++)
      if (number_of(arguments[k].storage.get()) != parts[k].number) return false;
    // The rest can have changed no more than memory has moved.
    const uint64_t moves = Storage::moves();
    if (compared_at != moves) {
      for (size_t k = 0; k < parts.size(); k++) {
        const Storage* s = arguments[k].storage.get();
        if (part(s) != parts[k] || (s && s->released())) return false;
      }
      compared_at = moves;
    }
    fixed_ = fixed;
    return true;
  }

  /// Its code, which `make` makes where only others were launched in its place so far.
  template <class Make>
  const std::shared_ptr<Loaded>& loaded(Make make) const {
    std::call_once(load_, [&] {
      if (!loaded_) loaded_ = make();
    });
    return loaded_;
  }

  const LaunchKey key;
  const std::shared_ptr<Device> device;
  const KnownArguments same;

 private:
  struct Part {
    uint64_t number = 0;  ///< of the storage; 0: a scalar
    const void* owner = nullptr;
    uint64_t memory = 0;  ///< its number; 0: any, which lies alike
    bool operator==(const Part&) const = default;
  };
  static uint64_t number_of(const Storage* s) { return s ? s->number() : 0; }
  static Part part(const Storage* s) {
    if (!s) return {};
    const void* const owner = s->may_move() ? nullptr : s->owner();  // as none has
    return {number_of(s), owner, s->is_snapshot() ? 0 : s->memory_number()};
  }
  static SameArguments next() {
    static std::atomic<SameArguments> last{other_arguments};
    return ++last;
  }
  mutable std::once_flag load_;
  mutable std::shared_ptr<Loaded> loaded_;
  std::vector<Part> parts;
  // Guarded by the program's lock, under which it is asked what it is:
  mutable uint64_t compared_at = 0;           ///< Storage::moves
  mutable FixedArguments fixed_ = not_fixed;  ///< those it was last
};

std::shared_ptr<const Program::Known> Program::find(std::span<const Argument> arguments,
                                                    Modes modes, FixedArguments fixed) const {
  std::lock_guard lock(mutex_);
  for (const auto& known : known_)
    if (known->is(arguments, modes, fixed)) return known;
  return nullptr;
}

/// Of joined devices of one name the last one's code is kept.
Program::OnDevice& Program::on(const std::shared_ptr<Device>& device) {
  for (const auto& on : devices_)
    if (on->device == device) return *on;
  std::erase_if(devices_, [&](const auto& on) {
    return on->device->name() == device->name() && on->device->is_joined() == device->is_joined();
  });
  known_.clear();
  const Compiler& compiler = compiler_of(device->target().backend);
  devices_.push_back(std::make_unique<OnDevice>(
      OnDevice{device, std::make_shared<const Target>(compiler.target_on(device->driver())), {}}));
  return *devices_.back();
}

std::shared_ptr<Loaded> Program::variant(const std::shared_ptr<Device>& device,
                                         const LaunchKey& key, std::span<const Argument> arguments,
                                         Modes modes) {
  std::lock_guard lock(mutex_);
  OnDevice& here = on(device);
  auto found = here.variants.find(key);
  if (found != here.variants.end()) return found->second;
  const Signature signature = signature_of(arguments, modes);
  std::shared_ptr<const Image>& image = images_[signature_text(signature, *here.target)];
  if (!image) image = compile(*recording_, signature, *here.target);
  auto wide = [source = recording_, signature, target = here.target] {
    Signature of_wide = signature;
    of_wide.wide = true;
    return compile(*source, of_wide, *target);
  };
  return here.variants[key] = std::make_shared<Loaded>(device, image, std::move(wide));
}

std::shared_ptr<Outcome> Program::launch(std::span<const Argument> passed, Modes modes, Loc loc,
                                         const std::shared_ptr<Device>& fallback,
                                         FixedArguments fixed) {
  const AllArguments all(kernel().name, parameters_, passed, loc);
  const std::span<const Argument> arguments = all;
  const auto event = [&](const LaunchKey& key, const std::shared_ptr<Device>& device,
                         SameArguments same) {
    return LaunchEvent{.name = kernel().name,
                       .recording = source_,
                       .attached = &attached_,
                       .parameters = parameters_,
                       .arguments = arguments,
                       .modes = modes,
                       .key = &key,
                       .same = same,
                       .device = device,
                       .loc = loc};
  };
  if (const auto known = find(arguments, modes, fixed))
    return observed([&] { return event(known->key, known->device, known->same.number); },
                    [&] {
                      const auto& loaded = known->loaded(
                          [&] { return variant(known->device, known->key, arguments, modes); });
                      return runtime::launch(loaded, arguments, loc, &known->same);
                    });
  check_arguments(kernel().name, parameters_, arguments, loc);
  const std::shared_ptr<Device> device = device_of(arguments, loc, fallback);
  LaunchKey key(arguments, modes);
  std::shared_ptr<Loaded> loaded;
  auto outcome = observed([&] { return event(key, device, other_arguments); },
                          [&] {
                            loaded = variant(device, key, arguments, modes);
                            return runtime::launch(loaded, arguments, loc);
                          });
  if (!loaded) {  // others launch in its place, and it is known all the same
    std::lock_guard lock(mutex_);
    on(device);
  }
  if (Known::suits(arguments))
    remember(std::make_shared<Known>(arguments, std::move(key), device, std::move(loaded)));
  return outcome;
}

void Program::remember(std::shared_ptr<const Known> launch) {
  constexpr size_t most = 4;  // fields that take turns are two or three
  std::lock_guard lock(mutex_);
  const auto is_here = [&](const auto& on) { return on->device == launch->device; };
  if (std::ranges::none_of(devices_, is_here)) return;  // another of its name has come meanwhile
  if (known_.size() == most) known_.pop_back();
  known_.insert(known_.begin(), std::move(launch));
}

std::shared_ptr<const Image> Program::image(std::span<const Argument> passed, Modes modes, Loc loc,
                                            const std::shared_ptr<Device>& fallback) {
  const AllArguments all(kernel().name, parameters_, passed, loc);
  const std::span<const Argument> arguments = all;
  check_arguments(kernel().name, parameters_, arguments, loc);
  return variant(device_of(arguments, loc, fallback), LaunchKey(arguments, modes), arguments, modes)
      ->image;
}

std::string Program::listing(Device& device, Modes modes, std::string_view kind) {
  Signature s;
  s.modes = modes;
  for (uint32_t k = 0; k < kernel().bindings.size(); k++) s.fields.push_back({true, k});
  const Compiler& compiler = compiler_of(device.target().backend);
  const Target target = compiler.target_on(device.driver());
  return compiler.listing(*prepare(*recording_, s, target).kernel, target, kind);
}

}  // namespace quern::runtime

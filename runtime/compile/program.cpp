#include "quern/runtime/program.h"

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

/// Of joined devices of one name the last one's code is kept.
Program::OnDevice& Program::on(const std::shared_ptr<Device>& device) {
  for (const auto& on : devices_)
    if (on->device == device) return *on;
  std::erase_if(devices_, [&](const auto& on) {
    return on->device->name() == device->name() && on->device->is_joined() == device->is_joined();
  });
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
                                         const std::shared_ptr<Device>& fallback) {
  const AllArguments all(kernel().name, parameters_, passed, loc);
  const std::span<const Argument> arguments = all;
  check_arguments(kernel().name, parameters_, arguments, loc);
  const std::shared_ptr<Device> device = device_of(arguments, loc, fallback);
  const LaunchKey key(arguments, modes);
  return observed(
      {.name = kernel().name,
       .recording = {recording_, &kernel()},
       .attached = &attached_,
       .parameters = parameters_,
       .arguments = arguments,
       .modes = modes,
       .key = &key,
       .device = device,
       .loc = loc},
      [&] { return runtime::launch(variant(device, key, arguments, modes), arguments, loc); });
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

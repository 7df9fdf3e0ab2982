// Finding devices by name, and opening them.
#include <algorithm>
#include <cstdlib>

#include "quern/runtime/device.h"

namespace quern::runtime {

namespace {

struct Name {
  std::string backend;
  size_t index = 0;
};

Name parse_name(std::string_view text, Loc loc) {
  size_t colon = text.find(':');
  Name name{std::string(text.substr(0, colon)), 0};
  if (colon == std::string_view::npos) return name;
  std::string digits(text.substr(colon + 1));
  if (digits.empty() || digits.find_first_not_of("0123456789") != std::string::npos ||
      digits.size() > 4)
    throw Error(loc, "'" + std::string(text) +
                         "' names no device: after the colon stands a number, as in " +
                         name.backend + ":0");
  name.index = std::stoul(digits);
  return name;
}

/// Devices opened in this process; each dies with its last user.
struct Opened {
  std::mutex mutex;
  std::map<std::string, std::weak_ptr<Device>> devices;
};
Opened& opened() {
  static Opened o;
  return o;
}

/// A device that is present.
struct Found {
  const Backend* backend;
  Target target;
  size_t index;
};
/// The option of Quern's build that decides about a back end.
std::string option_of(std::string name) {
  for (char& c : name)
    if (c >= 'a' && c <= 'z') c += 'A' - 'a';
  return "QUERN_" + name;
}

Found find(std::string_view text, Loc loc) {
  Name name = parse_name(text, loc);
  std::string known;
  for (const Backend& b : backends()) {
    known += (known.empty() ? "" : ", ") + b.name;
    if (b.name != name.backend) continue;
    std::string why;
    std::vector<Target> targets = b.probe(why);
    if (targets.empty())
      throw Error(loc, "device '" + std::string(text) + "' is not present: " + why +
                           "; devices:\n" + Device::describe_all());
    if (name.index >= targets.size())
      throw Error(loc, "device '" + std::string(text) + "' is not present: " + b.name + " has " +
                           std::to_string(targets.size()) + " device(s)");
    return {&b, targets[name.index], name.index};
  }
  if (std::ranges::find(backends_left_out(), name.backend) != backends_left_out().end())
    throw Error(loc, "this build of Quern has no back end " + name.backend + "; it has " + known +
                         "; configure with " + option_of(name.backend) + "=ON");
  throw Error(loc, "there is no device '" + std::string(text) + "'; known are " + known +
                       " (with :1, :2, … for further devices)");
}

std::shared_ptr<Device> open_target(const Backend& backend, const Target& target, size_t index,
                                    Loc loc) {
  std::string name = index == 0 ? backend.name : backend.name + ":" + std::to_string(index);
  Opened& all = opened();
  std::lock_guard lock(all.mutex);
  if (auto device = all.devices[name].lock()) return device;
  auto device = std::make_shared<Device>(name, backend.open(target), false, loc);
  all.devices[name] = device;
  return device;
}
}  // namespace

std::string Device::describe_all() {
  std::string text;
  for (const Backend& b : backends()) {
    std::string why;
    std::vector<Target> targets = b.probe(why);
    if (targets.empty()) text += b.name + ": none (" + why + ")\n";
    for (size_t k = 0; k < targets.size(); k++)
      text += b.name + (k ? ":" + std::to_string(k) : "") + ": " + targets[k].device + "\n";
  }
  for (const std::string& name : backends_left_out())
    text += name + ": not built (" + option_of(name) + ")\n";
  return text;
}

std::shared_ptr<Device> Device::open(std::string_view text, Loc loc) {
  {
    Opened& all = opened();
    std::lock_guard lock(all.mutex);
    auto it = all.devices.find(std::string(text));
    if (it != all.devices.end())
      if (auto device = it->second.lock()) return device;
  }
  Found found = find(text, loc);
  return open_target(*found.backend, found.target, found.index, loc);
}

std::shared_ptr<Device> Device::join(std::string_view text, void* context, void* stream, Loc loc) {
  Found found = find(text, loc);
  if (!found.backend->join)
    throw Error(loc, "device '" + std::string(text) +
                         "' has no streams or contexts of a vendor's; CUDA's and ROCm's have");
  Native::Handles on;
  on.context = context;
  on.stream = stream;
  return std::make_shared<Device>(std::string(text), found.backend->join(found.target, on), true,
                                  loc);
}

std::shared_ptr<Device> Device::best() {
  const Backend* chosen = nullptr;
  std::vector<Target> targets;
  for (const Backend& b : backends()) {
    if (chosen && b.preference <= chosen->preference) continue;
    std::string why;
    std::vector<Target> found = b.probe(why);
    if (found.empty()) continue;
    chosen = &b;
    targets = std::move(found);
  }
  if (!chosen) throw Error("no device is present:\n" + describe_all());
  return open_target(*chosen, targets[0], 0, {});
}

std::shared_ptr<Device> Device::standard(Loc loc) {
  const char* name = std::getenv("QUERN_DEVICE");
  if (!name || !*name) return best();
  try {
    return open(name);
  } catch (const Error& e) {
    throw Error(loc, "QUERN_DEVICE: " + e.message());
  }
}

}  // namespace quern::runtime

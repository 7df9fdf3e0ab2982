#include "backends/interpreter/launch.h"

#include <algorithm>

#include "backends/interpreter/memory.h"

namespace quern::interpreter {

using namespace ir;

Launch::Launch(const Code& c, const Options& o)
    : code(c),
      kernel(c.kernel),
      options(o),
      limited(o.max_steps != 0),
      checks_values(o.check_overflow || o.check_nan || c.kernel.modes.checked),
      checked(c.kernel.modes.checked && c.kernel.level != Level::lowered),
      polls(c.kernel.level == Level::split) {}

void Launch::begin(std::byte* arguments, Report* into) {
  args = arguments;
  report = into;
  steps_left = options.max_steps;
  task = serial_calls = 0;
  reducing.clear();
  races.begin();
}

std::atomic_ref<uint32_t> Launch::state() const {
  return std::atomic_ref(
      reinterpret_cast<abi::ErrorRecord*>(read_at<Bits>(args, abi::error_address))->state);
}

bool Launch::may_start(const Task& of) const {
  if (of.kind == Task::serial || !failed()) return !failed();
  return state().load() == abi::claim(read_at<uint32_t>(args, abi::launch_number), task);
}

bool Launch::stops(Loc loc) const {
  if (!polls || !(state().load() & abi::stop_bit)) return false;
  const uint32_t number = read_at<uint32_t>(args, abi::launch_number);
  uint32_t asked = abi::stop_bit;
  if (!state().compare_exchange_strong(asked, abi::stop_bit | abi::claim(number, task)))
    return true;
  auto* record = reinterpret_cast<abi::ErrorRecord*>(read_at<Bits>(args, abi::error_address));
  auto here = std::ranges::find_if(kernel.sites, [&](const Site& s) {
    return s.kind == Site::stop && s.loc.line == loc.line &&
           std::string_view(s.loc.file) == loc.file;
  });
  record->site = uint32_t(here - kernel.sites.begin());
  record->task = task;
  record->launch = number;
  return true;
}

Bits Launch::cell_address(uint64_t cell) const {
  return read_at<Bits>(args, abi::frame_address) + 8 * cell;
}

}  // namespace quern::interpreter

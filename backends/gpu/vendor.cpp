#include "backends/gpu/vendor.h"

#include "backends/gpu/driver.h"
#include "quern/error.h"

namespace quern::gpu {

namespace {
/// Chunks of a task with reductions; a serial task combines what each leaves.
constexpr uint32_t workers_per_multiprocessor = 64;

/// Both vendors' parameters of a kernel take 4 KB at most; four words stand behind the block.
constexpr uint32_t max_value_bytes = 4096 - 4 * 8;
/// Batches of more commands are worth a graph (gpu::Graphs::shortest), which wants a block that
/// stays where it is.
constexpr uint32_t max_value_tasks = 7;
}  // namespace

runtime::Target target_of(const std::string& backend, const std::string& isa) {
  runtime::Target t;
  t.backend = backend;
  t.isa = isa;
  t.traits.walk = ir::Task::element;
  t.traits.block_reductions = true;
  t.traits.narrow_atomics = false;
  t.traits.native_math = {{ir::Op::rsqrt, ir::Type::f32}};
  t.traits.told_of_failures = true;
  t.traits.whole_grids = true;
  t.traits.value_bytes = max_value_bytes;
  t.traits.value_tasks = max_value_tasks;
  return t;
}

runtime::Target target_of(runtime::Target code, const Properties& device) {
  code.device = device.name;
  code.workers = device.multiprocessors * workers_per_multiprocessor;
  code.max_allocation = device.memory;
  return code;
}

std::vector<runtime::Target> devices(const Vendor& vendor, std::string& why_absent) {
  std::vector<runtime::Target> targets;
  std::string why;
  try {
    if (auto api = vendor.api(why)) {
      for (const Properties& device : describe_all(*api, why)) {
        try {
          targets.push_back(vendor.target(*api, device));
        } catch (const Error& e) {
          why = device.name + ": " + e.message();
        }
      }
    }
  } catch (const std::exception& e) {
    targets.clear();
    why = e.what();
  }
  if (targets.empty()) why_absent = why;
  return targets;
}

std::unique_ptr<runtime::Driver> open(const Vendor& vendor, const runtime::Target& target,
                                      const runtime::Native::Handles* on) {
  std::string why;
  auto api = vendor.api(why);
  if (!api) throw Error("no " + vendor.name + " device: " + why);
  for (const Properties& p : describe_all(*api, why))
    if (p.name == target.device)
      return on ? std::make_unique<Driver>(api, p, target, *on)
                : std::make_unique<Driver>(api, p, target);
  throw Error("the " + vendor.name + " device '" + target.device + "' is not present any more");
}

}  // namespace quern::gpu

// This program holds the end-to-end suite: every kernel that a case launches on the first device is
// compiled for the GPUs too, and a case fails where one of its kernels does not compile.
#include <quern/host.h>
#include <quern/quern.h>

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <set>

#include "quern/error.h"
#include "quern/ir/lower.h"
#include "quern/ir/text.h"
#include "tests/catch.h"
#include "tests/targets/toolbox.h"
#include "tools/gpus/first_launches.h"

namespace quern::test {

namespace {

/// Is it the first time that the kernel is seen with this signature?
bool is_new(const ir::Kernel& kernel, const ir::Signature& signature) {
  static std::mutex mutex;
  static std::set<std::string> seen;
  std::unique_ptr<ir::Kernel> bound = ir::clone(kernel);
  bound->modes = signature.modes;
  ir::bind(*bound, signature);
  std::string key = ir::print(*bound);
  std::lock_guard lock(mutex);
  return seen.insert(std::move(key)).second;
}

void compile_too(runtime::Recording& source, const ir::Signature& signature) {
  const ir::Kernel& kernel = source.kernel();
  if (!is_new(kernel, signature)) return;
  std::string faults = compile_everywhere(source, signature);
  if (!faults.empty())
    throw InternalError("kernel '" + kernel.name + "' does not compile for a GPU: " + faults);
}

/// From before the first test to after the last.
struct Installed {
  Installed() { setenv("QUERN_DEVICE", "cpu", 0); }
  ~Installed() {
    Made m = made();
    std::printf("%zu kernels: %zu PTX texts, %zu of them assembled, %zu code objects\n", m.kernels,
                m.ptx, m.assembled, m.objects);
  }
  gpus::FirstLaunches launches{compile_too};
} installed;

}  // namespace

TEST_CASE("what the suite launches is compiled for every GPU") {
  using namespace lang;
  Device device("cpu");
  Field<float> x{device, {8}};
  Made before = made();
  for (int round = 0; round < 2; round++) {  // the second kernel is the first again
    Kernel fill = [&] {
      for (I32 i : range(8)) x[i] = 12345.0f;
    };
    fill();
  }
  CHECK(x.at(7) == 12345.0f);
  Made after = made();
  CHECK(after.kernels - before.kernels == 1);
  CHECK(after.ptx - before.ptx == 3);
  CHECK(after.objects - before.objects == 6);
}

}  // namespace quern::test

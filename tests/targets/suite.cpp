// This program holds the end-to-end suite: every kernel that a case launches on the first device is
// compiled for GPUs too (toolbox.h says for which), and a case fails where one of its kernels does
// not compile.
#include <quern/host.h>
#include <quern/quern.h>

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "quern/error.h"
#include "quern/ir/lower.h"
#include "quern/ir/text.h"
#include "tests/at_end.h"
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
  std::string faults = compile_for_gpus(source, signature);
  if (!faults.empty())
    throw InternalError("kernel '" + kernel.name + "' does not compile for a GPU: " + faults);
}

/// Before the first test.
struct Installed {
  Installed() {
    setenv("QUERN_DEVICE", "cpu", 0);
    at_end = report;
  }
  static void report() {
    const Made m = made();
    std::printf(
        "sampled: %zu kernels, %zu PTX texts, %zu of them assembled, %zu code objects; %s\n",
        m.kernels, m.ptx, m.assembled, m.objects, sampled().c_str());
  }
  gpus::FirstLaunches launches{compile_too};
} installed;

}  // namespace

TEST_CASE("what the suite launches is compiled for GPUs") {
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
  CHECK(after.ptx - before.ptx + after.objects - before.objects == gpus_of_a_kernel());
}

namespace {
/// A variable of the environment that is as before at the end.
class Kept {
 public:
  explicit Kept(const char* name) : name_(name) {
    if (const char* value = std::getenv(name)) value_ = value;
  }
  ~Kept() {
    if (value_)
      setenv(name_, value_->c_str(), 1);
    else
      unsetenv(name_);
  }
  Kept(const Kept&) = delete;

 private:
  const char* name_;
  std::optional<std::string> value_;
};
}  // namespace

TEST_CASE("a sample has one GPU; consecutive samples meet every GPU") {
  const Kept sample("QUERN_SAMPLE"), targets("QUERN_TARGETS");
  unsetenv("QUERN_TARGETS");
  const auto kernel = ir::parse("quern 1\nkernel @k level=structured\nbody {\nyield\n}\n");
  std::set<std::string> met;
  for (size_t number = 0; number < gpus::all().size(); number++) {
    setenv("QUERN_SAMPLE", std::to_string(number).c_str(), 1);
    const auto chosen = gpus_for(*kernel);
    REQUIRE(chosen.size() == 1);
    met.insert(chosen[0]->name);
  }
  CHECK(met.size() == gpus::all().size());
  setenv("QUERN_SAMPLE", "some", 1);
  CHECK_THROWS_WITH(gpus_for(*kernel), contains("QUERN_SAMPLE is 'some'; it takes a number"));
  setenv("QUERN_TARGETS", "all", 1);
  CHECK(gpus_for(*kernel).size() == gpus::all().size());
}

}  // namespace quern::test

// What a tape launches while it goes back, and what it passes.
#include <quern/autodiff.h>
#include <quern/runtime/observer.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/end_to_end/devices.h"

using namespace qn::lang;

namespace {

/// The names of what each launch is passed while it lives.
struct Watch : qn::runtime::LaunchObserver {
  std::vector<std::vector<std::string>> passed;
  qn::runtime::Observation observation{*this, qn::runtime::Observation::kernels};
  void before(const qn::runtime::LaunchEvent& event) override {
    passed.emplace_back();
    for (const auto& p : event.parameters) passed.back().push_back(p.name);
  }
};

}  // namespace

TEST_CASE("a kernel that goes back is passed a field and its adjoints, each once") {
  on_every_device([](const qn::Device& device) {
    qn::Field<double> x{device, {5}}, y{device, {5}};
    x.fill(3);
    qn::Kernel square = [&] {
      for (auto i : x) y[i] = x[i] * x[i];
    };
    y.grad().fill(1);
    qn::Tape tape;
    square();
    const Watch watch;
    tape.backward();
    REQUIRE(watch.passed.size() == 1);
    CHECK(watch.passed[0].size() == 4);
    CHECK(std::ranges::count_if(watch.passed[0], [](const std::string& name) {
            return name.starts_with("the adjoints of");
          }) == 2);
    CHECK(x.grad().at(0) == 6);
  });
}

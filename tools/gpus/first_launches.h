#pragma once
// Seeing each kernel that a program launches, once for each signature.
#include <algorithm>
#include <functional>
#include <map>
#include <mutex>

#include "quern/runtime/observer.h"
#include "runtime/compile/compile.h"
#include "runtime/loaded.h"

namespace quern::gpus {

/// Calls `seen` with recording and signature of each launch that is the first of its kind, those
/// within algorithms too, as long as it lives; what it throws the launch throws.
class FirstLaunches : public runtime::LaunchObserver {
 public:
  using Seen = std::function<void(runtime::Recording&, const ir::Signature&)>;
  explicit FirstLaunches(Seen seen) : seen_(std::move(seen)) {}

  void before(const runtime::LaunchEvent& event) override {
    if (!event.recording) return;
    const ir::Signature signature = runtime::signature_of(event.arguments, event.modes);
    Known* known = nullptr;
    {
      std::lock_guard lock(mutex_);
      auto& one = known_[event.recording];
      if (!one) one = std::make_unique<Known>(*event.recording);
      if (std::ranges::find(one->signatures, signature) != one->signatures.end()) return;
      one->signatures.push_back(signature);
      known = one.get();
    }
    seen_(known->recording, signature);
  }

 private:
  struct Known {
    explicit Known(const ir::Kernel& kernel) : recording(ir::clone(kernel)) {}
    runtime::Recording recording;  ///< what is made of it for others is optimised once
    std::vector<ir::Signature> signatures;
  };
  Seen seen_;
  std::mutex mutex_;
  std::map<std::shared_ptr<const ir::Kernel>, std::unique_ptr<Known>> known_;
  runtime::Observation observation_{*this, runtime::Observation::kernels};
};

}  // namespace quern::gpus

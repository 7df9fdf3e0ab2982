#pragma once
// Seeing each kernel that a program launches, once for each signature.
#include <algorithm>
#include <functional>
#include <map>
#include <mutex>

#include "quern/runtime/observer.h"
#include "runtime/loaded.h"

namespace quern::gpus {

/// Calls `seen` with recording and signature of each launch that is the first of its kind, those
/// within algorithms too, as long as it lives; what it throws the launch throws.
class FirstLaunches : public runtime::LaunchObserver {
 public:
  using Seen = std::function<void(const ir::Kernel&, const ir::Signature&)>;
  explicit FirstLaunches(Seen seen) : seen_(std::move(seen)) {}

  void before(const runtime::LaunchEvent& event) override {
    if (!event.recording) return;
    const ir::Signature signature = runtime::signature_of(event.arguments, event.modes);
    {
      std::lock_guard lock(mutex_);
      std::vector<ir::Signature>& known = known_[event.recording];
      if (std::ranges::find(known, signature) != known.end()) return;
      known.push_back(signature);
    }
    seen_(*event.recording, signature);
  }

 private:
  Seen seen_;
  std::mutex mutex_;
  std::map<std::shared_ptr<const ir::Kernel>, std::vector<ir::Signature>> known_;
  runtime::Observation observation_{*this, runtime::Observation::kernels};
};

}  // namespace quern::gpus

#include "quern/runtime/observer.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <shared_mutex>

#include "quern/runtime/biased_mutex.h"

namespace quern::runtime {

namespace {
struct Observers {
  struct One {
    LaunchObserver* observer;
    Observation::Grain grain;
  };
  BiasedSharedMutex mutex;
  std::vector<One> all;
  std::atomic<bool> any{false};
};
Observers& observers() {
  static Observers& all = *new Observers;  // launches may come as late as destructors of statics
  return all;
}

/// Calls that this thread is in: those of algorithms, and those of observers.
thread_local int depth = 0;
thread_local int upkeep_depth = 0;
thread_local bool is_telling = false;
}  // namespace

Observation::Observation(LaunchObserver& observer, Grain grain) : observer_(observer) {
  Observers& o = observers();
  std::lock_guard lock(o.mutex);
  o.all.push_back({&observer, grain});
  o.any = true;
}

Observation::~Observation() {
  Observers& o = observers();
  std::lock_guard lock(o.mutex);
  auto found = std::ranges::find(o.all, &observer_, &Observers::One::observer);
  o.all.erase(found);
  o.any = !o.all.empty();
}

LaunchCall::LaunchCall(Kind kind)
    : kind_(kind),
      is_outermost_(depth++ == 0),
      is_observed_(observers().any.load(std::memory_order_relaxed) && !is_telling &&
                   kind != upkeep && upkeep_depth == 0 && (is_outermost_ || kind == kernel)) {
  upkeep_depth += kind == upkeep;
}

LaunchCall::~LaunchCall() {
  depth--;
  upkeep_depth -= kind_ == upkeep;
}

bool LaunchCall::in_upkeep() { return upkeep_depth > 0; }

namespace {
struct Telling {
  Telling() { is_telling = true; }
  ~Telling() { is_telling = false; }
};
}  // namespace

bool LaunchCall::tells() { return !is_telling && upkeep_depth == 0; }

/// An observer that is told is not ended meanwhile, nor until `then` has returned.
template <class F, class Then>
void LaunchCall::tell(F&& f, Then&& then) const {
  Observers& o = observers();
  std::shared_lock lock(o.mutex);
  const Telling telling;
  for (const Observers::One& one : o.all)
    if (one.grain == Observation::kernels ? kind_ == kernel : is_outermost_) f(*one.observer);
  then();
}

void LaunchCall::begin(const LaunchEvent& event) {
  tell([&](LaunchObserver& observer) { observer.before(event); }, [] {});
}

bool LaunchCall::begin(const LaunchEvent& event, std::shared_ptr<Outcome>& outcome) {
  tell([&](LaunchObserver& observer) { observer.before(event); },
       [&] {
         if (event.instead) outcome = event.instead->launch_instead(event);
       });
  return event.instead != nullptr;
}

void LaunchCall::end(const LaunchEvent& event) noexcept {
  tell([&](LaunchObserver& observer) { observer.after(event); }, [] {});
}

}  // namespace quern::runtime

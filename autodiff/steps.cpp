// Steps in time: which states are kept, and how others are found again.
#include "quern/autodiff/steps.h"

#include <algorithm>
#include <optional>
#include <set>
#include <thread>

#include "autodiff/overwritten.h"
#include "autodiff/tape.h"
#include "dsl/recording.h"
#include "quern/ir/lower.h"
#include "quern/runtime/observer.h"

namespace quern::detail {

namespace {

using Fields = std::vector<std::shared_ptr<runtime::Storage>>;

/// C(s + r, s): so many steps are gone back through with s snapshots and none run more than r times
/// before it is taped. At most `limit`.
int64_t reach(int64_t s, int64_t r, int64_t limit) {
  if (s < 0 || r < 0) return 0;
  int64_t v = 1;
  for (int64_t k = 1; k <= std::min(s, r); k++) {
    v = v * (std::max(s, r) + k) / k;  // limit and n are ints, so this holds
    if (v >= limit) return limit;
  }
  return v;
}

/// From a state that is kept, `left` steps before the end: how many steps on the next is kept,
/// given that it and those behind it take `snapshots`, two or more. Both parts then have numbers of
/// repetitions with which the sum is least.
int64_t distance(int64_t left, int64_t snapshots) {
  const int64_t limit = left + 1;
  const auto reaches = [&](int64_t s, int64_t r) { return reach(s, r, limit); };
  int64_t r = 0;
  while (reaches(snapshots, r) < left) r++;
  return std::min(reaches(snapshots, r - 1), left - reaches(snapshots - 1, r - 1));
}

/// Does the kernel of the launch draw random numbers?
bool draws(const runtime::LaunchEvent& event) {
  struct Draws {
    bool any = false;
  };
  if (!event.recording) return false;
  return event.attached
      ->get<Draws>([&] {
        auto found = std::make_shared<Draws>();
        ir::walk(event.recording->body,
                 [&](const ir::Inst* inst) { found->any |= inst->is(ir::Op::launch_key); });
        return found;
      })
      ->any;
}

/// The keys of the launches that draw random numbers, step by step.
class Keys {
 public:
  void begin_step() { first_.push_back(all_.size()); }
  void add(runtime::RandomKey key) { all_.push_back(key); }
  /// Of a step behind which another has begun.
  std::span<const runtime::RandomKey> of(int step) const {
    const size_t t = size_t(step);
    return std::span(all_).subspan(first_[t], first_[t + 1] - first_[t]);
  }

 private:
  std::vector<runtime::RandomKey> all_;
  std::vector<size_t> first_;  ///< of each step
};

/// While it lives, launches of the thread draw the numbers of these keys, in turns, and count as
/// none.
class Redraw final : public runtime::LaunchObserver {
 public:
  explicit Redraw(std::span<const runtime::RandomKey> keys) : keys_(keys) {
    observation_.emplace(*this, runtime::Observation::kernels);
  }

  void before(const runtime::LaunchEvent& event) override {
    if (std::this_thread::get_id() != by_ || !draws(event)) return;
    if (next_ == keys_.size())
      throw Error(event.loc,
                  "a step launches more kernels that draw random numbers than when it "
                  "ran first, and '" +
                      std::string(event.name) + "' would draw others");
    own_.reset();
    own_.emplace(keys_[next_++]);
  }
  void after(const runtime::LaunchEvent&) noexcept override {
    if (std::this_thread::get_id() == by_) own_.reset();
  }

 private:
  const std::thread::id by_ = std::this_thread::get_id();
  const std::span<const runtime::RandomKey> keys_;
  size_t next_ = 0;
  const runtime::SameRandomNumbers any_{{}};  ///< of launches that draw none
  std::optional<runtime::SameRandomNumbers> own_;
  std::optional<runtime::Observation> observation_;
};

/// Finds what steps carry and nobody has named, and what random numbers they draw.
class Watch final : public runtime::LaunchObserver {
 public:
  Watch(const Fields& state, Keys& keys) : keys_(keys) {
    for (const auto& field : state) state_.insert(field->memory_number());
    observation_.emplace(*this, runtime::Observation::kernels);
  }

  void begin_step() {
    keys_.begin_step();
    before_.insert(now_.begin(), now_.end());
    now_.clear();
  }

  void before(const runtime::LaunchEvent& event) override {
    if (std::this_thread::get_id() != by_) return;
    for (size_t k = 0; k < event.arguments.size(); k++) {
      const auto& storage = event.arguments[k].storage;
      if (!storage || !event.parameters[k].reads) continue;
      const uint64_t memory = storage->memory_number();
      if (before_.contains(memory) && !now_.contains(memory) && !state_.contains(memory) &&
          !is_overwritten(event, uint32_t(k)))
        throw Error(event.loc, event.parameters[k].name +
                                   " is read here, and an earlier step has written it: it is part "
                                   "of what steps carry, so name it in state()");
    }
    for (size_t k = 0; k < event.arguments.size(); k++)
      if (event.arguments[k].storage && event.parameters[k].writes)
        now_.insert(event.arguments[k].storage->memory_number());
  }

  void after(const runtime::LaunchEvent& event) noexcept override {
    if (std::this_thread::get_id() == by_ && draws(event)) keys_.add(runtime::RandomKey::last());
  }

 private:
  /// Is what the field held before of no account to the launch?
  bool is_overwritten(const runtime::LaunchEvent& event, uint32_t field) {
    if (!event.recording || event.arguments[field].storage->tree()) return false;
    for (const Overwritten& known : overwritten_)
      if (known.kernel == event.recording && known.field == field && known.key == *event.key)
        return known.is_so;
    const std::unique_ptr<ir::Kernel> kernel = ir::clone(*event.recording);
    ir::assume(*kernel, event.key->premises());
    ir::optimise(*kernel);
    const bool is_so = autodiff::is_overwritten_first(*kernel, field);
    overwritten_.push_back({event.recording, *event.key, field, is_so});
    return is_so;
  }

  struct Overwritten {
    std::shared_ptr<const ir::Kernel> kernel;
    runtime::LaunchKey key;
    uint32_t field;
    bool is_so;
  };
  const std::thread::id by_ = std::this_thread::get_id();
  Keys& keys_;
  std::vector<Overwritten> overwritten_;  ///< what was asked
  std::set<uint64_t> state_;              ///< memory
  std::set<uint64_t> before_, now_;       ///< written by earlier steps, and by this one
  std::optional<runtime::Observation> observation_;
};

class Loop {
 public:
  Loop(StepBody* body, Fields state, int snapshots, Loc loc)
      : body_(body), state_(std::move(state)), most_(size_t(snapshots)), loc_(loc) {}

  /// Up to the last step, which `tape` records as it does other launches.
  static void run(const std::shared_ptr<Loop>& loop, TapeObject* tape, int n) {
    Watch watch(loop->state_, loop->keys_);
    loop->watch_ = &watch;
    if (n > 1) {
      {
        Pause pause(tape);
        loop->keep(0);
        loop->advance(0, n - 1);
        if (loop->kept_.back().step == n - 1) loop->kept_.pop_back();
      }
      add_part(tape, [loop, tape, n](Loc loc) { loop->go_back(tape, n - 2, loc); });
    }
    loop->step(n - 1);
    loop->watch_ = nullptr;
  }

 private:
  struct Kept {
    int step;
    Fields state;
  };

  void step(int t) {
    if (watch_) {
      watch_->begin_step();
      body_->run(t);
    } else {
      const Redraw again(keys_.of(t));
      body_->run(t);
    }
  }

  void keep(int t) {
    Fields state;
    for (const auto& field : state_) state.push_back(field->snapshot(loc_));
    kept_.push_back({t, std::move(state)});
  }

  void restore(const Kept& kept) const {
    for (size_t k = 0; k < state_.size(); k++) state_[k]->restore(*kept.state[k], loc_);
  }

  /// From the last state kept, that before step `at`, to that before step `t`.
  void advance(int at, int t) {
    while (at < t) {
      const size_t free = most_ - kept_.size();
      const int64_t by = free == 0 ? t - at : distance(t - at + 1, int64_t(free) + 1);
      for (int64_t k = 0; k < by; k++) step(at++);
      if (free > 0) keep(at);
    }
  }

  void go_back(TapeObject* whole, int last, Loc loc) {
    for (int t = last; t >= 0; t--) {
      restore(kept_.back());
      advance(kept_.back().step, t);
      if (t > 0 && kept_.back().step == t) kept_.pop_back();
      const Ref<TapeObject> tape(make_tape_within(whole, loc));
      step(t);
      detail::go_back(tape.get(), loc);
    }
    restore(kept_.back());
    kept_.clear();
  }

  std::unique_ptr<StepBody> body_;
  const Fields state_;
  const size_t most_;
  const Loc loc_;
  std::vector<Kept> kept_;  ///< by step
  Keys keys_;
  Watch* watch_ = nullptr;  ///< while steps run for the first time
};

Fields storages(const Ref<FieldObject>* state, int count, Loc loc) {
  Fields all;
  for (int k = 0; k < count; k++) {
    const auto& storage = state[k].get()->storage;
    if (!storage) throw Error(loc, "a field parameter is no part of a state");
    all.push_back(storage);
  }
  return all;
}

}  // namespace

void run_steps(TapeObject* tape, int n, StepBody* body, const Ref<FieldObject>* state, int count,
               int snapshots, Loc loc) {
  std::unique_ptr<StepBody> owned(body);
  expect_recording(tape, loc);
  if (n < 0) throw Error(loc, std::to_string(n) + " steps");
  if (snapshots < 1)
    throw Error(loc, "steps are gone back through from snapshots of the state, and " +
                         std::to_string(snapshots) + " are allowed: the first state is one");
  const Fields fields = storages(state, count, loc);
  for (const auto& field : fields) field->restore(*field->snapshot(loc), loc);  // no views
  if (n == 0) return;
  Loop::run(std::make_shared<Loop>(owned.release(), fields, snapshots, loc), tape, n);
}

int64_t state_bytes(const Ref<FieldObject>* state, int count, Loc loc) {
  int64_t bytes = 0;
  for (const auto& field : storages(state, count, loc)) bytes += int64_t(field->bytes());
  return bytes;
}

}  // namespace quern::detail

// Steps in time: which states are kept, and how others are found again.
#include "quern/autodiff/steps.h"

#include <algorithm>
#include <optional>
#include <thread>

#include "autodiff/tapes/carried.h"
#include "autodiff/tapes/tape.h"
#include "dsl/recording.h"
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

/// While it lives, notes the random numbers that launches draw.
class NoteKeys final : public runtime::LaunchObserver {
 public:
  explicit NoteKeys(Keys& keys) : keys_(keys) {
    observation_.emplace(*this, runtime::Observation::kernels);
  }
  void after(const runtime::LaunchEvent& event) noexcept override {
    if (std::this_thread::get_id() == by_ && draws(event)) keys_.add(runtime::RandomKey::last());
  }

 private:
  const std::thread::id by_ = std::this_thread::get_id();
  Keys& keys_;
  std::optional<runtime::Observation> observation_;
};

/// While it lives, refuses what steps carry and nobody has named.
class Watch final : public runtime::LaunchObserver {
 public:
  explicit Watch(const Fields& state) : carried(state) {
    observation_.emplace(*this, runtime::Observation::calls);
  }
  void before(const runtime::LaunchEvent& event) override {
    if (std::this_thread::get_id() == by_) carried.note(event);
  }

  autodiff::Carried carried;

 private:
  const std::thread::id by_ = std::this_thread::get_id();
  std::optional<runtime::Observation> observation_;
};

/// Fields of which steps read elements that they do not write, as the steps found them. While an
/// Again lives they are so again, whatever has been written since.
class Constants {
  using Contents = runtime::Storage::Contents;
  struct Constant {
    std::shared_ptr<runtime::Storage> field;
    Contents contents;
    uint64_t version = 0;
  };

 public:
  void keep(const Fields& fields, Loc loc) {
    for (const auto& field : fields)
      all_.push_back({field, field->tree() ? Contents() : field->contents(loc), field->version()});
  }

  class Again {
   public:
    Again(const Constants& constants, Loc loc) : loc_(loc) {
      for (const Constant& c : constants.all_) {
        if (c.field->version() == c.version) continue;  // nor is wrapped memory written in vain
        if (c.field->tree()) refuse(c);
        since_.push_back({c.field, c.field->contents(loc)});
        c.field->restore(c.contents, loc);
      }
    }
    ~Again() {
      for (const Constant& c : since_) try {
          c.field->restore(c.contents, loc_);
        } catch (...) {  // no memory: what is thrown already says so
        }
    }
    Again(const Again&) = delete;

   private:
    [[noreturn]] void refuse(const Constant& c) const {
      const Loc at = c.field->written_at();
      throw Error(loc_, "a field on a tree that steps() read was written since" +
                            (at.line ? ", at " + place(at) : std::string()) +
                            ", and is not kept as they found it: write another field there");
    }
    const Loc loc_;
    std::vector<Constant> since_;
  };

 private:
  std::vector<Constant> all_;
};

class Loop {
 public:
  Loop(StepBody* body, Fields state, int snapshots, Loc loc)
      : body_(body), state_(std::move(state)), most_(size_t(snapshots)), loc_(loc) {}

  /// Up to the last step, which `tape` records as it does other launches.
  static void run(const std::shared_ptr<Loop>& loop, TapeObject* tape, int n) {
    if (n == 1) return loop->body_->run(0);
    Watch watch(loop->state_);
    const NoteKeys note(loop->keys_);
    loop->watch_ = &watch;
    try {
      {
        Pause pause(tape);
        loop->keep(0);
        loop->advance(0, n - 1);
        if (loop->kept_.back().step == n - 1) loop->kept_.pop_back();
      }
      add_part(tape, [loop, tape, n](Loc loc) { loop->go_back(tape, n - 2, loc); });
      loop->step(n - 1);
      loop->constants_.keep(watch.carried.constants(loop->loc_), loop->loc_);
    } catch (...) {
      loop->watch_ = nullptr;
      add_part(tape, [at = loop->loc_](Loc loc) {
        throw Error(loc, "a step of the steps() at " + place(at) +
                             " threw, so its tape cannot be gone back through");
      });
      throw;
    }
    loop->watch_ = nullptr;
  }

 private:
  struct Kept {
    int step;
    Fields state;
  };

  void step(int t) {
    if (watch_) {
      keys_.begin_step();
      watch_->carried.begin_step();
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
    const Constants::Again as_found(constants_, loc);
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
  Constants constants_;
  Watch* watch_ = nullptr;  ///< while steps run for the first time
};

Fields storages(const Ref<FieldObject>* state, int count, Loc loc) {
  Fields all;
  for (int k = 0; k < count; k++) {
    const auto& storage = state[k].get()->storage;
    if (!storage) throw Error(loc, "a field parameter is no part of a state");
    if (storage->is_view())
      throw Error(loc, "field number " + std::to_string(k + 1) +
                           " of state() is a view, and states are restored as a whole: name the "
                           "field that it is a view of");
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
  if (is_paused(tape))
    throw Error(loc,
                "steps() within a step of another steps() on the same tape: that step is run "
                "again on tapes of its own. Give the outer one more snapshots instead");
  const Fields fields = storages(state, count, loc);
  for (const auto& field : fields) field->expect_alive(loc);
  if (n == 0) return;
  Loop::run(std::make_shared<Loop>(owned.release(), fields, snapshots, loc), tape, n);
}

int64_t state_bytes(const Ref<FieldObject>* state, int count, Loc loc) {
  int64_t bytes = 0;
  for (const auto& field : storages(state, count, loc)) bytes += int64_t(field->bytes());
  return bytes;
}

}  // namespace quern::detail

// A tape of launches.
#include <algorithm>
#include <atomic>
#include <deque>
#include <functional>
#include <memory_resource>
#include <numeric>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "autodiff/tapes/known_launches.h"
#include "autodiff/tapes/launches.h"
#include "autodiff/tapes/memories.h"
#include "autodiff/tapes/tape.h"
#include "dsl/recording.h"
#include "quern/autodiff.h"
#include "quern/runtime/biased_mutex.h"
#include "quern/runtime/observer.h"
#include "quern/runtime/tree.h"

namespace quern::detail {

namespace {
/// Tapes that record, of all threads.
struct Tapes {
  std::mutex mutex;
  std::vector<TapeObject*> all;
};
Tapes& recording_tapes() {
  static Tapes& tapes = *new Tapes;  // tapes may end as late as statics do
  return tapes;
}
/// Runs of the user's with a pullback that this thread is in.
thread_local int given_runs = 0;
}  // namespace

/// Records each launch of a kernel, those of algorithms too.
struct TapeObject : Counted<TapeObject>, runtime::LaunchObserver {
  std::optional<runtime::Observation> observation;
  runtime::BiasedMutex mutex;
  /// A launch, or a part of the program.
  struct Entry {
    explicit Entry(std::thread::id launched_by, bool is_launched = false)
        : by(launched_by), is_submitted(is_launched) {}

    std::thread::id by;
    bool is_submitted;  ///< else its call threw, and nothing ran
    std::optional<autodiff::Recorded> launch = {};
    uint64_t reserved = 0;                                 ///< of kept_by_augmented
    autodiff::KnownLaunch* known = nullptr;                ///< until it is submitted
    std::unique_ptr<autodiff::KnownLaunch> own = nullptr;  ///< that, where no other is like it
    /// What most have none of.
    struct Aside {
      std::function<void(Loc)> part;
      autodiff::Memories::Fields begun;  ///< that are constants before it
    };
    std::unique_ptr<Aside> aside = nullptr;
    /// Has the cache fetch the entry, written long ago, as is what its launch keeps besides.
    void prefetch() const { autodiff::prefetch(this, sizeof(*this)); }
    void prefetch_launch() const {
      if (launch) launch->prefetch();
    }
    void go_back(Loc loc) const {
      if (launch) launch->go_back({}, loc);
      if (!aside) return;
      if (aside->part) aside->part(loc);
      for (const auto& field : aside->begun) autodiff::clear_adjoints_of(*field, loc);
    }
  };
  std::pmr::monotonic_buffer_resource side_by_side;  ///< what entries keep
  std::pmr::deque<Entry> entries{&side_by_side};
  autodiff::Memories memories;
  autodiff::Memories::Fields begun;  ///< in a part that is recorded as a whole
  autodiff::SeenFields seen{autodiff::SeenFields::by_tape};
  autodiff::KnownLaunches known_launches;
  uint64_t kept_by_augmented = 0;       ///< bytes
  std::atomic<std::thread::id> paused;  ///< whose launches are not recorded
  Loc gone_back;
  Loc made_at;
  const std::thread::id made_by = std::this_thread::get_id();
  int made_in = given_runs;  ///< runs with a pullback, of which it knows nothing

  /// What goes back is not gone back through.
  void expect_forward(const runtime::LaunchEvent& event) const {
    for (size_t k = 0; k < event.parameters.size(); k++)
      if (event.parameters[k].companion == autodiff::adjoints)
        throw Error(event.loc,
                    "a launch of '" + std::string(event.name) +
                        "', which goes back, or takes the grad() of a parameter, cannot "
                        "be recorded by the tape made at " +
                        place(made_at) +
                        ", which records what all threads launch: end the tape before it");
  }

  ~TapeObject() override { stop(); }

  /// Runs with a pullback that this thread is in since the tape was made.
  int runs() const {
    return std::this_thread::get_id() == made_by ? given_runs - made_in : given_runs;
  }

  void start() {
    Tapes& tapes = recording_tapes();
    std::lock_guard lock(tapes.mutex);
    tapes.all.push_back(this);
    observation.emplace(*this, runtime::Observation::kernels);
  }
  void stop() {
    observation.reset();
    Tapes& tapes = recording_tapes();
    std::lock_guard lock(tapes.mutex);
    std::erase(tapes.all, this);
  }

  /// Where one ends that it was made in.
  void leave_runs() {
    if (std::this_thread::get_id() == made_by) made_in = std::min(made_in, given_runs);
  }

  bool is_paused() const { return paused.load() == std::this_thread::get_id(); }

  void record(autodiff::KnownLaunch& known, const runtime::LaunchEvent& event,
              autodiff::Memories::Fields since = {}) {
    Entry& entry = entries.emplace_back(std::this_thread::get_id());
    entry.known = &known;
    if (!since.empty()) entry.aside.reset(new Entry::Aside{nullptr, std::move(since)});
    if (!known.program) return;
    try {
      autodiff::KnownLaunch* by = &known;
      while (by->program->augmented) {
        if (record_augmented(entry, *by, event)) return;
        by = &by->less_augmented(event);
      }
      record(entry, *by, event);
    } catch (...) {
      entries.pop_back();
      throw;
    }
  }

  void record(Entry& entry, autodiff::KnownLaunch& known, const runtime::LaunchEvent& event) {
    known.pass(event, seen, memories);
    entry.launch.emplace(known.passed, event.arguments, seen, event.loc, &side_by_side);
    known.note_wanted(entry.launch->contents());
  }

  /// Where what that keeps still has room. Of several tapes one has it.
  bool record_augmented(Entry& entry, autodiff::KnownLaunch& known,
                        const runtime::LaunchEvent& event) {
    if (event.instead) return false;
    const auto kept = known.program->kept_with(event.arguments, event.loc);
    if (!kept.pays || kept_by_augmented + kept.bytes > autodiff::most_kept_by_augmented)
      return false;
    entry.reserved = kept.bytes;
    record(entry, known, event);
    kept_by_augmented += entry.reserved;
    event.instead = this;
    return true;
  }

  std::shared_ptr<runtime::Outcome> launch_instead(const runtime::LaunchEvent& event) override {
    autodiff::Recorded::AugmentedLaunch launch;
    try {
      {
        std::lock_guard lock(mutex);
        launch = last_of_this_thread()->launch->augmented_launch(event.arguments, event.loc);
      }
      return launch.run(event.loc);
    } catch (...) {
      std::lock_guard lock(mutex);
      give_up_unlaunched();
      throw;
    }
  }

  /// Where this thread's last launch was recorded and then thrown out of, by itself or another
  /// observer.
  void give_up_unlaunched() {
    Entry* const last = last_of_this_thread();
    if (!last || !last->known || last->is_submitted) return;
    kept_by_augmented -= std::exchange(last->reserved, 0);
    last->launch.reset();
    last->known = nullptr;
  }

  Entry* last_of_this_thread() {
    const auto last =
        std::ranges::find(entries.rbegin(), entries.rend(), std::this_thread::get_id(), &Entry::by);
    return last == entries.rend() ? nullptr : &*last;
  }

  void before(const runtime::LaunchEvent& event) override {
    if (runs() > 0) {
      std::lock_guard lock(mutex);
      return memories.add_written(event);
    }
    if (!event.recording)
      throw Error(event.loc, "kernel '" + std::string(event.name) +
                                 "' was loaded without its recording, so a tape cannot go back "
                                 "through it");
    std::lock_guard lock(mutex);
    give_up_unlaunched();
    if (!is_paused())
      if (autodiff::KnownLaunch* known = known_launches.find(event, memories)) {
        known->expect_known(event);
        return record(*known, event);
      }
    expect_forward(event);
    memories.expect_known(event);
    if (is_paused()) {
      memories.inputs(event, begun);
      return;
    }
    auto made = autodiff::KnownLaunches::make(event, memories);
    autodiff::Memories::Fields own;
    const std::vector<bool> inputs = memories.inputs(event, own);
    if (std::ranges::find(inputs, true) != inputs.end()) {
      made->reversed =
          autodiff::ReversedByInputs::of(*event.attached)->by_passed(event.recording, inputs);
      made->program = made->reversed->program(*event.key, autodiff::Augment::where_it_pays);
    }
    autodiff::KnownLaunch& launch = own.empty() ? known_launches.add(made, event) : *made;
    record(launch, event, std::move(own));
    entries.back().own = std::move(made);
  }

  void after(const runtime::LaunchEvent& event) noexcept override {
    std::lock_guard lock(mutex);
    if (runs() > 0 || is_paused()) return memories.note_written(event);
    Entry* const last = last_of_this_thread();
    // One that another thread began before the tape was made is in no entry.
    if (!last || !last->known) return memories.note_written(event);
    last->is_submitted = true;
    if (last->launch) last->launch->was_launched();
    if (last->known->arguments.empty())
      memories.note_written(event);
    else
      last->known->note_written(event);
    last->known = nullptr;
    last->own.reset();
  }
};

void retain(TapeObject* o) noexcept { add_reference(o); }
void release(TapeObject* o) noexcept { drop_reference(o); }

Pause::Pause(TapeObject* tape) : tape_(tape) {
  std::lock_guard lock(tape->mutex);
  tape->paused = std::this_thread::get_id();
}
Pause::~Pause() {
  std::lock_guard lock(tape_->mutex);
  tape_->paused = std::thread::id();
}

bool is_paused(TapeObject* tape) {
  std::lock_guard lock(tape->mutex);
  return tape->is_paused();
}

void add_part(TapeObject* tape, std::function<void(Loc)> go_back) {
  std::lock_guard lock(tape->mutex);
  TapeObject::Entry& entry = tape->entries.emplace_back(std::this_thread::get_id(), true);
  entry.aside.reset(
      new TapeObject::Entry::Aside{std::move(go_back), std::exchange(tape->begun, {})});
}

TapeObject* make_tape(const Ref<FieldObject>* by, int count, Loc loc) {
  expect_no_recording("a tape", loc);
  std::vector<std::shared_ptr<runtime::Storage>> fields;
  for (int k = 0; k < count; k++) {
    if (!by[k].get()->storage)
      throw Error(loc, "field number " + std::to_string(k) +
                           " of wrt() is a field parameter: a tape takes derivatives by fields "
                           "that are there");
    fields.push_back(by[k].get()->storage);
  }
  auto object = std::make_unique<TapeObject>();
  object->made_at = loc;
  if (count > 0) object->memories.vary_by(fields);
  object->start();
  return object.release();
}

TapeObject* make_tape_within(TapeObject* tape, Loc loc) {
  const Ref<TapeObject> made(make_tape(nullptr, 0, loc));
  made.get()->memories.vary_as(tape->memories);
  retain(made.get());
  return made.get();
}

void expect_recording(TapeObject* tape, Loc loc) {
  if (!tape) throw Error(loc, "this Tape is none: it was moved from");
  if (tape->gone_back.line)
    throw Error(loc, "the tape was gone back through already, at " + place(tape->gone_back));
}

void go_back(TapeObject* tape, Loc loc) {
  expect_no_recording("going back through a tape", loc);
  expect_recording(tape, loc);
  const auto first = std::ranges::find_if(
      tape->entries, [](const auto& entry) { return entry.launch.has_value(); });
  if (first != tape->entries.end()) first->launch->expect_done(loc);
  tape->gone_back = loc;
  tape->stop();
  tape->seen.end();
  tape->known_launches = {};
  for (auto& entries = tape->entries; !entries.empty(); entries.pop_back()) {
    const size_t count = entries.size();
    if (count > 4) entries[count - 5].prefetch();
    if (count > 2) entries[count - 3].prefetch_launch();
    if (entries.back().is_submitted) entries.back().go_back(loc);
  }
  tape->seen = autodiff::SeenFields(autodiff::SeenFields::by_tape);
}

uint64_t kept_bytes(TapeObject* tape, Loc loc) {
  if (!tape) throw Error(loc, "this Tape is none: it was moved from");
  std::lock_guard lock(tape->mutex);
  std::set<std::pair<const void*, uint64_t>> counted;
  uint64_t bytes = 0;
  for (const TapeObject::Entry& entry : tape->entries) {
    if (!entry.launch) continue;
    bytes += entry.launch->kept_bytes();
    for (const auto& contents : entry.launch->contents()) {
      if (counted.insert(contents.number()).second) bytes += contents.bytes();
      const runtime::Tree* tree = contents.tree();
      if (tree && counted.insert({tree, 0}).second) bytes += tree->kept_bytes();
    }
  }
  return bytes;
}

namespace {
/// Of augmented launches that keep so many bytes each, n times in turns: what those keep that have
/// room, and the most that one has that is left.
std::pair<uint64_t, uint64_t> with_room(std::span<const uint64_t> bytes, uint64_t n) {
  const uint64_t all = std::accumulate(bytes.begin(), bytes.end(), uint64_t(0));
  if (all == 0) return {};
  const uint64_t whole = std::min(n, autodiff::most_kept_by_augmented / all);
  uint64_t kept = whole * all, most_left = 0;
  bool any = true;
  for (uint64_t turn = whole; turn < n && any; turn++) {
    any = false;
    for (uint64_t of_one : bytes) {
      const bool has_room = of_one <= autodiff::most_kept_by_augmented - kept;
      any |= has_room && of_one > 0;
      if (has_room)
        kept += of_one;
      else
        most_left = std::max(most_left, of_one);
    }
  }
  return {kept, most_left};
}
}  // namespace

TapeMemory predicted_bytes(TapeObject* tape, int64_t n, Loc loc) {
  expect_no_recording("predicting a tape's memory", loc);
  expect_recording(tape, loc);
  if (n < 1)
    throw Error(loc, "the memory of a tape of " + std::to_string(n) + " times its launches");
  TapeMemory memory;
  std::vector<autodiff::Recorded> launches;
  std::vector<uint64_t> augmented;  // bytes
  {
    std::lock_guard lock(tape->mutex);
    memory.kept = tape->memories.kept(uint64_t(n));
    for (const TapeObject::Entry& entry : tape->entries) {
      memory.unknown += entry.aside && entry.aside->part;
      if (!entry.launch || !entry.is_submitted) continue;
      launches.push_back(*entry.launch);
      augmented.push_back(entry.launch->kept_bytes());
    }
  }
  const auto is_some = [](uint64_t bytes) { return bytes > 0; };
  const auto [kept, most_left] = with_room(augmented, uint64_t(n));
  memory.kept += kept;
  memory.going_back = most_left;
  // Those that have no room may want versions of fields besides.
  if (most_left > 0) memory.unknown += int(std::ranges::count_if(augmented, is_some));
  const runtime::LaunchCall untold(runtime::LaunchCall::upkeep);
  for (const autodiff::Recorded& launch : launches) {
    const autodiff::Recorded::Working working = launch.working(loc);
    memory.going_back = std::max(memory.going_back, working.bytes);
    memory.unknown += working.by_data;
  }
  return memory;
}

// ---- runs with a pullback

GivenRun::GivenRun(Loc loc) : loc_(loc) {
  expect_no_recording("what has a pullback", loc);
  given_runs++;
}

GivenRun::~GivenRun() {
  if (!is_finished_) finish({});
}

void GivenRun::finish(GivenBack back) {
  is_finished_ = true;
  std::function<void(Loc)> go_back = [at = loc_](Loc loc) {
    throw Error(loc, "what was run with a pullback at " + place(at) +
                         " threw, so its tape cannot be gone back through");
  };
  if (back.call)
    go_back = [captures = std::shared_ptr<void>(back.captures, back.drop), of = back.call](Loc) {
      of(captures.get());
    };
  given_runs--;
  Tapes& tapes = recording_tapes();
  std::lock_guard lock(tapes.mutex);
  for (TapeObject* tape : tapes.all) {
    if (tape->runs() == 0 && !tape->is_paused()) add_part(tape, go_back);  // else part of another
    tape->leave_runs();
  }
}

}  // namespace quern::detail

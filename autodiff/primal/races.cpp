#include "autodiff/primal/races.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>

#include "autodiff/primal/activity.h"
#include "autodiff/primal/at_launch.h"
#include "autodiff/primal/iterations.h"
#include "ir/analysis/effects.h"

namespace quern::autodiff {

using namespace ir;

namespace {

std::string place(Loc loc) { return std::string(loc.file) + ":" + std::to_string(loc.line); }

bool is_write(const Inst* inst) {
  return inst->is(Op::store) || (inst->is(Op::atomic) && inst->atomic() != AtomicOp::load);
}

/// Has a launch with these arguments the race? None: it is not known. No arguments: of any launch.
std::optional<bool> has(const Race& race, std::span<const runtime::Argument> arguments) {
  AtLaunch launch(arguments);
  bool is_known = true;
  for (const Race::Rounds& loop : race.loops) {
    const std::optional<AtLaunch::Bounds> bounds = launch.bounds(loop.index);
    const auto fits = [&] {
      return bounds->rounds() >= loop.least &&
             (!loop.at || (bounds->lo <= *loop.at && *loop.at < bounds->hi));
    };
    if (bounds && !fits()) return false;
    is_known &= bounds.has_value();
  }
  return is_known ? std::optional(true) : std::nullopt;
}

// ---- accesses

class Finder {
 public:
  Finder(const Kernel& kernel, const std::vector<bool>& varies, const SamePlaces& places)
      : kernel_(kernel), varies_(varies), same_(places), active_(kernel, varies) {}

  /// Those that no launch has are left out.
  std::vector<Race> run() {
    walk(kernel_.body, [&](const Inst* inst) {
      if (inst->is(Op::parallel)) look_into(inst);
    });
    return std::move(found_);
  }

 private:
  struct Access {
    const Inst* inst = nullptr;
    std::vector<Race::Rounds> around;  ///< loops of the iteration that it is in
  };
  /// Accesses of one component's place with the same indices.
  struct Place {
    std::vector<Sum> indices;
    std::vector<Access> accesses;
  };

  void look_into(const Inst* loop) {
    loop_ = loop;
    outside_.clear();
    for (const Inst* around = loop->parent->parent; around; around = around->parent->parent) {
      if (!around->is(Op::loop)) return;
      outside_.push_back({around->region(0)->arg(0), 1, {}});
    }
    Iterations iterations(kernel_, loop->region(0));
    places_.clear();
    stores_.clear();
    walk(loop->region(0), [&](const Inst* inst) {
      order_.emplace(inst, order_.size());
      if (inst->is(Op::store)) stores_.push_back(inst);
    });
    collect(iterations, loop->region(0), {});
    const auto stores = [](const Access& access) { return access.inst->is(Op::store); };
    for (const auto& [part, places] : places_)
      for (const Place& a : places)
        for (const Place& b : places) {
          if (std::ranges::none_of(a.accesses, stores)) break;
          for (const Meeting& m : meetings(a.indices, b.indices, iterations.body->args.size()))
            compare(iterations, a, b, m);
        }
  }

  /// What every iteration comes to, provided that loops have rounds.
  void collect(Iterations& iterations, const Region* region,
               const std::vector<Race::Rounds>& around) {
    for (const Inst* inst : *region) {
      if (inst->is(Op::loop) && iterations.has_shared_rounds(inst)) {
        std::vector<Race::Rounds> inside = around;
        inside.push_back({inst->region(0)->arg(0), 1, {}});
        collect(iterations, inst->region(0), inside);
      }
      const bool is_access = inst->is(Op::load) || inst->is(Op::store) || inst->is(Op::atomic);
      if (!is_access || !is_float(inst->elem) || !varies_[inst->binding()]) continue;
      if (!is_stored(inst->part)) continue;
      std::vector<Sum> indices;
      for (size_t k = 0; k < Effects::indices(inst); k++) {
        std::optional<Sum> sum = iterations.sum(inst->operand(k));
        if (!sum) break;
        indices.push_back(std::move(*sum));
      }
      if (indices.size() < Effects::indices(inst)) continue;
      std::vector<Place>& places = places_[same_.first(inst->part)];
      auto at = std::ranges::find(places, indices, &Place::indices);
      if (at == places.end()) at = places.insert(at, {std::move(indices), {}});
      at->accesses.push_back({inst, around});
    }
  }

  bool is_stored(Part part) const {
    return std::ranges::any_of(
        stores_, [&](const Inst* store) { return same_.first(store->part) == same_.first(part); });
  }

  void compare(Iterations& iterations, const Place& a, const Place& b, const Meeting& meeting) {
    const bool is_anywhere = std::ranges::all_of(meeting.at, [](const auto& at) { return !at; });
    const bool is_of_both = std::ranges::all_of(
        a.indices, [&](const Sum& sum) { return sum.change(meeting.step) == 0; });
    Comparison comparison(iterations, same_, meeting.step);
    for (const Access& first : a.accesses) {
      if (!first.inst->is(Op::store)) continue;
      for (const Access& second : b.accesses) {
        const bool do_race = is_write(second.inst)
                                 ? is_anywhere && do_writes_race(first, second, comparison)
                                 : has_part(second.inst) && !may_be_own(b.accesses, second.inst) &&
                                       !(is_of_both && is_behind(first.inst, second.inst));
        if (do_race) add(first, second, meeting);
      }
    }
  }

  /// Has the iteration stored there itself before it reads? Then the race, if there is one, is
  /// between stores. `own`: its accesses by the same indices; by which others it comes there too
  /// through another view is not known.
  bool may_be_own(const std::vector<Access>& own, const Inst* read) const {
    return std::ranges::any_of(own, [&](const Access& a) { return is_behind(a.inst, read); }) ||
           std::ranges::any_of(stores_, [&](const Inst* store) {
             return same_.first(store->part) != same_.first(read->part) &&
                    same_.may_overlap(store->part, read->part) && is_behind(store, read);
           });
  }
  bool is_behind(const Inst* store, const Inst* read) const {
    return store->is(Op::store) && order_.at(store) < order_.at(read) &&
           encloses(store->parent, read->parent);
  }

  static const Value* value_of(const Access& write) { return write.inst->operands.back().value; }

  bool do_writes_race(const Access& a, const Access& b, Comparison& comparison) const {
    if (!active_(value_of(a)) && !active_(value_of(b))) return false;
    return !b.inst->is(Op::store) || comparison.differ(value_of(a), value_of(b));
  }

  /// Does anything vary with what is read?
  bool has_part(const Inst* read) const {
    for (const Use* use = read->result()->uses; use; use = use->next) {
      const Inst* user = use->user;
      if (user->is(Op::check) || user->is(Op::print)) continue;
      if (user->is(Op::store) && !varies_[user->binding()]) continue;
      if (user->results.empty() || !user->regions.empty()) return true;
      for (const Value& v : user->results)
        if (active_(&v)) return true;
    }
    return false;
  }

  void add(const Access& first, const Access& second, const Meeting& meeting) {
    Race race;
    race.loc = second.inst->loc;
    race.text = text_of(first.inst, second.inst);
    race.loops = outside_;
    const Region* body = loop_->region(0);
    for (size_t k = 0; k < body->args.size(); k++)
      race.loops.push_back({body->arg(k), std::abs(meeting.step[k]) + 1, meeting.at[k]});
    for (const Access* access : {&first, &second})
      race.loops.insert(race.loops.end(), access->around.begin(), access->around.end());
    if (has(race, {}) != false) found_.push_back(std::move(race));
  }

  std::string text_of(const Inst* first, const Inst* second) const {
    const std::string& field = kernel_.bindings[first->binding()].name;
    const std::string loop = "the loop at " + place(loop_->loc);
    const std::string ways = "write it by an atomic, in one iteration alone, or in a serial loop";
    if (first == second)
      return "several iterations of " + loop + " write one element of " + field +
             " here, each a value of its own. Which of them stays is not defined, so it has no "
             "derivative: " +
             ways;
    const std::string& other = kernel_.bindings[second->binding()].name;
    const std::string what = "an iteration of " + loop + (is_write(second) ? " writes" : " reads") +
                             " an element of " + other + " here that another one writes at " +
                             place(first->loc) +
                             (first->binding() == second->binding()
                                  ? ""
                                  : ", as one of " + field + ", which lies in the same place");
    if (is_write(second))
      return what + ". Which value stays is not defined, so it has no derivative: " + ways;
    return what +
           ". Which of them comes first is not defined, so what is read has no derivative: read it "
           "in another loop, write to another field, or make the loop serial";
  }

  const Kernel& kernel_;
  const std::vector<bool>& varies_;
  const SamePlaces& same_;
  const Activity active_;
  std::vector<Race> found_;
  const Inst* loop_ = nullptr;
  std::vector<Race::Rounds> outside_;    ///< loops that the parallel one is in
  std::map<const Inst*, size_t> order_;  ///< of what is in it, in the program
  std::vector<const Inst*> stores_;
  std::map<Part, std::vector<Place>> places_;  ///< by SamePlaces::first
};

bool stores_in_parallel(const Kernel& kernel, const std::vector<bool>& varies) {
  bool stores = false;
  walk(kernel.body, [&](const Inst* loop) {
    if (!loop->is(Op::parallel)) return;
    walk(loop->region(0), [&](const Inst* inst) {
      stores |= inst->is(Op::store) && is_float(inst->elem) && varies[inst->binding()];
    });
  });
  return stores;
}

/// May two fields overlap that the kernel accesses?
bool may_overlap(const Kernel& kernel) {
  const Effects effects(kernel);
  std::set<uint32_t> accessed;
  walk(kernel.body, [&](const Inst* inst) {
    if (accesses_element(inst->op)) accessed.insert(inst->binding());
  });
  return std::ranges::any_of(accessed, [&](uint32_t a) {
    return std::ranges::any_of(accessed,
                               [&](uint32_t b) { return a < b && effects.may_overlap(a, b); });
  });
}

}  // namespace

const std::vector<Race>& Races::where(SamePlaces places) const {
  std::lock_guard lock(mutex_);
  auto known = known_.find(places);
  if (known == known_.end()) {
    std::vector<Race> races = Finder(*kernel_, varies_, places).run();
    known = known_.emplace(std::move(places), std::move(races)).first;
  }
  return known->second;
}

void Races::expect_none(std::span<const runtime::Argument> arguments) const {
  for (const Race& race : where({*kernel_, arguments}))
    if (has(race, arguments) == true) throw Error(race.loc, race.text);
}

std::shared_ptr<const Races> races_of(const Kernel& kernel, const std::vector<bool>& varies) {
  if (!stores_in_parallel(kernel, varies)) return nullptr;
  if (!may_overlap(kernel)) {
    const std::vector<Race> races = Finder(kernel, varies, SamePlaces()).run();
    if (races.empty()) return nullptr;
    for (const Race& race : races)
      if (has(race, {}) == true) throw Error(race.loc, race.text);
  }
  return std::make_shared<Races>(clone(kernel), varies);
}

}  // namespace quern::autodiff

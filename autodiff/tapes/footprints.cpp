#include "autodiff/tapes/footprints.h"

#include <algorithm>
#include <limits>

#include "autodiff/primal/at_launch.h"
#include "ir/analysis/affine.h"
#include "ir/analysis/effects.h"

namespace quern::autodiff {

using namespace ir;

namespace {

constexpr std::pair anywhere{std::numeric_limits<int64_t>::min(),
                             std::numeric_limits<int64_t>::max()};

class Finder {
 public:
  explicit Finder(std::span<const runtime::Argument> arguments)
      : arguments_(arguments), launch_(arguments) {}

  std::vector<Footprint> run(const Region* body) {
    look_into(body, false);
    return std::move(found_);
  }

 private:
  /// `maybe`: whether it runs depends on values.
  void look_into(const Region* region, bool maybe) {
    for (const Inst* inst : *region) {
      if (accesses_element(inst->op)) {
        access(inst, maybe);
      } else if (inst->is(Op::loop)) {
        serial(inst, maybe);
      } else if (inst->is(Op::parallel)) {
        parallel(inst, maybe);
      } else {
        for (const Region* inner : inst->regions) look_into(inner, true);
      }
    }
  }

  void parallel(const Inst* loop, bool maybe) {
    const Region* body = loop->region(0);
    const uint32_t over = loop->options.over;
    if (over != no_binding && is_on_tree(over)) {
      Footprint made;
      made.binding = over;
      made.loc = loop->loc;
      made.writes = made.clears = ends_all(loop) && !maybe;
      found_.push_back(made);
      if (made.clears) return;
    }
    const size_t before = may_be_idle_.size();
    for (const Value& index : body->args) {
      const auto bounds = launch_.bounds(&index);
      if (!bounds || bounds->rounds() <= 0) may_be_idle_.push_back(&index);
    }
    look_into(body, maybe);
    may_be_idle_.resize(before);
  }

  bool is_on_tree(uint32_t binding) const {
    return binding < arguments_.size() && arguments_[binding].storage &&
           arguments_[binding].storage->tree();
  }

  /// Does each iteration of a loop over a field end its element, and nothing else?
  static bool ends_all(const Inst* loop) {
    const Region* body = loop->region(0);
    const Inst* end = body->first;
    if (!end->is(Op::deactivate) || end->binding() != loop->options.over ||
        end->next != body->terminator() || Effects::indices(end) != body->args.size())
      return false;
    for (size_t k = 0; k < body->args.size(); k++)
      if (end->operand(k) != body->arg(k)) return false;
    return true;
  }

  /// What a round writes where its index says has been written behind all rounds alone.
  void serial(const Inst* loop, bool maybe) {
    const Value* index = loop->region(0)->arg(0);
    const auto bounds = launch_.bounds(index);
    const bool runs = bounds && bounds->rounds() > 0 && launch_.number(loop->operand(2)) == 1;
    by_round_.emplace_back(index, std::vector<Footprint>());
    look_into(loop->region(0), maybe || !runs);
    std::vector<Footprint> written = std::move(by_round_.back().second);
    by_round_.pop_back();
    found_.insert(found_.end(), written.begin(), written.end());
  }

  void access(const Inst* inst, bool maybe) {
    Footprint made;
    made.binding = inst->binding();
    made.loc = inst->loc;
    if (has(inst->op, flag::reads) && !inst->is(Op::store)) found_.push_back(made);
    const bool is_load = inst->is(Op::atomic) && inst->atomic() == AtomicOp::load;
    if (!has(inst->op, flag::writes) || is_load) return;
    made.writes = true;
    made.box.component = inst->component();
    std::vector<const Value*> indices;
    bool all = true;
    for (size_t k = 0; k < Effects::indices(inst); k++)
      made.box.axes.push_back(along(inst->operand(k), indices, all));
    found_.push_back(made);
    const auto names = [&](const Value* index) {
      return std::ranges::find(indices, index) != indices.end();
    };
    const bool is_plain = inst->is(Op::store) || inst->is(Op::atomic);
    if (maybe || !all || !is_plain || !std::ranges::all_of(may_be_idle_, names)) return;
    made.always = true;
    const auto outermost =
        std::ranges::find_if(by_round_, [&](const auto& loop) { return names(loop.first); });
    (outermost == by_round_.end() ? found_ : outermost->second).push_back(std::move(made));
  }

  /// Where an index may be. `all` stays where the loops' indices, each along one axis, come to each
  /// place.
  std::pair<int64_t, int64_t> along(const Value* v, std::vector<const Value*>& indices, bool& all) {
    if (const auto n = launch_.number(v)) return {*n, *n + 1};
    const Affine& form = forms_.of(v);
    const Value* index = form.base();
    const auto bounds = index ? launch_.bounds(index) : std::nullopt;
    int64_t lo = 0, hi = 0;
    if (!bounds || __builtin_add_overflow(bounds->lo, form.constant, &lo) ||
        __builtin_add_overflow(bounds->hi, form.constant, &hi)) {
      all = false;
      return anywhere;
    }
    all = all && std::ranges::find(indices, index) == indices.end();
    indices.push_back(index);
    return {lo, hi};
  }

  const std::span<const runtime::Argument> arguments_;
  AtLaunch launch_;
  AffineForms forms_{AffineForms::through_conversions};
  std::vector<Footprint> found_;
  /// Of parallel loops around that may have no iterations: what names none of these is not certain.
  std::vector<const Value*> may_be_idle_;
  /// Serial loops around, by their indices, and what is written behind them.
  std::vector<std::pair<const Value*, std::vector<Footprint>>> by_round_;
};

}  // namespace

bool Box::holds(const Box& other) const {
  if (component != other.component || axes.size() != other.axes.size()) return false;
  bool holds = true, is_empty = false;
  for (size_t k = 0; k < axes.size(); k++) {
    holds = holds && axes[k].first <= other.axes[k].first && other.axes[k].second <= axes[k].second;
    is_empty = is_empty || other.axes[k].first >= other.axes[k].second;
  }
  return holds || is_empty;
}

std::vector<Footprint> footprints_of(const Kernel& kernel,
                                     std::span<const runtime::Argument> arguments) {
  return Finder(arguments).run(kernel.body);
}

}  // namespace quern::autodiff

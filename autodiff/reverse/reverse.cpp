#include "autodiff/reverse/reverse.h"

#include <algorithm>
#include <set>
#include <utility>

#include "autodiff/plans/wanted.h"
#include "autodiff/primal/combined.h"
#include "autodiff/primal/random_calls.h"
#include "autodiff/reverse/assigned.h"
#include "autodiff/reverse/at_once.h"
#include "autodiff/reverse/kept_in_adjoints.h"
#include "autodiff/reverse/known_bounds.h"
#include "autodiff/reverse/pull.h"
#include "autodiff/reverse/read_copies.h"
#include "autodiff/reverse/replay.h"
#include "autodiff/rules/rules.h"
#include "autodiff/stencils/contract.h"
#include "autodiff/stencils/gather.h"
#include "ir/passes/optimise/close_counters.h"
#include "ir/passes/optimise/fold_ranges.h"
#include "ir/passes/optimise/promote_slots.h"
#include "ir/passes/optimise/simplify.h"

namespace quern::autodiff {

using namespace ir;

namespace {

std::unique_ptr<Kernel> like(const Kernel& primal, const Kernel& source, const char* what) {
  auto made = std::make_unique<Kernel>();
  made->name = what + primal.name;
  made->loc = source.loc;
  made->level = Level::structured;
  made->modes = source.modes;
  made->bindings = source.bindings;
  Builder b(*made);
  for (Function f : source.callees) {
    ValueMap map;
    f.body = clone_region(b, f.body, map);
    made->callees.push_back(std::move(f));
  }
  return made;
}

/// A kernel whose results are the rows that each site takes in all.
std::unique_ptr<Kernel> counting(const Kernel& primal, const Kernel& source,
                                 const LoggedReads& logged, const LoopPlans& plans,
                                 std::vector<RoundsSite> sites) {
  std::erase_if(sites, [](const RoundsSite& site) { return site.is_augmented; });
  if (sites.empty()) return nullptr;
  std::unique_ptr<Kernel> made = like(primal, source, "rounds of ");
  Builder b(*made);
  made->body = b.make_region();
  b.at_end(made->body).at(made->loc);
  Replay values(source, logged, plans, b, sites, {});
  std::vector<Value*> totals, results;
  for (size_t k = 0; k < sites.size(); k++) totals.push_back(b.slot(Type::i64));
  values.count_all(source.body, totals);
  for (Value* total : totals) results.push_back(b.get(total));
  made->results.assign(sites.size(), Type::i64);
  b.yield(results);
  optimise(*made);
  return made;
}

/// Fields that are written and read, through one binding or several, pass on what they were given.
void add_passing(const Kernel& kernel, std::vector<bool>& inputs) {
  std::set<uint32_t> written, read;  // classes of fields that may overlap
  walk(kernel.body, [&](const Inst* inst) {
    if (!accesses_element(inst->op) || !is_float(inst->elem)) return;
    const bool writes =
        inst->is(Op::store) || (inst->is(Op::atomic) && inst->atomic() != AtomicOp::load);
    const uint32_t overlapping = kernel.bindings[inst->binding()].alias_class;
    if (writes) written.insert(overlapping);
    if (!writes || inst->used()) read.insert(overlapping);
  });
  for (size_t k = 0; k < inputs.size(); k++) {
    const Binding& b = kernel.bindings[k];
    if (b.kind == Binding::field && has_floats(b) && written.contains(b.alias_class) &&
        read.contains(b.alias_class))
      inputs[k] = true;
  }
}

/// Of each binding of the reverse kernel one of the primal's that has its shape, if there is one.
std::vector<uint32_t> shapes_of(const Reverse& reverse) {
  std::vector<uint32_t> shapes;
  for (const Binding& b : reverse.kernel->bindings) {
    const auto number = uint32_t(shapes.size());
    const auto field = std::ranges::find(reverse.fields, b.is_derived() ? b.of : number);
    const bool is_known = b.kind == Binding::field && field != reverse.fields.end();
    shapes.push_back(is_known ? uint32_t(field - reverse.fields.begin()) : number);
  }
  return shapes;
}

/// Of each of the primal's bindings the one that companions of it can be derived of.
std::vector<uint32_t> fields_of_companions(const Reverse& reverse) {
  std::vector<uint32_t> all = reverse.fields;
  for (uint32_t k = 0; k < reverse.lent.size(); k++) all[reverse.lent[k]] = reverse.first_lent + k;
  return all;
}

/// The bindings of adjoints of each of the primal's fields.
std::vector<uint32_t> adjoints_of(const Reverse& reverse) {
  std::vector<uint32_t> all(reverse.fields.size(), no_binding);
  for (uint32_t number = 0; number < reverse.kernel->bindings.size(); number++) {
    const Binding& b = reverse.kernel->bindings[number];
    if (!b.is_derived() || b.companion != adjoints) continue;
    const auto field = std::ranges::find(reverse.fields, b.of);
    if (field != reverse.fields.end()) all[size_t(field - reverse.fields.begin())] = number;
  }
  return all;
}

/// Is what it yields all that a launch of it does?
bool has_no_effects(const Kernel& kernel) {
  bool none = true;
  walk(kernel.body, [&](const Inst* inst) { none = none && !has_effect(inst); });
  return none;
}

/// Takes away what iterations log for themselves and nobody reads; with it goes what only that was
/// made of.
void drop_unread(Kernel& kernel, const LoggedReads& logged) {
  std::set<uint32_t> unread;
  for (const auto& [read, at] : logged)
    if (at.is_private) unread.insert(at.binding);
  if (unread.empty()) return;
  std::vector<Inst*> stores;
  walk(kernel.body, [&](Inst* inst) {
    if (inst->is(Op::load)) unread.erase(inst->binding());
    if (inst->is(Op::store)) stores.push_back(inst);
  });
  bool any = false;
  for (Inst* store : stores)
    if (unread.contains(store->binding())) {
      store->erase();
      any = true;
    }
  if (any) optimise(kernel);
}

/// Of each binding: does the kernel access its elements?
void add_accessed(const Kernel& kernel, std::vector<bool>& accessed) {
  walk(kernel.body, [&](const Inst* inst) {
    if (accesses_element(inst->op) && inst->binding() < accessed.size())
      accessed[inst->binding()] = true;
  });
}

enum class Way : uint8_t {
  adjoints,
  with_values,
  at_once,  ///< by the augmented primal (at_once.h)
};

/// As reverse(). At once there may be no kernel: it does not fit.
Reverse made(const Kernel& primal, const Premises& premises, std::vector<bool> inputs,
             std::span<const runtime::LaunchKey::OnTree> trees, Way way, bool twice,
             Augment augment) {
  std::unique_ptr<Kernel> source = clone(primal);
  // Indices are those of the launch before, which was checked if it was to be.
  Premises unchecked = premises;
  unchecked.modes.checked = false;
  assume(*source, unchecked);
  optimise(*source);
  const auto is_dense = [](const runtime::LaunchKey::OnTree& on) { return on.tree == no_binding; };
  if (std::ranges::all_of(trees, is_dense)) {
    fold_ranges(*source, true);
    simplify(*source);
  }
  add_passing(*source, inputs);
  number_calls(*source);
  Reverse out;
  out.races = races_of(*source, inputs);
  const bool at_once = way == Way::at_once;
  const uint32_t number = at_once ? number_added_to(*source, inputs) : no_binding;
  if (at_once && number == no_binding) return {};
  const bool are_cleared = way != Way::adjoints;
  const bool with_values =
      way == Way::with_values && !premises.modes.checked && has_no_effects(*source);
  const Second second = twice ? Second::by_log : Second::none;
  out.scratch = derive_combined(*source, inputs, true, second).scratch;
  const TreeRules on_trees(*source, trees);
  on_trees.expect_known(inputs, out.scratch);
  inputs.resize(source->bindings.size(), false);
  add_rules(*source, Direction::back);
  promote_slots_across_parallels(*source);
  compute_bounds_before(*source);
  copy_arrays_that_change(*source);
  const std::unique_ptr<Kernel> original = clone(*source);
  const size_t count = source->bindings.size();
  LoggedReads logged = number_rows(*source, on_trees.any());
  promote_slots_across_parallels(*source);  // the numbers of rows
  close_counters(*source);
  inputs.resize(source->bindings.size(), false);
  Activity active(*source, inputs);
  active.keep_what_has_a_part(*source);
  const Slopes slopes = add_slopes(*source, active);
  // What reads behind its own writes, and second derivatives, run the primal again as it is.
  const bool is_as_launched =
      !twice && logged.empty() && out.scratch.empty() && !premises.modes.checked;
  if (!is_as_launched) augment = Augment::never;
  // Who yields the primal's values runs its rounds anyway, and elements of trees have no numbers.
  const bool runs_rounds = with_values || on_trees.any();
  LoopPlans plans(*source, active, slopes, logged, runs_rounds ? Augment::never : augment);
  if (plans.rows_vary()) augment = Augment::never;
  // Where nothing has a part, nothing is computed again.
  std::vector<RoundsSite> sites;
  if (has_part(*source, active)) sites = rounds_sites(*source, plans, on_trees.any());
  out.yields_values = with_values && sites.empty() && logged.empty();
  const bool has_numbers = std::ranges::any_of(source->bindings, [&](const Binding& b) {
    return b.kind == Binding::scalar && inputs[size_t(&b - &source->bindings[0])];
  });
  const bool fits = is_as_launched && sites.empty() && !has_numbers && !on_trees.any();
  if (at_once && !(fits && has_part(*source, active))) return {};
  if (out.yields_values || at_once) plans.keep_library_results();
  std::vector<KeptResult> results;
  if (augment != Augment::never) choose_augmented(sites, plans, augment);
  if (augment != Augment::never && !out.yields_values && !on_trees.any())
    results = choose_kept_results(*source, active, slopes, plans, augment);
  out.count = counting(primal, *source, logged, plans, sites);
  std::vector<bool> accessed(source->bindings.size(), false);
  if (out.count) add_accessed(*out.count, accessed);
  // Whoever counts has them before somebody goes back.
  for (auto& [read, at] : logged)
    at.is_private = at.is_private && !plans.rows_vary() && !accessed[at.binding];
  out.kernel = like(primal, *source, "vjp of ");
  const Further further = twice ? Further::yes : Further::no;
  pull({*source, uint32_t(count), logged, inputs, active, slopes, plans, sites, results, on_trees,
        further, number},
       out);
  if (!results.empty() || (!sites.empty() && sites.back().is_augmented))
    out.augmented =
        autodiff::augmented(*source, plans, sites, results, like(primal, *source, "rounds of "),
                            like(primal, *source, ""));
  optimise(*out.kernel);
  drop_unread(*out.kernel, logged);
  if (!on_trees.any() && gather_terms(*out.kernel, shapes_of(out))) {
    if (at_once) return {};  // what it turns round is not to add twice
    optimise(*out.kernel);
  }
  if (!on_trees.any() && contract_sums(*out.kernel, fields_of_companions(out), shapes_of(out))) {
    if (at_once) return {};
    optimise(*out.kernel);
  }
  if (are_cleared && !on_trees.any()) {
    const std::vector<uint32_t> companions = adjoints_of(out), shapes = shapes_of(out);
    out.assigned = assign_adjoints(*out.kernel, companions, shapes);
    if (keep_in_adjoints(*out.kernel, companions, out.assigned, count, shapes))
      optimise(*out.kernel);
  }

  if (at_once) {
    make_at_once(*source, plans, number, out, like(primal, *source, "work of "),
                 like(primal, *source, "vjp of "));
    // Who launches would wait for the device each time to know how much work there is.
    if (depends_on_data(*out.augmented.count)) return {};
  }

  add_accessed(*out.kernel, accessed);
  const std::vector<bool> wanted(accessed.begin() + ptrdiff_t(count), accessed.end());
  if (std::ranges::find(wanted, true) != wanted.end()) {
    out.log = log_of(*original, on_trees.any(), wanted, logged);
    on_trees.expect_not_copied(out.log.copied);
    for (const auto& kernel : {&out.log.sizes, &out.log.count, &out.log.record})
      if (*kernel) add_accessed(**kernel, accessed);
  }
  out.logged = wanted.size();
  out.reads.assign(accessed.begin(), accessed.begin() + ptrdiff_t(count));
  // A loop over one runs the elements that were active.
  for (uint32_t k = 0; k < count; k++) out.reads[k] = out.reads[k] || on_trees.is_on_tree(k);
  return out;
}

}  // namespace

Reverse reverse(const Kernel& primal, const Premises& premises, std::vector<bool> inputs,
                std::span<const runtime::LaunchKey::OnTree> trees, bool with_values, bool twice,
                Augment augment) {
  const bool may_be_at_once =
      augment != Augment::never && augment != Augment::by_loops && !twice && !premises.modes.strict;
  if (may_be_at_once)
    if (Reverse found = made(primal, premises, inputs, trees, Way::at_once, false, Augment::never);
        found.kernel)
      return found;
  const Way way = with_values ? Way::with_values : Way::adjoints;
  return made(primal, premises, inputs, trees, way, twice, augment);
}

}  // namespace quern::autodiff

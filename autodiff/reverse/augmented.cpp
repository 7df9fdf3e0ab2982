#include "autodiff/reverse/augmented.h"

#include <algorithm>
#include <utility>

#include "autodiff/plans/augmentable.h"
#include "autodiff/plans/costs.h"
#include "autodiff/reverse/declared.h"
#include "quern/ir/lower.h"

namespace quern::autodiff {

using namespace ir;

namespace {

/// In the order in which Replay keeps them.
std::vector<Type> ends_of(const Inst* loop, const LoopPlan& plan) {
  std::vector<Type> types;
  for (const Value& v : loop->results)
    if (v.uses) types.push_back(v.type);
  for (size_t k : plan.inverted) types.push_back(loop->result(k)->type);
  if (plan.way == LoopPlan::last_replacing) types.push_back(round_type(plan));
  return types;
}

uint32_t add_field(Kernel& kernel, std::span<const Type> types) {
  kernel.bindings.push_back(field_of("what a loop carries", types, kernel.loc));
  return uint32_t(kernel.bindings.size() - 1);
}

}  // namespace

bool depends_on_data(const Kernel& kernel) {
  bool depends = false;
  walk(kernel.body, [&](const Inst* inst) {
    const bool counts = inst->is(Op::atomic) && inst->atomic() != AtomicOp::load;
    const bool is_of_fields = accesses_element(inst->op) && has(inst->op, flag::reads);
    depends |= (is_of_fields && !counts) || inst->is(Op::launch_key);
  });
  return depends;
}

void choose_augmented(std::vector<RoundsSite>& sites, const LoopPlans& plans, Augment where) {
  for (RoundsSite& site : sites) {
    const LoopPlan& plan = plans.of(site.loop);
    const bool pays =
        plan.cost >= to_keep_byte * double(plan.bytes()) || where == Augment::wherever_possible;
    site.is_augmented = site.alike && pays && may_be_augmented(site.loop, site.alike);
    if (!site.is_augmented) continue;
    site.ends = ends_of(site.loop, plan);
    dump_plan(site.loop->loc, "the primal's launch keeps what the loop's rounds begin with");
  }
  std::ranges::stable_partition(sites, [](const RoundsSite& site) { return !site.is_augmented; });
}

void declare_augmented(Kernel& kernel, const std::vector<RoundsSite>& sites, SiteFields& fields) {
  fields.rows.resize(sites.size(), no_binding);
  fields.ends.resize(sites.size(), no_binding);
  for (size_t k = 0; k < sites.size(); k++) {
    if (!sites[k].is_augmented) continue;
    fields.rows[k] = add_field(kernel, sites[k].types);
    if (!sites[k].ends.empty()) fields.ends[k] = add_field(kernel, sites[k].ends);
  }
  for (KeptResult& kept : fields.kept) kept.binding = add_field(kernel, {&kept.type, 1});
}

Augmented augmented(const Kernel& primal, const LoopPlans& plans,
                    const std::vector<RoundsSite>& sites, const std::vector<KeptResult>& results,
                    std::unique_ptr<Kernel> count, std::unique_ptr<Kernel> kernel) {
  const LoggedReads none;
  Augmented made;
  {
    Builder b(*count);
    count->body = b.make_region();
    b.at_end(count->body).at(count->loc);
    Replay values(primal, none, plans, b, sites, {});
    values.region(primal.body, Replay::plain);
    std::vector<Value*> counted;
    const auto add = [&](std::vector<Type> rows, std::vector<Type> ends, Replay::Alike counts) {
      made.sites.push_back({std::move(rows), std::move(ends)});
      counted.insert(counted.end(), {counts.rows, counts.iterations});
    };
    for (const RoundsSite& site : sites)
      if (site.is_augmented) add(site.types, site.ends, values.count_alike(site));
    for (const KeptResult& kept : results) add({kept.type}, {}, values.count_alike(kept));
    count->results.assign(counted.size(), Type::i64);
    b.yield(counted);
    optimise(*count);
  }
  SiteFields fields{.kept = results};
  declare_augmented(*kernel, sites, fields);
  Builder b(*kernel);
  kernel->body = b.make_region();
  b.at_end(kernel->body).at(kernel->loc);
  Replay values(primal, none, plans, b, sites, std::move(fields));
  values.region(primal.body, Replay::augmenting);
  kernel->results = primal.results;
  kernel->sites = primal.sites;
  const std::vector<Value*> yielded = values.operands_now(primal.body->terminator());
  b.yield(yielded);
  optimise(*kernel);
  made.count = std::move(count);
  made.kernel = std::move(kernel);
  return made;
}

}  // namespace quern::autodiff

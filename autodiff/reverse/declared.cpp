#include "autodiff/reverse/declared.h"

#include <set>
#include <string>
#include <utility>

#include "autodiff/reverse/augmented.h"
#include "autodiff/stencils/keeper.h"
#include "quern/ir/partials.h"

namespace quern::autodiff {

using namespace ir;

namespace {

uint32_t add(Kernel& kernel, Binding binding) {
  kernel.bindings.push_back(std::move(binding));
  return uint32_t(kernel.bindings.size() - 1);
}

Binding scalar_of(std::string name, Type type, Loc loc) {
  Binding made;
  made.kind = Binding::scalar;
  made.components = {{type}};
  made.name = std::move(name);
  made.loc = loc;
  return made;
}

Binding adjoints_of(Binding of, uint32_t field) {
  for (Component& c : of.components) c.type = derivative_type(c.type);
  of.name = "the adjoints of " + of.name;
  of.of = field;
  of.companion = adjoints;
  return of;
}

/// Fields that are no inputs, in whose companions iterations may keep what others sum up.
std::vector<uint32_t> accessed_by_each_alone(const Primal& primal) {
  std::set<uint32_t> found;
  walk(primal.kernel.body, [&](const Inst* loop) {
    if (!loop->is(Op::parallel) || loop->region(0)->args.size() < 2) return;
    for (const Inst* inst : *loop->region(0)) {
      if (!accesses_element(inst->op) || !is_float(inst->elem)) continue;
      const uint32_t field = inst->binding();
      if (field < primal.count && !primal.inputs[field] && is_at_own_element(inst, loop))
        found.insert(field);
    }
  });
  return {found.begin(), found.end()};
}

}  // namespace

Binding field_of(std::string name, std::span<const Type> types, Loc loc) {
  Binding made;
  made.kind = Binding::field;
  made.rank = 1;
  for (Type t : types) made.components.push_back({t});
  made.name = std::move(name);
  made.loc = loc;
  return made;
}

Declared declare(const Primal& primal, Reverse& out) {
  Declared made;
  Kernel& kernel = *out.kernel;
  const Loc loc = primal.kernel.loc;
  out.fields.assign(primal.count, no_binding);
  for (uint32_t k = 0; k < primal.count; k++) {
    const Binding& of = primal.kernel.bindings[k];
    if (!primal.inputs[k]) continue;
    if (of.kind == Binding::scalar) out.scalars.push_back(k);
    if (of.kind == Binding::field) out.fields[k] = add(kernel, of);
  }
  out.first_lent = uint32_t(kernel.bindings.size());
  if (!primal.trees.any()) out.lent = accessed_by_each_alone(primal);
  for (uint32_t k : out.lent) add(kernel, primal.kernel.bindings[k]);
  made.first_seed = uint32_t(kernel.bindings.size());
  for (Type type : primal.kernel.results) {
    if (!is_float(type)) continue;
    add(kernel, scalar_of("the adjoint of a result", derivative_type(type), loc));
    out.seeds++;
  }
  for (const RoundsSite& site : primal.sites) {
    if (site.is_augmented) continue;  // they stand behind the others
    made.sites.rows.push_back(add(kernel, field_of("what a loop carries", site.types, loc)));
    out.rows.push_back(site.types);
  }
  const Type cursor = Type::i64;
  if (!out.rows.empty())
    made.sites.cursors = add(kernel, field_of("rows that are taken", {&cursor, 1}, loc));
  made.sites.kept = primal.results;
  declare_augmented(kernel, primal.sites, made.sites);
  made.companions.assign(primal.count, no_binding);
  for (uint32_t k = 0; k < primal.count; k++)
    if (out.fields[k] != no_binding)
      made.companions[k] = add(kernel, adjoints_of(primal.kernel.bindings[k], out.fields[k]));
  return made;
}

}  // namespace quern::autodiff

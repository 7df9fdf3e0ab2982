#include "ir/passes/trees/tree_parts.h"

#include <algorithm>

#include "quern/ir/trees.h"

namespace quern::ir {

bool share_elements(const Binding& a, const Binding& b) {
  return a.layout.is_sparse() && b.layout.is_sparse() && a.tree == b.tree &&
         a.layout.pools == b.layout.pools;
}

uint32_t TreeParts::part(uint32_t field, const std::string& name, Type type, size_t components) {
  const auto [at, is_new] =
      parts_.try_emplace({kernel_.bindings[field].tree, name}, uint32_t(kernel_.bindings.size()));
  if (!is_new) return at->second;
  Binding b;
  b.kind = Binding::field;
  b.rank = 1;
  b.components.assign(components, {type});
  b.name = "the tree of " + kernel_.bindings[field].name;
  b.loc = kernel_.bindings[field].loc;
  b.of = field;
  b.companion = name;
  b.alias_class = at->second + 1;
  kernel_.bindings.push_back(std::move(b));
  return at->second;
}

uint32_t TreeParts::table(uint32_t field, size_t pool) {
  return part(field, tree::table(pool), Type::u32);
}
uint32_t TreeParts::keys(uint32_t field) { return part(field, tree::keys, Type::u32); }
uint32_t TreeParts::listed(uint32_t field) { return part(field, tree::listed, Type::u32); }
uint32_t TreeParts::mask(uint32_t field) { return part(field, tree::mask, Type::u32); }
uint32_t TreeParts::ring(uint32_t field, size_t pool) {
  return part(field, tree::ring(pool), Type::u32);
}
uint32_t TreeParts::owners(uint32_t field, size_t pool) {
  return part(field, tree::owners(pool), Type::i64);
}
uint32_t TreeParts::ending(uint32_t field) { return part(field, tree::ending, Type::u32); }
uint32_t TreeParts::state(uint32_t field) { return part(field, tree::state, Type::u32); }
uint32_t TreeParts::list(uint32_t field) {
  return part(field, tree::list(kernel_.bindings[field].layout.pools.size() - 1), Type::u32);
}
uint32_t TreeParts::neighbours(uint32_t field) { return part(field, tree::neighbours, Type::u32); }
uint32_t TreeParts::places(uint32_t field) {
  const Binding& binding = kernel_.bindings[field];
  return part(field, tree::places(binding.layout.pools.size() - 1),
              tree::place_type(binding.layout), binding.rank);
}

uint32_t TreeParts::elements(uint32_t field) {
  const auto [at, is_new] = elements_.try_emplace(field, uint32_t(kernel_.bindings.size()));
  if (!is_new) return at->second;
  Binding b = kernel_.bindings[field];
  b.rank = 1;
  b.of = field;
  b.companion = tree::elements;
  b.zero_based = true;
  b.layout.pools.clear();
  std::fill_n(b.layout.cell, Placement::max_axes, 0u);
  b.layout.cut = b.layout.wide = b.layout.rebased = b.layout.shifted = false;
  kernel_.bindings.push_back(std::move(b));
  return at->second;
}

}  // namespace quern::ir

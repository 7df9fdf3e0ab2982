#include "ir/passes/walks/nest_sums.h"

#include <algorithm>

namespace quern::ir {

NestSums::Contributions NestSums::contributions_of(const Nest::Piece& piece) const {
  Contributions all;
  for (const Inst* inst : piece.code) {
    if (!nest_.is_update(inst)) continue;
    auto add = [&](const Inst* rmw) {
      const auto same = [&](const Contribution& c) { return c.update == inst && c.same(rmw); };
      if (!rmw->is(Op::rmw) || std::ranges::any_of(all, same)) return;
      Contribution made = contribution(inst, rmw);
      const auto has_term = [&](const Contribution& c) {
        return c.term == made.term && is_sum(c.rmw);
      };
      made.is_summed =
          is_sum(rmw) && (std::ranges::any_of(all, has_term) ||
                          (!pieces_by_any_.contains(piece.number) && sums_.contains(made.term) &&
                           nest_.piece_of(made.term->inst) != piece.number));
      all.push_back(std::move(made));
    };
    add(inst);
    for (Region* region : inst->regions) ir::walk(region, add);
  }
  std::ranges::stable_partition(all, [](const Contribution& c) { return !c.is_summed; });
  return all;
}

size_t NestSums::own(const Contributions& all) {
  return size_t(std::ranges::count(all, false, &Contribution::is_summed));
}

NestSums::Contribution NestSums::contribution(const Inst* update, const Inst* rmw) const {
  Contribution made{update, rmw, rmw->operand(1)};
  if (!is_sum(rmw)) return made;
  const auto shared = [&](const Value* v) { return is_shared(v) || common_.contains(v); };
  for (const Inst* inst = made.term->inst; inst; inst = made.term->inst) {
    if (inst->is(Op::neg)) {
      made.is_negated = !made.is_negated;
      made.term = inst->operand(0);
    } else if (inst->is(Op::mul) && shared(inst->operand(0)) != shared(inst->operand(1))) {
      const size_t factor = shared(inst->operand(0)) ? 0 : 1;
      made.factors.push_back(inst->operand(factor));
      made.term = inst->operand(1 - factor);
    } else {
      break;
    }
    made.products.push_back(inst);
  }
  return made;
}

void NestSums::find_sums(const Nest::Piece& piece) {
  for (const Contribution& c : contributions_of(piece)) {
    for (const Inst* product : c.products) {
      if (!is_for_sums(product, piece)) break;
      left_out_.insert(product);
    }
    const Inst* made = c.term->inst;
    if (!is_sum(c.rmw) || !made || !made->regions.empty() || common_.contains(c.term)) continue;
    const std::optional<size_t> earlier = nest_.piece_of(made);
    if (pieces_by_any_.contains(piece.number) || !earlier || *earlier == piece.number) continue;
    if (sums_.try_emplace(c.term, nullptr).second) sums_in_[*earlier].push_back(c.term);
  }
}

/// Do only sums of the piece use what the instruction of it makes?
bool NestSums::is_for_sums(const Inst* inst, const Nest::Piece& piece) const {
  if (nest_.piece_of(inst) != piece.number) return false;
  for (const Use* use = inst->result()->uses; use; use = use->next) {
    if (left_out_.contains(use->user)) continue;
    const Inst* update = use->user->is(Op::rmw) && is_sum(use->user) ? use->user : nullptr;
    if (update && !nest_.is_update(update)) update = update->parent->parent;
    if (!update || !nest_.is_update(update) || nest_.piece_of(update) != piece.number) return false;
  }
  return true;
}

}  // namespace quern::ir

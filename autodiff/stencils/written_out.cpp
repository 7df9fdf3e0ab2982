#include "autodiff/stencils/written_out.h"

#include <algorithm>
#include <ranges>

#include "ir/analysis/facts.h"

namespace quern::autodiff {

using namespace ir;

namespace {

constexpr int64_t most_products = 32;
constexpr int64_t most_elements = 7;  ///< of one own index

/// 0: they are not constant, or none.
int64_t constant_rounds(const Index& index, const WrittenOut::Bounds& of) {
  const Inst *lo = constant_of(of.lo), *hi = constant_of(of.hi);
  if (index.is_parallel() || !lo || !hi) return 0;
  const Type type = of.lo->type;
  const int64_t rounds = to_signed(hi->imm, type) - to_signed(lo->imm, type);
  return std::clamp<int64_t>(rounds, 0, most_products + 1);
}

bool is_offset(const Contraction& sums, const Index& index) {
  return std::ranges::any_of(sums.summands, [&](const Summand& s) {
    return std::ranges::any_of(s.offsets,
                               [&](const Affine& o) { return o.factor_of(index.value) != 0; });
  });
}

/// Are elements there for all rounds of that own index?
bool is_plain(const Contraction& sums, size_t own) {
  return std::ranges::all_of(sums.summands,
                             [&](const Summand& s) { return s.is_certain() && s.is_at(own); });
}

}  // namespace

WrittenOut::WrittenOut(const Contraction& sums, const std::vector<Bounds>& own,
                       const std::vector<Bounds>& summed) {
  choose_summed(sums, summed);
  choose_own(sums, own);
}

void WrittenOut::choose_summed(const Contraction& sums, const std::vector<Bounds>& bounds) {
  std::vector<Written> chosen;
  int64_t all = 1;
  for (size_t k = 0; k < sums.summed.size(); k++) {
    const Index& index = sums.summed[k];
    if (!is_offset(sums, index)) continue;
    const int64_t rounds = constant_rounds(index, bounds[k]);
    all *= rounds;
    if (rounds == 0 || all * int64_t(sums.summands.size()) > most_products) return;
    chosen.push_back({k, &index, to_signed(bounds[k].lo->inst->imm, index.value->type), rounds});
  }
  summed_ = std::move(chosen);
  summed_rounds_ = all;
}

void WrittenOut::choose_own(const Contraction& sums, const std::vector<Bounds>& bounds) {
  for (size_t k = sums.own.size(); k-- > 0;) {
    const Index& index = sums.own[k];
    const int64_t rounds = constant_rounds(index, bounds[k]);
    const int64_t all = this->rounds() * rounds * int64_t(sums.summands.size());
    if (rounds == 0 || rounds > most_elements || all > most_products || !is_plain(sums, k)) return;
    own_.push_back({k, &index, to_signed(bounds[k].lo->inst->imm, index.value->type), rounds});
    own_rounds_ *= rounds;
  }
}

bool WrittenOut::is_written(const std::vector<Written>& written, size_t k) {
  return std::ranges::find(written, k, &Written::number) != written.end();
}

std::vector<WrittenOut::At> WrittenOut::at(int64_t round) const {
  std::vector<At> all;
  const auto add = [&](const Written& w) {
    all.push_back({w.index, w.first + round % w.rounds});
    round /= w.rounds;
  };
  for (const Written& w : own_) add(w);
  for (const Written& w : std::views::reverse(summed_)) add(w);
  return all;
}

}  // namespace quern::autodiff

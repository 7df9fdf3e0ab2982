#include "autodiff/stencils/written_out.h"

#include <algorithm>
#include <ranges>

#include "ir/analysis/facts.h"

namespace quern::autodiff {

using namespace ir;

namespace {

constexpr int64_t most_of_offsets = 128;
constexpr int64_t most_products = 32;  ///< that own indices make of them
constexpr int64_t most_elements = 7;   ///< of one own index

/// 0: they are not constant, or none.
int64_t rounds_of(const Index& index) {
  return std::min(index.constant_rounds().value_or(0), most_of_offsets + 1);
}

/// Of constant rounds.
int64_t first_of(const Index& index) {
  const Inst* lo = constant_of(index.loop->operand(0));
  return to_signed(lo->imm, lo->type());
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

WrittenOut::WrittenOut(const Contraction& sums) {
  choose_summed(sums);
  choose_own(sums);
}

void WrittenOut::choose_summed(const Contraction& sums) {
  std::vector<Written> chosen;
  int64_t all = 1;
  for (size_t k = 0; k < sums.summed.size(); k++) {
    const Index& index = sums.summed[k];
    if (!is_offset(sums, index)) continue;
    const int64_t rounds = rounds_of(index);
    all *= rounds;
    asks_in_rounds_ = rounds == 0 || all * int64_t(sums.summands.size()) > most_of_offsets;
    if (asks_in_rounds_) return;
    chosen.push_back({k, &index, first_of(index), rounds});
  }
  summed_ = std::move(chosen);
  summed_rounds_ = all;
}

void WrittenOut::choose_own(const Contraction& sums) {
  for (size_t k = sums.own.size(); k-- > 0;) {
    const Index& index = sums.own[k];
    const int64_t rounds = rounds_of(index);
    const int64_t all = this->rounds() * rounds * int64_t(sums.summands.size());
    if (rounds == 0 || rounds > most_elements || all > most_products || !is_plain(sums, k)) return;
    own_.push_back({k, &index, first_of(index), rounds});
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

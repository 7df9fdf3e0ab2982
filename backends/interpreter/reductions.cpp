#include "backends/interpreter/reductions.h"

#include <algorithm>
#include <utility>

namespace quern::interpreter {

using namespace ir;

namespace {

constexpr uint64_t chunk = 1024;
constexpr size_t partials = 32;

/// The 32 partial values of a chunk.
class Partials {
 public:
  Partials(AtomicOp op, Type type) : op_(op), type_(type), values_(partials, identity(op, type)) {}

  void add(uint64_t k, Bits v) {
    Bits& p = values_[k % partials];
    p = combine(op_, type_, p, v);
  }
  Bits halved() {
    for (size_t half = partials / 2; half > 0; half /= 2)
      for (size_t j = 0; j < half; j++)
        values_[j] = combine(op_, type_, values_[j], values_[j + half]);
    return values_[0];
  }

 private:
  AtomicOp op_;
  Type type_;
  std::vector<Bits> values_;
};

}  // namespace

Bits Contributions::combined(Bits initial, uint64_t iterations) {
  if (all_.empty()) return initial;
  std::sort(all_.begin(), all_.end(), [](const One& a, const One& b) {
    return std::pair(a.iteration, a.number) < std::pair(b.iteration, b.number);
  });
  std::vector<Bits> level;
  auto at = all_.begin();
  for (uint64_t first = 0; first < iterations; first += chunk) {
    Partials sum(op_, type_);
    for (; at != all_.end() && at->iteration < first + chunk; ++at)
      sum.add(at->iteration - first, at->value);
    level.push_back(sum.halved());
  }
  while (level.size() > 1) {
    std::vector<Bits> next;
    for (size_t first = 0; first < level.size(); first += chunk) {
      Partials sum(op_, type_);
      for (size_t k = first; k < std::min<size_t>(first + chunk, level.size()); k++)
        sum.add(k - first, level[k]);
      next.push_back(sum.halved());
    }
    level = std::move(next);
  }
  return combine(op_, type_, initial, level[0]);
}

}  // namespace quern::interpreter

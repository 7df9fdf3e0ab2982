#include "autodiff/stencils/closed_loops.h"

#include <algorithm>

#include "quern/ir/builder.h"

namespace quern::autodiff {

using namespace ir;

namespace {

class Closer {
 public:
  Closer(Kernel& kernel, std::span<const uint32_t> shapes, Inst* loop)
      : shapes_(shapes), loop_(loop), over_(loop->options.over), b_(kernel) {}

  std::optional<ClosedLoops> run(std::span<const Stencil> stencils) {
    b_.before(loop_).at(loop_->loc);
    for (const Stencil& stencil : stencils)
      for (const Term& term : stencil.terms) require_closed(stencil, term);
    if (!closes_) return std::nullopt;
    ClosedLoops made{.is_closed = closes_};
    made.is_open = b_.unary(Op::bit_not, closes_);
    made.closed = version(made.is_closed);
    made.open = version(made.is_open);
    loop_->erase();
    return made;
  }

 private:
  void require(Value* v) { closes_ = closes_ ? b_.binary(Op::bit_and, closes_, v) : v; }
  void require_equal(Value* a, Value* b) {
    if (a != b) require(b_.binary(Op::eq, a, b));
  }
  /// Integers on the way do not wrap around their widths.
  void require_small(Value* v) {
    require(b_.binary(Op::ge, v, b_.integer(v->type, -most_wrapping)));
    require(b_.binary(Op::le, v, b_.integer(v->type, most_wrapping)));
  }

  Type index_type(size_t k) const { return loop_->region(0)->arg(uint32_t(k))->type; }

  /// That the loop is closed along the axes where the term goes around.
  void require_closed(const Stencil& stencil, const Term& term) {
    if (term.wrappings.empty()) return;
    ValueMap map;
    repeat(b_, term.around, map);
    const auto now = [&](Value* v) {
      const auto copy = map.find(v);
      return copy == map.end() ? v : copy->second;
    };
    const uint32_t shape = shapes_[stencil.binding];
    for (size_t k = 0; k < term.wrappings.size(); k++) {
      const Wrapping& w = term.wrappings[k];
      if (!w.modulus) continue;
      const uint32_t axis = stencil.mapping.axes[k];
      Value* first = b_.first(shape, axis, index_type(k));
      Value* extent = b_.extent(shape, axis, index_type(k));
      require_equal(now(w.modulus), extent);
      const bool is_own = over_ != no_binding && shapes_[over_] == shape && axis == k;
      if (!is_own) {
        const auto [lo, hi] = bounds(k);
        require_equal(lo, first);
        require_equal(hi, b_.add(first, extent));
      }
      if (w.offset != 0)
        require(b_.binary(Op::ge, extent, b_.integer(extent->type, std::abs(w.offset))));
      require_small(first);
      require_small(extent);
      for (Value* symbol : w.symbols) require_small(now(symbol));
    }
  }

  std::pair<Value*, Value*> bounds(size_t k) {
    if (over_ == no_binding) return {loop_->operand(2 * k), loop_->operand(2 * k + 1)};
    Value* lo = b_.first(over_, uint32_t(k), index_type(k));
    return {lo, b_.add(lo, b_.extent(over_, uint32_t(k), index_type(k)))};
  }

  Inst* version(Value* runs) {
    std::vector<Value*> operands;
    for (size_t k = 0; k < loop_->region(0)->args.size(); k++) {
      const auto [lo, hi] = bounds(k);
      operands.push_back(lo);
      operands.push_back(b_.select(runs, hi, lo));
    }
    Inst* made = b_.make(Op::parallel, std::span<const Type>(), operands);
    made->kind = loop_->kind;
    made->options = loop_->options;
    made->options.over = no_binding;
    ValueMap map;
    b_.set_regions(made, {clone_region(b_, loop_->region(0), map)});
    return made;
  }

  const std::span<const uint32_t> shapes_;
  Inst* const loop_;
  const uint32_t over_;
  Builder b_;
  Value* closes_ = nullptr;
};

}  // namespace

std::optional<ClosedLoops> close_loop(Kernel& kernel, std::span<const uint32_t> shapes, Inst* loop,
                                      std::span<const Stencil> stencils) {
  return Closer(kernel, shapes, loop).run(stencils);
}

}  // namespace quern::autodiff

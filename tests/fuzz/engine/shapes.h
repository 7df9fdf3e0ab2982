#pragma once
// Bodies of parallel loops in the forms that passes look for, which statements at random hardly
// ever make: nothing but a loop inside, nothing but a function with a rare case, borders.
#include <span>

#include "tests/fuzz/engine/values.h"

namespace quern::fuzz {

/// A component of a field, and an index of it.
struct Element {
  uint32_t binding = 0, component = 0;
  ir::Type type = ir::Type::none;
  std::vector<ir::Value*> index;
};

class Shapes {
 public:
  Shapes(ir::Builder& b, Random& random, Values& values)
      : b_(b), random_(random), values_(values) {}

  /// `to` becomes what a loop over an axis of the field `other`, which nobody writes, makes of it
  /// and `from`, behind the loop or round by round; in some rounds there is a triangle.
  void inner_loop(const Element& from, const Element& other, const Element& to);
  /// `to` becomes a function of `from` that takes huge or unlike arguments another way.
  void rare_case(const Element& from, const Element& to);

  /// `to` becomes what `from`, which nobody writes, and its neighbour along an axis make: beyond
  /// the border that is the last one or the one at the other end.
  void stencil(const Element& from, const Element& to);

 private:
  ir::Value* of_round(const Element& from, const Element& at, ir::Value* carried);
  ir::Value* in_branch(const Element& from, const Element& at, ir::Value* carried);
  ir::Value* triangle(const Element& at, uint32_t axis, ir::Value* carried, Random& random);
  ir::Value* neighbour(ir::Value* at, ir::Value* extent);
  ir::Value* load(const Element& e);
  void store(const Element& e, ir::Value* v);
  ir::Value* joined(ir::Value* a, ir::Value* b) { return joined(a, b, random_); }
  ir::Value* joined(ir::Value* a, ir::Value* b, Random& random);

  ir::Builder& b_;
  Random& random_;
  Values& values_;
};

}  // namespace quern::fuzz

#pragma once
// Random values: what can be named where the generator stands, and expressions made of it.
#include <initializer_list>
#include <random>
#include <utility>
#include <vector>

#include "quern/ir/builder.h"

namespace quern::fuzz {

class Random {
 public:
  explicit Random(uint64_t seed) : rng_(seed * 0x9E3779B97F4A7C15 + 1) {}
  uint64_t below(uint64_t n) { return rng_() % n; }
  bool chance(int percent) { return below(100) < uint64_t(percent); }
  uint64_t word() { return rng_(); }
  template <class T>
  const T& pick(const std::vector<T>& from) {
    return from[below(from.size())];
  }

 private:
  std::mt19937_64 rng_;
};

/// Bits of a type where something may go wrong, or small, or random.
ir::Bits interesting(Random& random, ir::Type type);

class Values {
 public:
  /// `floats`: may values be any?
  Values(ir::Builder& b, Random& random, bool checked, bool floats);

  /// A value of the type: one in reach, a constant, or a conversion of another.
  ir::Value* value(ir::Type type);
  ir::Value* condition() { return value(ir::Type::b1); }
  ir::Type type() { return random_.pick(types_); }
  /// One more operation, its result in reach from here on.
  void operation();
  /// A value of type i32, i64, u32 or u64 in [0, extent), whatever the extent > 0 is.
  ir::Value* index(ir::Value* extent);
  /// The conversion of `v`, in checked mode of something that fits.
  ir::Value* convert(ir::Value* v, ir::Type to);
  void add(ir::Value* v) { reach_.push_back(v); }

  size_t mark() const { return reach_.size(); }
  void forget(size_t mark) { reach_.resize(mark); }
  /// Nothing before is in reach until the result is given back to `restore`.
  std::vector<ir::Value*> hide() { return std::exchange(reach_, {}); }
  void restore(std::vector<ir::Value*> reach) { reach_ = std::move(reach); }

 private:
  ir::Value* binary(ir::Op op, ir::Type type);
  ir::Value* comparison();
  ir::Value* bitcast(ir::Type type);
  /// `v`, or 1 where it is a NaN, whose bits nobody may see.
  ir::Value* number(ir::Value* v);
  bool takes(ir::Op op, ir::Type type) const;

  ir::Builder& b_;
  Random& random_;
  bool checked_, floats_;
  std::vector<ir::Type> types_;
  std::vector<ir::Op> table_;  ///< each operation as often as its weight says
  std::vector<ir::Value*> reach_;
};

}  // namespace quern::fuzz

#pragma once
// Which indices of a contraction are written out, round by round, as loops over them are short.
//
// Written out are rounds of constant number that offsets are made of, as those of a convolution, so
// that nothing asks in a round where its element is: all of them, up to 128 products, or none. And
// the last own indices, where they have fewer rounds than vectors have lanes: each element gets a
// sum of its own, of 32 products together at most.
#include <vector>

#include "autodiff/stencils/contraction.h"

namespace quern::autodiff {

class WrittenOut {
 public:
  explicit WrittenOut(const Contraction& sums);

  /// Are offsets made of rounds that are not written out? Each of these asks then where its element
  /// is, which takes longer than to add it atomically.
  bool asks_in_rounds() const { return asks_in_rounds_; }
  bool has_own(size_t k) const { return is_written(own_, k); }
  bool has_summed(size_t k) const { return is_written(summed_, k); }
  /// How many rounds of all of them, the last one fastest; summed ones are the outer ones.
  int64_t rounds() const { return own_rounds_ * summed_rounds_; }
  int64_t own_rounds() const { return own_rounds_; }
  /// What the indices are in that round.
  struct At {
    const Index* index;
    int64_t value;
  };
  std::vector<At> at(int64_t round) const;

 private:
  struct Written {
    size_t number;  ///< of the index, own or summed
    const Index* index;
    int64_t first, rounds;
  };
  static bool is_written(const std::vector<Written>& written, size_t k);
  void choose_summed(const Contraction& sums);
  void choose_own(const Contraction& sums);

  std::vector<Written> own_, summed_;
  int64_t own_rounds_ = 1, summed_rounds_ = 1;
  bool asks_in_rounds_ = false;
};

}  // namespace quern::autodiff

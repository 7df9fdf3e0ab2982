#pragma once
// A gradient against differences of the function.
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "quern/autodiff/check.h"

namespace quern::autodiff {

using Numbers = std::vector<double>;

/// What is checked: a function of several inputs, and its gradient at one place.
struct TaylorProblem {
  struct Input {
    std::string name;
    Numbers at, gradient;
    std::function<std::string(size_t)> place;             ///< the name of a number
    std::function<double(size_t number, double)> stored;  ///< what the input keeps of a value
  };
  std::vector<Input> inputs;
  std::function<double(size_t input, const Numbers&)> value;  ///< with one input changed
  bool is_single = false;  ///< in some part it is computed, or kept, in f32
};

/// Along random directions, of one input at a time.
GradientReport check_by_differences(const TaylorProblem& problem, std::mt19937_64& random);

}  // namespace quern::autodiff

#pragma once
// That a step against a gradient lowers the loss as much as the gradient says.
#include "tests/catch.h"

/// A step of `rate` lowers the loss by rate · slope, but for the curvature: `part` of that. The slope of
/// a step along the gradient g is |g|², that of one of equal size along each axis |g|₁.
template <class Program>
void expect_descent(Program& program, double rate, double slope, double part) {
  const double before = program.loss();
  program.step();
  const double fall = before - program.loss();
  CHECK(fall == Approx(rate * slope).epsilon(part));
}

#pragma once
// That a step against a gradient lowers the loss as much as the gradient says.
#include "tests/catch.h"

/// `program` takes steps x -= rate · g, so its loss falls by rate · |g|², but for the curvature:
/// `part` of that. |g|² is `squared`.
template <class Program>
void expect_descent(Program& program, double rate, double squared, double part) {
  const double before = program.loss();
  program.step();
  const double fall = before - program.loss();
  CHECK(fall == Approx(rate * squared).epsilon(part));
}

#pragma once
// What all iterations add to a few places becomes linear in fewer sums, from which the places are
// computed once behind the loop.
//
// The derivative of Σ w |L (x - μ)|² by a matrix and a vector that all points share is such: as
// written down it takes products with L for each point, and each of its numbers is linear in the
// moments Σ w, Σ w (x - μ) and Σ w (x - μ) (x - μ)ᵀ, by coefficients made of L. The moments take a
// third of the work.
//
// Expects: bind has run, tasks not opened.
// Guarantees: rule 10 of docs/semantics.md, and sums taken apart only where `distribute` says so. In
// a range task with a loop of 2 to 4,096 constant rounds that carries nothing, atomic sums of f64
// that stand directly in that loop, or in loops within it that can be written out (write_out.h), at
// 6 places or more that all iterations share, are looked at as polynomials (polynomials.h). Where
// their products, 128 at most, are fewer than all that computes the sums, by a third, each product
// is summed instead, in a buffer that has elements for each of the loop's rounds. A task in front
// clears it; one behind, a round an iteration, adds to the places what follows from the sums, unless
// the task has no iteration. One loop of a task at most, of the first four that may be such. Not in
// checked nor strict mode; not in f32, where products of more factors leave the range sooner; nor
// where a known number of iterations is too small to pay for two tasks more.
// Linear in the task and the code written out, times the products of a polynomial (64 at most).
#include "quern/ir/ir.h"

namespace quern::ir {
void factor_sums(Kernel& kernel);
}

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
// Guarantees: rule 10 of docs/semantics.md. In a range task with a loop of constant rounds that
// carries nothing, atomic sums of f64 that stand directly in that loop, or in loops within it that
// can be written out (write_out.h), at indices that all iterations share, are looked at as
// polynomials (polynomials.h). Where their products are fewer than all that computes the sums, by a
// third, each product is summed instead, in a buffer that has an element for each of the loop's
// rounds. A task in front clears it; one behind, a round an iteration, adds to the places what
// follows from the sums, unless the task has no iteration. Not in checked nor strict mode, nor
// where a known number of iterations is too small to pay for two tasks more. Linear in the code
// written out, times the products of a polynomial (64 at most), and what simplify and forward take.
#include "quern/ir/ir.h"

namespace quern::ir {
void factor_sums(Kernel& kernel);
}

#pragma once
// Small programs, each one function that returns what there is to check.
#include <quern/quern.h>

#include <cstdint>
#include <vector>

#include "examples/grids.h"

namespace examples {

/// y = a·x + y over n elements of x = i, y = 1; the sum of y.
double saxpy(const quern::Device& device, int n, float a);

/// Rounds (0 … limit) after which z² + c leaves |z| ≤ 4, for a square raster of [-1.5, 1.5]².
std::vector<int> julia(const Grid<2>& raster, float cr, float ci, int limit);

/// Solves Laplace's equation on the nodes of a unit square by Jacobi sweeps until no value changes by
/// more than `tolerance`; the boundary is u(x, y) = x² - y², which is harmonic. The solution,
/// row-major.
std::vector<double> jacobi(const Grid<2>& nodes, double tolerance);

/// Conway's Game of Life on a square torus: the board after `generations`.
std::vector<int> life(const Grid<2>& cells, std::vector<int> board, int generations);

template <class W = quern::HostW>
struct Body {
  quern::In<W, quern::lang::dvec3> x, v;
  quern::In<W, double> mass;
};
/// All-pairs gravity (G = 1), leapfrog steps of dt (Hut, Makino & McMillan 1995).
std::vector<Body<>> nbody(const quern::Device& device, const std::vector<Body<>>& bodies, double dt,
                          int steps);

}  // namespace examples

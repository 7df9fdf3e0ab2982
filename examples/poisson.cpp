#include "examples/poisson.h"

namespace examples {

namespace qn = quern;
using namespace qn::lang;

Poisson::Poisson(const Grid<2>& nodes)
    : u(nodes.field<double>()),
      f(nodes.field<double>()),
      n_(nodes.side()),
      r_(nodes.field<double>()),
      p_(nodes.field<double>()),
      q_(nodes.field<double>()),
      solve_{[this](F64 tolerance, I32 limit) {
        const double h = 1.0 / (n_ - 1), scale = 1 / (h * h);
        auto minus_laplacian = [&](const qn::Field<double, 2>& v, I32 i, I32 j) {
          return scale * (4.0 * v(i, j) - v(i - 1, j) - v(i + 1, j) - v(i, j - 1) - v(i, j + 1));
        };
        auto inner = [&] { return grid(n_ - 2, n_ - 2); };  // less (1, 1)

        // The boundary stays out of r, p and q, which are 0 there.
        Var<double> square = 0;  // of the residual r
        for (auto [a, b] : inner()) {
          auto i = a + 1, j = b + 1;
          auto r = f(i, j) - minus_laplacian(u, i, j);
          r_(i, j) = r;
          p_(i, j) = r;
          square += r * r;
        }
        Var<double> first = square;
        Var<int> iterations = 0;
        While(square > tolerance * tolerance * first && iterations < limit) {
          Var<double> slope = 0;
          for (auto [a, b] : inner()) {
            auto i = a + 1, j = b + 1;
            auto q = minus_laplacian(p_, i, j);
            q_(i, j) = q;
            slope += p_(i, j) * q;
          }
          auto step = square / slope;
          Var<double> next = 0;
          for (auto I : u) {
            u[I] = u[I] + step * p_[I];
            auto r = r_[I] - step * q_[I];
            r_[I] = r;
            next += r * r;
          }
          auto turn = next / square;
          for (auto I : p_) p_[I] = r_[I] + turn * p_[I];
          square = next;
          iterations += 1;
        }
        return result(iterations, sqrt(square / select(first > 0, first, 1.0)));
      }} {}

Poisson::Outcome Poisson::solve(double tolerance, int limit) {
  auto [iterations, residual] = solve_(tolerance, limit);
  return {iterations, residual};
}

}  // namespace examples

#include "examples/programs.h"

#include <quern/host.h>

namespace examples {

namespace qn = quern;
using namespace qn::lang;

double saxpy(const qn::Device& device, int n, float a) {
  qn::Field<float> x{device, {n}}, y{device, {n}};
  qn::Kernel start = [&] {
    for (auto i : x) {
      x[i] = cast<float>(i);
      y[i] = 1;
    }
  };
  qn::Kernel run = [&](F32 s) {
    for (auto i : y) y[i] = s * x[i] + y[i];
  };
  qn::Kernel sum = [&] {
    Var<double> total = 0.0;
    for (auto i : y) total += y[i];
    return total;
  };
  start();
  run(a);
  return sum();
}

std::vector<int> julia(const Grid<2>& raster, float cr, float ci, int limit) {
  const int n = raster.side();
  auto count = raster.field<int>();
  qn::Kernel draw = [&](F32 c_real, F32 c_imaginary, I32 rounds) {
    for (auto [i, j] : count) {
      Var<float> re = -1.5f + 3.0f * (cast<float>(j) + 0.5f) / float(n);
      Var<float> im = -1.5f + 3.0f * (cast<float>(i) + 0.5f) / float(n);
      Var<int> k = 0;
      While(k < rounds) {
        If(re * re + im * im > 16.0f) { Break(); }
        auto t = re * re - im * im + c_real;
        im = 2.0f * re * im + c_imaginary;
        re = t;
        k += 1;
      }
      count(i, j) = k;
    }
  };
  draw(cr, ci, limit);
  return qn::to_vector(count);
}

std::vector<double> jacobi(const Grid<2>& nodes, double tolerance) {
  const int n = nodes.side();
  auto u = nodes.field<double>(), v = nodes.field<double>();
  qn::Kernel boundary = [&] {
    for (auto [i, j] : u) {
      auto x = cast<double>(j) / double(n - 1), y = cast<double>(i) / double(n - 1);
      If(i == 0 || j == 0 || i == n - 1 || j == n - 1) {
        u(i, j) = x * x - y * y;
        v(i, j) = x * x - y * y;
      }
    }
  };
  qn::Kernel sweep = [&] {
    Var<double> change = 0.0;
    for (auto [i, j] : u) {
      If(i > 0 && j > 0 && i < n - 1 && j < n - 1) {
        auto mean = 0.25 * (u(i - 1, j) + u(i + 1, j) + u(i, j - 1) + u(i, j + 1));
        atomic_max(change, abs(mean - u(i, j)));
        v(i, j) = mean;
      }
    }
    return change;
  };
  boundary();
  for (double change = 2 * tolerance; change > tolerance;) {
    for (int k = 0; k < 32; k++) {
      change = sweep();
      u.swap(v);
    }
  }
  return qn::to_vector(u);
}

std::vector<int> life(const Grid<2>& cells, std::vector<int> board, int generations) {
  const int n = cells.side();
  auto a = cells.field<int>(), b = cells.field<int>();
  qn::Kernel step = [&] {
    for (auto [i, j] : a) {
      Var<int> alive = 0;
      for (int di = -1; di <= 1; di++)
        for (int dj = -1; dj <= 1; dj++)
          if (di || dj) alive += a((i + di + n) % n, (j + dj + n) % n);
      b(i, j) = select(alive == 3 || (alive == 2 && a(i, j) == 1), 1, 0);
    }
  };
  a.copy_from(board.data(), board.size());
  for (int k = 0; k < generations; k++) {
    step();
    a.swap(b);
  }
  return qn::to_vector(a);
}

std::vector<Body<>> nbody(const qn::Device& device, const std::vector<Body<>>& bodies, double dt,
                          int steps) {
  const int n = int(bodies.size());
  qn::Field<Body<>> b{device, {n}};
  b.copy_from(bodies);
  qn::Kernel kick = [&](F64 h) {
    for (auto i : b) {
      Var<dvec3> acceleration = 0;
      for (auto j : range(n)) {
        If(j != i) {
          auto d = b[j].x - b[i].x;
          auto r2 = dot(d, d);
          acceleration += b[j].mass / (r2 * sqrt(r2)) * d;
        }
      }
      b[i].v = b[i].v + h * acceleration;
    }
  };
  qn::Kernel drift = [&](F64 h) {
    for (auto i : b) b[i].x = b[i].x + h * b[i].v;
  };
  for (int k = 0; k < steps; k++) {
    kick(dt / 2);
    drift(dt);
    kick(dt / 2);
  }
  return qn::to_vector(b);
}

}  // namespace examples

#include "examples/mgpcg.h"

#include <string>

namespace examples {

namespace qn = quern;
using namespace qn::lang;

namespace {

template <class T>
Val<T> around(const qn::Field<T, 3>& v, const I32& i, const I32& j, const I32& k) {
  Val<T> x = v(i - 1, j, k) + v(i + 1, j, k);
  Val<T> y = v(i, j - 1, k) + v(i, j + 1, k);
  Val<T> z = v(i, j, k - 1) + v(i, j, k + 1);
  return x + y + z;
}

}  // namespace

qn::Tree<3> Mgpcg::box(const qn::Device& device, int n, int levels, qn::Loc loc) {
  if (n < 1 || levels < 1 || levels > 16)
    throw qn::Error(loc, "a box of " + std::to_string(n) + " elements a side with " +
                             std::to_string(levels) +
                             " levels; both must be 1 or more, levels 16 at most");
  const int margin = 1 << (levels - 1), side = n + 2 * margin, leaf = 8;
  return {device,
          {qn::pointer((side + leaf - 1) / leaf), qn::bitmasked(leaf)},
          {.shape = {side, side, side}, .offset = {-margin, -margin, -margin}},
          loc};
}

std::vector<Mgpcg::Level> Mgpcg::levels(const qn::Tree<3>& region, const Setup& setup,
                                        qn::Loc loc) {
  if (setup.levels < 1 || setup.smoothing < 1 || setup.coarsest < 1)
    throw qn::Error(loc, "levels, sweeps and sweeps on the coarsest level must be 1 or more, not " +
                             std::to_string(setup.levels) + ", " + std::to_string(setup.smoothing) +
                             ", " + std::to_string(setup.coarsest));
  std::vector<Level> made{Level(region)};
  while (int(made.size()) < setup.levels) made.emplace_back(made.back().tree.coarsen(loc));
  return made;
}

/// What the stencil reads has to be there.
void Mgpcg::expect_margin(const Level& level, size_t number, qn::Loc loc) const {
  qn::Kernel count = [&]() -> I32 {
    Var<int> at_end = 0;
    for (auto I : level.z) {
      Var<bool> inside = true;
      for (int axis = 0; axis < 3; axis++) {
        auto place = I[axis] - level.z.first(axis);
        inside = inside & (place > 0) & (place < level.z.dim(axis) - 1);
      }
      at_end += cast<int>(!inside);
    }
    return at_end;
  };
  if (int(count()) > 0)
    throw qn::Error(loc, "the region reaches the end of the tree on level " +
                             std::to_string(number) + "; Mgpcg::box makes trees with a margin");
}

/// Half a sweep: elements of one colour from those of the other.
void Mgpcg::relax(size_t level, const qn::Field<float, 3>& from, const qn::Field<float, 3>& to,
                  int colour) const {
  const qn::Field<float, 3>& b = levels_[level].b;
  const float square = float(1ull << (2 * level));  // of the spacing
  for (auto [i, j, k] : to) {
    F32 relaxed = (square * b(i, j, k) + around(from, i, j, k)) * (1.0f / 6);
    to(i, j, k) = select(((i + j + k) & 1) == colour, relaxed, from(i, j, k));
  }
}

/// The coarsest level, from 0.
void Mgpcg::relax_all(size_t level) const {
  const Level& l = levels_[level];
  for (auto I : l.z) l.z[I] = 0.0f;
  for (int first : {0, 1})
    for ([[maybe_unused]] auto sweep : serial(range(setup_.coarsest))) {
      relax(level, l.z, l.other, first);
      relax(level, l.other, l.z, 1 - first);
    }
}

/// z of the level from its b.
void Mgpcg::descend(size_t level) const {
  if (level + 1 == levels_.size()) return relax_all(level);
  const Level &fine = levels_[level], &coarse = levels_[level + 1];
  const float square = float(1ull << (2 * level));

  for (auto [i, j, k] : fine.other) {  // from 0 the first half has nothing around it
    F32 relaxed = fine.b(i, j, k) * (square / 6);
    fine.other(i, j, k) = select(((i + j + k) & 1) == 0, relaxed, 0.0f);
  }
  relax(level, fine.other, fine.z, 1);
  for ([[maybe_unused]] auto sweep : serial(range(setup_.smoothing - 1))) {
    relax(level, fine.z, fine.other, 0);
    relax(level, fine.other, fine.z, 1);
  }
  for (auto [i, j, k] : fine.other) {
    F32 applied = 6.0f * fine.z(i, j, k) - around(fine.z, i, j, k);
    fine.other(i, j, k) = fine.b(i, j, k) - applied * (1 / square);
  }
  for (auto [i, j, k] : coarse.b) {
    Var<float> sum = 0;
    for (int child = 0; child < 8; child++)
      sum += fine.other(2 * i + child / 4, 2 * j + child / 2 % 2, 2 * k + child % 2);
    coarse.b(i, j, k) = sum * 0.125f;
  }
  descend(level + 1);
  for (auto [i, j, k] : fine.z)
    fine.z(i, j, k) = fine.z(i, j, k) + coarse.z(i >> 1, j >> 1, k >> 1);
  for ([[maybe_unused]] auto sweep : serial(range(setup_.smoothing))) {
    relax(level, fine.z, fine.other, 1);
    relax(level, fine.other, fine.z, 0);
  }
}

Mgpcg::Mgpcg(const qn::Tree<3>& region, double spacing, const Setup& setup, qn::Loc loc)
    : u(region.field<double>()),
      f(region.field<double>()),
      spacing_(spacing),
      setup_(setup),
      levels_(levels(region, setup, loc)),
      r_(region.field<double>()),
      p_(region.field<double>()),
      q_(region.field<double>()),
      solve_{[this](F64 h, F64 tolerance, I32 limit) {
        const qn::Field<float, 3>&z = levels_[0].z, &b = levels_[0].b;
        Var<double> square = 0;  // of the residual r
        for (auto [i, j, k] : u) {
          F64 applied = 6.0 * u(i, j, k) - around(u, i, j, k);
          F64 r = h * h * f(i, j, k) - applied;
          r_(i, j, k) = r;
          p_(i, j, k) = 0;
          square += r * r;
        }
        Var<double> first = square;
        // Numbers around 1 for the cycle, however small f is: a factor changes no iterate.
        F64 unit = 1 / sqrt(select(first > 0, first, 1.0));
        for (auto I : b) b[I] = cast<float>(unit * r_[I]);
        Var<double> product = 1;  // of r and z
        Var<int> iterations = 0;
        While(square > tolerance * tolerance * first && iterations < limit) {
          descend(0);
          Var<double> next = 0;
          for (auto I : z) next += r_[I] * cast<double>(z[I]);
          F64 turn = next / product;  // p is 0 in the beginning
          for (auto I : p_) p_[I] = cast<double>(z[I]) + turn * p_[I];
          Var<double> slope = 0;
          for (auto [i, j, k] : q_) {
            F64 q = 6.0 * p_(i, j, k) - around(p_, i, j, k);
            q_(i, j, k) = q;
            slope += p_(i, j, k) * q;
          }
          F64 step = next / slope;
          Var<double> left = 0;
          for (auto I : u) {
            u[I] = u[I] + step * p_[I];
            F64 r = r_[I] - step * q_[I];
            r_[I] = r;
            b[I] = cast<float>(unit * r);
            left += r * r;
          }
          product = next;
          square = left;
          iterations += 1;
        }
        return result(iterations, sqrt(square) * unit);
      }},
      cycle_{[this] { descend(0); }},
      smooth_{[this] {
        relax(0, levels_[0].z, levels_[0].other, 0);
        relax(0, levels_[0].other, levels_[0].z, 1);
      }} {
  for (size_t k = 0; k < levels_.size(); k++) expect_margin(levels_[k], k, loc);
}

Mgpcg::Outcome Mgpcg::solve(double tolerance, int limit) {
  auto [iterations, residual] = solve_(spacing_, tolerance, limit);
  return {iterations, residual};
}

}  // namespace examples

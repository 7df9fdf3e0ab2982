#include "examples/levelset.h"

#include <array>
#include <cmath>
#include <string>

namespace examples {

namespace qn = quern;
using namespace qn::lang;

namespace {

constexpr int margin = 8;  ///< of the tree around the box: as far as stencils reach, and more

qn::Tree<3> make_tree(const qn::Device& device, int n, int width, qn::Loc loc) {
  if (n < 8 || width < 4)
    throw qn::Error(loc, "a level set in " + std::to_string(n) + "^3 elements with a band of " +
                             std::to_string(width) + "; there must be 8 or more, and 4 or more");
  const int side = n + 2 * margin, leaf = 8;
  return {device,
          {qn::pointer((side + leaf - 1) / leaf), qn::bitmasked(leaf)},
          {.shape = {side, side, side}, .offset = {-margin, -margin, -margin}},
          loc};
}

IVec3 step(const IVec3& at, int axis, int by) {
  return at + ivec3(axis == 0 ? by : 0, axis == 1 ? by : 0, axis == 2 ? by : 0);
}
Vec3 position(const IVec3& at) { return cast<float>(at); }
F32 sign_of(const F32& v) { return select(v < 0, -1.0f, 1.0f); }

/// Of two numbers the one nearer to 0; 0 where their signs differ.
F32 smaller(const F32& a, const F32& b) {
  return select(a * b > 0, select(abs(a) < abs(b), a, b), 0.0f);
}

F32 square(const F32& v) { return v * v; }

/// A derivative from five differences, the middle one on its upwind side.
F32 weno(const std::array<F32, 5>& d) {
  F32 low = (2 * d[0] - 7 * d[1] + 11 * d[2]) * (1.0f / 6);
  F32 middle = (5 * d[2] - d[1] + 2 * d[3]) * (1.0f / 6);
  F32 high = (2 * d[2] + 5 * d[3] - d[4]) * (1.0f / 6);
  F32 s0 = 13.0f / 12 * square(d[0] - 2 * d[1] + d[2]) + 0.25f * square(d[0] - 4 * d[1] + 3 * d[2]);
  F32 s1 = 13.0f / 12 * square(d[1] - 2 * d[2] + d[3]) + 0.25f * square(d[1] - d[3]);
  F32 s2 = 13.0f / 12 * square(d[2] - 2 * d[3] + d[4]) + 0.25f * square(3 * d[2] - 4 * d[3] + d[4]);
  const float e = 1e-6f;
  F32 a0 = 0.1f / square(s0 + e);
  F32 a1 = 0.6f / square(s1 + e);
  F32 a2 = 0.3f / square(s2 + e);
  return (a0 * low + a1 * middle + a2 * high) / (a0 + a1 + a2);
}

}  // namespace

/// A neighbour's value; of one outside of the band one that lies far on this side of the surface.
F32 LevelSet::beside(const F32& v, const F32& here) const {
  return select(v == unknown, sign_of(here) * width_, v);
}

/// phi's differences to the neighbours along an axis; where one is unknown, it is the other.
LevelSet::Differences LevelSet::differences(const IVec3& at, int axis) const {
  F32 here = phi[at], before = phi[step(at, axis, -1)], behind = phi[step(at, axis, 1)];
  B1 starts = before == unknown, ends = behind == unknown;
  F32 below = select(starts, 0.0f, here - before);
  F32 above = select(ends, 0.0f, behind - here);
  B1 turns = ((before < 0) != (here < 0)) & !starts;
  B1 turns_behind = ((behind < 0) != (here < 0)) & !ends;
  return {select(starts, above, below), select(ends, below, above), turns | turns_behind};
}

/// Distances of the elements that have the surface between them and a neighbour: phi over the length
/// of its gradient, than which no difference to a neighbour is greater.
void LevelSet::aim() const {
  for (auto [i, j, k] : target_) {
    Var<bool> crosses = false;
    Var<float> slope = 0, steepest = 1e-6f;
    for (int axis = 0; axis < 3; axis++) {
      Differences d = differences(vec(i, j, k), axis);
      crosses = crosses | d.crosses;
      slope += square(0.5f * (d.below + d.above));
      steepest = max(steepest, max(abs(d.below), abs(d.above)));
    }
    F32 here = phi(i, j, k);
    F32 length = max(sqrt(slope), steepest);
    target_(i, j, k) = select(crosses, here / length, sign_of(here) * unknown);
  }
}

/// Half a second of φ_t = sign (1 - |∇φ|) at an element; beside the surface the distance at once.
F32 LevelSet::relaxed(const qn::Field<float, 3>& from, const IVec3& at) const {
  F32 here = from[at], target = target_[at];
  F32 side = sign_of(target);
  Var<float> slope = 0;
  for (int axis = 0; axis < 3; axis++) {
    auto around = [&](int by) { return beside(from[step(at, axis, by)], target); };
    F32 before = around(-1), behind = around(1);
    F32 bend = before - 2 * here + behind;
    F32 bend_before = around(-2) - 2 * before + here;
    F32 bend_behind = here - 2 * behind + around(2);
    F32 from_below = here - before + 0.5f * smaller(bend_before, bend);
    F32 from_above = behind - here - 0.5f * smaller(bend_behind, bend);
    slope += square(max(max(side * from_below, -side * from_above), 0.0f));
  }
  F32 later = here - 0.5f * side * (sqrt(slope) - 1);
  return select(abs(target) == unknown, later, target);
}

/// φ_t = -v · ∇φ, and less of it towards the end of the band.
F32 LevelSet::change(const qn::Field<float, 3>& of, const IVec3& at) const {
  F32 here = of[at];
  Vec3 v = velocity_(position(at));
  Var<float> sum = 0;
  for (int axis = 0; axis < 3; axis++) {
    std::array<F32, 7> around = {
        beside(of[step(at, axis, -3)], here), beside(of[step(at, axis, -2)], here),
        beside(of[step(at, axis, -1)], here), here,
        beside(of[step(at, axis, 1)], here),  beside(of[step(at, axis, 2)], here),
        beside(of[step(at, axis, 3)], here)};
    auto difference = [&](int k) {  // from below, or from above for what moves downwards
      F32 from_below = around[size_t(k + 1)] - around[size_t(k)];
      F32 from_above = around[size_t(6 - k)] - around[size_t(5 - k)];
      return select(v[axis] > 0, from_below, from_above);
    };
    sum +=
        v[axis] * weno({difference(0), difference(1), difference(2), difference(3), difference(4)});
  }
  // From 1 at half the width to 0 at all of it, smoothly.
  F32 out = clamp(2 * abs(here) / width_ - 1, 0.0f, 1.0f);
  return -sum * square(1 - out) * (1 + 2 * out);
}

LevelSet::LevelSet(const qn::Device& device, int n, int width, const Velocity& velocity,
                   qn::Loc loc)
    : tree(make_tree(device, n, width, loc)),
      phi(tree.field<float>(unknown)),
      n_(n),
      width_(float(width)),
      velocity_(velocity),
      next_(tree.field<float>(unknown)),
      other_(tree.field<float>(unknown)),
      target_(tree.field<float>(unknown)),
      redistance_{[this](I32 rounds) {
        aim();
        for ([[maybe_unused]] auto round : serial(range(rounds))) {
          for (auto [i, j, k] : next_) next_(i, j, k) = relaxed(phi, vec(i, j, k));
          for (auto [i, j, k] : other_) {
            F32 mean = 0.5f * (phi(i, j, k) + relaxed(next_, vec(i, j, k)));
            other_(i, j, k) = select(abs(target_(i, j, k)) == unknown, mean, target_(i, j, k));
          }
          for (auto I : phi) phi[I] = other_[I];
        }
      }},
      move_{[this](F32 dt) {
        for (auto [i, j, k] : next_) next_(i, j, k) = phi(i, j, k) + dt * change(phi, vec(i, j, k));
        for (auto [i, j, k] : other_) {
          F32 twice = next_(i, j, k) + dt * change(next_, vec(i, j, k));
          other_(i, j, k) = 0.75f * phi(i, j, k) + 0.25f * twice;
        }
        for (auto [i, j, k] : phi) {
          F32 last = other_(i, j, k) + dt * change(other_, vec(i, j, k));
          phi(i, j, k) = (phi(i, j, k) + 2 * last) * (1.0f / 3);
        }
      }},
      widen_{[this] {
        // What is new lies an element further away than its nearest neighbour.
        for (auto [i, j, k] : next_) {
          IVec3 at = vec(i, j, k);
          Var<float> nearest = phi(i, j, k);
          for (int axis = 0; axis < 3; axis++)
            for (int by : {-1, 1}) {
              F32 v = phi[step(at, axis, by)];
              nearest = select(abs(v) < abs(nearest), v, nearest);
            }
          F32 beyond = nearest + sign_of(nearest);
          next_(i, j, k) = select(phi(i, j, k) == unknown, beyond, phi(i, j, k));
        }
        for (auto I : phi) phi[I] = next_[I];
      }},
      trim_{[this] {
        for (auto [i, j, k] : phi) {
          B1 is_out = (min(i, min(j, k)) < 0) | (max(i, max(j, k)) >= n_);
          If(is_out | (abs(phi(i, j, k)) >= width_)) { deactivate(phi, i, j, k); }
        }
      }},
      measure_{[this] {
        const float reach = 1.5f, pi = 3.14159265f;
        Var<double> area = 0, volume = 0;
        for (auto [i, j, k] : phi) {
          F32 here = phi(i, j, k);
          If(abs(here) < reach) {
            IVec3 at = vec(i, j, k);
            Vec3 from_middle = position(at) - 0.5f * float(n_);
            F32 delta = (1 + cos(pi / reach * here)) * (0.5f / reach);
            Var<float> along = 0, slope = 0;
            for (int axis = 0; axis < 3; axis++) {
              Differences d = differences(at, axis);
              F32 mean = 0.5f * (d.below + d.above);
              along += mean * from_middle[axis];
              slope += mean * mean;
            }
            area += cast<double>(delta * sqrt(slope));
            volume += cast<double>(delta * along) / 3.0;
          }
        }
        return result(area, volume);
      }} {}

void LevelSet::start(const Value& value) {
  qn::Kernel mark = [&] {
    for (auto [i, j, k] : grid(n_, n_, n_)) {
      IVec3 at = vec(i, j, k);
      F32 here = value(position(at));
      Var<bool> crosses = false;
      for (int axis = 0; axis < 3; axis++)
        for (int by : {-1, 1})
          crosses = crosses | ((value(position(step(at, axis, by))) < 0) != (here < 0));
      If(crosses) { activate(phi, i, j, k); }
    }
  };
  qn::Kernel fill = [&] {
    for (auto [i, j, k] : phi) {
      phi(i, j, k) = value(position(vec(i, j, k)));
      If(min(i, min(j, k)) < 0 || max(i, max(j, k)) >= n_) { deactivate(phi, i, j, k); }
    }
  };
  tree.clear();
  mark();
  tree.dilate(int(width_), qn::Neighbours::vertices);
  fill();
}

void LevelSet::advance(float seconds, float fastest) {
  const int steps = std::max(1, int(std::ceil(2 * seconds * fastest)));
  const int often = int(width_);  // until the surface gets to where phi moves more slowly
  for (int k = 1; k <= steps; k++) {
    move_(seconds / float(steps));
    tree.dilate();
    widen_();
    if (k % often != 0 && k != steps) continue;  // not each time: it moves the surface a little
    redistance(often / 2 + 1);
    trim();
  }
}

LevelSet::Measures LevelSet::measure() {
  auto [area, volume] = measure_();
  return {area, volume};
}

}  // namespace examples

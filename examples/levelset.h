#pragma once
// Surfaces as level sets in a narrow band of elements, kept on a tree.
#include <quern/sparse.h>

#include <functional>

namespace examples {

/// The surface is the zero of `phi`, the signed distance from it, which is known in a band of elements
/// around it and nowhere else; lengths are in elements, element (i, j, k) is at (i, j, k). Distances
/// are made by iteration (Sussman, Smereka & Osher, "A level set approach for computing solutions to
/// incompressible two-phase flow", JCP 1994) with Godunov's upwind scheme, ENO differences of second
/// order and Heun's steps, but beside the surface at once, so that it stays where it is (Russo &
/// Smereka, "A remark on computing distance functions", JCP 2000). Surfaces move by the fifth-order WENO scheme (Jiang & Peng, SISC 2000) with the
/// Runge-Kutta method of third order (Shu & Osher, JCP 1988), more slowly towards the band's end, and
/// the band follows (Peng, Merriman, Osher, Zhao & Kang, "A PDE-based fast local level set method",
/// JCP 1999).
class LevelSet {
 public:
  using Value = std::function<quern::lang::F32(quern::lang::Vec3)>;  ///< recorded
  using Velocity = std::function<quern::lang::Vec3(quern::lang::Vec3)>;
  static constexpr float unknown = 1e9f;  ///< outside of the band

  /// For surfaces in 0 ≤ x, y, z < n, of which the rest is cut off; the band reaches `width` elements
  /// from them. They move with `velocity`, in elements a second.
  /// Throws quern::Error for n below 8 and a width of less than 4.
  LevelSet(const quern::Device& device, int n, int width, const Velocity& velocity,
           quern::Loc loc = quern::Loc::here());

  quern::Tree<3> tree;
  quern::Field<float, 3> phi;

  /// The surface where `value` is zero: negative inside, no distance otherwise. `phi` is `value` then,
  /// in a band that is `width` steps to neighbours wide.
  void start(const Value& value);
  /// Makes phi the distance from its zero, in rounds that reach half an element further each.
  void redistance(int rounds) { redistance_(rounds); }
  /// Ends what is as far away as the width, or further.
  void trim() { trim_(); }
  /// In steps that move nothing further than half an element, if nothing is faster than `fastest`.
  void advance(float seconds, float fastest);

  struct Measures {
    double area, volume;  ///< of the surface; of what it encloses
  };
  /// By integrals over the band, of a delta that is spread over three elements (Peng et al.), and of it
  /// times x · ∇φ / 3. Waits.
  Measures measure();

 private:
  struct Differences {
    quern::lang::F32 below, above;
    quern::lang::B1 crosses;  ///< is the surface between the element and one of the neighbours?
  };
  Differences differences(const quern::lang::IVec3& at, int axis) const;
  quern::lang::F32 beside(const quern::lang::F32& v, const quern::lang::F32& here) const;
  void aim() const;
  quern::lang::F32 relaxed(const quern::Field<float, 3>& from, const quern::lang::IVec3& at) const;
  quern::lang::F32 change(const quern::Field<float, 3>& of, const quern::lang::IVec3& at) const;

  int n_;
  float width_;
  Velocity velocity_;
  quern::Field<float, 3> next_, other_;
  quern::Field<float, 3> target_;  ///< distances beside the surface; elsewhere ± unknown
  quern::Kernel<void(quern::lang::I32)> redistance_;
  quern::Kernel<void(quern::lang::F32)> move_;
  quern::Kernel<void()> widen_, trim_;
  quern::Kernel<quern::Results<double, double>()> measure_;
};

}  // namespace examples

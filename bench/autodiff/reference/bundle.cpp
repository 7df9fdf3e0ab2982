// Bundle adjustment, with its gradient. Eight observations are side by side in vectors.
#include <algorithm>
#include <cmath>
#include <vector>

#include "bench/autodiff/reference.h"
#include "bench/wide.h"

namespace bench::reference {

namespace {

using Lanes = Wide<double>;
constexpr int lanes = int(lanes_of<double>);

template <class T>
struct Vector {
  T x, y, z;
  friend Vector operator+(Vector a, Vector b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
  friend Vector operator-(Vector a, Vector b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }
  friend Vector operator*(T s, Vector a) { return {s * a.x, s * a.y, s * a.z}; }
};
template <class T>
T dot(Vector<T> a, Vector<T> b) {
  return a.x * b.x + a.y * b.y + a.z * b.z;
}
template <class T>
Vector<T> cross(Vector<T> a, Vector<T> b) {
  return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}
template <class T>
Vector<T> load_vector(const T* from) {
  return {from[0], from[1], from[2]};
}
template <class T>
void store_vector(T* to, Vector<T> a) {
  to[0] = a.x;
  to[1] = a.y;
  to[2] = a.z;
}

/// A rotation: the cosine of half its angle, and its axis, as long as the sine.
template <class T>
struct Quaternion {
  T w;
  Vector<T> q;
  Vector<T> turn(Vector<T> a) const {
    const Vector<T> twice = cross(q, a + a);
    return a + w * twice + cross(q, twice);
  }
  Vector<T> turn_back(Vector<T> a) const {
    const Vector<T> twice = cross(a + a, q);
    return a + w * twice + cross(twice, q);
  }
};
template <class T>
Quaternion<T> load_quaternion(const T* from) {
  return {from[0], load_vector(from + 1)};
}

/// A rotation by an axis as long as the angle.
struct Rotation {
  double angle, c, s;
  Vector<double> axis;

  explicit Rotation(const double* at) {
    const Vector<double> turn = load_vector(at);
    angle = std::sqrt(dot(turn, turn));
    c = std::cos(angle);
    s = std::sin(angle);
    axis = 1 / angle * turn;
  }
  void store_quaternion(double* to) const {
    to[0] = std::cos(angle / 2);
    store_vector(to + 1, std::sin(angle / 2) * axis);
  }
  /// From y × the adjoint of y, where y was rotated, to the adjoint of the rotation.
  Vector<double> back(Vector<double> torque) const {
    return 1 / angle * (s * torque - (1 - c) * cross(axis, torque)) +
           (1 - s / angle) * dot(axis, torque) * axis;
  }
};

/// Of all cameras what does not depend on observations: the quaternion, then what is in `at` behind
/// the rotation.
constexpr int of_turn = 4, prepared = of_turn + Bundle::of_camera - 3;
std::vector<double> prepare(const Bundle& in, const double* at) {
  std::vector<double> all(size_t(in.cameras * prepared));
  for (int c = 0; c < in.cameras; c++) {
    const double* camera = at + c * Bundle::of_camera;
    double* to = &all[size_t(c * prepared)];
    Rotation(camera).store_quaternion(to);
    std::copy(camera + 3, camera + Bundle::of_camera, to + of_turn);
  }
  return all;
}

Lanes gather(const double* const (&row)[lanes], int k) {
  return Lanes{row[0][k], row[1][k], row[2][k], row[3][k],
               row[4][k], row[5][k], row[6][k], row[7][k]};
}

/// What the cameras see in eight observations from `first` on; the one before `end` is repeated.
struct Views {
  Quaternion<Lanes> turn;
  Lanes focal, bend, bend_more;
  Vector<Lanes> y;  ///< the point in the camera's directions
  Lanes over_z, u, v, square, stretch, off_u, off_v, weight;

  Views(const Bundle& in, const double* at, const double* cameras, int first, int end) {
    const double *of_camera[lanes], *of_point[lanes], *of_seen[lanes], *of_weight[lanes];
    for (int l = 0; l < lanes; l++) {
      const int o = std::min(first + l, end - 1);
      of_camera[l] = cameras + in.camera[o] * prepared;
      of_point[l] = at + in.places() + in.point[o] * 3;
      of_seen[l] = in.seen + 2 * o;
      of_weight[l] = at + in.weights() + o;
    }
    Lanes camera[prepared], point[3], seen[2];
    for (int k = 0; k < prepared; k++) camera[k] = gather(of_camera, k);
    for (int k = 0; k < 3; k++) point[k] = gather(of_point, k);
    for (int k = 0; k < 2; k++) seen[k] = gather(of_seen, k);
    weight = gather(of_weight, 0);
    turn = load_quaternion(camera);
    const Lanes* rest = camera + of_turn;
    focal = rest[3];
    bend = rest[6];
    bend_more = rest[7];
    y = turn.turn(load_vector(point) - load_vector(rest));
    over_z = 1.0 / y.z;
    u = y.x * over_z;
    v = y.y * over_z;
    square = u * u + v * v;
    stretch = 1.0 + bend * square + bend_more * square * square;
    off_u = u * stretch * focal + rest[4] - seen[0];
    off_v = v * stretch * focal + rest[5] - seen[1];
  }

  Lanes squares() const { return off_u * off_u + off_v * off_v; }
  Lanes value() const {
    const Lanes off = 1.0 - weight * weight;
    return 0.5 * (weight * weight * squares() + off * off);
  }

  /// Adjoints of camera, point and weight. In place of that of the rotation there is still y × the
  /// adjoint of y, and of that of the camera's place the adjoint of y.
  void back(Lanes* of_camera, Lanes* of_point, Lanes& of_weight) const {
    const Lanes of_u = weight * weight * off_u, of_v = weight * weight * off_v;
    const Lanes along = u * of_u + v * of_v, of_stretch = focal * along;
    const Lanes of_square = (bend + 2.0 * bend_more * square) * of_stretch;
    const Lanes in_u = focal * stretch * of_u + 2.0 * u * of_square;
    const Lanes in_v = focal * stretch * of_v + 2.0 * v * of_square;
    const Vector<Lanes> of_y = over_z * Vector<Lanes>{in_u, in_v, -(u * in_u + v * in_v)};
    store_vector(of_camera, cross(y, of_y));
    store_vector(of_camera + 3, of_y);
    of_camera[6] = stretch * along;
    of_camera[7] = of_u;
    of_camera[8] = of_v;
    of_camera[9] = square * of_stretch;
    of_camera[10] = square * square * of_stretch;
    store_vector(of_point, turn.turn_back(of_y));
    of_weight = weight * squares() - 2.0 * weight * (1.0 - weight * weight);
  }
};

}  // namespace

double bundle(const Bundle& in, const double* at) {
  const std::vector<double> cameras = prepare(in, at);
  double value = 0;
#pragma omp parallel reduction(+ : value)
  {
    Lanes sum = {};
#pragma omp for
    for (int first = 0; first < in.observations; first += lanes) {
      Lanes all = Views(in, at, cameras.data(), first, in.observations).value();
      for (int l = in.observations - first; l < lanes; l++) all[l] = 0;
      sum += all;
    }
    for (int l = 0; l < lanes; l++) value += sum[l];
  }
  return value;
}

// By points, so that each has one thread that adds to its adjoint. Cameras are few: threads have
// sums of their own of these, which the reduction puts in place of `gradient`.
double bundle_gradient(const Bundle& in, const double* at, double* gradient) {
  constexpr int points = 256;
  const std::vector<double> cameras = prepare(in, at);
  double value = 0;
  const int of_cameras = in.places();
  double *const of_points = gradient + of_cameras, *const of_weights = gradient + in.weights();
  std::fill(gradient, gradient + of_cameras, 0.0);
#pragma omp parallel for reduction(+ : value, gradient[ : of_cameras])
  for (int from = 0; from < in.points; from += points) {
    const int to = std::min(from + points, in.points), end = in.first[to];
    std::fill(of_points + 3 * from, of_points + 3 * to, 0.0);
    for (int first = in.first[from]; first < end; first += lanes) {
      const Views views(in, at, cameras.data(), first, end);
      const Lanes all = views.value();
      Lanes by_camera[Bundle::of_camera], by_point[3], by_weight;
      views.back(by_camera, by_point, by_weight);
      for (int l = 0; l < std::min(lanes, end - first); l++) {
        const int o = first + l;
        double *of_camera = gradient + in.camera[o] * Bundle::of_camera,
               *of_point = of_points + 3 * in.point[o];
        value += all[l];
        for (int k = 0; k < Bundle::of_camera; k++) of_camera[k] += by_camera[k][l];
        for (int k = 0; k < 3; k++) of_point[k] += by_point[k][l];
        of_weights[o] = by_weight[l];
      }
    }
  }
  for (int c = 0; c < in.cameras; c++) {
    double* of_camera = gradient + c * Bundle::of_camera;
    store_vector(of_camera, Rotation(at + c * Bundle::of_camera).back(load_vector(of_camera)));
    const Quaternion<double> turn = load_quaternion(&cameras[size_t(c * prepared)]);
    store_vector(of_camera + 3, -1.0 * turn.turn_back(load_vector(of_camera + 3)));
  }
  return value;
}

}  // namespace bench::reference

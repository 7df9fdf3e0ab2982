// Bundle adjustment, with its gradient.
#include <algorithm>
#include <cmath>

#include "bench/autodiff/reference.h"

namespace bench::reference {

namespace {

struct Vector {
  double x, y, z;
};
Vector operator+(Vector a, Vector b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
Vector operator-(Vector a, Vector b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }
Vector operator*(double s, Vector a) { return {s * a.x, s * a.y, s * a.z}; }
double dot(Vector a, Vector b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
Vector cross(Vector a, Vector b) {
  return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}
Vector load(const double* from) { return {from[0], from[1], from[2]}; }
void add(double* to, Vector a) {
  to[0] += a.x;
  to[1] += a.y;
  to[2] += a.z;
}

/// What a camera sees of a point, with all that its derivatives want.
struct View {
  double angle, c, s, along, u, v, square, stretch, off_u, off_v;
  Vector axis, x, y;

  View(const double* camera, const double* point, const double* seen) {
    const Vector turn = load(camera);
    angle = std::sqrt(dot(turn, turn));
    c = std::cos(angle);
    s = std::sin(angle);
    axis = 1 / angle * turn;
    x = load(point) - load(camera + 3);
    along = dot(axis, x);
    y = c * x + s * cross(axis, x) + (1 - c) * along * axis;
    u = y.x / y.z;
    v = y.y / y.z;
    square = u * u + v * v;
    stretch = 1 + camera[9] * square + camera[10] * square * square;
    off_u = u * stretch * camera[6] + camera[7] - seen[0];
    off_v = v * stretch * camera[6] + camera[8] - seen[1];
  }

  /// Of the adjoints of off_u and off_v: adds to that of the camera, yields that of the point.
  Vector back(const double* camera, double of_u, double of_v, double* of_camera) const {
    of_camera[7] += of_u;
    of_camera[8] += of_v;
    of_camera[6] += stretch * (u * of_u + v * of_v);
    const double of_stretch = camera[6] * (u * of_u + v * of_v);
    of_camera[9] += square * of_stretch;
    of_camera[10] += square * square * of_stretch;
    const double of_square = (camera[9] + 2 * camera[10] * square) * of_stretch;
    const double in_u = camera[6] * stretch * of_u + 2 * u * of_square;
    const double in_v = camera[6] * stretch * of_v + 2 * v * of_square;
    const Vector of_y = {in_u / y.z, in_v / y.z, -(u * in_u + v * in_v) / y.z};
    const double of_along = dot(axis, of_y);
    const Vector of_x = c * of_y + s * cross(of_y, axis) + (1 - c) * of_along * axis;
    const Vector of_axis = s * cross(x, of_y) + (1 - c) * (along * of_y + of_along * x);
    const double of_c = dot(x, of_y) - along * of_along, of_s = dot(cross(axis, x), of_y);
    add(of_camera,
        1 / angle * (of_axis - dot(axis, of_axis) * axis) + (c * of_s - s * of_c) * axis);
    add(of_camera + 3, -1 * of_x);
    return of_x;
  }
};

}  // namespace

double bundle(const Bundle& in, const double* at) {
  double value = 0;
#pragma omp parallel for reduction(+ : value)
  for (int o = 0; o < in.observations; o++) {
    const double* camera = at + in.camera[o] * Bundle::of_camera;
    const View view(camera, at + in.places() + 3 * in.point[o], in.seen + 2 * o);
    const double weight = at[in.weights() + o], off = 1 - weight * weight;
    value +=
        0.5 * (weight * weight * (view.off_u * view.off_u + view.off_v * view.off_v) + off * off);
  }
  return value;
}

// By points, so that each has one thread that adds to its adjoint. Cameras are few: threads have sums of
// their own of these, which the reduction puts in place of `gradient`.
double bundle_gradient(const Bundle& in, const double* at, double* gradient) {
  double value = 0;
  const int of_cameras = in.places();
  double* const of_others = gradient;
  std::fill(gradient, gradient + of_cameras, 0.0);
#pragma omp parallel for reduction(+ : value, gradient[ : of_cameras])
  for (int p = 0; p < in.points; p++) {
    const int place = of_cameras + 3 * p;
    Vector of_point = {0, 0, 0};
    for (int o = in.first[p]; o < in.first[p + 1]; o++) {
      const int first = in.camera[o] * Bundle::of_camera;
      const View view(at + first, at + place, in.seen + 2 * o);
      const double weight = at[in.weights() + o], off = 1 - weight * weight;
      const double squares = view.off_u * view.off_u + view.off_v * view.off_v;
      value += 0.5 * (weight * weight * squares + off * off);
      of_others[in.weights() + o] = weight * squares - 2 * weight * off;
      of_point = of_point + view.back(at + first, weight * weight * view.off_u,
                                      weight * weight * view.off_v, gradient + first);
    }
    of_others[place] = of_point.x;
    of_others[place + 1] = of_point.y;
    of_others[place + 2] = of_point.z;
  }
  return value;
}

}  // namespace bench::reference

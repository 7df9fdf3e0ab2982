// Bundle adjustment.
#include <quern/autodiff.h>
#include <quern/host.h>

#include <memory>
#include <vector>

#include "bench/autodiff/problem.h"
#include "bench/autodiff/reference.h"

namespace bench {
namespace qn = quern;
using namespace qn::lang;

namespace {

/// Everything that a Bundle points at. Observations are in the order of points, cameras in turns.
struct Scene {
  std::vector<int> camera, point, first;
  std::vector<double> seen;
  Bundle bundle;

  Scene(int cameras, int points, int observations)
      : seen(even_numbers(size_t(2 * observations), -0.5, 0.5, 9)) {
    for (int o = 0; o < observations; o++) {
      camera.push_back(o % cameras);
      point.push_back(int(int64_t(o) * points / observations));
      while (int(first.size()) <= point.back()) first.push_back(o);
    }
    first.push_back(observations);
    bundle = {cameras,      points,       observations, camera.data(),
              point.data(), first.data(), seen.data()};
  }

  /// Cameras before points that are some units away.
  std::vector<double> start() const {
    std::vector<double> at = even_numbers(size_t(bundle.size()), -0.1, 0.1, 10);
    for (int c = 0; c < bundle.cameras; c++) {
      double* camera_of = &at[size_t(c * Bundle::of_camera)];
      camera_of[0] += 0.3;  // turn
      camera_of[5] -= 5;    // place
      camera_of[6] += 1.5;  // focal length
    }
    for (int o = 0; o < bundle.observations; o++) at[size_t(bundle.weights() + o)] += 1;
    return at;
  }
};

}  // namespace

Problem bundle(const qn::Device& device, Size size) {
  const auto scene = size == Size::usual ? std::make_shared<Scene>(21, 11315, 36455)
                                         : std::make_shared<Scene>(3, 10, 25);
  const Bundle in = scene->bundle;
  Problem p{.name = "ba",
            .size = std::to_string(in.cameras) + ", " + std::to_string(in.points) + ", " +
                    std::to_string(in.observations),
            .flops = 80.0 * in.observations,
            .at = scene->start()};
  using Vectors = qn::Field<qn::Vec<double, 3>>;
  using Pairs = qn::Field<qn::Vec<double, 2>>;
  qn::Field<double, 2> cameras{device, {in.cameras, Bundle::of_camera}};
  Vectors points{device, {in.points}};
  qn::Field<double> weights{device, {in.observations}};
  qn::Field<int> camera{device, {in.observations}}, point{device, {in.observations}};
  Pairs seen{device, {in.observations}};
  cameras.copy_from(p.at.data(), in.places());
  std::vector<qn::Vec<double, 3>> places;
  for (int k = in.places(); k < in.weights(); k += 3)
    places.push_back({p.at[size_t(k)], p.at[size_t(k + 1)], p.at[size_t(k + 2)]});
  points.copy_from(places);
  weights.copy_from(p.at.data() + in.weights(), in.observations);
  camera.copy_from(scene->camera);
  point.copy_from(scene->point);
  std::vector<qn::Vec<double, 2>> sights;
  for (int o = 0; o < in.observations; o++) sights.push_back({in.seen[2 * o], in.seen[2 * o + 1]});
  seen.copy_from(sights);

  using Vector = Val<qn::Vec<double, 3>>;
  using Pair = Val<qn::Vec<double, 2>>;
  qn::Kernel f = [&]() -> F64 {
    Var<double> sum = 0;
    for (auto o : seen) {
      I32 c = camera[o];
      Vector turn = vec(cameras(c, 0), cameras(c, 1), cameras(c, 2));
      Vector x = points[point[o]] - vec(cameras(c, 3), cameras(c, 4), cameras(c, 5));
      F64 angle = length(turn);
      Vector axis = turn / angle;
      Vector y =
          cos(angle) * x + sin(angle) * cross(axis, x) + (1 - cos(angle)) * dot(axis, x) * axis;
      Pair flat = vec(y.x / y.z, y.y / y.z);
      F64 square = dot(flat, flat);
      F64 stretch = 1 + cameras(c, 9) * square + cameras(c, 10) * square * square;
      Pair off = weights[o] *
                 (stretch * cameras(c, 6) * flat + vec(cameras(c, 7), cameras(c, 8)) - seen[o]);
      F64 excess = 1 - weights[o] * weights[o];
      sum += 0.5 * (dot(off, off) + excess * excess);
    }
    return sum;
  };
  auto both = qn::value_and_grad(f, qn::wrt(cameras, points, weights));
  p.value = [=] { return double(f()); };
  p.value_and_gradient = [=] { return both().value(); };
  p.gradient = [=] {
    std::vector<double> all = qn::to_vector(cameras.grad());
    for (const auto& v : qn::to_vector(points.grad())) all.insert(all.end(), {v.x, v.y, v.z});
    const std::vector<double> of_weights = qn::to_vector(weights.grad());
    all.insert(all.end(), of_weights.begin(), of_weights.end());
    return all;
  };
  p.by_hand = [=, keep = scene](const double* at) { return reference::bundle(in, at); };
  p.gradient_by_hand = [=, keep = scene](const double* at, double* gradient) {
    return reference::bundle_gradient(in, at, gradient);
  };
  p.adolc = adolc::bundle(in, p.at);
  p.codipack = codipack::bundle(in);
  return p;
}

}  // namespace bench

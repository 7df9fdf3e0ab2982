// Least squares, log-sum-exp and k-means.
#include <quern/algorithms.h>
#include <quern/autodiff.h>
#include <quern/host.h>

#include <cmath>
#include <memory>

#include "bench/autodiff/problem.h"
#include "bench/autodiff/reference.h"

namespace bench {
namespace qn = quern;
using namespace qn::lang;

Problem llsq(const qn::Device& device, Size size) {
  const Llsq in = size == Size::usual ? Llsq{16392, 128} : Llsq{100, 7};
  Problem p{.name = "llsq",
            .size = std::to_string(in.points) + " x " + std::to_string(in.coefficients),
            .flops = 4.0 * in.points * in.coefficients,
            .at = even_numbers(size_t(in.coefficients), 0, 1, 1)};
  qn::Field<double> x{device, {in.coefficients}};
  x.copy_from(p.at);
  qn::Kernel f = [&]() -> F64 {
    Var<double> sum = 0;
    for (auto i : range(in.points)) {
      F64 t = -1 + cast<double>(i) * (2.0 / (in.points - 1));
      Var<double> off = select(t < 0, -1.0, select(t > 0, 1.0, F64(0.0)));
      Var<double> power = 1;
      for (auto j : range(in.coefficients)) {
        off -= x[j] * power;
        power *= t;
      }
      sum += 0.5 * off * off;
    }
    return sum;
  };
  auto both = qn::value_and_grad(f, qn::wrt(x));
  p.value = [=] { return double(f()); };
  p.value_and_gradient = [=] { return both().value(); };
  p.gradient = [=] { return qn::to_vector(x.grad()); };
  p.by_hand = [=](const double* at) { return reference::llsq(in, at); };
  p.gradient_by_hand = [=](const double* at, double* gradient) {
    return reference::llsq_gradient(in, at, gradient);
  };
  p.adolc = adolc::llsq(in, p.at);
  p.codipack = codipack::llsq(in);
  return p;
}

Problem log_sum_exp(const qn::Device& device, Size size) {
  const LogSumExp in = {size == Size::usual ? 1'000'000 : 1000};
  Problem p{.name = "logsumexp",
            .size = std::to_string(in.count),
            .bytes = 8.0 * in.count,
            .at = even_numbers(size_t(in.count), 0, 1, 2)};
  qn::Field<double> x{device, {in.count}};
  x.copy_from(p.at);
  // The largest number cancels, so it is a constant to the gradient.
  qn::Kernel f = [&](F64 most) -> F64 {
    Var<double> sum = 0;
    for (auto i : x) sum += exp(x[i] - most);
    return most + log(sum);
  };
  auto both = qn::value_and_grad(f, qn::wrt(x));
  p.value = [=] { return double(f(max(x))); };
  p.value_and_gradient = [=] { return both(max(x)).value(); };
  p.gradient = [=] { return qn::to_vector(x.grad()); };
  p.by_hand = [=](const double* at) { return reference::log_sum_exp(in, at); };
  p.gradient_by_hand = [=](const double* at, double* gradient) {
    return reference::log_sum_exp_gradient(in, at, gradient);
  };
  p.adolc = adolc::log_sum_exp(in, p.at);
  p.codipack = codipack::log_sum_exp(in);
  return p;
}

Problem k_means(const qn::Device& device, Size size) {
  KMeans in = size == Size::usual ? KMeans{10000, 25, 16, nullptr} : KMeans{50, 4, 3, nullptr};
  const auto host = std::make_shared<std::vector<double>>(
      even_numbers(size_t(in.points) * in.dimensions, 0, 1, 3));
  in.point = host->data();
  const int numbers = in.centroids * in.dimensions;
  Problem p{.name = "kmeans",
            .size = std::to_string(in.points) + " x " + std::to_string(in.centroids) + " x " +
                    std::to_string(in.dimensions),
            .flops = 3.0 * in.points * numbers,
            // the first points, moved a little: no derivative is 0 by chance
            .at = even_numbers(size_t(numbers), 0, 0.01, 4)};
  for (size_t k = 0; k < p.at.size(); k++) p.at[k] += in.point[k];
  qn::Field<double, 2> points{device, {in.points, in.dimensions}},
      centroids{device, {in.centroids, in.dimensions}};
  points.copy_from(*host);
  centroids.copy_from(p.at);
  qn::Kernel f = [&]() -> F64 {
    Var<double> sum = 0;
    for (auto i : range(in.points)) {
      Var<double> least = std::numeric_limits<double>::infinity();
      for (auto c : range(in.centroids)) {
        Var<double> square = 0;
        for (auto j : range(in.dimensions)) {
          F64 off = centroids(c, j) - points(i, j);
          square += off * off;
        }
        least = min(least, square);
      }
      sum += least;
    }
    return sum;
  };
  auto both = qn::value_and_grad(f, qn::wrt(centroids));
  p.value = [=] { return double(f()); };
  p.value_and_gradient = [=] { return both().value(); };
  p.gradient = [=] { return qn::to_vector(centroids.grad()); };
  p.by_hand = [=, keep = host](const double* at) { return reference::k_means(in, at); };
  p.gradient_by_hand = [=, keep = host](const double* at, double* gradient) {
    return reference::k_means_gradient(in, at, gradient);
  };
  p.adolc = adolc::k_means(in, p.at);
  p.codipack = codipack::k_means(in);
  return p;
}

}  // namespace bench

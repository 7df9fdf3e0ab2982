// A dense layer and a convolution.
#include <quern/autodiff.h>
#include <quern/host.h>

#include <memory>

#include "bench/autodiff/problem.h"
#include "bench/autodiff/reference.h"

namespace bench {
namespace qn = quern;
using namespace qn::lang;

Problem layer(const qn::Device& device, Size size) {
  Layer in = size == Size::usual ? Layer{256, 256, 320, nullptr, nullptr}
                                 : Layer{20, 7, 9, nullptr, nullptr};
  const auto points = std::make_shared<std::vector<double>>(
                 even_numbers(size_t(in.points) * in.inputs, -1, 1, 21)),
             wanted = std::make_shared<std::vector<double>>(
                 even_numbers(size_t(in.points) * in.outputs, -1, 1, 22));
  in.point = points->data();
  in.wanted = wanted->data();
  Problem p{.name = "layer",
            .size = std::to_string(in.points) + " x " + std::to_string(in.inputs) + " x " +
                    std::to_string(in.outputs),
            .flops = 2.0 * in.points * in.inputs * in.outputs,
            .at = even_numbers(size_t(in.inputs) * in.outputs, -0.1, 0.1, 23)};
  qn::Field<double, 2> x{device, {in.points, in.inputs}}, w{device, {in.inputs, in.outputs}},
      t{device, {in.points, in.outputs}};
  x.copy_from(*points);
  w.copy_from(p.at);
  t.copy_from(*wanted);
  qn::Kernel f = [&]() -> F64 {
    Var<double> sum = 0;
    for (auto [b, o] : t) {
      Var<double> y = 0;
      for (auto i : range(in.inputs)) y += x(b, i) * w(i, o);
      F64 off = tanh(y) - t(b, o);
      sum += 0.5 * off * off;
    }
    return sum;
  };
  auto both = qn::value_and_grad(f, qn::wrt(w));
  p.value = [=] { return double(f()); };
  p.value_and_gradient = [=] { return both().value(); };
  p.gradient = [=] { return qn::to_vector(w.grad()); };
  p.by_hand = [=, keep = std::pair{points, wanted}](const double* at) {
    return reference::layer(in, at);
  };
  p.gradient_by_hand = [=, keep = std::pair{points, wanted}](const double* at, double* gradient) {
    return reference::layer_gradient(in, at, gradient);
  };
  return p;
}

Problem convolution(const qn::Device& device, Size size) {
  Convolution in =
      size == Size::usual ? Convolution{8, 8, 96, 128, nullptr} : Convolution{2, 3, 6, 20, nullptr};
  const auto wanted = std::make_shared<std::vector<double>>(
      even_numbers(size_t(in.filters) * in.rows * in.columns, 0, 1, 24));
  in.wanted = wanted->data();
  Problem p{.name = "conv",
            .size = std::to_string(in.channels) + " to " + std::to_string(in.filters) + " x " +
                    std::to_string(in.rows) + " x " + std::to_string(in.columns),
            .flops = 2.0 * in.filters * in.rows * in.columns * in.channels * in.wide * in.wide,
            .at = even_numbers(size_t(in.size()), -1, 1, 25)};
  qn::Field<double, 3> image{device, {in.channels, in.image_rows(), in.image_columns()}},
      t{device, {in.filters, in.rows, in.columns}};
  qn::Field<double, 4> filter{device, {in.filters, in.channels, in.wide, in.wide}};
  image.copy_from(std::vector(p.at.begin(), p.at.begin() + in.weights()));
  filter.copy_from(std::vector(p.at.begin() + in.weights(), p.at.end()));
  t.copy_from(*wanted);
  qn::Kernel f = [&]() -> F64 {
    Var<double> sum = 0;
    for (auto [n, i, j] : t) {
      Var<double> y = 0;
      for (auto c : range(in.channels))
        for (auto a : range(in.wide))
          for (auto k : range(in.wide)) y += image(c, i + a, j + k) * filter(n, c, a, k);
      F64 off = max(y, 0.0) - t(n, i, j);
      sum += 0.5 * off * off;
    }
    return sum;
  };
  auto both = qn::value_and_grad(f, qn::wrt(image, filter));
  p.value = [=] { return double(f()); };
  p.value_and_gradient = [=] { return both().value(); };
  p.gradient = [=] {
    std::vector<double> all = qn::to_vector(image.grad()), of_filter = qn::to_vector(filter.grad());
    all.insert(all.end(), of_filter.begin(), of_filter.end());
    return all;
  };
  p.by_hand = [=, keep = wanted](const double* at) { return reference::convolution(in, at); };
  p.gradient_by_hand = [=, keep = wanted](const double* at, double* gradient) {
    return reference::convolution_gradient(in, at, gradient);
  };
  return p;
}

}  // namespace bench

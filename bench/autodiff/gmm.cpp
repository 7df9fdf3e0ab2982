// A mixture of Gaussian distributions.
#include <quern/autodiff.h>
#include <quern/host.h>

#include <cmath>
#include <memory>

#include "bench/autodiff/problem.h"
#include "bench/autodiff/reference.h"
#include "examples/differentiable/descent.h"

namespace bench {
namespace qn = quern;
using namespace qn::lang;

namespace {

/// log Σ exp(x_i) of `count` numbers by index.
template <class X>
F64 log_of_sum(int count, X x) {
  Var<double> most = x(I32(0));
  for (auto c : serial(range(count))) most = max(most, x(c));
  Var<double> sum = 0;
  for (auto c : serial(range(count))) sum += exp(x(c) - most);
  return most + log(sum);
}

class Mixture {
 public:
  Mixture(const qn::Device& device, const Gmm& in, const std::vector<double>& at)
      : weight_{device, {in.parts}},
        mean_{device, {in.parts, in.dimensions}},
        q_{device, {in.parts, in.dimensions}},
        below_{device, {in.parts, in.below()}},
        diagonal_{device, {in.parts, in.dimensions}},
        start_{device, {in.parts}},
        point_{device, {in.points, in.dimensions}},
        value_{device} {
    weight_.copy_from(at.data(), in.parts);
    mean_.copy_from(at.data() + in.means(), in.parts * in.dimensions);
    q_.copy_from(at.data() + in.logarithms(), in.parts * in.dimensions);
    below_.copy_from(at.data() + in.triangles(), in.parts * in.below());
    point_.copy_from(in.point, in.points * in.dimensions);
    const int d = in.dimensions;
    prepare_ = qn::Kernel<void()>{[=, this] {
      value_() = 0;
      for (auto c : weight_) {
        Var<double> sum = 0, squares = 0;
        for (auto j : range(d)) {
          F64 scale = exp(q_(c, j));
          diagonal_(c, j) = scale;
          sum += q_(c, j);
          squares += scale * scale;
        }
        for (auto e : range(in.below())) squares += below_(c, e) * below_(c, e);
        start_[c] = weight_[c] + sum;
        value_() += in.freedom * sum - 0.5 * in.gamma * in.gamma * squares;
      }
    }};
    measure_ = qn::Kernel<void()>{[=, this] {
      for (auto i : range(in.points)) {
        Var<Array<double, most_parts>> term;
        for (auto c : range(in.parts)) {
          Var<double> squares = 0;
          for (auto _ : reassociate())  // as the flags of the reference let its compiler do
            for (auto r : range(d)) {
              Var<double> turned = diagonal_(c, r) * (point_(i, r) - mean_(c, r));
              for (auto j : range(r))
                turned +=
                    below_(c, j * d - j * (j + 1) / 2 + r - j - 1) * (point_(i, j) - mean_(c, j));
              squares += turned * turned;
            }
          term[c] = start_[c] - 0.5 * squares;
        }
        value_() += log_of_sum(in.parts, [&](I32 c) { return F64(term[c]); });
      }
      value_() += -double(in.points) * log_of_sum(in.parts, [&](I32 c) { return F64(weight_[c]); });
    }};
  }

  double value() {
    prepare_();
    measure_();
    return value_.at({});
  }
  double value_and_gradient() {
    weight_.grad().fill(0);
    mean_.grad().fill(0);
    q_.grad().fill(0);
    below_.grad().fill(0);
    return examples::differentiate(value_, qn::wrt(weight_, mean_, q_, below_), [this] {
      prepare_();
      measure_();
    });
  }
  std::vector<double> gradient() const {
    std::vector<double> all = qn::to_vector(weight_.grad());
    for (const auto& field : {mean_, q_, below_}) {
      const std::vector<double> more = qn::to_vector(field.grad());
      all.insert(all.end(), more.begin(), more.end());
    }
    return all;
  }

  static constexpr int most_parts = 25;

 private:
  qn::Field<double> weight_;
  qn::Field<double, 2> mean_, q_, below_, diagonal_;
  qn::Field<double> start_;
  qn::Field<double, 2> point_;
  qn::Field<double, 0> value_;
  qn::Kernel<void()> prepare_{[] {}}, measure_{[] {}};
};

}  // namespace

Problem gmm(const qn::Device& device, Size size) {
  Gmm in = size == Size::usual ? Gmm{10, Mixture::most_parts, 1000, 0, 1, nullptr}
                               : Gmm{3, 4, 20, 2, 0.5, nullptr};
  const auto host = std::make_shared<std::vector<double>>(
      even_numbers(size_t(in.points) * in.dimensions, 0, 1, 5));
  in.point = host->data();
  const double entries = in.dimensions * (in.dimensions + 1) / 2;
  Problem p{.name = "gmm",
            .size = std::to_string(in.dimensions) + " x " + std::to_string(in.parts) + " x " +
                    std::to_string(in.points),
            .flops = in.points * double(in.parts) * (2 * entries + 3 * in.dimensions),
            .at = even_numbers(size_t(in.size()), -0.5, 1, 6)};
  const auto mixture = std::make_shared<Mixture>(device, in, p.at);
  p.value = [=] { return mixture->value(); };
  p.value_and_gradient = [=] { return mixture->value_and_gradient(); };
  p.gradient = [=] { return mixture->gradient(); };
  p.by_hand = [=, keep = host](const double* at) { return reference::gmm(in, at); };
  p.gradient_by_hand = [=, keep = host](const double* at, double* gradient) {
    return reference::gmm_gradient(in, at, gradient);
  };
  p.adolc = adolc::gmm(in, p.at);
  p.codipack = codipack::gmm(in);
  return p;
}

}  // namespace bench

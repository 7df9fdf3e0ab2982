// A determinant by minors and a differential equation.
#include <quern/autodiff.h>
#include <quern/host.h>

#include <memory>
#include <vector>

#include "bench/autodiff/problem.h"
#include "bench/autodiff/reference.h"
#include "examples/differentiable/descent.h"

namespace bench {
namespace qn = quern;
using namespace qn::lang;

namespace {

/// Of the rows from `row` on and the columns that are `left`: written out, so for a few rows.
F64 minor(const qn::Field<double, 2>& a, int row, const std::vector<I32>& left) {
  if (left.size() == 1) return a(row, left[0]);
  Var<double> sum = 0;
  for (size_t j = 0; j < left.size(); j++) {
    std::vector<I32> others;
    for (size_t k = 0; k < left.size(); k++)
      if (k != j) others.push_back(left[k]);
    F64 rest = minor(a, row + 1, others);
    if (j % 2 == 0)
      sum += a(row, left[j]) * rest;
    else
      sum -= a(row, left[j]) * rest;
  }
  return sum;
}

constexpr int written_out = 5, most_rows = 9;

}  // namespace

// All choices of columns in the first rows, in parallel; minors of the last ones are written out.
Problem determinant(const qn::Device& device, Size size) {
  const Determinant in = {size == Size::usual ? most_rows : 6};
  const int n = in.rows, chosen_rows = n - written_out;
  Problem p{
      .name = "det", .size = std::to_string(n) + "^2", .at = even_numbers(size_t(n * n), 0, 1, 7)};
  qn::Field<double, 2> a{device, {n, n}};
  a.copy_from(p.at);
  int choices = 1;
  for (int row = 0; row < chosen_rows; row++) choices *= n - row;
  qn::Kernel f = [&]() -> F64 {
    Var<double> sum = 0;
    for (auto choice : range(choices)) {
      Var<Array<int, most_rows>> left;
      for (int j = 0; j < n; j++) left[j] = j;
      Var<int> rest = choice;
      Var<double> product = 1;
      for (int row = 0; row < chosen_rows; row++) {
        I32 place = rest % (n - row);
        rest /= n - row;
        product *= select(place % 2 == 0, 1.0, F64(-1.0)) * a(row, left[place]);
        for (int j = 0; j + 1 < n - row; j++) left[j] = select(j < place, left[j], left[j + 1]);
      }
      std::vector<I32> columns;
      for (int j = 0; j < written_out; j++) columns.push_back(left[j]);
      sum += product * minor(a, chosen_rows, columns);
    }
    return sum;
  };
  auto both = qn::value_and_grad(f, qn::wrt(a));
  p.value = [=] { return double(f()); };
  p.value_and_gradient = [=] { return both().value(); };
  p.gradient = [=] { return qn::to_vector(a.grad()); };
  p.by_hand = [=](const double* at) { return reference::determinant(in, at); };
  p.gradient_by_hand = [=](const double* at, double* gradient) {
    return reference::determinant_gradient(in, at, gradient);
  };
  p.adolc = adolc::determinant(in, p.at);
  p.codipack = codipack::determinant(in);
  return p;
}

namespace {

class Chain {
 public:
  Chain(const qn::Device& device, const Ode& in, const std::vector<double>& at)
      : steps_(in.steps),
        x_{device, {in.unknowns}},
        y_{device, {in.unknowns}},
        k1_{device, {in.unknowns}},
        k2_{device, {in.unknowns}},
        k3_{device, {in.unknowns}},
        k4_{device, {in.unknowns}},
        sum_{device},
        begin_{[this] {
          for (auto i : y_) y_[i] = 0.0;
          sum_() = 0;
        }},
        first_slope_{[this] {
          for (auto i : y_) k1_[i] = x_[i] * select(i == 0, 1.0, F64(y_[max(i - 1, 0)]));
        }},
        slope_{[this](qn::Field<double> last, qn::Field<double> next, F64 by) {
          for (auto i : y_) {
            I32 before = max(i - 1, 0);
            next[i] = x_[i] * select(i == 0, 1.0, F64(y_[before] + by * last[before]));
          }
        }},
        advance_{[this, h = 2.0 / in.steps] {
          for (auto i : y_) y_[i] += h / 6 * (k1_[i] + 2 * k2_[i] + 2 * k3_[i] + k4_[i]);
        }},
        add_up_{[this] {
          for (auto i : y_) sum_() += y_[i];
        }} {
    x_.copy_from(at);
  }

  double value() {
    forward();
    return sum_.at({});
  }
  double value_and_gradient() {
    x_.grad().fill(0);
    return examples::differentiate(sum_, qn::wrt(x_), [this] { forward(); });
  }
  std::vector<double> gradient() const { return qn::to_vector(x_.grad()); }

 private:
  void forward() {
    const double h = 2.0 / steps_;
    begin_();
    for (int s = 0; s < steps_; s++) {
      first_slope_();
      slope_(k1_, k2_, h / 2);
      slope_(k2_, k3_, h / 2);
      slope_(k3_, k4_, h);
      advance_();
    }
    add_up_();
  }

  int steps_;
  qn::Field<double> x_, y_, k1_, k2_, k3_, k4_;
  qn::Field<double, 0> sum_;
  qn::Kernel<void()> begin_, first_slope_;
  qn::Kernel<void(qn::Field<double>, qn::Field<double>, F64)> slope_;
  qn::Kernel<void()> advance_, add_up_;
};

}  // namespace

Problem ode(const qn::Device& device, Size size) {
  const Ode in = size == Size::usual ? Ode{1000, 100} : Ode{20, 6};
  Problem p{.name = "ode",
            .size = std::to_string(in.unknowns) + " x " + std::to_string(in.steps),
            .flops = 18.0 * in.unknowns * in.steps,
            .at = even_numbers(size_t(in.unknowns), 0, 1, 8)};
  const auto chain = std::make_shared<Chain>(device, in, p.at);
  p.value = [=] { return chain->value(); };
  p.value_and_gradient = [=] { return chain->value_and_gradient(); };
  p.gradient = [=] { return chain->gradient(); };
  p.by_hand = [=](const double* at) { return reference::ode(in, at); };
  p.gradient_by_hand = [=](const double* at, double* gradient) {
    return reference::ode_gradient(in, at, gradient);
  };
  p.adolc = adolc::ode(in, p.at);
  p.codipack = codipack::ode(in);
  return p;
}

}  // namespace bench

// A recurrent network with long short-term memory.
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

/// As matrices are diagonal, bits meet only where likelihoods are made of guesses: a kernel goes through
/// the text for all bits in parallel, another one measures all characters' guesses.
class Network {
 public:
  Network(const qn::Device& device, const Lstm& in, const std::vector<double>& at)
      : main_{device, {2 * in.layers, 4, in.bits}},
        extra_{device, {3, in.bits}},
        state_{device, {in.layers, 2, in.bits}},
        text_{device, {in.characters, in.bits}},
        guess_{device, {in.characters - 1, in.bits}},
        value_{device},
        read_{[=, this] {
          value_() = 0;
          for (auto i : range(in.bits)) {
            Var<Array<double, most_layers>> hidden, cell;
            for (int l = 0; l < in.layers; l++) {
              hidden[l] = state_(l, 0, i);
              cell[l] = state_(l, 1, i);
            }
            for (auto t : range(in.characters - 1)) {
              Var<double> x = text_(t, i) * extra_(0, i);
              for (int l = 0; l < in.layers; l++) {
                auto input = [&](int kind, F64 v) {
                  return v * main_(2 * l, kind, i) + main_(2 * l + 1, kind, i);
                };
                F64 forget = gate(input(0, x)), in_gate = gate(input(1, hidden[l]));
                F64 out_gate = gate(input(2, x)), change = tanh(input(3, hidden[l]));
                F64 next = cell[l] * forget + in_gate * change;
                x = out_gate * tanh(next);
                cell[l] = next;
                hidden[l] = x;
              }
              guess_(t, i) = x * extra_(1, i) + extra_(2, i);
            }
          }
        }},
        measure_{[=, this] {
          for (auto t : range(in.characters - 1)) {
            Var<double> sum = 2, right = 0, ones = 0;
            for (auto i : range(in.bits)) {
              sum += exp(guess_(t, i));
              right += text_(t + 1, i) * guess_(t, i);
              ones += text_(t + 1, i);
            }
            value_() += (ones * log(sum) - right) / in.guesses();
          }
        }} {
    main_.copy_from(at.data(), in.input());
    extra_.copy_from(at.data() + in.input(), 3 * in.bits);
    state_.copy_from(in.state, 2 * in.layers * in.bits);
    text_.copy_from(in.text, in.characters * in.bits);
  }

  double value() {
    forward();
    return value_.at({});
  }
  double value_and_gradient() {
    main_.grad().fill(0);
    extra_.grad().fill(0);
    return examples::differentiate(value_, qn::wrt(main_, extra_), [this] { forward(); });
  }
  std::vector<double> gradient() const {
    std::vector<double> all = qn::to_vector(main_.grad());
    const std::vector<double> more = qn::to_vector(extra_.grad());
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  static constexpr int most_layers = 2;

 private:
  static F64 gate(F64 v) { return 1 / (1 + exp(-v)); }
  void forward() {
    read_();
    measure_();
  }

  qn::Field<double, 3> main_;  ///< by weights and biases of layers, kind, bit
  qn::Field<double, 2> extra_;
  qn::Field<double, 3> state_;
  qn::Field<double, 2> text_, guess_;
  qn::Field<double, 0> value_;
  qn::Kernel<void()> read_, measure_;
};

}  // namespace

Problem lstm(const qn::Device& device, Size size) {
  Lstm in = size == Size::usual ? Lstm{Network::most_layers, 1024, 14, nullptr, nullptr}
                                : Lstm{2, 12, 3, nullptr, nullptr};
  const auto state = std::make_shared<std::vector<double>>(
      even_numbers(size_t(2 * in.layers * in.bits), 0, 1, 11));
  const auto text = std::make_shared<std::vector<double>>(
      even_numbers(size_t(in.characters * in.bits), 0, 1, 12));
  for (double& bit : *text) bit = bit < 0.5 ? 0 : 1;
  in.state = state->data();
  in.text = text->data();
  Problem p{.name = "lstm",
            .size = std::to_string(in.layers) + " x " + std::to_string(in.characters) + " x " +
                    std::to_string(in.bits),
            .at = even_numbers(size_t(in.size()), -1, 1, 13)};
  const auto network = std::make_shared<Network>(device, in, p.at);
  p.value = [=] { return network->value(); };
  p.value_and_gradient = [=] { return network->value_and_gradient(); };
  p.gradient = [=] { return network->gradient(); };
  p.by_hand = [=, keep = state, keep_text = text](const double* at) {
    return reference::lstm(in, at);
  };
  p.gradient_by_hand = [=, keep = state, keep_text = text](const double* at, double* gradient) {
    return reference::lstm_gradient(in, at, gradient);
  };
  p.adolc = adolc::lstm(in, p.at);
  p.codipack = codipack::lstm(in);
  return p;
}

}  // namespace bench

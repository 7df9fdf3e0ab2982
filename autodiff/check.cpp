// Gradients against differences.
#include "quern/autodiff/check.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <random>

#include "autodiff/activity.h"
#include "dsl/recording.h"
#include "quern/autodiff.h"

namespace quern::detail {

namespace {

using Numbers = std::vector<double>;
constexpr double none = std::numeric_limits<double>::quiet_NaN();

/// The doubles among the elements of a field, which the host changes.
class Elements {
 public:
  Elements(const FieldObject& field, std::string name_of, Loc loc)
      : name(std::move(name_of)), storage_(field.storage), loc_(loc) {
    if (!storage_) throw Error(loc, name + " is a field without memory");
    if (storage_->tree())
      throw Error(loc, name +
                           " is on a tree, where a check of gradients, which varies every element, "
                           "would make all of them active");
    const ElementType& type = field.type.element;
    for (int k = 0; k < type.count; k++) {
      if (type.scalars[k] == Scalar::f64) offsets_.push_back(type.offsets[k]);
      if (type.scalars[k] == Scalar::f32 || type.scalars[k] == Scalar::f16)
        throw Error(loc, name + " holds floats of less than 64 bits, " + hidden);
    }
    bytes_ = bytes_of(*storage_);
    at = doubles_in(bytes_);
  }
  /// The elements as they were at first, with other doubles.
  void write(const Numbers& doubles) const { write_to(*storage_, doubles, bytes_); }
  void write() const { write(at); }
  Numbers read() const { return doubles_in(bytes_of(*storage_)); }

  Numbers companion(const char* which) const {
    return doubles_in(bytes_of(*storage_->companion(which, loc_)));
  }
  /// None: zeros.
  void write_companion(const char* which, const Numbers& doubles) const {
    write_to(*storage_->companion(which, loc_), doubles, std::vector<std::byte>(bytes_.size()));
  }
  bool overlaps(const Elements& other) const { return storage_->overlaps(*other.storage_); }

  /// The element that a double belongs to.
  std::string place(size_t number) const {
    const auto& shape = storage_->shape();
    std::string text;
    size_t rest = number / offsets_.size();
    for (size_t k = shape.size(); k-- > 0; rest /= size_t(shape[k])) {
      const int64_t index = int64_t(rest % size_t(shape[k])) + storage_->first(uint32_t(k));
      text = std::to_string(index) + (text.empty() ? "" : ", ") + text;
    }
    const std::string component =
        offsets_.size() > 1 ? ", double " + std::to_string(number % offsets_.size()) + " in it"
                            : "";
    return name + "[" + text + "]" + component;
  }

  std::string name;
  Numbers at;

  static constexpr const char* hidden =
      "whose rounding hides what a check of gradients looks at: check the same code in double";

 private:
  std::vector<std::byte> bytes_of(const runtime::Storage& from) const {
    std::vector<std::byte> bytes(from.element_bytes() * size_t(from.size()));
    from.read(bytes.data(), 0, from.size());
    return bytes;
  }
  Numbers doubles_in(const std::vector<std::byte>& bytes) const {
    Numbers all;
    for (size_t from = 0; from < bytes.size(); from += storage_->element_bytes())
      for (uint32_t offset : offsets_) {
        double v;
        std::memcpy(&v, &bytes[from + offset], sizeof v);
        all.push_back(v);
      }
    return all;
  }
  void write_to(runtime::Storage& to, const Numbers& doubles, std::vector<std::byte> bytes) const {
    for (size_t n = 0; n < doubles.size(); n++) {
      const size_t element = n / offsets_.size() * storage_->element_bytes();
      std::memcpy(&bytes[element + offsets_[n % offsets_.size()]], &doubles[n], sizeof(double));
    }
    to.write(bytes.data(), 0, to.size(), loc_);
  }

  std::shared_ptr<runtime::Storage> storage_;
  std::vector<uint32_t> offsets_;  ///< of the doubles in an element on the host
  std::vector<std::byte> bytes_;   ///< of all elements, at first
  Loc loc_;
};

/// What is checked: a function of several inputs, and its gradient at one place.
struct Problem {
  struct Input {
    std::string name;
    Numbers at, gradient;
    std::function<std::string(size_t)> place;
  };
  std::vector<Input> inputs;
  std::function<double(size_t input, const Numbers&)> value;  ///< with one input changed
};

class Checker {
 public:
  Checker(const Problem& problem, size_t input, std::mt19937_64& random)
      : problem_(problem), number_(input), input_(problem.inputs[input]) {
    double squares = 0;
    for (double v : input_.at) squares += v * v;
    scale_ = squares > 0 ? std::sqrt(squares / double(input_.at.size())) : 1;
    std::normal_distribution<double> normal;
    for (size_t k = 0; k < input_.at.size(); k++) direction_.push_back(scale_ * normal(random));
  }

  GradientReport::Input run() {
    GradientReport::Input out;
    out.name = input_.name;
    const double f = at(0, direction_);
    const double along = slope_along(direction_);
    out.noise = noise(f);
    for (int k = 1; k <= 8; k++) {
      const double h = std::pow(10.0, -k);
      out.steps.push_back(h);
      out.remainders.push_back(std::abs(at(h, direction_) - f - h * along));
    }
    out.slope = none;
    for (size_t k = 0; k + 1 < out.steps.size(); k++) {
      const double large = out.remainders[k], small = out.remainders[k + 1];
      if (std::isfinite(large) && small > significant * out.noise)
        out.slope = std::log10(large / small);
    }
    const Difference d = difference(direction_, out.noise);
    out.error = d.error;
    const bool is_finite = std::isfinite(f) && std::isfinite(along) && std::isfinite(d.central);
    out.passed = is_finite && (std::isnan(out.slope) ? out.error < 1e-6 : out.slope > 1.8);
    if (!is_finite) out.error = std::numeric_limits<double>::infinity();
    if (!out.passed) out.where = culprit(out.noise);
    return out;
  }

 private:
  /// Remainders of so many times the noise have their first digit.
  static constexpr double significant = 30;

  struct Difference {
    double central, gradient, error;
  };

  double at(double h, const Numbers& direction) const {
    Numbers x = input_.at;
    for (size_t k = 0; k < x.size(); k++) x[k] += h * direction[k];
    return problem_.value(number_, x);
  }

  double slope_along(const Numbers& direction) const {
    double sum = 0;
    for (size_t k = 0; k < direction.size(); k++) sum += input_.gradient[k] * direction[k];
    return sum;
  }

  /// Second differences of values so near that f is a straight line (Moré and Wild, Estimating
  /// computational noise, 2011).
  double noise(double f) const {
    double before = f, now = at(1e-9, direction_);
    double most = std::numeric_limits<double>::epsilon() * std::abs(f);
    for (int k = 2; k < 8; k++) {
      const double next = at(k * 1e-9, direction_);
      most = std::max(most, std::abs(before - 2 * now + next));
      before = std::exchange(now, next);
    }
    return most;
  }

  Difference difference(const Numbers& direction, double noise_of_f) const {
    constexpr double h = 1e-5;
    const double central = (at(h, direction) - at(-h, direction)) / (2 * h);
    const double gradient = slope_along(direction);
    const double larger = std::max(std::abs(central), std::abs(gradient));
    const double beyond =
        std::max(std::abs(central - gradient) - significant * noise_of_f / h, 0.0);
    return {central, gradient, beyond > 0 ? beyond / larger : 0};
  }

  /// Follows the half whose difference is off by more.
  std::string culprit(double noise_of_f) const {
    size_t from = 0, to = direction_.size();
    const auto part = [&](size_t a, size_t b) {
      Numbers d(direction_.size(), 0);
      std::copy(direction_.begin() + std::ptrdiff_t(a), direction_.begin() + std::ptrdiff_t(b),
                d.begin() + std::ptrdiff_t(a));
      return d;
    };
    const auto off = [&](size_t a, size_t b) {
      const Difference d = difference(part(a, b), noise_of_f);
      const double by = std::abs(d.central - d.gradient);
      return std::isfinite(by) ? by : std::numeric_limits<double>::infinity();
    };
    while (to - from > 1) {
      const size_t middle = from + (to - from) / 2;
      const double first = off(from, middle), second = off(middle, to);
      (first >= second ? to : from) = middle;
    }
    if (from == to) return "";
    Numbers one(direction_.size(), 0);
    one[from] = scale_;
    const Difference d = difference(one, noise_of_f);
    char text[96];
    std::snprintf(text, sizeof text, ": the gradient says %.6g, differences say %.6g",
                  input_.gradient[from], d.central / scale_);
    return input_.place(from) + text;
  }

  const Problem& problem_;
  const size_t number_;
  const Problem::Input& input_;
  double scale_ = 1;
  Numbers direction_;
};

GradientReport check(const Problem& problem, std::mt19937_64& random) {
  GradientReport report;
  report.passed = true;
  for (size_t k = 0; k < problem.inputs.size(); k++) {
    report.inputs.push_back(Checker(problem, k, random).run());
    report.passed &= report.inputs.back().passed;
    report.worst_error = std::max(report.worst_error, report.inputs.back().error);
  }
  return report;
}

void expect_apart(const std::vector<Elements>& fields, Loc loc) {
  for (size_t a = 0; a < fields.size(); a++)
    for (size_t b = 0; b < a; b++)
      if (fields[a].overlaps(fields[b]))
        throw Error(loc, fields[b].name + " and " + fields[a].name +
                             " share elements, which a check of gradients cannot vary one by one");
}

Numbers drawn(size_t count, std::mt19937_64& random) {
  std::normal_distribution<double> normal;
  Numbers v(count);
  for (double& e : v) e = normal(random);
  return v;
}

/// A kernel with its arguments.
class Kernels {
 public:
  Kernels(KernelObject* kernel, std::span<const Argument> arguments, Loc loc)
      : kernel_(kernel), given_(arguments.begin(), arguments.end()), loc_(loc) {
    const ir::Kernel& source = kernel->program->kernel();
    all_ = launch_arguments(given_, kernel->captured, loc);
    std::vector<bool> reads(all_.size()), writes(all_.size());
    ir::walk(source.body, [&](const ir::Inst* inst) {
      if (!ir::accesses_element(inst->op)) return;
      const bool is_load = inst->is(ir::Op::load) ||
                           (inst->is(ir::Op::atomic) && inst->atomic() == ir::AtomicOp::load);
      (is_load ? reads : writes)[inst->binding()] = true;
      if (inst->is(ir::Op::atomic))
        reads[inst->binding()] = true;  // what is added to is part of it
    });
    for (size_t k = 0; k < all_.size(); k++) {
      const ir::Binding& b = source.bindings[k];
      if (!autodiff::has_floats(b)) continue;
      if (b.kind == ir::Binding::field) {
        const FieldObject* field =
            k < given_.size() ? given_[k].field : kernel->captured[k - given_.size()].get();
        roles_.push_back({reads[k], writes[k]});
        fields_.emplace_back(*field, b.name, loc);
      } else {
        expect_double(b.components[0].type, b.name);
        scalars_.push_back(k);
      }
    }
    for (ir::Type type : source.results)
      if (ir::is_float(type)) expect_double(type, "a result");
    expect_apart(fields_, loc);
  }

  GradientReport run(std::mt19937_64& random) {
    draw(random);
    Problem problem;
    const std::vector<Numbers> gradient = go_back();
    for (size_t k = 0; k < fields_.size(); k++)
      if (roles_[k].read)
        add(problem,
            {fields_[k].name, fields_[k].at, gradient[k],
             [this, k](size_t n) { return fields_[k].place(n); }},
            k);
    const auto& bindings = kernel_->program->kernel().bindings;
    for (size_t k = 0; k < scalars_.size(); k++) {
      const std::string name = bindings[scalars_[k]].name;
      add(problem,
          {name,
           {ir::real_of(all_[scalars_[k]].bits, ir::Type::f64)},
           gradient[fields_.size() + k],
           [name](size_t) { return name; }},
          fields_.size() + k);
    }
    if (problem.inputs.empty())
      throw Error(loc_, "the kernel takes no floats that a gradient could be taken by");
    problem.value = [this](size_t input, const Numbers& x) { return value(which_[input], x); };
    GradientReport report = check(problem, random);
    compare(report, gradient, random);
    for (const Elements& f : fields_) f.write();
    return report;
  }

 private:
  struct Role {
    bool read, written;
  };

  void expect_double(ir::Type type, const std::string& name) const {
    if (type != ir::Type::f64)
      throw Error(loc_, name + " is a float of less than 64 bits, " + Elements::hidden);
  }

  void add(Problem& problem, Problem::Input input, size_t number) {
    if (input.at.empty()) return;
    problem.inputs.push_back(std::move(input));
    which_.push_back(number);
  }

  size_t float_results() const {
    size_t count = 0;
    for (ir::Type type : kernel_->program->kernel().results) count += ir::is_float(type);
    return count;
  }

  /// w.
  void draw(std::mt19937_64& random) {
    size_t count = float_results();
    of_results_ = drawn(count, random);
    for (size_t k = 0; k < fields_.size(); k++) {
      of_fields_.push_back(roles_[k].written ? drawn(fields_[k].at.size(), random) : Numbers());
      count += of_fields_.back().size();
    }
    if (count == 0) throw Error(loc_, "the kernel neither yields nor writes floats");
  }

  /// The sum of w times the floats among results, of which a launch has those from `first` on.
  template <class F>
  double results_along_w(F&& result) const {
    double sum = 0;
    size_t n = 0, k = 0;
    for (ir::Type type : kernel_->program->kernel().results) {
      if (ir::is_float(type)) {
        sum += of_results_[n] * ir::real_of(result(k, n), ir::Type::f64);
        n++;
      }
      k++;
    }
    return sum;
  }

  /// ⟨w, f⟩, with one input changed.
  double value(size_t changed, const Numbers& x) {
    for (size_t k = 0; k < fields_.size(); k++) fields_[k].write(k == changed ? x : fields_[k].at);
    std::vector<runtime::Argument> arguments = all_;
    if (changed >= fields_.size())
      arguments[scalars_[changed - fields_.size()]].bits = ir::bits_of_real(x[0], ir::Type::f64);
    const Ref<LaunchObject> launched(launch(*kernel_->program, arguments, kernel_->modes, loc_));
    double sum = results_along_w(
        [&](size_t k, size_t) { return launch_result(launched.get(), int(k), loc_); });
    for (size_t k = 0; k < fields_.size(); k++) {
      if (!roles_[k].written) continue;
      const Numbers now = fields_[k].read();
      for (size_t n = 0; n < now.size(); n++) sum += of_fields_[k][n] * now[n];
    }
    return sum;
  }

  /// Jᵀ w, of fields and then of scalars.
  std::vector<Numbers> go_back() {
    for (size_t k = 0; k < fields_.size(); k++) {
      fields_[k].write();
      fields_[k].write_companion("adjoint", of_fields_[k]);
    }
    const Ref<ReverseObject> reverse(make_reverse(kernel_, loc_));
    const Ref<PullbackObject> pullback(
        launch_recorded(reverse.get(), given_.data(), int(given_.size()), loc_));
    std::vector<uint64_t> seeds;
    for (double w : of_results_) seeds.push_back(ir::bits_of_real(w, ir::Type::f64));
    const Ref<LaunchObject> launched(
        detail::go_back(pullback.get(), seeds.data(), int(seeds.size()), loc_));
    std::vector<Numbers> all;
    for (const Elements& f : fields_) all.push_back(f.companion("adjoint"));
    for (size_t k = 0; k < scalars_.size(); k++)
      all.push_back({ir::real_of(launch_result(launched.get(), int(k), loc_), ir::Type::f64)});
    return all;
  }

  /// ⟨J v, w⟩ and ⟨v, Jᵀ w⟩.
  void compare(GradientReport& report, const std::vector<Numbers>& gradient,
               std::mt19937_64& random) {
    double size = 0;
    const auto times = [&](const Numbers& a, const Numbers& b) {
      double sum = 0;
      for (size_t k = 0; k < a.size() && k < b.size(); k++) {
        sum += a[k] * b[k];
        size += std::abs(a[k] * b[k]);
      }
      return sum;
    };
    for (size_t k = 0; k < fields_.size(); k++) {
      const Numbers v = roles_[k].read ? drawn(fields_[k].at.size(), random) : Numbers();
      fields_[k].write();
      fields_[k].write_companion("dual", v);
      report.reverse += times(v, gradient[k]);
    }
    std::vector<uint64_t> tangents(given_.size());
    for (size_t k = 0; k < scalars_.size(); k++) {
      const Numbers v = drawn(1, random);
      tangents[scalars_[k]] = ir::bits_of_real(v[0], ir::Type::f64);
      report.reverse += times(v, gradient[fields_.size() + k]);
    }
    const Ref<ForwardObject> forward(make_forward(kernel_, true, loc_));
    const Ref<LaunchObject> launched(
        launch_forward(forward.get(), given_.data(), tangents.data(), int(given_.size()), loc_));
    const size_t results = kernel_->program->kernel().results.size();
    report.forward = results_along_w(
        [&](size_t, size_t n) { return launch_result(launched.get(), int(results + n), loc_); });
    for (size_t k = 0; k < fields_.size(); k++)
      if (roles_[k].written) report.forward += times(of_fields_[k], fields_[k].companion("dual"));
    report.has_products = true;
    const double apart = std::abs(report.forward - report.reverse);
    report.product_error = apart > 0 ? apart / std::max(size, std::abs(report.forward)) : 0;
    report.passed = report.passed && report.product_error < 1e-10;
    report.worst_error = std::max(report.worst_error, report.product_error);
  }

  KernelObject* kernel_;
  std::vector<Argument> given_;
  std::vector<runtime::Argument> all_;
  Loc loc_;
  std::vector<Elements> fields_;  ///< those that hold floats
  std::vector<Role> roles_;
  std::vector<size_t> scalars_;  ///< the arguments that are floats
  std::vector<size_t> which_;    ///< of each input of the problem: a field, or behind them a scalar
  Numbers of_results_;           ///< w
  std::vector<Numbers> of_fields_;  ///< of those that are written
};

}  // namespace

GradientReport check_kernel(KernelObject* kernel, const Argument* arguments, int count,
                            uint32_t seed, Loc loc) {
  expect_no_recording("checking a gradient", loc);
  if (!kernel) throw Error(loc, "this Kernel holds no kernel: it was moved from");
  std::mt19937_64 random(seed);
  return Kernels(kernel, {arguments, size_t(count)}, loc).run(random);
}

GradientReport check_fields(const std::function<double()>& value,
                            const std::function<void()>& gradient, const Ref<FieldObject>* fields,
                            int count, uint32_t seed, Loc loc) {
  expect_no_recording("checking a gradient", loc);
  std::vector<Elements> all;
  for (int k = 0; k < count; k++) {
    all.emplace_back(*fields[k].get(), "field " + std::to_string(k), loc);
  }
  expect_apart(all, loc);
  for (const Elements& f : all) f.write_companion("adjoint", {});
  gradient();
  Problem problem;
  std::vector<size_t> which;
  for (size_t k = 0; k < all.size(); k++) {
    if (all[k].at.empty()) continue;
    which.push_back(k);
    problem.inputs.push_back({all[k].name, all[k].at, all[k].companion("adjoint"),
                              [&all, k](size_t n) { return all[k].place(n); }});
  }
  problem.value = [&](size_t input, const Numbers& x) {
    for (size_t k = 0; k < all.size(); k++) all[k].write(k == which[input] ? x : all[k].at);
    return value();
  };
  std::mt19937_64 random(seed);
  GradientReport report = check(problem, random);
  for (const Elements& f : all) f.write();
  return report;
}

}  // namespace quern::detail

namespace quern {

std::string GradientReport::text() const {
  std::string out = passed ? "the gradient passed\n" : "the gradient did not pass\n";
  char line[160];
  for (const Input& input : inputs) {
    std::snprintf(line, sizeof line, "  %s: remainders fall as h^%.2f, error %.1e, %s\n",
                  input.name.c_str(), input.slope, input.error,
                  input.passed ? "passed" : "did not pass");
    out += std::isnan(input.slope) ? "  " + input.name + ": remainders are rounding alone, " +
                                         (input.passed ? "passed\n" : "did not pass\n")
                                   : std::string(line);
    if (!input.where.empty()) out += "    " + input.where + "\n";
    for (size_t k = 0; !input.passed && k < input.steps.size(); k++) {
      std::snprintf(line, sizeof line, "    h = %.0e: remainder %.3e\n", input.steps[k],
                    input.remainders[k]);
      out += line;
    }
  }
  if (has_products) {
    std::snprintf(line, sizeof line,
                  "  <Jv, w> = %.15g forward, <v, J'w> = %.15g back, error %.1e\n", forward,
                  reverse, product_error);
    out += line;
  }
  return out;
}

}  // namespace quern

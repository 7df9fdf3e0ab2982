// Gradients against differences.
#include "quern/autodiff/check.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "autodiff/differentiable.h"
#include "autodiff/primal/activity.h"
#include "autodiff/taylor.h"
#include "dsl/recording.h"
#include "quern/autodiff.h"

namespace quern::detail {

namespace {

using autodiff::Numbers;
using autodiff::TaylorProblem;

constexpr const char* hidden =
    "whose rounding hides what a check of gradients looks at: check the same code in float or "
    "double";

/// The floats among the elements of a field, which the host changes.
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
      if (!is_float(type.scalars[k])) continue;
      if (type.scalars[k] == Scalar::f16) throw Error(loc, name + " holds halves, " + hidden);
      floats_.push_back({type.offsets[k], type_of_scalar(type.scalars[k])});
    }
    bytes_ = bytes_of(*storage_);
    at = numbers_in(bytes_);
  }
  /// The elements as they were at first, with other floats.
  void write(const Numbers& numbers) const { write_to(*storage_, numbers, bytes_); }
  void write() const { write(at); }
  Numbers read() const { return numbers_in(bytes_of(*storage_)); }

  Numbers companion(const char* which) const {
    return numbers_in(bytes_of(*storage_->companion(which, loc_)));
  }
  /// None: zeros.
  void write_companion(const char* which, const Numbers& numbers) const {
    write_to(*storage_->companion(which, loc_), numbers, std::vector<std::byte>(bytes_.size()));
  }
  ir::Type type_of(size_t number) const { return floats_[number % floats_.size()].type; }
  bool has_singles() const {
    return std::ranges::any_of(floats_, [](const Float& f) { return f.type == ir::Type::f32; });
  }
  bool overlaps(const Elements& other) const { return storage_->overlaps(*other.storage_); }

  /// The element that a float belongs to.
  std::string place(size_t number) const {
    const auto& shape = storage_->shape();
    std::string text;
    size_t rest = number / floats_.size();
    for (size_t k = shape.size(); k-- > 0; rest /= size_t(shape[k])) {
      const int64_t index = int64_t(rest % size_t(shape[k])) + storage_->first(uint32_t(k));
      text = std::to_string(index) + (text.empty() ? "" : ", ") + text;
    }
    const std::string component =
        floats_.size() > 1 ? ", float " + std::to_string(number % floats_.size()) + " in it" : "";
    return name + "[" + text + "]" + component;
  }

  std::string name;
  Numbers at;

 private:
  struct Float {
    uint32_t offset;  ///< in an element on the host
    ir::Type type;
  };

  std::vector<std::byte> bytes_of(const runtime::Storage& from) const {
    std::vector<std::byte> bytes(from.element_bytes() * size_t(from.size()));
    from.read(bytes.data(), 0, from.size());
    return bytes;
  }
  Numbers numbers_in(const std::vector<std::byte>& bytes) const {
    Numbers all;
    for (size_t from = 0; from < bytes.size(); from += storage_->element_bytes())
      for (const Float& f : floats_) {
        ir::Bits bits = 0;
        std::memcpy(&bits, &bytes[from + f.offset], ir::bit_width(f.type) / 8);
        all.push_back(ir::real_of(bits, f.type));
      }
    return all;
  }
  void write_to(runtime::Storage& to, const Numbers& numbers, std::vector<std::byte> bytes) const {
    for (size_t n = 0; n < numbers.size(); n++) {
      const size_t element = n / floats_.size() * storage_->element_bytes();
      const Float& f = floats_[n % floats_.size()];
      const ir::Bits bits = ir::bits_of_real(numbers[n], f.type);
      std::memcpy(&bytes[element + f.offset], &bits, ir::bit_width(f.type) / 8);
    }
    to.write(bytes.data(), 0, to.size(), loc_);
  }

  std::shared_ptr<runtime::Storage> storage_;
  std::vector<Float> floats_;
  std::vector<std::byte> bytes_;  ///< of all elements, at first
  Loc loc_;
};

void expect_apart(const std::vector<Elements>& fields, Loc loc) {
  for (size_t a = 0; a < fields.size(); a++)
    for (size_t b = 0; b < a; b++)
      if (fields[a].overlaps(fields[b]))
        throw Error(loc, fields[b].name + " and " + fields[a].name +
                             " share elements, which a check of gradients cannot vary one by one");
}

double stored(double v, ir::Type type) { return ir::real_of(ir::bits_of_real(v, type), type); }

/// Numbers of these types, of a number each.
template <class TypeOf>
Numbers drawn(size_t count, std::mt19937_64& random, TypeOf&& type_of) {
  std::normal_distribution<double> normal;
  Numbers v(count);
  for (size_t k = 0; k < count; k++) v[k] = stored(normal(random), type_of(k));
  return v;
}
Numbers drawn_for(const Elements& field, std::mt19937_64& random) {
  return drawn(field.at.size(), random, [&](size_t k) { return field.type_of(k); });
}

/// A kernel with its arguments, whose floats are f32 and f64.
class Kernels {
 public:
  Kernels(KernelObject* kernel, std::span<const Argument> arguments, Loc loc)
      : kernel_(kernel), given_(arguments.begin(), arguments.end()), loc_(loc) {
    const ir::Kernel& source = expect_differentiable(kernel, loc);
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
    is_single_ = has_singles(source);
    for (size_t k = 0; k < all_.size(); k++) {
      const ir::Binding& b = source.bindings[k];
      if (!autodiff::has_floats(b)) continue;
      if (b.kind == ir::Binding::field) {
        const FieldObject* field =
            k < given_.size() ? given_[k].field : kernel->captured[k - given_.size()].get();
        roles_.push_back({reads[k], writes[k]});
        fields_.emplace_back(*field, b.name, loc);
      } else {
        expect_no_half(b.components[0].type, b.name);
        scalars_.push_back(k);
      }
    }
    for (ir::Type type : source.results) {
      expect_no_half(type, "a result");
      if (ir::is_float(type)) results_.push_back(type);
    }
    expect_apart(fields_, loc);
  }

  GradientReport run(std::mt19937_64& random) {
    draw(random);
    TaylorProblem problem;
    problem.is_single = is_single_;
    const std::vector<Numbers> gradient = go_back();
    for (size_t k = 0; k < fields_.size(); k++)
      if (roles_[k].read)
        add(problem,
            {fields_[k].name, fields_[k].at, gradient[k],
             [this, k](size_t n) { return fields_[k].place(n); },
             [this, k](size_t n, double v) { return stored(v, fields_[k].type_of(n)); }},
            k);
    for (size_t k = 0; k < scalars_.size(); k++) {
      const std::string name = kernel_->program->kernel().bindings[scalars_[k]].name;
      const ir::Type type = type_of_scalar(k);
      add(problem,
          {name,
           {ir::real_of(all_[scalars_[k]].bits, type)},
           gradient[fields_.size() + k],
           [name](size_t) { return name; },
           [type](size_t, double v) { return stored(v, type); }},
          fields_.size() + k);
    }
    if (problem.inputs.empty())
      throw Error(loc_, "the kernel takes no floats that a gradient could be taken by");
    problem.value = [this](size_t input, const Numbers& x) { return value(which_[input], x); };
    GradientReport report = autodiff::check_by_differences(problem, random);
    compare(report, gradient, random);
    for (const Elements& f : fields_) f.write();
    return report;
  }

 private:
  struct Role {
    bool read, written;
  };

  void expect_no_half(ir::Type type, const std::string& name) const {
    if (type == ir::Type::f16) throw Error(loc_, name + " is a half, " + hidden);
  }

  /// Is anything in the kernel rounded to f32?
  static bool has_singles(const ir::Kernel& kernel) {
    bool found = std::ranges::find(kernel.results, ir::Type::f32) != kernel.results.end();
    for (const ir::Binding& b : kernel.bindings)
      for (const ir::Component& c : b.components) found |= c.type == ir::Type::f32;
    ir::walk(kernel.body, [&](const ir::Inst* inst) {
      for (const ir::Value& v : inst->results) found |= v.type == ir::Type::f32;
    });
    return found;
  }

  /// Of the k-th argument that is a float.
  ir::Type type_of_scalar(size_t k) const {
    return kernel_->program->kernel().bindings[scalars_[k]].components[0].type;
  }

  void add(TaylorProblem& problem, TaylorProblem::Input input, size_t number) {
    if (input.at.empty()) return;
    problem.inputs.push_back(std::move(input));
    which_.push_back(number);
  }

  /// w.
  void draw(std::mt19937_64& random) {
    size_t count = results_.size();
    of_results_ = drawn(count, random, [&](size_t k) { return results_[k]; });
    for (size_t k = 0; k < fields_.size(); k++) {
      of_fields_.push_back(roles_[k].written ? drawn_for(fields_[k], random) : Numbers());
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
        sum += of_results_[n] * ir::real_of(result(k, n), type);
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
    if (changed >= fields_.size()) {
      const size_t k = changed - fields_.size();
      arguments[scalars_[k]].bits = ir::bits_of_real(x[0], type_of_scalar(k));
    }
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
    for (size_t k = 0; k < results_.size(); k++)
      seeds.push_back(ir::bits_of_real(of_results_[k], results_[k]));
    const Ref<LaunchObject> launched(
        detail::go_back(pullback.get(), seeds.data(), int(seeds.size()), loc_));
    std::vector<Numbers> all;
    for (const Elements& f : fields_) all.push_back(f.companion("adjoint"));
    for (size_t k = 0; k < scalars_.size(); k++)
      all.push_back({ir::real_of(launch_result(launched.get(), int(k), loc_), type_of_scalar(k))});
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
      const Numbers v = roles_[k].read ? drawn_for(fields_[k], random) : Numbers();
      fields_[k].write();
      fields_[k].write_companion("dual", v);
      report.reverse += times(v, gradient[k]);
    }
    std::vector<uint64_t> tangents(given_.size());
    for (size_t k = 0; k < scalars_.size(); k++) {
      const ir::Type type = type_of_scalar(k);
      const Numbers v = drawn(1, random, [&](size_t) { return type; });
      tangents[scalars_[k]] = ir::bits_of_real(v[0], type);
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
    for (const Elements& field : fields_)
      field.write_companion("dual", {});  // nobody's direction is left
    report.has_products = true;
    const double apart = std::abs(report.forward - report.reverse);
    report.product_error = apart > 0 ? apart / std::max(size, std::abs(report.forward)) : 0;
    report.passed = report.passed && report.product_error < (is_single_ ? 1e-4 : 1e-10);
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
  std::vector<ir::Type> results_;  ///< those that are floats
  bool is_single_ = false;
  Numbers of_results_;              ///< w
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
  TaylorProblem problem;
  std::vector<size_t> which;
  for (size_t k = 0; k < all.size(); k++) {
    if (all[k].at.empty()) continue;
    which.push_back(k);
    problem.is_single |= all[k].has_singles();
    problem.inputs.push_back(
        {all[k].name, all[k].at, all[k].companion("adjoint"),
         [&all, k](size_t n) { return all[k].place(n); },
         [&all, k](size_t n, double v) { return stored(v, all[k].type_of(n)); }});
  }
  problem.value = [&](size_t input, const Numbers& x) {
    for (size_t k = 0; k < all.size(); k++) all[k].write(k == which[input] ? x : all[k].at);
    return value();
  };
  std::mt19937_64 random(seed);
  GradientReport report = autodiff::check_by_differences(problem, random);
  for (const Elements& f : all) f.write();
  return report;
}

}  // namespace quern::detail

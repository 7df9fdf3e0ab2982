// Random programs, run forward and gone back through: ⟨Jv, w⟩ = ⟨v, Jᵀw⟩ for random directions; and
// ⟨Jv, w⟩ beside differences of what they compute.
//
// Programs of the fuzzer are taken in f64, so that rounding does not hide what is wrong. Those with
// what has no derivative are refused; the rest must agree wherever both are finite.
#include <cmath>
#include <map>
#include <optional>
#include <random>

#include "autodiff/forward/forward.h"
#include "autodiff/primal/activity.h"
#include "autodiff/tapes/launches.h"
#include "ir/passes/record/inline_calls.h"
#include "quern/ir/builder.h"
#include "quern/runtime/program.h"
#include "tests/catch.h"
#include "tests/fuzz/engine/generator.h"
#include "tests/fuzz/engine/storages.h"

using namespace quern;
using namespace quern::ir;

namespace {

Type widened(Type t) { return is_float(t) ? Type::f64 : t; }

/// Not subnormal: what is computed of such numbers has few digits, in either direction.
Bits widened_bits(Bits bits, Type type) {
  const double v = real_of(bits, type);
  return bits_of_real(std::fpclassify(v) == FP_SUBNORMAL ? std::copysign(1e-30, v) : v, Type::f64);
}

/// The same program with every float an f64, and quiet; false where it looks at bits of floats.
bool widen(fuzz::Program& program) {
  Kernel& kernel = *program.kernel;
  bool looks = false;
  std::vector<Inst*> prints;
  walk(kernel, [&](Inst* inst) {
    if (inst->is(Op::print)) prints.push_back(inst);
  });
  for (Inst* inst : prints) inst->erase();
  for (Type& t : kernel.results) t = widened(t);
  for (size_t k = 0; k < kernel.bindings.size(); k++) {
    fuzz::Input& input = program.inputs[k];
    for (size_t c = 0; c < kernel.bindings[k].components.size(); c++) {
      Type& type = kernel.bindings[k].components[c].type;
      if (!is_float(type)) continue;
      if (kernel.bindings[k].kind == Binding::scalar)
        input.scalar = widened_bits(input.scalar, type);
      else if (input.memory == k)
        for (Bits& b : input.components[c]) b = widened_bits(b, type);
      type = Type::f64;
    }
  }
  for (Function& f : kernel.callees)
    for (Type& t : f.results) t = widened(t);
  for (Region* root : roots(kernel)) {
    for (Value& arg : root->args) arg.type = widened(arg.type);
    walk(root, [&](Inst* inst) {
      looks |= inst->is(Op::bitcast);
      if (inst->is(Op::constant) && is_float(inst->type()))
        inst->imm = bits_of_real(real_of(inst->imm, inst->type()), Type::f64);
      inst->elem = widened(inst->elem);
      for (Value& v : inst->results) v.type = widened(v.type);
      for (Region* r : inst->regions)
        for (Value& arg : r->args) arg.type = widened(arg.type);
    });
  }
  for (Site& site : kernel.sites)
    for (Type& t : site.values) t = widened(t);
  return !looks;
}

/// Does the instruction make what is not smooth of floats: a comparison, an integer, a whole
/// number?
bool decides(const Inst* inst) {
  if (inst->results.empty() || inst->operands.empty() || !is_float(inst->operand(0)->type))
    return false;
  if (!is_float(inst->type())) return is_pure(inst->op);
  return inst->is(Op::floor) || inst->is(Op::ceil) || inst->is(Op::trunc) || inst->is(Op::round) ||
         inst->is(Op::fmod) || inst->is(Op::remainder);
}

enum class Rounding { own, another };

/// Multiplies what is computed or read of floats by 1 and some 2⁻⁵² each: what this changes much
/// hangs on how it is rounded (Parker, Monte Carlo Arithmetic, 1997).
void round_otherwise(Kernel& kernel) {
  std::vector<Inst*> all;
  walk(kernel.body, [&](Inst* inst) {
    if (inst->results.size() != 1 || inst->type() != Type::f64) return;
    const bool computes = is_pure(inst->op) && !inst->operands.empty() &&
                          is_float(inst->operand(inst->operands.size() - 1)->type);
    if (computes || inst->is(Op::load) || inst->is(Op::get)) all.push_back(inst);
  });
  Builder b(kernel);
  uint64_t n = 0;
  for (Inst* inst : all) {
    b.after(inst);
    Value* factor = b.constant(Type::f64, bits_of(1 + double(1 + n++ % 3) * 0x1p-52));
    Value* rounded = b.mul(inst->result(), factor);
    inst->result()->replace_with(rounded);
    rounded->inst->set_operand(0, inst->result());
  }
}

/// The same program, which adds a number for each such decision to one more field of one u64.
std::unique_ptr<Kernel> with_decisions(const Kernel& kernel, Rounding rounding) {
  std::unique_ptr<Kernel> made = clone(kernel);
  inline_calls(*made);
  inline_applied(*made);
  if (rounding == Rounding::another) round_otherwise(*made);
  Binding sum;
  sum.kind = Binding::field;
  sum.rank = 1;
  sum.components = {{Type::u64}};
  made->bindings.push_back(sum);
  std::vector<Inst*> all;
  walk(made->body, [&](Inst* inst) {
    if (decides(inst)) all.push_back(inst);
  });
  Builder b(*made);
  uint64_t factor = 0x9e3779b97f4a7c15;
  for (Inst* inst : all) {
    b.after(inst);
    Value* v = inst->result();
    if (inst->is(Op::fmod) || inst->is(Op::remainder)) {  // which of its branches
      Value* whole = b.sub(inst->operand(0), v);
      Value* quotient = b.div(whole, inst->operand(1));
      v = b.unary(Op::round, quotient);
    }
    v = is_float(v->type) ? b.bitcast(v, Type::u64) : b.convert(v, Type::u64);
    factor = factor * factor + 2;  // odd
    Value* number = b.mul(v, b.constant(Type::u64, factor));
    Value* zero = b.integer(Type::i32, 0);
    b.atomic(AtomicOp::add, uint32_t(made->bindings.size() - 1), 0, Type::u64, {&zero, 1},
             {&number, 1});
  }
  return made;
}

/// Inputs, outputs, or a direction of either: of scalars (or results) that are floats, and of
/// fields by binding and component.
struct Vector {
  std::vector<double> scalars;
  std::map<std::pair<size_t, size_t>, std::vector<double>> fields;
};

/// Calls f(numbers...) for what vectors of one space have at the same place.
template <class F, class First, class... Rest>
void each(F&& f, First&& first, Rest&&... rest) {
  for (size_t n = 0; n < first.scalars.size(); n++) f(first.scalars[n], rest.scalars[n]...);
  for (auto& [where, all] : first.fields)
    for (size_t n = 0; n < all.size(); n++) f(all[n], rest.fields.at(where)[n]...);
}

/// Adds a·b, and what its terms are in size.
void add_product(const Vector& a, const Vector& b, double& sum, double& size) {
  each(
      [&](double x, double y) {
        sum += x * y;
        size += std::abs(x * y);
      },
      a, b);
}

class Run {
 public:
  Run(const fuzz::Program& program, unsigned seed)
      : kernel_(*program.kernel),
        program_(program),
        device_(runtime::Device::open("interpreter")),
        random_(seed),
        augment_(seed % 2 == 0 ? autodiff::Augment::wherever_possible : autodiff::Augment::never) {}

  /// ⟨Jv, w⟩, ⟨v, Jᵀw⟩ and the sum of the magnitudes of their terms. Throws Error for what is
  /// refused.
  struct Products {
    double forward = 0, reverse = 0, size = 0;
    /// What ⟨Jv, w⟩ changes by where inputs change in half of their digits, so that what cancels is
    /// rounded otherwise: (x + c) / x has 8 digits of its slope for c = 1e-8. Known where the two
    /// differ.
    double noise = 0;
    bool differ() const { return !(std::abs(forward - reverse) <= 1e-9 * size); }
    bool agree() const { return std::abs(forward - reverse) <= 1e-9 * size + 10 * noise; }
  };
  template <class F>
  static void note_noise(Products& p, const Vector& x, F&& forward_near) {
    for (int steps : {-3, -2, -1, 1, 2, 3}) {
      Vector near = x;
      each([&](double& a) { a *= 1 + steps * 0x1p-26; }, near);
      p.noise = std::max(p.noise, std::abs(forward_near(near) - p.forward));
    }
  }
  Products products() {
    Products p = products_at(inputs());
    if (std::isfinite(p.size) && !p.agree()) {
      const Products near_one = products_at(moderate(inputs()));
      if (std::isfinite(near_one.size) && near_one.size > 1e-280 && near_one.agree())
        p.noise = p.size;
    }
    return p;
  }
  /// Going back, 1e74 is lost between terms of 1e92 that cancel, however near inputs are, and 1
  /// between the two of atan2(x, x) at 1e-30: what differs for that alone agrees for inputs without
  /// such powers.
  static Vector moderate(Vector x) {
    const auto is_moderate = [](double a) {
      return a == 0 || std::abs(std::log2(std::abs(a))) <= 4;
    };
    int exponent;
    each([&](double& a) { a = is_moderate(a) ? a : 2 * std::frexp(a, &exponent); }, x);
    return x;
  }
  Products products_at(const Vector& x) {
    Products p;
    const Vector v = drawn(x), tangents = push(x, v), w = drawn(tangents);
    const Vector pulled = pull(x, w);
    add_product(tangents, w, p.forward, p.size);
    add_product(pulled, v, p.reverse, p.size);
    if (p.differ()) {
      note_noise(p, x, [&](const Vector& near) {
        double forward = 0, size = 0;
        add_product(push(near, v), w, forward, size);
        return forward;
      });
      note_rounding(p, x, v, w);
    }
    return p;
  }
  /// What either changes by where its direction is multiplied by a number, divided by that:
  /// nothing, but for rounding. Of (c a + a) - c a with c = 2³¹ six digits of a are left, whatever
  /// is near.
  void note_rounding(Products& p, const Vector& x, const Vector& v, const Vector& w) const {
    const auto scaled = [](Vector a, double factor) {
      each([=](double& number) { number *= factor; }, a);
      return a;
    };
    for (double factor : {0.7, 1.1, 1.3, 1.9}) {
      double forward = 0, reverse = 0, size = 0;
      add_product(push(x, scaled(v, factor)), w, forward, size);
      add_product(pull(x, scaled(w, factor)), v, reverse, size);
      p.noise = std::max({p.noise, std::abs(forward / factor - p.forward),
                          std::abs(reverse / factor - p.reverse)});
    }
  }

  /// An element of J v beside differences of what it is the tangent of, on both sides of the
  /// inputs, where the program decides the same.
  struct Slope {
    static constexpr double steps[4] = {0x1p-20, 0.71 * 0x1p-20, -0.83 * 0x1p-20, -0.57 * 0x1p-20};
    double tangent = 0, value = 0;
    double differences[4] = {};
    /// Known where some element disagrees: tangents where the differences end, and the value with
    /// other roundings, NaN where the program decides otherwise for them.
    double tangents[4] = {}, rounded = 0;

    bool is_finite() const { return std::isfinite(tangent) && std::isfinite(value); }
    bool is_flat() const {
      return tangent == 0 && std::ranges::all_of(differences, [](double d) { return d == 0; });
    }
    /// Is it smooth there, and do differences have enough digits to tell?
    bool tells() const {
      const auto [least, most] = std::ranges::minmax(differences);
      const double size = std::max(std::abs(least), std::abs(most));
      const double digit = std::max(std::abs(value), 0x1p-1022) * 0x1p-52;
      const double noise = digit / std::abs(steps[3]);
      return std::isfinite(size) && most - least <= 1e-4 * size + noise &&
             noise <= 1e-5 * std::max(size, std::abs(tangent));
    }
    static bool are_near(double a, double b) {
      return std::abs(a - b) <= 1e-3 * std::max(std::abs(a), std::abs(b));
    }
    double mean() const {
      return (differences[0] + differences[1] + differences[2] + differences[3]) / 4;
    }
    bool agrees() const { return are_near(mean(), tangent); }
    /// No: the inputs are at a kink on whose sides differences are the same by chance, as of
    /// max(min(0, x), x); or it bends many times within a step, as lgamma does between far poles.
    bool is_smooth() const {
      return std::ranges::all_of(tangents, [&](double t) { return are_near(t, tangent); });
    }
    /// No: what the inputs change is lost in sums with what is larger, or of what is near 1.
    bool has_digits() const {
      const double size = std::max(std::abs(mean()), std::abs(tangent));
      return std::abs(rounded - value) <= 1e-4 * size * std::abs(steps[3]);
    }
    bool disagrees() const { return tells() && !agrees(); }
    bool is_wrong() const { return disagrees() && is_smooth() && has_digits(); }
  };
  /// None where a probe decides otherwise.
  std::optional<std::vector<Slope>> slopes() {
    const Vector x = inputs();
    Vector v = drawn(x);
    each([](double& along, double at) { along *= at == 0 ? 1e-3 : std::abs(at); }, v, x);
    const Vector tangents = push(x, v), here = outputs(x);
    const uint64_t decisions = decisions_;
    std::vector<Slope> slopes;
    each([&](double t, double value) { slopes.push_back({t, value}); }, tangents, here);
    for (size_t k = 0; k < 4; k++) {
      Vector moved = x;
      each([&](double& a, double along) { a += Slope::steps[k] * along; }, moved, v);
      const Vector there = outputs(moved);
      if (decisions_ != decisions) return {};
      size_t n = 0;
      each([&](double a, double at) { slopes[n++].differences[k] = (a - at) / Slope::steps[k]; },
           there, here);
    }
    if (std::ranges::any_of(slopes, &Slope::disagrees)) note_doubts(slopes, x, v);
    return slopes;
  }
  void note_doubts(std::vector<Slope>& slopes, const Vector& x, const Vector& v) {
    for (size_t k = 0; k < 4; k++) {
      Vector moved = x;
      each([&](double& a, double along) { a += Slope::steps[k] * along; }, moved, v);
      size_t n = 0;
      each([&](double t) { slopes[n++].tangents[k] = t; }, push(moved, v));
    }
    outputs(x);
    const uint64_t decisions = decisions_;
    const Vector rounded = outputs(x, Rounding::another);
    size_t n = 0;
    each([&](double a) { slopes[n++].rounded = decisions_ == decisions ? a : std::nan(""); },
         rounded);
  }

  /// ⟨H u, v⟩ and ⟨H v, u⟩, H being the Hessian of the sum of results and written elements, times
  /// any numbers each.
  Products curvatures() {
    autodiff::Reversed reversed(borrowed(), autodiff::inputs_of(kernel_),
                                autodiff::Reversed::second);
    const Vector x = inputs(), of = drawn(outputs(x)), along[2] = {drawn(x), drawn(x)};
    const auto product = [&](const Vector& at, size_t way, double& sum, double& size) {
      auto arguments = arguments_at(at);
      auto back =
          reversed.program(runtime::LaunchKey(arguments, kernel_.modes), autodiff::Augment::never);
      autodiff::SeenFields seen;
      const autodiff::Recorded recorded(back, arguments, seen, {});
      launch(arguments);
      write(arguments, {autodiff::adjoints}, of);
      write(arguments, {autodiff::tangents}, along[way]);
      const auto pulled = recorded.go_back(all_bits(of.scalars), {}, all_bits(along[way].scalars));
      device_->synchronize();
      Vector found = read(arguments, {autodiff::adjoints, autodiff::tangents});
      const size_t scalars = along[way].scalars.size();
      for (size_t k = 0; k < scalars; k++)
        found.scalars.push_back(real_of(pulled->result(scalars + k), Type::f64));
      add_product(found, along[1 - way], sum, size);
    };
    Products p;
    product(x, 0, p.forward, p.size);
    product(x, 1, p.reverse, p.size);
    if (p.differ())
      note_noise(p, x, [&](const Vector& near) {
        double sum = 0, size = 0;
        product(near, 0, sum, size);
        return sum;
      });
    return p;
  }

 private:
  using Arguments = std::vector<runtime::Argument>;
  using Names = std::vector<const char*>;  ///< of a companion, of a companion of that; or none

  std::shared_ptr<const Kernel> borrowed() const { return {std::shared_ptr<void>(), &kernel_}; }

  bool is_float_scalar(size_t k) const {
    const Binding& b = kernel_.bindings[k];
    return b.kind == Binding::scalar && is_float(b.components[0].type);
  }

  /// Calls f(binding, component, elements) for floats in memory of their own.
  template <class F>
  void each_field(const Arguments& arguments, const Names& names, F&& f) const {
    for (size_t k = 0; k < kernel_.bindings.size(); k++) {
      if (!arguments[k].storage || program_.inputs[k].memory != k) continue;
      std::shared_ptr<runtime::Storage> held = arguments[k].storage;
      for (const char* name : names) held = held->companion(name, {});
      const auto& components = kernel_.bindings[k].components;
      for (size_t c = 0; c < components.size(); c++)
        if (is_float(components[c].type)) f(k, c, *held->part(uint32_t(c), {8, {0}}, {}));
    }
  }
  Vector read(const Arguments& arguments, const Names& names) const {
    Vector out;
    each_field(arguments, names, [&](size_t k, size_t c, runtime::Storage& s) {
      std::vector<double>& all = out.fields[{k, c}];
      all.resize(size_t(s.size()));
      if (s.size() > 0) s.read(all.data(), 0, s.size());
    });
    return out;
  }
  void write(const Arguments& arguments, const Names& names, const Vector& v) const {
    each_field(arguments, names, [&](size_t k, size_t c, runtime::Storage& s) {
      if (s.size() > 0) s.write(v.fields.at({k, c}).data(), 0, s.size());
    });
  }

  Vector inputs() const {
    const Arguments arguments = fuzz::arguments_on(device_, program_, false);
    Vector x = read(arguments, {});
    for (size_t k = 0; k < arguments.size(); k++)
      if (is_float_scalar(k)) x.scalars.push_back(real_of(arguments[k].bits, Type::f64));
    return x;
  }
  Arguments arguments_at(const Vector& x) const {
    Arguments arguments = fuzz::arguments_on(device_, program_, false);
    write(arguments, {}, x);
    size_t n = 0;
    for (size_t k = 0; k < arguments.size(); k++)
      if (is_float_scalar(k)) arguments[k].bits = bits_of(x.scalars[n++]);
    return arguments;
  }
  /// Of the same space.
  Vector drawn(Vector like) {
    each([&](double& a) { a = normal_(random_); }, like);
    return like;
  }
  static std::vector<uint64_t> all_bits(std::span<const double> numbers) {
    std::vector<uint64_t> bits;
    for (double a : numbers) bits.push_back(bits_of(a));
    return bits;
  }

  std::shared_ptr<runtime::Outcome> launch(const Arguments& arguments) const {
    runtime::Program primal(clone(kernel_));
    device_->seed(1);
    return primal.launch(arguments, kernel_.modes, {});
  }
  /// Float results from number `first` on, and fields.
  /// `outcome`: null where the kernel has no results.
  Vector found(runtime::Outcome* outcome, size_t first, const Arguments& arguments,
               const Names& names) const {
    Vector out = read(arguments, names);
    for (size_t k = 0; k < kernel_.results.size(); k++)
      if (is_float(kernel_.results[k])) {
        out.scalars.push_back(real_of(outcome->result(first == 0 ? k : first), Type::f64));
        first += first > 0;
      }
    return out;
  }
  /// Throws InternalError where it does not do what the primal does at x.
  void launch_augmented(autodiff::Recorded& recorded, const Vector& x,
                        const Arguments& arguments) const {
    device_->seed(1);
    const auto outcome = recorded.augmented_launch(arguments, {}).run({});
    const Vector made = found(outcome.get(), 0, arguments, {});
    const Arguments own = arguments_at(x);
    const auto of_primal = launch(own);
    each(
        [](double a, double b) {
          if (!(std::abs(a - b) <= 1e-9 * std::abs(b)) && a != b &&
              !(std::isnan(a) && std::isnan(b)))
            throw InternalError("an augmented primal yields " + std::to_string(a) + ", not " +
                                std::to_string(b));
        },
        made, found(of_primal.get(), 0, own, {}));
  }
  /// Leaves the sum of the program's decisions.
  Vector outputs(const Vector& x, Rounding rounding = Rounding::own) {
    Arguments arguments = arguments_at(x);
    const auto sum = std::make_shared<runtime::Storage>(
        device_, std::vector<Storage>{{Type::u64, Type::u64}}, std::vector<int64_t>{1}, Loc{});
    arguments.push_back({0, sum});
    runtime::Program program(with_decisions(kernel_, rounding));
    device_->seed(1);
    const auto outcome = program.launch(arguments, kernel_.modes, {});
    Vector out = found(outcome.get(), 0, arguments, {});
    sum->read(&decisions_, 0, 1);
    return out;
  }
  /// J v, at x.
  Vector push(const Vector& x, const Vector& v) const {
    autodiff::Forward forward =
        autodiff::forward(kernel_, kernel_.modes, autodiff::all_directions(kernel_));
    const auto& inputs = program_.inputs;
    for (const auto& [a, b] : forward.distinct)  // as jvp does
      if (std::max(a, b) < inputs.size() && inputs[a].memory == inputs[b].memory)
        throw Error(kernel_.loc, "fields overlap whose elements are combined");
    Arguments arguments = arguments_at(x);
    write(arguments, {autodiff::tangents}, v);
    for (uint64_t bits : all_bits(v.scalars)) arguments.push_back({bits, nullptr});
    runtime::Program program(std::move(forward.kernel));
    device_->seed(1);
    const auto outcome = program.launch(arguments, kernel_.modes, {});
    return found(outcome.get(), kernel_.results.size(), arguments, {autodiff::tangents});
  }
  /// Jᵀ w, at x.
  Vector pull(const Vector& x, const Vector& w) const {
    const Arguments arguments = arguments_at(x);
    autodiff::Reversed reversed(borrowed(), autodiff::inputs_of(kernel_));
    autodiff::SeenFields seen;
    autodiff::Recorded recorded(
        reversed.program(runtime::LaunchKey(arguments, kernel_.modes), augment_), arguments, seen,
        {});
    recorded.is_augmented() ? launch_augmented(recorded, x, arguments) : void(launch(arguments));
    recorded.was_launched();
    write(arguments, {autodiff::adjoints}, w);
    const auto outcome = recorded.go_back(all_bits(w.scalars), {});
    device_->synchronize();
    Vector out = read(arguments, {autodiff::adjoints});
    for (size_t k = 0; k < recorded.scalars().size(); k++)
      out.scalars.push_back(real_of(outcome->result(k), Type::f64));
    return out;
  }

  const Kernel& kernel_;
  const fuzz::Program& program_;
  std::shared_ptr<runtime::Device> device_;
  std::mt19937 random_;
  std::normal_distribution<double> normal_;
  const autodiff::Augment augment_;
  uint64_t decisions_ = 0;
};

/// The program of a seed in f64; nothing where it looks at bits of floats.
std::optional<fuzz::Program> smooth_program(int seed) {
  fuzz::Program program = fuzz::generate(uint64_t(seed));
  finish_recording(*program.kernel);
  program.kernel->modes.checked = false;
  if (!widen(program)) return {};
  return program;
}

/// Programs of seeds up to `last`; comes back: of how many both products agreed.
int compare(int last, Run::Products (Run::*products)(), int first = 1) {
  int refused = 0, bits = 0, infinite = 0, flat = 0, agreed = 0, noisy = 0;
  for (int seed = first; seed <= last; seed++) {
    const auto program = smooth_program(seed);
    bits += !program;
    if (!program) continue;
    INFO("seed " << seed);
    try {
      const Run::Products p = (Run(*program, unsigned(seed - 1)).*products)();
      if (!std::isfinite(p.size)) {
        infinite++;
      } else if (p.size < 1e-280) {  // differences would underflow
        flat++;
      } else {
        CHECK(p.agree());
        agreed++;
        noisy += p.differ();
      }
    } catch (const Error&) {
      refused++;
    }
  }
  std::printf(
      "%d agreed, %d of them as far as roundings let them, %d refused, %d look at bits, %d "
      "infinite, %d flat\n",
      agreed, noisy, refused, bits, infinite, flat);
  CHECK(noisy <= std::max(1, agreed / 10'000));
  return agreed;
}

/// The same for differences, element by element; comes back: in how many programs some were
/// compared. Others decide otherwise closer than the step; of some elements the inputs are at a
/// kink, or rounding hides the slope, which shows by the differences themselves or, of few
/// programs, by what is asked only where they disagree with the tangent.
int compare_slopes(int last, int first = 1) {
  int refused = 0, flat = 0, compared = 0, otherwise = 0, bent = 0, rounded = 0;
  size_t elements = 0, others = 0;
  for (int seed = first; seed <= last; seed++) {
    const auto program = smooth_program(seed);
    if (!program) continue;
    INFO("seed " << seed);
    try {
      const auto slopes = Run(*program, unsigned(seed - 1)).slopes();
      otherwise += !slopes;
      if (!slopes) continue;
      size_t told = 0;
      bool is_bent = false, is_rounded = false;
      for (const Run::Slope& s : *slopes) {
        if (s.is_flat() || !s.is_finite()) continue;
        is_bent |= s.disagrees() && !s.is_smooth();
        is_rounded |= s.disagrees() && s.is_smooth() && !s.has_digits();
        if (s.is_wrong())
          FAIL_CHECK("tangent " << s.tangent << " of " << s.value << ", differences "
                                << s.differences[0] << " and " << s.differences[2]);
        (s.tells() ? told : others)++;
      }
      bent += is_bent;
      rounded += is_rounded;
      elements += told;
      (told > 0 ? compared : flat)++;
    } catch (const Error&) {
      refused++;
    }
  }
  std::printf(
      "%d programs with elements that agree, %d decide otherwise, %d refused, %d flat; %zu "
      "elements and %zu others; only where they disagree it shows of %d that they bend and of %d "
      "that roundings hide the slope\n",
      compared, otherwise, refused, flat, elements, others, bent, rounded);
  CHECK(bent + rounded <= std::max(1, compared / 1'000));
  CHECK(others <= elements);
  CHECK(otherwise <= compared);
  return compared;
}

}  // namespace

TEST_CASE("random programs: what goes forward and what goes back agree", "[host]") {
  CHECK(compare(1'000, &Run::products) > 100);
}
TEST_CASE("random programs: one whose rows no kernel was left to count", "[host]") {
  CHECK_NOTHROW(compare(89'375, &Run::products, 89'375));  // it ended the process
}
TEST_CASE("random programs: three that lose digits between terms that cancel", "[host]") {
  for (int seed : {121'811, 206'383, 262'196}) CHECK(compare(seed, &Run::products, seed) == 1);
}
TEST_CASE("random programs: what goes forward agrees with differences", "[host]") {
  CHECK(compare_slopes(1'000) > 100);
}
TEST_CASE("random programs: some whose differences tell nothing, by chance", "[host]") {
  const bool bends[] = {true, true, true, false, false, false, false};
  const int seeds[] = {8'833, 12'544, 81'904, 67'326, 90'694, 105'413, 120'602};
  for (size_t k = 0; k < 7; k++) {
    const auto program = smooth_program(seeds[k]);
    const auto slopes = Run(*program, unsigned(seeds[k] - 1)).slopes();
    INFO("seed " << seeds[k]);
    int disagreed = 0;
    for (const Run::Slope& s : *slopes) {
      if (!s.disagrees()) continue;
      disagreed++;
      CHECK_FALSE(s.is_wrong());
      CHECK(s.is_smooth() != bends[k]);
    }
    CHECK(disagreed > 0);
  }
}
TEST_CASE("random programs: Hessians are symmetric", "[host]") {
  CHECK(compare(3'000, &Run::curvatures) > 8);
}
TEST_CASE("random programs: what goes forward and what goes back agree: 100,000 of them",
          "[.long][autodiff]") {
  CHECK(compare(330'000, &Run::products) >= 100'000);
}
TEST_CASE("random programs: what goes forward agrees with differences: 50,000 of them",
          "[.long][autodiff]") {
  CHECK(compare_slopes(160'000) >= 50'000);
}

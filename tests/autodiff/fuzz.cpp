// Random programs, run forward and gone back through: ⟨Jv, w⟩ = ⟨v, Jᵀw⟩ for random directions.
//
// Programs of the fuzzer are taken in f64, so that rounding does not hide what is wrong. Those with
// what has no derivative are refused; the rest must agree wherever both are finite.
#include <cmath>
#include <map>
#include <random>

#include "autodiff/activity.h"
#include "autodiff/forward.h"
#include "autodiff/launches.h"
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

using Vector = std::map<std::pair<size_t, size_t>, std::vector<double>>;  ///< by binding, component

class Run {
 public:
  Run(const fuzz::Program& program, unsigned seed)
      : kernel_(*program.kernel),
        program_(program),
        device_(runtime::Device::open("interpreter")),
        random_(seed) {}

  /// ⟨Jv, w⟩, ⟨v, Jᵀw⟩ and the sum of the magnitudes of their terms. Throws Error for what is refused.
  struct Products {
    double forward = 0, reverse = 0, size = 0;
  };
  Products products() {
    autodiff::Forward forward =
        autodiff::forward(kernel_, kernel_.modes, autodiff::all_directions(kernel_));
    auto arguments = fuzz::arguments_on(device_, program_, false);
    autodiff::Reversed reversed(std::shared_ptr<const Kernel>(std::shared_ptr<void>(), &kernel_),
                                autodiff::inputs_of(kernel_));
    auto back = reversed.program(runtime::premises_of(arguments, kernel_.modes));

    // Forward, from v.
    const Vector v = drawn(arguments), w = drawn(arguments);
    write(arguments, autodiff::tangents, v);
    runtime::Program push(std::move(forward.kernel));
    device_->seed(1);
    std::vector<runtime::Argument> all = arguments;
    std::vector<double> scalars, seeds;
    for (size_t k = 0; k < forward.tangent_of.size(); k++)
      if (forward.tangent_of[k] != no_binding) {
        scalars.push_back(normal_(random_));
        all.push_back({bits_of(scalars.back()), nullptr});
      }
    const auto pushed = push.launch(all, kernel_.modes, {});
    Products p;
    size_t tangent = kernel_.results.size();
    for (Type t : kernel_.results)
      if (is_float(t)) {
        seeds.push_back(normal_(random_));
        add(p.forward, p.size, real_of(pushed->result(tangent++), Type::f64), seeds.back());
      }
    add_product(arguments, {autodiff::tangents}, w, p.forward, p.size);

    // Back, from w.
    arguments = fuzz::arguments_on(device_, program_, false);
    autodiff::Recorded recorded(back, arguments, {});
    runtime::Program primal(clone(kernel_));
    device_->seed(1);
    primal.launch(arguments, kernel_.modes, {});
    recorded.was_launched();
    write(arguments, autodiff::adjoints, w);
    std::vector<uint64_t> bits;
    for (double s : seeds) bits.push_back(bits_of(s));
    const auto pulled = recorded.go_back(bits, {});
    device_->synchronize();
    for (size_t k = 0; k < scalars.size(); k++)
      add(p.reverse, p.size, real_of(pulled->result(k), Type::f64), scalars[k]);
    add_product(arguments, {autodiff::adjoints}, v, p.reverse, p.size);
    return p;
  }

  /// ⟨H u, v⟩ and ⟨H v, u⟩, H being the Hessian of the sum of results and written elements, times any
  /// numbers each.
  Products curvatures() {
    auto arguments = fuzz::arguments_on(device_, program_, false);
    autodiff::Reversed reversed(std::shared_ptr<const Kernel>(std::shared_ptr<void>(), &kernel_),
                                autodiff::inputs_of(kernel_), true);
    auto back = reversed.program(runtime::premises_of(arguments, kernel_.modes));
    const Vector of = drawn(arguments), fields[2] = {drawn(arguments), drawn(arguments)};
    std::vector<double> scalars[2];
    std::vector<uint64_t> seeds;
    for (Type t : kernel_.results)
      if (is_float(t)) seeds.push_back(bits_of(normal_(random_)));
    for (std::vector<double>& s : scalars)
      for (size_t k = 0; k < back->reverse.scalars.size(); k++) s.push_back(normal_(random_));
    Products p;
    for (size_t way = 0; way < 2; way++) {
      double& sum = way == 0 ? p.forward : p.reverse;
      arguments = fuzz::arguments_on(device_, program_, false);
      const autodiff::Recorded recorded(back, arguments, {});
      runtime::Program primal(clone(kernel_));
      primal.launch(arguments, kernel_.modes, {});
      write(arguments, autodiff::adjoints, of);
      write(arguments, autodiff::tangents, fields[way]);
      std::vector<uint64_t> along;
      for (double s : scalars[way]) along.push_back(bits_of(s));
      const auto pulled = recorded.go_back(seeds, {}, along);
      device_->synchronize();
      for (size_t k = 0; k < along.size(); k++)
        add(sum, p.size, real_of(pulled->result(along.size() + k), Type::f64), scalars[1 - way][k]);
      add_product(arguments, {autodiff::adjoints, autodiff::tangents}, fields[1 - way], sum,
                  p.size);
    }
    return p;
  }

 private:
  static void add(double& sum, double& size, double a, double b) {
    sum += a * b;
    size += std::abs(a * b);
  }

  using Names = std::vector<const char*>;  ///< of a companion, of a companion of that

  /// Calls f(binding, component, its companion's elements) for floats in memory of their own.
  template <class F>
  void each(const std::vector<runtime::Argument>& arguments, const Names& names, F&& f) {
    for (size_t k = 0; k < arguments.size(); k++) {
      if (!arguments[k].storage || program_.inputs[k].memory != k) continue;
      std::shared_ptr<runtime::Storage> companion = arguments[k].storage;
      for (const char* name : names) companion = companion->companion(name, {});
      const auto& components = kernel_.bindings[k].components;
      for (size_t c = 0; c < components.size(); c++)
        if (is_float(components[c].type)) f(k, c, *companion->part(uint32_t(c), {8, {0}}, {}));
    }
  }
  Vector drawn(const std::vector<runtime::Argument>& arguments) {
    Vector out;
    each(arguments, {autodiff::tangents}, [&](size_t k, size_t c, runtime::Storage& s) {
      std::vector<double>& all = out[{k, c}];
      for (int64_t n = 0; n < s.size(); n++) all.push_back(normal_(random_));
    });
    return out;
  }
  void write(const std::vector<runtime::Argument>& arguments, const char* name, const Vector& v) {
    each(arguments, {name}, [&](size_t k, size_t c, runtime::Storage& s) {
      if (s.size() > 0) s.write(v.at({k, c}).data(), 0, s.size());
    });
  }
  void add_product(const std::vector<runtime::Argument>& arguments, const Names& name,
                   const Vector& v, double& sum, double& size) {
    each(arguments, name, [&](size_t k, size_t c, runtime::Storage& s) {
      std::vector<double> found(size_t(s.size()));
      if (s.size() > 0) s.read(found.data(), 0, s.size());
      for (size_t n = 0; n < found.size(); n++) add(sum, size, found[n], v.at({k, c})[n]);
    });
  }

  const Kernel& kernel_;
  const fuzz::Program& program_;
  std::shared_ptr<runtime::Device> device_;
  std::mt19937 random_;
  std::normal_distribution<double> normal_;
};

}  // namespace

namespace {
/// Programs of seeds from 1 on; comes back: of how many both products agreed.
int compare(int programs, Run::Products (Run::*products)()) {
  int refused = 0, bits = 0, infinite = 0, flat = 0, agreed = 0;
  for (int k = 0; k < programs; k++) {
    fuzz::Program program = fuzz::generate(uint64_t(k) + 1);
    finish_recording(*program.kernel);
    if (!widen(program)) {
      bits++;
      continue;
    }
    program.kernel->modes.checked = false;
    INFO("seed " << k + 1);
    try {
      const Run::Products p = (Run(program, unsigned(k)).*products)();
      if (!std::isfinite(p.size)) {
        infinite++;
      } else if (p.size < 1e-280) {  // differences would underflow
        flat++;
      } else {
        CHECK(std::abs(p.forward - p.reverse) <= 1e-9 * p.size);
        agreed++;
      }
    } catch (const Error&) {
      refused++;
    }
  }
  std::printf("%d agreed, %d refused, %d look at bits, %d infinite, %d flat\n", agreed, refused,
              bits, infinite, flat);
  return agreed;
}
}  // namespace

TEST_CASE("random programs: what goes forward and what goes back agree") {
  CHECK(compare(1'000, &Run::products) > 100);
}
TEST_CASE("random programs: Hessians are symmetric") {
  CHECK(compare(3'000, &Run::curvatures) > 8);
}
TEST_CASE("random programs: what goes forward and what goes back agree: 100,000 of them",
          "[.long][autodiff]") {
  CHECK(compare(330'000, &Run::products) >= 100'000);
}

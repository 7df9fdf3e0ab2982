#include "quern/ir/math.h"

#include <map>
#include <string>

#include "ir/math/functions.h"

namespace quern::ir {

namespace {
using math::Expr;

class Library {
 public:
  Library() {
    unary(Op::sin, math::sin_f32, math::sin_f64);
    unary(Op::cos, math::cos_f32, math::cos_f64);
    unary(Op::tan, math::tan_f32, math::tan_f64);
    unary(Op::asin, math::asin_f32, math::asin_f64);
    unary(Op::acos, math::acos_f32, math::acos_f64);
    unary(Op::atan, math::atan_f32, math::atan_f64);
    unary(Op::sinh, math::sinh_f32, math::sinh_f64);
    unary(Op::cosh, math::cosh_f32, math::cosh_f64);
    unary(Op::tanh, math::tanh_f32, math::tanh_f64);
    unary(Op::sech2, math::sech2_f32, math::sech2_f64);
    unary(Op::asinh, math::asinh_f32, math::asinh_f64);
    unary(Op::acosh, math::acosh_f32, math::acosh_f64);
    unary(Op::atanh, math::atanh_f32, math::atanh_f64);
    unary(Op::exp, math::exp_f32, math::exp_f64);
    unary(Op::exp2, math::exp2_f32, math::exp2_f64);
    unary(Op::expm1, math::expm1_f32, math::expm1_f64);
    unary(Op::log, math::log_f32, math::log_f64);
    unary(Op::log2, math::log2_f32, math::log2_f64);
    unary(Op::log10, math::log10_f32, math::log10_f64);
    unary(Op::log1p, math::log1p_f32, math::log1p_f64);
    unary(Op::cbrt, math::cbrt_f32, math::cbrt_f64);
    unary(Op::rsqrt, math::rsqrt_f32, math::rsqrt_f64);
    unary(Op::erf, math::erf_f32, math::erf_f64);
    unary(Op::erfc, math::erfc_f32, math::erfc_f64);
    unary(Op::tgamma, math::tgamma_f32, math::tgamma_f64);
    unary(Op::lgamma, math::lgamma_f32, math::lgamma_f64);
    binary(Op::atan2, math::atan2_f32, math::atan2_f64);
    binary(Op::pow, math::pow_f32, math::pow_f64);
    binary(Op::hypot, math::hypot_f32, math::hypot_f64);
    binary(Op::fmod, math::fmod_f32, math::fmod_f64);
    binary(Op::remainder, math::remainder_f32, math::remainder_f64);
    auto ternary = [](auto f) { return [f](const Expr* a) { return f(a[0], a[1], a[2]); }; };
    add(Op::fma, Type::f32, 3, ternary(math::fma_f32));
    add(Op::fma, Type::f64, 3, ternary(math::fma_f64));
    add(Op::div, Type::f32, 2, [](const Expr* a) { return math::div_f32(a[0], a[1]); });
    add(Op::sqrt, Type::f32, 1, [](const Expr* a) { return math::sqrt_f32(a[0]); });
    write(widen_half, "widen_half", {Type::u16},
          [](const Expr* a) { return math::widen_half(a[0]); });
    write(round_to_half, "round_to_half", {Type::f32},
          [](const Expr* a) { return math::round_to_half(a[0]); });
    write(round_to_odd, "round_to_odd", {Type::f64},
          [](const Expr* a) { return math::round_to_odd(a[0]); });
  }

  const Function& get(Op op, Type type) const {
    auto found = functions_.find({op, type});
    if (found == functions_.end())
      throw InternalError("the math library has no " + std::string(info(op).name) + " for " +
                          std::string(name(type)));
    return found->second;
  }

  Function widen_half, round_to_half, round_to_odd;

 private:
  template <class F>
  void write(Function& f, std::string name, std::vector<Type> parameters, F body) {
    f.name = std::move(name);
    math::Writer writer{Builder(arena_)};
    f.body = writer.builder.make_region(std::span<const Type>(parameters));
    writer.builder.at_end(f.body);
    std::vector<Expr> args;
    for (Value& v : f.body->args) args.push_back({&writer, &v});
    Expr result = body(args.data());
    f.results = {result.type()};
    writer.builder.yield({result.v});
  }
  template <class F>
  void add(Op op, Type type, size_t arity, F body) {
    write(functions_[{op, type}], std::string(info(op).name) + "_" + std::string(name(type)),
          std::vector<Type>(arity, type), body);
  }
  static Expr single(Expr a) { return math::convert(a, Type::f32); }
  static Expr half(Expr a) { return math::convert(a, Type::f16); }
  void unary(Op op, Expr (*f32)(Expr), Expr (*f64)(Expr)) {
    add(op, Type::f16, 1, [=](const Expr* a) { return half(f32(single(a[0]))); });
    add(op, Type::f32, 1, [=](const Expr* a) { return f32(a[0]); });
    add(op, Type::f64, 1, [=](const Expr* a) { return f64(a[0]); });
  }
  void binary(Op op, Expr (*f32)(Expr, Expr), Expr (*f64)(Expr, Expr)) {
    add(op, Type::f16, 2, [=](const Expr* a) { return half(f32(single(a[0]), single(a[1]))); });
    add(op, Type::f32, 2, [=](const Expr* a) { return f32(a[0], a[1]); });
    add(op, Type::f64, 2, [=](const Expr* a) { return f64(a[0], a[1]); });
  }

  Arena arena_;
  std::map<std::pair<Op, Type>, Function> functions_;
};

const Library& library() {
  static const Library* const instance = new Library;  // lives as long as any kernel may
  return *instance;
}
}  // namespace

const Function& math_function(Op op, Type type) { return library().get(op, type); }
const Function& fma_function(Type type) { return library().get(Op::fma, type); }
const Function& div_function(Type type) { return library().get(Op::div, type); }
const Function& sqrt_function(Type type) { return library().get(Op::sqrt, type); }
const Function& widen_half_function() { return library().widen_half; }
const Function& round_to_half_function() { return library().round_to_half; }
const Function& round_to_odd_function() { return library().round_to_odd; }

}  // namespace quern::ir

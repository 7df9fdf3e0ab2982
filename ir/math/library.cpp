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
    unary(Op::exp, math::exp_f32, math::exp_f64);
    unary(Op::log, math::log_f32, math::log_f64);
    binary(Op::atan2, math::atan2_f32, math::atan2_f64);
    binary(Op::pow, math::pow_f32, math::pow_f64);
    auto ternary = [](auto f) { return [f](const Expr* a) { return f(a[0], a[1], a[2]); }; };
    add(Op::fma, Type::f32, 3, ternary(math::fma_f32));
    add(Op::fma, Type::f64, 3, ternary(math::fma_f64));
    add(Op::div, Type::f32, 2, [](const Expr* a) { return math::div_f32(a[0], a[1]); });
    add(Op::sqrt, Type::f32, 1, [](const Expr* a) { return math::sqrt_f32(a[0]); });
  }

  const Function& get(Op op, Type type) const {
    auto found = functions_.find({op, type});
    if (found == functions_.end())
      throw InternalError("the math library has no " + std::string(info(op).name) + " for " +
                          std::string(name(type)));
    return found->second;
  }

 private:
  template <class F>
  void add(Op op, Type type, size_t arity, F write) {
    Function& f = functions_[{op, type}];
    f.name = std::string(info(op).name) + "_" + std::string(name(type));
    f.results = {type};
    math::Writer writer{Builder(arena_)};
    std::vector<Type> types(arity, type);
    f.body = writer.builder.make_region(std::span<const Type>(types));
    writer.builder.at_end(f.body);
    std::vector<Expr> args;
    for (Value& v : f.body->args) args.push_back({&writer, &v});
    Expr result = write(args.data());
    writer.builder.yield({result.v});
  }
  void unary(Op op, Expr (*f32)(Expr), Expr (*f64)(Expr)) {
    add(op, Type::f32, 1, [=](const Expr* a) { return f32(a[0]); });
    add(op, Type::f64, 1, [=](const Expr* a) { return f64(a[0]); });
  }
  void binary(Op op, Expr (*f32)(Expr, Expr), Expr (*f64)(Expr, Expr)) {
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

}  // namespace quern::ir

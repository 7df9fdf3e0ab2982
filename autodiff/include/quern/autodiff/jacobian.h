#pragma once
// All derivatives of kernels that are functions of a few scalars.
#include <vector>

#include "quern/autodiff/gradient.h"
#include "quern/autodiff/jvp.h"

namespace quern {

/// A matrix of the host's.
class HostMatrix {
 public:
  HostMatrix(int rows, int columns)
      : rows_(rows), columns_(columns), entries_(size_t(rows) * size_t(columns)) {}
  int rows() const { return rows_; }
  int columns() const { return columns_; }
  /// Both are numbered from 0.
  double& operator()(int row, int column) { return entries_[place(row, column)]; }
  double operator()(int row, int column) const { return entries_[place(row, column)]; }
  /// Row by row.
  const std::vector<double>& entries() const { return entries_; }

 private:
  size_t place(int row, int column) const {
    return size_t(row) * size_t(columns_) + size_t(column);
  }
  int rows_, columns_;
  std::vector<double> entries_;
};

namespace detail {

/// The floats among scalars: their places, and the types of their derivatives.
template <int N>
struct FloatPlaces {
  int count = 0;
  int at[size_t(N) + 1] = {};
  bool is_double[size_t(N) + 1] = {};
  bool is_float_at[size_t(N) + 1] = {};  ///< of each scalar
  consteval void add(Scalar s, int place) {
    is_float_at[place] = is_float(s);
    if (!is_float(s)) return;
    at[count] = place;
    is_double[count++] = s == Scalar::f64;
  }
};
/// Those among arguments for parameters X….
template <class... X>
struct ArgumentFloats {
  static constexpr int arguments = (Parameter<X>::count + ... + 0);
  static consteval FloatPlaces<arguments> places() {
    FloatPlaces<arguments> all;
    int at = 0;
    (add<X>(all, at), ...);
    return all;
  }

 private:
  template <class Y>
  static consteval void add(FloatPlaces<arguments>& all, int& at) {
    if constexpr (!std::is_void_v<typename ScalarsOfParameter<Y>::type>) {
      int k = 0;
      for (Scalar s : scalars_of<typename ScalarsOfParameter<Y>::type>.v) all.add(s, at + k++);
    }
    at += Parameter<Y>::count;
  }
};
template <class... T>
consteval auto result_floats(Types<T...>) {
  FloatPlaces<TypeList<Types<T...>>::count> all;
  int k = 0;
  for (Scalar s : TypeList<Types<T...>>::list.v) all.add(s, k++);
  return all;
}

uint64_t derivative_bits(double v, bool is_double);
double derivative_value(uint64_t bits, bool is_double);
/// Throws Error at the line of the first write to a field.
void expect_no_writes(KernelObject* kernel, Loc loc);

}  // namespace detail

template <class Signature>
class Jacobian;

/// ∂f_i/∂x_j of a kernel f, for the floats among its results, in their order, and those among its
/// arguments: components of vectors, matrices (by rows) and structures one by one. Fields that it
/// reads are constants. It is launched once for each column, so it is for few arguments.
template <class R, class... A>
class Jacobian<R(A...)> {
 public:
  /// Throws Error as Jvp does, and for a kernel that writes fields: each launch would.
  explicit Jacobian(const Kernel<R(A...)>& kernel, Loc l = Loc::here()) {
    detail::expect_no_writes(kernel.object(), l);
    object_ = detail::Ref<detail::ForwardObject>(detail::make_forward(kernel.object(), false, l));
  }
  /// Waits.
  HostMatrix operator()(typename detail::Parameter<detail::bare<A>>::host... a,
                        Loc l = Loc::here()) const {
    using From = detail::ArgumentFloats<detail::bare<A>...>;
    using To = typename detail::ResultOf<R>::types;
    static constexpr auto columns = From::places();
    static constexpr auto rows = detail::result_floats(To{});
    static_assert(columns.count > 0 && rows.count > 0,
                  "quern: a Jacobian is that of floats by floats, and this kernel takes or yields "
                  "none");
    detail::Argument arguments[size_t(From::arguments) + 1];
    detail::pass_values<detail::bare<A>...>(arguments, a...);
    HostMatrix made(rows.count, columns.count);
    for (int j = 0; j < columns.count; j++) {
      uint64_t tangents[size_t(From::arguments) + 1] = {};
      tangents[columns.at[j]] = detail::derivative_bits(1, columns.is_double[j]);
      detail::Ref<detail::LaunchObject> launch(
          detail::launch_forward(object_.get(), arguments, tangents, From::arguments, l));
      for (int i = 0; i < rows.count; i++)
        made(i, j) = detail::derivative_value(
            detail::launch_result(launch.get(), detail::TypeList<To>::count + i, l),
            rows.is_double[i]);
    }
    return made;
  }

 private:
  detail::Ref<detail::ForwardObject> object_;
};
template <class Signature>
Jacobian<Signature> jacobian(const Kernel<Signature>& kernel, Loc l = Loc::here()) {
  return Jacobian<Signature>(kernel, l);
}

template <class Signature>
class Hessian;

/// ∂²f/∂x_i∂x_j of a kernel f with one float for its result, by the floats among its arguments, as
/// Jacobian has them. It is launched once for each column, forward over reverse.
template <class R, class... A>
class Hessian<R(A...)> {
 public:
  /// Throws Error for a kernel that writes fields: each launch would.
  explicit Hessian(const Kernel<R(A...)>& kernel, Loc l = Loc::here()) {
    static_assert(detail::OneFloat<typename detail::ResultOf<R>::types>::value,
                  "quern: a Hessian is that of one float, and this kernel yields something else");
    detail::expect_no_writes(kernel.object(), l);
    using From = detail::ArgumentFloats<detail::bare<A>...>;
    static constexpr auto floats = From::places();
    object_ = detail::Ref<detail::GradientObject>(detail::make_gradient(
        kernel.object(),
        {.all = false, .arguments = floats.is_float_at, .argument_count = From::arguments}, true,
        l));
  }
  /// Waits. Throws Error as Vjp does.
  HostMatrix operator()(typename detail::Parameter<detail::bare<A>>::host... a,
                        Loc l = Loc::here()) const {
    using From = detail::ArgumentFloats<detail::bare<A>...>;
    static constexpr auto floats = From::places();
    static_assert(floats.count > 0, "quern: a Hessian is by floats, and this kernel takes none");
    detail::Argument arguments[size_t(From::arguments) + 1];
    detail::pass_values<detail::bare<A>...>(arguments, a...);
    HostMatrix made(floats.count, floats.count);
    for (int j = 0; j < floats.count; j++) {
      uint64_t tangents[size_t(From::arguments) + 1] = {};
      tangents[floats.at[j]] = detail::derivative_bits(1, floats.is_double[j]);
      const detail::GradientLaunches launches =
          detail::launch_gradient(object_.get(), arguments, tangents, From::arguments, l);
      const detail::Ref<detail::LaunchObject> value(launches.value), both(launches.derivatives);
      for (int i = 0; i < floats.count; i++)
        made(i, j) = detail::derivative_value(
            detail::launch_result(both.get(), floats.count + i, l), floats.is_double[i]);
    }
    return made;
  }

 private:
  detail::Ref<detail::GradientObject> object_;
};
template <class Signature>
Hessian<Signature> hessian(const Kernel<Signature>& kernel, Loc l = Loc::here()) {
  return Hessian<Signature>(kernel, l);
}

}  // namespace quern

#pragma once
// The library's rules, by the names that by_rule gives them. Each records a function for arguments
// and results of the types of `f`.
#include "autodiff/rules/rules.h"
#include "dsl/recording.h"
#include "quern/kernels/func.h"

namespace quern::autodiff {

/// Null: there is none for these types.
using RecordedRule = detail::Ref<detail::FuncObject>;

RecordedRule svd_rule(const ir::Function& f, Direction direction);
RecordedRule polar_rule(const ir::Function& f, Direction direction);
RecordedRule eigen_rule(const ir::Function& f, Direction direction);
RecordedRule inverse_rule(const ir::Function& f, Direction direction);
RecordedRule solve_rule(const ir::Function& f, Direction direction);
RecordedRule lerp_rule(const ir::Function& f, Direction direction);

/// What `push` or `pull` record, functions of the language without captures.
template <class Push, class Pull>
RecordedRule record(Direction direction, Push push, Pull pull) {
  const auto recorded = [](const auto& func) {
    detail::retain(func.object());
    return RecordedRule(func.object());
  };
  return direction == Direction::forward ? recorded(Func(push)) : recorded(Func(pull));
}

/// with.operator()<T, N>() for square matrices of N rows with elements T that `f` takes, of
/// `elements` in all; null: it takes none of these.
template <class T, int... N, class F>
RecordedRule of_size(const ir::Function& f, size_t elements, F with) {
  RecordedRule made;
  if (f.results[0] == detail::type_of_scalar(detail::scalar_of<T>()))
    ((elements == size_t(N * N) ? void(made = with.template operator()<T, N>()) : void()), ...);
  return made;
}

/// Of decompositions.
template <class F>
RecordedRule for_decomposed(const ir::Function& f, F with) {
  const size_t elements = f.body->args.size();
  RecordedRule made = of_size<float, 2, 3>(f, elements, with);
  return made ? made : of_size<double, 2, 3>(f, elements, with);
}
/// Of functions that take any matrix.
template <class F>
RecordedRule for_any(const ir::Function& f, size_t elements, F with) {
  RecordedRule made = of_size<float, 2, 3, 4>(f, elements, with);
  if (!made) made = of_size<double, 2, 3, 4>(f, elements, with);
  return made ? made : of_size<half, 2, 3, 4>(f, elements, with);
}

}  // namespace quern::autodiff

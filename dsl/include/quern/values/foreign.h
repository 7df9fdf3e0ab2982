#pragma once
// Structures of other people's, as C headers declare them: QUERN_STRUCT names their members, and
// they are used like structures with a world parameter.
#include "quern/values/parts.h"

namespace quern::detail {

/// What a member of this type is on the device: of a C array an Array.
template <class M>
struct MemberType {
  using type = M;
};
template <class M, std::size_t N>
struct MemberType<M[N]> {
  using type = Array<typename MemberType<M>::type, int(N)>;
};
template <class S, class M>
MemberType<M> member_type(M S::*);
template <auto P>
using member_t = typename decltype(member_type(P))::type;

/// Traits of the structure S with the members that P… point to.
template <class S, auto... P>
struct ForeignTraits : StructureTraits<S, Types<member_t<P>...>> {
  static_assert((Traits<member_t<P>>::supported && ...),
                "quern: a member named in QUERN_STRUCT has a type that no device value has; those "
                "that have are bool, integers, float, double, vectors and matrices, arrays of "
                "them, and structures declared before");
  static_assert(sizeof...(P) <= 16, "quern: a structure has 1 to 16 members");
  template <class V, class F>
  static constexpr void each(V& v, F&& f) {
    (Traits<member_t<P>>::each(v.*P, f), ...);
  }
};

}  // namespace quern::detail

// m(S, member) for each member.
#define QUERN_EACH(m, S, ...) QUERN_SCAN_3(QUERN_EACH_STEP(m, S, __VA_ARGS__))
#define QUERN_EACH_STEP(m, S, first, ...) \
  m(S, first) __VA_OPT__(QUERN_EACH_AGAIN QUERN_PARENTHESES(m, S, __VA_ARGS__))
#define QUERN_EACH_AGAIN() QUERN_EACH_STEP
#define QUERN_PARENTHESES ()
#define QUERN_SCAN_3(...) QUERN_SCAN_2(QUERN_SCAN_2(QUERN_SCAN_2(QUERN_SCAN_2(__VA_ARGS__))))
#define QUERN_SCAN_2(...) QUERN_SCAN_1(QUERN_SCAN_1(QUERN_SCAN_1(QUERN_SCAN_1(__VA_ARGS__))))
#define QUERN_SCAN_1(...) __VA_ARGS__

#define QUERN_MEMBER_POINTER(S, name) , &S::name
#define QUERN_MEMBER_OF_WORLD(S, name) K<::quern::detail::member_t<&S::name>> name;
// The alias keeps the name's meaning: in quern's namespace it might have another.
#define QUERN_STRUCT_AS(S, Type, ...)                                                        \
  using S = Type;                                                                            \
  template <>                                                                                \
  struct quern::detail::Traits<S>                                                            \
      : quern::detail::ForeignTraits<S QUERN_EACH(QUERN_MEMBER_POINTER, S, __VA_ARGS__)> {}; \
  template <template <class> class K>                                                        \
  struct quern::detail::InWorld<K, S> {                                                      \
    struct quern_world {                                                                     \
      QUERN_EACH(QUERN_MEMBER_OF_WORLD, S, __VA_ARGS__)                                      \
    };                                                                                       \
    using type = quern_world;                                                                \
  };                                                                                         \
  static_assert(sizeof(S) > 0)
#define QUERN_STRUCT_NAME_(n) quern_foreign_##n
#define QUERN_STRUCT_NAME(n) QUERN_STRUCT_NAME_(n)

/// `QUERN_STRUCT(Body, mass, pos, shape);` makes `struct Body { float mass, pos[3]; Shape shape;
/// };` a type for values, variables, elements of fields, parameters and results, with these
/// members: up to 16. A member that is not named stays on the host: it is not copied. Stands
/// outside all namespaces, before the type's first use.
#define QUERN_STRUCT(Type, ...) QUERN_STRUCT_AS(QUERN_STRUCT_NAME(__COUNTER__), Type, __VA_ARGS__)

#pragma once
// Structures of the user's, one template for every use of them:
//
//   template <class W = HostW> struct Particle {
//     In<W, vec3> x, v;
//     In<W, float> mass;
//     auto kinetic() const { return 0.5f * mass * dot(v, v); }
//   };
//
// Particle<> is the host's structure; Field<Particle<>>, Val<Particle<>>, Var<Particle<>> hold it
// on the device, with the members and methods of the template in their world.
#include <cstddef>
#include <type_traits>
#include <utility>

namespace quern {

/// The world of the host: a member is the type itself.
struct HostW {
  template <class T>
  using member = T;
};
/// The world of values, variables or elements: a member is K<T>.
template <template <class> class K>
struct DeviceW {
  template <class T>
  using member = K<T>;
};
/// A member of type T in the world W.
template <class W, class T>
using In = typename W::template member<T>;

namespace detail {

template <class... T>
struct Types {
  static constexpr int size = int(sizeof...(T));
};

template <std::size_t K, class T, class... R>
struct NthOf : NthOf<K - 1, R...> {};
template <class T, class... R>
struct NthOf<0, T, R...> {
  using type = T;
};
template <std::size_t K, class... T>
using Nth = typename NthOf<K, T...>::type;

struct AnyMember {
  template <class T>
  constexpr operator T() const noexcept;
};
/// How many members does the aggregate S have? (An idea of Boost.PFR: one more initialiser than
/// members does not compile.)
template <class S, class... A>
consteval int member_count() {
  if constexpr (requires { S{A{}..., AnyMember{}}; })
    return member_count<S, A..., AnyMember>();
  else
    return int(sizeof...(A));
}

/// Calls f with the first N members of s, all it has.
template <int N, class S, class F>
constexpr decltype(auto) with_members(S& s, F&& f) {
  static_assert(N >= 1 && N <= 16, "quern: a structure has 1 to 16 members");
#define QUERN_MEMBERS(n, ...) \
  if constexpr (N == n) {     \
    auto& [__VA_ARGS__] = s;  \
    return f(__VA_ARGS__);    \
  }
  QUERN_MEMBERS(1, a)
  QUERN_MEMBERS(2, a, b)
  QUERN_MEMBERS(3, a, b, c)
  QUERN_MEMBERS(4, a, b, c, d)
  QUERN_MEMBERS(5, a, b, c, d, e)
  QUERN_MEMBERS(6, a, b, c, d, e, g)
  QUERN_MEMBERS(7, a, b, c, d, e, g, h)
  QUERN_MEMBERS(8, a, b, c, d, e, g, h, i)
  QUERN_MEMBERS(9, a, b, c, d, e, g, h, i, j)
  QUERN_MEMBERS(10, a, b, c, d, e, g, h, i, j, k)
  QUERN_MEMBERS(11, a, b, c, d, e, g, h, i, j, k, l)
  QUERN_MEMBERS(12, a, b, c, d, e, g, h, i, j, k, l, m)
  QUERN_MEMBERS(13, a, b, c, d, e, g, h, i, j, k, l, m, n)
  QUERN_MEMBERS(14, a, b, c, d, e, g, h, i, j, k, l, m, n, o)
  QUERN_MEMBERS(15, a, b, c, d, e, g, h, i, j, k, l, m, n, o, p)
  QUERN_MEMBERS(16, a, b, c, d, e, g, h, i, j, k, l, m, n, o, p, q)
#undef QUERN_MEMBERS
}

/// The members' types of the host's structure S.
template <class S>
struct Members {
  static constexpr int count = member_count<S>();
  template <class... M>
  static Types<std::remove_cvref_t<M>...> list(M&...);
  static auto types(S& s) {
    return with_members<count>(s, [](auto&... m) { return decltype(list(m...)){}; });
  }
  using type = decltype(types(std::declval<S&>()));
};

}  // namespace detail
}  // namespace quern

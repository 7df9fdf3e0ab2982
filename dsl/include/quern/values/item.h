#pragma once
// What `a[i]` of a local array yields, and `v.xy()` of a variable: the value of these parts, read at
// once; assignable only as a temporary.
#include "quern/values/var.h"

namespace quern {
namespace detail {
template <class U>
void refuse_item() {
  static_assert(never<U>,
                "quern: this names the value of an array's element (or of a swizzle), so assigning "
                "to it would not reach the array; write `a[i] = v`, or `Var v = a[i];` for a copy "
                "to change");
}
template <class T>
[[gnu::cold, gnu::noinline]] void put_items(const Ids<T>& items, const Ids<T>& v, Loc loc) {
  for (int k = 0; k < count_of<T>; k++) put(items.v[k], v.v[k], loc);
}
}  // namespace detail

#define QUERN_ITEM(symbol, op, numbers, integers)                      \
  void operator symbol(Arg<T> v_)&& {                                  \
    static_assert(detail::Compound<T, numbers, integers>::ok);         \
    detail::update_all(detail::Op::op, quern_items(), v_.ids, v_.loc); \
  }                                                                    \
  template <detail::Operand U>                                         \
  void operator symbol(const U&)& {                                    \
    detail::refuse_item<U>();                                          \
  }
#define QUERN_ITEMS                    \
  Item& operator=(const Item&)         \
    requires(sizeof(T) == 0);          \
  template <detail::Operand U>         \
  void operator=(const U&)& {          \
    detail::refuse_item<U>();          \
  }                                    \
  QUERN_ITEM(+=, add, true, false)     \
  QUERN_ITEM(-=, sub, true, false)     \
  QUERN_ITEM(*=, mul, true, false)     \
  QUERN_ITEM(/=, div, true, false)     \
  QUERN_ITEM(%=, rem, true, true)      \
  QUERN_ITEM(&=, bit_and, false, true) \
  QUERN_ITEM(|=, bit_or, false, true)  \
  QUERN_ITEM(^=, bit_xor, false, true) \
  QUERN_ITEM(<<=, shl, true, true)     \
  QUERN_ITEM(>>=, shr, true, true)

template <class T>
class Item : public detail::Ops<T>, public detail::Parts<Item, T> {
  using Base = detail::Parts<quern::Item, T>;

 public:
  explicit Item(const detail::Ids<T>& read_) : Base(read_) {}
  Item(const Item&) = default;
  detail::Assigned<T> operator=(Arg<T> v_) && {
    detail::put_items(quern_items(), v_.ids, v_.loc);
    return detail::Assigned<T>(v_.ids);
  }
  QUERN_ITEMS

  /// The reads; they also name the places.
  detail::Ids<T> quern_items() const { return detail::leaves<quern::Item, T>(*this); }
  detail::Ids<T> quern_ids(Loc) const& { return detail::named(quern_items()); }
  detail::Ids<T> quern_ids(Loc) && { return quern_items(); }
};
#undef QUERN_ITEMS
#undef QUERN_ITEM

}  // namespace quern

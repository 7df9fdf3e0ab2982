#pragma once
// Branches and repetition. `If (c) {…} else If (d) {…} else {…}` and `While (c) {…}` are macros of
// one line over the objects below; define QUERN_NO_MACROS to have none. Without macros:
//   for (auto _ : when(c)) {…} for (auto _ : otherwise()) {…} for (auto _ : repeat_while(f)) {…}
#include "quern/control/loops.h"
#include "quern/values/elem.h"

namespace quern {
namespace detail {

template <class U>
inline constexpr bool is_assigned = false;
template <class T>
inline constexpr bool is_assigned<Assigned<T>> = true;

/// The condition of a block, and where it was written.
struct Condition {
  Id id;
  Loc loc;
  template <Operand U>
  QUERN_RECORDS Condition(const U& u, Loc l = Loc::here()) : loc(l) {
    constexpr bool assigns = is_assigned<U>, is_bool = std::is_same_v<elem_t<U>, bool>;
    static_assert(!assigns, "quern: this condition assigns; a comparison is written a == b");
    static_assert(is_bool || assigns,
                  "quern: a condition is a bool; write a comparison, as in n != 0, or any(c) or "
                  "all(c) of a vector");
    if constexpr (is_bool && !assigns) id = operand_ids<bool>(u, l).v[0];
  }
};

/// Its body runs twice at most: once for the then region, once, through the language's own else,
/// for the other.
class IfBlock {
 public:
  QUERN_RECORDS IfBlock(Condition condition) : loc_(condition.loc) { if_begin(condition.id, loc_); }
  IfBlock(const IfBlock&) = delete;
  QUERN_RECORDS ~IfBlock() {
    if (pass_ == 1 || pass_ == 2)
      block_end(pass_ == 1 ? Block::then : Block::otherwise, false, loc_);
  }
  QUERN_RECORDS bool next() {
    pass_++;
    if (pass_ == 2) {
      block_end(Block::then, true, loc_);
      else_begin(loc_);
    } else if (pass_ == 3) {
      block_end(Block::otherwise, true, loc_);
    }
    return pass_ < 3;
  }
  bool then() const { return pass_ == 1; }

 private:
  int pass_ = 0;
  Loc loc_;
};

/// One region that is walked once.
class OnceBlock {
 public:
  OnceBlock(Block kind, Loc loc) : kind_(kind), loc_(loc) {}
  OnceBlock(const OnceBlock&) = delete;
  QUERN_RECORDS ~OnceBlock() {
    if (open_) block_end(kind_, false, loc_);
  }
  explicit operator bool() const { return open_; }
  QUERN_RECORDS bool cond(Condition c) {
    while_condition(c.id, c.loc);
    return true;
  }
  QUERN_RECORDS void done() {
    open_ = false;
    block_end(kind_, true, loc_);
  }

 private:
  bool open_ = true;
  Block kind_;
  Loc loc_;
};

struct [[maybe_unused]] Token {};
struct OnceRange {
  OnceBlock block;
  struct Iterator {
    OnceBlock* block;
    bool operator!=(End) const { return bool(*block); }
    Token operator*() const { return {}; }
    void operator++() { block->done(); }
  };
  Iterator begin() { return {&block}; }
  End end() const { return {}; }
};

inline OnceBlock while_block(Loc l = Loc::here()) {
  while_begin(l);
  return {Block::while_, l};
}

/// A scope that is walked once, whose end restores what held before it.
class Reassociation {
 public:
  QUERN_RECORDS explicit Reassociation(Loc loc) : before_(reassociation(true, loc)) {}
  Reassociation(const Reassociation&) = delete;
  QUERN_RECORDS ~Reassociation() { reassociation(before_, Loc{}); }
  struct Iterator {
    bool done = false;
    bool operator!=(End) const { return !done; }
    Token operator*() const { return {}; }
    void operator++() { done = true; }
  };
  Iterator begin() const { return {}; }
  End end() const { return {}; }

 private:
  bool before_;
};

}  // namespace detail

namespace lang {

/// `for (auto _ : reassociate()) {…}`: float sums and products recorded in the block may be
/// reassociated, so that serial sums become wide instructions.
inline detail::Reassociation reassociate(Loc l = Loc::here()) { return detail::Reassociation(l); }

inline detail::OnceRange when(detail::Condition c) {
  detail::if_begin(c.id, c.loc);
  return {{detail::Block::then, c.loc}};
}
/// Belongs to the `when` that ended just before.
inline detail::OnceRange otherwise(Loc l = Loc::here()) {
  detail::else_begin(l);
  return {{detail::Block::otherwise, l}};
}
/// `condition` is a function that yields the condition; it is recorded once, run in each round.
template <class F>
detail::OnceRange repeat_while(F condition, Loc l = Loc::here()) {
  detail::while_begin(l);
  detail::while_condition(detail::Condition(condition(), l).id, l);
  return {{detail::Block::while_, l}};
}

/// Leaves the innermost loop (all axes of a `grid`). Not in a parallel loop.
inline void Break(Loc l = Loc::here()) { detail::break_(l); }
/// Ends the iteration of the innermost loop.
inline void Continue(Loc l = Loc::here()) { detail::continue_(l); }
/// Ends a kernel or function without a result.
inline void Return(Loc l = Loc::here()) { detail::return_(nullptr, 0, l); }
/// Ends a kernel or function with a result; its type is that of the native `return v;` at the end.
template <detail::Operand U>
void Return(const U& u, Loc l = Loc::here()) {
  auto ids = detail::result_ids(u, l);
  detail::return_(ids.v, detail::count_of<detail::elem_t<U>>, l);
}

}  // namespace lang
}  // namespace quern

#ifndef QUERN_NO_MACROS
#define QUERN_JOIN_(a, b) a##b
#define QUERN_JOIN(a, b) QUERN_JOIN_(a, b)
#define If(...)                                                                 \
  for (::quern::detail::IfBlock QUERN_JOIN(quern_if_, __LINE__){(__VA_ARGS__)}; \
       QUERN_JOIN(quern_if_, __LINE__).next();)                                 \
    if (QUERN_JOIN(quern_if_, __LINE__).then())
#define While(...)                                                                                 \
  for (::quern::detail::OnceBlock QUERN_JOIN(quern_while_, __LINE__) =                             \
           ::quern::detail::while_block();                                                         \
       QUERN_JOIN(quern_while_, __LINE__) && QUERN_JOIN(quern_while_, __LINE__).cond(__VA_ARGS__); \
       QUERN_JOIN(quern_while_, __LINE__).done())
#endif

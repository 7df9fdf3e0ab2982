#pragma once
// The words of the text form, for printer and parser alike.
#include <array>
#include <optional>
#include <string_view>

#include "quern/ir/ir.h"

namespace quern::ir::text {

template <class E, size_t N>
struct Words {
  std::array<std::string_view, N> names;

  std::string_view operator[](E e) const {
    return size_t(e) < N ? names[size_t(e)] : std::string_view("?");
  }
  std::optional<E> find(std::string_view text) const {
    for (size_t k = 0; k < N; k++)
      if (names[k] == text) return E(k);
    return std::nullopt;
  }
};

inline constexpr Words<Level, 4> levels{{"recorded", "structured", "split", "lowered"}};
inline constexpr Words<Binding::Kind, 5> bindings{{"scalar", "field", "frame", "image", "raw"}};
inline constexpr Words<Site::Kind, 7> sites{
    {"check", "bounds", "division", "conversion", "print", "stop", "other"}};
inline constexpr Words<Task::Kind, 5> tasks{
    {"serial", "range", "active_cells", "block", "combine"}};
inline constexpr Words<Task::Walk, 3> walks{{"unlowered", "chunked", "element"}};
inline constexpr Words<Access, 4> accesses{{"read", "write", "read_write", "atomic"}};
inline constexpr Words<Footprint::Form, 3> forms{{"offset", "affine", "unknown"}};
inline constexpr Words<Step::Kind, 4> steps{{"launch", "if", "repeat", "combine"}};

/// How an operation uses Inst::kind and Inst::imm, and so how they print.
enum class KindUse : uint8_t { flags, atomic, builtin, rank };
enum class ImmUse : uint8_t { number, optional_number, bits, binding, access, parallel };

constexpr KindUse kind_use(Op op) {
  switch (op) {
    case Op::atomic:
    case Op::rmw:
    case Op::reduce:
    case Op::block_reduce: return KindUse::atomic;
    case Op::builtin: return KindUse::builtin;
    case Op::parallel: return KindUse::rank;
    default: return KindUse::flags;
  }
}

constexpr ImmUse imm_use(Op op) {
  switch (op) {
    case Op::constant: return ImmUse::bits;
    case Op::param: return ImmUse::binding;
    case Op::extent:
    case Op::first:
    case Op::load:
    case Op::store:
    case Op::atomic: return ImmUse::access;
    case Op::parallel: return ImmUse::parallel;
    case Op::slot:
    case Op::break_:
    case Op::continue_:
    case Op::call:
    case Op::arg:
    case Op::read:
    case Op::write:
    case Op::rmw: return ImmUse::number;
    default: return ImmUse::optional_number;
  }
}

/// The names of the flag bits of Inst::kind.
struct Flag {
  std::string_view name;
  uint8_t bit;
};
inline constexpr Flag arithmetic_flags[] = {{"reassociate", reassociate},
                                            {"uncontracted", uncontracted}};
inline constexpr Flag loop_flags[] = {{"parallel_walk", parallel_walk},
                                      {"thread_walk", thread_walk}};
inline constexpr Flag if_flags[] = {{"rarely", rarely}};
constexpr std::span<const Flag> flags_of(Op op) {
  switch (op) {
    case Op::loop: return loop_flags;
    case Op::if_: return if_flags;
    default: return arithmetic_flags;
  }
}

}  // namespace quern::ir::text

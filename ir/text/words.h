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

inline constexpr Words<Level, 5> levels{{"recorded", "structured", "split", "opened", "lowered"}};
inline constexpr Words<Binding::Kind, 4> bindings{{"scalar", "field", "frame", "buffer"}};
inline constexpr Words<BufferSize::Rule, 5> buffer_sizes{
    {"rows", "iterations", "constant", "cell", "copies"}};
inline constexpr Words<Site::Kind, 7> sites{
    {"check", "bounds", "division", "conversion", "print", "stop", "other"}};
inline constexpr Words<Task::Kind, 3> tasks{{"serial", "range", "combine"}};
inline constexpr Words<Task::Walk, 3> walks{{"unlowered", "chunked", "element"}};
inline constexpr Words<Step::Kind, 7> steps{
    {"launch", "if", "repeat", "combine", "refresh", "reserve", "collect"}};

/// The names of the flag bits of Inst::kind.
struct Flag {
  std::string_view name;
  uint8_t bit;
};
inline constexpr Flag arithmetic_flags[] = {{"reassociate", reassociate},
                                            {"distribute", distribute},
                                            {"uncontracted", uncontracted},
                                            {"unasked", unasked}};
inline constexpr Flag loop_flags[] = {
    {"parallel_walk", parallel_walk}, {"thread_walk", thread_walk}, {"brief", brief}};
inline constexpr Flag if_flags[] = {{"rarely", rarely}, {"sparing", sparing}};
inline constexpr Flag slot_flags[] = {{"unset", unset}, {"by_round", by_round}};
constexpr std::span<const Flag> flags_of(KindUse use) {
  switch (use) {
    case KindUse::arithmetic: return arithmetic_flags;
    case KindUse::loop: return loop_flags;
    case KindUse::branch: return if_flags;
    case KindUse::slot: return slot_flags;
    default: return {};
  }
}

}  // namespace quern::ir::text

#include "quern/ir/ops.h"

#include <array>

namespace quern::ir {

namespace {

struct Classes {
  bool b, i, f;
};
constexpr Classes class_i{false, true, false}, class_f{false, false, true},
    class_bi{true, true, false}, class_nums{false, true, true}, class_bif{true, true, true},
    class_any{true, true, true};

constexpr int operand_count(std::string_view name, OperandRule rule) {
  switch (rule) {
    case OperandRule::special: return -1;
    case OperandRule::compare: return 2;
    case OperandRule::pick: return 3;
    case OperandRule::convert:
    case OperandRule::bitcast: return 1;
    case OperandRule::same: break;
  }
  if (name == "fma") return 3;
  for (std::string_view two :
       {"add",     "sub",    "mul",     "div", "rem", "min",   "max", "fmin",  "fmax", "copysign",
        "bit_and", "bit_or", "bit_xor", "shl", "shr", "atan2", "pow", "hypot", "fmod", "remainder"})
    if (name == two) return 2;
  return 1;
}

constexpr std::string_view printed(std::string_view name) {
  return name.ends_with('_') ? name.substr(0, name.size() - 1) : name;
}

constexpr OpInfo row(std::string_view name, OperandRule rule, Classes c, uint16_t flags,
                     bool library, int weight) {
  return {printed(name), rule, c.b, c.i, c.f, operand_count(name, rule), flags, weight, library};
}

using namespace flag;
constexpr std::array<OpInfo, op_count> table = {
#define QUERN_OP(name, rule, classes, flags, fold, partial, weight)                           \
  row(#name, OperandRule::rule, class_##classes, flags, std::string_view(#fold) == "library", \
      weight),
#include "quern/ir/ops.def"
#undef QUERN_OP
};

constexpr std::array<std::string_view, 10> atomic_names = {
    "add", "mul", "min", "max", "bit_and", "bit_or", "bit_xor", "exchange", "cas", "load"};
constexpr std::array<std::string_view, 12> builtin_names = {
    "chunk",      "begin",           "end",       "thread", "threads", "block_thread",
    "reciprocal", "next_reciprocal", "first_row", "rows",   "asks",    "iteration"};

template <class E, size_t N>
std::optional<E> find(const std::array<std::string_view, N>& names, std::string_view text) {
  for (size_t k = 0; k < N; k++)
    if (names[k] == text) return E(k);
  return std::nullopt;
}
}  // namespace

const OpInfo& info(Op op) { return table[size_t(op)]; }

std::optional<Op> op_named(std::string_view text) {
  for (size_t k = 0; k < table.size(); k++)
    if (table[k].name == text) return Op(k);
  return std::nullopt;
}

std::string_view name(AtomicOp op) { return atomic_names[size_t(op)]; }
std::optional<AtomicOp> atomic_named(std::string_view text) {
  return find<AtomicOp>(atomic_names, text);
}
std::string_view name(Builtin b) { return builtin_names[size_t(b)]; }
std::optional<Builtin> builtin_named(std::string_view text) {
  return find<Builtin>(builtin_names, text);
}

}  // namespace quern::ir

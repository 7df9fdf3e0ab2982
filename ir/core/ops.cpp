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

constexpr std::string_view printed(std::string_view name) {
  return name.ends_with('_') ? name.substr(0, name.size() - 1) : name;
}

constexpr OpInfo element_wise(std::string_view name, OperandRule rule, int operands, Classes c,
                              uint16_t flags, bool library, int weight) {
  OpInfo row{printed(name), flags};
  row.rule = rule;
  row.operands = operands;
  row.bools = c.b, row.ints = c.i, row.floats = c.f;
  row.weight = weight;
  row.library = library;
  return row;
}

// ---- forms

struct Word {
  std::string_view text;
  Item item;
};
constexpr Word words[] = {
    {"b1", Item::b1},         {"u32", Item::u32},           {"u64", Item::u64},
    {"i64", Item::i64},       {"address", Item::address},   {"slot", Item::slot},
    {"[slot]", Item::slot},   {"slot of elem", Item::slot}, {"scalar", Item::scalar},
    {"any", Item::any},       {"integer", Item::integer},   {"elem", Item::elem},
    {"[index]", Item::index}, {"indices", Item::indices},   {"values", Item::values},
    {"any*", Item::rest},
};
/// Of one word of a form; does not compile where there is none of that name.
constexpr Item item(std::string_view text) {
  for (const Word& w : words)
    if (w.text == text) return w.item;
  throw "no word of a form";
}

/// Cuts the first of a comma-separated list off.
constexpr std::string_view first_of(std::string_view& list) {
  const size_t comma = list.find(',');
  std::string_view text = list.substr(0, comma);
  list = comma == list.npos ? std::string_view() : list.substr(comma + 1);
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

/// Reads "operands -> results".
constexpr Form form_of(std::string_view text) {
  const size_t arrow = text.find("->");
  std::string_view operands = text.substr(0, arrow), results = text.substr(arrow + 2);
  Form f;
  for (std::string_view t = first_of(operands); !t.empty(); t = first_of(operands)) {
    f.operands[f.operand_count++] = item(t);
    if (t == "elem") f.elem = ElemUse::operand;
  }
  for (std::string_view t = first_of(results); !t.empty(); t = first_of(results)) {
    f.results[f.result_count++] = item(t);
    if (t == "elem") f.elem = ElemUse::result;
    if (t == "slot of elem") f.elem = ElemUse::own;
  }
  return f;
}

constexpr OpInfo structural(std::string_view name, std::string_view form, KindUse kind,
                            NameUse names, uint8_t regions, uint8_t levels, uint16_t flags) {
  OpInfo row{printed(name), flags, levels};
  row.form = form_of(form);
  row.kind = kind;
  row.names = names;
  row.regions = regions;
  return row;
}

constexpr std::array<OpInfo, op_count> make_table() {
  using namespace flag;
  using namespace level;
  return {
#define QUERN_OP(name, rule, operands, classes, flags, fold, partial, weight)        \
  element_wise(#name, OperandRule::rule, operands, class_##classes, uint16_t(flags), \
               std::string_view(#fold) == "library", weight),
#define QUERN_FORM(name, form, kind, names, regions, levels, flags) \
  structural(#name, form, KindUse::kind, NameUse::names, regions, levels, uint16_t(flags)),
#include "quern/ir/ops.def"
  };
}
constexpr std::array<OpInfo, op_count> table = make_table();

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

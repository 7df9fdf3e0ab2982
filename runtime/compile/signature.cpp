// What decides about code, as text. Each structure is taken apart by structured bindings: a member that
// is added and not named here does not compile.
#include "quern/runtime/compiler.h"

namespace quern::runtime {

using namespace ir;

namespace {

class Text {
 public:
  std::string text;

  void add(const std::string& what) { text += (text.empty() ? "" : " ") + what; }
  void flag(const char* name, bool is) {
    if (is) add(name);
  }
  void number(const char* name, uint64_t n) { add(std::string(name) + "=" + std::to_string(n)); }
};

void write(Text& t, const TargetTraits& traits) {
  const auto& [walk, fma_exact, div_exact, sqrt_exact, float_atomic_add, float_atomic_min_max,
               block_reductions, narrow_atomics, stoppable, told_of_failures, whole_grids, strip,
               calls, most_copied, half_conversions, if_nesting, loop_nesting, value_bytes,
               value_tasks, native_math] = traits;
  t.number("walk", uint64_t(walk));
  const char* widths[] = {"32", "64"};
  for (int k = 0; k < 2; k++) {
    t.flag((std::string("fma") + widths[k]).c_str(), fma_exact[k]);
    t.flag((std::string("add") + widths[k]).c_str(), float_atomic_add[k]);
    t.flag((std::string("minmax") + widths[k]).c_str(), float_atomic_min_max[k]);
  }
  t.flag("div", div_exact);
  t.flag("sqrt", sqrt_exact);
  t.flag("blocks", block_reductions);
  t.flag("narrow", narrow_atomics);
  t.flag("stoppable", stoppable);
  t.flag("told", told_of_failures);
  t.flag("whole-grids", whole_grids);
  t.number("strip", strip);
  t.flag("calls", calls);
  t.number("copied", most_copied);
  t.flag("halves", half_conversions);
  t.number("ifs", if_nesting);
  t.number("loops", loop_nesting);
  t.number("value-bytes", value_bytes);
  t.number("value-tasks", value_tasks);
  for (const auto& [op, type] : native_math)
    t.add("native-" + std::string(info(op).name) + "-" + std::string(name(type)));
}

void write(Text& t, const std::vector<Placement::Level>& levels) {
  for (const Placement::Level& level : levels) {
    const auto& [extent, stride] = level;
    std::string blocks = "blocks=";
    for (uint32_t k = 0; k < Placement::max_axes; k++)
      blocks += (k ? "," : "") + std::to_string(extent[k]) + ":" + std::to_string(stride[k]);
    t.add(blocks);
  }
}

void write(Text& t, const Placement& placement) {
  const auto& [levels, pools, cell, cut, wide, rebased, step, group, group_bytes, offsets, shifted,
               fast] = placement;
  write(t, levels);
  for (const Placement::Pool& pool : pools) {
    const auto& [digits, children, unit, direct, chunks, key] = pool;
    t.number("pool", children);
    t.number("unit", unit);
    t.flag("direct", direct);
    if (chunks) t.number("chunks", chunks);
    for (uint8_t words : key)
      if (pool.is_hashed()) t.number("key", words);
    write(t, digits);
  }
  if (placement.is_of_cells())
    for (uint32_t n : cell) t.number("cell", n);
  t.flag("cut", cut);
  t.flag("wide", wide);
  t.flag("rebased", rebased);
  if (step) t.number("step", step);
  if (group) t.number("group", group);
  if (group_bytes) t.number("group-bytes", group_bytes);
  for (int32_t offset : offsets) t.add("at=" + std::to_string(offset));
  t.flag("shifted", shifted);
  if (fast) t.number("fast", fast);
}

void write(Text& t, const Signature& signature) {
  const auto& [fields, modes, wide] = signature;
  const auto& [checked, strict, contract] = modes;
  t.flag("checked", checked);
  t.flag("strict", strict);
  t.flag("contract", contract);
  t.flag("wide", wide);
  for (const Signature::Field& field : fields) {
    const auto& [contiguous, alias_class, zero_based, layout, alignment, encodings, tree] = field;
    t.add("(" + std::to_string(alias_class));
    t.flag("strided", !contiguous);
    t.flag("based", !zero_based);
    if (layout.is_sparse()) t.number("tree", tree);
    if (alignment > 1) t.number("align", alignment);
    write(t, layout);
    for (Type encoding : encodings) t.add("as-" + std::string(name(encoding)));
    t.text += ")";
  }
}

}  // namespace

std::string signature_text(const Signature& signature, const Target& target) {
  Text t;
  t.add("quern " + pipeline_version());
  const std::string compiler = compiler_of(target.backend).version();
  if (!compiler.empty()) t.add(compiler);
  t.add("| " + target.backend + " " + target.isa + " |");
  t.flag("one-thread", target.workers == 1);
  t.flag("as-written", !target.optimise);
  write(t, target.traits);
  t.add("|");
  write(t, signature);
  return t.text;
}

}  // namespace quern::runtime

#include "autodiff/rules/rules.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "autodiff/rules/library.h"
#include "quern/ir/lower.h"

namespace quern::autodiff {

using namespace ir;
using ir::Kernel;  // not that of the language

namespace {

using Maker = RecordedRule (*)(const Function& f, Direction direction);
constexpr std::pair<std::string_view, Maker> library[] = {
    {"svd", svd_rule},         {"polar", polar_rule}, {"sym_eig", eigen_rule},
    {"inverse", inverse_rule}, {"solve", solve_rule}, {"lerp", lerp_rule}};

RecordedRule library_rule(const Function& f, Direction direction) {
  for (const auto& [name, make] : library)
    if (f.derivative == name) return make(f, direction);
  return {};
}

/// Brings functions of one kernel into another.
class Importer {
 public:
  Importer(Kernel& to, const Kernel& from) : to_(to), from_(from) {}

  /// The number there of what is number k here; functions of the library are there once.
  uint32_t number(uint64_t k) {
    Function f = from_.callees.at(k);
    if (!f.derivative.empty())
      for (uint32_t known = 0; known < to_.callees.size(); known++)
        if (are_same(to_.callees[known], f)) return known;
    Builder b(to_);
    ValueMap map;
    f.body = clone_region(b, f.body, map);
    walk(f.body, [&](Inst* inst) {
      if (info(inst->op).names == NameUse::callee) inst->imm = number(inst->imm);
    });
    f.name += " of a rule";
    to_.callees.push_back(std::move(f));
    return uint32_t(to_.callees.size() - 1);
  }

 private:
  static bool are_same(const Function& f, const Function& g) {
    return f.derivative == g.derivative && f.results == g.results &&
           std::ranges::equal(f.body->args, g.body->args, {}, &Value::type, &Value::type);
  }

  Kernel& to_;
  const Kernel& from_;
};

/// The function, in a kernel at level structured.
uint32_t import(Kernel& to, detail::FuncObject* function) {
  detail::Recorder recorder(nullptr, false, nullptr, 0, to.loc);
  const uint32_t number = detail::recording(to.loc).import(function, to.loc);
  const std::unique_ptr<detail::Recording> recorded(recorder.finish());
  finish_recording(*recorded->kernel);
  return Importer(to, *recorded->kernel).number(number);
}

}  // namespace

void add_rules(Kernel& kernel, Direction direction) {
  std::vector<bool> applied(kernel.callees.size());
  walk(kernel.body, [&](const Inst* inst) {
    if (inst->is(Op::apply)) applied[inst->imm] = true;
  });
  for (uint32_t k = 0; k < applied.size(); k++) {
    const auto rule =
        direction == Direction::forward ? &Function::pushforward : &Function::pullback;
    if (!applied[k] || kernel.callees[k].*rule != no_function) continue;
    const RecordedRule recorded = library_rule(kernel.callees[k], direction);
    if (!recorded) continue;
    const uint32_t number = import(kernel, recorded.get());
    kernel.callees[k].*rule = number;
  }
}

const Function* rule_of(const Kernel& kernel, const Inst* inst, Direction direction) {
  const Function& f = kernel.callees.at(inst->imm);
  const uint32_t number = direction == Direction::forward ? f.pushforward : f.pullback;
  return number == no_function ? nullptr : &kernel.callees.at(number);
}

std::vector<Value*> build_rule(Builder& b, const Function& rule, std::span<Value* const> values) {
  ValueMap map;
  for (size_t k = 0; k < values.size(); k++) map[rule.body->arg(k)] = values[k];
  Inst* const point = b.point();
  Inst* const before = point ? point->prev : b.region()->last;
  std::vector<Value*> given = inline_region(b, rule.body, map);
  for (Inst* made = before ? before->next : b.region()->first; made != point; made = made->next) {
    made->loc = b.loc();
    for (Region* r : made->regions) walk(r, [&](Inst* inst) { inst->loc = b.loc(); });
  }
  return given;
}

}  // namespace quern::autodiff

#include "ir/passes/record/add_sites.h"

#include "ir/analysis/facts.h"

namespace quern::ir {

namespace {

/// A name inside a format: braces doubled.
std::string literal(const std::string& name) {
  std::string out;
  for (char c : name) {
    out += c;
    if (c == '{' || c == '}') out += c;
  }
  return out;
}

Site bounds(const Binding& b) {
  Site s;
  s.kind = Site::bounds;
  std::string name = b.name.empty() ? "a field" : literal(b.name);
  s.text = "index {} on axis {} of " + name + " is out of range: the extent is {}";
  s.values = {Type::i64, Type::i32, Type::i64};
  return s;
}

Site array_bounds() {
  Site s;
  s.kind = Site::bounds;
  s.text = "index {} is out of range of an array of {} elements";
  s.values = {Type::i64, Type::i64};
  return s;
}

Site conversion(Type from, Type to) {
  Site s;
  s.kind = Site::conversion;
  s.text = "{} of type " + std::string(name(from)) + " does not fit into " + std::string(name(to));
  s.values = {from};
  return s;
}

Site division() {
  Site s;
  s.kind = Site::division;
  s.text = "integer division by zero";
  return s;
}

}  // namespace

void add_sites(Kernel& kernel) {
  if (!kernel.modes.checked) return;
  walk(kernel, [&](Inst* inst) {
    if (inst->site != no_site) return;
    Site site;
    switch (inst->op) {
      case Op::load:
      case Op::store:
      case Op::atomic:
      case Op::is_active:
      case Op::empty_box:
      case Op::activate:
      case Op::deactivate:
      case Op::length:
      case Op::append:
        if (kernel.bindings[inst->binding()].kind != Binding::field) return;
        site = bounds(kernel.bindings[inst->binding()]);
        break;
      case Op::get:
        if (inst->operand_count() < 2) return;
        site = array_bounds();
        break;
      case Op::put:
        if (inst->operand_count() < 3) return;
        site = array_bounds();
        break;
      case Op::div:
      case Op::rem:
        if (!can_fail(kernel, inst)) return;
        site = division();
        break;
      case Op::convert:
        if (!can_fail(kernel, inst)) return;
        site = conversion(inst->operand(0)->type, inst->type());
        break;
      default: return;
    }
    site.loc = inst->loc;
    inst->site = uint32_t(kernel.sites.size());
    kernel.sites.push_back(std::move(site));
  });
}

}  // namespace quern::ir

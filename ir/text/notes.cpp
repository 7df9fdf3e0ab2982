#include "ir/text/notes.h"

#include <map>

#include "ir/analysis/uniformity.h"

namespace quern::ir::text {

namespace {

void add_to(std::string& list, const std::string& what, const char* between = ", ") {
  if (!what.empty()) list += (list.empty() ? "" : between) + what;
}

bool is_countable(const Value* v) { return is_int(v->type) || v->type == Type::address; }

/// The body of the innermost loop around a value, or the root.
const Region* round_of(const Value* v) {
  const Region* r = v->inst ? v->inst->parent : v->region;
  while (r->parent && r->parent->is(Op::if_)) r = r->parent->parent;
  return r;
}

}  // namespace

Notes::Notes(const Kernel& kernel, const Region* root, const Task* task, const Names& names,
             std::span<const std::string> analyses)
    : kernel_(kernel), root_(root), task_(task), names_(names) {
  for (const std::string& analysis : analyses) add(analysis);
}

void Notes::add(std::string_view analysis) {
  if (analysis == "affine") {
    auto forms = std::make_shared<AffineForms>();
    values_.push_back(
        [this, forms](const Value* v) { return is_countable(v) ? form(forms->of(v)) : ""; });
  } else if (analysis == "range" || analysis == "exact") {
    if (!ranges_) ranges_ = std::make_shared<Ranges>(root_, &kernel_);
    if (analysis == "exact") {
      values_.push_back(
          [this](const Value* v) { return is_int(v->type) ? "= " + form(ranges_->exact(v)) : ""; });
      return;
    }
    values_.push_back([this](const Value* v) -> std::string {
      const Interval range = ranges_->of(v);
      if (!is_int(v->type) || range == interval_of(v->type)) return "";
      return "[" + std::to_string(range.least) + ", " + std::to_string(range.most) + "]";
    });
  } else if (analysis == "uniform") {
    values_.push_back([this](const Value* v) {
      return is_scalar(v->type) && Uniformity(kernel_, round_of(v))(v) ? "uniform" : "";
    });
  } else if (analysis == "divergence") {
    if (!task_ || task_->body != root_) return;
    auto divergence = std::make_shared<Divergence>(kernel_, *task_);
    values_.push_back(
        [divergence](const Value* v) { return divergence->varies(v) ? "varies" : ""; });
  } else if (analysis == "effects") {
    auto effects = std::make_shared<Effects>(kernel_);
    insts_.push_back([this, effects](const Inst* inst) {
      const Touched& all = effects->of(inst);
      std::string out;
      if (!all.reads.empty()) add_to(out, "reads" + places(all.reads));
      if (!all.writes.empty()) add_to(out, "writes" + places(all.writes));
      return out;
    });
  } else {
    throw Error("there is no analysis '" + std::string(analysis) +
                "'; there are affine, divergence, effects, exact, range and uniform");
  }
}

/// "2*%1 + extent<0.0> - 3", in the order of the values.
std::string Notes::form(const Affine& form) const {
  std::map<std::string, int64_t> terms;
  for (const Affine::Term& t : form.terms) {
    const Ranges::Named* n = ranges_ ? ranges_->named(t.symbol) : nullptr;
    std::string symbol = names_(t.symbol);
    if (n) {
      symbol = std::string(info(n->op).name) + "<" + std::to_string(n->part.binding);
      symbol += (n->op == Op::param ? "" : "." + std::to_string(n->part.component)) + ">";
    }
    terms[symbol] = t.factor;
  }
  std::string out;
  auto put = [&](int64_t n, const std::string& what) {
    if (out.empty())
      out += n < 0 ? "-" : "";
    else
      out += n < 0 ? " - " : " + ";
    const uint64_t size = n < 0 ? 0 - uint64_t(n) : uint64_t(n);
    if (what.empty() || size != 1) out += std::to_string(size) + (what.empty() ? "" : "*");
    out += what;
  };
  for (const auto& [symbol, factor] : terms) put(factor, symbol);
  if (form.constant != 0 || out.empty()) put(form.constant, "");
  return out;
}

std::string Notes::places(const Places& all) const {
  std::string out;
  for (uint32_t b : all.bindings) out += " binding " + std::to_string(b);
  for (uint64_t c : all.classes) out += " class " + std::to_string(c);
  for (const Value* v : all.slots) out += " " + names_(v);
  if (all.host) out += " host";
  if (all.random) out += " random";
  if (all.anything) out += " anything";
  return out;
}

std::string Notes::of(const Inst* inst) const {
  const std::string values = of(inst->results);
  std::string own;
  for (const auto& say : insts_) add_to(own, say(inst));
  if (own.empty()) return values;
  return values.empty() ? "  ; " + own : values + ", " + own;
}

std::string Notes::of(std::span<const Value> values) const {
  std::string out;
  for (const Value& v : values) {
    std::string one;
    for (const Say& say : values_) add_to(one, say(&v));
    if (!one.empty() && values.size() > 1) one.insert(0, names_(&v) + " ");
    add_to(out, one, "; ");
  }
  return out.empty() ? out : "  ; " + out;
}

}  // namespace quern::ir::text

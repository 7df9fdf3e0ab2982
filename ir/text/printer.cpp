#include <charconv>
#include <cmath>

#include "ir/text/names.h"
#include "ir/text/notes.h"
#include "ir/text/words.h"
#include "quern/ir/text.h"

namespace quern::ir {

namespace text {

Names::Names(const Region* root) {
  if (root) visit(root);
}

void Names::visit(const Region* region) {
  for (const Value& a : region->args) numbers_.emplace(&a, uint32_t(numbers_.size()));
  for (const Inst* inst = region->first; inst; inst = inst->next) {
    for (const Value& v : inst->results) numbers_.emplace(&v, uint32_t(numbers_.size()));
    for (const Region* r : inst->regions)
      if (r) visit(r);
  }
}

std::string Names::operator()(const Value* v) const {
  auto it = numbers_.find(v);
  return it == numbers_.end() ? "%?" : "%" + std::to_string(it->second);
}

namespace {

std::string quoted(std::string_view text) {
  constexpr char digits[] = "0123456789abcdef";
  std::string out = "\"";
  for (char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (code < 0x20 || code == 0x7f) {
      out += "\\x";
      out += digits[code >> 4];
      out += digits[code & 15];
    } else {
      out += c;
    }
  }
  return out + '"';
}

bool is_word(std::string_view text) {
  if (text.empty() || (text[0] >= '0' && text[0] <= '9')) return false;
  for (char c : text)
    if (!(c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')))
      return false;
  return true;
}

std::string symbol(std::string_view text) {
  return "@" + (is_word(text) ? std::string(text) : quoted(text));
}

template <class T>
std::string shortest(T v, Bits bits) {
  char buffer[32];
  if (std::isnan(v)) {
    auto end = std::to_chars(buffer, buffer + sizeof buffer, bits, 16).ptr;
    return "nan:0x" + std::string(buffer, end);
  }
  return std::string(buffer, std::to_chars(buffer, buffer + sizeof buffer, v).ptr);
}

std::string literal(Bits bits, Type type) {
  if (type == Type::f16) return shortest(f16_of(bits), bits);
  if (type == Type::f32) return shortest(f32_of(bits), bits);
  if (type == Type::f64) return shortest(f64_of(bits), bits);
  if (is_signed(type)) return std::to_string(to_signed(bits, type));
  return std::to_string(bits);
}

template <class Range, class F>
std::string joined(const Range& items, F&& text_of) {
  std::string out;
  for (const auto& item : items) {
    if (!out.empty()) out += ", ";
    out += text_of(item);
  }
  return out;
}

std::string types(std::span<const Type> list) {
  return joined(list, [](Type t) { return std::string(name(t)); });
}

std::string number(const char* label, uint64_t v) { return label + std::to_string(v); }

std::string flags(const Inst* inst) {
  std::string out;
  uint8_t rest = inst->kind;
  for (const Flag& f : flags_of(info(inst->op).kind)) {
    if (!(rest & f.bit)) continue;
    out += "." + std::string(f.name);
    rest &= uint8_t(~f.bit);
  }
  if (rest) out += number(".kind", rest);
  return out;
}

std::string kind(const Inst* inst) {
  switch (info(inst->op).kind) {
    case KindUse::atomic:
    case KindUse::combine: return "." + std::string(name(inst->atomic()));
    case KindUse::builtin: return "." + std::string(name(inst->builtin()));
    case KindUse::rank: return "";
    default: return flags(inst);
  }
}

std::string options_of(const LoopOptions& options) {
  return (options.over != no_binding ? number(" over=", options.over) : "") +
         (options.deterministic ? " deterministic" : "") +
         (options.block ? number(" block=", options.block) : "");
}

std::string names(const Inst* inst) {
  const std::string binding = std::to_string(inst->binding());
  switch (info(inst->op).names) {
    case NameUse::bits: return "<" + literal(inst->imm, inst->type()) + ">";
    case NameUse::binding: return "<" + binding + ">";
    case NameUse::axis:
    case NameUse::component: return "<" + binding + number(".", inst->component()) + ">";
    case NameUse::options:
      return options_of(inst->options) +
             (inst->options.ordinal ? number(" ordinal=", inst->options.ordinal) : "");
    case NameUse::nothing:
    case NameUse::reduction:
      if (inst->imm == 0) return "";
      [[fallthrough]];
    default: return "<" + std::to_string(inst->imm) + ">";
  }
}

}  // namespace

std::string head(const Inst* inst, const Names& names) {
  std::string out = joined(inst->results, [&](const Value& v) { return names(&v); });
  if (!out.empty()) out += " = ";
  out += info(inst->op).name;
  out += kind(inst) + text::names(inst);
  const std::string operands =
      joined(inst->operands, [&](const Use& use) { return names(use.value); });
  if (!operands.empty()) out += " " + operands;
  if (!inst->results.empty())
    out += " : " + joined(inst->results, [](const Value& v) { return std::string(name(v.type)); });
  if (info(inst->op).form.elem == ElemUse::own) out += " " + std::string(name(inst->elem));
  if (inst->site != no_site) out += number(" !", inst->site);
  return out;
}

namespace {

class Printer {
 public:
  Printer(const Kernel& kernel, PrintOptions options) : kernel_(kernel), options_(options) {}

  std::string run() {
    header();
    for (const Binding& b : kernel_.bindings) binding(b);
    if (!kernel_.frame.empty()) out_ += "frame " + types(kernel_.frame) + "\n";
    for (const Site& s : kernel_.sites) site(s);
    for (const Function& f : kernel_.callees) function(f);
    if (kernel_.body) {
      out_ += "body";
      root(kernel_.body);
      out_ += "\n";
    }
    for (const Task& t : kernel_.tasks) task(t);
    if (!kernel_.schedule.empty()) out_ += "schedule" + steps(kernel_.schedule) + "\n";
    return std::move(out_);
  }

 private:
  void header() {
    out_ += "quern 1\nkernel " + symbol(kernel_.name) + " level=";
    out_ += levels[kernel_.level];
    const Modes& m = kernel_.modes;
    std::string modes;
    for (auto [set, word] : {std::pair(m.checked, "checked"), std::pair(m.strict, "strict"),
                             std::pair(m.contract, "contract")})
      if (set) modes += (modes.empty() ? "" : ",") + std::string(word);
    if (!modes.empty()) out_ += " modes=" + modes;
    if (!kernel_.results.empty()) out_ += " results(" + types(kernel_.results) + ")";
    at(kernel_.loc);
    out_ += "\n";
  }

  void at(Loc loc) {
    if (options_.locations && loc.line != 0)
      out_ += " @ " + quoted(loc.file) + number(":", uint64_t(loc.line));
  }

  void binding(const Binding& b) {
    out_ += "binding ";
    out_ += bindings[b.kind];
    if (b.has_elements() || b.rank != 0) out_ += number(" rank=", b.rank);
    for (uint32_t k = 0; k < b.components.size(); k++) {
      const Component& c = b.components[k];
      out_ += (k ? ", " : " ") + std::string(c.exact ? "" : "inexact ") + std::string(name(c.type));
      if (b.encoding(k) != storage_type(c.type)) out_ += ":" + std::string(name(b.encoding(k)));
    }
    out_ += " " + quoted(b.name);
    if (b.kind == Binding::buffer) {
      out_ += number(" task=", b.size.task) + " " + std::string(buffer_sizes[b.size.rule]);
      if (b.size.takes_number()) out_ += number("=", b.size.number);
      if (b.size.updates) out_ += number(" updates=", b.size.updates);
      if (b.is_kept) out_ += " kept";
    }
    if (b.is_derived()) out_ += number(" of=", b.of) + " " + quoted(b.companion);
    if (b.alias_class) out_ += number(" class=", b.alias_class);
    if (b.layout.is_sparse()) out_ += number(" tree=", b.tree);
    if (!b.contiguous) out_ += " strided";
    if (!b.zero_based) out_ += " based";
    if (b.alignment > 1) out_ += number(" align=", b.alignment);
    layout(b.layout, b.rank);
    at(b.loc);
    out_ += "\n";
  }

  void layout(const Placement& l, uint8_t rank) {
    if (l.fast) out_ += number(" fast=", l.fast);
    if (l.step) out_ += number(" step=", l.step);
    if (l.group) out_ += number(" group=", l.group) + number(" bytes=", l.group_bytes);
    if (!l.offsets.empty())
      out_ += " offsets(" + joined(l.offsets, [](int32_t n) { return std::to_string(n); }) + ")";
    if (l.shifted) out_ += " shifted";
    blocks(l.levels, rank);
    for (const Placement::Pool& pool : l.pools) {
      out_ += number(" pool=", pool.children) + number(" unit=", pool.unit);
      if (pool.direct) out_ += " direct";
      if (pool.chunks) out_ += number(" chunks=", pool.chunks);
      if (pool.is_hashed()) {
        out_ += " hashed(";
        for (uint8_t k = 0; k < rank; k++) out_ += number(k ? ", " : "", pool.key[k]);
        out_ += ")";
      }
      blocks(pool.levels, rank);
    }
    if (l.is_of_cells()) {
      out_ += " cells(";
      for (uint8_t k = 0; k < rank; k++) out_ += number(k ? ", " : "", l.cell[k]);
      out_ += ")";
    }
    if (l.cut) out_ += " cut";
    if (l.wide) out_ += " wide";
    if (l.rebased) out_ += " rebased";
  }

  void blocks(std::span<const Placement::Level> all, uint8_t rank) {
    for (const Placement::Level& level : all) {
      out_ += " blocks(";
      for (uint8_t k = 0; k < rank; k++)
        out_ += number(k ? ", " : "", level.extent[k]) + number(":", level.stride[k]);
      out_ += ")";
    }
  }

  void site(const Site& s) {
    out_ += "site ";
    out_ += sites[s.kind];
    if (options_.locations && s.loc.line != 0)
      out_ += " " + quoted(s.loc.file) + number(":", uint64_t(s.loc.line));
    out_ += " " + quoted(s.text);
    if (!s.values.empty()) out_ += " (" + types(s.values) + ")";
    out_ += "\n";
  }

  void function(const Function& f) {
    out_ += "function " + symbol(f.name) + "(";
    const Names names(f.body);
    if (f.body) args(f.body, names);
    out_ += ")";
    if (!f.results.empty()) out_ += " -> (" + types(f.results) + ")";
    if (!f.derivative.empty()) out_ += " derivative=" + symbol(f.derivative);
    if (f.pushforward != no_function) out_ += number(" pushforward=", f.pushforward);
    if (f.pullback != no_function) out_ += number(" pullback=", f.pullback);
    at(f.loc);
    if (f.body) {
      out_ += " {\n";
      contents(f.body, names, 2);
      out_ += "}";
    }
    out_ += "\n";
  }

  void task(const Task& t) {
    out_ += "task ";
    out_ += tasks[t.kind];
    if (t.rank) out_ += number(" rank=", t.rank);
    if (t.walk != Task::unlowered) out_ += " walk=" + std::string(walks[t.walk]);
    if (t.innermost) out_ += number(" innermost=", t.innermost);
    if (t.options.ordinal != ~0u) out_ += number(" ordinal=", t.options.ordinal);
    if (t.grain) out_ += number(" grain=", t.grain);
    if (t.together != 1) out_ += number(" together=", t.together);
    if (t.strip != 0) out_ += number(" strip=", t.strip);
    out_ += options_of(t.options);
    if (t.lanes) out_ += " lanes";
    if (t.once) out_ += " once";
    if (t.merges != no_binding) out_ += number(" merges=", t.merges);
    if (t.follows.task != no_task) {
      out_ += number(" follows(", t.follows.task);
      for (const Following::Reach& r : t.follows.reach)
        out_ += number(", ", r.before) + number(" ", r.after);
      out_ += ")";
    }
    for (const Reduction& r : t.reductions)
      out_ += " reduce(" + std::string(name(r.op)) + " " + std::string(name(r.type)) +
              number(" ", r.cell) + ")";
    if (t.domain) {
      out_ += " domain";
      root(t.domain);
    }
    if (t.bound) {
      out_ += " bound";
      root(t.bound);
    }
    at(t.loc);
    if (t.body) root(t.body, &t);
    out_ += "\n";
  }

  static std::string steps(std::span<const Step> list) {
    std::string out = " {";
    for (const Step& s : list) {
      out += " " + std::string(text::steps[s.kind]);
      if (s.kind == Step::launch) {
        out += number(" ", s.task);
        continue;
      }
      if (s.kind == Step::refresh || s.kind == Step::collect) {
        out += number(" ", s.binding);
        continue;
      }
      if (s.kind == Step::reserve) {
        out += number(" ", s.binding) + number(" task=", s.task) + number(" claims=", s.claims) +
               steps(s.body);
        continue;
      }
      if (s.kind != Step::combining) out += number(" ", s.cell);
      if (s.kind == Step::repeat) out += steps(s.condition);
      out += steps(s.body);
    }
    return out + " }";
  }

  void root(const Region* region, const Task* task = nullptr) {
    const Names names(region);
    const Notes notes(kernel_, region, task, names, options_.notes);
    notes_ = options_.notes.empty() ? nullptr : &notes;
    block(region, names, 0);
    notes_ = nullptr;
  }

  void args(const Region* region, const Names& names) {
    out_ += joined(region->args,
                   [&](const Value& v) { return names(&v) + ": " + std::string(name(v.type)); });
  }

  void block(const Region* region, const Names& names, size_t indent) {
    out_ += " {";
    if (region && !region->args.empty()) {
      out_ += "(";
      args(region, names);
      out_ += ")";
      if (notes_) out_ += notes_->of(region->args);
    }
    out_ += "\n";
    if (region) contents(region, names, indent + 2);
    out_ += std::string(indent, ' ') + "}";
  }

  void contents(const Region* region, const Names& names, size_t indent) {
    for (const Inst* inst = region->first; inst; inst = inst->next) {
      out_ += std::string(indent, ' ') + head(inst, names);
      at(inst->loc);
      for (const Region* r : inst->regions) block(r, names, indent);
      if (notes_) out_ += notes_->of(inst);
      out_ += "\n";
    }
  }

  const Kernel& kernel_;
  PrintOptions options_;
  const Notes* notes_ = nullptr;  ///< of the root being printed
  std::string out_;
};

}  // namespace
}  // namespace text

std::string print(const Kernel& kernel, PrintOptions options) {
  return text::Printer(kernel, options).run();
}

std::string print(const Inst* inst) {
  const Region* root = inst->parent;
  while (root && root->parent && root->parent->parent) root = root->parent->parent;
  return text::head(inst, text::Names(root));
}

}  // namespace quern::ir

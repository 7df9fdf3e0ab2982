#include "tests/gpu/ptx/inline_calls.h"

#include <algorithm>

namespace quern::ptx {

namespace {

/// Deeper calls are a function that calls itself.
constexpr unsigned most_calls = 64;

class Inliner {
 public:
  Inliner(const Module& module, Function& f) : module_(module), f_(f) {}

  void run() {
    for (Variable& v : f_.variables)
      if (v.space == Space::param) v.space = Space::local;
    std::vector<Statement> before = std::move(f_.statements);
    const auto labels = std::move(f_.labels);
    f_.statements.clear();
    f_.labels.clear();
    copy(before, labels, "", {}, 0);
  }

 private:
  using Names = std::map<std::string, std::string, std::less<>>;

  const Function& callee(const Statement& call) const {
    const std::string& name = call.operands[0].name;
    auto it = std::ranges::find(module_.callees, name, &Function::name);
    if (it == module_.callees.end())
      throw Refused(call.line, "there is no function '" + name + "'");
    return *it;
  }

  /// `suffix` makes names of their own; `known` has those of parameters and results.
  void copy(const std::vector<Statement>& statements,
            const std::map<std::string, size_t, std::less<>>& labels, const std::string& suffix,
            const Names& known, unsigned depth) {
    std::vector<size_t> places;
    for (const Statement& s : statements) {
      places.push_back(f_.statements.size());
      if (s.words[0] == "call")
        call(s, suffix, known, depth);
      else
        f_.statements.push_back(renamed(s, suffix, known));
    }
    places.push_back(f_.statements.size());
    for (const auto& [name, place] : labels) f_.labels[name + suffix] = places[place];
  }

  void call(const Statement& s, const std::string& outer, const Names& outer_names,
            unsigned depth) {
    if (depth == most_calls) throw Refused(s.line, "functions that call each other without end");
    if (!s.guard.empty()) throw Refused(s.line, "a guarded call");
    const Function& f = callee(s);
    const std::string suffix = "#" + std::to_string(++calls_);
    Names names;
    auto bind = [&](const std::vector<Variable>& inner, const std::vector<Operand>& given) {
      if (inner.size() != given.size())
        throw Refused(s.line, "a call with other operands than '" + f.name + "' has");
      for (size_t k = 0; k < inner.size(); k++)
        names[inner[k].name] = name_of_variable(given[k].name, outer, outer_names);
    };
    bind(f.results, s.operands[1].elements);
    bind(f.parameters, s.operands[2].elements);
    for (const auto& [name, type] : f.registers) f_.registers.emplace(name + suffix, type);
    for (Variable v : f.variables) {
      v.name += suffix;
      if (v.space == Space::param) v.space = Space::local;
      f_.variables.push_back(std::move(v));
    }
    copy(f.statements, f.labels, suffix, names, depth + 1);
    f_.labels["return" + suffix] = f_.statements.size();
  }

  static std::string name_of_variable(const std::string& name, const std::string& suffix,
                                      const Names& known) {
    auto it = known.find(name);
    return it != known.end() ? it->second : suffix.empty() ? name : name + suffix;
  }

  bool is_local(const std::string& name) const {
    return std::ranges::any_of(
        f_.variables, [&](const Variable& v) { return v.name == name && v.space == Space::local; });
  }

  Statement renamed(Statement s, const std::string& suffix, const Names& known) {
    if (!suffix.empty()) {
      if (!s.guard.empty()) s.guard += suffix;
      if (s.words[0] == "ret") {
        s.words = {"bra"};
        s.operands.emplace_back().kind = Operand::word;
        s.operands[0].name = "return" + suffix;
        return s;
      }
      for (Operand& o : s.operands) rename(o, suffix, known);
    }
    for (const Operand& o : s.operands)
      if (o.kind == Operand::address && is_local(o.name))
        for (std::string& w : s.words)
          if (w == "param") w = "local";
    return s;
  }
  void rename(Operand& o, const std::string& suffix, const Names& known) const {
    for (Operand& e : o.elements) rename(e, suffix, known);
    if (!o.second.empty() && o.second != "_") o.second += suffix;
    if (o.name.empty() || o.name == "_" || is_shared_by_all(o.name)) return;
    o.name = name_of_variable(o.name, suffix, known);
  }
  /// Special registers and the module's variables.
  bool is_shared_by_all(const std::string& name) const {
    return name.starts_with("%tid") || name.starts_with("%ntid") || name.starts_with("%ctaid") ||
           name.starts_with("%nctaid") || name == "%laneid" ||
           std::ranges::any_of(module_.variables,
                               [&](const Variable& v) { return v.name == name; });
  }

  const Module& module_;
  Function& f_;
  unsigned calls_ = 0;
};

}  // namespace

void inline_calls(Module& module) {
  for (Function& f : module.functions) Inliner(module, f).run();
}

}  // namespace quern::ptx

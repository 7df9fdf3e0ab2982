#include <charconv>
#include <optional>

#include "tests/gpu/ptx/inline_calls.h"
#include "tests/gpu/ptx/lexer.h"

namespace quern::ptx {

namespace {

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> words;
  for (size_t at = 0; at <= text.size();) {
    const size_t dot = std::min(text.find('.', at), text.size());
    words.emplace_back(text.substr(at, dot - at));
    at = dot + 1;
  }
  return words;
}

bool has_vector_prefix(std::string_view word) { return word == ".v2" || word == ".v4"; }

class Parser {
 public:
  explicit Parser(std::string_view text) : in_(text) {}

  Module run() {
    while (in_.token().kind != Token::end) {
      if (in_.take(".version"))
        version();
      else if (in_.take(".target"))
        target();
      else if (in_.take(".address_size"))
        address_size();
      else if (at_linkage())
        in_.next();
      else if (in_.take(".entry"))
        module_.functions.push_back(function());
      else if (in_.take(".func"))
        callee();
      else if (in_.at(".file") || in_.at(".section"))
        throw refused("debug information");
      else if (std::optional<Space> space = variable_space())
        variables(*space, module_.variables);
      else
        throw refused("'" + std::string(in_.token().text) + "' is not known here");
    }
    return std::move(module_);
  }

 private:
  Refused refused(const std::string& what) const { return Refused(in_.token().line, what); }

  // ---- the module's head

  void version() {
    const std::string text(in_.next().text);
    const size_t dot = text.find('.');
    if (dot == std::string::npos) throw refused("'" + text + "' is not a version");
    module_.version =
        unsigned(std::stoul(text.substr(0, dot)) * 10 + std::stoul(text.substr(dot + 1)));
  }
  void target() {
    const std::string name(in_.expect_word().text);
    if (!name.starts_with("sm_")) throw refused("'" + name + "' is not an architecture");
    module_.target = unsigned(std::stoul(name.substr(3)));
    while (in_.take(",")) in_.expect_word();
  }
  void address_size() {
    if (!in_.at("64")) throw refused("addresses have 64 bits");
    in_.next();
  }
  bool at_linkage() const {
    for (const char* word : {".visible", ".weak", ".common"})
      if (in_.at(word)) return true;
    return false;
  }

  // ---- variables

  std::optional<Space> variable_space() {
    for (const char* word : {".global", ".const", ".shared", ".local", ".param"}) {
      Space space;
      if (in_.at(word) && space_of(word + 1, space)) {
        in_.next();
        return space;
      }
    }
    return {};
  }

  uint64_t integer() {
    const bool negative = in_.take("-");
    const Token token = in_.next();
    std::string_view digits = token.text;
    int base = 10;
    if (digits.starts_with("0x") || digits.starts_with("0X")) {
      base = 16;
      digits.remove_prefix(2);
    } else if (digits.starts_with("0b") && digits.size() > 2) {
      base = 2;
      digits.remove_prefix(2);
    } else if (digits.size() > 1 && digits[0] == '0') {
      base = 8;
      digits.remove_prefix(1);
    }
    if (digits.ends_with("U")) digits.remove_suffix(1);
    uint64_t value = 0;
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
    if (token.kind != Token::number || error != std::errc() || end != digits.data() + digits.size())
      throw Refused(token.line, "'" + std::string(token.text) + "' is not an integer");
    return negative ? 0 - value : value;
  }

  /// What follows the space: alignment, type, name, length and, of a variable, its initial value.
  Variable declaration(Space space) {
    Variable v;
    v.space = space;
    bool aligned = false;
    if (in_.take(".align")) {
      v.alignment = integer();
      aligned = true;
    }
    uint64_t count = 1;
    if (has_vector_prefix(in_.token().text)) count = in_.next().text == ".v2" ? 2 : 4;
    const Token type = in_.expect_word();
    const Type t = type_of(type.text.substr(1));
    if (t.width < 8) throw Refused(type.line, "a variable of type " + std::string(type.text));
    v.bytes = count * t.bytes();
    if (!aligned) v.alignment = v.bytes;
    v.name = in_.expect_word().text;
    if (in_.take("[")) {
      if (in_.at("]")) throw refused("an array without a length");
      v.bytes *= integer();
      in_.expect("]");
    }
    if (in_.take("=")) initialise(v, t);
    return v;
  }
  void initialise(Variable& v, Type t) {
    v.initial.assign(v.bytes, 0);
    size_t at = 0;
    auto element = [&] {
      const uint64_t value = number().value;
      if (at + t.bytes() > v.bytes) throw refused("more values than '" + v.name + "' has");
      for (unsigned k = 0; k < t.bytes(); k++) v.initial[at++] = uint8_t(value >> 8 * k);
    };
    if (!in_.take("{")) return element();
    do element();
    while (in_.take(","));
    in_.expect("}");
  }
  void variables(Space space, std::vector<Variable>& to) {
    to.push_back(declaration(space));
    in_.expect(";");
    if (scopes_.empty()) return;
    Variable& v = to.back();
    v.name = declare_name(v.name, in_.token().line);
  }

  // ---- functions

  std::vector<Variable> parameters() {
    std::vector<Variable> all;
    if (!in_.take("(")) return all;
    while (!in_.take(")")) {
      in_.expect(".param");
      all.push_back(declaration(Space::param));
      in_.take(",");
    }
    return all;
  }
  Function function() {
    Function f;
    f.line = in_.token().line;
    f.name = in_.expect_word().text;
    f.parameters = parameters();
    while (!in_.at("{") && !in_.at(";")) performance_directive(f);
    function_ = &f;
    if (in_.take("{")) block();
    return f;
  }
  /// A function that is called, or its declaration.
  void callee() {
    std::vector<Variable> results = parameters();
    Function f = function();
    f.results = std::move(results);
    if (in_.take(";")) return;
    module_.callees.push_back(std::move(f));
  }
  void performance_directive(Function& f) {
    const Token word = in_.expect_word();
    uint64_t product = integer();
    while (in_.take(",")) product *= integer();
    if (word.text == ".maxntid")
      f.max_threads = unsigned(product);
    else if (word.text != ".maxnreg" && word.text != ".minnctapersm")
      throw Refused(word.line, "'" + std::string(word.text) + "' is not known here");
  }

  /// Up to the closing brace.
  void block() {
    scopes_.emplace_back();
    while (!in_.take("}")) {
      if (in_.token().kind == Token::end) throw refused("a block without an end");
      if (in_.take("{"))
        block();
      else if (in_.take(".reg"))
        registers();
      else if (in_.take(".pragma"))
        pragma();
      else if (std::optional<Space> space = variable_space())
        variables(*space, function_->variables);
      else
        label_or_instruction();
    }
    scopes_.pop_back();
  }
  void pragma() {
    in_.expect_word();
    in_.expect(";");
  }
  void registers() {
    const Token word = in_.expect_word();
    const Type type = type_of(word.text.substr(1));
    if (type.kind == Type::none)
      throw Refused(word.line, "registers of type " + std::string(word.text));
    do {
      const std::string name(in_.expect_word().text);
      if (!in_.take("<")) {
        declare(name, type, word.line);
        continue;
      }
      const uint64_t count = integer();
      in_.expect(">");
      for (uint64_t k = 0; k < count; k++) declare(name + std::to_string(k), type, word.line);
    } while (in_.take(","));
    in_.expect(";");
  }
  void declare(const std::string& name, Type type, unsigned line) {
    function_->registers.emplace(declare_name(name, line), type);
  }
  /// What it is called in the function.
  std::string declare_name(const std::string& name, unsigned line) {
    const bool is_inner = scopes_.size() > 1;
    const std::string own = is_inner ? name + "@" + std::to_string(++inner_names_) : name;
    if (!scopes_.back().emplace(name, own).second)
      throw Refused(line, "a second '" + name + "' of the same block");
    return own;
  }
  /// The register or variable that a name means here.
  std::string meant(std::string_view name) const {
    for (size_t k = scopes_.size(); k-- > 0;)
      if (auto it = scopes_[k].find(name); it != scopes_[k].end()) return it->second;
    return std::string(name);
  }

  // ---- instructions

  void label_or_instruction() {
    const Token first = in_.token();
    Statement s;
    s.line = first.line;
    if (in_.take("@")) {
      s.guard_negated = in_.take("!");
      s.guard = meant(in_.expect_word().text);
    }
    const Token name = in_.expect_word();
    if (s.guard.empty() && in_.take(":")) {
      if (!function_->labels.emplace(name.text, function_->statements.size()).second)
        throw Refused(name.line, "a second label '" + std::string(name.text) + "'");
      return;
    }
    s.words = split(name.text);
    if (s.words[0] == "call") {
      call(s);
      s.text = in_.from(first);
      in_.next();
      function_->statements.push_back(std::move(s));
      return;
    }
    while (!in_.at(";")) {
      s.operands.push_back(operand());
      if (!in_.at(";")) in_.expect(",");
    }
    s.text = in_.from(first);
    in_.next();
    function_->statements.push_back(std::move(s));
  }

  /// call (results), name, (arguments): the operands are the name, the results and the arguments.
  void call(Statement& s) {
    auto names = [&] {
      Operand o;
      o.kind = Operand::vector;
      if (!in_.take("(")) return o;
      while (!in_.take(")")) {
        o.elements.push_back(operand());
        in_.take(",");
      }
      return o;
    };
    const Operand results = names();
    in_.take(",");
    s.operands.push_back(operand());
    s.operands.push_back(results);
    if (in_.take(",")) s.operands.push_back(names());
    if (s.operands.size() == 2) s.operands.emplace_back().kind = Operand::vector;
  }

  Operand number() {
    Operand o;
    const Token token = in_.token();
    const std::string_view text = token.text;
    const bool f32 = text.starts_with("0f") || text.starts_with("0F");
    const bool f64 = text.starts_with("0d") || text.starts_with("0D");
    if (!f32 && !f64) {
      o.literal = {Type::signed_, 64};
      o.value = integer();
      return o;
    }
    in_.next();
    o.literal = {Type::floating, uint16_t(f32 ? 32 : 64)};
    auto [end, error] = std::from_chars(text.data() + 2, text.data() + text.size(), o.value, 16);
    if (error != std::errc() || end != text.data() + text.size() || text.size() != (f32 ? 10 : 18))
      throw Refused(token.line, "'" + std::string(text) + "' is not a number");
    return o;
  }

  Operand operand() {
    Operand o;
    if (in_.take("[")) return address();
    if (in_.take("{")) {
      o.kind = Operand::vector;
      do o.elements.push_back(operand());
      while (in_.take(","));
      in_.expect("}");
      return o;
    }
    if (in_.token().kind == Token::number || in_.at("-")) return number();
    o.kind = Operand::word;
    o.negated = in_.take("!");
    o.name = meant(in_.expect_word().text);
    if (in_.take("|")) o.second = meant(in_.expect_word().text);
    if (in_.take("+")) o.offset = int64_t(integer());  // of a variable's address
    return o;
  }
  Operand address() {
    Operand o;
    o.kind = Operand::address;
    if (in_.token().kind == Token::word) {
      o.name = meant(in_.next().text);
      if (in_.take("+")) o.offset = int64_t(integer());
    } else {
      o.offset = int64_t(integer());
    }
    in_.expect("]");
    return o;
  }

  Lexer in_;
  Module module_;
  Function* function_ = nullptr;
  /// Names of registers in the blocks around, and what they are called in the function.
  std::vector<std::map<std::string, std::string, std::less<>>> scopes_;
  unsigned inner_names_ = 0;
};

}  // namespace

Type type_of(std::string_view word) {
  if (word == "pred") return {Type::predicate, 1};
  if (word.size() < 2) return {};
  unsigned width = 0;
  auto [end, error] = std::from_chars(word.data() + 1, word.data() + word.size(), width);
  if (error != std::errc() || end != word.data() + word.size()) return {};
  const bool known = width == 8 || width == 16 || width == 32 || width == 64;
  if (!known) return {};
  switch (word[0]) {
    case 'b': return {Type::bits, uint16_t(width)};
    case 'u': return {Type::unsigned_, uint16_t(width)};
    case 's': return {Type::signed_, uint16_t(width)};
    case 'f': return width == 8 ? Type{} : Type{Type::floating, uint16_t(width)};
    default: return {};
  }
}

std::string name_of(Type t) {
  if (t.kind == Type::predicate) return "pred";
  const char kinds[] = "?busf";
  return kinds[t.kind] + std::to_string(t.width);
}

bool space_of(std::string_view word, Space& space) {
  const std::pair<const char*, Space> known[] = {{"global", Space::global},
                                                 {"shared", Space::shared},
                                                 {"local", Space::local},
                                                 {"param", Space::param},
                                                 {"const", Space::constant}};
  for (auto [name, s] : known) {
    if (word != name) continue;
    space = s;
    return true;
  }
  return false;
}

bool Statement::has(std::string_view word) const {
  for (const std::string& w : words)
    if (w == word) return true;
  return false;
}

Module parse(std::string_view text) {
  Module module = Parser(text).run();
  inline_calls(module);
  return module;
}

}  // namespace quern::ptx

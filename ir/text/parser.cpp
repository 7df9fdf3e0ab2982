#include <charconv>
#include <cmath>
#include <unordered_map>

#include "ir/text/lexer.h"
#include "ir/text/words.h"
#include "quern/ir/builder.h"
#include "quern/ir/text.h"

namespace quern::ir {

namespace text {
namespace {

constexpr int deepest = 700;  ///< nesting of regions and steps: recursion stays within the stack

class Parser {
 public:
  Parser(std::string_view text, const std::string& source)
      : lexer_(text, source), kernel_(std::make_unique<Kernel>()), b_(*kernel_) {}

  std::unique_ptr<Kernel> run() {
    expect("quern");
    const Token version = lexer_.peek();
    if (integer<uint32_t>("the version of the text form") != 1)
      lexer_.fail(version.line, "version " + std::string(version.text) +
                                    " of the text form is unknown: 1 is known");
    header();
    while (lexer_.peek().kind != Token::end) section();
    return std::move(kernel_);
  }

 private:
  // ---- tokens

  bool accept(std::string_view what) {
    if (!lexer_.peek().is(what)) return false;
    lexer_.next();
    return true;
  }
  void expect(std::string_view what) {
    if (!accept(what)) lexer_.expected("'" + std::string(what) + "'");
  }
  Token take(Token::Kind kind, std::string_view what) {
    if (lexer_.peek().kind != kind) lexer_.expected(what);
    return lexer_.next();
  }
  /// `find` maps the next word to a value.
  template <class F>
  auto named(std::string_view what, F&& find) {
    if (lexer_.peek().kind != Token::word) lexer_.expected(what);
    auto found = find(lexer_.peek().text);
    if (!found) lexer_.expected(what);
    lexer_.next();
    return *found;
  }
  template <class E, size_t N>
  E named(const Words<E, N>& words, const std::string& what) {
    std::string all = what + " (";
    for (std::string_view w : words.names) all += (w == words.names[0] ? "" : " ") + std::string(w);
    return named(all + ")", [&](std::string_view t) { return words.find(t); });
  }
  Type type() { return named("a type", type_named); }
  template <class T>
  T integer(std::string_view what) {
    const Token& token = lexer_.peek();
    T v{};
    if (token.kind != Token::number || !whole(token.text, v)) lexer_.expected(what);
    lexer_.next();
    return v;
  }
  template <class T>
  static bool whole(std::string_view text, T& v, int base = 10) {
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), v, base);
    return error == std::errc() && end == text.data() + text.size();
  }
  template <class T>
  static bool real(std::string_view text, T& v) {
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), v);
    return error == std::errc() && end == text.data() + text.size();
  }
  template <class T>
  T attribute(std::string_view what) {
    expect("=");
    return integer<T>(what);
  }
  std::string string(std::string_view what) { return unquoted(lexer_, take(Token::string, what)); }
  std::string symbol() {
    expect("@");
    if (lexer_.peek().kind == Token::string) return string("a name");
    return std::string(take(Token::word, "a name").text);
  }
  /// `"file":line`
  Loc place() {
    Loc loc;
    loc.file = intern(string("a file name"));
    expect(":");
    loc.line = integer<int>("a line number");
    return loc;
  }
  Loc location() { return accept("@") ? place() : Loc{}; }
  /// Calls `item` for each of a comma-separated list up to the closing mark.
  template <class F>
  void list(std::string_view close, F&& item) {
    if (accept(close)) return;
    do item();
    while (accept(","));
    expect(close);
  }
  std::vector<Type> types() {
    std::vector<Type> out;
    expect("(");
    list(")", [&] { out.push_back(type()); });
    return out;
  }
  /// `binding.component`, which the lexer reads as one number.
  std::pair<uint32_t, uint32_t> pair() {
    const Token token = take(Token::number, "binding.component");
    const size_t dot = token.text.find('.');
    std::pair<uint32_t, uint32_t> out{0, 0};
    bool sound = whole(token.text.substr(0, dot), out.first);
    sound = sound && dot != token.text.npos && whole(token.text.substr(dot + 1), out.second);
    if (!sound)
      lexer_.fail(token.line,
                  "found '" + std::string(token.text) + "', expected binding.component");
    return out;
  }

  // ---- sections

  void header() {
    expect("kernel");
    kernel_->name = symbol();
    kernel_->modes = {false, false, false};
    kernel_->level = Level::structured;
    if (accept("level")) {
      expect("=");
      kernel_->level = named(levels, "a level");
    }
    if (accept("modes")) {
      expect("=");
      do modes();
      while (accept(","));
    }
    if (accept("results")) kernel_->results = types();
    kernel_->loc = location();
  }

  void modes() {
    Modes& m = kernel_->modes;
    if (accept("checked"))
      m.checked = true;
    else if (accept("strict"))
      m.strict = true;
    else if (accept("contract"))
      m.contract = true;
    else
      lexer_.expected("a mode (checked strict contract)");
  }

  void section() {
    const int line = lexer_.peek().line;
    auto once = [&](bool empty, std::string_view what) {
      if (!empty) lexer_.fail(line, "a second " + std::string(what));
    };
    if (accept("binding")) {
      binding();
    } else if (accept("frame")) {
      once(kernel_->frame.empty(), "frame");
      do kernel_->frame.push_back(type());
      while (accept(","));
    } else if (accept("site")) {
      site();
    } else if (accept("function")) {
      function();
    } else if (accept("body")) {
      once(!kernel_->body, "body");
      kernel_->body = root();
    } else if (accept("task")) {
      task();
    } else if (accept("schedule")) {
      once(kernel_->schedule.empty(), "schedule");
      kernel_->schedule = steps(0);
    } else {
      lexer_.expected("binding, frame, site, function, body, task or schedule");
    }
  }

  void binding() {
    Binding b;
    std::vector<Type> encodings;
    bool encoded = false;
    b.kind = named(bindings, "a kind of binding");
    if (accept("rank")) b.rank = attribute<uint8_t>("a rank");
    while (lexer_.peek().kind == Token::word) {
      const bool exact = !accept("inexact");
      b.components.push_back({type(), exact});
      const Type usual = storage_type(b.components.back().type);
      encodings.push_back(accept(":") ? type() : usual);
      encoded |= encodings.back() != usual;
      if (!accept(",")) break;
    }
    if (encoded) b.encodings = std::move(encodings);
    b.name = string("a type or the binding's name in quotes");
    if (b.kind == Binding::buffer) {
      b.size = buffer_size();
      b.is_kept = accept("kept");
    }
    if (accept("of")) {
      b.of = attribute<uint32_t>("a binding");
      b.companion = string("the companion's name");
    }
    if (accept("class")) b.alias_class = attribute<uint32_t>("an alias class");
    if (accept("tree")) b.tree = attribute<uint32_t>("a tree");
    b.contiguous = !accept("strided");
    b.zero_based = !accept("based");
    if (accept("align")) b.alignment = attribute<uint32_t>("a number of bytes");
    b.layout = layout(b.rank);
    b.loc = location();
    kernel_->bindings.push_back(std::move(b));
  }

  BufferSize buffer_size() {
    BufferSize size;
    expect("task");
    size.task = attribute<uint32_t>("a task's number");
    size.rule = named(buffer_sizes, "rows, iterations, constant, cell or copies");
    if (size.takes_number()) size.number = attribute<uint64_t>("a number");
    if (accept("updates")) size.updates = attribute<uint64_t>("a number of updates");
    return size;
  }

  Placement layout(uint8_t rank) {
    Placement l;
    if (accept("fast")) l.fast = attribute<uint8_t>("an axis");
    if (accept("step")) l.step = attribute<uint32_t>("a number of bytes");
    if (accept("group")) {
      l.group = attribute<uint32_t>("a number of elements");
      expect("bytes");
      l.group_bytes = attribute<uint32_t>("a number of bytes");
    }
    if (accept("offsets")) {
      expect("(");
      do l.offsets.push_back(integer<int32_t>("a number of bytes"));
      while (accept(","));
      expect(")");
    }
    l.shifted = accept("shifted");
    l.levels = blocks(rank);
    while (accept("pool")) {
      Placement::Pool pool;
      pool.children = attribute<uint32_t>("a number of children");
      expect("unit");
      pool.unit = attribute<uint32_t>("a number of children");
      pool.direct = accept("direct");
      if (accept("chunks")) pool.chunks = attribute<uint32_t>("a number of children");
      if (accept("hashed"))
        per_axis(rank, [&](uint8_t k) { pool.key[k] = integer<uint8_t>("a number of words"); });
      pool.levels = blocks(rank);
      l.pools.push_back(std::move(pool));
    }
    if (accept("cells"))
      per_axis(rank, [&](uint8_t k) { l.cell[k] = integer<uint32_t>("a number of elements"); });
    l.cut = accept("cut");
    l.wide = accept("wide");
    l.rebased = accept("rebased");
    return l;
  }

  template <class F>
  void per_axis(uint8_t rank, F&& read) {
    expect("(");
    for (uint8_t k = 0; k < rank; k++) {
      if (k) expect(",");
      read(k);
    }
    expect(")");
  }

  std::vector<Placement::Level> blocks(uint8_t rank) {
    std::vector<Placement::Level> all;
    while (accept("blocks")) {
      Placement::Level level;
      if (rank > Placement::max_axes) lexer_.expected("no more than 8 axes");
      expect("(");
      for (uint8_t k = 0; k < rank; k++) {
        if (k) expect(",");
        level.extent[k] = integer<uint32_t>("an extent");
        expect(":");
        level.stride[k] = integer<uint32_t>("a stride");
      }
      expect(")");
      all.push_back(level);
    }
    return all;
  }

  void site() {
    Site s;
    s.kind = named(sites, "a kind of site");
    const Token first = take(Token::string, "a text in quotes");
    s.text = unquoted(lexer_, first);
    if (accept(":")) {
      s.loc = {intern(s.text), integer<int>("a line number")};
      s.text = string("a text in quotes");
    }
    if (lexer_.peek().is("(")) s.values = types();
    kernel_->sites.push_back(std::move(s));
  }

  void function() {
    Function f;
    f.name = symbol();
    values_.clear();
    Region* body = b_.make_region();
    arguments(body);
    if (accept("->")) f.results = types();
    if (accept("derivative")) {
      expect("=");
      f.derivative = symbol();
      if (accept("pushforward")) f.pushforward = attribute<uint32_t>("the number of a function");
      if (accept("pullback")) f.pullback = attribute<uint32_t>("the number of a function");
    }
    f.loc = location();
    expect("{");
    contents(body, 0);
    f.body = body;
    kernel_->callees.push_back(std::move(f));
  }

  void task() {
    Task t;
    t.kind = named(tasks, "a kind of task");
    for (;;) {
      if (accept("rank")) {
        t.rank = attribute<uint8_t>("a rank");
      } else if (accept("walk")) {
        expect("=");
        t.walk = named(walks, "a walk");
      } else if (accept("innermost")) {
        t.innermost = attribute<uint8_t>("an axis");
      } else if (accept("ordinal")) {
        t.options.ordinal = attribute<uint32_t>("an ordinal");
      } else if (accept("over")) {
        t.options.over = attribute<uint32_t>("a binding");
      } else if (accept("grain")) {
        t.grain = attribute<uint64_t>("a number of iterations");
      } else if (accept("together")) {
        t.together = attribute<uint32_t>("a number of iterations");
      } else if (accept("strip")) {
        t.strip = attribute<uint32_t>("a number of iterations");
      } else if (accept("block")) {
        t.options.block = attribute<uint16_t>("a block size");
      } else if (accept("deterministic")) {
        t.options.deterministic = true;
      } else if (accept("lanes")) {
        t.lanes = true;
      } else if (accept("once")) {
        t.once = true;
      } else if (accept("merges")) {
        t.merges = attribute<uint32_t>("a binding");
      } else if (accept("follows")) {
        following(t);
      } else if (accept("reduce")) {
        reduction(t);
      } else if (lexer_.peek().is("@")) {
        t.loc = location();
      } else if (accept("domain")) {
        t.domain = root();
      } else if (accept("bound")) {
        t.bound = root();
      } else {
        break;
      }
    }
    if (!lexer_.peek().is("{")) lexer_.expected("an attribute of the task or its body");
    t.body = root();
    kernel_->tasks.push_back(std::move(t));
  }

  void following(Task& t) {
    expect("(");
    t.follows.task = integer<uint32_t>("a task's number");
    while (accept(",")) {
      Following::Reach reach;
      reach.before = integer<uint32_t>("iterations before");
      reach.after = integer<uint32_t>("iterations after");
      t.follows.reach.push_back(reach);
    }
    expect(")");
  }

  void reduction(Task& t) {
    Reduction r;
    expect("(");
    r.op = named("an atomic operation", atomic_named);
    r.type = type();
    r.cell = integer<uint32_t>("a frame cell");
    expect(")");
    t.reductions.push_back(r);
  }

  std::vector<Step> steps(int depth) {
    nested(depth);
    std::vector<Step> out;
    expect("{");
    while (!accept("}")) {
      Step s;
      s.kind = named(text::steps, "a step or '}'");
      if (s.kind == Step::launch) {
        s.task = integer<uint32_t>("a task's number");
      } else if (s.kind == Step::refresh || s.kind == Step::collect) {
        s.binding = integer<uint32_t>("a binding");
      } else if (s.kind == Step::reserve) {
        s.binding = integer<uint32_t>("a binding");
        expect("task");
        s.task = attribute<uint32_t>("a task's number");
        expect("claims");
        s.claims = attribute<uint32_t>("a number of elements");
        s.body = steps(depth + 1);
      } else {
        if (s.kind != Step::combining) s.cell = integer<uint32_t>("a frame cell");
        if (s.kind == Step::repeat) s.condition = steps(depth + 1);
        s.body = steps(depth + 1);
      }
      out.push_back(std::move(s));
    }
    return out;
  }

  // ---- regions and instructions

  void nested(int depth) const {
    if (depth > deepest)
      lexer_.fail(lexer_.peek().line, "nested more than " + std::to_string(deepest) + " deep");
  }

  Region* root() {
    values_.clear();
    expect("{");
    Region* region = b_.make_region();
    if (accept("(")) arguments_after_mark(region);
    contents(region, 0);
    return region;
  }

  void arguments(Region* region) {
    expect("(");
    arguments_after_mark(region);
  }

  void arguments_after_mark(Region* region) {
    std::vector<Token> names;
    std::vector<Type> all;
    list(")", [&] {
      names.push_back(take(Token::value, "an argument (%name: type)"));
      expect(":");
      all.push_back(type());
    });
    region->args = b_.make_region(all)->args;
    for (size_t k = 0; k < names.size(); k++) {
      region->args[k].region = region;
      define(names[k], &region->args[k], region);
    }
  }

  /// The instructions of a region whose `{` has been taken, and its `}`.
  void contents(Region* region, int depth) {
    nested(depth);
    Region* const outer = b_.region();
    b_.at_end(region);
    while (!accept("}")) instruction(depth);
    for (const Token& name : defined_[region]) values_[name.text].open = false;
    defined_.erase(region);
    b_.at_end(outer);
  }

  struct Named {
    Value* value = nullptr;
    bool open = false;  ///< its region has not ended: the name is taken
    int line = 0;
  };

  void define(const Token& name, Value* v, Region* region) {
    Named& entry = values_[name.text];
    if (entry.open)
      lexer_.fail(name.line, std::string(name.text) + " is already defined in line " +
                                 std::to_string(entry.line));
    entry = {v, true, name.line};
    defined_[region].push_back(name);
  }

  Value* operand() {
    const Token name = take(Token::value, "a value");
    auto it = values_.find(name.text);
    if (it == values_.end())
      lexer_.fail(name.line, std::string(name.text) + " is not defined before its use");
    return it->second.value;
  }

  void instruction(int depth) {
    std::vector<Token> names;
    if (lexer_.peek().kind == Token::value) {
      do names.push_back(take(Token::value, "a value"));
      while (accept(","));
      expect("=");
    }
    const int line = lexer_.peek().line;
    const Op op = named(names.empty() ? "an instruction or '}'" : "an operation", op_named);
    const OpInfo& row = info(op);
    const uint8_t kind = kind_of(row.kind);
    Attributes attributes = attributes_of(row.names);
    std::vector<Value*> operands;
    // an operand list starts on the line of its operation: `yield` stands before `%a = …`
    if (lexer_.peek().kind == Token::value && lexer_.peek().line == line) {
      do operands.push_back(operand());
      while (accept(","));
    }
    std::vector<Type> results;
    Type elem = Type::none;
    if (accept(":")) {
      do results.push_back(type());
      while (accept(","));
      if (row.form.elem == ElemUse::own) elem = type();
    }
    if (results.size() != names.size())
      lexer_.fail(line, "found " + std::to_string(results.size()) + " result types for " +
                            std::to_string(names.size()) + " results");
    if (row.names == NameUse::bits) attributes.imm = literal(attributes, results);

    Inst* inst = b_.make(op, results, operands, attributes.imm);
    inst->part = attributes.part;
    inst->options = attributes.options;
    inst->kind = kind;
    inst->elem = row.form.elem == ElemUse::own ? elem : moved(inst, row.form.elem);
    if (accept("!")) inst->site = integer<uint32_t>("a site's number");
    inst->loc = location();
    regions(inst, depth);
    if (row.kind == KindUse::rank) inst->kind = rank_of(inst);
    for (size_t k = 0; k < names.size(); k++) define(names[k], inst->result(k), b_.region());
  }

  /// The scalar that an operation moves.
  static Type moved(const Inst* inst, ElemUse use) {
    if (use == ElemUse::result) return inst->type();
    if (use == ElemUse::none || inst->operands.empty()) return Type::none;
    return inst->operands.back().value->type;
  }

  /// Of a loop over a box: two bounds an axis; over a field: an index.
  static uint8_t rank_of(const Inst* inst) {
    size_t axes = inst->operand_count() / 2;
    if (inst->options.over != no_binding)
      axes = inst->regions.empty() ? 0 : inst->region(0)->args.size();
    return uint8_t(std::min<size_t>(axes, 255));
  }

  void regions(Inst* inst, int depth) {
    std::vector<Region*> all;
    while (accept("{")) {
      if (all.size() == 2) lexer_.fail(lexer_.line(), "a third region");
      Region* region = b_.make_region();
      region->parent = inst;
      if (accept("(")) arguments_after_mark(region);
      contents(region, depth + 1);
      all.push_back(region);
    }
    if (all.size() == 1) b_.set_regions(inst, {all[0]});
    if (all.size() == 2) b_.set_regions(inst, {all[0], all[1]});
  }

  uint8_t kind_of(KindUse use) {
    switch (use) {
      case KindUse::atomic:
      case KindUse::combine:
        expect(".");
        return uint8_t(named("an atomic operation", atomic_named));
      case KindUse::builtin: expect("."); return uint8_t(named("a builtin", builtin_named));
      default: break;
    }
    uint8_t kind = 0;
    while (!flags_of(use).empty() && accept(".")) {
      kind |= named("a flag of the operation", [&](std::string_view t) -> std::optional<uint8_t> {
        for (const Flag& f : flags_of(use))
          if (f.name == t) return f.bit;
        return std::nullopt;
      });
    }
    return kind;
  }

  /// The attributes of an instruction that stand before its operands.
  struct Attributes {
    uint64_t imm = 0;
    Part part;
    LoopOptions options;
    Token literal, bits;  ///< of a constant: read when its type is known
  };

  Attributes attributes_of(NameUse use) {
    Attributes a;
    if (use == NameUse::options) {
      if (accept("over")) a.options.over = attribute<uint32_t>("a binding");
      a.options.deterministic = accept("deterministic");
      if (accept("block")) a.options.block = attribute<uint16_t>("a block size");
      if (accept("ordinal")) a.options.ordinal = attribute<uint32_t>("an ordinal");
      return a;
    }
    const bool omitted = use == NameUse::nothing || use == NameUse::reduction;
    if (omitted && !lexer_.peek().is("<")) return a;
    expect("<");
    if (use == NameUse::bits) {
      a.literal = lexer_.next();
      if (a.literal.kind != Token::number && a.literal.kind != Token::word)
        lexer_.fail(a.literal.line, "expected a number");
      if (accept(":")) a.bits = take(Token::number, "the bits of a NaN (0x…)");
    } else if (use == NameUse::binding) {
      a.part.binding = integer<uint32_t>("a binding");
    } else if (use == NameUse::axis || use == NameUse::component) {
      std::tie(a.part.binding, a.part.component) = pair();
    } else {
      a.imm = integer<uint64_t>("a number");
    }
    expect(">");
    return a;
  }

  Bits literal(const Attributes& a, std::span<const Type> results) const {
    const Type type = results.empty() ? Type::none : results[0];
    const std::string_view text = a.literal.text;
    Bits bits = 0;
    bool sound = false;
    if (a.bits.kind == Token::number) {
      sound = text == "nan" && a.bits.text.starts_with("0x") &&
              whole(a.bits.text.substr(2), bits, 16) && bits == truncate(bits, type) &&
              is_float(type) && std::isnan(real_of(bits, type));
    } else if (type == Type::f16) {
      float v = 0;
      sound = real(text, v) && !std::isnan(v);
      bits = bits_of_half(v);
    } else if (type == Type::f32) {
      float v = 0;
      sound = real(text, v) && !std::isnan(v);
      bits = bits_of(v);
    } else if (type == Type::f64) {
      double v = 0;
      sound = real(text, v) && !std::isnan(v);
      bits = bits_of(v);
    } else if (is_signed(type)) {
      int64_t v = 0;
      sound = whole(text, v);
      bits = truncate(Bits(v), type);
      sound = sound && to_signed(bits, type) == v;
    } else {
      sound = whole(text, bits) && bits == truncate(bits, type);
    }
    if (!sound)
      lexer_.fail(a.literal.line, "found '" + std::string(text) +
                                      "', expected a constant of type " + std::string(name(type)));
    return bits;
  }

  Lexer lexer_;
  std::unique_ptr<Kernel> kernel_;
  Builder b_;
  std::unordered_map<std::string_view, Named> values_;
  std::unordered_map<Region*, std::vector<Token>> defined_;
};

}  // namespace
}  // namespace text

std::unique_ptr<Kernel> parse(std::string_view text, const std::string& source) {
  return text::Parser(text, source).run();
}

}  // namespace quern::ir

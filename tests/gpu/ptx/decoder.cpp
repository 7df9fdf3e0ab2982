#include "tests/gpu/ptx/decoder.h"

#include <algorithm>

#include "tests/gpu/ptx/joins.h"

namespace quern::ptx {

// ---- words

std::string_view Words::next() const {
  return at_ < statement_.words.size() ? std::string_view(statement_.words[at_]) : "";
}

bool Words::take(std::string_view word) {
  if (next() != word) return false;
  at_++;
  return true;
}

int Words::take_one_of(std::span<const char* const> words) {
  for (size_t k = 0; k < words.size(); k++)
    if (take(words[k])) return int(k);
  return -1;
}

Type Words::take_type() {
  const Type t = type_of(next());
  if (t.kind == Type::none) throw refused("'" + std::string(next()) + "' is not known in");
  at_++;
  return t;
}

Rounding Words::take_rounding(bool required) {
  const char* const modes[] = {"rn", "rz", "rm", "rp"};
  const int mode = take_one_of(modes);
  if (mode < 0 && required) throw refused("no rounding mode in");
  return mode < 0 ? Rounding::nearest : Rounding(mode);
}

void Words::finish(size_t operands) const {
  if (at_ != statement_.words.size())
    throw refused("'" + std::string(next()) + "' is not known in");
  if (statement_.operands.size() != operands)
    throw refused(std::to_string(statement_.operands.size()) + " operands instead of " +
                  std::to_string(operands) + " in");
}

Refused Words::refused(const std::string& what) const {
  return Refused(statement_.line, what + " '" + statement_.text + "'");
}

// ---- functions

namespace {

constexpr std::pair<const char*, Special> special_names[] = {
    {"%tid.x", Special::tid_x},       {"%tid.y", Special::tid_y},
    {"%tid.z", Special::tid_z},       {"%ntid.x", Special::ntid_x},
    {"%ntid.y", Special::ntid_y},     {"%ntid.z", Special::ntid_z},
    {"%ctaid.x", Special::ctaid_x},   {"%ctaid.y", Special::ctaid_y},
    {"%ctaid.z", Special::ctaid_z},   {"%nctaid.x", Special::nctaid_x},
    {"%nctaid.y", Special::nctaid_y}, {"%nctaid.z", Special::nctaid_z},
    {"%laneid", Special::laneid}};

/// Registers of one kind may be used as another: bits as anything, integers as integers.
bool agree(Type declared, Type used) {
  if (declared.kind == Type::bits || used.kind == Type::bits) return true;
  return (declared.kind == Type::floating) == (used.kind == Type::floating);
}

const Decode* find(const std::string& name) {
  for (const Family* family : {&arithmetic_family(), &comparison_family(), &movement_family(),
                               &memory_family(), &control_family()})
    if (auto it = family->find(name); it != family->end()) return &it->second;
  return nullptr;
}

}  // namespace

Decoder::Decoder(const Function& f, const std::map<std::string, uint64_t, std::less<>>& variables,
                 Code& code)
    : function_(f), variables_(variables), code_(code) {
  for (const auto& [name, type] : f.registers)
    numbers_[name] = int32_t(type.kind == Type::predicate ? code_.predicates++ : code_.registers++);
}

void Decoder::run() {
  code_.code.reserve(function_.statements.size() + 1);
  code_.texts.reserve(function_.statements.size());
  for (const Statement& s : function_.statements) decode(s);
  if (function_.statements.empty() ||
      (code_.code.back().control != Inst::leave && code_.code.back().control != Inst::branch))
    throw Refused(function_.line, "the end of '" + function_.name + "' can be reached");
  find_joins(code_.code);
}

void Decoder::decode(const Statement& s) {
  statement_ = &s;
  code_.texts.push_back(s.text);
  inst_ = &code_.code.emplace_back();
  inst_->line = s.line;
  inst_->text = &code_.texts.back();
  if (!s.guard.empty()) {
    inst_->guard = predicate(s.guard);
    inst_->guard_negated = s.guard_negated;
  }
  const Decode* known = find(s.words[0]);
  if (!known) throw refused("an unknown instruction,");
  (*known)(*this);
}

Refused Decoder::refused(const std::string& what) const {
  return Refused(statement_->line, what + " '" + statement_->text + "'");
}

Type Decoder::register_type(const std::string& name) const {
  auto it = function_.registers.find(name);
  return it == function_.registers.end() ? Type{} : it->second;
}

int32_t Decoder::register_number(const std::string& name) {
  for (auto [known, special] : special_names) {
    if (name != known) continue;
    auto [it, is_new] = numbers_.emplace(name, int32_t(code_.registers));
    if (is_new) code_.special.push_back({special, code_.registers++});
    return it->second;
  }
  auto it = numbers_.find(name);
  if (it == numbers_.end()) throw refused("'" + name + "' is not declared, in");
  return it->second;
}

void Decoder::to(size_t slot, size_t k, Type type, bool wider) {
  to(slot, operand(k), type, wider);
}
void Decoder::from(size_t slot, size_t k, Type type, bool wider) {
  from(slot, operand(k), type, wider);
}

void Decoder::to(size_t slot, const Operand& o, Type type, bool wider) {
  if (o.kind != Operand::word || o.negated || !o.second.empty()) throw refused("no destination in");
  if (o.name == "_") return;
  const Type declared = register_type(o.name);
  const bool fits = declared.width == type.width || (wider && declared.width > type.width);
  if (declared.kind == Type::none || declared.kind == Type::predicate || !fits ||
      !agree(declared, type))
    throw refused("'" + o.name + "' is no register for " + name_of(type) + " in");
  inst_->to[slot] = register_number(o.name);
}

void Decoder::from(size_t slot, const Operand& o, Type type, bool wider) {
  if (o.kind == Operand::number) {
    inst_->from[slot] = constant(immediate(o, type));
    return;
  }
  if (o.kind != Operand::word || o.negated || !o.second.empty()) throw refused("no source in");
  if (uint64_t address = 0; variable(o.name, address)) {
    const bool fits = type.width == 64 || (type.width == 32 && address <= UINT32_MAX);
    if (!fits) throw refused("an address is no " + name_of(type) + " in");
    inst_->from[slot] = constant(address);
    return;
  }
  if (o.offset != 0) throw refused("a sum of a register and a number in");
  const bool is_special =
      std::ranges::any_of(special_names, [&](auto& s) { return o.name == s.first; });
  const Type declared = is_special ? Type{Type::unsigned_, 32} : register_type(o.name);
  const bool fits = declared.width == type.width || (wider && declared.width > type.width);
  if (!fits || declared.kind == Type::predicate || !agree(declared, type))
    throw refused("'" + o.name + "' is no source of " + name_of(type) + " in");
  inst_->from[slot] = register_number(o.name);
}

uint64_t Decoder::immediate(const Operand& o, Type type) const {
  if (o.literal.kind == Type::floating) {
    if (type.kind != Type::floating && type.kind != Type::bits)
      throw refused("a float among integers in");
    if (type.width == o.literal.width) return o.value;
    throw refused("a float of another width in");
  }
  if (type.kind == Type::floating) throw refused("an integer among floats in");
  const uint64_t mask = type.width == 64 ? ~0ull : (1ull << type.width) - 1;
  const auto value = int64_t(o.value);
  const int64_t lowest = type.width == 64 ? INT64_MIN : -(1ll << (type.width - 1));
  if (o.value > mask && value < lowest) throw refused("a number that does not fit in");
  if (o.value > mask && value >= 0) throw refused("a number that does not fit in");
  return o.value & mask;
}

int32_t Decoder::constant(uint64_t value) {
  auto [it, is_new] = constants_.emplace(value, int32_t(code_.constants.size() / warp_size));
  if (is_new) code_.constants.insert(code_.constants.end(), warp_size, value);
  return ~it->second;
}

int32_t Decoder::predicate(const std::string& name) {
  if (register_type(name).kind != Type::predicate)
    throw refused("'" + name + "' is no predicate in");
  return numbers_.find(name)->second;
}

int32_t Decoder::predicate(size_t k, bool may_be_negated) {
  const Operand& o = operand(k);
  if (o.kind != Operand::word || (o.negated && !may_be_negated)) throw refused("no predicate in");
  return predicate(o.name);
}

bool Decoder::variable(const std::string& name, uint64_t& address) const {
  auto it = variables_.find(name);
  if (it == variables_.end()) return false;
  address = it->second;
  return true;
}

void Decoder::address(size_t k) {
  const Operand& o = operand(k);
  if (o.kind != Operand::address) throw refused("no address in");
  inst_->offset = o.offset;
  if (o.name.empty()) {
    inst_->from[0] = constant(0);
    return;
  }
  Operand base;
  base.kind = Operand::word;
  base.name = o.name;
  // Where 32 bits reach all of a space, its addresses may have as many.
  const bool is_small = inst_->space != Space::generic && inst_->space != Space::global;
  const bool is_narrow = is_small && register_type(o.name).width == 32;
  if (is_narrow) inst_->address_mask = UINT32_MAX;
  from(0, base, {Type::bits, uint16_t(is_narrow ? 32 : 64)});
}

uint32_t Decoder::label(const std::string& name) const {
  auto it = function_.labels.find(name);
  if (it == function_.labels.end()) throw refused("there is no label '" + name + "', in");
  return uint32_t(it->second);
}

// ---- modules

namespace {

uint64_t round_up(uint64_t n, uint64_t unit) { return (n + unit - 1) / unit * unit; }

class Loader {
 public:
  Loader(Image& image, const Place& place) : image_(image), place_(place) {}

  void run() {
    for (const Variable& v : image_.source.variables) module_variable(v);
    for (const Function& f : image_.source.functions) function(f);
  }

 private:
  void module_variable(const Variable& v) {
    uint64_t address = 0;
    if (v.space == Space::global) {
      address = place_(v);
    } else if (v.space == Space::constant) {
      const size_t offset = round_up(image_.constants.size(), v.alignment);
      image_.constants.resize(offset + v.bytes);
      std::copy(v.initial.begin(), v.initial.end(), image_.constants.begin() + long(offset));
      address = offset;
    } else {
      address = shared_ = round_up(shared_, v.alignment);
      shared_ += v.bytes;
    }
    variables_[v.name] = address;
  }

  void function(const Function& f) {
    auto code = std::make_unique<Code>();
    code->name = f.name;
    code->line = f.line;
    code->max_threads = f.max_threads;
    code->shared_bytes = shared_;
    auto variables = variables_;
    auto lay_out = [&](const Variable& v, uint64_t& bytes) {
      const uint64_t at = round_up(bytes, v.alignment);
      bytes = at + v.bytes;
      if (!variables.emplace(v.name, at).second)
        throw Refused(f.line, "a second variable '" + v.name + "'");
      return at;
    };
    for (const Variable& v : f.parameters) {
      code->parameter_offsets.push_back(lay_out(v, code->parameter_bytes));
      code->parameter_sizes.push_back(v.bytes);
    }
    for (const Variable& v : f.variables)
      lay_out(v, v.space == Space::local ? code->local_bytes : code->shared_bytes);
    Decoder(f, variables, *code).run();
    image_.functions.push_back(std::move(code));
  }

  Image& image_;
  const Place& place_;
  std::map<std::string, uint64_t, std::less<>> variables_;
  uint64_t shared_ = 0;
};

}  // namespace

const Code* Image::find(std::string_view name) const {
  for (const auto& f : functions)
    if (f->name == name) return f.get();
  return nullptr;
}

std::unique_ptr<Image> load(std::string_view text, const Place& place) {
  auto image = std::make_unique<Image>();
  image->source = parse(text);
  Loader(*image, place).run();
  return image;
}

}  // namespace quern::ptx

#pragma once
// Makes executable code of parsed instructions. Each family of instructions has a source file of its
// own, which registers what it knows by the first word.
#include <map>
#include <span>

#include "tests/gpu/ptx/code.h"

namespace quern::ptx {

/// The words of an instruction in order; what is not taken is not known.
class Words {
 public:
  explicit Words(const Statement& s) : statement_(s) {}

  const std::string& first() const { return statement_.words[0]; }
  bool take(std::string_view word);
  /// The number of the word among these that comes next, taken; -1: none.
  int take_one_of(std::span<const char* const> words);
  /// The type that must come next.
  Type take_type();
  Rounding take_rounding(bool required);
  /// All words are taken, all operands there.
  void finish(size_t operands) const;
  Refused refused(const std::string& what) const;

 private:
  std::string_view next() const;
  const Statement& statement_;
  size_t at_ = 1;
};

/// Of one function.
class Decoder {
 public:
  Decoder(const Function& f, const std::map<std::string, uint64_t, std::less<>>& variables,
          Code& code);
  void run();

  // ---- for the families

  const Statement& statement() const { return *statement_; }
  Words words() const { return Words(*statement_); }
  Inst& inst() { return *inst_; }
  size_t operand_count() const { return statement_->operands.size(); }
  const Operand& operand(size_t k) const { return statement_->operands[k]; }

  /// Operand k as destination or source of this type: `wider` allows registers of more bits.
  void to(size_t slot, size_t k, Type type, bool wider = false);
  void from(size_t slot, size_t k, Type type, bool wider = false);
  void to(size_t slot, const Operand& o, Type type, bool wider = false);
  void from(size_t slot, const Operand& o, Type type, bool wider = false);
  /// Operand k as a predicate.
  int32_t predicate(size_t k, bool may_be_negated = false);
  int32_t predicate(const std::string& name);
  /// [base + offset] into slot 0 and the offset.
  void address(size_t k);
  Type register_type(const std::string& name) const;
  /// The address of a variable; false where there is none of this name.
  bool variable(const std::string& name, uint64_t& address) const;
  int32_t constant(uint64_t value);
  uint32_t label(const std::string& name) const;
  Refused refused(const std::string& what) const;

 private:
  void decode(const Statement& s);
  int32_t register_number(const std::string& name);
  uint64_t immediate(const Operand& o, Type type) const;

  const Function& function_;
  const std::map<std::string, uint64_t, std::less<>>& variables_;
  Code& code_;
  std::map<std::string, int32_t, std::less<>> numbers_;
  std::map<uint64_t, int32_t> constants_;
  const Statement* statement_ = nullptr;
  Inst* inst_ = nullptr;
};

using Decode = void (*)(Decoder&);
using Family = std::map<std::string, Decode, std::less<>>;
const Family& arithmetic_family();  ///< integers and floats, element by element
const Family& comparison_family();  ///< setp, selp, logic of predicates
const Family& movement_family();    ///< mov, cvt, cvta
const Family& memory_family();      ///< ld, st, atom, red, fences
const Family& control_family();     ///< branches, barriers, shuffles, votes

}  // namespace quern::ptx

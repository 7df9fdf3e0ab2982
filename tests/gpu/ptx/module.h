#pragma once
// PTX as it is written: what the parser makes of a text, and the decoder reads.
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace quern::ptx {

/// A text that is refused: what the PTX ISA manual (NVIDIA, "Parallel Thread Execution ISA") does
/// not have, or what this machine does not know. The message begins with the line.
struct Refused : std::runtime_error {
  Refused(unsigned line, const std::string& what)
      : std::runtime_error("line " + std::to_string(line) + ": " + what) {}
};

struct Type {
  enum Kind : uint8_t { none, bits, unsigned_, signed_, floating, predicate };
  Kind kind = none;
  uint16_t width = 0;  ///< in bits; a predicate has 1

  unsigned bytes() const { return width / 8; }
  bool operator==(const Type&) const = default;
};
/// "f32", "b64", "pred"; kind none where it is no type.
Type type_of(std::string_view word);
std::string name_of(Type type);

enum class Space : uint8_t { generic, global, shared, local, param, constant };
/// "global", "const"; none where it is no space's name.
bool space_of(std::string_view word, Space& space);

/// A variable of a module or function, or a parameter.
struct Variable {
  std::string name;
  Space space = Space::generic;
  uint64_t bytes = 0, alignment = 1;
  std::vector<uint8_t> initial;  ///< empty: none
};

struct Operand {
  enum Kind : uint8_t { number, word, address, vector };
  Kind kind = number;
  Type literal;                   ///< of a number: f32 and f64 for 0f… and 0d…, s64 for integers
  uint64_t value = 0;             ///< of a number
  std::string name;               ///< of a word; of the base of an address, "" where it is a number
  int64_t offset = 0;             ///< of an address
  bool negated = false;           ///< !%p
  std::string second;             ///< %p|%q
  std::vector<Operand> elements;  ///< of a vector
};

/// An instruction, as its words: "ld", "global", "nc", "f32".
struct Statement {
  unsigned line = 0;
  std::string text;  ///< as it stands, for messages
  std::vector<std::string> words;
  std::vector<Operand> operands;
  std::string guard;  ///< a predicate, or ""
  bool guard_negated = false;

  bool has(std::string_view word) const;
};

struct Function {
  std::string name;
  unsigned line = 0;
  std::vector<Variable> parameters, results;
  std::map<std::string, Type, std::less<>> registers;
  std::vector<Variable> variables;  ///< local and shared ones; of space param: for a call
  std::vector<Statement> statements;
  std::map<std::string, size_t, std::less<>> labels;  ///< the statement behind each
  unsigned max_threads = 0;                           ///< .maxntid; 0: not said
};

struct Module {
  unsigned version = 0;  ///< 78 is 7.8
  unsigned target = 0;   ///< 80 is sm_80
  std::vector<Variable> variables;
  std::vector<Function> functions;  ///< entries
  std::vector<Function> callees;    ///< each behind those that it calls
};

/// Throws Refused.
Module parse(std::string_view text);

}  // namespace quern::ptx

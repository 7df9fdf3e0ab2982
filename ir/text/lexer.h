#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "quern/error.h"

namespace quern::ir::text {

struct Token {
  enum Kind : uint8_t {
    end,
    word,    ///< add, f32
    number,  ///< -1, 2.5e-03, 0x7fc00000, -inf: whatever starts with a digit or a minus
    value,   ///< %name
    string,  ///< "…"; `text` includes the quotes
    mark,    ///< one of ( ) { } < > [ ] , : = . ! @ and ->
  };
  Kind kind = end;
  std::string_view text;
  int line = 1;

  bool is(std::string_view t) const { return kind != string && text == t; }
};

/// Splits text into tokens, one ahead. `;` starts a comment.
class Lexer {
 public:
  Lexer(std::string_view text, const std::string& source);

  const Token& peek() const { return token_; }
  Token next();
  /// Line of the token taken last.
  int line() const { return line_; }

  [[noreturn]] void fail(int line, const std::string& message) const;
  /// "found X, expected Y" at the next token.
  [[noreturn]] void expected(std::string_view what) const;

 private:
  void advance();
  size_t span(size_t from, bool (*belongs)(char)) const;
  size_t number_end() const;
  size_t string_end() const;

  std::string_view text_;
  const char* source_;
  size_t at_ = 0;
  int here_ = 1, line_ = 1;
  Token token_;
};

/// The characters a string token stands for. Throws through `lexer` where an escape is unknown.
std::string unquoted(const Lexer& lexer, const Token& token);

}  // namespace quern::ir::text

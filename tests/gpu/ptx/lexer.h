#pragma once
// The words of a PTX text.
#include <string_view>

#include "tests/gpu/ptx/module.h"

namespace quern::ptx {

struct Token {
  enum Kind : uint8_t { end, word, number, mark };
  Kind kind = end;
  std::string_view text;  ///< a mark is one character
  unsigned line = 1;
};

/// Walks through a text, past comments. Words hold the dots, dollars and percent signs in them.
class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) { advance(); }

  const Token& token() const { return token_; }
  Token next();
  bool at(std::string_view text) const { return token_.kind != Token::end && token_.text == text; }
  /// Takes the token if it is this one.
  bool take(std::string_view text);
  void expect(std::string_view text);
  Token expect_word();
  /// The text from a token to before the present one, on one line.
  std::string from(const Token& first) const;

 private:
  void skip();
  void advance();

  std::string_view text_;
  size_t at_ = 0;
  unsigned line_ = 1;
  Token token_;
};

}  // namespace quern::ptx

#include "ir/text/lexer.h"

#include <algorithm>

namespace quern::ir::text {

namespace {
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool in_word(char c) { return is_letter(c) || is_digit(c); }
bool in_name(char c) { return in_word(c) || c == '.'; }

int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/// A token as a message shows it: short, printable.
std::string shown(const Token& token) {
  if (token.kind == Token::end) return "the end of the text";
  std::string out = "'";
  for (char c : token.text.substr(0, 40)) out += c >= ' ' && c < 0x7f ? c : '?';
  return out + (token.text.size() > 40 ? "…'" : "'");
}
}  // namespace

Lexer::Lexer(std::string_view text, const std::string& source)
    : text_(text), source_(intern(source)) {
  advance();
}

void Lexer::fail(int line, const std::string& message) const {
  throw Error(Loc{source_, line}, message);
}

void Lexer::expected(std::string_view what) const {
  fail(token_.line, "found " + shown(token_) + ", expected " + std::string(what));
}

Token Lexer::next() {
  Token taken = token_;
  line_ = taken.line;
  advance();
  return taken;
}

size_t Lexer::span(size_t from, bool (*belongs)(char)) const {
  while (from < text_.size() && belongs(text_[from])) from++;
  return from;
}

size_t Lexer::number_end() const {
  size_t p = at_ + 1;
  while (p < text_.size()) {
    const char c = text_[p];
    const bool exponent = text_[p - 1] == 'e' || text_[p - 1] == 'E';
    if (!in_name(c) && !(exponent && (c == '-' || c == '+'))) break;
    p++;
  }
  return p;
}

size_t Lexer::string_end() const {
  size_t p = at_ + 1;
  while (p < text_.size() && text_[p] != '"' && text_[p] != '\n') p += text_[p] == '\\' ? 2 : 1;
  if (p >= text_.size() || text_[p] != '"') fail(here_, "a string does not end on its line");
  return p + 1;
}

void Lexer::advance() {
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c == '\n') {
      here_++;
      at_++;
    } else if (c == ' ' || c == '\t' || c == '\r') {
      at_++;
    } else if (c == ';') {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else {
      break;
    }
  }
  Token::Kind kind = Token::mark;
  size_t stop = at_ + 1;
  if (at_ >= text_.size()) {
    token_ = {Token::end, {}, here_};
    return;
  }
  const char c = text_[at_];
  const char after = at_ + 1 < text_.size() ? text_[at_ + 1] : '\0';
  if (is_letter(c)) {
    kind = Token::word;
    stop = span(at_, in_word);
  } else if (is_digit(c) || (c == '-' && in_word(after))) {
    kind = Token::number;
    stop = number_end();
  } else if (c == '%' && in_name(after)) {
    kind = Token::value;
    stop = span(at_ + 1, in_name);
  } else if (c == '"') {
    kind = Token::string;
    stop = string_end();
  } else if (c == '-' && after == '>') {
    stop = at_ + 2;
  } else if (std::string_view("(){}<>[],:=.!@").find(c) == std::string_view::npos) {
    fail(here_, "found the character " + shown({Token::mark, text_.substr(at_, 1), here_}) +
                    ", which starts nothing");
  }
  token_ = {kind, text_.substr(at_, stop - at_), here_};
  at_ = stop;
}

std::string unquoted(const Lexer& lexer, const Token& token) {
  std::string out;
  const std::string_view s = token.text.substr(1, token.text.size() - 2);
  for (size_t k = 0; k < s.size(); k++) {
    if (s[k] != '\\') {
      out += s[k];
      continue;
    }
    const char c = k + 1 < s.size() ? s[++k] : '\0';
    if (c == '"' || c == '\\') {
      out += c;
    } else if (c == 'n') {
      out += '\n';
    } else if (c == 't') {
      out += '\t';
    } else if (c == 'x' && k + 2 < s.size() && hex_digit(s[k + 1]) >= 0 &&
               hex_digit(s[k + 2]) >= 0) {
      out += char(hex_digit(s[k + 1]) * 16 + hex_digit(s[k + 2]));
      k += 2;
    } else {
      lexer.fail(token.line,
                 "a string holds an unknown escape: \\\" \\\\ \\n \\t and \\x with two hex digits "
                 "are known");
    }
  }
  return out;
}

}  // namespace quern::ir::text

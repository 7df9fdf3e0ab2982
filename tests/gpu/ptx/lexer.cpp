#include "tests/gpu/ptx/lexer.h"

#include <cctype>

namespace quern::ptx {

namespace {
bool begins_word(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '%' ||
         c == '.';
}
bool in_word(char c) { return begins_word(c) || std::isdigit(static_cast<unsigned char>(c)); }
}  // namespace

Token Lexer::next() {
  const Token taken = token_;
  advance();
  return taken;
}

bool Lexer::take(std::string_view text) {
  if (!at(text)) return false;
  advance();
  return true;
}

void Lexer::expect(std::string_view text) {
  if (!take(text))
    throw Refused(token_.line,
                  "'" + std::string(text) + "' expected before '" + std::string(token_.text) + "'");
}

Token Lexer::expect_word() {
  if (token_.kind != Token::word)
    throw Refused(token_.line, "a name expected before '" + std::string(token_.text) + "'");
  return next();
}

std::string Lexer::from(const Token& first) const {
  const size_t begin = size_t(first.text.data() - text_.data());
  const size_t end =
      token_.kind == Token::end ? text_.size() : size_t(token_.text.data() - text_.data());
  std::string out;
  for (char c : text_.substr(begin, end - begin)) {
    const bool space = std::isspace(static_cast<unsigned char>(c)) != 0;
    if (!space)
      out += c;
    else if (!out.empty() && out.back() != ' ')
      out += ' ';
  }
  while (!out.empty() && out.back() == ' ') out.pop_back();
  return out;
}

void Lexer::skip() {
  while (at_ < text_.size()) {
    const std::string_view rest = text_.substr(at_);
    if (std::isspace(static_cast<unsigned char>(rest[0]))) {
      line_ += rest[0] == '\n';
      at_++;
    } else if (rest.starts_with("//")) {
      at_ += std::min(rest.find('\n'), rest.size());
    } else if (rest.starts_with("/*")) {
      const size_t end = rest.find("*/");
      if (end == std::string_view::npos) throw Refused(line_, "a comment without an end");
      for (char c : rest.substr(0, end)) line_ += c == '\n';
      at_ += end + 2;
    } else {
      return;
    }
  }
}

void Lexer::advance() {
  skip();
  token_ = {Token::end, text_.substr(text_.size()), line_};
  if (at_ == text_.size() || text_[at_] == '\0') return;
  const size_t begin = at_;
  const char c = text_[at_];
  if (std::isdigit(static_cast<unsigned char>(c))) {
    while (at_ < text_.size() && std::isalnum(static_cast<unsigned char>(text_[at_]))) at_++;
    token_.kind = Token::number;
    // 7.8 after .version
    if (at_ + 1 < text_.size() && text_[at_] == '.' &&
        std::isdigit(static_cast<unsigned char>(text_[at_ + 1])))
      for (at_++; at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_]));)
        at_++;
  } else if (begins_word(c)) {
    while (at_ < text_.size() && in_word(text_[at_])) at_++;
    token_.kind = Token::word;
  } else if (c == '"') {
    const size_t end = text_.find('"', at_ + 1);
    if (end == std::string_view::npos) throw Refused(line_, "a string without an end");
    at_ = end + 1;
    token_.kind = Token::word;
  } else {
    at_++;
    token_.kind = Token::mark;
  }
  token_.text = text_.substr(begin, at_ - begin);
}

}  // namespace quern::ptx

#include "tests/passes/filetest.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace quern::test {

namespace {

/// The rest of the line where it starts with "; WORD", without blanks around it.
bool directive(const std::string& line, const std::string& word, std::string& rest) {
  const std::string start = "; " + word;
  if (line.rfind(start, 0) != 0) return false;
  if (line.size() > start.size() && line[start.size()] != ' ') return false;
  const size_t from = line.find_first_not_of(' ', start.size());
  rest = from == line.npos ? "" : line.substr(from);
  while (!rest.empty() && rest.back() == ' ') rest.pop_back();
  return true;
}

std::vector<std::string> words(const std::string& list) {
  std::vector<std::string> out;
  std::string word;
  for (char c : list + ",") {
    if (c == ' ') continue;
    if (c != ',') {
      word += c;
      continue;
    }
    if (!word.empty()) out.push_back(word);
    word.clear();
  }
  return out;
}

}  // namespace

CaseFile read_cases(const std::string& path) {
  CaseFile file;
  file.path = path;
  std::ifstream in(path, std::ios::binary);
  std::stringstream whole;
  whole << in.rdbuf();
  if (!in) throw std::runtime_error(path + ": cannot be read");
  file.text = whole.str();

  enum { outside, named, before, after } part = outside;
  int number = 0;
  auto fail = [&](const std::string& what) {
    throw std::runtime_error(path + ":" + std::to_string(number) + ": " + what);
  };
  for (size_t at = 0; at < file.text.size();) {
    const size_t end = std::min(file.text.find('\n', at), file.text.size() - 1) + 1;
    std::string line = file.text.substr(at, end - at), rest;
    if (!line.empty() && line.back() == '\n') line.pop_back();
    number++;
    if (directive(line, "case", rest)) {
      if (part == named || part == before) fail("the case before has no '; expect'");
      if (rest.empty()) fail("a case has no name");
      file.cases.push_back({rest, number, {}, {}, "", "", 0, 0});
      part = named;
    } else if (directive(line, "run", rest)) {
      if (part != named) fail("'; run' does not follow '; case'");
      file.cases.back().passes = words(rest);
      if (file.cases.back().passes.empty()) fail("'; run' names no pass");
      part = before;
    } else if (directive(line, "show", rest)) {
      FileCase* c = file.cases.empty() ? nullptr : &file.cases.back();
      if (!c || part == after || !c->before.empty())
        fail("'; show' does not follow '; case' or '; run'");
      c->shown = words(rest);
      if (c->shown.empty()) fail("'; show' names no analysis");
      part = before;
    } else if (directive(line, "expect", rest)) {
      if (part != before) fail("'; expect' does not follow '; run' and a kernel");
      file.cases.back().expected_at = end;
      part = after;
    } else if (part == named && !line.empty() && line[0] != ';') {
      fail("a case starts without '; run'");
    } else if (part == before) {
      // comments stay in the text, so that parse errors name lines counted from `; run`
      file.cases.back().before += line + "\n";
    } else if (part == after && (line.empty() || line[0] != ';')) {
      FileCase& c = file.cases.back();
      if (line.empty()) {
        part = outside;  // what was expected ends at the first empty line
      } else {
        c.expected += line + "\n";
        c.expected_size = end - c.expected_at;
      }
    }
    at = end;
  }
  if (part == named || part == before) fail("the last case has no '; expect'");
  return file;
}

std::string blessed(const CaseFile& file, const std::vector<std::string>& results) {
  std::string out;
  size_t at = 0;
  for (size_t k = 0; k < file.cases.size(); k++) {
    const FileCase& c = file.cases[k];
    out += file.text.substr(at, c.expected_at - at) + results[k];
    at = c.expected_at + c.expected_size;
  }
  return out + file.text.substr(at);
}

}  // namespace quern::test

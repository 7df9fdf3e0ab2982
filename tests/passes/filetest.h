#pragma once
// Tests of passes as text: before and after stand in one file.
//
//   ; case NAME
//   ; run PASS[, PASS…]          or nothing, where only analyses are shown
//   ; show ANALYSIS[, ANALYSIS…] (of PrintOptions::notes), if any
//   quern 1
//   …
//   ; expect
//   quern 1
//   …
//
// Comment lines before the first case, and between the parts, stay as they are when a file is
// blessed (QUERN_BLESS=1 writes what came out in the place of what was expected).
#include <string>
#include <vector>

namespace quern::test {

struct FileCase {
  std::string name;
  int line = 0;  ///< of `; case`
  std::vector<std::string> passes, shown;
  std::string before, expected;
  size_t expected_at = 0, expected_size = 0;  ///< where `expected` lies in the file's text
};

struct CaseFile {
  std::string path, text;
  std::vector<FileCase> cases;
};

/// Throws std::runtime_error with file:line where the form is broken.
CaseFile read_cases(const std::string& path);
/// The file's text with `results[k]` in the place of what case k expects.
std::string blessed(const CaseFile& file, const std::vector<std::string>& results);

}  // namespace quern::test

#pragma once
// What the verifier says of a broken kernel.
#include <string>
#include <vector>

#include "quern/ir/text.h"
#include "quern/ir/verify.h"
#include "tests/catch.h"

/// Something the verifier finds holds `says`.
inline void refuse(const std::string& text, const std::string& says) {
  INFO(text);
  const std::vector<std::string> found = quern::ir::verify(*quern::ir::parse(text));
  std::string all;
  for (const std::string& f : found) all += f + "\n";
  INFO(all);
  CHECK(all.find(says) != std::string::npos);
}

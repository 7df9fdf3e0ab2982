#pragma once
// What a program under test writes to standard output.
#include <unistd.h>

#include <cstdio>

#include "tests/end_to_end/devices.h"

/// What `f` writes to standard output.
template <class F>
std::string output_of(F f) {
  std::fflush(stdout);
  int saved = dup(1);
  std::FILE* file = std::tmpfile();
  REQUIRE(file);
  dup2(fileno(file), 1);
  std::string failure = error_of(f);
  std::fflush(stdout);
  dup2(saved, 1);
  close(saved);
  CHECK(failure == "");
  std::string text;
  std::rewind(file);
  for (int c; (c = std::fgetc(file)) != EOF;) text += char(c);
  std::fclose(file);
  return text;
}

#pragma once
// What a program under test writes to standard output, or to standard error.
#include <unistd.h>

#include <cstdio>

#include "tests/end_to_end/devices.h"

/// What `f` writes to the stream.
template <class F>
std::string output_of(F f, std::FILE* stream = stdout) {
  const int number = fileno(stream);
  std::fflush(stream);
  int saved = dup(number);
  std::FILE* file = std::tmpfile();
  REQUIRE(file);
  dup2(fileno(file), number);
  std::string failure = error_of(f);
  std::fflush(stream);
  dup2(saved, number);
  close(saved);
  CHECK(failure == "");
  std::string text;
  std::rewind(file);
  for (int c; (c = std::fgetc(file)) != EOF;) text += char(c);
  std::fclose(file);
  return text;
}

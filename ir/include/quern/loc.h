#pragma once

namespace quern {

/// A place in the user's source. Captured by defaulted arguments, never hashed, never compared.
struct Loc {
  const char* file = "";
  int line = 0;

  static constexpr Loc here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return {file, line};
  }
};

}  // namespace quern

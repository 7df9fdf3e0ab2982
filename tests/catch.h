#pragma once
// Catch2 version 2 or 3, whichever the system has.
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;
inline auto contains(const std::string& text) { return Catch::Matchers::ContainsSubstring(text); }
#else
#include <catch2/catch.hpp>
inline auto contains(const std::string& text) { return Catch::Matchers::Contains(text); }
#endif

/// For a case that cannot check what it is for: says why, which ./dev test shows. A case without
/// any check fails otherwise (main.cpp).
#define NOT_RUN(why)            \
  do {                          \
    WARN("not run: " << (why)); \
    SUCCEED();                  \
  } while (false)

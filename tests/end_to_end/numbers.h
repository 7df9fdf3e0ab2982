#pragma once
// Integers for programs that are compared with plain loops, and fields of them.
#include <cstdint>
#include <vector>

#include <quern/host.h>

namespace qn = quern;

/// Numbers without a pattern, below 1,000 in magnitude.
inline std::vector<int> numbers(int count, uint32_t seed) {
  std::vector<int> all(static_cast<size_t>(count));
  for (int& v : all) {
    seed = seed * 1664525 + 1013904223;
    v = int(seed >> 12) % 1000;
  }
  return all;
}

inline qn::Field<int> field_of(const qn::Device& device, const std::vector<int>& values) {
  qn::Field<int> field{device, {int(values.size())}};
  field.copy_from(values);
  return field;
}

inline qn::Field<int, 2> field_of(const qn::Device& device, const std::vector<int>& values,
                                  int columns) {
  qn::Field<int, 2> field{device, {int(values.size()) / columns, columns}};
  field.copy_from(values);
  return field;
}

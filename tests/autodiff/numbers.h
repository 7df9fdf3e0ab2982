#pragma once
#include <quern/quern.h>

#include <vector>

/// A field of these.
inline quern::Field<double> numbers(const quern::Device& device, const std::vector<double>& v) {
  quern::Field<double> x{device, {v.size()}};
  x.copy_from(v);
  return x;
}

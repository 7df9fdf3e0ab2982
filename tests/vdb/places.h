#pragma once
// Elements of grids on the host.
#include <quern/sparse/vdb.h>

#include <array>
#include <map>
#include <random>

#include "tests/end_to_end/devices.h"
#include "tests/files/support.h"

using Spot = std::array<int, 3>;

/// A value of the type that tells where it is.
template <class T>
T value_at(const Spot& at) {
  const int n = (at[0] * 31 + at[1]) * 31 + at[2];
  if constexpr (std::is_same_v<T, bool>)
    return n % 3 != 0;
  else if constexpr (std::is_arithmetic_v<T>)
    return T(n) / T(4);
  else
    return T(qn::Vec<int, 3>(n, at[0], -at[2]));
}
template <class T>
std::map<Spot, T> values_at(const std::vector<Spot>& spots) {
  std::map<Spot, T> all;
  for (const Spot& at : spots) all[at] = value_at<T>(at);
  return all;
}

/// Some near one another, across the borders of leaves and around 0, and some far away.
inline std::vector<Spot> spots(std::mt19937& random, int count, int far) {
  std::vector<Spot> all;
  for (int k = 0; k < count; k++) {
    Spot at{};
    const int reach = k % 4 == 0 ? far : 12;
    for (int& i : at) i = int(random() % unsigned(2 * reach)) - reach;
    all.push_back(at);
  }
  return all;
}

/// Writes them by a kernel.
template <class T>
void write_elements(const qn::Device& device, const qn::Field<T, 3>& u,
                    const std::map<Spot, T>& elements) {
  const int64_t count = int64_t(elements.size());
  qn::Field<qn::Vec<int, 3>> where{device, {count}};
  qn::Field<T> values{device, {count}};
  int64_t n = 0;
  for (const auto& [at, value] : elements) {
    where.set(n, {at[0], at[1], at[2]});
    values.set(n++, value);
  }
  qn::Kernel write = [&] {
    for (auto k : where) u[where[k]] = values[k];
  };
  write();
}

/// The active elements of a field and what they hold, by kernels.
template <class T>
std::map<Spot, T> elements_of(const qn::Device& device, const qn::Field<T, 3>& u, int64_t count) {
  using namespace qn::lang;
  qn::Field<qn::Vec<int, 3>> where{device, {count + 1}};
  qn::Field<T> values{device, {count + 1}};
  qn::Field<int> next{device, {1}};
  qn::Kernel list = [&] {
    for (auto [i, j, k] : u) {
      I32 n = atomic_add(next[0], 1);
      where[n] = IVec3(i, j, k);
      values[n] = u(i, j, k);
    }
  };
  list();
  CHECK(next.at(0) == count);
  std::map<Spot, T> all;
  for (int64_t n = 0; n < count; n++) {
    const qn::Vec<int, 3> at = where.at(n);
    all[{at[0], at[1], at[2]}] = values.at(n);
  }
  return all;
}

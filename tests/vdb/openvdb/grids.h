#pragma once
// Grids of OpenVDB's that tests write and look at, by its own interface.
#include <openvdb/io/Stream.h>
#include <openvdb/openvdb.h>

#include <cstring>
#include <map>

#include "tests/vdb/places.h"

namespace vdb = openvdb;

/// Are these the same bytes?
template <class V>
bool same_bits(const V& a, const V& b) {
  return std::memcmp(&a, &b, sizeof a) == 0;
}

/// OpenVDB's value of the same bytes.
template <class V, class T>
V as_vdb(const T& v) {
  static_assert(sizeof(V) == sizeof(T));
  V out;
  std::memcpy(static_cast<void*>(&out), &v, sizeof out);
  return out;
}

/// Exactly these elements are active, with these values.
template <class GridT, class T>
void expect_elements(const GridT& grid, const std::map<Spot, T>& elements) {
  CHECK(grid.activeVoxelCount() == elements.size());
  auto at = grid.getConstAccessor();
  int wrong = 0;
  for (const auto& [spot, value] : elements) {
    typename GridT::ValueType found;
    const bool active = at.probeValue({spot[0], spot[1], spot[2]}, found);
    wrong += !active || !same_bits(found, as_vdb<typename GridT::ValueType>(value));
  }
  CHECK(wrong == 0);
}

inline vdb::GridPtrVec grids_of(const std::string& path) {
  vdb::initialize();
  vdb::io::File file(path);
  file.open(/*delayLoad=*/false);
  return *file.getGrids();
}
inline void write_by_openvdb(const std::string& path, const vdb::GridPtrVec& grids) {
  vdb::initialize();
  vdb::io::File(path).write(grids);
}

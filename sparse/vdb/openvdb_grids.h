#pragma once
// Grids of OpenVDB's.
#include <openvdb/openvdb.h>

#include "sparse/vdb/grid.h"

namespace quern::detail::vdb {

/// Calls `as` with a null pointer to the type of OpenVDB's grids of elements of a type.
template <class F>
auto for_grid_of(size_t type, F&& as) {
  switch (type) {
    case 0: return as(static_cast<openvdb::BoolGrid*>(nullptr));
    case 1: return as(static_cast<openvdb::Int32Grid*>(nullptr));
    case 2: return as(static_cast<openvdb::Int64Grid*>(nullptr));
    case 3: return as(static_cast<openvdb::FloatGrid*>(nullptr));
    case 4: return as(static_cast<openvdb::DoubleGrid*>(nullptr));
    case 5: return as(static_cast<openvdb::Vec3IGrid*>(nullptr));
    case 6: return as(static_cast<openvdb::Vec3SGrid*>(nullptr));
    default: return as(static_cast<openvdb::Vec3DGrid*>(nullptr));
  }
}

openvdb::GridBase::Ptr openvdb_grid(const Grid& grid);

}  // namespace quern::detail::vdb

// Where OpenVDB was not there when Quern was built.
#include "sparse/vdb/grid.h"

namespace quern::detail::vdb {

namespace {
[[noreturn]] void refuse() {
  throw Refusal(
      "this Quern was built without OpenVDB; install it with its headers and Boost's (Debian: "
      "libopenvdb-dev, libboost-dev) and build Quern again");
}
}  // namespace

bool openvdb_is_here() { return false; }
std::vector<std::byte> encode_openvdb(const std::vector<Grid>&) { refuse(); }
std::vector<Entry> list_openvdb(std::span<const std::byte>) { refuse(); }
Grid decode_openvdb(std::span<const std::byte>, size_t, size_t, int64_t) { refuse(); }

}  // namespace quern::detail::vdb

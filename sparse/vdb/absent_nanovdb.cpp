// Where NanoVDB, or something that it needs, was not there when Quern was built.
#include "sparse/vdb/grid.h"

namespace quern::detail::vdb {

namespace {
[[noreturn]] void refuse() {
  throw Refusal(
      "this Quern was built without NanoVDB; install it with OpenVDB, Blosc and zlib (Debian: "
      "libnanovdb-dev, libopenvdb-dev, libboost-dev, zlib1g-dev) and build Quern again");
}
}  // namespace

bool nanovdb_is_here() { return false; }
std::vector<std::byte> encode_nanovdb(const std::vector<Grid>&) { refuse(); }
std::vector<Entry> list_nanovdb(std::span<const std::byte>) { refuse(); }
Grid decode_nanovdb(std::span<const std::byte>, size_t, size_t, int64_t) { refuse(); }

}  // namespace quern::detail::vdb

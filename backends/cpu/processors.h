#pragma once
// How many processors this process may use.
#include <cstdint>
#include <filesystem>

namespace quern::cpu {

/// Those of its affinity, or fewer where the control groups' quota of time is worth fewer.
uint32_t processors();

/// The quota of the control groups in `membership` (/proc/self/cgroup), mounted below `root`
/// (/sys/fs/cgroup), and of all groups around them, in processors, rounded up; 0 where there is
/// none. Both versions of control groups; a container sees its own groups at the root.
uint32_t quota(const std::filesystem::path& membership, const std::filesystem::path& root);

}  // namespace quern::cpu

#pragma once
#include <string>

namespace quern::cpu {

/// See host_target.
const std::string& host_isa();
/// Is "+name" among the words of an isa?
bool has_extension(const std::string& isa, const std::string& name);

}  // namespace quern::cpu

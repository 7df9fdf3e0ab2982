#pragma once
// Whole files in and out.
#include <cstddef>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "quern/loc.h"

namespace quern::detail {

/// Throws Error at `loc` naming the file where it cannot be read to its end.
std::vector<std::byte> read_bytes(const std::string& path, Loc loc);

/// Writes the parts one after the other. A regular file is replaced as a whole when all is written
/// (it keeps its permissions; a link keeps pointing to it), a device or pipe is written to
/// directly. Throws Error at `loc` naming the file, which is then as before.
void write_bytes(const std::string& path, std::initializer_list<std::span<const std::byte>> parts,
                 Loc loc);

}  // namespace quern::detail

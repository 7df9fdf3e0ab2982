#pragma once

namespace quern::test {

/// Called once the cases of a program have run, while its libraries are still whole; may be null.
extern void (*at_end)();

}  // namespace quern::test

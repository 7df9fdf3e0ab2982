#include "quern/runtime/backend.h"

namespace quern::runtime {

void expect_runs(const Image& image, const Target& target,
                 bool (*runs)(const std::string& code, const std::string& machine)) {
  if (image.backend == target.backend && runs(image.isa, target.isa)) return;
  throw Error(image.loc, "kernel '" + image.kernel + "' was compiled for " + image.backend + " (" +
                             image.isa + "), which " + target.backend + " (" + target.isa +
                             ") does not run");
}

}  // namespace quern::runtime

// The long test of the CUDA back end: random programs on the interpreter of PTX, for each
// architecture and in each order of blocks and warps. 18 parts of minutes each; a part goes on where
// QUERN_FUZZ_SEED says.
#include <sys/wait.h>

#include <cstdlib>
#include <string>

#include "tests/catch.h"

namespace {

constexpr int programs_of_part = 5600;

/// 0 where all programs agreed.
int run_part(const std::string& capability, const std::string& schedule, uint64_t seed) {
  const std::string command =
      "QUERN_CUDA_LIBRARY='" QUERN_PTX_CUDA "' QUERN_PTX_CAPABILITY=" + capability +
      " QUERN_PTX_SCHEDULE=" + schedule + " QUERN_PTX_SEED=" + std::to_string(seed % 1'000'000) +
      " '" QUERN_FUZZ "' --no-passes --device cuda --count " + std::to_string(programs_of_part) +
      " --seed " + std::to_string(seed);
  const int status = std::system(command.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

TEST_CASE("a hundred thousand programs on the interpreter of PTX", "[.long]") {
  const char* from = std::getenv("QUERN_FUZZ_SEED");
  const uint64_t first = from ? std::strtoull(from, nullptr, 10) : 1;
  uint64_t part = 0;
  for (const char* capability : {"70", "80", "90"}) {
    for (const char* order : {"ascending", "descending", "shuffled"}) {
      for (const char* switches : {"", "+switches"}) {
        DYNAMIC_SECTION("sm_" << capability << " " << order << switches) {
          CHECK(run_part(capability, std::string(order) + switches,
                         first + part * programs_of_part) == 0);
        }
        part++;
      }
    }
  }
}

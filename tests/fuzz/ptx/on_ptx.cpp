// The long test of the CUDA back end: random programs on the interpreter of PTX, for each
// architecture and in each order of blocks and warps, a hundred thousand in all. QUERN_FUZZ_SEED
// goes on at that seed within a part.
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "tests/catch.h"

namespace {

constexpr uint64_t programs_of_order = 5600;
const char* const orders[] = {"ascending",           "ascending+switches", "descending",
                              "descending+switches", "shuffled",           "shuffled+switches"};
constexpr uint64_t programs_of_part = programs_of_order * std::size(orders);

/// 0 where all programs agreed.
int run_programs(const std::string& capability, const std::string& order, uint64_t first,
                 uint64_t count) {
  const std::string command =
      "QUERN_CUDA_LIBRARY='" QUERN_PTX_CUDA "' QUERN_PTX_CAPABILITY=" + capability +
      " QUERN_PTX_SCHEDULE=" + order + " QUERN_PTX_SEED=" + std::to_string(first % 1'000'000) +
      " '" QUERN_FUZZ "' --no-passes --device cuda --count " + std::to_string(count) + " --seed " +
      std::to_string(first);
  const int status = std::system(command.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/// The seeds [first, first + programs_of_part), those of each order in turn.
void run_part(const std::string& capability, uint64_t first) {
  const char* text = std::getenv("QUERN_FUZZ_SEED");
  const uint64_t from = text ? std::strtoull(text, nullptr, 10) : first,
                 end = first + programs_of_part;
  INFO("the seeds of this part are " << first << " to " << end - 1);
  REQUIRE((from >= first && from < end));
  for (uint64_t k = 0; k < std::size(orders); k++) {
    const uint64_t begin = std::max(from, first + k * programs_of_order);
    const uint64_t behind = first + (k + 1) * programs_of_order;
    if (begin >= behind) continue;
    INFO("sm_" << capability << " " << orders[k] << ", seeds " << begin << " to " << behind - 1);
    CHECK(run_programs(capability, orders[k], begin, behind - begin) == 0);
  }
}

}  // namespace

TEST_CASE("random programs on the interpreter of PTX for sm_70", "[.long][ptx-70]") {
  run_part("70", 1);
}
TEST_CASE("random programs on the interpreter of PTX for sm_80", "[.long][ptx-80]") {
  run_part("80", 1 + programs_of_part);
}
TEST_CASE("random programs on the interpreter of PTX for sm_90", "[.long][ptx-90]") {
  run_part("90", 1 + 2 * programs_of_part);
}

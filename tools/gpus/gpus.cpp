#include "tools/gpus/gpus.h"

#include "backends/cuda/api.h"
#include "backends/cuda/compiler.h"
#include "backends/rocm/api.h"
#include "backends/rocm/compiler.h"

namespace quern::gpus {

const std::vector<Gpu>& all() {
  static const std::vector<Gpu> list = [] {
    std::vector<Gpu> made;
    for (int major : {7, 8, 9}) {
      std::string name = "sm_" + std::to_string(major) + "0";
      // The oldest that CUDA 13's ptxas knows assembles what is older.
      made.push_back(
          {name, cuda::target_for(10 * major), &cuda::compiler(), major == 7 ? "sm_75" : name});
    }
    for (const char* name : {"gfx90a", "gfx942", "gfx1030", "gfx1100", "gfx1201"})
      made.push_back({name, rocm::target_for(name), &rocm::compiler(), ""});
    made.push_back({"gfx1030-wave64", rocm::target_for("gfx1030", rocm::Wave::lanes_64),
                    &rocm::compiler(), ""});
    return made;
  }();
  return list;
}

}  // namespace quern::gpus

#include "backends/cpu/openmp.h"

#include <dlfcn.h>

namespace quern::cpu {

namespace {
template <class F>
void find(F*& function, const char* name) {
  function = reinterpret_cast<F*>(dlsym(RTLD_DEFAULT, name));
}
}  // namespace

const OpenMp& openmp() {
  static const OpenMp found = [] {
    OpenMp o;
    find(o.in_parallel, "omp_in_parallel");
    find(o.max_threads, "omp_get_max_threads");
    find(o.thread_number, "omp_get_thread_num");
    find(o.parallel, "GOMP_parallel");  // LLVM's runtime has it too
    return o;
  }();
  return found;
}

}  // namespace quern::cpu

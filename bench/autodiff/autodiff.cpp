#include "bench/autodiff/autodiff.h"

namespace bench {

void autodiff(Report& report) {
  autodiff_problems(report);
  autodiff_compile(report);
  autodiff_programs(report);
}

}  // namespace bench

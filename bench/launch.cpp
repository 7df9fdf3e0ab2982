// What a launch costs beside its work: an empty kernel, one of a few elements, and a result read
// back.
#include <omp.h>

#include <vector>

#include "bench/harness.h"

namespace bench {
namespace qn = quern;
using namespace qn::lang;

void launch(Report& report) {
  qn::Device& device = report.device();
  qn::Field<float> x{device, {16}}, empty{device, {0}};
  std::vector<float> host(16);
  float* p = host.data();
  qn::Kernel nothing = [&] {
    for (auto i : empty) empty[i] = 1;
  };
  report.run({"launch_empty", "0", 0, 0, [&] { nothing(); },
              [] {
#pragma omp parallel
                {
                }
              }});
  qn::Kernel small = [&](F32 v) {
    for (auto i : x) x[i] = v;
  };
  report.run({"launch_16", "16", 0, 0, [&] { small(2.0f); },
              [p] {
#pragma omp parallel for
                for (int i = 0; i < 16; i++) p[i] = 2.0f;
              },
              0, 0, [](const cuda::Functions& f, cuda::Stream s) { f.nothing(s); }});
  report.run({"launch_and_wait", "16", 0, 0,
              [&] {
                small(2.0f);
                device.synchronize();
              },
              nullptr});
  qn::Kernel total = [&] {
    Var<float> s = 0;
    for (auto i : x) s += x[i];
    return s;
  };
  volatile float sink = 0;
  report.run({"launch_and_read", "16", 0, 0, [&] { sink = float(total()); }, nullptr});
}

}  // namespace bench

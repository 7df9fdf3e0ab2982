// What a launch costs beside its work: an empty kernel, one of a few elements, and a result read
// back.
#include <omp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <vector>

#include "bench/harness.h"

namespace bench {
namespace qn = quern;
using namespace qn::lang;

namespace {
/// Processes that keep every core busy, one each.
class BusyCores {
 public:
  BusyCores() {
    for (long k = sysconf(_SC_NPROCESSORS_ONLN); k > 0; k--) {
      const pid_t child = fork();
      if (child > 0) children_.push_back(child);
      if (child != 0) continue;
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      for (volatile unsigned n = 0;;) n = n + 1;
    }
  }
  ~BusyCores() {
    for (pid_t child : children_) {
      kill(child, SIGKILL);
      waitpid(child, nullptr, 0);
    }
  }
  BusyCores(const BusyCores&) = delete;

 private:
  std::vector<pid_t> children_;
};

/// Single launches on the host's cores, as they find them and with a busy process on each: what a
/// program feels beside others.
void launches_beside_others(Report& report) {
  for (const bool busy : {false, true})
    for (const int64_t n : {16, 4096, 1 << 20}) {
      qn::Field<float> x{report.device(), {n}};
      std::vector<float> host(size_t(n), 0.0f);
      float* p = host.data();
      qn::Kernel fill = [&](F32 v) {
        for (auto i : x) x[i] = v;
      };
      auto by_openmp = [p, n] {
#pragma omp parallel for simd
        for (int64_t i = 0; i < n; i++) p[i] = 2.0f;
      };
      std::optional<BusyCores> others;
      if (busy) others.emplace();
      report.run_singly({busy ? "launch, cores busy" : "launch", std::to_string(n), 0, 0,
                         [&] { fill(2.0f); }, by_openmp});
    }
}
}  // namespace

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
  if (std::string(device.name()) == "cpu") launches_beside_others(report);
}

}  // namespace bench

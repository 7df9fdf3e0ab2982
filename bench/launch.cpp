// What a launch costs beside its work: an empty kernel, one of a few elements, and a result read
// back.
#include <omp.h>
#include <quern/autodiff.h>
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

/// What a tape adds to a launch of a few elements, and what going back through it takes, beside the
/// launch itself and one of the reverse kernel written by hand.
void launches_on_tapes(Report& report) {
  constexpr int launches = 1000, samples = 25;
  qn::Device& device = report.device();
  qn::Field<float> x{device, {16}}, p{device, {16}}, y{device, {16}};
  const auto of_x = x.grad(), of_p = p.grad(), of_y = y.grad();
  qn::Kernel step = [&](F32 s) {
    for (auto i : y) y[i] = x[i] * p[i] * s;
  };
  qn::Kernel back = [&](F32 s) {
    for (auto i : y) {
      const F32 carried = of_y[i] * s;
      of_y[i] = 0.0f;
      of_x[i] += carried * p[i];
      of_p[i] += carried * x[i];
    }
  };
  const auto launch_all = [&](auto& kernel) {
    for (int k = 0; k < launches; k++) kernel(1.0f);
  };
  const auto each = [](auto&& run) {
    const double start = now();
    run();
    return (now() - start) / launches;
  };
  std::vector<double> step_times, back_times, record_times, go_back_times;
  for (int sample = -1; sample < samples; sample++) {  // the first one compiles
    std::vector<double> times;
    times.push_back(each([&] { launch_all(step); }));
    device.synchronize();
    times.push_back(each([&] {
      launch_all(back);
      device.synchronize();
    }));
    qn::Tape tape;
    times.push_back(each([&] { launch_all(step); }));
    device.synchronize();
    times.push_back(each([&] {
      tape.backward();
      device.synchronize();
    }));
    if (sample < 0) continue;
    step_times.push_back(times[0]);
    back_times.push_back(times[1]);
    record_times.push_back(times[2]);
    go_back_times.push_back(times[3]);
  }
  const auto add = [&](const char* name, const std::vector<double>& times,
                       const std::vector<double>& reference) {
    Row row;
    row.name = name;
    row.size = "16";
    row.seconds = percentile(times, 0.5);
    row.spread_low = percentile(times, 0.1);
    row.spread_high = percentile(times, 0.9);
    row.reference_seconds = percentile(reference, 0.5);
    row.ratio = row.reference_seconds / row.seconds;
    report.add(row);
  };
  add("tape: record a launch", record_times, step_times);
  add("tape: go back a launch", go_back_times, back_times);
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
  if (report.measures()) launches_on_tapes(report);
  if (std::string(device.name()) == "cpu") launches_beside_others(report);
}

}  // namespace bench

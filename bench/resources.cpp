#include "bench/resources.h"

#include <set>

#include "bench/harness.h"
#include "runtime/compile/compile.h"
#include "tools/gpus/first_launches.h"

namespace bench {

namespace {

/// What first launches are added to: kernels launched within Report::run belong to the work being run.
struct Recording {
  quern::gpus::Recorded found;
  std::string work;  ///< empty between works
  int kernels = 0;   ///< of this work so far
};
Recording& recording() {
  static Recording r;
  return r;
}

void add(quern::runtime::Recording& source, const quern::ir::Signature& signature) {
  Recording& r = recording();
  if (r.work.empty()) return;
  std::string name = r.work + " " + std::to_string(r.kernels++);
  for (const quern::gpus::Gpu& gpu : quern::gpus::all()) {
    auto lowered = quern::runtime::prepare(source, signature, gpu.target).kernel;
    int task = 0;
    for (const quern::gpus::Resources& taken : quern::gpus::resources(gpu, *lowered))
      r.found[name + " " + std::to_string(task++) + " " + gpu.name] = taken;
  }
}

}  // namespace

quern::gpus::Recorded record_resources() {
  Recording& r = recording();
  r = {};
  std::set<std::string> seen;
  Report report(quern::Device("cpu"), [&](const Work& work) {
    if (!seen.insert(work.name).second) return;
    r.work = work.name;
    r.kernels = 0;
    work.quern();
    r.work.clear();
  });
  const quern::gpus::FirstLaunches launches(add);
  for (auto group : {stream, compute, math, linear, simulate, vision, algorithms}) group(report);
  return r.found;
}

}  // namespace bench

#include <CLI/CLI.hpp>
#include <map>

#include "bench/counts.h"
#include "bench/cuda/check.h"
#include "bench/harness.h"
#include "bench/resources.h"

namespace {
template <class F>
void with_file(const std::string& name, F write) {
  std::FILE* file = std::fopen(name.c_str(), "w");
  if (!file) throw quern::Error("cannot write " + name);
  write(file);
  if (std::fclose(file) != 0) throw quern::Error("cannot write all of " + name);
}
}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Quern's benchmarks: median of interleaved pairs against hand-written C++"};
  std::string group, json, device_name;
  std::string kernels, record, counts, record_counts;
  int pairs = 9;
  app.add_option("group", group,
                 "stream, compute, math, linear, simulate, vision, algorithms, sparse, trees, "
                 "checked, autodiff, launch, "
                 "compile or headers; all without it");
  app.add_option("--json", json, "also write the rows to this file");
  app.add_option("--device", device_name,
                 "cpu, vulkan, … (else QUERN_DEVICE, else the best present)");
  app.add_option("--pairs", pairs, "pairs measured (at least 9)")->check(CLI::Range(9, 1000));
  app.add_option("--compare-kernels", kernels,
                 "measure nothing: compile every kernel for every GPU and compare the registers, "
                 "spills, shared memory and instructions with those in this file");
  app.add_option("--record-kernels", record, "the same, and write them to this file");
  app.add_option(
      "--compare-counts", counts,
      "measure nothing: run the works of a group, or of all that have kernels, on the "
      "interpreter of PTX, print what kernels and hand-written CUDA do, and compare with "
      "this file");
  app.add_option("--record-counts", record_counts, "the same of all groups, and write it there");
  CLI11_PARSE(app, argc, argv);

  const std::map<std::string, void (*)(bench::Report&)> groups = {
      {"stream", bench::stream},   {"compute", bench::compute},       {"math", bench::math},
      {"linear", bench::linear},   {"checked", bench::checked},       {"simulate", bench::simulate},
      {"vision", bench::vision},   {"algorithms", bench::algorithms}, {"sparse", bench::sparse},
      {"trees", bench::trees},     {"launch", bench::launch},         {"compile", bench::compile},
      {"headers", bench::headers}, {"autodiff", bench::autodiff}};
  if (!group.empty() && !groups.count(group)) {
    std::fprintf(stderr, "quern_bench: there is no group '%s'; there are", group.c_str());
    for (const auto& [name, run] : groups) std::fprintf(stderr, " %s", name.c_str());
    std::fprintf(stderr, "\n");
    return 2;
  }
  try {
    if (!kernels.empty() || !record.empty()) {
      quern::gpus::Recorded recorded = bench::record_resources();
      if (!kernels.empty()) quern::gpus::compare(recorded, kernels);
      if (!record.empty()) quern::gpus::write(recorded, record);
      return 0;
    }
    if (!counts.empty() || !record_counts.empty()) {
      if (!record_counts.empty())
        bench::expect_recordable(bench::cuda::functions(), group, record_counts);
      std::vector<void (*)(bench::Report&)> chosen;
      std::string possible;
      for (const auto& [name, run] : groups) {
        // the first two have no kernels, the others work on too much: "trees" has sparse's ways
        if (run == bench::compile || run == bench::headers || run == bench::sparse ||
            run == bench::autodiff)
          continue;
        possible += " " + name;
        if (group.empty() || group == name) chosen.push_back(run);
      }
      if (chosen.empty())
        throw quern::Error("the group '" + group + "' has no kernels; those with are" + possible);
      const std::vector<bench::Counted> all = bench::count(chosen);
      bench::print(stdout, all);
      if (!counts.empty()) bench::compare(stdout, all, group.empty(), counts);
      if (!record_counts.empty()) bench::write(all, record_counts);
      return 0;
    }
    quern::Device device =
        device_name.empty() ? quern::Device() : quern::Device(device_name.c_str(), quern::Loc{});
    bench::Report report(device, pairs);
    if (report.cuda()) bench::cuda::expect_right(*report.cuda());
    std::printf(
        "device %s, %d threads; times are medians with [10 %%, 90 %%]; ratio = reference / quern\n",
        device.name(), bench::threads());
    for (const auto& [name, run] : groups)
      if (group.empty() || group == name) run(report);
    if (!json.empty()) {
      with_file(json, [&](std::FILE* file) { report.write_json(file); });
    }
  } catch (const std::exception& e) {
    std::fprintf(stderr, "quern_bench: %s\n", e.what());
    return 1;
  }
}

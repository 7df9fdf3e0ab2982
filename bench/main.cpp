#include <CLI/CLI.hpp>
#include <map>

#include "bench/cuda/check.h"
#include "bench/harness.h"
#include "bench/resources.h"

int main(int argc, char** argv) {
  CLI::App app{"Quern's benchmarks: median of interleaved pairs against hand-written C++"};
  std::string group, json, device_name;
  std::string kernels, record;
  int pairs = 9;
  app.add_option(
      "group", group,
      "stream, compute, math, linear, simulate, vision, algorithms, checked, launch, compile "
      "or headers; all without it");
  app.add_option("--json", json, "also write the rows to this file");
  app.add_option("--device", device_name,
                 "cpu, vulkan, … (else QUERN_DEVICE, else the best present)");
  app.add_option("--pairs", pairs, "pairs measured (at least 9)")->check(CLI::Range(9, 1000));
  app.add_option("--compare-kernels", kernels,
                 "measure nothing: compile every kernel for every GPU and compare the registers, "
                 "spills, shared memory and instructions with those in this file");
  app.add_option("--record-kernels", record, "the same, and write them to this file");
  CLI11_PARSE(app, argc, argv);

  const std::map<std::string, void (*)(bench::Report&)> groups = {
      {"stream", bench::stream},   {"compute", bench::compute},       {"math", bench::math},
      {"linear", bench::linear},   {"checked", bench::checked},       {"simulate", bench::simulate},
      {"vision", bench::vision},   {"algorithms", bench::algorithms}, {"launch", bench::launch},
      {"compile", bench::compile}, {"headers", bench::headers}};
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
      std::FILE* file = std::fopen(json.c_str(), "w");
      if (!file) throw quern::Error("cannot write " + json);
      report.write_json(file);
      if (std::fclose(file) != 0) throw quern::Error("cannot write all of " + json);
    }
  } catch (const std::exception& e) {
    std::fprintf(stderr, "quern_bench: %s\n", e.what());
    return 1;
  }
}

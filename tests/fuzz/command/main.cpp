// quern_fuzz: runs random programs everywhere and keeps, shrunk, those that differ.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "tests/fuzz/engine/generator.h"
#include "tests/fuzz/engine/shrink.h"

using namespace quern;
using Clock = std::chrono::steady_clock;

namespace {

struct Settings {
  double seconds = 0;
  uint64_t seed = 1;
  uint64_t count = 1000;
  double shrink_seconds = 30;
  std::vector<std::string> devices;
  std::string save;
  bool no_passes = false;
  bool show = false;
  bool trees = false;
};

void report(const fuzz::Program& program, const fuzz::Failure& failure, const fuzz::Checks& checks,
            const Settings& settings) {
  std::printf("seed %llu: %s: %s\n", static_cast<unsigned long long>(program.seed),
              failure.stage.c_str(), failure.what.c_str());
  fuzz::Program small = fuzz::shrink(program, failure, checks, settings.shrink_seconds);
  std::optional<fuzz::Failure> again = fuzz::check(small, checks);
  std::string text = fuzz::text(small, again ? *again : failure);
  if (settings.save.empty()) {
    std::printf("%s\n", text.c_str());
    return;
  }
  std::filesystem::path file =
      std::filesystem::path(settings.save) / ("seed" + std::to_string(program.seed) + ".qn");
  std::filesystem::create_directories(settings.save);
  std::ofstream(file) << text;
  std::printf("kept in %s\n", file.c_str());
}

int run(const Settings& settings) {
  fuzz::Checks checks;
  checks.passes = !settings.no_passes;
  checks.on_trees = settings.trees;
  for (const std::string& name : settings.devices)
    checks.devices.push_back(runtime::Device::open(name));
  if (settings.devices.empty()) {
    for (const runtime::Backend& backend : runtime::backends()) {
      std::string absent;
      if (backend.probe(absent).empty())
        std::printf("not compared with %s: %s\n", backend.name.c_str(), absent.c_str());
      else
        checks.devices.push_back(runtime::Device::open(backend.name));
    }
  }
  auto start = Clock::now();
  auto elapsed = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  uint64_t ran = 0, failed = 0, rejected = 0;
  for (uint64_t seed = settings.seed;; seed++) {
    bool more = settings.seconds > 0 ? elapsed() < settings.seconds : ran < settings.count;
    if (!more) break;
    ran++;
    fuzz::Program program = fuzz::generate(seed);
    if (settings.show) std::printf("%s\n", fuzz::text(program, {"generated", ""}).c_str());
    std::string why;
    if (!fuzz::sound(program, checks, &why)) {
      std::printf("seed %llu is not sound: %s\n", static_cast<unsigned long long>(seed),
                  why.c_str());
      rejected++;
      continue;
    }
    auto failure = fuzz::check(program, checks);
    if (!failure) continue;
    failed++;
    report(program, *failure, checks, settings);
    std::fflush(stdout);
  }
  std::printf("%llu programs in %.1f s, %llu failed, %llu not sound\n",
              static_cast<unsigned long long>(ran), elapsed(),
              static_cast<unsigned long long>(failed), static_cast<unsigned long long>(rejected));
  return failed || rejected ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  CLI::App app{"Runs random Quern programs after every pass and on devices, and compares."};
  app.add_option("--seed", settings.seed, "first seed");
  app.add_option("--count", settings.count, "programs to run");
  app.add_option("--seconds", settings.seconds, "run for so long instead of a count");
  app.add_option("--device", settings.devices,
                 "devices to compare with, as cpu,vulkan; all present without it")
      ->delimiter(',');
  app.add_option("--save", settings.save, "folder for programs that fail");
  app.add_option("--shrink-seconds", settings.shrink_seconds,
                 "time to make a failing program small");
  app.add_flag("--no-passes", settings.no_passes, "only the devices, not the passes");
  app.add_flag("--trees", settings.trees, "on the devices some fields lie on trees");
  app.add_flag("--show", settings.show, "print every program before it runs");
  CLI11_PARSE(app, argc, argv);
  try {
    return run(settings);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "quern_fuzz: %s\n", e.what());
    return 2;
  }
}

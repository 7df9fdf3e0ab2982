#pragma once
// The end-to-end suite is written once and runs on every device present.
#include <quern/host.h>
#include <quern/quern.h>

#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "tests/catch.h"

namespace qn = quern;

/// Devices the suite runs on: QUERN_DEVICE alone where it is set, else one of each kind.
inline std::vector<std::string> device_names() {
  const char* only = std::getenv("QUERN_DEVICE");
  if (only && *only) return {only};
  return {"interpreter", "cpu", "vulkan", "cuda", "rocm"};
}

/// No case runs on a device, or some do not, for `why`: said once a run.
inline void report_not_run(const std::string& device, const std::string& why) {
  static std::set<std::string> reported;
  if (reported.insert(device + why).second) WARN("on " << device << ": " << why);
  SUCCEED();
}

/// Calls `body(device)` for each; a device that is not present is reported, once a run, never
/// passed over silently.
template <class F>
void on_every_device(F body) {
  for (const std::string& name : device_names()) {
    std::string absent;
    try {
      qn::Device probe(name.c_str());
    } catch (const qn::Error& e) {
      absent = e.what();
    }
    if (!absent.empty()) {
      if (device_names().size() == 1) FAIL(absent);  // it was asked for
      report_not_run(name, "no case runs, " + absent);
      continue;
    }
    qn::Device device(name.c_str());
    INFO("device " << name);
    body(device);
  }
}

/// The text of the error that `f` throws, "" where it throws none; its line goes to `line`.
template <class F>
std::string error_of(F f, int* line = nullptr) {
  try {
    f();
  } catch (const qn::Error& e) {
    if (line) *line = e.loc().line;
    return e.what();
  }
  return "";
}

#pragma once
// Devices on stand-ins for the libraries of CUDA and ROCm.
#include <dlfcn.h>
#include <quern/host.h>
#include <quern/quern.h>

#include <cstdlib>

#include "tests/catch.h"
#include "tests/gpu/recording/recording.h"

namespace quern::test {

/// A back end and what its library wrote down since the test began.
struct Path {
  explicit Path(const std::string& backend);
  ~Path() { CHECK(log.misuse.empty()); }
  /// A function of the stand-in's.
  template <class F>
  F* function(const char* cuda, const char* hip) const {
    void* found = dlsym(library, is_cuda ? cuda : hip);
    REQUIRE(found);
    return reinterpret_cast<F*>(found);
  }

  const bool is_cuda;
  void* const library;
  quern::Device device;
  recording::Recorder& log;
};

}  // namespace quern::test

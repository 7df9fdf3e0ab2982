#pragma once
// A stand-in for a vendor's library: memory is the host's, copies are made, launches are written
// down. Streams are as late as they may be: what is put into one runs when somebody waits for it
// (or asks, one piece a question), so that memory reused too early shows.
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace quern::recording {

/// A launch that ran; what running does is written/execution.h's or executed/execution.h's to say.
struct Launch {
  std::string function, module;
  unsigned grid[3] = {}, block[3] = {}, shared_bytes = 0;
  // Where nothing is executed:
  uint64_t words[5] = {};             ///< the parameters, or the first 8 bytes of them
  std::vector<std::byte> first = {};  ///< the first one, whole
  int device = 0;
  bool in_graph = false;
};

struct Session {
  // What the library pretends.
  int devices = 1;
  std::string name = "Recorder";
  std::string architecture = "gfx942:sramecc+:xnack-";  ///< HIP
  int capability = 90;                                  ///< CUDA: of compute, times ten
  int version = 12040;                                  ///< CUDA
  uint64_t memory = 4ull << 30;
  int multiprocessors = 10, max_threads = 1024, warp_size = 32, best_block = 256, resident = 8;
  int max_grid = 0x7fffffff;
  size_t first_bytes = 8;  ///< of the first parameter of kernels
  bool pools = true, peers = true;
  /// Calls of a function (by its name in gpu::Api) that fail: the one of this number, from 1.
  struct Failure {
    int call = 0, code = 0;
  };
  std::map<std::string, Failure> failures;
  Failure any;            ///< the same among the calls of all functions
  int faulty_launch = 0;  ///< the launch of this number, from 1, breaks the device when it runs

  // What happened.
  int all_calls = 0;
  std::map<std::string, int> calls;  ///< by name in gpu::Api
  std::vector<Launch> launches;
  std::vector<std::string> misuse;  ///< what a real library would not have forgiven
  std::map<std::string, int> live;  ///< "allocations", "streams", …
  int broken = 0;                   ///< the error that ended the device

  int alive() const {
    int sum = 0;
    for (const auto& [what, count] : live) sum += count;
    return sum;
  }
};

struct Recorder : Session {
  std::recursive_mutex mutex;  ///< held by each function of the library
};

/// The type of the function `quern_recording` that each library exports besides the vendor's. Its
/// argument asks for a new beginning: settings and records as above (what lives goes on living).
using Access = Recorder*(bool reset);

}  // namespace quern::recording

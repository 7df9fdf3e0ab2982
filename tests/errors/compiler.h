#pragma once
// Runs C++ compilers over programs of the tests.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <future>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace quern::test {

struct Output {
  int status = 0;
  std::string text;  ///< stdout and stderr
};

inline Output run(const std::string& command) {
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (!pipe) throw std::runtime_error("cannot run " + command);
  Output out;
  std::array<char, 4096> buffer;
  while (size_t n = fread(buffer.data(), 1, buffer.size(), pipe)) out.text.append(buffer.data(), n);
  out.status = pclose(pipe);
  return out;
}

/// The command that compiles a program of Quern without making code; the file is to be added.
inline std::string syntax_check(const std::string& compiler) {
  return compiler + " -std=c++20 -fsyntax-only -I" QUERN_ROOT "/ir/include -I" QUERN_ROOT
                    "/dsl/include ";
}

/// `work(k)` for k in [0, count) on as many threads as the machine runs at once.
template <class F>
void in_parallel(size_t count, const F& work) {
  std::atomic<size_t> next{0};
  std::vector<std::future<void>> threads;
  for (unsigned t = 0; t < std::max(1u, std::thread::hardware_concurrency()); t++)
    threads.push_back(std::async(std::launch::async, [&] {
      for (size_t k; (k = next++) < count;) work(k);
    }));
  for (auto& thread : threads) thread.get();
}

}  // namespace quern::test

#pragma once
// What kernels do where there is no clock: the benchmarks' works on the interpreter of PTX
// (tests/gpu/ptx), beside the hand-written CUDA of bench/cuda as nvcc compiles it.
#include <optional>
#include <string>
#include <vector>

#include "bench/harness.h"
#include "tests/gpu/ptx/machine.h"

namespace bench {

/// One run of a work's largest size that the interpreter runs in a second or two, else of its
/// smallest. All fields of Counts are of all launches of the run together.
struct Counted {
  std::string name, size;
  double bytes = 0;   ///< that must move, as the benchmark counts them; 0 where it counts flops
  double amount = 0;  ///< bytes and flops, which grow with the size
  quern::ptx::Counts quern;
  std::optional<quern::ptx::Counts> cuda;  ///< none without nvcc, or where nobody has written any
};

/// Checks the hand-written CUDA against C++, then runs the works of the groups, saying on standard
/// error which. QUERN_PTX_… in the environment are removed: counts are those of the interpreter's
/// own settings. Throws Error where CUDA's library is not the interpreter.
std::vector<Counted> count(const std::vector<void (*)(Report&)>& groups);

/// Instructions of warps that compute: integer, floating and compare.
uint64_t arithmetic(const quern::ptx::Counts& counts);
uint64_t special(const quern::ptx::Counts& counts);

/// For each work the counts of both sides, their ratios, and what a roofline model makes of them.
void print(std::FILE* to, const std::vector<Counted>& all);

/// A record is what print writes, of all groups and both sides. Throws Error where this would be
/// less.
void expect_recordable(bool has_cuda, const std::string& group, const std::string& file);
void write(const std::vector<Counted>& all, const std::string& file);
/// Says which works count other than in a record, are new or, of all groups, gone; of Quern's side
/// alone where `all` has no other.
void compare(std::FILE* to, const std::vector<Counted>& all, bool of_all_groups,
             const std::string& file);

}  // namespace bench

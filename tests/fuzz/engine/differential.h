#pragma once
// Runs a program everywhere and compares.
#include <functional>
#include <optional>

#include "quern/ir/lower.h"
#include "tests/fuzz/engine/outcome.h"

namespace quern::fuzz {

/// Where a program goes wrong: a pass, "pass (walk)", or a device.
struct Failure {
  std::string stage;
  std::string what;
};

struct Checks {
  uint64_t max_steps = 64'000'000;  ///< instructions a run of the interpreter may take
  bool passes = true;               ///< interpret after every pass
  std::vector<std::shared_ptr<runtime::Device>> devices;  ///< run there too
  bool on_trees = false;                                  ///< there some fields lie on trees
  /// Spoils kernels after a pass: what a test of the fuzzer plants.
  std::function<void(std::string_view pass, ir::Kernel&)> sabotage;
};

/// The target that a program with this seed is lowered for: every trait has several values.
ir::TargetTraits target_of(uint64_t seed);

/// Is the program one that means the same everywhere: it ends, nothing is out of range, no check
/// fails, no race, no order of iterations shows, no bits of a NaN are looked at?
bool sound(const Program& program, const Checks& checks, std::string* why = nullptr);

/// The first stage at which the program does not do what it did as it was given.
std::optional<Failure> check(const Program& program, const Checks& checks);

}  // namespace quern::fuzz

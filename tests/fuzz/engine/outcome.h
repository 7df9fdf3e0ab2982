#pragma once
#include <memory>
#include <string>

#include "backends/interpreter/interpreter.h"
#include "quern/runtime/device.h"
#include "tests/fuzz/engine/program.h"

namespace quern::fuzz {

/// What a run did that anyone can see. NaNs are one value.
struct Outcome {
  /// Elements of the fields' components, one after another, of bindings with memory of their own.
  std::vector<std::vector<ir::Bits>> fields;
  std::vector<ir::Bits> results;
  std::vector<std::vector<ir::Bits>>
      lines;  ///< printed values behind their site's text hash, sorted
  uint32_t printed = 0;
  bool failed = false;  ///< a check has
  bool ended = true;
  uint64_t steps = 0;   ///< of the interpreter
  std::string refused;  ///< the interpreter's error: threads of a block that part
};

/// What differs first, in words; empty where nothing does.
std::string difference(const Outcome& expected, const Outcome& found);

/// Runs `kernel`, a stage of the program's, on the program's inputs. Findings of the options'
/// checks go to `findings` where it is given.
Outcome interpret(const Program& program, const ir::Kernel& kernel,
                  const interpreter::Options& options,
                  std::vector<interpreter::Finding>* findings = nullptr);

/// Compiles the program's kernel for a device and runs it there; `on_trees`: with fields on trees where
/// it does the same on those (storages.h).
Outcome run_on(const std::shared_ptr<runtime::Device>& device, const Program& program,
               bool on_trees);

/// Bindings that share memory are in one alias class.
ir::Signature signature(const Program& program);

}  // namespace quern::fuzz

#pragma once
// What analyses know of values and instructions, as comments of the text form.
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ir/analysis/affine.h"
#include "ir/analysis/divergence.h"
#include "ir/analysis/effects.h"
#include "ir/analysis/ranges.h"
#include "ir/text/names.h"

namespace quern::ir::text {

/// Of one root, `task`'s body or another.
class Notes {
 public:
  /// Throws Error with what there is where a name is that of no analysis.
  Notes(const Kernel& kernel, const Region* root, const Task* task, const Names& names,
        std::span<const std::string> analyses);

  /// Empty, or "  ; " and what is known, in the order of the analyses.
  std::string of(const Inst* inst) const;
  std::string of(std::span<const Value> arguments) const;

 private:
  using Say = std::function<std::string(const Value*)>;
  void add(std::string_view analysis);
  std::string form(const Affine& form) const;
  std::string places(const Places& places) const;

  const Kernel& kernel_;
  const Region* root_;
  const Task* task_;
  const Names& names_;
  std::vector<Say> values_;
  std::vector<std::function<std::string(const Inst*)>> insts_;
  std::shared_ptr<Ranges> ranges_;
};

}  // namespace quern::ir::text

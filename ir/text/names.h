#pragma once
#include <unordered_map>

#include "quern/ir/ir.h"

namespace quern::ir::text {

/// Numbers values in order of definition, root by root.
class Names {
 public:
  /// Numbers everything below `root`, from 0.
  explicit Names(const Region* root);
  /// "%3"; "%?" for a value of another root.
  std::string operator()(const Value* v) const;

 private:
  void visit(const Region* region);
  std::unordered_map<const Value*, uint32_t> numbers_;
};

/// One instruction without location and regions.
std::string head(const Inst* inst, const Names& names);

}  // namespace quern::ir::text

#pragma once
// The parts of a tree as bindings of a kernel: declared when one is first asked for.
#include <map>

#include "quern/ir/builder.h"

namespace quern::ir {

/// Do indices of both fields name elements of one tree, and the same numbers of them?
bool share_elements(const Binding& a, const Binding& b);

class TreeParts {
 public:
  explicit TreeParts(Kernel& kernel) : kernel_(kernel) {}

  // ---- of the tree that the field is on; list and places of the field's last pool; see
  // quern/ir/trees.h
  uint32_t table(uint32_t field, size_t pool);
  uint32_t keys(uint32_t field);
  uint32_t mask(uint32_t field);
  uint32_t listed(uint32_t field);
  uint32_t ring(uint32_t field, size_t pool);
  uint32_t owners(uint32_t field, size_t pool);
  uint32_t ending(uint32_t field);
  uint32_t state(uint32_t field);
  uint32_t list(uint32_t field);
  uint32_t places(uint32_t field);
  uint32_t neighbours(uint32_t field);
  /// The field's own.
  uint32_t elements(uint32_t field);

 private:
  uint32_t part(uint32_t field, const std::string& name, Type type, size_t components = 1);

  Kernel& kernel_;
  std::map<std::pair<uint32_t, std::string>, uint32_t> parts_;  ///< by the tree's number and name
  std::map<uint32_t, uint32_t> elements_;                       ///< by the field
};

}  // namespace quern::ir

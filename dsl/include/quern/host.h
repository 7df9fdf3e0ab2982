#pragma once
// Host conveniences that need the standard library's containers; not part of quern.h.
#include <vector>

#include "quern/fields/field.h"

namespace quern {

/// All elements in row-major order; waits for the launches that use the field.
template <class T, int N>
std::vector<T> to_vector(const Field<T, N>& field, Loc l = Loc::here()) {
  static_assert(!std::is_same_v<T, bool>,
                "quern: std::vector<bool> has no storage to copy to; use "
                "copy_to");
  std::vector<T> out(size_t(field.size(l)));
  field.copy_to(out.data(), out.size(), l);
  return out;
}

}  // namespace quern

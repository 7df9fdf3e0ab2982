#include "quern/ir/abi.h"

namespace quern::ir::abi {

Layout layout(const Kernel& kernel) {
  Layout out;
  uint32_t at = head_bytes;
  for (const Binding& b : kernel.bindings) {
    Place place;
    place.offset = at;
    place.rank = b.rank;
    if (b.kind == Binding::scalar) at += 8;
    if (b.kind == Binding::field) {
      at += uint32_t(b.components.size()) * 8 * (1 + b.rank);
      place.extents = at;
      at += 8 * b.rank;
    }
    out.places.push_back(place);
  }
  for (size_t k = 0; k < out.places.size(); k++) {
    if (kernel.bindings[k].kind != Binding::field) continue;
    out.places[k].firsts = at;
    at += 2 * 8 * out.places[k].rank;
  }
  out.bytes = at;
  return out;
}

}  // namespace quern::ir::abi

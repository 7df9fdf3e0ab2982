#pragma once
// What the families of element-wise instructions share.
#include <algorithm>
#include <limits>

#include "tests/gpu/ptx/decoder.h"
#include "tests/gpu/ptx/warp.h"

namespace quern::ptx {

/// Decode the arithmetic instructions of these types.
void decode_integers(Decoder& d);
void decode_floats(Decoder& d);

/// make.operator()<T>() for the integer T of 16 to 64 bits that a type stands for.
template <class Make>
Handler for_integer(Type t, Make make) {
  const bool is_signed = t.kind == Type::signed_;
  switch (t.width) {
    case 16:
      return is_signed ? make.template operator()<int16_t>() : make.template operator()<uint16_t>();
    case 32:
      return is_signed ? make.template operator()<int32_t>() : make.template operator()<uint32_t>();
    case 64:
      return is_signed ? make.template operator()<int64_t>() : make.template operator()<uint64_t>();
    default: return nullptr;
  }
}

/// Destination and sources, as many, of one type; all words are taken.
inline void operands_of_type(Decoder& d, const Words& words, Type t, size_t sources) {
  words.finish(sources + 1);
  d.to(0, 0, t);
  for (size_t k = 0; k < sources; k++) d.from(k, k + 1, t);
}

}  // namespace quern::ptx

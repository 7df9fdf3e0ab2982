#pragma once
// Typed access to the host's memory.
#include <cstring>

#include "quern/ir/type.h"

namespace quern::interpreter {

using ir::Bits;
using ir::Type;

constexpr uint64_t stored_bytes(Type t) { return t == Type::address ? 8 : ir::byte_size(t); }

inline Bits read_memory(Type t, Bits address) {
  Bits bits = 0;
  const void* from = reinterpret_cast<const void*>(address);
  switch (stored_bytes(t)) {
    case 1: std::memcpy(&bits, from, 1); break;
    case 2: std::memcpy(&bits, from, 2); break;
    case 4: std::memcpy(&bits, from, 4); break;
    default: std::memcpy(&bits, from, 8); break;
  }
  return t == Type::b1 ? bits != 0 : bits;
}

inline void write_memory(Type t, Bits address, Bits bits) {
  void* to = reinterpret_cast<void*>(address);
  switch (stored_bytes(t)) {
    case 1: std::memcpy(to, &bits, 1); break;
    case 2: std::memcpy(to, &bits, 2); break;
    case 4: std::memcpy(to, &bits, 4); break;
    default: std::memcpy(to, &bits, 8); break;
  }
}

/// A field of a record or argument block at `base`.
template <class T>
T read_at(const std::byte* base, size_t offset) {
  T v;
  std::memcpy(&v, base + offset, sizeof v);
  return v;
}
template <class T>
void write_at(std::byte* base, size_t offset, T v) {
  std::memcpy(base + offset, &v, sizeof v);
}

}  // namespace quern::interpreter

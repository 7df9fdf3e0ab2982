#pragma once
#include "quern/ir/abi.h"
#include "quern/ir/builder.h"

namespace quern::ir {

/// The bits of a value as the host reads them: a u64, zero above the value's width.
inline Value* host_bits(Builder& b, Value* v) {
  if (v->type == Type::b1) return b.convert(v, Type::u64);
  Type bits = is_float(v->type) ? (v->type == Type::f16   ? Type::u16
                                   : v->type == Type::f32 ? Type::u32
                                                          : Type::u64)
                                : unsigned_of(v->type);
  return b.convert(b.bitcast(v, bits), Type::u64);
}

/// The same of each, abi::reported_values at most.
inline std::vector<Value*> host_bits(Builder& b, std::span<const Use> values) {
  std::vector<Value*> bits;
  for (const Use& use : values)
    if (bits.size() < abi::reported_values) bits.push_back(host_bits(b, use.value));
  return bits;
}

/// Writes fields of a record in the host's memory.
class RecordWriter {
 public:
  RecordWriter(Builder& b, Value* address, uint64_t alias_class)
      : b_(b), address_(address), alias_class_(alias_class) {}

  void u32(size_t at, Value* v) { write(at, v); }
  void u32(size_t at, uint32_t v) { write(at, b_.integer(Type::u32, v)); }
  void i64(size_t at, Value* v) { write(at, v); }
  void values(size_t at, std::span<Value* const> bits) {
    for (size_t k = 0; k < bits.size(); k++) write(at + 8 * k, bits[k]);
  }

 private:
  void write(size_t at, Value* v) {
    b_.write(b_.offset(address_, b_.integer(Type::i64, int64_t(at))), v, alias_class_);
  }
  Builder& b_;
  Value* address_;
  uint64_t alias_class_;
};

}  // namespace quern::ir

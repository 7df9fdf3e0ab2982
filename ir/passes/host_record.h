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

/// Writes fields of a record in the host's memory.
class RecordWriter {
 public:
  RecordWriter(Builder& b, Value* address, uint64_t alias_class)
      : b_(b), address_(address), alias_class_(alias_class) {}

  void u32(size_t at, Value* v) { write(at, v); }
  void u32(size_t at, uint32_t v) { write(at, b_.integer(Type::u32, v)); }
  void i64(size_t at, Value* v) { write(at, v); }
  /// Up to abi::reported_values of them; their number comes back.
  uint32_t values(size_t at, std::span<const Use> values) {
    uint32_t count = 0;
    for (const Use& use : values) {
      if (count == abi::reported_values) break;
      write(at + 8 * count++, host_bits(b_, use.value));
    }
    return count;
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

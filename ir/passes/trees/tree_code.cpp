#include "ir/passes/trees/tree_code.h"

namespace quern::ir {

Value* TreeCode::load(uint32_t part, Value* at, bool racing) {
  if (!racing) return b_.load(part, 0, Type::u32, {&at, 1});
  return b_.atomic(AtomicOp::load, part, 0, Type::u32, {&at, 1}, {})->result();
}

Value* TreeCode::atomic(AtomicOp op, uint32_t part, Value* at,
                        std::initializer_list<Value*> values) {
  return b_.atomic(op, part, 0, Type::u32, {&at, 1}, values)->result();
}

Value* TreeCode::word(size_t pool, uint32_t which) {
  return b_.integer(Type::i64, int64_t(pool * tree::words_of_pool + which));
}

void TreeCode::mark(uint32_t part, Value* at, Value* bits) {
  Value* set = b_.binary(Op::bit_and, load(part, at, true), bits);
  where(b_.binary(Op::ne, set, bits), [&] { atomic(AtomicOp::bit_or, part, at, {bits}); });
}

void TreeCode::mark_changed() { mark(parts_.state(field_), word(0, tree::changed), u32(1)); }

void TreeCode::check(Value* ok, const std::string& text, const std::vector<Value*>& told) {
  Site s;
  s.kind = Site::other;
  s.loc = b_.loc();
  s.text = text;
  for (Value* v : told) s.values.push_back(v->type);
  kernel_.sites.push_back(std::move(s));
  std::vector<Value*> operands = {ok};
  operands.insert(operands.end(), told.begin(), told.end());
  b_.make(Op::check, {}, operands)->site = uint32_t(kernel_.sites.size() - 1);
}

}  // namespace quern::ir

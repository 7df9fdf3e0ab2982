#pragma once
// A tree's parts as fields, for the kernels that keep it.
#include "dsl/objects.h"
#include "sparse/tree.h"

namespace quern::detail {

using Words = Field<uint32_t>;

template <class T>
Field<T> field_of(const std::shared_ptr<Storage>& storage) {
  auto object = std::make_unique<FieldObject>();
  object->type = Field<T>::type();
  object->storage = storage;
  return Field<T>(Ref<FieldObject>(object.release()));
}
inline Words words_of(const std::shared_ptr<Storage>& storage) {
  return field_of<uint32_t>(storage);
}

}  // namespace quern::detail

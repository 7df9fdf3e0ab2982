#pragma once
// Tensors shared with other libraries, without a copy, by DLPack (github.com/dmlc/dlpack, version
// 1.0). The structures here are laid out as its header has them: a DLManagedTensor* of another
// library's is reinterpret_cast to dlpack::Managed*, and back.
#include "quern/interop.h"

namespace quern::dlpack {

enum class Where : int32_t {
  host = 1,
  cuda = 2,
  cuda_pinned = 3,
  rocm = 10,
  rocm_pinned = 11,
  cuda_managed = 13
};
enum class Kind : uint8_t { signed_integer = 0, unsigned_integer = 1, floating = 2, boolean = 6 };

struct Tensor {
  void* data;
  Where where;
  int32_t device;
  int32_t rank;
  struct {
    Kind kind;
    uint8_t bits;
    uint16_t lanes;
  } type;
  int64_t* shape;
  int64_t* strides;  ///< in elements; null: row-major
  uint64_t byte_offset;
};
/// DLManagedTensor.
struct Managed {
  Tensor tensor;
  void* manager;
  void (*deleter)(Managed*);
};
/// DLManagedTensorVersioned.
struct ManagedVersioned {
  static constexpr uint64_t read_only = 1;
  uint32_t major, minor;
  void* manager;
  void (*deleter)(ManagedVersioned*);
  uint64_t flags;
  Tensor tensor;
};

}  // namespace quern::dlpack

namespace quern::detail {
/// `consumer`: the stream of what takes the tensor, or null.
dlpack::Managed* export_tensor(FieldObject* field, void* const* consumer, Loc loc);
dlpack::ManagedVersioned* export_versioned_tensor(FieldObject* field, Loc loc);
FieldObject* import_tensor(DeviceObject* device, FieldType type, dlpack::Managed* tensor, Loc loc);
FieldObject* import_tensor(DeviceObject* device, FieldType type, dlpack::ManagedVersioned* tensor,
                           Loc loc);
}  // namespace quern::detail

namespace quern {

/// The field's elements as a tensor on its device, with an axis of components after its own where
/// an element has several. Its deleter, which whoever takes it calls once, may run in any thread;
/// until then the memory lives, but swap and release() of the field end that. Waits for what was
/// launched, and the deleter wants the taker's work to be finished; to_dlpack(field, stream) makes
/// the taker's stream, which outlives the tensor, wait instead, and the memory wait for what is in
/// that stream when the deleter runs. Throws Error for elements that are no arrays of one scalar
/// type, and layouts without one (see interop::address).
template <class T, int N>
dlpack::Managed* to_dlpack(const Field<T, N>& field, Loc l = Loc::here()) {
  detail::synchronize_field(field.object(), l);
  return detail::export_tensor(field.object(), nullptr, l);
}
template <class T, int N>
dlpack::Managed* to_dlpack(const Field<T, N>& field, void* stream, Loc l = Loc::here()) {
  detail::run_field_before(field.object(), stream, l);
  return detail::export_tensor(field.object(), &stream, l);
}
template <class T, int N>
dlpack::ManagedVersioned* to_dlpack_versioned(const Field<T, N>& field, Loc l = Loc::here()) {
  detail::synchronize_field(field.object(), l);
  return detail::export_versioned_tensor(field.object(), l);
}

/// A field on a tensor's memory, read and written in place: `from_dlpack<float, 2>(device, t)`. The
/// tensor's last axis holds the components where an element has several. Calls the deleter once the
/// field, its views and their launches are done with it. What the tensor's library does must be
/// finished, or ordered before by interop::run_after. Throws Error, and leaves the tensor to the
/// caller, where device, scalar type or axes are others, where elements are apart (neither
/// row-major nor with the axes in another order), and for a read-only tensor.
template <class T, int N>
Field<T, N> from_dlpack(const Device& device, dlpack::Managed* tensor, Loc l = Loc::here()) {
  return Field<T, N>(detail::Ref<detail::FieldObject>(
      detail::import_tensor(device.object(), {detail::element_type<T>(), N}, tensor, l)));
}
template <class T, int N>
Field<T, N> from_dlpack(const Device& device, dlpack::ManagedVersioned* tensor,
                        Loc l = Loc::here()) {
  return Field<T, N>(detail::Ref<detail::FieldObject>(
      detail::import_tensor(device.object(), {detail::element_type<T>(), N}, tensor, l)));
}

}  // namespace quern

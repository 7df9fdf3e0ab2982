#pragma once
// Work beside a vendor's own code: CUDA's or HIP's streams, contexts and kernels. Fields on their
// memory are made by Field::wrap. quern/dlpack.h exchanges tensors with other libraries.
#include "quern/fields/field.h"

namespace quern::interop {

/// A device by its vendor's names. A context is a CUcontext, and null for HIP; a stream a CUstream
/// (cudaStream_t) or hipStream_t, null the default one.
struct Handles {
  int device;
  void *context, *stream;
};
/// Where `device` works. Memory and streams of CUDA's runtime are of the same context. Throws Error
/// for a device other than "cuda" and "rocm".
inline Handles handles(const Device& device, Loc l = Loc::here()) {
  detail::NativeHandles h = detail::native_handles(device.object(), l);
  return {h.device, h.context, h.stream};
}

/// A device ("cuda", "rocm:1") that works in a stream of the caller's, in order with everything
/// else there, and in a context of the caller's (null: the primary one). Both outlive it, its
/// fields and the kernels that were launched on it. Each call makes a device of its own: fields of
/// two are not for one launch, and a kernel keeps code for the one that it ran on last, so keep the
/// device too. Throws Error where there is no such device.
inline Device on_stream(const char* name, void* stream, void* context = nullptr,
                        Loc l = Loc::here()) {
  return Device(detail::Ref<detail::DeviceObject>(detail::join_device(name, context, stream, l)));
}

/// What is launched on `device` from now on runs after what was put into `stream`.
inline void run_after(const Device& device, void* stream, Loc l = Loc::here()) {
  detail::run_after(device.object(), stream, l);
}
/// What is put into `stream` from now on runs after what was launched on `device`.
inline void run_before(const Device& device, void* stream, Loc l = Loc::here()) {
  detail::run_before(device.object(), stream, l);
}

/// The first element's address in the device's memory, for kernels written by hand; elements lie as
/// the field's layout says. Null for a field without elements. Throws Error where elements are not
/// whole (a vector's components apart: make it with aos) or in blocks.
template <class T, int N>
T* address(const Field<T, N>& field, Loc l = Loc::here()) {
  return reinterpret_cast<T*>(detail::field_address(field.object(), l));
}

}  // namespace quern::interop

#pragma once
// Counted references to what lives behind the language: devices, fields, kernels, functions.
#include "quern/layout.h"
#include "quern/values/record.h"

namespace quern::detail {

struct DeviceObject;
struct FieldObject;
struct KernelObject;
struct FuncObject;
struct LaunchObject;
struct StreamObject;

void retain(DeviceObject*) noexcept;
void release(DeviceObject*) noexcept;
void retain(FieldObject*) noexcept;
void release(FieldObject*) noexcept;
void retain(KernelObject*) noexcept;
void release(KernelObject*) noexcept;
void retain(FuncObject*) noexcept;
void release(FuncObject*) noexcept;
void retain(LaunchObject*) noexcept;
void release(LaunchObject*) noexcept;
void retain(StreamObject*) noexcept;
void release(StreamObject*) noexcept;

/// Shares an object; made from a pointer whose count it takes over.
template <class T>
class Ref {
 public:
  Ref() = default;
  explicit Ref(T* object) : object_(object) {}
  Ref(const Ref& o) : object_(o.object_) {
    if (object_) retain(object_);
  }
  Ref(Ref&& o) noexcept : object_(std::exchange(o.object_, nullptr)) {}
  Ref& operator=(Ref o) noexcept {
    std::swap(object_, o.object_);
    return *this;
  }
  ~Ref() {
    if (object_) release(object_);
  }
  T* get() const { return object_; }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  T* object_ = nullptr;
};

// ---- devices
DeviceObject* open_device(const char* name, Loc loc);  ///< null name: the standard device
DeviceObject* best_device();
void synchronize(DeviceObject* device, Loc loc);
const char* device_name(DeviceObject* device);
void set_seed(DeviceObject* device, uint32_t seed, Loc loc);
void set_time_limit(DeviceObject* device, double seconds, Loc loc);
void interrupt(DeviceObject* device, Loc loc);
struct NativeHandles {
  int device;
  void *context, *stream;
};
DeviceObject* join_device(const char* name, void* context, void* stream, Loc loc);
NativeHandles native_handles(DeviceObject* device, Loc loc);
void run_after(DeviceObject* device, void* stream, Loc loc);
void run_before(DeviceObject* device, void* stream, Loc loc);

// ---- streams
StreamObject* make_stream(DeviceObject* device, Loc loc);
void synchronize(StreamObject* stream, Loc loc);
struct StreamUse;  ///< while it lives, the thread launches in a stream
StreamUse* begin_use(StreamObject* stream, Loc loc);
void end_use(StreamUse*) noexcept;

// ---- fields
/// How an element is made of scalars: in a field, and (at `offsets`, in `bytes`) on the host.
struct ElementType {
  const Scalar* scalars = nullptr;
  const uint32_t* offsets = nullptr;
  int count = 1;
  uint32_t bytes = 0;
};
template <class T>
ElementType element_type() {
  return {scalars_of<T>.v, offsets_of<T>(), count_of<T>, uint32_t(sizeof(T))};
}
struct FieldType {
  ElementType element;
  int rank = 1;
};
[[noreturn]] void wrong_axes(int wanted, int found, Loc loc);
[[noreturn]] void wrong_component(int found, int count, Loc loc);
FieldObject* make_field(DeviceObject* device, FieldType type, const int64_t* shape,
                        const Layout& layout, Loc loc);
/// On the caller's memory.
FieldObject* wrap_field(DeviceObject* device, FieldType type, void* memory, const int64_t* shape,
                        const Layout& layout, Loc loc);
/// Waits for the field's device; makes a stream of the vendor's wait for it.
void synchronize_field(FieldObject* field, Loc loc);
void run_field_before(FieldObject* field, void* stream, Loc loc);
FieldObject* slice_field(FieldObject* field, int axis, int64_t lo, int64_t hi, int64_t step,
                         Loc loc);
FieldObject* select_field(FieldObject* field, int axis, int64_t index, Loc loc);
FieldObject* transposed_field(FieldObject* field, const int64_t* order, int count, Loc loc);
FieldObject* flipped_field(FieldObject* field, int axis, Loc loc);
FieldObject* rebased_field(FieldObject* field, const int64_t* firsts, int count, Loc loc);
/// The part of each element, of type `part`, that lies `offset` bytes into it on the host.
FieldObject* part_of_field(FieldObject* field, uint32_t offset, ElementType part, Loc loc);
int64_t field_extent(FieldObject* field, int axis, Loc loc);
int64_t field_first(FieldObject* field, int axis, Loc loc);
int64_t field_size(FieldObject* field, Loc loc);
void swap_fields(FieldObject* a, FieldObject* b, Loc loc);
FieldObject* snapshot_of_field(FieldObject* field, Loc loc);
/// Storage::companion.
FieldObject* companion_of_field(FieldObject* field, const char* name, ElementType type, Loc loc);
void restore_field(FieldObject* field, FieldObject* snapshot, Loc loc);
void release_field(FieldObject* field, Loc loc);
/// Elements [first, first + count) in row-major order; `first` = all_elements: all, `count` is
/// checked.
inline constexpr int64_t all_elements = -1;
void write_field(FieldObject* field, const void* from, int64_t first, int64_t count, Loc loc);
void read_field(FieldObject* field, void* to, int64_t first, int64_t count, Loc loc);
void fill_field(FieldObject* field, const void* value, Loc loc);
/// Of the first element; 0 where there is none.
uint64_t field_address(FieldObject* field, Loc loc);
/// One element, at an index for each axis; refuses one that is out of range.
void write_element(FieldObject* field, const void* from, const int64_t* index, Loc loc);
void read_element(FieldObject* field, void* to, const int64_t* index, Loc loc);

}  // namespace quern::detail

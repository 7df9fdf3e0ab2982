// Devices, fields and kernels behind their handles.
#include <climits>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "dsl/recording.h"
#include "quern/detail/signature.h"
#include "quern/kernel.h"

namespace quern::detail {

namespace {
template <class T>
void add_reference(T* object) {
  object->references.fetch_add(1, std::memory_order_relaxed);
}
template <class T>
void drop_reference(T* object) {
  if (object->references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete object;
}
}  // namespace

void retain(DeviceObject* o) noexcept { add_reference(o); }
void release(DeviceObject* o) noexcept { drop_reference(o); }
void retain(FieldObject* o) noexcept { add_reference(o); }
void release(FieldObject* o) noexcept { drop_reference(o); }
void retain(KernelObject* o) noexcept { add_reference(o); }
void release(KernelObject* o) noexcept { drop_reference(o); }
void retain(FuncObject* o) noexcept { add_reference(o); }
void release(FuncObject* o) noexcept { drop_reference(o); }
void retain(LaunchObject* o) noexcept { add_reference(o); }
void release(LaunchObject* o) noexcept { drop_reference(o); }

// ---- devices

namespace {
DeviceObject* device_object(std::shared_ptr<runtime::Device> device) {
  auto object = std::make_unique<DeviceObject>();
  object->device = std::move(device);
  return object.release();
}
}  // namespace

DeviceObject* open_device(const char* name, Loc loc) {
  return device_object(name ? runtime::Device::open(name, loc) : runtime::Device::standard(loc));
}
DeviceObject* best_device() { return device_object(runtime::Device::best()); }
void synchronize(DeviceObject* device) { device->device->synchronize(); }
const char* device_name(DeviceObject* device) { return device->device->name().c_str(); }
void set_seed(DeviceObject* device, uint32_t seed) { device->device->set_random_seed(seed); }

// ---- fields

namespace {

runtime::Storage& storage_of(FieldObject* field, Loc loc) {
  if (!field->storage)
    throw Error(loc,
                "a field parameter has no shape and no elements while its kernel is recorded; "
                "dim(k) is its extent on the device");
  return *field->storage;
}

uint64_t scalar_bytes(const FieldObject* field) {
  return ir::byte_size(type_of_scalar(field->type.scalar));
}

/// The first element meant.
uint64_t first_of(FieldObject* field, int64_t first, int64_t count, Loc loc) {
  if (first != all_elements) return uint64_t(first);
  if (count != field->storage->size())
    throw Error(loc, std::to_string(count) + " elements are copied to or from a field of " +
                         std::to_string(field->storage->size()) + ", shape " +
                         runtime::shape_text(field->storage->shape()));
  return 0;
}

/// Splits elements of `components` scalars each into one array per component, and back.
void gather(std::byte* to, const std::byte* from, int64_t count, uint64_t width, uint64_t stride) {
  for (int64_t k = 0; k < count; k++, to += width, from += stride) std::memcpy(to, from, width);
}
void scatter(std::byte* to, const std::byte* from, int64_t count, uint64_t width, uint64_t stride) {
  for (int64_t k = 0; k < count; k++, to += stride, from += width) std::memcpy(to, from, width);
}

}  // namespace

void wrong_axes(int wanted, int found, Loc loc) {
  throw Error(loc, "a field of " + std::to_string(wanted) + " axes is given " +
                       std::to_string(found) + " extents or indices");
}

FieldObject* make_field(DeviceObject* device, FieldType type, const int64_t* shape, Loc loc) {
  auto field = std::make_unique<FieldObject>();
  field->type = type;
  field->loc = loc;
  ir::Type value = type_of_scalar(type.scalar);
  ir::Type storage = value == ir::Type::b1 ? ir::Type::u8 : value;
  field->storage = std::make_shared<runtime::Storage>(
      device ? device->device : runtime::Device::standard(loc),
      std::vector<ir::Storage>(size_t(type.components), {value, storage}),
      std::vector<int64_t>(shape, shape + type.rank), loc);
  return field.release();
}

int64_t field_extent(FieldObject* field, int axis, Loc loc) {
  const auto& shape = storage_of(field, loc).shape();
  if (axis < 0 || axis >= int(shape.size()))
    throw Error(loc, "shape(" + std::to_string(axis) + ") of a field with " +
                         std::to_string(shape.size()) + " axes, numbered from 0");
  return shape[size_t(axis)];
}

int64_t field_size(FieldObject* field, Loc loc) { return storage_of(field, loc).size(); }

void swap_fields(FieldObject* a, FieldObject* b, Loc loc) {
  storage_of(a, loc).swap(storage_of(b, loc), loc);
}

void release_field(FieldObject* field, Loc loc) { storage_of(field, loc).release(loc); }

void write_field(FieldObject* field, const void* from, int64_t first, int64_t count, Loc loc) {
  runtime::Storage& storage = storage_of(field, loc);
  storage.expect_alive(loc);
  uint64_t from_element = first_of(field, first, count, loc);
  uint64_t width = scalar_bytes(field), n = uint64_t(field->type.components);
  const auto* bytes = static_cast<const std::byte*>(from);
  if (n == 1) return storage.upload(0, {bytes, size_t(count) * width}, from_element);
  std::vector<std::byte> part(size_t(count) * width);
  for (uint64_t c = 0; c < n; c++) {
    gather(part.data(), bytes + c * width, count, width, n * width);
    storage.upload(uint32_t(c), part, from_element);
  }
}

void read_field(FieldObject* field, void* to, int64_t first, int64_t count, Loc loc) {
  runtime::Storage& storage = storage_of(field, loc);
  storage.expect_alive(loc);
  uint64_t from_element = first_of(field, first, count, loc);
  uint64_t width = scalar_bytes(field), n = uint64_t(field->type.components);
  auto* bytes = static_cast<std::byte*>(to);
  if (n == 1) return storage.download(0, {bytes, size_t(count) * width}, from_element);
  std::vector<std::byte> part(size_t(count) * width);
  for (uint64_t c = 0; c < n; c++) {
    storage.download(uint32_t(c), part, from_element);
    scatter(bytes + c * width, part.data(), count, width, n * width);
  }
}

void fill_field(FieldObject* field, const void* value, Loc loc) {
  runtime::Storage& storage = storage_of(field, loc);
  storage.expect_alive(loc);
  uint64_t width = scalar_bytes(field);
  for (int c = 0; c < field->type.components; c++) {
    uint64_t bits = 0;
    std::memcpy(&bits, static_cast<const std::byte*>(value) + uint64_t(c) * width, width);
    storage.fill(uint32_t(c), bits);
  }
}

int64_t field_position(FieldObject* field, const int64_t* index, Loc loc) {
  const auto& shape = storage_of(field, loc).shape();
  int64_t at = 0;
  for (size_t k = 0; k < shape.size(); k++) {
    if (index[k] < 0 || index[k] >= shape[k])
      throw Error(loc, "index " + std::to_string(index[k]) + " on axis " + std::to_string(k) +
                           " of a field of shape " + runtime::shape_text(shape));
    at = at * shape[k] + index[k];
  }
  return at;
}

// ---- kernels

namespace {
/// A yes or no from the environment; `otherwise` where it is not set.
bool environment(const char* name, bool otherwise) {
  const char* text = std::getenv(name);
  return text && *text ? std::strcmp(text, "0") != 0 : otherwise;
}
}  // namespace

void set_modes(KernelObject* kernel, const Options& options, bool checked) {
  auto chosen = [](Choice c, bool otherwise) { return c.state < 0 ? otherwise : c.state == 1; };
  ir::Modes& modes = kernel->modes;
  modes.strict = chosen(options.strict, environment("QUERN_STRICT", false));
  modes.checked = environment("QUERN_CHECKED", chosen(options.checked, checked));
  modes.contract = !modes.strict && chosen(options.contract, true);
}

LaunchObject* launch(KernelObject* kernel, const Argument* arguments, int count, Loc loc) {
  if (const Recording* r = active_recording())
    throw Error(loc, "a kernel is called while another kernel or function is recorded (begun at " +
                         place(r->loc) +
                         "); kernels are launched by the host; a Func can be called");
  std::vector<runtime::Argument> all;
  all.reserve(size_t(count) + kernel->captured.size());
  for (int k = 0; k < count; k++) {
    runtime::Argument argument;
    argument.bits = arguments[k].bits;
    if (arguments[k].field) {
      storage_of(arguments[k].field, loc);
      argument.storage = arguments[k].field->storage;
    }
    all.push_back(std::move(argument));
  }
  for (const auto& field : kernel->captured) all.push_back({0, field.get()->storage});
  auto outcome = kernel->program->launch(all, kernel->modes, loc);
  if (!outcome) return nullptr;
  auto object = std::make_unique<LaunchObject>();
  object->outcome = std::move(outcome);
  return object.release();
}

namespace {
[[noreturn]] void refuse_argument(Scalar type, const std::string& v, Loc loc) {
  throw Error(loc, "the host value " + v + " does not fit the kernel's parameter of type " +
                       std::string(ir::name(type_of_scalar(type))));
}
}  // namespace

void expect_holds(Scalar scalar, int64_t v, Loc loc) {
  ir::Type type = type_of_scalar(scalar);
  if (ir::is_float(type)) return;
  bool fits = ir::is_signed(type) ? ir::to_signed(ir::truncate(ir::Bits(v), type), type) == v
                                  : v >= 0 && ir::truncate(ir::Bits(v), type) == ir::Bits(v);
  if (!fits) refuse_argument(scalar, std::to_string(v), loc);
}

void expect_holds(Scalar scalar, uint64_t v, Loc loc) {
  if (v <= uint64_t(INT64_MAX)) return expect_holds(scalar, int64_t(v), loc);
  if (scalar != Scalar::u64 && !ir::is_float(type_of_scalar(scalar)))
    refuse_argument(scalar, std::to_string(v), loc);
}

void expect_holds(Scalar scalar, double v, Loc loc) {
  bool to_float = ir::is_float(type_of_scalar(scalar));
  bool fits = to_float ? scalar == Scalar::f64 || !std::isfinite(v) || std::isfinite(float(v))
                       : v == std::trunc(v) && v >= -0x1p63 && v < 0x1p64;
  if (!fits) refuse_argument(scalar, runtime::format_value(ir::Type::f64, ir::bits_of(v)), loc);
  if (to_float) return;
  if (v < 0)
    expect_holds(scalar, int64_t(v), loc);
  else
    expect_holds(scalar, uint64_t(v), loc);
}

uint64_t launch_result(LaunchObject* launch, int k) { return launch->outcome->result(size_t(k)); }

}  // namespace quern::detail

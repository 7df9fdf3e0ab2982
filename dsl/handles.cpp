// Devices, fields and kernels behind their handles.
#include <algorithm>
#include <climits>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "dsl/recording.h"
#include "quern/kernels/kernel.h"
#include "quern/kernels/signature.h"

namespace quern::detail {

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
void retain(StreamObject* o) noexcept { add_reference(o); }
void release(StreamObject* o) noexcept { drop_reference(o); }

struct StreamUse {
  runtime::Stream::Current current;
};

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
void synchronize(DeviceObject* device, Loc loc) {
  expect_no_recording("waiting for a device", loc);
  device->device->synchronize();
}
const char* device_name(DeviceObject* device) { return device->device->name().c_str(); }
void set_seed(DeviceObject* device, uint32_t seed, Loc loc) {
  expect_no_recording("seeding a device", loc);
  device->device->seed(seed);
}
void set_time_limit(DeviceObject* device, double seconds, Loc loc) {
  device->device->time_limit(seconds, loc);
}
void interrupt(DeviceObject* device, Loc loc) { device->device->interrupt(loc); }

DeviceObject* join_device(const char* name, void* context, void* stream, Loc loc) {
  return device_object(runtime::Device::join(name, context, stream, loc));
}
NativeHandles native_handles(DeviceObject* device, Loc loc) {
  runtime::Native::Handles h = device->device->native(loc).handles();
  return {h.device, h.context, h.stream};
}
void run_after(DeviceObject* device, void* stream, Loc loc) {
  expect_no_recording("ordering a stream", loc);
  device->device->native(loc).run_after(stream);
}
void run_before(DeviceObject* device, void* stream, Loc loc) {
  expect_no_recording("ordering a stream", loc);
  device->device->native(loc).run_before(stream);
}

// ---- streams

namespace {
void expect_stream(StreamObject* stream, Loc loc) {
  if (!stream) throw Error(loc, "this Stream is none: it was moved from");
}
}  // namespace

StreamObject* make_stream(DeviceObject* device, Loc loc) {
  expect_no_recording("making a stream", loc);
  auto object = std::make_unique<StreamObject>();
  try {
    object->stream = runtime::Stream::make(device->device);
  } catch (const Error& e) {
    throw Error(loc, e.message());
  }
  return object.release();
}
void synchronize(StreamObject* stream, Loc loc) {
  expect_no_recording("waiting for a stream", loc);
  expect_stream(stream, loc);
  stream->stream->synchronize();
}
StreamUse* begin_use(StreamObject* stream, Loc loc) {
  expect_no_recording("choosing a stream", loc);
  expect_stream(stream, loc);
  return new StreamUse{runtime::Stream::Current(stream->stream)};
}
void end_use(StreamUse* use) noexcept { delete use; }

// ---- fields

namespace {

runtime::Storage& storage_of(FieldObject* field, Loc loc) {
  if (!field->storage)
    throw Error(loc,
                "a field parameter has no shape and no elements while its kernel is recorded; "
                "dim(k) is its extent on the device");
  return *field->storage;
}

/// Of a field whose elements the host is about to touch.
runtime::Storage& host_access(FieldObject* field, Loc loc) {
  expect_no_recording("host access to a field", loc);
  runtime::Storage& storage = storage_of(field, loc);
  storage.expect_alive(loc);
  return storage;
}

/// The first element meant.
int64_t first_of(FieldObject* field, int64_t first, int64_t count, Loc loc) {
  if (first != all_elements) return first;
  if (count != field->storage->size())
    throw Error(loc, std::to_string(count) + " elements are copied to or from a field of " +
                         std::to_string(field->storage->size()) + ", shape " +
                         runtime::shape_text(field->storage->shape()));
  return 0;
}

/// What the host has in memory for one element.
runtime::Element element_of(const FieldType& type) {
  const ElementType& e = type.element;
  return {uint32_t(e.bytes), std::vector<uint32_t>(e.offsets, e.offsets + e.count)};
}

}  // namespace

void wrong_axes(int wanted, int found, Loc loc) {
  throw Error(loc, "a field of " + std::to_string(wanted) + " axes is given " +
                       std::to_string(found) + " extents or indices");
}

void wrong_component(int found, int count, Loc loc) {
  throw Error(loc, "component " + std::to_string(found) + " of vectors of " +
                       std::to_string(count) + ", numbered from 0");
}

namespace {
FieldObject* field_of(FieldType type, std::shared_ptr<runtime::Storage> storage, Loc loc) {
  auto field = std::make_unique<FieldObject>();
  field->type = type;
  field->loc = loc;
  field->storage = std::move(storage);
  return field.release();
}

/// A view of `field`, of the same elements.
FieldObject* view_of(FieldObject* field, std::shared_ptr<runtime::Storage> storage, Loc loc) {
  FieldType type = field->type;
  type.rank = int(storage->shape().size());
  return field_of(type, std::move(storage), loc);
}

std::shared_ptr<runtime::Device> device_or_standard(DeviceObject* device, Loc loc) {
  return device ? device->device : runtime::Device::standard(loc);
}

void expect_axis(FieldObject* field, int axis, const char* what, Loc loc) {
  size_t rank = storage_of(field, loc).shape().size();
  if (axis < 0 || axis >= int(rank))
    throw Error(loc, what + ("(" + std::to_string(axis)) + ") of a field with " +
                         std::to_string(rank) + " axes, numbered from 0");
}
}  // namespace

FieldObject* make_field(DeviceObject* device, FieldType type, const int64_t* shape,
                        const Layout& layout, Loc loc) {
  return field_of(type,
                  std::make_shared<runtime::Storage>(device_or_standard(device, loc), stored(type),
                                                     std::vector<int64_t>(shape, shape + type.rank),
                                                     loc, layout, element_of(type)),
                  loc);
}

FieldObject* wrap_field(DeviceObject* device, FieldType type, void* memory, const int64_t* shape,
                        const Layout& layout, Loc loc) {
  return wrap_field(device, type, memory, shape, layout, loc, {});
}

FieldObject* wrap_field(DeviceObject* device, FieldType type, void* memory, const int64_t* shape,
                        const Layout& layout, Loc loc, std::function<void()> done) {
  return field_of(type,
                  runtime::Storage::wrap(device_or_standard(device, loc), stored(type),
                                         std::vector<int64_t>(shape, shape + type.rank), memory,
                                         loc, layout, element_of(type), std::move(done)),
                  loc);
}

void synchronize_field(FieldObject* field, Loc loc) {
  expect_no_recording("waiting for a field", loc);
  storage_of(field, loc).device().synchronize();
}
void run_field_before(FieldObject* field, void* stream, Loc loc) {
  expect_no_recording("ordering a stream", loc);
  storage_of(field, loc).device().native(loc).run_before(stream);
}

uint64_t field_address(FieldObject* field, Loc loc) {
  return storage_of(field, loc).array(loc).address;
}

FieldObject* slice_field(FieldObject* field, int axis, int64_t lo, int64_t hi, int64_t step,
                         Loc loc) {
  return view_of(field, storage_of(field, loc).slice(uint32_t(axis), lo, hi, step, loc), loc);
}

FieldObject* select_field(FieldObject* field, int axis, int64_t index, Loc loc) {
  return view_of(field, storage_of(field, loc).select(uint32_t(axis), index, loc), loc);
}

FieldObject* transposed_field(FieldObject* field, const int64_t* order, int count, Loc loc) {
  return view_of(field, storage_of(field, loc).transposed({order, size_t(count)}, loc), loc);
}

FieldObject* flipped_field(FieldObject* field, int axis, Loc loc) {
  return view_of(field, storage_of(field, loc).flipped(uint32_t(axis), loc), loc);
}

FieldObject* rebased_field(FieldObject* field, const int64_t* firsts, int count, Loc loc) {
  return view_of(field, storage_of(field, loc).rebased({firsts, size_t(count)}, loc), loc);
}

FieldObject* part_of_field(FieldObject* field, uint32_t offset, ElementType part, Loc loc) {
  const runtime::Storage& storage = storage_of(field, loc);
  const ElementType& whole = field->type.element;
  FieldType type{part, field->type.rank};
  const uint32_t* at = std::find(whole.offsets, whole.offsets + whole.count, offset);
  uint32_t from = uint32_t(at - whole.offsets);
  if (int(from) + part.count > whole.count)
    throw InternalError("a part of a field's elements that they do not have");
  return field_of(type, storage.part(from, element_of(type), loc), loc);
}

int64_t field_extent(FieldObject* field, int axis, Loc loc) {
  expect_axis(field, axis, "shape", loc);
  return field->storage->shape()[size_t(axis)];
}

int64_t field_first(FieldObject* field, int axis, Loc loc) {
  expect_axis(field, axis, "offset", loc);
  return field->storage->first(uint32_t(axis));
}

int64_t field_size(FieldObject* field, Loc loc) { return storage_of(field, loc).size(); }

void swap_fields(FieldObject* a, FieldObject* b, Loc loc) {
  host_access(a, loc).swap(host_access(b, loc), loc);
}

FieldObject* companion_of_field(FieldObject* field, const char* name, ElementType element,
                                Loc loc) {
  FieldType type = field->type;
  type.element = element;
  if (!field->storage) return recording(loc).companion(field, name, type, loc);
  return field_of(type, field->storage->companion(name, loc), loc);
}

FieldObject* snapshot_of_field(FieldObject* field, Loc loc) {
  return view_of(field, host_access(field, loc).snapshot(loc), loc);
}

void restore_field(FieldObject* field, FieldObject* snapshot, Loc loc) {
  host_access(field, loc).restore(host_access(snapshot, loc), loc);
}

void release_field(FieldObject* field, Loc loc) { host_access(field, loc).release(loc); }

void write_field(FieldObject* field, const void* from, int64_t first, int64_t count, Loc loc) {
  runtime::Storage& storage = host_access(field, loc);
  storage.write(from, first_of(field, first, count, loc), count, loc);
}

void read_field(FieldObject* field, void* to, int64_t first, int64_t count, Loc loc) {
  runtime::Storage& storage = host_access(field, loc);
  storage.read(to, first_of(field, first, count, loc), count);
}

void fill_field(FieldObject* field, const void* value, Loc loc) {
  host_access(field, loc).fill(value, loc);
}

namespace {
/// How far from the first element along each axis.
std::vector<int64_t> position_of(const runtime::Storage& storage, const int64_t* index, Loc loc) {
  const auto& shape = storage.shape();
  std::vector<int64_t> at;
  for (size_t k = 0; k < shape.size(); k++) {
    const int64_t first = storage.first(uint32_t(k));
    if (index[k] < first || index[k] - first >= shape[k]) {
      std::string text = "index " + std::to_string(index[k]) + " on axis " + std::to_string(k) +
                         " of a field of shape " + runtime::shape_text(shape);
      if (first != 0) text += ", where indices start at " + std::to_string(first);
      throw Error(loc, text);
    }
    at.push_back(index[k] - first);
  }
  return at;
}
}  // namespace

void write_element(FieldObject* field, const void* from, const int64_t* index, Loc loc) {
  runtime::Storage& storage = host_access(field, loc);
  storage.write_at(position_of(storage, index, loc), from, loc);
}

void read_element(FieldObject* field, void* to, const int64_t* index, Loc loc) {
  runtime::Storage& storage = host_access(field, loc);
  storage.read_at(position_of(storage, index, loc), to);
}

// ---- kernels

namespace {
/// A yes or no from the environment; `otherwise` where it is not set.
bool environment(const char* name, bool otherwise) {
  const char* text = std::getenv(name);
  return text && *text ? std::strcmp(text, "0") != 0 : otherwise;
}
}  // namespace

bool is_checked(Choice option, bool debugging) {
  return environment("QUERN_CHECKED", option.state < 0 ? debugging : option.state == 1);
}

void set_modes(KernelObject* kernel, const Options& options, bool checked) {
  auto chosen = [](Choice c, bool otherwise) { return c.state < 0 ? otherwise : c.state == 1; };
  ir::Modes& modes = kernel->modes;
  modes.strict = chosen(options.strict, environment("QUERN_STRICT", false));
  if (modes.strict && kernel->reassociated.line)
    throw Error(kernel->reassociated,
                "reassociate() in a strict kernel, whose sums and products keep their order; leave "
                "out the one or the other");
  modes.checked = checked;
  modes.contract = !modes.strict && chosen(options.contract, true);
}

std::vector<runtime::Argument> launch_arguments(std::span<const Argument> passed,
                                                const std::vector<Ref<FieldObject>>& captured,
                                                Loc loc) {
  std::vector<runtime::Argument> all;
  all.reserve(passed.size() + captured.size());
  for (const Argument& from : passed) {
    runtime::Argument argument;
    argument.bits = from.bits;
    if (from.field) {
      storage_of(from.field, loc);
      argument.storage = from.field->storage;
    }
    all.push_back(std::move(argument));
  }
  for (const auto& field : captured) all.push_back({0, field.get()->storage});
  for (const runtime::Argument& a : all)
    if (a.storage) a.storage->expect_alive(loc);
  return all;
}

LaunchObject* launch(runtime::Program& program, std::span<const runtime::Argument> arguments,
                     ir::Modes modes, Loc loc) {
  if (const Recording* r = active_recording())
    throw Error(loc, "a kernel is called while another kernel or function is recorded (begun at " +
                         place(r->loc) +
                         "); kernels are launched by the host; a Func can be called");
  auto outcome = program.launch(arguments, modes, loc);
  if (!outcome) return nullptr;
  auto object = std::make_unique<LaunchObject>();
  object->outcome = std::move(outcome);
  return object.release();
}

LaunchObject* launch(KernelObject* kernel, const Argument* arguments, int count, Loc loc) {
  if (!kernel) throw Error(loc, "this Kernel holds no kernel: it was moved from");
  if (count == 0) {
    for (const runtime::Argument& a : kernel->captured_arguments) a.storage->expect_alive(loc);
    return launch(*kernel->program, kernel->captured_arguments, kernel->modes, loc);
  }
  const std::vector<runtime::Argument> all =
      launch_arguments({arguments, size_t(count)}, kernel->captured, loc);
  return launch(*kernel->program, all, kernel->modes, loc);
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
  ir::Type type = type_of_scalar(scalar);
  bool to_float = ir::is_float(type);
  bool fits = to_float
                  ? !std::isfinite(v) || std::isfinite(ir::real_of(ir::bits_of_real(v, type), type))
                  : v == std::trunc(v) && v >= -0x1p63 && v < 0x1p64;
  if (!fits) refuse_argument(scalar, runtime::format_value(ir::Type::f64, ir::bits_of(v)), loc);
  if (to_float) return;
  if (v < 0)
    expect_holds(scalar, int64_t(v), loc);
  else
    expect_holds(scalar, uint64_t(v), loc);
}

uint64_t launch_result(LaunchObject* launch, int k, Loc loc) {
  expect_no_recording("reading the result of a launch", loc);
  if (!launch) throw Error(loc, "this Result holds no result: it was moved from");
  return launch->outcome->result(launch->first + size_t(k));
}

}  // namespace quern::detail

// Tensors in and out by DLPack.
#include "quern/dlpack.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>

#include "dsl/recording.h"

namespace quern::detail {

namespace {

using dlpack::Kind;
using dlpack::Managed;
using dlpack::ManagedVersioned;
using dlpack::Tensor;
using dlpack::Where;

/// Kind and bits of a scalar in a field.
struct ScalarKind {
  Kind kind;
  int bits;
  bool operator==(const ScalarKind&) const = default;
};

ScalarKind kind_of(Scalar s) {
  switch (s) {
    case Scalar::b1: return {Kind::boolean, 8};
    case Scalar::i8: return {Kind::signed_integer, 8};
    case Scalar::i16: return {Kind::signed_integer, 16};
    case Scalar::i32: return {Kind::signed_integer, 32};
    case Scalar::i64: return {Kind::signed_integer, 64};
    case Scalar::u8: return {Kind::unsigned_integer, 8};
    case Scalar::u16: return {Kind::unsigned_integer, 16};
    case Scalar::u32: return {Kind::unsigned_integer, 32};
    case Scalar::u64: return {Kind::unsigned_integer, 64};
    case Scalar::f16: return {Kind::floating, 16};
    case Scalar::f32: return {Kind::floating, 32};
    case Scalar::f64: return {Kind::floating, 64};
    case Scalar::none: break;
  }
  throw InternalError("an element without a scalar type");
}

std::string text(ScalarKind s) {
  const char* name = s.kind == Kind::signed_integer     ? "int"
                     : s.kind == Kind::unsigned_integer ? "uint"
                     : s.kind == Kind::floating         ? "float"
                     : s.kind == Kind::boolean          ? "bool"
                                                        : "DLPack's kind ";
  if (s.kind == Kind::boolean && s.bits == 8) return name;
  if (*name == 'D') return name + std::to_string(int(s.kind));
  return name + std::to_string(s.bits);
}

/// The scalar type that an element is an array of.
ScalarKind kind_of(const ElementType& e, Loc loc) {
  const ScalarKind kind = kind_of(e.scalars[0]);
  const uint32_t width = uint32_t(kind.bits) / 8;
  bool array = e.bytes == uint32_t(e.count) * width;
  for (int k = 0; k < e.count; k++)
    array &= e.scalars[k] == e.scalars[0] && e.offsets[k] == uint32_t(k) * width;
  if (!array)
    throw Error(loc,
                "a tensor has elements of one scalar type; this field's are structures of several "
                "(members can be shared: field.member(…))");
  return kind;
}

struct Place {
  Where where;
  int device;
};

Place place_of(runtime::Device& device, Loc loc) {
  const runtime::Target& target = device.target();
  if (target.host_addresses) return {Where::host, 0};
  runtime::Native* native = device.driver().native();
  if (!native)
    throw Error(loc, "device " + device.name() +
                         " shares no memory with other libraries; the CPU, CUDA and ROCm do");
  return {target.backend == "cuda" ? Where::cuda : Where::rocm, native->handles().device};
}

// ---- out

/// What a tensor keeps: the field's memory, and its own axes.
struct Exported {
  Exported() = default;
  Exported(const Exported&) = delete;
  /// The memory is used again only after what the consumer has put into its stream.
  ~Exported() {
    if (!consumer) return;
    try {
      storage->device().driver().native()->run_after(*consumer);
    } catch (const std::exception&) {  // nothing may leave; the device says so at its next use
    }
  }
  std::shared_ptr<runtime::Storage> storage;
  std::optional<void*> consumer;  ///< its stream
  std::vector<int64_t> shape, strides;
  Tensor tensor{};
  Managed managed{};
  ManagedVersioned versioned{};
};

std::unique_ptr<Exported> exported(FieldObject* field, Loc loc) {
  auto e = std::make_unique<Exported>();
  const ElementType& element = field->type.element;
  const ScalarKind kind = kind_of(element, loc);
  const int64_t width = kind.bits / 8;
  e->storage = field->storage;
  const runtime::Storage::Array array = e->storage->array(loc);
  e->shape = e->storage->shape();
  for (int64_t bytes : array.strides) e->strides.push_back(bytes / width);
  if (element.count > 1) {
    e->shape.push_back(element.count);
    e->strides.push_back(1);
  }
  const Place place = place_of(e->storage->device(), loc);
  Tensor& t = e->tensor;
  t.data = reinterpret_cast<void*>(array.address);
  t.where = place.where;
  t.device = place.device;
  t.rank = int32_t(e->shape.size());
  t.type = {kind.kind, uint8_t(kind.bits), 1};
  t.shape = e->shape.data();
  t.strides = e->strides.data();
  return e;
}

// ---- in

std::string list(const int64_t* numbers, size_t count) {
  return runtime::shape_text({numbers, count});
}

void expect_place(const Tensor& t, runtime::Device& device, Loc loc) {
  const Place place = place_of(device, loc);
  bool same = false;
  if (place.where == Where::host)
    same = t.where == Where::host || t.where == Where::cuda_pinned || t.where == Where::rocm_pinned;
  else
    same = (t.where == place.where ||
            (place.where == Where::cuda && t.where == Where::cuda_managed)) &&
           t.device == place.device;
  if (!same)
    throw Error(loc, "a tensor on DLPack's device (" + std::to_string(int(t.where)) + ", " +
                         std::to_string(t.device) + ") is no memory of device " + device.name() +
                         ", which is (" + std::to_string(int(place.where)) + ", " +
                         std::to_string(place.device) + ")");
}

/// The order of axes in which the elements follow each other without gaps.
Layout layout_of(const Tensor& t, int rank, int64_t components, Loc loc) {
  Layout layout = aos;
  if (!t.strides) return layout;
  std::vector<int> axes;  // slowest first
  for (int k = 0; k < rank; k++) axes.push_back(k);
  // Where an axis has one index, its stride says nothing.
  auto stride = [&](int k) { return t.shape[k] > 1 ? t.strides[k] : INT64_MAX; };
  std::stable_sort(axes.begin(), axes.end(), [&](int a, int b) { return stride(a) > stride(b); });
  int64_t wanted = components;
  bool dense = rank == t.rank || t.shape[rank] <= 1 || t.strides[rank] == 1;
  for (int k = rank; k-- > 0;) {
    if (t.shape[axes[size_t(k)]] > 1) dense &= t.strides[axes[size_t(k)]] == wanted;
    wanted *= t.shape[axes[size_t(k)]];
  }
  if (!dense)
    throw Error(loc, "a tensor of shape " + list(t.shape, size_t(t.rank)) + " and strides " +
                         list(t.strides, size_t(t.rank)) +
                         " has gaps between its elements; share a contiguous one");
  layout.axes.count = rank;
  for (int k = 0; k < rank; k++) layout.axes.n[k] = axes[size_t(k)];
  return layout;
}

FieldObject* imported(DeviceObject* device, FieldType type, const Tensor& t,
                      std::function<void()> done, Loc loc) {
  expect_place(t, *device->device, loc);
  const ScalarKind wanted = kind_of(type.element, loc);
  const ScalarKind found{t.type.kind, t.type.bits};
  if (!(found == wanted) || t.type.lanes != 1)
    throw Error(loc, "a tensor of " + text(found) +
                         (t.type.lanes == 1 ? "" : " × " + std::to_string(t.type.lanes)) +
                         " is no field of " + text(wanted));
  const int components = type.element.count;
  const int rank = type.rank + (components > 1 ? 1 : 0);
  if (t.rank != rank || (components > 1 && t.shape[rank - 1] != components))
    throw Error(loc,
                "a tensor of shape " + list(t.shape, size_t(t.rank)) + " is no field of " +
                    std::to_string(type.rank) + " axes" +
                    (components > 1 ? " with " + std::to_string(components) + " components" : ""));
  std::vector<int64_t> shape(t.shape, t.shape + type.rank);
  if (std::ranges::count(shape, 0)) {  // there may be no memory at all
    FieldObject* empty = make_field(device, type, shape.data(), aos, loc);
    done();
    return empty;
  }
  const Layout layout = layout_of(t, type.rank, components, loc);
  return wrap_field(device, type, static_cast<std::byte*>(t.data) + t.byte_offset, shape.data(),
                    layout, loc, std::move(done));
}

template <class M>
std::function<void()> deleter_of(M* tensor) {
  return [tensor] {
    if (tensor->deleter) tensor->deleter(tensor);
  };
}

}  // namespace

Managed* export_tensor(FieldObject* field, void* const* consumer, Loc loc) {
  Exported* e = exported(field, loc).release();
  if (consumer) e->consumer = *consumer;
  e->managed = {e->tensor, e, [](Managed* m) { delete static_cast<Exported*>(m->manager); }};
  return &e->managed;
}

ManagedVersioned* export_versioned_tensor(FieldObject* field, Loc loc) {
  Exported* e = exported(field, loc).release();
  auto deleter = [](ManagedVersioned* m) { delete static_cast<Exported*>(m->manager); };
  e->versioned = {1, 0, e, deleter, 0, e->tensor};
  return &e->versioned;
}

FieldObject* import_tensor(DeviceObject* device, FieldType type, Managed* tensor, Loc loc) {
  return imported(device, type, tensor->tensor, deleter_of(tensor), loc);
}

FieldObject* import_tensor(DeviceObject* device, FieldType type, ManagedVersioned* tensor,
                           Loc loc) {
  if (tensor->major != 1)
    throw Error(loc, "a tensor of DLPack " + std::to_string(tensor->major) + "." +
                         std::to_string(tensor->minor) + "; versions 1.x are known");
  if (tensor->flags & ManagedVersioned::read_only)
    throw Error(loc, "a read-only tensor is shared; fields are written");
  return imported(device, type, tensor->tensor, deleter_of(tensor), loc);
}

}  // namespace quern::detail

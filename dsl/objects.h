#pragma once
// What the handles of the language point to.
#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "quern/fields/objects.h"
#include "quern/runtime/program.h"

namespace quern::detail {

template <class T>
struct Counted {
  std::atomic<int> references{1};
};

template <class T>
void add_reference(T* object) {
  object->references.fetch_add(1, std::memory_order_relaxed);
}
template <class T>
void drop_reference(T* object) {
  if (object->references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete object;
}

struct DeviceObject : Counted<DeviceObject> {
  std::shared_ptr<runtime::Device> device;
};

/// Storage, or the field parameter of a recording.
struct FieldObject : Counted<FieldObject> {
  FieldType type;
  Loc loc;
  std::shared_ptr<runtime::Storage> storage;  ///< null: a parameter
  uint32_t recording = 0, binding = 0;        ///< of a parameter
};

struct KernelObject : Counted<KernelObject> {
  std::unique_ptr<runtime::Program> program;
  ir::Modes modes;
  Loc reassociated;                        ///< where reassociate() was written, if anywhere
  std::vector<Ref<FieldObject>> captured;  ///< bindings after the parameters
  std::vector<runtime::Argument> captured_arguments;  ///< these, as each launch passes them
};

struct StreamObject : Counted<StreamObject> {
  std::shared_ptr<runtime::Stream> stream;
};

struct LaunchObject : Counted<LaunchObject> {
  std::shared_ptr<runtime::Outcome> outcome;
  size_t first = 0;  ///< of its results
};

/// A recorded function: the body of `kernel`, in terms of its own bindings, sites and callees.
struct FuncObject : Counted<FuncObject> {
  std::unique_ptr<ir::Kernel> kernel;
  Loc loc, reassociated;
  std::vector<Ref<FieldObject>> captured;  ///< its bindings
  std::vector<Ref<FuncObject>> callees;   ///< in the order of kernel->callees; none: of the library
  Ref<FuncObject> pushforward, pullback;  ///< its derivative, where that is its own
  bool has_rule() const { return pushforward || pullback; }
};

struct Argument;

/// What a launch passes: what the host gave for the parameters, then the captured fields. Throws Error
/// where one of them was released: what is asked of them next reads their addresses.
std::vector<runtime::Argument> launch_arguments(std::span<const Argument> passed,
                                                const std::vector<Ref<FieldObject>>& captured,
                                                Loc loc);
/// Null where the program has no results. Throws Error while a kernel is recorded.
LaunchObject* launch(runtime::Program& program, std::span<const runtime::Argument> arguments,
                     ir::Modes modes, Loc loc);

/// Calls `done` when the memory is used no more.
FieldObject* wrap_field(DeviceObject* device, FieldType type, void* memory, const int64_t* shape,
                        const Layout& layout, Loc loc, std::function<void()> done);

}  // namespace quern::detail

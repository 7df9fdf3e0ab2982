#pragma once
#include "quern/fields/objects.h"

namespace quern {

/// A device of this machine: "cpu", "interpreter", "vulkan", "vulkan:1" …. Copies name the same
/// one.
class Device {
 public:
  /// The one named by the environment's QUERN_DEVICE, else the best present.
  Device(Loc l = Loc::here()) : object_(detail::open_device(nullptr, l)) {}
  /// Throws Error saying which devices are present.
  explicit Device(const char* name, Loc l = Loc::here()) : object_(detail::open_device(name, l)) {}
  static Device best() { return Device(detail::Ref<detail::DeviceObject>(detail::best_device())); }

  explicit Device(detail::Ref<detail::DeviceObject> object) : object_(std::move(object)) {}
  Device(const Device&) = default;
  Device& operator=(const Device&) = default;

  const char* name() const { return detail::device_name(object_.get()); }
  /// Waits for everything launched; throws the first failed check.
  void synchronize(Loc l = Loc::here()) const { detail::synchronize(object_.get(), l); }
  /// Begins the sequence of random numbers that `value` stands for: the same seed, the same
  /// launches behind it, the same random<T>().
  void seed(uint32_t value, Loc l = Loc::here()) const {
    detail::set_seed(object_.get(), value, l);
  }
  /// A launch that runs longer than so many seconds ends with an error at the next host wait, which
  /// names the loop that ran; 0: none does. The environment's QUERN_TIME_LIMIT sets it for every
  /// device. It counts for launches from now on; one that runs is waited for. Throws Error on a GPU,
  /// whose launches only its driver can end.
  void time_limit(double seconds, Loc l = Loc::here()) const {
    detail::set_time_limit(object_.get(), seconds, l);
  }
  /// Ends the launch that runs, or else the next one, in the same way. Another thread may call it, or
  /// (on a device whose launches can be ended) a signal handler. Throws Error on a GPU.
  void interrupt(Loc l = Loc::here()) const { detail::interrupt(object_.get(), l); }

  detail::DeviceObject* object() const { return object_.get(); }

 private:
  detail::Ref<detail::DeviceObject> object_;
};

}  // namespace quern

#pragma once
#include "quern/fields/device.h"

namespace quern {

/// Launches that run beside those of other streams. A stream is behind another one's launches where
/// both use a field's memory and one of them writes it, and nowhere else; fields see to that by
/// themselves. A failed check ends what comes later in its own stream. Copies name the same one.
///
///   quern::Stream copies(device);
///   {
///     auto here = copies.use();  // from here on this thread works in `copies`
///     smooth(x);                 // a kernel
///     quern::sort(keys);         // an algorithm, with the kernels and temporary fields that it takes
///     y.fill(0.0f);
///   }
///   auto seen = quern::to_vector(x);  // waits for copies
///
/// A scope is the one way to choose a stream: it serves kernels, algorithms, fills, copies and new
/// fields alike, and functions of the user's that do any of these and know nothing of streams.
class Stream {
 public:
  /// A new one. Its launches may still run when its last copy goes: who reads the fields that they
  /// write waits for them, as Device::synchronize does.
  explicit Stream(const Device& device = Device(), Loc l = Loc::here())
      : object_(detail::make_stream(device.object(), l)) {}

  /// While it lives, what the thread that made it launches on the stream's device goes into the
  /// stream; on other devices nothing changes. The last one made counts. It ends on the same thread.
  class Use {
   public:
    explicit Use(const Stream& stream, Loc l = Loc::here())
        : use_(detail::begin_use(stream.object_.get(), l)) {}
    ~Use() { detail::end_use(use_); }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    detail::StreamUse* use_;
  };
  [[nodiscard]] Use use(Loc l = Loc::here()) const { return Use(*this, l); }

  /// Waits for everything launched in it; throws the first failed check of it and of the streams
  /// that it has waited for.
  void synchronize(Loc l = Loc::here()) const { detail::synchronize(object_.get(), l); }

 private:
  detail::Ref<detail::StreamObject> object_;
};

}  // namespace quern

// Quern beside code of the vendor's: its memory, streams and kernels, and tensors of other
// libraries.
#include <quern/dlpack.h>

#include <numeric>
#include <optional>

#include "backends/gpu/api.h"
#include "tests/message_of.h"
#include "tests/paths/support.h"

namespace qn = quern;
namespace gpu = quern::gpu;
using namespace qn::lang;
using gpu::Address, gpu::EventHandle, gpu::FunctionHandle, gpu::GraphExecHandle, gpu::GraphHandle,
    gpu::ModuleHandle, gpu::StreamHandle;
using qn::test::message_of;
using qn::test::Path;

namespace {

/// The vendor's functions, as a program of the vendor's calls them.
struct Vendor {
  explicit Vendor(const Path& path)
#define QUERN_BIND(name, cuda, hip, parameters) \
  name = path.function<gpu::Code parameters>(#cuda, #hip);
      {QUERN_GPU_FUNCTIONS(QUERN_BIND)}
#undef QUERN_BIND
#define QUERN_DECLARE(name, cuda, hip, parameters) gpu::Code(*name) parameters = nullptr;
  QUERN_GPU_FUNCTIONS(QUERN_DECLARE)
#undef QUERN_DECLARE
};

/// A stream of the vendor's.
struct Stream {
  explicit Stream(const Vendor& v) : vendor(v) { REQUIRE(vendor.stream_create(&handle, 1) == 0); }
  ~Stream() {
    vendor.stream_synchronize(handle);
    vendor.stream_destroy(handle);
  }
  const Vendor& vendor;
  gpu::StreamHandle handle = nullptr;
};

/// Memory of the vendor's.
struct Memory {
  Memory(const Vendor& v, size_t bytes) : vendor(v) {
    REQUIRE(vendor.allocate(&address, bytes) == 0);
  }
  ~Memory() { vendor.free(address); }
  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(address);
  }
  const Vendor& vendor;
  gpu::Address address = 0;
};

#define BOTH GENERATE(as<std::string>(), "cuda", "rocm")

}  // namespace

TEST_CASE("the vendor's memory is a field, in place, and stays the vendor's") {
  Path path(BOTH);
  Vendor vendor(path);
  const int n = 1000;
  Memory memory(vendor, n * sizeof(float));
  const int living = path.log.live["allocations"];
  std::vector<float> numbers(n), back(n);
  std::iota(numbers.begin(), numbers.end(), 0.0f);
  {
    auto x = qn::Field<float>::wrap(path.device, memory.as<float>(), {n});
    CHECK(qn::interop::address(x) == memory.as<float>());
    CHECK(qn::interop::address(x.slice(0, 10, 20, 1)) == memory.as<float>() + 10);
    x.copy_from(numbers);
    path.device.synchronize();
    CHECK(std::equal(numbers.begin(), numbers.end(), memory.as<float>()));
    // The same memory twice, and part of it.
    auto again = qn::Field<float>::wrap(path.device, memory.as<float>() + 500, {500});
    again.copy_to(back.data(), 500);
    CHECK(back[0] == 500.0f);
    again.release();
    x.copy_to(back);
    CHECK(back == numbers);
  }
  CHECK(path.log.live["allocations"] == living);
}

TEST_CASE("pointers that are not the device's are refused where they are wrapped") {
  Path path(BOTH);
  std::vector<float> host(10);
  std::string message = message_of([&] { qn::Field<float>::wrap(path.device, host.data(), {10}); });
  CHECK_THAT(message, contains("interop.cpp"));
  CHECK_THAT(message, contains("the pointer wrapped leads to no memory that " +
                               std::string(path.is_cuda ? "CUDA" : "HIP") + " knows"));
  Vendor vendor(path);
  void* pinned = nullptr;
  REQUIRE(vendor.host_allocate(&pinned, 64, 0) == 0);
  CHECK_THAT(
      message_of([&] { qn::Field<float>::wrap(path.device, static_cast<float*>(pinned), {10}); }),
      contains("leads to the host's memory"));
  vendor.host_free(pinned);
}

TEST_CASE("a kernel written by hand runs between Quern's in one stream") {
  Path path(BOTH);
  Vendor vendor(path);
  Stream stream(vendor);
  qn::Device device = qn::interop::on_stream(path.device.name(), stream.handle);
  const qn::interop::Handles handles = qn::interop::handles(device);
  CHECK(handles.stream == stream.handle);
  CHECK(handles.device == 0);
  CHECK(qn::interop::handles(path.device).stream != stream.handle);

  qn::Field<uint32_t> x{device, {100}};
  x.fill(41);
  // Any kernel of the stand-in's adds 1 to the word at its first argument.
  qn::Kernel none = [&] {
    for (auto i : x) x[i] = x[i];
  };
  none();
  device.synchronize();
  REQUIRE(path.log.launches.size() == 1);
  gpu::ModuleHandle module = nullptr;
  gpu::FunctionHandle function = nullptr;
  const std::string text = path.log.launches[0].module + '\0';
  std::string log(256, '\0');
  int options[] = {5, 6};  // where its log goes, and how much
  void* values[] = {log.data(), reinterpret_cast<void*>(log.size())};
  if (path.is_cuda)
    REQUIRE(path.function<int(gpu::ModuleHandle*, const void*, unsigned, int*, void**)>(
                "cuModuleLoadDataEx", "")(&module, text.data(), 2, options, values) == 0);
  else
    REQUIRE(path.function<int(gpu::ModuleHandle*, const void*)>("", "hipModuleLoadData")(
                &module, text.data()) == 0);
  REQUIRE(vendor.module_function(&function, module, "task_0") == 0);
  uint64_t words[5] = {reinterpret_cast<uint64_t>(qn::interop::address(x)), 0, 1, 1, 1};
  void* parameters[] = {&words[0], &words[1], &words[2], &words[3], &words[4]};
  x.fill(7);
  REQUIRE(vendor.launch(function, 1, 1, 1, 1, 1, 1, 0, stream.handle, parameters, nullptr) == 0);
  CHECK(x.at(0) == 8);  // read in the same stream, with no wait asked for
  CHECK(path.log.launches.back().words[0] == words[0]);
  device.synchronize();
  vendor.module_unload(module);
}

TEST_CASE("a device works in a context of the caller's, which stays the caller's") {
  Path path("cuda");  // HIP has no contexts
  Vendor vendor(path);
  Stream stream(vendor);
  void* context = qn::interop::handles(path.device).context;
  REQUIRE(context != nullptr);
  const int retained = path.log.calls["retain"], released = path.log.calls["release"];
  {
    qn::Device device = qn::interop::on_stream(path.device.name(), stream.handle, context);
    CHECK(qn::interop::handles(device).context == context);
    qn::Field<int> x{device, {10}};
    x.fill(3);
    CHECK(x.at(9) == 3);
  }
  CHECK(path.log.calls["retain"] == retained);
  CHECK(path.log.calls["release"] == released);
}

TEST_CASE("memory of another context is refused, though the device is the same") {
  Path path("cuda");
  Vendor vendor(path);
  Stream stream(vendor);
  void* other = reinterpret_cast<void*>(uintptr_t(0x101));
  REQUIRE(path.function<int(void*)>("cuCtxPushCurrent_v2", "")(other) == 0);
  std::optional<Memory> memory(std::in_place, vendor, 40);
  REQUIRE(path.function<int(void**)>("cuCtxPopCurrent_v2", "")(nullptr) == 0);
  CHECK_THAT(message_of([&] { qn::Field<float>::wrap(path.device, memory->as<float>(), {10}); }),
             contains("leads to memory of another context"));
  qn::Device device = qn::interop::on_stream(path.device.name(), stream.handle, other);
  auto x = qn::Field<float>::wrap(device, memory->as<float>(), {10});
  x.fill(2);
  CHECK(x.at(9) == 2);
  x.release();
  device.synchronize();
}

TEST_CASE("a stream of the caller's is never captured") {
  Path path(BOTH);
  Vendor vendor(path);
  Stream stream(vendor);
  qn::Device joined = qn::interop::on_stream(path.device.name(), stream.handle);
  for (const qn::Device& device : {path.device, joined}) {
    qn::Field<int> x{device, {100}};
    qn::Kernel long_batch = [](qn::Field<int> f) {
      for (int n = 0; n < 10; n++)
        for (auto i : f) f[i] = n;
    };
    const int before = path.log.calls["capture_begin"];
    for (int round = 0; round < 4; round++) long_batch(x);
    device.synchronize();
    const bool own = qn::interop::handles(device).stream != stream.handle;
    CHECK((path.log.calls["capture_begin"] > before) == own);
  }
}

TEST_CASE("the taker's work in its stream comes before what reuses a tensor's memory") {
  Path path(BOTH);
  Vendor vendor(path);
  Stream stream(vendor);
  qn::dlpack::Managed* tensor = nullptr;
  {
    qn::Field<int> x{path.device, {16}};
    x.fill(7);
    tensor = qn::to_dlpack(x, stream.handle);
  }
  int received[16] = {};
  REQUIRE(vendor.download(received, reinterpret_cast<gpu::Address>(tensor->tensor.data),
                          sizeof received, stream.handle) == 0);
  const int waits = path.log.calls["stream_wait_event"];
  tensor->deleter(tensor);
  CHECK(path.log.calls["stream_wait_event"] == waits + 1);
  qn::Field<int> again{path.device, {16}};
  again.fill(9);
  path.device.synchronize();
  REQUIRE(vendor.stream_synchronize(stream.handle) == 0);
  CHECK(received[15] == 7);
}

TEST_CASE("streams wait for each other where they are told to") {
  Path path(BOTH);
  Vendor vendor(path);
  Stream stream(vendor);
  qn::Field<int> x{path.device, {4}};
  const auto address = reinterpret_cast<gpu::Address>(qn::interop::address(x));
  path.device.synchronize();

  const int sent[4] = {1, 2, 3, 4};
  REQUIRE(vendor.upload(address, sent, sizeof sent, stream.handle) == 0);
  qn::interop::run_after(path.device, stream.handle);
  CHECK(x.at(3) == 4);

  x.fill(9);
  int received[4] = {};
  qn::interop::run_before(path.device, stream.handle);
  REQUIRE(vendor.download(received, address, sizeof received, stream.handle) == 0);
  REQUIRE(vendor.stream_synchronize(stream.handle) == 0);
  CHECK(received[0] == 9);
  CHECK(received[3] == 9);
}

TEST_CASE("tensors on a GPU come and go without a copy") {
  Path path(BOTH);
  qn::Field<float, 2> x{path.device, {3, 5}};
  x.fill(2.5f);
  qn::dlpack::Managed* tensor = qn::to_dlpack(x);
  CHECK(int(tensor->tensor.where) == (path.is_cuda ? 2 : 10));
  CHECK(tensor->tensor.data == qn::interop::address(x));
  {
    auto y = qn::from_dlpack<float, 2>(path.device, tensor);
    CHECK(qn::interop::address(y) == qn::interop::address(x));
    y.fill(4);
    CHECK(x.at(2, 4) == 4);
  }
  qn::dlpack::Managed* other = qn::to_dlpack(x);
  CHECK_THAT(message_of([&] { qn::from_dlpack<float, 2>(qn::Device("cpu"), other); }),
             contains("is no memory of device cpu"));
  other->deleter(other);
}

TEST_CASE("devices without a vendor's streams say so") {
  CHECK_THAT(message_of([] { qn::interop::handles(qn::Device("cpu")); }),
             contains("device cpu has no streams"));
  CHECK_THAT(message_of([] { qn::interop::on_stream("cpu", nullptr); }),
             contains("device 'cpu' has no streams"));
  CHECK_THAT(message_of([] { qn::interop::on_stream("cuda:9", nullptr); }),
             contains("'cuda:9' is not present"));
}

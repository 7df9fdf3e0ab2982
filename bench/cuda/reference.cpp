// CUDA's driver, found at run time, launches what nvcc has compiled to PTX.
#include "bench/cuda/reference.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "backends/cuda/api.h"

// The text, and a 0 behind it.
asm(R"(
  .pushsection .rodata
  .global quern_bench_ptx, quern_bench_ptx_end
quern_bench_ptx:
  .incbin ")" QUERN_BENCH_PTX R"("
  .byte 0
quern_bench_ptx_end:
  .popsection
)");
extern "C" const char quern_bench_ptx[], quern_bench_ptx_end[];

namespace bench::cuda {

namespace {

using quern::gpu::Address;
using quern::gpu::Current;
using quern::gpu::FunctionHandle;
using quern::gpu::Gpu;
using quern::gpu::StreamHandle;

Address at(const void* p) { return reinterpret_cast<Address>(p); }
unsigned blocks_for(size_t n) { return unsigned((n + block - 1) / block); }

using Dim = std::array<unsigned, 3>;

/// The device in use, its module and what results go through.
class Session {
 public:
  explicit Session(int index) : Session(open(index)) {
    const Current current(*gpu_);
    std::string log;
    const std::span text(quern_bench_ptx, quern_bench_ptx_end);
    const quern::gpu::Code loaded = api().load_module(&module_, std::as_bytes(text), log);
    expect(loaded, ("loading PTX " + log).c_str());
    expect(api().allocate(&result_, sizeof(float)), "allocating");
    expect(api().stream_create(&stream_, quern::gpu::flag::stream_non_blocking), "making a stream");
  }

  ~Session() {
    const Current current(*gpu_);
    if (stream_) api().stream_destroy(stream_);
    if (result_) api().free(result_);
    if (module_) api().module_unload(module_);
  }
  Session(const Session&) = delete;

  void expect(quern::gpu::Code c, const char* what) const { gpu_->expect(c, what); }
  const Gpu& gpu() const { return *gpu_; }
  const quern::gpu::Api& api() const { return *gpu_->api; }
  float* result() const { return reinterpret_cast<float*>(result_); }
  unsigned multiprocessors() const { return gpu_->properties.multiprocessors; }

  /// Without a stream the session's own is meant.
  StreamHandle in(Stream s) const { return s ? reinterpret_cast<StreamHandle>(s) : stream_; }

  template <class... Parameters>
  void launch(const char* kernel, Dim grid, Dim threads, Stream s, Parameters... parameters) {
    const Current current(*gpu_);
    void* all[] = {&parameters...};
    expect(api().launch(function(kernel), grid[0], grid[1], grid[2], threads[0], threads[1],
                        threads[2], 0, in(s), all, nullptr),
           kernel);
  }

 private:
  /// Where the rest throws, what there is by then goes through the destructor.
  explicit Session(std::unique_ptr<Gpu> gpu) : gpu_(std::move(gpu)) {}

  static std::unique_ptr<Gpu> open(int index) {
    std::string why;
    auto api = quern::cuda::api(why);
    if (!api) throw quern::Error("hand-written CUDA: " + why);
    auto all = quern::gpu::describe_all(*api, why);
    if (size_t(index) >= all.size())
      throw quern::Error("hand-written CUDA: there is no device " + std::to_string(index) +
                         (why.empty() ? "" : ": " + why));
    return std::make_unique<Gpu>(api, all[size_t(index)]);
  }

  FunctionHandle function(const char* name) {
    FunctionHandle& known = functions_[name];
    if (!known) expect(api().module_function(&known, module_, name), name);
    return known;
  }

  std::unique_ptr<Gpu> gpu_;
  quern::gpu::ModuleHandle module_ = nullptr;
  StreamHandle stream_ = nullptr;
  Address result_ = 0;
  std::map<std::string, FunctionHandle> functions_;
};

std::unique_ptr<Session>& held() {
  static auto& s = *new std::unique_ptr<Session>;
  return s;
}
Session& session() {
  if (!held()) held() = std::make_unique<Session>(0);
  return *held();
}

StreamHandle in(Stream s) { return session().in(s); }

/// A call of the driver's API with the device current.
template <class F>
void call(const char* what, F f) {
  const Session& s = session();
  const Current current(s.gpu());
  s.expect(f(s.api()), what);
}

template <class... Parameters>
void launch(const char* kernel, size_t threads, Stream s, Parameters... parameters) {
  session().launch(kernel, {blocks_for(threads), 1, 1}, {block, 1, 1}, s, parameters...);
}

void wait(Stream stream) {
  call("waiting", [&](auto& api) { return api.stream_synchronize(in(stream)); });
}
void clear(float* memory, size_t n, Stream stream) {
  call("clearing", [&](auto& api) { return api.fill(at(memory), 0, n, in(stream)); });
}
void* allocate(size_t bytes) {
  Address address = 0;
  call("allocating", [&](auto& api) { return api.allocate(&address, bytes); });
  return reinterpret_cast<void*>(address);
}
void download(void* to, const void* from, size_t bytes, Stream stream) {
  call("downloading", [&](auto& api) { return api.download(to, at(from), bytes, in(stream)); });
  wait(stream);
}

float sum(const float* x, size_t n, Stream stream) {
  Session& s = session();
  clear(s.result(), 1, stream);
  const unsigned grid = std::min(std::max(1u, blocks_for(n / 4)), s.multiprocessors() * 8);
  s.launch("sum_kernel", {grid, 1, 1}, {block, 1, 1}, stream, x, n, s.result());
  float total = 0;
  download(&total, s.result(), sizeof total, stream);
  return total;
}

void mpm3d_substep(const Mpm3d& m, Stream stream) {
  const size_t nodes = size_t(m.n_grid) * size_t(m.n_grid) * size_t(m.n_grid);
  clear(m.nodes, nodes * 4, stream);
  launch("to_grid_kernel", size_t(m.particles), stream, m);
  launch("grid_kernel", nodes, stream, m);
  launch("to_particles_kernel", size_t(m.particles), stream, m);
}

double multiply_adds(int rounds, Stream stream) {
  Session& s = session();
  const unsigned blocks = s.multiprocessors() * 8;
  s.launch("multiply_adds_kernel", {blocks, 1, 1}, {block, 1, 1}, stream, rounds, s.result());
  return 2.0 * chains * rounds * blocks * block;
}

const Functions table = {
    .use_device = [](int index) { held() = std::make_unique<Session>(index); },
    .close = [] { held().reset(); },
    .wait = wait,
    .allocate = allocate,
    .release = [](void* p) { call("freeing", [&](auto& api) { return api.free(at(p)); }); },
    .upload =
        [](void* to, const void* from, size_t bytes) {
          call("uploading",
               [&](auto& api) { return api.upload(at(to), from, bytes, in(nullptr)); });
          wait(nullptr);
        },
    .download = [](void* to, const void* from,
                   size_t bytes) { download(to, from, bytes, nullptr); },
    .nothing =
        [](Stream s) {
          const uint64_t v = 1;
          launch("nothing_kernel", 1, s, v, v, v, v, v);
        },
    .memcpy =
        [](float* to, const float* from, size_t n, Stream s) {
          call("copying", [&](auto& api) { return api.copy(at(to), at(from), 4 * n, in(s)); });
        },
    .fill = [](float* y, float v, size_t n, Stream s) { launch("fill_kernel", n, s, y, v, n); },
    .copy = [](const float* x, float* y, size_t n,
               Stream s) { launch("copy_kernel", n, s, x, y, n); },
    .saxpy = [](float a, const float* x, float* y, size_t n,
                Stream s) { launch("saxpy_kernel", n, s, a, x, y, n); },
    .triad = [](float* a, const float* b, const float* c, float scale, size_t n,
                Stream s) { launch("triad_kernel", n, s, a, b, c, scale, n); },
    .sum = sum,
    .stencil =
        [](const float* u, float* v, int n, Stream s) {
          const auto across = unsigned(n);
          session().launch("stencil_kernel", {(across + 29) / 32, (across + 5) / 8, 1}, {32, 8, 1},
                           s, u, v, n);
        },
    .nbody = [](const float* x, const float* y, const float* z, float* vx, float* vy, float* vz,
                float dt, int n,
                Stream s) { launch("nbody_kernel", size_t(n), s, x, y, z, vx, vy, vz, dt, n); },
    .mpm3d_substep = mpm3d_substep,
    .multiply_adds = multiply_adds,
};

}  // namespace

const Functions* functions() { return &table; }

}  // namespace bench::cuda

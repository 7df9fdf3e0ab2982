#include "tests/gpu/support.h"

#include <dlfcn.h>

#include "backends/cuda/api.h"
#include "backends/rocm/api.h"

namespace quern::test {

namespace {

recording::Recorder& fresh_recorder(const Vendor& vendor) {
  void* library = dlopen(vendor.library, RTLD_NOW | RTLD_LOCAL);
  if (!library) throw std::runtime_error(dlerror());
  return *reinterpret_cast<recording::Access*>(dlsym(library, "quern_recording"))(true);
}

class Namer : public runtime::Compiler {
 public:
  std::string listing(const ir::Kernel&, const runtime::Target&, std::string_view) const override {
    return {};
  }

 protected:
  std::vector<std::byte> code(const ir::Kernel& kernel, const runtime::Target&) const override {
    std::string text = "module of " + kernel.name;
    for (size_t k = 0; k < kernel.tasks.size(); k++) text += " " + runtime::task_symbol(k);
    auto bytes = std::as_bytes(std::span(text.c_str(), text.size() + 1));
    return {bytes.begin(), bytes.end()};
  }
};

}  // namespace

const std::vector<Vendor>& vendors() {
  static const std::vector<Vendor> all = {
      {"CUDA", QUERN_RECORDING_CUDA, "QUERN_CUDA_LIBRARY",
       [](const std::string& name, std::string& why) { return cuda::load_api(name, why); },
       [](const gpu::Properties& p) { return cuda::target_of(p, 12040); }, cuda::devices,
       cuda::open},
      {"HIP", QUERN_RECORDING_HIP, "QUERN_HIP_LIBRARY",
       [](const std::string& name, std::string& why) { return rocm::load_api({name}, why); },
       rocm::target_of, rocm::devices, rocm::open}};
  return all;
}

OnEachVendor::OnEachVendor()
    : vendor(GENERATE(from_range(vendors().begin(), vendors().end()))),
      recorder(fresh_recorder(vendor)) {}

OnEachVendor::~OnEachVendor() {
  for (const auto& [what, count] : recorder.live) {
    INFO(vendor.name << ": " << what);
    CHECK(count == 0);
  }
  for (const std::string& what : recorder.misuse) FAIL_CHECK(vendor.name << ": " << what);
}

const std::shared_ptr<const gpu::Api>& OnEachVendor::api() {
  std::string why;
  if (!api_) api_ = vendor.load(vendor.library, why);
  if (!api_) throw std::runtime_error(why);
  return api_;
}

std::unique_ptr<gpu::Driver> OnEachVendor::open(size_t device, bool by_value) {
  std::string why;
  gpu::Properties p = gpu::describe_all(*api(), why).at(device);
  runtime::Target target = vendor.target(p);
  if (!by_value) target.traits.value_bytes = 0;
  return std::make_unique<gpu::Driver>(api(), p, target);
}

Code::Code(std::initializer_list<ir::Task> tasks, const std::string& name) {
  kernel.name = name;
  kernel.tasks = tasks;
}

runtime::Image Code::on(const runtime::Driver& driver) const {
  return Namer().compile(kernel, driver.target());
}

namespace {
ir::Task task(ir::Task::Kind kind, ir::Task::Walk walk, uint32_t block_size = 0) {
  ir::Task t;
  t.kind = kind;
  t.walk = walk;
  t.options.block = uint16_t(block_size);
  t.loc = {"loop.cpp", 7};
  return t;
}
}  // namespace

runtime::Launch launch(const runtime::Executable& executable, uint32_t task,
                       const runtime::Work& work, runtime::Address args) {
  return {.executable = &executable, .task = task, .work = work, .args = args};
}
ir::Task serial() { return task(ir::Task::serial, ir::Task::chunked); }
ir::Task element(uint32_t block_size) {
  return task(ir::Task::range, ir::Task::element, block_size);
}
ir::Task once(uint32_t block_size) {
  ir::Task t = element(block_size);
  t.once = true;
  return t;
}
ir::Task chunked() { return task(ir::Task::range, ir::Task::chunked); }

std::vector<std::byte> numbers(size_t bytes) {
  std::vector<std::byte> v(bytes);
  for (size_t k = 0; k < bytes; k++) v[k] = std::byte(k * 131 + k / 251 + k / 65537);
  return v;
}

std::vector<std::byte> read(runtime::Driver& driver, runtime::Address from, size_t bytes) {
  std::vector<std::byte> v(bytes);
  driver.download(v, from);
  return v;
}

uint32_t read_word(runtime::Driver& driver, runtime::Address from) {
  uint32_t word = 0;
  driver.download(std::as_writable_bytes(std::span(&word, 1)), from);
  return word;
}

}  // namespace quern::test

#include "backends/gpu/gpu.h"

#include <map>

namespace quern::gpu {

namespace {

int attribute(const Api& api, int number, int device) {
  int value = 0;
  expect(api, api.device_attribute(&value, number, device), "asking for a device's attribute");
  return value;
}

bool has_pools(const Api& api, int device) {
  int value = 0;  // an old library does not know the attribute
  return api.pool_free && api.pool_create && api.pool_allocate && api.pool_set && api.pool_trim &&
         api.pool_access && api.pool_destroy &&
         api.device_attribute(&value, api.attributes.pools, device) == code::success && value != 0;
}

Properties describe(const Api& api, int device) {
  Properties p;
  p.index = device;
  char name[256] = {};
  expect(api, api.device_name(name, sizeof name - 1, device), "asking for a device's name");
  p.name = name;
  expect(api, api.architecture(p.architecture, device), "asking for a device's architecture");
  size_t bytes = 0;
  expect(api, api.device_memory(&bytes, device), "asking for a device's memory");
  p.memory = bytes;
  auto number = [&](int a) { return attribute(api, a, device); };
  p.multiprocessors = uint32_t(number(api.attributes.multiprocessors));
  p.warp_size = uint32_t(number(api.attributes.warp_size));
  p.max_threads = uint32_t(number(api.attributes.max_threads));
  p.max_grid = uint64_t(number(api.attributes.max_grid_x));
  p.shared_bytes = uint32_t(number(api.attributes.shared_bytes));
  p.pools = has_pools(api, device);
  return p;
}

}  // namespace

std::vector<Properties> describe_all(const Api& api, std::string& why) {
  int count = 0;
  Code c = api.device_count(&count);
  if (c != code::success && c != code::no_device) fail(api, c, "counting devices");
  std::vector<Properties> all;
  std::map<std::string, int> names;
  for (int device = 0; device < count; device++) {
    Properties p = describe(api, device);
    int number = ++names[p.name];
    if (number > 1) p.name += " (" + std::to_string(number) + ")";
    all.push_back(std::move(p));
  }
  if (all.empty()) why = "no " + api.vendor + " device is present";
  return all;
}

Gpu::Gpu(std::shared_ptr<const Api> of, Properties p, Context foreign)
    : api(std::move(of)), properties(std::move(p)), context(foreign), retained_(!foreign) {
  if (retained_) expect(api->retain(&context, properties.index), "opening a device");
}

Gpu::~Gpu() {
  if (retained_) api->release(properties.index);
}

Event::Event(std::shared_ptr<Gpu> gpu) : gpu_(std::move(gpu)) {
  gpu_->expect(gpu_->api->event_create(&handle, flag::event_without_timing), "making an event");
}

Event::~Event() {
  Current current(*gpu_);
  gpu_->api->event_destroy(handle);
}

bool Event::done() const {
  Code c = gpu_->api->event_query(handle);
  if (c == code::not_ready) return false;
  gpu_->expect(c, "asking how far the device is");
  return true;
}

}  // namespace quern::gpu

#include "tests/vulkan/support.h"

#include <cmath>
#include <cstdlib>
#include <limits>
#include <random>

namespace quern::test {

using ir::Bits;
using ir::Type;

std::shared_ptr<vulkan::Instance> instance() {
  static const auto& made = *new std::shared_ptr<vulkan::Instance>([] {
    std::string why;
    for (const char* validation : {"1", "0"}) {
      setenv("QUERN_VULKAN_VALIDATION", validation, 1);
      if (auto i = vulkan::Instance::create("libvulkan.so.1", why)) return i;
    }
    throw std::runtime_error("no Vulkan to test: " + why);
  }());
  return made;
}

namespace {
std::unique_ptr<runtime::Driver> make(bool staging) {
  std::string why;
  std::vector<vulkan::Adapter> all = vulkan::adapters(*instance(), why);
  if (all.empty()) throw std::runtime_error(why);
  if (staging) all[0].mapped = false;
  return std::make_unique<vulkan::Driver>(instance(), all[0]);
}
}  // namespace

// Both live until the process ends: at exit the validation layer is gone before a static here.
runtime::Driver& driver() {
  static runtime::Driver& d = *make(false).release();
  return d;
}

runtime::Driver& staging_driver() {
  static runtime::Driver& d = *make(true).release();
  return d;
}

Program::Program(const ir::Kernel& kernel, runtime::Driver& d)
    : driver_(d),
      executable_(d.load(kernel, d.compiler().compile(kernel, d.target()))),
      block_(d.allocate(args_.size() * 8)) {}

runtime::Launch Program::launch(uint32_t task, uint64_t iterations, uint64_t chunks) const {
  runtime::Launch launch;
  launch.executable = executable_.get();
  launch.task = task;
  launch.iterations = iterations;
  launch.grain = (iterations + chunks - 1) / chunks;
  launch.chunks = chunks;
  launch.args = block_;
  return launch;
}

void Program::run(uint32_t task, uint64_t n, uint64_t chunks, runtime::Address guard) {
  upload_args();
  runtime::Launch l = launch(task, n, chunks);
  l.guard = guard;
  runtime::Command command = l;
  driver_.wait(driver_.submit({&command, 1}));
}

bool same(Type type, Bits a, Bits b) {
  if (type == Type::f32 && std::isnan(ir::f32_of(a)) && std::isnan(ir::f32_of(b))) return true;
  if (type == Type::f64 && std::isnan(ir::f64_of(a)) && std::isnan(ir::f64_of(b))) return true;
  return a == b;
}

std::vector<Bits> interesting(Type type) {
  std::vector<Bits> all;
  if (type == Type::b1) return {0, 1};
  std::mt19937_64 random(uint64_t(type) + 1);
  unsigned width = ir::bit_width(type);
  if (ir::is_int(type)) {
    Bits high = Bits(1) << (width - 1);
    for (Bits b : {Bits(0), Bits(1), Bits(2), Bits(3), Bits(7), Bits(31), Bits(32), Bits(33),
                   Bits(63), Bits(64), Bits(100), ~Bits(0), ~Bits(1), ~Bits(6), high, high - 1,
                   high + 1, Bits(1) << (width / 2)})
      all.push_back(ir::truncate(b, type));
    for (int k = 0; k < 14; k++) all.push_back(ir::truncate(random() >> random() % width, type));
    return all;
  }
  std::vector<double> reals = {
      0,          0.5,    1,      1.5,    2,      2.5,   127,   127.5,     128,        129,
      255,        255.9,  256,    32767,  32768,  65535, 65536, 8388608.5, 2147483647, 2147483648,
      4294967295, 0x1p32, 0x1p62, 0x1p63, 0x1p64, 1e30,  0.1,   0.49999,   3e-39,      INFINITY};
  if (type == Type::f32) reals.push_back(std::numeric_limits<float>::denorm_min());
  if (type == Type::f64) {
    for (double v : {5e-324, 2e-308, 1e300, 9007199254740993.0, 0.49999999999999994})
      reals.push_back(v);
  }
  for (double v : reals)
    for (double s : {v, -v}) all.push_back(ir::bits_of_real(s, type));
  all.push_back(ir::bits_of_real(NAN, type));
  for (int k = 0; k < 20; k++) all.push_back(ir::truncate(random(), type));
  return all;
}

}  // namespace quern::test

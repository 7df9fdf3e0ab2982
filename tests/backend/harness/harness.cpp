#include "tests/backend/harness/harness.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <random>

#include "quern/ir/abi.h"
#include "tests/at_end.h"

namespace quern::test {

using ir::Bits;
using ir::Type;

int in_child(const std::function<int()>& f) {
  pid_t child = fork();
  if (child == 0) _exit(f());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

namespace {

/// Validation is asked for once a process, and refuses to begin where its layers are not installed:
/// a child tries.
void validate_where_possible(const runtime::Backend& backend) {
  std::string why;
  setenv("QUERN_VULKAN_VALIDATION", "1", 1);
  if (in_child([&] { return backend.probe(why).empty() ? 1 : 0; }) != 0)
    setenv("QUERN_VULKAN_VALIDATION", "0", 1);
}

std::unique_ptr<runtime::Driver> first_of(const runtime::Backend& backend) {
  std::string why;
  if (backend.name == "vulkan") validate_where_possible(backend);
  std::vector<runtime::Target> targets = backend.probe(why);
  return targets.empty() ? nullptr : backend.open(targets[0]);
}

std::vector<runtime::Driver*> open_all() {
  std::vector<runtime::Driver*> opened;
  for (const runtime::Backend& backend : runtime::backends())
    if (is_tested(backend.name))
      if (auto driver = first_of(backend)) opened.push_back(driver.release());
  return opened;
}

}  // namespace

bool is_tested(const std::string& backend) {
  const char* only = std::getenv("QUERN_DEVICE");
  return !only || !*only || backend == only;
}

const std::vector<runtime::Driver*>& drivers() {
  // Closed by the program's end, not by that of its statics: then a layer of Vulkan's is gone.
  static auto& all = *new std::vector<runtime::Driver*>(open_all());
  at_end = [] {
    for (runtime::Driver* driver : all) delete driver;
    all.clear();
  };
  return all;
}

const runtime::Compiler& compiler(const runtime::Driver& driver) {
  return runtime::compiler_of(driver.target().backend);
}

runtime::Target target(runtime::Driver& driver) { return compiler(driver).target_on(driver); }

std::vector<runtime::Driver*> lowering_drivers() {
  std::vector<runtime::Driver*> all = drivers();
  std::erase_if(all, [](auto* d) { return d->target().traits.walk == ir::Task::unlowered; });
  return all;
}

runtime::Driver& driver(std::string_view backend) {
  for (runtime::Driver* d : drivers())
    if (d->target().backend == backend) return *d;
  throw Error("no device of the back end " + std::string(backend));
}

Program::Program(runtime::Driver& driver, const ir::Kernel& kernel, const runtime::Target& target)
    : driver_(driver) {
  std::unique_ptr<ir::Kernel> whole = ir::clone(kernel);
  ir::Binding entry;
  entry.components.push_back({Type::u64});
  while (ir::abi::layout(*whole).bytes < args_.size() * 8) whole->bindings.push_back(entry);
  const runtime::Image image = compiler(driver).compile(*whole, target);
  takes_value_ = image.takes_value;
  tasks_ = image.tasks;
  executable_ = driver.load(image);
  block_ = driver.allocate(args_.size() * 8);
}

runtime::Launch Program::launch(uint32_t task, uint64_t iterations, uint64_t chunks) const {
  runtime::Launch launch;
  launch.executable = executable_.get();
  launch.task = task;
  if (tasks_.at(task).kind == ir::Task::serial)
    launch.work = runtime::Serial{};
  else if (tasks_[task].walk == ir::Task::chunked)
    launch.work = runtime::Chunked{iterations, (iterations + chunks - 1) / chunks};
  else
    launch.work = runtime::Elements{iterations};
  launch.args = takes_value_ ? reinterpret_cast<runtime::Address>(args_.data()) : block_;
  return launch;
}

void Program::run(uint32_t task, uint64_t iterations, uint64_t chunks, runtime::Address guard) {
  upload_args();
  runtime::Launch l = launch(task, iterations, chunks);
  l.guard = guard;
  runtime::Command command = l;
  driver_.wait(driver_.submit({&command, 1}));
}

// ---- kernels

const char* const add_one = R"(quern 1
  kernel @add_one level=lowered
  task serial {
    %p = arg<64> : address
    %v = read<1> %p : i32
    %one = constant<1> : i32
    %s = add %v, %one : i32
    write<1> %p, %s
    yield
  }
)";

namespace {
std::string kernel(const std::string& task, const std::string& body,
                   const std::string& modes = "") {
  return "quern 1\nkernel @k level=lowered" + modes + "\ntask " + task + " {\n" + body +
         "\nyield\n}\n";
}
}  // namespace

std::string serial(const std::string& body, const std::string& modes) {
  return kernel("serial", body, modes);
}

std::string chunked(const std::string& body) {
  return kernel("range rank=1 walk=chunked domain { yield }", body);
}

std::string each(const runtime::Driver& driver, const std::string& before, const std::string& body,
                 const std::string& modes) {
  const bool element = driver.target().traits.walk == ir::Task::element;
  const std::string walk = element ? "element" : "chunked";
  const std::string bounds = element ? R"(
    %first_i = builtin.thread : i64
    %end_i = builtin.end : i64
    %step_i = builtin.threads : i64
    loop)"
                                     : R"(
    %first_i = builtin.begin : i64
    %end_i = builtin.end : i64
    %step_i = constant<1> : i64
    loop.parallel_walk)";
  return kernel("range rank=1 walk=" + walk + " domain { yield }",
                before + bounds + " %first_i, %end_i, %step_i {(%i: i64)\n" + body + "\nyield\n}",
                modes);
}

ir::Value* open_iterations(ir::Builder& b, ir::Task& task, ir::Task::Walk walk) {
  using ir::Builtin;
  bool element = walk == ir::Task::element;
  task.kind = ir::Task::range;
  task.walk = walk;
  task.rank = 1;
  ir::Inst* loop =
      b.loop(b.builtin(element ? Builtin::thread : Builtin::begin), b.builtin(Builtin::end),
             element ? b.builtin(Builtin::threads) : b.integer(Type::i64, 1));
  if (!element) loop->kind = ir::parallel_walk;
  b.yield();
  b.at_end(loop->region(0));
  return loop->region(0)->arg(0);
}

// ---- values

std::vector<Type> scalar_types() {
  std::vector<Type> all;
  for (int t = 0; t < 256; t++)
    if (ir::is_scalar(Type(t))) all.push_back(Type(t));
  return all;
}

bool same(Type type, Bits a, Bits b) {
  if (ir::is_float(type) && std::isnan(ir::real_of(a, type)) && std::isnan(ir::real_of(b, type)))
    return true;
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

std::vector<std::byte> packed(Type type, const std::vector<Bits>& values) {
  size_t width = ir::byte_size(type);
  std::vector<std::byte> bytes(values.size() * width);
  for (size_t n = 0; n < values.size(); n++) std::memcpy(&bytes[n * width], &values[n], width);
  return bytes;
}

void expect_usable(runtime::Driver& driver) {
  if (driver.target().traits.walk == ir::Task::unlowered) return;
  Buffer x(driver, std::vector<int32_t>{41});
  Program(driver, add_one).entry(0, x).run();
  CHECK(x.first<int32_t>() == 42);
}

}  // namespace quern::test

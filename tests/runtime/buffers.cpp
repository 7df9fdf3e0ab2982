// Buffers that kernels declare: how many elements they have, what they hold, and when they are made.
#include <algorithm>
#include <cstdlib>

#include "quern/ir/lower.h"
#include "quern/ir/text.h"
#include "quern/ir/verify.h"
#include "quern/runtime/program.h"
#include "runtime/compile/compile.h"
#include "tests/catch.h"
#include "tests/message_of.h"

using namespace quern;
using namespace quern::runtime;

namespace {

constexpr Loc here{"user.cpp", 42};

/// That which QUERN_DEVICE names, else the first device of each back end that is present.
std::vector<std::shared_ptr<Device>> devices() {
  if (const char* only = std::getenv("QUERN_DEVICE"); only && *only) return {Device::open(only)};
  std::vector<std::shared_ptr<Device>> found;
  for (const Backend& b : backends()) {
    std::string why;
    if (!b.probe(why).empty()) found.push_back(Device::open(b.name));
  }
  return found;
}

/// A kernel of level `split`, on a device.
LoadedKernel load(const std::string& text, const std::shared_ptr<Device>& device) {
  auto kernel = ir::parse(text);
  ir::expect_valid(*kernel, "what the test wrote");
  ir::Signature signature;
  for (uint32_t k = 0; k < kernel->bindings.size(); k++) signature.fields.push_back({true, k});
  const std::vector<Image::Parameter> parameters = parameters_of(*kernel);
  const Target& target = device->target();
  if (target.traits.walk == ir::Task::unlowered)
    ir::bind(*kernel, signature);
  else
    ir::lower(*kernel, signature, target.traits);
  auto image = std::make_shared<Image>(compiler_of(target.backend).compile(*kernel, target));
  signature.fields.resize(image->parameters.size());
  image->made_for = signature;
  for (size_t k = 0; k < image->parameters.size(); k++) image->parameters[k] = parameters[k];
  // As a program would have it: from its bytes.
  const std::vector<std::byte> bytes = image->bytes();
  return LoadedKernel(device, std::make_shared<Image>(Image::from(bytes, "the image")), here);
}

struct Longs {
  Longs(const std::shared_ptr<Device>& device, int64_t n)
      : storage(std::make_shared<Storage>(device,
                                          std::vector<ir::Storage>{{ir::Type::i64, ir::Type::i64}},
                                          std::vector{n}, here)) {}
  std::vector<int64_t> read() const {
    std::vector<int64_t> v(size_t(storage->size()));
    storage->read(v.data(), 0, storage->size());
    return v;
  }
  std::shared_ptr<Storage> storage;
};

/// Squares in a buffer with an element for each iteration, which are then read backwards.
const std::string squares = R"(quern 1
kernel @squares level=split
binding field rank=1 i64 "x"
binding frame "frame"
binding buffer rank=1 i64, b1 "squares" task=0 iterations class=65541 align=8 step=16 offsets (0, 8)
task range rank=1 domain {
  %lo = constant<0> : i64
  %n = extent<0.0> : i64
  yield %lo, %n
} {(%i: i64)
  %square = mul %i, %i : i64
  store<2.0> %i, %square
  %one = constant<1> : i64
  %low = bit_and %i, %one : i64
  %odd = eq %low, %one : b1
  store<2.1> %i, %odd
  yield
}
task range rank=1 domain {
  %lo = constant<0> : i64
  %n = extent<0.0> : i64
  yield %lo, %n
} {(%i: i64)
  %one = constant<1> : i64
  %n = extent<0.0> : i64
  %last = sub %n, %one : i64
  %from = sub %last, %i : i64
  %square = load<2.0> %from : i64
  %odd = load<2.1> %from : b1
  %minus = neg %square : i64
  %v = select %odd, %minus, %square : i64
  store<0.0> %i, %v
  yield
}
schedule {
  launch 0
  launch 1
}
)";

/// A buffer of as many elements as an earlier task counts in a cell of type T, and one of three.
std::string counted(const std::string& type) {
  return R"(quern 1
kernel @counted level=split
binding field rank=1 i64 "x"
binding scalar )" +
         type + R"( "n"
binding frame "frame"
binding buffer rank=1 i64 "list" task=1 cell=0 class=65542 align=8 step=8
binding buffer rank=1 i64 "three" task=0 constant=3 class=65543 align=8 step=8
frame )" +
         type +
         R"(
task serial {
  %n = param<1> : )" +
         type + R"(
  %two = constant<2> : )" +
         type + R"(
  %twice = mul %n, %two : )" +
         type + R"(
  store<2.0> %twice
  %0 = constant<0> : i64
  %1 = constant<1> : i64
  %2 = constant<2> : i64
  %7 = constant<700> : i64
  %8 = constant<800> : i64
  %9 = constant<900> : i64
  store<4.0> %0, %7
  store<4.0> %1, %8
  store<4.0> %2, %9
  yield
}
task range rank=1 domain {
  %lo = constant<0> : i64
  %cell = load<2.0> : )" +
         type + R"(
  %hi = convert %cell : i64
  yield %lo, %hi
} {(%i: i64)
  %three = constant<3> : i64
  %v = mul %i, %three : i64
  store<3.0> %i, %v
  yield
}
task range rank=1 domain {
  %lo = constant<0> : i64
  %n = param<1> : )" +
         type + R"(
  %hi = convert %n : i64
  yield %lo, %hi
} {(%i: i64)
  %two = constant<2> : i64
  %at = mul %i, %two : i64
  %v = load<3.0> %at : i64
  %three = constant<3> : i64
  %which = rem %i, %three : i64
  %more = load<4.0> %which : i64
  %sum = add %v, %more : i64
  store<0.0> %i, %sum
  yield
}
schedule {
  launch 0
  launch 1
  launch 2
}
)";
}

}  // namespace

TEST_CASE("a buffer has an element for each iteration of its task, whatever their number") {
  for (const auto& device : devices()) {
    INFO(device->name());
    const LoadedKernel kernel = load(squares, device);
    // Growing, shrinking, none.
    for (int64_t n : {5, 1, 100'000, 0, 300, 250'000}) {
      Longs x(device, n);
      const Argument argument{0, x.storage};
      kernel.launch({&argument, 1}, here);
      std::vector<int64_t> want;
      for (int64_t k = n; k-- > 0;) want.push_back(k % 2 ? -k * k : k * k);
      CHECK(x.read() == want);
    }
  }
}

TEST_CASE("a buffer has as many elements as a constant or an earlier task says") {
  for (const auto& device : devices())
    for (const char* type : {"i32", "i64", "u16"}) {
      INFO(device->name() << " " << type);
      const LoadedKernel kernel = load(counted(type), device);
      for (int64_t n : {4, 20'000, 0, 7}) {
        Longs x(device, std::max<int64_t>(n, 1));
        const Argument arguments[] = {{0, x.storage}, {uint64_t(n), nullptr}};
        kernel.launch(arguments, here);
        std::vector<int64_t> want(size_t(std::max<int64_t>(n, 1)));
        for (int64_t k = 0; k < n; k++) want[size_t(k)] = 6 * k + 700 + 100 * (k % 3);
        CHECK(x.read() == want);
      }
    }
}

TEST_CASE("a count below zero makes a buffer of nothing") {
  for (const auto& device : devices()) {
    const LoadedKernel kernel = load(counted("i32"), device);
    Longs x(device, 2);
    const Argument arguments[] = {{0, x.storage}, {uint64_t(uint32_t(-3)), nullptr}};
    kernel.launch(arguments, here);
    CHECK(x.read() == std::vector<int64_t>{0, 0});
  }
}

TEST_CASE("launches on the way have buffers of their own, and give them back with the kernel") {
  for (const auto& device : devices()) {
    INFO(device->name());
    const uint64_t before = device->allocated();
    {
      const LoadedKernel kernel = load(squares, device);
      std::vector<Longs> results;
      for (int64_t n = 1; n <= 40; n++) {
        results.emplace_back(device, 50 * n);
        const Argument argument{0, results.back().storage};
        kernel.launch({&argument, 1}, here);
      }
      for (int64_t n = 1; n <= 40; n++)
        CHECK(results[size_t(n - 1)].read()[1] ==
              [&](int64_t k) { return k % 2 ? -k * k : k * k; }(50 * n - 2));
    }
    CHECK(device->allocated() == before);
  }
}

namespace {

std::string with(std::string text, const std::string& what, const std::string& other) {
  return text.replace(text.find(what), what.size(), other);
}

/// x[i] = s[i].0 + 1 where s[i].1, else 0.
const char* const follow = R"(quern 1
kernel @follow level=structured
binding field rank=1 i64, b1 "squares"
binding field rank=1 i64 "x"
body {
  %z = constant<0> : i64
  %n = extent<1.0> : i64
  %one = constant<1> : i64
  parallel ordinal=0 %z, %n {(%i: i64)
    %v = load<0.0> %i : i64
    %odd = load<0.1> %i : b1
    %more = add %v, %one : i64
    %w = select %odd, %more, %z : i64
    store<1.0> %i, %w
    yield
  }
  yield
})";

}  // namespace

TEST_CASE("a buffer that is kept outlives its launch, and is an argument of others") {
  for (const auto& device : devices()) {
    INFO(device->name());
    const LoadedKernel kernel = load(with(squares, "iterations", "iterations kept"), device);
    Program next(ir::parse(follow));
    Longs x(device, 1000), y(device, 10);
    const Argument first{0, x.storage}, second{0, y.storage};
    const auto of_x = kernel.launch({&first, 1}, here), of_y = kernel.launch({&second, 1}, here);
    const std::shared_ptr<Storage> kept = of_x->kept(0);
    REQUIRE(kept->size() == 1000);
    REQUIRE(of_y->kept(0)->size() == 10);
    for (const auto& [buffer, out] : {std::pair(kept, &x), {of_y->kept(0), &y}}) {
      const Argument arguments[] = {{0, buffer}, {0, out->storage}};
      next.launch(arguments, {}, here);
      const std::vector<int64_t> values = out->read();
      for (int64_t k = 0; k < int64_t(values.size()); k++)
        REQUIRE(values[size_t(k)] == (k % 2 ? k * k + 1 : 0));
    }
  }
  const auto device = Device::open("cpu");
  const LoadedKernel kernel = load(with(squares, "iterations", "iterations kept"), device);
  Longs x(device, 1000);
  const Argument argument{0, x.storage};
  const uint64_t before = device->allocated();
  auto outcome = kernel.launch({&argument, 1}, here);
  const std::shared_ptr<Storage> kept = outcome->kept(0);
  outcome.reset();
  CHECK(device->allocated() >= before + 16'000);
  CHECK(kept.use_count() == 1);
}

TEST_CASE("a kept buffer that a launch does not make is none") {
  std::string text = with(squares, "iterations", "iterations kept");
  text = with(text, "binding frame \"frame\"", "binding frame \"frame\"\nframe b1");
  text = with(text, "  launch 0\n", "  repeat 0 { } { launch 0 launch 1 }\n");
  text = with(text, "  launch 1\n}\n", "}\n");
  for (const auto& device : devices()) {
    INFO(device->name());
    const LoadedKernel kernel = load(text, device);
    Longs x(device, 3);
    const Argument argument{0, x.storage};
    const auto outcome = kernel.launch({&argument, 1}, here);
    CHECK(outcome->kept(0) == nullptr);
    CHECK(x.read() == std::vector<int64_t>(3, 0));
  }
}

TEST_CASE("memory that a buffer cannot have is an error with the loop's line") {
  const std::shared_ptr<Device> device = Device::open("cpu");
  std::string text = squares;
  text.replace(text.find("task=0 iterations"), 17, "task=0 constant=4611686018427387904");
  const size_t end = text.find("(0, 8)") + 6;
  text.insert(end, " @\"loop.cpp\":7");
  const LoadedKernel kernel = load(text, device);
  Longs x(device, 3);
  const Argument argument{0, x.storage};
  const std::string says = test::message_of([&] { kernel.launch({&argument, 1}, here); });
  CHECK_THAT(says, contains("loop.cpp:7"));
  CHECK_THAT(says, contains("the squares of a loop"));
  CHECK_THAT(says, contains("4611686018427387904 bytes"));
}

// Which block of memory a launch is given.
#include <memory>
#include <vector>

#include "quern/ir/lower.h"
#include "runtime/compile/compile.h"
#include "runtime/loaded.h"
#include "tests/catch.h"
#include "tests/dsl/record.h"

using namespace quern::runtime;
namespace qn = quern;

namespace {

template <class F>
std::shared_ptr<Loaded> loaded(F&& body) {
  const std::shared_ptr<Device> device = Device::open("cpu");
  std::unique_ptr<qn::ir::Kernel> kernel = qn::test::record(body);
  qn::ir::finish_recording(*kernel);
  qn::ir::Signature given;
  for (uint32_t k = 0; k < kernel->bindings.size(); k++) given.fields.push_back({true, k});
  Recording source(std::move(kernel));
  const Target target = compiler_of(device->target().backend).target_on(device->driver());
  return std::make_shared<Loaded>(device, compile(source, given, target), WideImage());
}

/// The block of a launch with these arguments, which has ended when this comes back.
const LaunchMemory* block_for(const std::shared_ptr<Loaded>& kernel, SameArguments arguments) {
  const Loaded::Taken block = kernel->take_memory(0, arguments);
  block->arguments = arguments;  // as fill_arguments notes
  return block.get();
}

}  // namespace

TEST_CASE("arguments that take turns have blocks of their own, up to four") {
  const auto kernel = loaded([](qn::Field<float> x) {
    for (auto i : x) x[i] = 1.0f;
  });
  const LaunchMemory* const first = block_for(kernel, 1);
  CHECK(block_for(kernel, 1) == first);
  const LaunchMemory* const second = block_for(kernel, 2);
  CHECK(second != first);
  for (int round = 0; round < 3; round++) {
    CHECK(block_for(kernel, 1) == first);
    CHECK(block_for(kernel, 2) == second);
  }
  const LaunchMemory* const known[] = {first, second, block_for(kernel, 3), block_for(kernel, 4)};
  for (SameArguments many = 5; many < 9; many++)
    CHECK(std::ranges::count(known, block_for(kernel, many)) == 1);
}

TEST_CASE("arguments of which nothing is known take whatever block is there") {
  const auto kernel = loaded([](qn::Field<float> x) {
    for (auto i : x) x[i] = 1.0f;
  });
  const LaunchMemory* const first = block_for(kernel, 1);
  CHECK(block_for(kernel, other_arguments) == first);
  CHECK(block_for(kernel, 2) == first);
}

TEST_CASE("a kernel with buffers has one block, whoever takes turns") {
  const auto kernel = loaded([](qn::Field<float> x) -> qn::lang::F32 {
    qn::lang::Var<float> sum = 0;
    for (auto i : x) sum += x[i];
    return sum;
  });
  REQUIRE_FALSE(kernel->image->buffers.empty());
  const LaunchMemory* const first = block_for(kernel, 1);
  CHECK(block_for(kernel, 2) == first);
  CHECK(block_for(kernel, 1) == first);
}

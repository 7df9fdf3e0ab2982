// Loops over fields on trees become wide instructions.
#include "quern/ir/lower.h"
#include "quern/ir/text.h"
#include "tests/cpu/instructions/x86.h"

using namespace quern;

namespace {

/// Cells of these extents, whose elements are active one by one, below a table for 16 of them along
/// each axis.
ir::Placement tree_of(std::vector<uint32_t> extents) {
  ir::Placement layout;
  for (const bool last : {false, true}) {
    ir::Placement::Pool pool;
    ir::Placement::Level level;
    for (size_t axis = extents.size(); axis-- > 0;) {
      level.extent[axis] = last ? extents[axis] : 16;
      level.stride[axis] = pool.children;
      pool.children *= level.extent[axis];
    }
    pool.levels = {level};
    pool.unit = last ? 1 : pool.children;
    pool.direct = !last;
    layout.pools.push_back(pool);
  }
  return layout;
}

/// The lowered text of a kernel over fields "u" and "v" of one tree.
std::string lowered(const test::X86& cpu, const std::string& text, const ir::Placement& layout) {
  auto kernel = ir::parse(text);
  const runtime::Target target = test::target_of(cpu);
  ir::Signature signature;
  for (uint32_t k = 0; k < kernel->bindings.size(); k++) {
    signature.fields.push_back({true, k + 1});
    signature.fields.back().layout = layout;
  }
  signature.modes = kernel->modes;
  ir::optimise(*kernel);
  ir::split(*kernel);
  ir::lower(*kernel, signature, target.traits);
  return ir::print(*kernel);
}

int count(const test::X86& cpu, const std::string& text, const std::string& pattern) {
  return test::count(test::target_of(cpu), *ir::parse(text), pattern);
}

std::string stencil(const std::string& type) {
  return R"(quern 1
  kernel @stencil level=structured
  binding field rank=3 )" +
         type + R"( "u"
  binding field rank=3 )" +
         type + R"( "v"
  body {
    %one = constant<1> : i32
    parallel over=1 {(%i: i32, %j: i32, %k: i32)
      %i0 = sub %i, %one : i32
      %i1 = add %i, %one : i32
      %j0 = sub %j, %one : i32
      %j1 = add %j, %one : i32
      %k0 = sub %k, %one : i32
      %k1 = add %k, %one : i32
      %a = load<0.0> %i0, %j, %k : )" +
         type + R"(
      %b = load<0.0> %i1, %j, %k : )" +
         type + R"(
      %c = load<0.0> %i, %j0, %k : )" +
         type + R"(
      %d = load<0.0> %i, %j1, %k : )" +
         type + R"(
      %e = load<0.0> %i, %j, %k0 : )" +
         type + R"(
      %f = load<0.0> %i, %j, %k1 : )" +
         type + R"(
      %ab = add %a, %b : )" +
         type + R"(
      %cd = add %c, %d : )" +
         type + R"(
      %ef = add %e, %f : )" +
         type + R"(
      %abcd = add %ab, %cd : )" +
         type + R"(
      %all = add %abcd, %ef : )" +
         type + R"(
      store<1.0> %i, %j, %k, %all
      yield
    }
    yield
  })";
}

const char* doubling = R"(quern 1
  kernel @doubling level=structured
  binding field rank=3 f32 "u"
  binding field rank=3 f32 "v"
  body {
    parallel over=0 {(%i: i32, %j: i32, %k: i32)
      %x = load<0.0> %i, %j, %k : f32
      %y = add %x, %x : f32
      store<0.0> %i, %j, %k, %y
      yield
    }
    yield
  })";

}  // namespace

TEST_CASE("stencils on trees are vectors of the elements of a row of a cell") {
  for (const test::X86& cpu : test::all_x86) {
    INFO(cpu.name);
    const std::string single = lowered(cpu, stencil("f32"), tree_of({8, 8, 8}));
    CHECK(count(cpu, single, "vaddps[^\n]*ymm") >= 5);
    CHECK(count(cpu, single, "vaddss") == 0);
    CHECK(count(cpu, single, "gather|scatter") == 0);
    const std::string twice = lowered(cpu, stencil("f64"), tree_of({8, 8, 8}));
    CHECK(count(cpu, twice, "vaddpd[^\n]*[yz]mm") >= 5);
    CHECK(count(cpu, twice, "vaddsd") == 0);
  }
}

TEST_CASE("so are loops over trees that touch their own elements alone") {
  for (const test::X86& cpu : test::all_x86) {
    INFO(cpu.name);
    for (const auto& extents : {std::vector<uint32_t>{8, 8, 8}, {4, 4, 16}, {2, 2, 64}}) {
      const std::string text = lowered(cpu, doubling, tree_of(extents));
      CHECK(count(cpu, text, "vaddps[^\n]*[yz]mm") >= 1);
      CHECK(count(cpu, text, "gather|scatter") == 0);
    }
  }
}

TEST_CASE("the lines of a later cell are named ahead, and none is loaded for it") {
  const ir::Placement layout = tree_of({8, 8, 8});
  for (const test::X86& cpu : test::all_x86)
    for (const uint32_t workers : {1, 2}) {
      INFO(cpu.name << ", threads " << workers);
      runtime::Target target = test::target_of(cpu);
      target.workers = workers;
      const auto kernel = ir::parse(lowered(cpu, doubling, layout));
      // 2,048 bytes are 32 lines, in a loop or one after another.
      const int named = test::count(target, *kernel, "prefetcht0");
      CHECK((named >= 1 && named <= 32));
    }
}

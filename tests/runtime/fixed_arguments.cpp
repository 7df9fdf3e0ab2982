// Lists of arguments that are passed again and again are launched as others are.
#include <memory>
#include <optional>
#include <vector>

#include "quern/runtime/program.h"
#include "tests/catch.h"
#include "tests/dsl/record.h"
#include "tests/message_of.h"

using namespace quern::lang;
using namespace quern::runtime;
namespace qn = quern;
using Catch::Matchers::Contains;
using qn::test::message_of;

namespace {

constexpr int n = 5;
const qn::Loc here{"fixed_arguments", 1};

std::shared_ptr<Storage> ints(const std::shared_ptr<Device>& device) {
  constexpr auto i32 = qn::ir::Type::i32;
  return std::make_shared<Storage>(device, std::vector<qn::ir::Storage>{{i32, i32}},
                                   std::vector<int64_t>{n}, here);
}
std::vector<int> values(const Storage& field) {
  std::vector<int> all(n);
  field.read(all.data(), 0, n);
  return all;
}
std::vector<int> all(int v) { return std::vector<int>(n, v); }

}  // namespace

TEST_CASE("fixed arguments are looked at again where memory has moved") {
  const auto device = Device::open("cpu");
  Program program(qn::test::record([](qn::Field<int> x, I32 by) {
    for (auto i : x) x[i] += by;
  }));
  const auto x = ints(device), other = ints(device);
  std::vector<Argument> list{{0, x}, {0, nullptr}}, second{{0, other}, {0, nullptr}};
  const FixedArguments fixed = new_fixed_arguments(), fixed_second = new_fixed_arguments();
  REQUIRE(fixed != fixed_second);
  const auto add = [&](int by, std::vector<Argument>& to, FixedArguments of,
                       qn::ir::Modes modes = {}) {
    to[1].bits = uint64_t(by);
    program.launch(to, modes, here, nullptr, of);
  };
  for (int by : {1, 2, 3}) add(by, list, fixed);
  CHECK(values(*x) == all(6));
  for (int by : {10, 20}) add(by, second, fixed_second);
  CHECK(values(*other) == all(30));
  add(1, list, fixed);
  add(2, list, fixed, {.checked = true});
  CHECK(values(*x) == all(9));
  x->swap(*other, here);
  add(1, list, fixed);
  add(5, second, fixed_second);
  CHECK(values(*x) == all(31));
  CHECK(values(*other) == all(14));
  x->release(here);
  CHECK_THAT(message_of([&] { add(1, list, fixed); }), Contains("released"));
  add(1, second, fixed_second);
  CHECK(values(*other) == all(15));
}

TEST_CASE("a snapshot among fixed arguments is read where it shows contents now") {
  const auto device = Device::open("cpu");
  Program program(qn::test::record([](qn::Field<int> from, qn::Field<int> to, I32 by) {
    for (auto i : to) to[i] = from[i] + by;
  }));
  const auto x = ints(device), y = ints(device);
  const auto becomes = [&](int v) { x->fill(&v, here); };
  const auto shown = x->empty_snapshot(here), kept = x->empty_snapshot(here);
  std::vector<Argument> of_shown{{0, shown}, {0, y}, {0, nullptr}};
  std::vector<Argument> of_kept{{0, kept}, {0, y}, {0, nullptr}};
  const FixedArguments fixed_shown = new_fixed_arguments(), fixed_kept = new_fixed_arguments();
  const auto copied = [&](std::vector<Argument>& list, FixedArguments fixed, int by) {
    list[2].bits = uint64_t(by);
    program.launch(list, {}, here, nullptr, fixed);
    return values(*y);
  };
  Storage::Versions versions;
  std::vector<Storage::Contents> in_block;
  for (int v = 1; v <= 4; v++) {
    becomes(v);
    in_block.push_back(versions.of(*x, here));
    shown->show(x->contents(here));
    CHECK(copied(of_shown, fixed_shown, 100) == all(100 + v));
    becomes(-v);  // from here on what is shown has memory of its own
    CHECK(copied(of_shown, fixed_shown, 7) == all(7 + v));
  }
  for (int v = 4; v >= 1; v--)
    for (int by : {0, 20}) {
      kept->show(in_block[size_t(v - 1)]);
      CHECK(copied(of_kept, fixed_kept, by) == all(v + by));
    }
  // The same version in another block, and that of the first is there no more.
  std::optional<Storage::Versions> first(std::in_place);
  Storage::Versions second;
  kept->show(first->of(*x, here));
  const Address in_first = kept->base(0);
  CHECK(copied(of_kept, fixed_kept, 0) == all(-4));
  kept->show(second.of(*x, here));
  CHECK(kept->base(0) != in_first);
  first.reset();
  CHECK(copied(of_kept, fixed_kept, 1) == all(-3));
}

// How many iterations a strip has (interleave_walks.h), by what it keeps of each and what it gives.
#include <algorithm>
#include <string>

#include "ir/passes/walks/interleave_walks.h"
#include "quern/ir/text.h"
#include "tests/catch.h"

using namespace quern::ir;

namespace {

struct Strip {
  uint32_t said = 0;      ///< by the task
  uint64_t elements = 0;  ///< of the local array, for each iteration of a strip
};

/// Iterations with a local array of so many f64, which rounds fill; `update` stands in each round.
Strip strip_of(uint64_t elements, const std::string& update) {
  const std::string number = std::to_string(elements);
  const auto kernel = parse(R"(quern 1
kernel @k level=lowered
    binding field rank=1 f64 "x" class=1
    binding field rank=1 f64 "y" class=2
    binding field rank=1 f64 "sum" class=3
    task range rank=1 walk=chunked domain {
      %z = constant<0> : i64
      %n = constant<6> : i64
      yield %z, %n
    } {
      %x = arg<64> : address
      %y = arg<88> : address
      %sum = arg<112> : address
      %zero = constant<0> : i64
      %one = constant<1> : i64
      %eight = constant<8> : i64
      %rounds = constant<)" +
                            number + R"(> : i64
      %begin = builtin.begin : i64
      %end = builtin.end : i64
      loop.parallel_walk %begin, %end, %one {(%i: i64)
        %o = mul %i, %eight : i64
        %p = offset %y, %o : address
        %first = read<2> %p : f64
        %a = slot<)" + number +
                            R"(> : slot f64
        loop %zero, %rounds, %one {(%k: i64)
          %b = mul %k, %eight : i64
          %q = offset %x, %b : address
          %c = read<1> %q : f64
          %d = mul %c, %first : f64
          put %a, %k, %d
          )" + update + R"(
          yield
        }
        %r = get %a, %one : f64
        write<2> %p, %r
        yield
      }
      yield
    }
    schedule { launch 0 })");
  TargetTraits target;
  target.strip = 256;
  interleave_walks(*kernel, target);
  Strip found{.said = kernel->tasks.at(0).strip};
  walk(kernel->tasks.at(0).body, [&](const Inst* inst) {
    if (inst->is(Op::slot)) found.elements = std::max(found.elements, inst->imm / elements);
  });
  return found;
}

}  // namespace

TEST_CASE("strips are of the first-level cache, and longer where each ends by combining updates") {
  const Strip plain = strip_of(30, "");
  CHECK(plain.elements == 64);
  CHECK(plain.said == 0);  // shorter ones are as good
  // The code is there twice, the second time for what whole strips leave over, with an array of its own.
  const Strip combined = strip_of(90, "%old = rmw.add<3> %sum, %d : f64");
  CHECK(combined.elements == 128);
  CHECK(combined.said == 128);
}

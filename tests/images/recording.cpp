// What is made once of a recording, and what for each signature.
#include <map>
#include <string>

#include "quern/ir/text.h"
#include "quern/ir/verify.h"
#include "runtime/compile/compile.h"
#include "tests/catch.h"
#include "tests/images/kernels.h"

using namespace quern;
using namespace quern::runtime;

namespace {

std::map<std::string, int> passes;  ///< how often each has run

void count(const ir::Kernel& kernel, std::string_view pass) {
  passes[std::string(pass)]++;
  ir::expect_valid(kernel, pass);
}

struct Counting {
  Counting() {
    passes.clear();
    ir::set_pass_check(count);
  }
  ~Counting() { ir::set_pass_check(ir::expect_valid); }
};

}  // namespace

TEST_CASE("a recording is optimised once for what its premises are, and split for each signature") {
  Recording recording(ir::parse(test::scale_and_sum));
  const Target target = Device::open("cpu")->target();
  const size_t bindings = recording.kernel().bindings.size();
  ir::Signature plain;
  for (uint32_t k = 0; k < bindings; k++) plain.fields.push_back({true, k});
  const std::string recorded = print(recording.kernel());
  Counting counting;

  ir::Signature strided = plain, wide = plain;
  for (ir::Signature::Field& f : strided.fields) f.contiguous = false;
  wide.wide = true;
  std::vector<std::string> lowered;
  for (const ir::Signature& s : {plain, strided, wide, plain})
    lowered.push_back(print(*prepare(recording, s, target).kernel));
  CHECK(passes["add_sites"] == 1);
  CHECK(passes["split_tasks"] == 4);
  CHECK(lowered[0] != lowered[1]);
  CHECK(lowered[0] == lowered[3]);
  CHECK(print(recording.kernel()) == recorded);

  ir::Signature checked = plain, overlapping = plain;
  checked.modes.checked = true;
  for (ir::Signature::Field& f : overlapping.fields) f.alias_class = 0;
  for (const ir::Signature& s : {checked, overlapping, checked}) prepare(recording, s, target);
  CHECK(passes["add_sites"] == 3);

  // What is kept is as if it had been made for that signature alone.
  Recording fresh(ir::parse(test::scale_and_sum));
  CHECK(print(*prepare(fresh, strided, target).kernel) == lowered[1]);
  Recording another(ir::parse(test::scale_and_sum));
  CHECK(print(*prepare(another, wide, target).kernel) == lowered[2]);
}

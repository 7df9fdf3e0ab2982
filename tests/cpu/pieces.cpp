// Where the CPU's code is cut into functions.
#include "quern/ir/text.h"
#include "tests/backend/harness/harness.h"

using namespace quern;

namespace {

/// A loop over x that keeps `alive` values, of which each operation takes one on. More operations
/// than that are not in it, but for some twenty.
std::string chains(int alive, int operations) {
  auto name = [](int k) { return "%v" + std::to_string(k); };
  std::string body = R"(
      %o = mul %i, %four : i64
      %px = offset %x, %o : address)";
  for (int k = 0; k < alive; k++)
    body += "\n      " + name(k) + " = read<1> %px : f32\n      write<1> %px, " + name(k);
  for (int k = 0; k < operations; k++)
    body += "\n      " + name(k + alive) + " = mul " + name(k) + ", " + name(k + 1) + " : f32";
  for (int k = 0; k < alive; k++) body += "\n      write<1> %px, " + name(operations + k);
  return test::each(test::driver("cpu"), R"(
    %x = arg<64> : address
    %four = constant<4> : i64)",
                    body);
}

/// The functions that the code of a loop was cut into.
int pieces(const std::string& text) {
  auto kernel = ir::parse(text);
  runtime::Driver& driver = test::driver("cpu");
  const std::string code = test::compiler(driver).listing(*kernel, driver.target(), "llvm");
  int count = 0;
  for (size_t at = code.find("define internal"); at != std::string::npos;
       at = code.find("define internal", at + 1))
    count++;
  return count;
}

}  // namespace

TEST_CASE("code is cut early where few values pass from piece to piece, and late where many do") {
  CHECK(pieces(chains(4, 1'000)) == 0);
  CHECK(pieces(chains(4, 4'000)) == 3);  // of 1,500 operations
  CHECK(pieces(chains(30, 4'000)) == 0);
  CHECK(pieces(chains(30, 11'000)) == 0);
  CHECK(pieces(chains(30, 101'000)) == 17);  // of 6,000
}

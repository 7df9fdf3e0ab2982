// Where the CPU's code is cut into functions.
#include <numeric>
#include <sstream>
#include <string>

#include "quern/ir/text.h"
#include "tests/backend/harness/harness.h"

using namespace quern;

namespace {

/// A loop over x that keeps `alive` values, of which each operation takes one on. More operations
/// than that are not in it, but for some twenty.
std::string chains(int alive, int operations, const std::string& before = {},
                   const std::string& first = {}, const std::string& last = {}) {
  auto name = [](int k) { return "%v" + std::to_string(k); };
  std::string body = R"(
      %o = mul %i, %four : i64
      %px = offset %x, %o : address)" +
                     first;
  for (int k = 0; k < alive; k++)
    body += "\n      " + name(k) + " = read<1> %px : f32\n      write<1> %px, " + name(k);
  for (int k = 0; k < operations; k++)
    body += "\n      " + name(k + alive) + " = mul " + name(k) + ", " + name(k + 1) + " : f32";
  for (int k = 0; k < alive; k++) body += "\n      write<1> %px, " + name(operations + k);
  body += last;
  return test::each(test::driver("cpu"), R"(
    %x = arg<64> : address
    %four = constant<4> : i64)" + before,
                    body);
}

std::string listing(const std::string& text) {
  auto kernel = ir::parse(text);
  runtime::Driver& driver = test::driver("cpu");
  return test::compiler(driver).listing(*kernel, driver.target(), "llvm");
}

/// The functions that the code of a loop was cut into.
int pieces(const std::string& text) {
  const std::string code = listing(text);
  int count = 0;
  for (size_t at = code.find("define internal"); at != std::string::npos;
       at = code.find("define internal", at + 1))
    count++;
  return count;
}

/// Where the arrays of a loop's code stand that was cut.
struct Arrays {
  int of_pieces = 0, of_tasks = 0;
  bool operator==(const Arrays&) const = default;
};
Arrays arrays(const std::string& text) {
  Arrays found;
  bool is_piece = false;
  std::istringstream lines(listing(text));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("define ")) is_piece = line.starts_with("define internal");
    if (line.find("alloca [") != std::string::npos) (is_piece ? found.of_pieces : found.of_tasks)++;
  }
  return found;
}

}  // namespace

TEST_CASE("code is cut early where few values pass from piece to piece, and late where many do") {
  CHECK(pieces(chains(4, 1'000)) == 0);
  CHECK(pieces(chains(4, 4'000)) == 3);  // of 1,500 operations
  CHECK(pieces(chains(30, 4'000)) == 0);
  CHECK(pieces(chains(30, 11'000)) == 0);
  CHECK(pieces(chains(30, 101'000)) == 17);  // of 6,000
}

TEST_CASE("an array that is made in a piece, and that no other uses, is the piece's own") {
  const std::string array = "\n      %a = slot<64> : slot f32";
  const std::string mirrors = R"(
      %last = constant<63> : i64
      %at = bit_and %i, %last : i64
      %in = read<1> %px : f32
      put %a, %at, %in
      %mirrored = bit_xor %at, %last : i64
      %out = get %a, %mirrored : f32
      write<1> %px, %out)";
  CHECK(arrays(chains(4, 4'000, "", array + mirrors)) == Arrays{.of_pieces = 1, .of_tasks = 0});
  // All iterations share it.
  CHECK(arrays(chains(4, 4'000, array, mirrors)) == Arrays{.of_pieces = 0, .of_tasks = 1});
}

TEST_CASE("arrays that several pieces use are one, of which each is passed one place") {
  const std::string made = R"(
    %a = slot<64> : slot f32
    %b = slot<64> : slot f32
    %c = slot<32> : slot f64
    %last = constant<63> : i64
    %less = constant<31> : i64)";
  const std::string fills = R"(
      %at = bit_and %i, %last : i64
      %in = read<1> %px : f32
      %twice = add %in, %in : f32
      put %a, %at, %in
      put %b, %at, %twice
      %wide = convert %in : f64
      %at_c = bit_and %i, %less : i64
      put %c, %at_c, %wide)";
  const std::string reads = R"(
      %of_a = get %a, %at : f32
      %of_b = get %b, %at : f32
      %of_c = get %c, %at_c : f64
      %narrow = convert %of_c : f32
      %ab = add %of_a, %of_b : f32
      %abc = add %ab, %narrow : f32
      write<1> %px, %abc)";
  const std::string text = chains(4, 4'000, made, fills, reads);
  CHECK(arrays(text) == Arrays{.of_pieces = 0, .of_tasks = 1});
  runtime::Driver& driver = test::driver("cpu");
  std::vector<float> expected(200);
  std::iota(expected.begin(), expected.end(), 1.0f);
  const test::Buffer x(driver, expected);
  test::Program(driver, text).entry(0, x).run(0, 150, 7);
  for (size_t k = 0; k < 150; k++) expected[k] *= 4;
  CHECK(x.read<float>() == expected);
}

#include <random>

#include "quern/ir/abi.h"
#include "tests/catch.h"

using namespace quern::ir;

namespace {

/// As lowered code does it.
uint32_t quotient(uint32_t n, uint64_t word) {
  const uint64_t high = uint64_t(uint32_t(n << 1)) * uint32_t(word) >> 32;
  return uint32_t(high) >> uint32_t(word >> 32);
}

}  // namespace

TEST_CASE("a product with the reciprocal is the quotient") {
  constexpr uint32_t top = (1u << 31) - 1;
  std::mt19937 random(1);
  std::vector<uint32_t> divisors = {top, top - 1, 3, 5, 7, 641, 65535, 65537};
  for (uint32_t d = 1; d < 2000; d++) divisors.push_back(d);
  for (int k = 1; k < 31; k++)
    for (uint32_t d : {(1u << k) - 1, 1u << k, (1u << k) + 1}) divisors.push_back(d);
  for (int k = 0; k < 20'000; k++)
    divisors.push_back(uint32_t(std::max<uint64_t>(1, random() >> (1 + k % 31))));
  size_t wrong = 0;
  for (uint32_t d : divisors) {
    const uint64_t word = abi::reciprocal(d);
    auto check = [&](uint32_t n) { wrong += quotient(n, word) != n / d; };
    for (uint32_t n : {0u, 1u, d - 1, d, top - 1, top}) check(n);
    for (int k = 0; k < 50; k++) {
      // Just below and at a multiple, where an error of the product shows first.
      const uint32_t multiple = d * uint32_t(1 + random() % (top / d));
      check(multiple);
      check(multiple - 1);
      check(uint32_t(random() >> 1));
    }
  }
  CHECK(wrong == 0);
  CHECK(abi::reciprocal(0) == 0);
  CHECK(abi::reciprocal(uint64_t(1) << 31) == 0);
}

TEST_CASE("an element task's reciprocals are those of the axes walked fastest") {
  Task task;
  task.rank = 3;
  const uint64_t extents[] = {3, 5, 7}, flat[] = {1ull << 16, 1ull << 15};
  auto of = [&](uint8_t innermost) {
    task.innermost = innermost;
    return abi::reciprocals(task.innermost, extents);
  };
  CHECK(of(2) == std::array{abi::reciprocal(7), abi::reciprocal(5)});
  CHECK(of(1) == std::array{abi::reciprocal(5), abi::reciprocal(7)});
  CHECK(of(0) == std::array{abi::reciprocal(3), abi::reciprocal(7)});
  task.innermost = 1;
  CHECK(abi::reciprocals(task.innermost, flat) ==
        std::array<uint64_t, 2>{0, 0});  // 2^31 iterations
}

TEST_CASE("combinations make one row of all, each row once") {
  CHECK(abi::combinations(0).empty());
  CHECK(abi::total_rows(0) == 0);
  CHECK(abi::combinations(1).size() == 1);
  CHECK(abi::total_rows(1) == 33);                    // 32 lanes, their value
  CHECK(abi::total_rows(1025) == 64 + 2 + 32 + 1);    // two chunks
  CHECK(abi::combinations(1024 * 1024).size() == 3);  // 1024 values are one chunk
  CHECK(abi::combinations(1024 * 1024 + 1).size() == 5);
  for (uint64_t n : {uint64_t(1), uint64_t(1024), uint64_t(1025), uint64_t(5'000'000),
                     uint64_t(1) << 31, (uint64_t(1) << 40) + 7}) {
    uint64_t left = abi::lanes(n), at = 0;
    bool halves = true;
    for (const abi::Combination& c : abi::combinations(n)) {
      CHECK(c.halves == halves);
      CHECK(c.first_row == at);
      CHECK(c.rows == left);
      CHECK(c.threads == (halves ? left / 32 : (left + 1023) / 1024 * 32));
      at += left;
      left = c.threads;
      halves = !halves;
    }
    CHECK(left == 1);
    CHECK(abi::total_rows(n) == at + 1);
    CHECK(abi::total_rows(n) < n / 31 + 200);
  }
}

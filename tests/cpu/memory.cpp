#include "backends/cpu/memory.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <vector>

#include "backends/llvm/sanitizer.h"
#include "quern/error.h"
#include "tests/catch.h"

using quern::cpu::Memory;

namespace {
constexpr uint64_t mib = 1 << 20;
/// With the address sanitizer all blocks are the C library's.
constexpr bool keeps = quern::codegen::own_sanitizer != quern::codegen::Sanitizer::address;
}  // namespace

TEST_CASE("a large block is taken anew for what is about its size") {
  if (!keeps) {
    SUCCEED("blocks are those of the C library");
    return;
  }
  Memory memory(1 << 30);
  void* at = memory.allocate(40 * mib);
  std::memset(at, 1, 40 * mib);
  memory.release(at);
  CHECK(memory.kept() >= 40 * mib);
  void* small = memory.allocate(8 * mib);  // would waste most of it
  CHECK(memory.kept() >= 40 * mib);
  void* again = memory.allocate(36 * mib);
  CHECK(memory.kept() == 0);
  std::memset(again, 2, 36 * mib);
  memory.release(again);
  memory.release(small);
  CHECK(memory.kept() >= 48 * mib);
}

TEST_CASE("blocks of one size serve each other whatever their starts") {
  if (!keeps) {
    SUCCEED("blocks are those of the C library");
    return;
  }
  Memory memory(1 << 30);
  for (int k = 0; k < 50; k++) {
    void* at = memory.allocate(2 * mib);
    CHECK(reinterpret_cast<uintptr_t>(at) % 64 == 0);
    std::memset(at, k, 2 * mib);
    memory.release(at);
    CHECK(memory.kept() < 3 * mib);
  }
}

TEST_CASE("what is kept is bounded, and gone where memory is wanted") {
  if (!keeps) {
    SUCCEED("blocks are those of the C library");
    return;
  }
  Memory memory(200 * mib);
  std::vector<void*> all;
  for (uint64_t k = 0; k < 6; k++) all.push_back(memory.allocate((20 + k) * mib));
  for (void* at : all) memory.release(at);
  CHECK(memory.kept() >= 135 * mib);
  void* most =
      memory.allocate(190 * mib);  // of another size than any, and more than is left beside them
  CHECK(memory.kept() <= 10 * mib);
  CHECK_THROWS_AS(memory.allocate(20 * mib), quern::Error);
  memory.release(most);
  memory.release(memory.allocate(20 * mib));

  Memory large(uint64_t(4) << 30);
  for (int k = 0; k < 3; k++) {
    std::vector<void*> some;
    for (uint64_t m = 0; m < 20; m++) some.push_back(large.allocate((10 + 5 * m) * mib));
    for (void* at : some) large.release(at);
    CHECK(large.kept() <= Memory::kept_limit);
  }
  void* huge = large.allocate(Memory::kept_limit + mib);
  const uint64_t kept = large.kept();
  large.release(huge);
  CHECK(large.kept() == kept);
}

TEST_CASE("no memory is asked for where there cannot be any") {
  Memory memory(UINT64_MAX);
  CHECK_THROWS_AS(memory.allocate(UINT64_MAX - 100), quern::Error);
  CHECK_THROWS_AS(memory.allocate(UINT64_MAX / 2), quern::Error);
}

TEST_CASE("small blocks are taken anew, and lie apart") {
  Memory memory(1 << 30);
  const uint64_t sizes[] = {1, 64, 65, 500, 2048, 2049};
  struct Block {
    unsigned char* at;
    uint64_t bytes;
  };
  std::vector<Block> all;
  for (int round = 0; round < 3; round++) {
    for (int k = 0; k < 5000; k++) {
      const uint64_t bytes = sizes[size_t(k) % std::size(sizes)];
      auto* at = static_cast<unsigned char*>(memory.allocate(bytes));
      CHECK(reinterpret_cast<uintptr_t>(at) % 64 == 0);
      std::memset(at, k % 251, bytes);
      all.push_back({at, bytes});
    }
    // Every second one goes, so that what comes next fills gaps.
    std::vector<Block> left;
    for (size_t k = 0; k < all.size(); k++) {
      const auto [at, bytes] = all[k];
      const unsigned char value = *at;
      bool is_whole = true;
      for (uint64_t b = 0; b < bytes; b++) is_whole &= at[b] == value;
      CHECK(is_whole);
      if (k % 2)
        memory.release(at);
      else
        left.push_back(all[k]);
    }
    all = std::move(left);
  }
  for (const Block& block : all) memory.release(block.at);
}

TEST_CASE(
    "blocks between small ones and whole pages are taken anew, a few bytes larger or smaller") {
  if (!keeps) {
    SUCCEED("blocks are those of the C library");
    return;
  }
  for (uint64_t bytes = 2050; bytes < 1'100'000; bytes += 1 + bytes / 9) {
    INFO(bytes << " bytes");
    Memory memory(1 << 30);
    auto* at = static_cast<std::byte*>(memory.allocate(bytes));
    CHECK(reinterpret_cast<uintptr_t>(at) % 64 == 0);
    std::memset(at, 1, bytes);
    memory.release(at);
    CHECK(memory.kept() >= bytes);
    void* again = memory.allocate(bytes - 1);
    CHECK(memory.kept() == 0);
    std::memset(again, 2, bytes - 1);
    memory.release(again);
  }
}

TEST_CASE("blocks of middle sizes that are kept are bounded, and gone where memory is wanted") {
  if (!keeps) {
    SUCCEED("blocks are those of the C library");
    return;
  }
  Memory memory(100 * mib);
  std::vector<void*> all;
  for (int k = 0; k < 180; k++) all.push_back(memory.allocate(mib / 2));
  CHECK_THROWS_AS(memory.allocate(11 * mib), quern::Error);
  for (void* at : all) memory.release(at);
  CHECK(memory.kept() <= Memory::kept_middle_limit);
  CHECK(memory.kept() > Memory::kept_middle_limit - mib);
  void* most = memory.allocate(99 * mib);
  CHECK(memory.kept() == 0);
  memory.release(most);
}

TEST_CASE("a block is released once, and nothing else is") {
  Memory memory(1 << 20);
  for (const uint64_t bytes : {40, 4000}) {
    auto* at = static_cast<std::byte*>(memory.allocate(bytes));
    CHECK_THROWS_AS(memory.release(at + 8), quern::InternalError);
    memory.release(at);
    CHECK_THROWS_AS(memory.release(at), quern::InternalError);
  }
}

TEST_CASE("small blocks count, too") {
  Memory memory(1000);
  void* at = memory.allocate(900);
  CHECK_THROWS_AS(memory.allocate(200), quern::Error);
  memory.release(at);
  memory.release(memory.allocate(900));
}

TEST_CASE("copies bring what they are to and nothing beside it, kept ones too") {
  const auto address = [](const std::byte* at) { return reinterpret_cast<uintptr_t>(at); };
  for (uint64_t bytes : {0u, 1u, 63u, 64u, 16383u, 16384u, 16500u, 70'001u, 1'100'003u})
    for (uint64_t from : {0u, 1u, 24u})
      for (uint64_t to : {0u, 3u, 16u, 63u})
        for (int kept : {0, 1, 2, 3}) {  // together; 0: it is not
          INFO(bytes << " bytes from " << from << " to " << to << ", kept: " << kept);
          std::vector<std::byte> source(from + bytes), target(to + bytes + 100, std::byte{7});
          for (size_t k = 0; k < source.size(); k++) source[k] = std::byte(k * 37 + k / 251);
          std::vector<std::byte> expected = target;
          std::copy(source.begin() + ptrdiff_t(from), source.end(),
                    expected.begin() + ptrdiff_t(to));
          std::vector<quern::runtime::Command> parts;
          for (uint64_t k = 0; k < uint64_t(kept); k++) {
            const uint64_t first = bytes * k / uint64_t(kept),
                           end = bytes * (k + 1) / uint64_t(kept);
            parts.push_back(quern::runtime::Copy{address(target.data() + to + first),
                                                 address(source.data() + from + first), end - first,
                                                 true});
          }
          kept > 0 ? quern::cpu::copy_kept(parts)
                   : quern::cpu::copy(target.data() + to, source.data() + from, bytes);
          CHECK(target == expected);
        }
}

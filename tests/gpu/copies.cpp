// Memory, copies and staging.
#include <cstring>

#include "quern/error.h"
#include "tests/gpu/support.h"

using namespace quern;
using namespace quern::test;
using runtime::Address;
using runtime::Command;
using runtime::Copy;
using runtime::Fill;

TEST_CASE_METHOD(OnEachVendor, "what is uploaded comes back, whatever its size") {
  auto driver = open();
  uint64_t piece = gpu::Staging::piece_bytes;
  for (uint64_t bytes : {uint64_t(1), uint64_t(7), uint64_t(4096), piece - 1, piece, piece + 1,
                         4 * piece, 5 * piece + 3, uint64_t(100) << 20}) {
    Address at = driver->allocate(bytes);
    CHECK(at % 64 == 0);
    std::vector<std::byte> data = numbers(bytes);
    driver->upload(at, data);
    CHECK((read(*driver, at, bytes) == data));
    driver->release(at);
  }
}

TEST_CASE_METHOD(OnEachVendor, "an upload reads the host's memory before it returns") {
  auto driver = open();
  for (uint64_t bytes : {uint64_t(64), 3 * gpu::Staging::piece_bytes}) {
    Address at = driver->allocate(bytes);
    std::vector<std::byte> data = numbers(bytes), kept = data;
    driver->upload(at, data);
    std::ranges::fill(data, std::byte(0));
    CHECK((read(*driver, at, bytes) == kept));
    driver->release(at);
  }
}

TEST_CASE_METHOD(OnEachVendor, "each piece of a large copy has an event of its own") {
  auto driver = open();
  const uint64_t bytes = 5 * gpu::Staging::piece_bytes;
  Address at = driver->allocate(bytes);
  std::vector<std::byte> data = numbers(bytes);
  driver->upload(at, data);
  CHECK(recorder.calls["event_record"] == 5);
  CHECK(recorder.calls["event_synchronize"] == 1);  // the ring holds four
  CHECK((read(*driver, at, bytes) == data));
  CHECK(recorder.calls["event_record"] == 10);
  CHECK(recorder.calls["event_synchronize"] == 1 + 2 + 5);  // room for two pieces, then the pieces
  driver->release(at);
}

TEST_CASE_METHOD(OnEachVendor, "many small uploads do not wait for the device") {
  auto driver = open();
  Address at = driver->allocate(1 << 20);
  int before = recorder.calls["event_synchronize"];
  for (uint32_t k = 0; k < 1000; k++) driver->upload(at + 512 * k, std::as_bytes(std::span(&k, 1)));
  CHECK(recorder.calls["event_synchronize"] == before);
  CHECK(recorder.calls["event_record"] <= 1000 / 32);  // an event costs as much as the upload
  for (uint32_t k : {0u, 1u, 500u, 999u}) CHECK(read_word(*driver, at + 512 * k) == k);
  driver->release(at);
}

TEST_CASE_METHOD(OnEachVendor, "fills and copies run in order, also onto themselves") {
  auto driver = open();
  uint64_t n = 3000;
  Address a = driver->allocate(n), b = driver->allocate(n);
  std::vector<std::byte> data = numbers(n);
  driver->upload(a, data);
  Command commands[] = {Copy{b, a, n},         Fill{a, 400, 0x01020304},
                        Copy{a + 600, b, 100}, Copy{b + 13, b + 2, 801},
                        Copy{b, b, n},         Copy{a, b, 0}};
  driver->wait(driver->submit(commands));
  std::vector<std::byte> expected_b = data;
  std::memmove(&expected_b[13], &expected_b[2], 801);
  CHECK((read(*driver, b, n) == expected_b));
  std::vector<std::byte> expected_a = data;
  for (size_t k = 0; k < 400; k++) expected_a[k] = std::byte(4 - k % 4);
  std::memcpy(&expected_a[600], &data[0], 100);
  CHECK((read(*driver, a, n) == expected_a));
  driver->release(a);
  driver->release(b);
}

namespace {
/// Calls of the library that copies took: copies of its own, and launches of the kernel for that.
struct Taken {
  int copies, launches;
};
}  // namespace

TEST_CASE_METHOD(OnEachVendor, "small copies that come together are one launch, by CUDA") {
  auto driver = open();
  const bool has_kernel = std::string(vendor.name) == "CUDA";
  constexpr uint64_t n = 80, bytes = 512 * n;
  const Address from = driver->allocate(bytes), to = driver->allocate(bytes);
  const std::vector<std::byte> data = numbers(bytes);
  driver->upload(from, data);
  const auto submit = [&](const std::vector<Command>& commands) -> Taken {
    const int copies = recorder.calls["copy"], launches = recorder.calls["launch"];
    driver->submit(commands);
    return {recorder.calls["copy"] - copies, recorder.calls["launch"] - launches};
  };
  const auto expect = [&](const std::vector<Command>& commands, Taken with_kernel) {
    const Taken taken = submit(commands);
    CHECK(taken.copies == (has_kernel ? with_kernel.copies : int(commands.size())));
    CHECK(taken.launches == (has_kernel ? with_kernel.launches : 0));
  };
  const auto piece = [&](uint64_t k, uint64_t size) {
    return Copy{to + 512 * k, from + 512 * k, size};
  };
  std::vector<std::byte> expected(bytes, std::byte(0));
  const Command zero = Fill{to, bytes, 0};
  driver->submit({&zero, 1});
  const auto copied = [&](uint64_t k, uint64_t size) {
    std::memcpy(&expected[512 * k], &data[512 * k], size);
  };

  expect({piece(0, 512)}, {1, 0});  // alone it does not bring the kernel in
  expect({piece(1, 512), piece(2, 4), piece(3, 260)}, {0, 1});
  expect({piece(4, 8)}, {0, 1});
  expect({piece(5, 3), piece(6, 512), piece(7, 512)}, {1, 1});  // 3 bytes are no words
  expect({Copy{to + 512 * 8 + 2, from + 512 * 8 + 2, 4}}, {1, 0});
  for (auto [k, size] : {std::pair<uint64_t, uint64_t>{0, 512},
                         {1, 512},
                         {2, 4},
                         {3, 260},
                         {4, 8},
                         {5, 3},
                         {6, 512},
                         {7, 512}})
    copied(k, size);
  std::memcpy(&expected[512 * 8 + 2], &data[512 * 8 + 2], 4);
  CHECK((read(*driver, to, bytes) == expected));

  std::vector<Command> many;  // more than one launch takes
  for (uint64_t k = 0; k < n; k++) many.push_back(piece(k, 512));
  expect(many, {0, 3});
  CHECK((read(*driver, to, bytes) == data));
  // Each reads what the one before wrote, or writes what it read: each is a launch, in order.
  expect({Copy{to, to + 512, 512}, Copy{to + 1024, to, 512}, Copy{to + 512, to + 2048, 512},
          Copy{to + 512, to + 1024, 256}},
         {0, 3});
  expected = data;
  std::memcpy(&expected[0], &data[512], 512);
  std::memcpy(&expected[1024], &data[512], 512);
  std::memcpy(&expected[512], &data[2048], 512);
  std::memcpy(&expected[512], &data[512], 256);
  CHECK((read(*driver, to, bytes) == expected));
  driver->release(from);
  driver->release(to);

  constexpr uint64_t large = gpu::Copies::most_bytes + 4;
  const Address a = driver->allocate(2 * large), b = driver->allocate(2 * large);
  const std::vector<std::byte> more = numbers(2 * large);
  driver->upload(a, more);
  expect({Copy{b, a, large}, Copy{b + large, a + large, large - 4}}, {1, 1});
  std::vector<std::byte> got = read(*driver, b, 2 * large - 4);
  CHECK(std::equal(got.begin(), got.end(), more.begin()));
  driver->release(a);
  driver->release(b);
}

TEST_CASE_METHOD(OnEachVendor, "copies go one by one where the kernel for several does not load") {
  auto driver = open();
  const Address at = driver->allocate(4096);
  const std::vector<std::byte> data = numbers(4096);
  driver->upload(at, data);
  recorder.failures["load_module"] = {1, 218};
  for (int k = 0; k < 2; k++) {
    const int copies = recorder.calls["copy"];
    const Command commands[] = {Copy{at, at + 1024, 512}, Copy{at + 512, at + 2048, 512}};
    driver->submit(commands);
    CHECK(recorder.calls["copy"] - copies == 2);
  }
  CHECK(recorder.calls["load_module"] ==
        (std::string(vendor.name) == "CUDA" ? 1 : 0));  // not asked again
  const std::vector<std::byte> got = read(*driver, at, 1024);
  CHECK(std::equal(got.begin(), got.begin() + 512, data.begin() + 1024));
  CHECK(std::equal(got.begin() + 512, got.end(), data.begin() + 2048));
  driver->release(at);
}

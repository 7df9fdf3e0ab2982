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

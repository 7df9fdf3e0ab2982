// From a kernel as users write it to the launch in the vendor's library, on stand-ins for the
// libraries of CUDA and ROCm: what a GPU would be given is looked at, word by word.
#include <algorithm>
#include <bit>
#include <cstring>

#include "quern/ir/abi.h"
#include "quern/runtime/device.h"
#include "tests/paths/support.h"
#include "tests/targets/code_object.h"

namespace qn = quern;
using namespace qn::lang;
using qn::test::Path;

namespace {

std::vector<uint64_t> words_of(const std::vector<std::byte>& bytes) {
  std::vector<uint64_t> words(bytes.size() / 8);
  std::memcpy(words.data(), bytes.data(), 8 * words.size());
  return words;
}

size_t count(const std::vector<uint64_t>& words, uint64_t word) {
  return size_t(std::count(words.begin(), words.end(), word));
}

}  // namespace

TEST_CASE("a kernel arrives in the vendor's library with its code, arguments and grid") {
  const std::string backend = GENERATE(as<std::string>(), "cuda", "rocm");
  INFO(backend);
  Path path(backend);
  // The argument block: a scalar; two fields, each with base and stride, extent, first and origin.
  const size_t head_words = qn::ir::abi::head_bytes / 8, block_words = head_words + 1 + 2 * 5;
  path.log.first_bytes = 8 * block_words;
  const int n = 100'000;
  std::vector<float> hx(n, 3.0f), back(n);
  qn::Field<float> x{path.device, {n}}, y{path.device, {n}};
  x.copy_from(hx);
  qn::Kernel scale = [&](F32 a) {
    for (auto i : x) y[i] = a * x[i];
  };
  scale(2.5f);
  path.device.synchronize();
  x.copy_to(back);
  CHECK(back == hx);

  REQUIRE(path.log.launches.size() == 1);
  const qn::recording::Launch& launch = path.log.launches[0];
  CHECK(launch.function == "task_0");
  CHECK(launch.words[1] == 1);  // no guard; asks, as a check of its own may fail
  CHECK(launch.words[2] == uint64_t(n));
  CHECK(launch.block[0] == 256);
  CHECK(launch.grid[0] == 391);  // a thread for each
  CHECK(launch.shared_bytes == 0);

  auto block = words_of(launch.first);
  REQUIRE(block.size() == block_words);
  std::vector<uint64_t> bindings(block.begin() + long(head_words), block.end());
  CHECK(count(bindings, std::bit_cast<uint32_t>(2.5f)) == 1);
  CHECK(count(bindings, sizeof(float)) == 2);
  CHECK(count(bindings, uint64_t(n)) == 2);
  // One of the bases leads to what was copied to x.
  size_t leads_to_x = 0;
  for (uint64_t word : bindings) {
    if (word < 1 << 20) continue;  // no address
    if (word == std::bit_cast<uint32_t>(2.5f)) continue;
    float first = 0;
    std::memcpy(&first, reinterpret_cast<const void*>(word), sizeof first);
    leads_to_x += first == 3.0f;
  }
  CHECK(leads_to_x == 1);

  if (backend == "cuda") {
    CHECK(launch.module.find(".target sm_90") != std::string::npos);
    CHECK(launch.module.find(".entry task_0(") != std::string::npos);
    CHECK(launch.module.find(".b8 task_0_param_0[" + std::to_string(8 * block_words) + "]") !=
          std::string::npos);
  } else {
    qn::ir::Kernel shape;
    shape.name = "scale";
    shape.tasks.resize(1);
    shape.bindings.resize(3);
    for (size_t k : {1, 2}) {
      shape.bindings[k].kind = qn::ir::Binding::field;
      shape.bindings[k].rank = 1;
      shape.bindings[k].components.resize(1);
    }
    auto bytes = std::as_bytes(std::span(launch.module));
    qn::runtime::Target target;
    target.isa = "amdgcn-amd-amdhsa gfx942 ";
    target.traits.value_bytes = 4064;
    target.traits.value_tasks = 7;
    CHECK(qn::test::fault_of_code_object({bytes.begin(), bytes.end()}, shape, target) == "");
  }
}

TEST_CASE("a launch asks whether a check has failed only where one may have") {
  const std::string backend = GENERATE(as<std::string>(), "cuda", "rocm");
  INFO(backend);
  Path path(backend);
  qn::Field<float> x{path.device, {100}};
  qn::Kernel plain{[&] {
                     for (auto i : x) x[i] = 1;
                   },
                   qn::Options{.checked = false}};
  qn::Kernel checks = [&](I32 a) {
    for (auto i : x) check(i < a, "few");
  };
  auto asks = [&] { return path.log.launches.back().words[1] & 1; };
  plain();
  path.device.synchronize();
  CHECK(asks() == 0);
  checks(100);
  plain();  // behind one that nobody has asked about
  path.device.synchronize();
  REQUIRE(path.log.launches.size() == 3);
  CHECK((path.log.launches[1].words[1] & 1) == 1);
  CHECK(asks() == 1);
  plain();
  path.device.synchronize();
  CHECK(asks() == 0);
}

TEST_CASE("loops that depend on each other are launched in order on one stream") {
  Path path(GENERATE(as<std::string>(), "cuda", "rocm"));
  qn::Field<float> x{path.device, {1000}}, y{path.device, {1000}};
  qn::Kernel three = [&] {
    for (auto i : x) x[i] = 1.0f;
    for (auto i : y) y[i] = x[999 - i];
    for (auto i : x) x[i] = y[i];
  };
  three();
  path.device.synchronize();
  REQUIRE(path.log.launches.size() == 3);
  for (size_t k = 0; k < 3; k++) {
    CHECK(path.log.launches[k].function == "task_" + std::to_string(k));
    CHECK(path.log.launches[k].words[2] == 1000);
  }
}

TEST_CASE("many loops share an argument block in memory, and come again as a graph") {
  Path path(GENERATE(as<std::string>(), "cuda", "rocm"));
  qn::Field<float> x{path.device, {1000}};
  qn::Kernel eight = [&](F32 a) {
    for (int k = 0; k < 8; k++)
      for (auto i : x) x[999 - i] = a * x[i] + float(k);
  };
  const int uploads = path.log.calls["upload"];
  for (float a : {1.0f, 2.0f, 3.0f}) eight(a);  // without a wait between
  CHECK(path.log.calls["upload"] == uploads + 3);
  path.device.synchronize();
  REQUIRE(path.log.launches.size() == 24);
  for (size_t l = 0; l < 24; l++) {
    const qn::recording::Launch& launch = path.log.launches[l];
    CHECK(launch.function == "task_" + std::to_string(l % 8));
    CHECK(launch.words[0] == path.log.launches[0].words[0]);
    CHECK(launch.in_graph == (l >= 8));
  }
  if (path.is_cuda)
    CHECK(path.log.launches[0].module.find(".param .u64 task_0_param_0") != std::string::npos);
}

TEST_CASE("2^31 iterations want code of their own, 2^31 - 1 do not") {
  Path path(GENERATE(as<std::string>(), "cuda", "rocm"));
  qn::Field<int> x{path.device, {16}};
  qn::Kernel k = [&](I32 n, I32 m) {
    for (auto [i, j] : grid(n, m)) If(i == j) atomic_add(x[i % 16], 1);
  };
  k(1, INT32_MAX);
  k(1 << 15, 1 << 16);
  k(7, 5);
  path.device.synchronize();
  REQUIRE(path.log.launches.size() == 3);
  const auto& launches = path.log.launches;
  CHECK(launches[0].words[2] == INT32_MAX);
  CHECK(launches[1].words[2] == 1ull << 31);
  CHECK(launches[0].words[3] == qn::ir::abi::reciprocal(INT32_MAX));
  CHECK(launches[1].words[3] == 0);
  CHECK(launches[2].words[3] == qn::ir::abi::reciprocal(5));
  CHECK(launches[0].module != launches[1].module);
  CHECK(launches[0].module == launches[2].module);
}

TEST_CASE("a sum in a fixed order is combined level by level") {
  Path path(GENERATE(as<std::string>(), "cuda", "rocm"));
  qn::Field<float> x{path.device, {1024 * 1024 + 1}};
  qn::Kernel k = [&] {
    Var<float> s = 0;
    for (auto i : deterministic(x)) s += x[i];
    return s;
  };
  k();
  path.device.synchronize();
  struct Launch {
    const char* task;
    uint64_t iterations, first_row, rows;
  };
  // 1,025 chunks of 32 lanes; their 1,025 values, in 2 chunks; those 2 values, in one.
  const std::vector<Launch> want = {{"task_0", 1048577, 0, 0},   {"task_2", 1025, 0, 32800},
                                    {"task_1", 64, 32800, 1025}, {"task_2", 2, 33825, 64},
                                    {"task_1", 32, 33889, 2},    {"task_2", 1, 33891, 32}};
  REQUIRE(path.log.launches.size() == want.size() + 1);
  for (size_t l = 0; l < want.size(); l++) {
    INFO(l);
    CHECK(path.log.launches[l].function == want[l].task);
    CHECK(path.log.launches[l].words[2] == want[l].iterations);
    CHECK(path.log.launches[l].words[3] == want[l].first_row);
    CHECK(path.log.launches[l].words[4] == want[l].rows);
  }
  CHECK(path.log.launches[0].block[0] == 256);
  CHECK(path.log.launches[0].grid[0] == 129);  // 32,800 lanes
  CHECK(path.log.launches.back().function == "task_3");
  CHECK(path.log.launches.back().words[2] == 33891 + 32 + 1);  // rows in all
  CHECK(path.log.launches.back().grid[0] == 1);
}

TEST_CASE("a second device is a device of its own") {
  const std::string backend = GENERATE(as<std::string>(), "cuda", "rocm");
  Path path(backend);
  CHECK(std::string(path.device.name()).find(backend) != std::string::npos);
  CHECK_THROWS_AS(qn::Device((backend + ":7").c_str()), qn::Error);
}

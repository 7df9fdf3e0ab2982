// What nvcc makes of CUDA runs on the machine and gives what C++ gives.
#include <bit>
#include <cmath>

#include "tests/gpu/ptx/rounding.h"
#include "tests/ptx/nvcc.h"
#include "tests/ptx/support.h"

using namespace quern;
using test::Memory;

namespace {

class Kernels {
 public:
  explicit Kernels(const std::string& text)
      : image_(ptx::load(text, [](const ptx::Variable&) -> uint64_t { throw 0; })) {}
  void run(const char* name, Memory& memory, uint64_t in, uint64_t out, unsigned blocks,
           unsigned threads, bool is_watched) const {
    const ptx::Code* code = image_->find(name);
    REQUIRE(code);
    ptx::Shape shape;
    shape.grid[0] = blocks;
    shape.block[0] = threads;
    const uint64_t parameters[] = {in, out};
    const auto bytes = std::as_bytes(std::span(parameters));
    shape.parameters.assign(bytes.begin(), bytes.end());
    ptx::Schedule schedule{ptx::Schedule::shuffled, ptx::Schedule::shuffled, 4, true, 3};
    schedule.watched = is_watched;
    ptx::run(*image_, *code, shape, memory, schedule, nullptr);
  }

 private:
  std::unique_ptr<ptx::Image> image_;
};

std::vector<uint32_t> numbers(size_t count) {
  std::vector<uint32_t> v(count);
  uint32_t x = 12345;
  for (uint32_t& n : v) n = x = x * 1664525 + 1013904223;
  return v;
}

uint32_t reversed(uint32_t a) {
  uint32_t out = 0;
  for (int k = 0; k < 32; k++) out |= (a >> k & 1) << (31 - k);
  return out;
}

uint32_t integer(uint32_t a, uint32_t b) {
  const auto s = int32_t(a);
  const uint64_t wide = uint64_t(a) * b;
  switch (a % 7) {
    case 0: return a / b;
    case 1: return a % b;
    case 2: return uint32_t(s / int32_t(b >> 3 | 1));
    case 3:
      return uint32_t(wide >> 20) ^ uint32_t(std::popcount(a)) ^ uint32_t(std::countl_zero(b));
    case 4: return reversed(a) + uint32_t(wide % 1000003);
    case 5: return uint32_t(int8_t(a)) + uint16_t(b) + ((b & 0xffff) << 16 | (a & 0xffff));
    default: return uint32_t((uint64_t(b) << 32 | a) >> 19) - uint32_t(std::min(s, int32_t(b)));
  }
}

double number(float x, float y, unsigned k) {
  const double d = double(x) / double(y) + std::sqrt(std::fabs(double(x)));
  volatile float product = x * y, quotient = x / y, sum = product + quotient;
  volatile float f = sum + std::sqrt(std::fabs(y));
  const int i = int(x * 1000), j = int(std::nearbyint(y));
  return d + double(f) + double(i) + double(j) + double(ptx::half_of(x, ptx::Rounding::nearest)) +
         double(std::fmin(x, y)) + double(float(0x123456789abull * k)) +
         std::fma(d, 3.0, double(f));
}

}  // namespace

TEST_CASE("kernels that nvcc compiled give what C++ gives") {
  const std::string text = test::compiled_by_nvcc(QUERN_TESTS "/cuda/kernels.cu", "-fmad=false");
  if (text.empty()) return;
  const Kernels kernels(text);
  constexpr unsigned n = 1024;
  const std::vector<uint32_t> words = numbers(n);
  Memory memory;
  const uint64_t in = memory.put(words), out = memory.put(std::vector<uint32_t>(n + 2));

  kernels.run("block_sums", memory, in, out, 4, 256, true);
  for (unsigned b = 0; b < 4; b++) {
    uint32_t sum = 0;
    for (unsigned t = 0; t < 256; t++) sum += words[256 * b + t];
    CHECK(memory.get<uint32_t>(out)[b] == sum);
  }

  std::vector<uint32_t> small(n);
  for (unsigned k = 0; k < n; k++) small[k] = words[k] % 10'000 + 1;
  kernels.run("collatz", memory, memory.put(small), out, 8, 128, true);
  int wrong = 0;
  for (unsigned k = 0; k < n; k++) {
    uint32_t steps = 0;
    for (uint64_t v = small[k]; v > 1; steps++) v = v % 2 ? 3 * v + 1 : v / 2;
    wrong += memory.get<uint32_t>(out)[k] != steps;
  }
  CHECK(wrong == 0);

  const uint64_t fresh = memory.put(std::vector<uint32_t>(n + 2));
  kernels.run("integers", memory, in, fresh, 4, 256, true);
  uint32_t sum = 0, most = 0;
  wrong = 0;
  for (unsigned k = 0; k < n; k++) {
    const uint32_t v = integer(words[k], words[k ^ 1] | 1);
    wrong += memory.get<uint32_t>(fresh)[k] != v;
    sum += v;
    most = std::max(most, v);
  }
  CHECK(wrong == 0);
  CHECK(memory.get<uint32_t>(fresh)[n] == sum);
  CHECK(memory.get<uint32_t>(fresh)[n + 1] == most);

  std::vector<float> x(n);
  for (unsigned k = 0; k < n; k++) x[k] = float(int32_t(words[k])) * 0x1p-24f;
  const uint64_t results = memory.put(std::vector<double>(n));
  kernels.run("floats", memory, memory.put(x), results, 4, 256, true);
  wrong = 0;
  for (unsigned k = 0; k < n; k++)
    wrong += memory.get<double>(results)[k] != number(x[k], x[k ^ 1], k);
  CHECK(wrong == 0);
}

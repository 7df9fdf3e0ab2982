// Large kernels: what they give, and that the time to compile them grows in proportion.
#include "tests/catch.h"

#include <quern/host.h>
#include <quern/quern.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "quern/ir/lower.h"
#include "quern/ir/verify.h"

namespace qn = quern;
using namespace qn::lang;

namespace {

/// Of this thread, or of the process where a driver compiles on threads of its own: what else the
/// machine does hardly counts.
double cpu_seconds(clockid_t of) {
  timespec t;
  clock_gettime(of, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

/// Kernels are not verified after each pass, which takes longer than to compile them.
class Unverified {
 public:
  Unverified() { qn::ir::set_pass_check(nullptr); }
  ~Unverified() { qn::ir::set_pass_check(qn::ir::expect_valid); }
  Unverified(const Unverified&) = delete;
};

/// Eight times the statements take at most 8^exponent of the time that users wait; they are verified
/// before. The least of some runs: a busy machine only adds.
void expect_proportional(int statements, const std::function<void(int)>& compile,
                         double exponent = 1.3, clockid_t clock = CLOCK_THREAD_CPUTIME_ID) {
  const double most = std::pow(8, exponent);
  auto seconds = [&](int n) {
    const double start = cpu_seconds(clock);
    compile(n);
    return cpu_seconds(clock) - start;
  };
  compile(1);
  compile(8 * statements);
  const Unverified users_do_not;
  double small = seconds(statements), large = seconds(8 * statements);
  for (int k = 0; k < 3 && large >= most * small; k++) {
    small = std::max(small, seconds(statements));
    large = std::min(large, seconds(8 * statements));
  }
  INFO(small << " s and " << large << " s");
  CHECK(large < most * small);
}

/// Present, and without the store of compiled shaders that its driver keeps on the disk.
std::optional<qn::Device> vulkan() {
  setenv("MESA_SHADER_CACHE_DISABLE", "true", 1);
  try {
    return qn::Device{"vulkan"};
  } catch (const qn::Error& e) {
    NOT_RUN(e.what());
    return {};
  }
}

template <int n>
void sum_of_array(const qn::Device& device) {
  qn::Field<int> x{device, {4}};
  qn::Kernel k = [&] {
    for (auto i : x) {
      Var<Array<int, n>> a;
      a[x[i] + n - 7] = 7 + i;
      Var<int> sum = 0;
      for (auto j : range(n)) sum += a[j];
      x[i] = sum;
    }
  };
  k();
  CHECK(qn::to_vector(x) == std::vector<int>{7, 8, 9, 10});
}

template <int n>
void result_of_many(const qn::Device& device) {
  qn::Field<int> x{device, {1}};
  qn::Kernel k = [&] {
    Var<Array<int, n>> a;
    for (auto j : serial(range(n))) a[j] = 3 * j + x[0];
    return Val<Array<int, n>>(a);
  };
  qn::Array<int, n> got = k();
  int wrong = 0;
  for (int j = 0; j < n; j++) wrong += got[size_t(j)] != 3 * j;
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE(
    "arrays of 1,600 ints compile on Vulkan nearly in proportion to 200, and results of "
    "400 do") {
  auto device = vulkan();
  if (!device) return;
  auto compile = [&](int n) {
    n == 1     ? sum_of_array<10>(*device)
    : n == 200 ? sum_of_array<200>(*device)
               : sum_of_array<1600>(*device);
  };
  // Mesa's own compiler takes 8^1.25 to 8^1.31.
  expect_proportional(200, compile, 1.5, CLOCK_PROCESS_CPUTIME_ID);
  result_of_many<400>(*device);
}

TEST_CASE("what a driver of Vulkan cannot compile in time is refused at its line") {
  auto device = vulkan();
  if (!device) return;
  qn::Field<int> x{*device, {3000}};
  int line = 0;
  qn::Kernel k = [&] {
    for (auto i : range(3)) {
      line = __LINE__ + 1;
      for (int s = 0; s < 1000; s++) x[i * 1000 + s] = s;
    }
  };
  try {
    k();
    CHECK(x.at(2999) == 999);  // a driver that can
  } catch (const qn::Error& e) {
    CHECK(e.loc().line == line);
    CHECK(std::string(e.what()).find("at more than 500 places of a loop") != std::string::npos);
  }
}

TEST_CASE("five thousand stores of one loop compile in proportion to 600") {
  qn::Device device{"cpu"};
  constexpr int rounds = 4, most = 5000;
  const std::vector<float> factors = {1, -2, 3, 0.5f};
  qn::Field<float> x{device, {rounds * most}}, y{device, {rounds}};
  y.copy_from(factors);
  const bool checked = GENERATE(false, true);
  expect_proportional(most / 8, [&](int statements) {
    auto body = [&] {
      for (auto i : range(rounds))
        for (int s = 0; s < statements; s++) x[i * statements + s] = y[i] * float(s + 1);
    };
    qn::Kernel k{body, qn::Options{.checked = checked}};
    k();
    std::vector<float> got(rounds * most);
    x.copy_to(got);
    int wrong = 0;
    for (int i = 0; i < rounds; i++)
      for (int s = 0; s < statements; s++)
        wrong += got[size_t(i * statements + s)] != factors[size_t(i)] * float(s + 1);
    CHECK(wrong == 0);
  });
}

TEST_CASE("one check of thousands names its line, index and extent") {
  qn::Device device{"cpu"};
  qn::Field<int> x{device, {3000}};
  int line = 0;
  auto body = [&] {
    for (auto i : range(2)) {
      for (int s = 0; s < 2000; s++) x[i + s] = s;
      line = __LINE__ + 1;
      x[i * 4000] = 1;
    }
  };
  qn::Kernel k{body, qn::Options{.checked = true}};
  k();
  try {
    device.synchronize();
    FAIL("no error");
  } catch (const qn::Error& e) {
    CHECK(e.loc().line == line);
    CHECK(std::string(e.what()).find("index 4000 on axis 0") != std::string::npos);
    CHECK(std::string(e.what()).find("3000") != std::string::npos);
  }
}

TEST_CASE("five hundred sines of one kernel are right, in proportion to sixty") {
  qn::Device device{"cpu"};
  constexpr int rounds = 40, most = 512;
  qn::Field<float> x{device, {rounds * most}}, y{device, {rounds}};
  std::vector<float> starts;
  for (int i = 0; i < rounds; i++)
    starts.push_back(i % 10 == 7 ? 1e8f * float(i) : 0.37f * float(i));
  starts[5] = INFINITY;
  y.copy_from(starts);
  expect_proportional(most / 8, [&](int statements) {
    qn::Kernel k = [&] {
      for (auto i : range(rounds))
        for (int s = 0; s < statements; s++) x[i * statements + s] = sin(y[i] + float(s));
    };
    k();
    std::vector<float> got(rounds * most);
    x.copy_to(got);
    double error = 0;
    int numbers = 0;
    for (int i = 0; i < rounds; i++)
      for (int s = 0; s < statements; s++) {
        const double v = got[size_t(i * statements + s)];
        const double want = std::sin(double(starts[size_t(i)] + float(s)));
        numbers += std::isnan(v);
        if (!std::isnan(want)) error = std::max(error, std::abs(v - want));
      }
    CHECK(numbers == statements);
    CHECK(error < 1.2e-7);
  });
}

TEST_CASE("functions that are called give in strict mode the bits of those that are copied") {
  // The interpreter copies nothing and calls nothing: it runs the library's code.
  auto bits = [](const char* name) {
    qn::Device device{name};
    constexpr int rounds = 37;
    qn::Field<float> x{device, {rounds}};
    qn::Field<double> y{device, {rounds}};
    auto body = [&] {
      for (auto i : x) {
        Var<float> v = cast<float>(i) * 0.71f;
        Var<double> w = cast<double>(i) * 1e3;
        for (int s = 0; s < 30; s++) {
          v = v + exp(sin(v * 1000.0f)) * pow(abs(v) + 0.5f, 0.3f) + tanh(v);
          w = w * 0.37 + cos(w) + log(abs(w) + 1.0) + fmod(w, 0.7);
        }
        x[i] = v;
        y[i] = w;
      }
    };
    qn::Kernel k{body, qn::Options{.strict = true}};
    k();
    std::vector<float> a(rounds);
    std::vector<double> b(rounds);
    x.copy_to(a);
    y.copy_to(b);
    std::vector<uint64_t> all;
    for (float v : a) all.push_back(std::bit_cast<uint32_t>(v));
    for (double v : b) all.push_back(std::bit_cast<uint64_t>(v));
    return all;
  };
  CHECK(bits("cpu") == bits("interpreter"));
}

TEST_CASE("values that a large kernel keeps for long, and its branches and loops, are right") {
  qn::Device device{"cpu"};
  constexpr int statements = 2000, elements = 40;
  qn::Field<int> x{device, {elements}};
  qn::Kernel k = [&] {
    for (auto i : x) {
      Var<int> sum = 0;
      Var<Array<int, 8>> last;
      std::vector<Var<int>> kept;
      for (int s = 0; s < statements; s++) kept.push_back(i * s);
      for (int s = 0; s < statements; s++) {
        If(kept[size_t(s)] % 3 == 0) sum += kept[size_t(statements - 1 - s)];
        last[(i + s) % 8] = sum;
      }
      for (auto n : serial(range(3)))
        for (int s = 0; s < statements; s++) sum += kept[size_t(s)] ^ n;
      x[i] = sum + last[i % 8];
    }
  };
  k();
  std::vector<int> got(elements);
  x.copy_to(got);
  for (int i = 0; i < elements; i++) {
    int sum = 0, last[8] = {};
    for (int s = 0; s < statements; s++) {
      if (i * s % 3 == 0) sum += i * (statements - 1 - s);
      last[(i + s) % 8] = sum;
    }
    for (int n = 0; n < 3; n++)
      for (int s = 0; s < statements; s++) sum += (i * s) ^ n;
    CHECK(got[size_t(i)] == sum + last[i % 8]);
  }
}

TEST_CASE("long code before a loop of each iteration is right, in proportion to an eighth of it") {
  const qn::Device device{"cpu"};
  constexpr int n = 200, rows = 64;
  const qn::Field<uint32_t, 2> c{device, {rows, n}};
  std::vector<uint32_t> given(rows * n);
  for (size_t k = 0; k < given.size(); k++) given[k] = uint32_t(k * 2654435761u);
  c.copy_from(given.data(), given.size());
  const qn::Field<uint32_t> y{device, {n}};
  // Most of it follows from the index alone, and could be made again wherever it is wanted.
  const auto run = [&](int steps) {
    const qn::Kernel kernel = [&] {
      for (auto i : range(n)) {
        U32 t = cast<uint32_t>(i);
        Var<uint32_t> before = 1, last = t, sum = 0;
        for (int k = 0; k < steps; k++) {
          U32 next = 2u * t * last - before;
          before = last;
          last = next;
          if (k % 4 == 0) sum = sum * last + c(k % rows, i);
        }
        for (auto j : range(40)) sum = sum * 5u + cast<uint32_t>(j) * last;
        y[i] = sum;
      }
    };
    kernel();
    bool same = true;
    const std::vector<uint32_t> got = qn::to_vector(y);
    for (uint32_t i = 0; i < n; i++) {
      uint32_t before = 1, last = i, sum = 0;
      for (int k = 0; k < steps; k++) {
        const uint32_t next = 2u * i * last - before;
        before = last;
        last = next;
        if (k % 4 == 0) sum = sum * last + given[size_t(k % rows) * n + i];
      }
      for (uint32_t j = 0; j < 40; j++) sum = sum * 5u + j * last;
      same = same && got[i] == sum;
    }
    CHECK(same);
  };
  expect_proportional(800, run);
}

TEST_CASE("a local array that takes most of the room there is, in code that could be there twice") {
  constexpr int n = 1003, length = 8180;
  qn::Options options;
  options.checked = true;
  const qn::Field<float> x{qn::Device{"cpu"}, {n}}, y{qn::Device{"cpu"}, {n}};
  x.fill(0.5f);
  const qn::Kernel kernel{[&] {
                            for (auto i : range(n)) {
                              Var<Array<float, length>> a;
                              Var<float> s = x[i];
                              If(i > 0) { s += x[i - 1]; }
                              If(i < n - 1) { s += x[i + 1]; }
                              for (auto _ : range(3))
                                for (auto j : range(1900)) {
                                  a[j] = a[j + 1] * 0.5f + s;
                                  s = s * 0.25f + a[j + 5000];
                                  for (int k = 0; k < 10; k++) s = s * 0.5f + float(k);
                                }
                              y[i] = a[7] + s;
                            }
                          },
                          options};
  kernel();
  for (int i : {0, 5}) {
    std::vector<float> a(length);
    float s = i == 0 ? 1.0f : 1.5f;
    for (int t = 0; t < 3; t++)
      for (size_t j = 0; j < 1900; j++) {
        a[j] = a[j + 1] * 0.5f + s;
        s = s * 0.25f + a[j + 5000];
        for (int k = 0; k < 10; k++) s = s * 0.5f + float(k);
      }
    CHECK(std::fabs(y.at({i}) - (a[7] + s)) < 1e-4f);
  }
}

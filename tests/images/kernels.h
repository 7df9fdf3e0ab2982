#pragma once
// Kernels that the tests of images compile, and what they compute by mathematics.
#include "quern/ir/text.h"
#include "quern/runtime/launch.h"

namespace quern::test {

/// For i: x[i] = a·x[i] + y[i]; the sum of x afterwards, once more doubled where it is below `limit`;
/// a[i] below 0 is an error at its line. Two tasks and more, a reduction, an `if` of the kernel's, a
/// domain of the host's, a check.
inline const char* const scale_and_sum = R"(quern 1
kernel @scale_and_sum level=structured modes=checked results(i64)
binding scalar i32 "a"
binding field rank=1 i32 "x"
binding field rank=1 i32 "y"
binding scalar i64 "limit"
site check "user.cpp":12 "negative: {}" (i32)
body {
  %z = constant<0> : i32
  %zero = constant<0> : i64
  %n = extent<1.0> : i32
  %a = param<0> : i32
  %limit = param<3> : i64
  %s = slot<1> : slot i64
  put %s, %zero
  parallel ordinal=0 %z, %n {(%i: i32)
    %x = load<1.0> %i : i32
    %y = load<2.0> %i : i32
    %ok = ge %y, %z : b1
    check %ok, %y !0
    %p = mul %a, %x : i32
    %v = add %p, %y : i32
    store<1.0> %i, %v
    %w = convert %v : i64
    reduce.add %s, %w
    yield
  }
  %sum = get %s : i64
  %small = lt %sum, %limit : b1
  if %small {
    parallel ordinal=1 %z, %n {(%i: i32)
      %x = load<1.0> %i : i32
      %d = add %x, %x : i32
      store<1.0> %i, %d
      yield
    }
    yield
  } {
    yield
  }
  yield %sum
})";

/// Its arguments: n elements x[i] = i, y[i] = 2 i; y[bad] = -5 where 0 ≤ bad.
inline std::vector<runtime::Argument> arguments(const std::shared_ptr<runtime::Device>& device,
                                                int64_t n, int32_t a, int64_t limit,
                                                int64_t bad = -1) {
  std::vector<int32_t> xs(static_cast<size_t>(n)), ys(static_cast<size_t>(n));
  for (int64_t k = 0; k < n; k++) xs[size_t(k)] = int32_t(k), ys[size_t(k)] = int32_t(2 * k);
  if (bad >= 0) ys[size_t(bad)] = -5;
  auto field = [&](const std::vector<int32_t>& v) {
    auto s = std::make_shared<runtime::Storage>(
        device, std::vector<ir::Storage>{{ir::Type::i32, ir::Type::i32}}, std::vector<int64_t>{n},
        Loc::here());
    s->write(v.data(), 0, n);
    return s;
  };
  return {
      {uint64_t(uint32_t(a)), nullptr}, {0, field(xs)}, {0, field(ys)}, {uint64_t(limit), nullptr}};
}

}  // namespace quern::test

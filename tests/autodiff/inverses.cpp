// Carried integers that going back finds from the next round's: what is kept beside them, and that
// adjoints are right.
#include "autodiff/plans/inverses.h"

#include <quern/autodiff.h>

#include <cmath>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "autodiff/reverse/reverse.h"
#include "quern/ir/lower.h"
#include "tests/autodiff/numbers.h"
#include "tests/dsl/record.h"
#include "tests/end_to_end/devices.h"

#include <quern/else.h>

using namespace qn::lang;
using qn::autodiff::Reverse;
using qn::ir::Type;
using Types = std::vector<Type>;

namespace {

using Body = void (*)(qn::Field<double>, qn::Field<double>);

Reverse reverse_of(Body body) {
  auto kernel = qn::test::record([body](qn::Field<double> x, qn::Field<double> y) { body(x, y); });
  qn::ir::finish_recording(*kernel);
  return qn::autodiff::reverse(*kernel, {kernel->modes, {1, 2}}, {true, true});
}

/// Of the only loop that keeps something in rows.
Types row_of(const Reverse& reverse) {
  return reverse.rows.size() == 1 ? reverse.rows[0] : Types{};
}

bool keeps_nothing(const Reverse& reverse) {
  bool has_arrays = false;
  qn::ir::walk(reverse.kernel->body,
               [&](const qn::ir::Inst* inst) { has_arrays |= inst->is(qn::ir::Op::slot); });
  return reverse.rows.empty() && !reverse.count && !has_arrays;
}

const std::vector<double> at = {0.5, -0.25, 2, 1.5, -1, 0.75, 3, 0.125};

/// y[i] of each kernel here: v is halved in each round, and the square of an element added.
/// `rounds(i)` says which elements those are.
template <class F>
void expect_adjoints(Body body, F&& rounds) {
  on_every_device([&](const qn::Device& device) {
    auto x = numbers(device, at);
    qn::Field<double> y{device, {3}};
    qn::Kernel f = [&] { body(x, y); };
    y.grad().fill(1.0);
    x.grad().fill(0.0);
    qn::vjp(f)()();
    std::vector<double> expected(at.size(), 0.0);
    for (int i = 0; i < 3; i++) {
      const std::vector<int> elements = rounds(i);
      double v = 0, share = 1;
      for (int e : elements) v = 0.5 * v + at[size_t(e)] * at[size_t(e)];
      CHECK(y.at(i) == Approx(v).epsilon(1e-12));
      for (auto e = elements.rbegin(); e != elements.rend(); e++, share *= 0.5)
        expected[size_t(*e)] += share * 2 * at[size_t(*e)];
    }
    for (size_t k = 0; k < at.size(); k++)
      CHECK(x.grad().at(int64_t(k)) == Approx(expected[k]).epsilon(1e-12).margin(1e-300));
  });
}

/// A loop of rounds that are not known before, in each of which `step` changes a number of type T, whose
/// low bits name the element.
template <class T, class Step>
void halve_and_add(qn::Field<double> x, qn::Field<double> y, T from, Step&& step) {
  for (auto i : y) {
    Var<double> v = 0.0;
    Var<T> s = from;
    Var<int> k = 0;
    While(k < 30 + i) {
      F64 e = x[cast<int>(s) & 7];
      v = 0.5 * v + e * e;
      s = step(s, k);
      k += 1;
    }
    y[i] = v;
  }
}

template <class T, class Step>
auto elements_of(T from, Step&& step) {
  return [=](int i) {
    std::vector<int> elements;
    T s = from;
    for (int k = 0; k < 30 + i; k++) {
      elements.push_back(int(s & 7));
      s = step(s, k);
    }
    return elements;
  };
}

}  // namespace

TEST_CASE("a While with a counter whose other state is linear keeps nothing") {
  const Body body = [](qn::Field<double> x, qn::Field<double> y) {
    for (auto i : y) {
      Var<double> v = 0.0;
      Var<int> k = 0;
      While(k < 2 * i) {
        v = 0.5 * v + x[k] * x[k];
        k += 1;
      }
      y[i] = v;
    }
  };
  CHECK(keeps_nothing(reverse_of(body)));
  expect_adjoints(body, [](int i) {
    std::vector<int> elements;
    for (int k = 0; k < 2 * i; k++) elements.push_back(k);
    return elements;
  });
}

TEST_CASE("numbers that wrap, of each width, are found from what they become") {
  SECTION("i32: c - k, an odd factor") {
    const Body body = [](qn::Field<double> x, qn::Field<double> y) {
      halve_and_add<int32_t>(x, y, 2'000'000'011,
                             [](auto& s, auto& k) { return (77 - s) * -1'234'567 + k * k; });
    };
    CHECK(keeps_nothing(reverse_of(body)));
    expect_adjoints(body, elements_of<int32_t>(2'000'000'011, [](int32_t s, int k) {
                      return int32_t((77u - uint32_t(s)) * uint32_t(-1'234'567) + uint32_t(k * k));
                    }));
  }
  SECTION("i64: -k, ~k, additions") {
    const Body body = [](qn::Field<double> x, qn::Field<double> y) {
      halve_and_add<int64_t>(x, y, INT64_MAX - 5, [](auto& s, auto& k) {
        return ~(-s + cast<int64_t>(k)) - 9'000'000'000'000'000'001;
      });
    };
    CHECK(keeps_nothing(reverse_of(body)));
    expect_adjoints(body, elements_of<int64_t>(INT64_MAX - 5, [](int64_t s, int k) {
                      return int64_t(~(0 - uint64_t(s) + uint64_t(k)) - 9'000'000'000'000'000'001);
                    }));
  }
  SECTION("u32: a generator, xor of itself shifted and of the round") {
    const Body body = [](qn::Field<double> x, qn::Field<double> y) {
      halve_and_add<uint32_t>(x, y, 7u, [](auto& s, auto& k) {
        U32 a = s ^ (s << 13);
        U32 b = a ^ (a >> 17);
        U32 c = b ^ (b << 5);
        return (c * 1'664'525u + 1'013'904'223u) ^ cast<uint32_t>(k);
      });
    };
    CHECK(keeps_nothing(reverse_of(body)));
    expect_adjoints(body, elements_of<uint32_t>(7, [](uint32_t s, int k) {
                      s ^= s << 13;
                      s ^= s >> 17;
                      s ^= s << 5;
                      return (s * 1'664'525u + 1'013'904'223u) ^ uint32_t(k);
                    }));
  }
  SECTION("u64: the same, of a shift by less than half of the bits") {
    const Body body = [](qn::Field<double> x, qn::Field<double> y) {
      halve_and_add<uint64_t>(x, y, 5u, [](auto& s, auto&) {
        U64 a = s * uint64_t(6'364'136'223'846'793'005) + uint64_t(1);
        return a ^ (a >> 3);
      });
    };
    CHECK(keeps_nothing(reverse_of(body)));
    expect_adjoints(body, elements_of<uint64_t>(5, [](uint64_t s, int) {
                      s = s * 6'364'136'223'846'793'005u + 1;
                      return s ^ (s >> 3);
                    }));
  }
  SECTION("i8 and u16, by way of i32") {
    const Body small = [](qn::Field<double> x, qn::Field<double> y) {
      halve_and_add<int8_t>(x, y, 100,
                            [](auto& s, auto& k) { return cast<int8_t>(~(s * 5) + 91 - k); });
    };
    CHECK(keeps_nothing(reverse_of(small)));
    expect_adjoints(
        small, elements_of<int8_t>(100, [](int8_t s, int k) { return int8_t(~(s * 5) + 91 - k); }));
    const Body body = [](qn::Field<double> x, qn::Field<double> y) {
      halve_and_add<uint16_t>(x, y, 65'000, [](auto& s, auto&) {
        U16 a = cast<uint16_t>(s ^ (s << 3));
        return cast<uint16_t>(a + 40'001);
      });
    };
    CHECK(keeps_nothing(reverse_of(body)));
    expect_adjoints(body, elements_of<uint16_t>(65'000, [](uint16_t s, int) {
                      return uint16_t(uint16_t(s ^ (s << 3)) + 40'001);
                    }));
  }
}

TEST_CASE("what cannot be undone is kept, and the counter beside it is not") {
  const auto row = [](auto step) {
    return row_of(reverse_of([](qn::Field<double> x, qn::Field<double> y) {
      halve_and_add<int>(x, y, 3, decltype(step){});
    }));
  };
  const Types one = {Type::i32};
  CHECK(row([](auto& s, auto&) { return s * 6; }) == one);
  CHECK(row([](auto& s, auto& k) { return s * k; }) == one);
  CHECK(row([](auto& s, auto&) { return s + s / 2; }) == one);
  CHECK(row([](auto& s, auto&) { return s ^ (s >> 3); }) == one);  // an arithmetic shift
  CHECK(row([](auto& s, auto&) { return cast<int>(cast<int8_t>(s)) + 1; }) == one);
  CHECK(row([](auto& s, auto&) { return max(s + 1, 4); }) == one);
  CHECK(row([](auto& s, auto&) { return select(s > 9, s - 9, s + 1); }) == one);
  CHECK(row([](auto& s, auto& k) { return s + cast<int>(sqrt(cast<double>(k))); }) == one);
  CHECK(row([](auto& s, auto& k) { return select(k > 9, s - 9, s + k * k); }) == Types{});
  const auto chosen = [](auto choices) {
    return [](auto& s, auto& k) {
      Var<int> t = s;
      for (int n = 0; n < decltype(choices)::value; n++) t = select(k > 3 * n, t + n, t ^ (n + k));
      return I32(t);
    };
  };
  CHECK(row(chosen(std::integral_constant<int, 3>{})) == Types{});
  CHECK(row(chosen(std::integral_constant<int, 40>{})) == one);  // 2^40 ways

  const Body body = [](qn::Field<double> x, qn::Field<double> y) {
    for (auto i : y) {
      Var<double> v = x[i];
      Var<int> k = 0;
      While(v > 0.1) {  // what it is squared of is kept
        v = v * v * (0.3 + 0.1 * x[k]);
        k += 1;
      }
      y[i] = v;
    }
  };
  CHECK(row_of(reverse_of(body)) == Types{Type::f64});
}

TEST_CASE("values are found by others: those that are found before them, and those that are kept") {
  const Body body = [](qn::Field<double> x, qn::Field<double> y) {
    for (auto i : y) {
      Var<double> v = 0.0;
      Var<uint32_t> sum = 5u, step = 3u, halved = 99u;
      Var<int> k = 0;
      While(k < 20 + i) {
        F64 e = x[cast<int>(sum & 7u)];
        v = 0.5 * v + e * e;
        sum = (sum ^ step) + halved;
        step = step * 3u + cast<uint32_t>(k);
        halved = halved / 2u + (step >> 5);
        k += 1;
      }
      y[i] = v;
    }
  };
  CHECK(row_of(reverse_of(body)) == Types{Type::u32});
  expect_adjoints(body, [](int i) {
    std::vector<int> elements;
    uint32_t sum = 5, step = 3, halved = 99;
    for (uint32_t k = 0; k < 20 + uint32_t(i); k++) {
      elements.push_back(int(sum & 7));
      sum = (sum ^ step) + halved;
      step = step * 3 + k;
      halved = halved / 2 + (step >> 5);
    }
    return elements;
  });
}

TEST_CASE("two numbers that need each other: one is kept") {
  const Body body = [](qn::Field<double> x, qn::Field<double> y) {
    for (auto i : y) {
      Var<double> v = 0.0;
      Var<int> a = i, b = 1, k = 0;
      While(k < 20) {
        F64 e = x[(a + 3 * b) & 7];
        v = 0.5 * v + e * e;
        I32 sum = a + b * b;
        b = b + a * a;
        a = sum;
        k += 1;
      }
      y[i] = v;
    }
  };
  CHECK(row_of(reverse_of(body)) == Types{Type::i32});
  expect_adjoints(body, [](int i) {
    std::vector<int> elements;
    uint32_t a = uint32_t(i), b = 1;
    for (int k = 0; k < 20; k++) {
      elements.push_back(int((a + 3 * b) & 7));
      const uint32_t sum = a + b * b;
      b = b + a * a;
      a = sum;
    }
    return elements;
  });
}

TEST_CASE("loops that end early: the last round has left its counters as they were, or not") {
  const Body before = [](qn::Field<double> x, qn::Field<double> y) {
    for (auto i : y) {
      Var<double> v = 0.0;
      Var<int> k = i;
      While(k < 8) {
        v = 0.5 * v + x[k] * x[k];
        If(x[k] > 2.5) { Break(); }
        k += 1;
      }
      y[i] = v;
    }
  };
  CHECK(keeps_nothing(reverse_of(before)));
  expect_adjoints(before, [](int i) {
    std::vector<int> elements;
    for (int k = i; k < 8; k++) {
      elements.push_back(k);
      if (at[size_t(k)] > 2.5) break;
    }
    return elements;
  });
  const Body within = [](qn::Field<double> x, qn::Field<double> y) {  // and in a range
    for (auto i : y) {
      Var<double> v = 0.0;
      Var<int> from = 7;
      for (auto k : range(1 + 2 * i)) {
        v = 0.5 * v + x[from] * x[from];
        If(k == 3) {
          If(x[k] > 1.0) { Break(); }
        }
        from -= 1;
        If(x[k] < -0.5) { Break(); }
      }
      y[i] = v;
    }
  };
  CHECK(keeps_nothing(reverse_of(within)));
  expect_adjoints(within, [](int i) {
    std::vector<int> elements;
    for (int k = 0, from = 7; k < 1 + 2 * i; k++) {
      elements.push_back(from);
      if (k == 3 && at[size_t(k)] > 1) break;
      from--;
      if (at[size_t(k)] < -0.5) break;
    }
    return elements;
  });
}

TEST_CASE(
    "rounds that Continue ends: what was counted before is found, what was counted behind is not") {
  const Body before = [](qn::Field<double> x, qn::Field<double> y) {
    for (auto i : y) {
      Var<double> v = 0.0;
      Var<int> k = i;
      While(k < 7) {
        k += 1;
        If(x[k] < 0.0) { Continue(); }
        v = 0.5 * v + x[k] * x[k];
      }
      y[i] = v;
    }
  };
  CHECK(keeps_nothing(reverse_of(before)));
  expect_adjoints(before, [](int i) {
    std::vector<int> elements;
    for (int k = i + 1; k < 8; k++)
      if (at[size_t(k)] >= 0) elements.push_back(k);
    return elements;
  });
  const Body behind = [](qn::Field<double> x, qn::Field<double> y) {
    for (auto i : y) {
      Var<double> v = 0.0;
      Var<int> k = i, taken = 0;
      While(k < 7) {
        k += 1;
        If(x[k] < 0.0) { Continue(); }
        v = 0.5 * v + x[taken] * x[taken];
        taken += 1;
      }
      y[i] = v;
    }
  };
  CHECK(row_of(reverse_of(behind)) == Types{Type::i32});
  expect_adjoints(behind, [](int i) {
    std::vector<int> elements;
    for (int k = i + 1; k < 8; k++)
      if (at[size_t(k)] >= 0) elements.push_back(int(elements.size()));
    return elements;
  });
}

TEST_CASE("loops in loops, whose counters go on from each other's") {
  const Body body = [](qn::Field<double> x, qn::Field<double> y) {
    for (auto i : y) {
      Var<double> v = 0.0;
      Var<int> from = 1;
      While(from < 5 + i) {
        Var<int> k = from;
        While(k != 0) {
          F64 e = x[(k + from) & 7];
          v = 0.5 * v + e * e;
          k -= 1;
        }
        from += 2;
      }
      y[i] = v;
    }
  };
  CHECK(keeps_nothing(reverse_of(body)));
  expect_adjoints(body, [](int i) {
    std::vector<int> elements;
    for (int from = 1; from < 5 + i; from += 2)
      for (int k = from; k != 0; k--) elements.push_back((k + from) & 7);
    return elements;
  });
  const Body deeper = [](qn::Field<double> x, qn::Field<double> y) {  // an inner one counts on
    for (auto i : y) {
      Var<double> v = 0.0;
      Var<uint32_t> n = 0u, s = 1u;
      for (auto a : range(i + 2)) {
        s = s * 5u + n;
        for (auto b : range(a + 1)) {
          If(s % 3u == 1u) {
            F64 e = x[cast<int>((s + n) & 7u)];
            v = 0.5 * v + e * e;
          }
          n += 3u;
          s = s ^ cast<uint32_t>(b);
        }
      }
      y[i] = v;
    }
  };
  // Of the outer loop alone; n is 3 for each round of the inner one.
  CHECK(row_of(reverse_of(deeper)) == Types{Type::u32});
  expect_adjoints(deeper, [](int i) {
    std::vector<int> elements;
    uint32_t n = 0, s = 1;
    for (int a = 0; a < i + 2; a++) {
      s = s * 5 + n;
      for (uint32_t b = 0; b < uint32_t(a) + 1; b++) {
        if (s % 3 == 1) elements.push_back(int((s + n) & 7));
        n += 3;
        s ^= b;
      }
    }
    return elements;
  });
}

TEST_CASE("loops of few rounds: arrays keep what is dear to find") {
  const Body cheap = [](qn::Field<double> x, qn::Field<double> y) {
    for (auto i : y) {
      Var<double> v = 0.0;
      Var<int> k = i;
      for (auto r : range(8)) {
        v = 0.5 * v + x[k & 7] * x[k & 7];
        k += r;
      }
      y[i] = v;
    }
  };
  CHECK(keeps_nothing(reverse_of(cheap)));
  expect_adjoints(cheap, [](int i) {
    std::vector<int> elements;
    for (int r = 0, k = i; r < 8; k += r++) elements.push_back(k & 7);
    return elements;
  });
  const Body dear = [](qn::Field<double> x, qn::Field<double> y) {
    for (auto i : y) {
      Var<double> v = 0.0;
      Var<uint32_t> s = 11u;
      for ([[maybe_unused]] auto r : range(8)) {
        F64 e = x[cast<int>(s & 7u)];
        v = 0.5 * v + e * e;
        s = s * 3u + 1u;
        s ^= s >> 1;
      }
      y[i] = v;
    }
  };
  CHECK(reverse_of(dear).rows.empty());
  CHECK(!keeps_nothing(reverse_of(dear)));
  expect_adjoints(dear, [](int) {
    std::vector<int> elements;
    uint32_t s = 11;
    for (int r = 0; r < 8; r++) {
      elements.push_back(int(s & 7));
      s = s * 3 + 1;
      s ^= s >> 1;
    }
    return elements;
  });
}

TEST_CASE("second derivatives through a While that keeps nothing") {
  on_every_device([](const qn::Device& device) {
    auto x = numbers(device, at);
    x.dual().fill(1.0);
    qn::Kernel f = [&]() -> F64 {
      Var<double> v = 0.0;
      Var<int> k = 0;
      While(k < 5) {
        v = 0.5 * v + x[k] * x[k] * x[k];
        k += 1;
      }
      return v;
    };
    qn::hessian_vector(f, qn::wrt(x))();
    for (int k = 0; k < 8; k++) {
      const double share = k < 5 ? std::pow(0.5, 4 - k) : 0;
      CHECK(x.grad().at(k) == Approx(share * 3 * at[size_t(k)] * at[size_t(k)]).epsilon(1e-13));
      CHECK(x.grad().dual().at(k) == Approx(share * 6 * at[size_t(k)]).epsilon(1e-13));
    }
  });
}

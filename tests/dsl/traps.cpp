// The traps of a language that is recorded by running C++, and the rule that closes each.
//
//   T1  else behind If, Else          T2  native exits of a block
//   T3  auto x = field[i]             T4  values and variables
//   T5  && and ||                     T6  native if, while, ?: on device values
//   T7  lines of operators            T8  finding operators
//   T9  order of evaluation           T10 literals and conversions
//   T11 captures                      T12 deducing signatures
//   T13 structures, unmirrored        T14 several indices
//   T15 threads, nesting
//
// What must not compile is tests/errors/refuse, what recording refuses tests/errors.
#include <cstring>
#include <optional>
#include <thread>
#include <vector>

#include "tests/dsl/record.h"
#include "tests/end_to_end/devices.h"
// Last, as a program would.
#include "quern/else.h"

using namespace quern::lang;
using quern::Error;
using quern::Field;
using quern::Func;
using quern::Kernel;
using quern::Val;
using quern::test::record;
using quern::test::recorded;

namespace {

/// Recording `f` fails; the error.
template <class F>
Error refused(const F& f) {
  try {
    record(f);
  } catch (const Error& e) {
    return e;
  }
  FAIL("no error");
  throw;
}

/// What a kernel over 0 … n-1 leaves in a field of n elements.
template <class T, class F>
std::vector<T> filled(const qn::Device& device, int n, const F& element) {
  Field<T> out{device, {n}};
  Kernel k = [&] {
    for (auto i : out) out[i] = element(i);
  };
  k();
  return qn::to_vector(out);
}

}  // namespace

TEST_CASE("T1: else, or Else, binds as in C++, chained, nested and without braces") {
  auto plain = [](int a) {
    if (a < 2) return 0;
    if (a < 4) return a % 2 == 0 ? 1 : 2;
    if (a == 5) return 3;
    return a > 6 ? 4 : 5;
  };
  on_every_device([&](qn::Device& device) {
    auto out = filled<int>(device, 9, [](I32 a) {
      Var<int> r = -1;
      If(a < 2) r = 0;
      Else If(a < 4) {
        If(a % 2 == 0) r = 1;
        Else r = 2;
      }
      else If(a == 5) r = 3;
      else {
        If(a > 6) { r = 4; }
        else {
          r = 5;
        }
      }
      return r;
    });
    for (int a = 0; a < 9; a++) CHECK(out[size_t(a)] == plain(a));
  });
}

TEST_CASE("T2: break, return, goto and exceptions that leave a block are seen") {
  const int first = __LINE__ + 3;
  Error by_break = refused([](Field<float> x) {
    for (auto i : x) {
      If(x[i] > 0) { break; }
    }
  });
  Error by_goto = refused([](Field<float> x, B1 c) {
    If(c) { goto out; }
    x[0] = 1;
  out:;
  });
  Error by_return = refused([](Field<float> x, B1 c) {
    While(c) {
      x[0] = 1;
      return;
    }
  });
  const int lines[] = {first, first + 4, first + 9};
  const Error* errors[] = {&by_break, &by_goto, &by_return};
  for (int k = 0; k < 3; k++) {
    CHECK_THAT(errors[k]->message(), contains("native break, return or goto left this recorded"));
    CHECK(errors[k]->loc().line == lines[k]);
  }
  struct Mine {};
  CHECK_THROWS_AS(record([](B1 c) {
                    If(c) { throw Mine(); }
                  }),
                  Mine);
  CHECK(recorded([](F32 a) { return a; }) == "body {\n%0 = param<0> : f32\nreturn %0\n}\n");
}

TEST_CASE("T3: auto x = field[i] is a snapshot") {
  on_every_device([](qn::Device& device) {
    Field<int> x{device, {8}}, y{device, {8}};
    Kernel fill = [&] {
      for (auto i : x) {
        x[i] = i;
        y[i] = 10 * i;
      }
    };
    Kernel exchange = [&] {
      for (auto i : x) {
        auto old = x[i];
        x[i] = y[i];
        y[i] = old;
      }
    };
    fill();
    exchange();
    for (int i = 0; i < 8; i++) {
      CHECK(x.at(i) == 10 * i);
      CHECK(y.at(i) == i);
    }
    // A snapshot that nobody uses is not read, so its index is not tested either.
    Kernel unused{[&] {
                    for (auto i : x) {
                      [[maybe_unused]] auto far = y[i + 100];
                      x[i] = 3;
                    }
                  },
                  {.checked = true}};
    unused();
    CHECK(x.at(7) == 3);
  });
}

TEST_CASE("T4: a value never changes, a variable is copied, also by a move") {
  on_every_device([](qn::Device& device) {
    Field<int> out{device, {6}};
    Kernel k = [&](I32 p, I32 q) {
      Var<int> a = p, b = q;
      std::swap(a, b);
      out[0] = a;
      out[1] = b;
      auto copy = a;
      copy += 100;
      out[2] = a;
      Var<int> moved = std::move(a);
      moved += 1000;
      out[3] = a;
      auto value = a + 0;  // stays what it was
      a = 7;
      out[4] = value;
      auto doubled = [](Var<int> v) {
        v *= 2;
        return v;
      };
      out[5] = doubled(a) + a;
    };
    k(1, 2);
    CHECK(qn::to_vector(out) == std::vector<int>{2, 1, 2, 2, 2, 21});
  });
}

TEST_CASE("T5: the right operand of && and || runs only where the left one does not decide") {
  on_every_device([](qn::Device& device) {
    Field<int> x{device, {8}}, calls{device, {1}}, out{device, {8}};
    Kernel k{[&] {
               for (auto i : x) {
                 Var<int> r = 0;
                 If(i < 7 && x[i + 1] == 0) r += 1;  // never reads x[8]
                 If(i == 7 || x[i + 1] == 1) r += 2;
                 If(i > 3 && atomic_add(calls[0], 1) >= 0) r += 4;
                 out[i] = r;
               }
             },
             {.checked = true}};
    k();
    CHECK(qn::to_vector(out) == std::vector<int>{1, 1, 1, 1, 5, 5, 5, 6});
    CHECK(calls.at(0) == 4);
  });
}

TEST_CASE("T6: no device value becomes a host value on its own") {
  static_assert(!std::is_convertible_v<B1, bool>);
  static_assert(!std::is_convertible_v<I32, int>);
  static_assert(!std::is_convertible_v<F32, float>);
  static_assert(!std::is_convertible_v<Var<int>, int>);
  // What steers instead, for values: select.
  on_every_device([](qn::Device& device) {
    CHECK(filled<int>(device, 4, [](I32 i) { return select(i < 2, 10, i); }) ==
          std::vector<int>{10, 10, 2, 3});
  });
}

TEST_CASE("T7: every operator, subscript and call carries its line") {
  using quern::ir::Op;
  Func twice = [](F32 v) { return v + v; };
  const int first = __LINE__ + 3;
  auto kernel =
      record([&](F32 a, F32 b, I32 i, I32 j, B1 c, B1 d, Field<float> x, Field<float, 2> u) {
        (void)(a + b);
        (void)(a - 2);
        (void)(3 * b);
        (void)(a / b);
        (void)(i % j);
        (void)(i & j);
        (void)(i | 7);
        (void)(i ^ j);
        (void)(i << j);
        (void)(i >> 1);
        (void)(-a);
        (void)(~i);
        (void)(a < b);
        (void)(a <= 1);
        (void)(2 > b);
        (void)(a >= b);
        (void)(i == j);
        (void)(i != 3);
        (void)(c && d);
        (void)(c || d);
        (void)(!(a > b));  // the line of what it negates: ! has no room for one
        (void)x[i];
        (void)u(i, j);
        x[i] = a;
        x[i] += b;
        (void)atomic_max(x[j], a);
        (void)min(a, b);
        (void)max(i, 3);
        (void)sqrt(a);
        (void)fma(a, b, a);
        (void)select(c, a, b);
        (void)cast<int>(a);
        (void)bitcast<int>(a);
        (void)twice(a);
        (void)random<uint32_t>();
        print("{}", a);
        check(c, "{}", i);
        Var<float> v = a;
        v *= b;
        v = b;
      });
  const Op expected[] = {Op::add,     Op::sub,     Op::mul,     Op::div,  Op::rem,    Op::bit_and,
                         Op::bit_or,  Op::bit_xor, Op::shl,     Op::shr,  Op::neg,    Op::bit_not,
                         Op::lt,      Op::le,      Op::gt,      Op::ge,   Op::eq,     Op::ne,
                         Op::bit_and, Op::bit_or,  Op::bit_not, Op::load, Op::load,   Op::store,
                         Op::atomic,  Op::atomic,  Op::min,     Op::max,  Op::sqrt,   Op::fma,
                         Op::select,  Op::convert, Op::bitcast, Op::call, Op::random, Op::print,
                         Op::check,   Op::put,     Op::mul,     Op::put};
  int line = first;
  for (Op op : expected) {
    bool found = false;
    quern::ir::walk(*kernel, [&](quern::ir::Inst* inst) {
      found |= inst->is(op) && inst->loc.line == line && std::strstr(inst->loc.file, "traps.cpp");
    });
    INFO(quern::ir::info(op).name << " on line " << line);
    CHECK(found);
    line++;
  }
  // Nothing carries a line of the library.
  quern::ir::walk(*kernel, [&](quern::ir::Inst* inst) {
    if (inst->is(Op::yield)) return;
    INFO(quern::ir::info(inst->op).name << " at " << inst->loc.file << ":" << inst->loc.line);
    CHECK(std::strstr(inst->loc.file, "traps.cpp"));
  });
}

TEST_CASE("T7: an error inside a function names the function's line") {
  const int first = __LINE__;
  Error recording = refused([](I32 a) {
    Func f = [](I32 v) {
      auto w = v + 1;
      return w + 3000000000;
    };
    return f(a);
  });
  CHECK(recording.loc().line == first + 4);
  on_every_device([](qn::Device& device) {
    Field<int> x{device, {8}};
    Field<int> y{device, {4}};
    const int body = __LINE__ + 2;
    Func divided = [&](I32 a) {
      auto q = 12 / (a - 5);
      return q + y[a];
    };
    Kernel k{[&](I32 from) {
               for (auto i : range(from, from + 1)) x[i] = divided(i);
             },
             {.checked = true}};
    auto line_of = [&](int from) {
      try {
        k(from);
        device.synchronize();
      } catch (const Error& e) {
        return e.loc().line;
      }
      return 0;
    };
    CHECK(line_of(3) == 0);
    CHECK(line_of(5) == body);
    CHECK(line_of(4) == body + 1);
  });
}

TEST_CASE("T8: operators are found for values, variables, elements and literals alike") {
  auto text = recorded([](Field<float> x, F32 value) {
    Var<float> variable = value;
    auto all = [](const auto& a, const auto& b) {
      static_assert(std::is_same_v<decltype(a + b), F32>);
      static_assert(std::is_same_v<decltype(a - b), F32>);
      static_assert(std::is_same_v<decltype(a * b), F32>);
      static_assert(std::is_same_v<decltype(a / b), F32>);
      static_assert(std::is_same_v<decltype(a < b), B1>);
      static_assert(std::is_same_v<decltype(a == b), B1>);
      static_assert(std::is_same_v<decltype(a != b), B1>);
      static_assert(std::is_same_v<decltype(max(a, b)), F32>);
      (void)(a + b);
    };
    auto with_all = [&](const auto& a) {
      all(a, value);
      all(a, variable);
      all(a, x[0]);
      all(a, 2.0f);
      all(a, 3);
      all(0.5, a);
    };
    with_all(value);
    with_all(variable);
    with_all(x[1]);
  });
  size_t sums = 0;
  for (size_t at = text.find("= add "); at != std::string::npos; at = text.find("= add ", at + 1))
    sums++;
  CHECK(sums == 18);
}

TEST_CASE("T9: the order in which operands are evaluated changes no result") {
  // A compiler may record either operand first. Draws are put into the order of the operands
  // (random_order.cpp); atomics, whose order other iterations see, are refused.
  const Error two[] = {refused([](Field<int> x) {
                         for (auto i : x) x[i] = random<int>() / atomic_add(x[0], 1);
                       }),
                       refused([](Field<int> x) {
                         for (auto i : x) x[i] = atomic_add(x[0], 1) - atomic_add(x[0], 2);
                       })};
  for (const Error& e : two)
    CHECK_THAT(e.message(), contains("two operations with effects (random, atomics)"));
  // Reads have no effect: both orders leave the same, whatever this compiler chose.
  on_every_device([](qn::Device& device) {
    Field<float> x{device, {64}}, y{device, {64}};
    Kernel prepare = [&] {
      for (auto i : x) {
        x[i] = 0.1f * i;
        y[i] = 3 - 0.7f * i;
      }
    };
    prepare();
    auto run = [&](auto difference) {
      return filled<float>(device, 64, [&](I32 i) { return difference(i); });
    };
    auto both = run([&](I32 i) { return x[i] - y[i]; });
    auto left_first = run([&](I32 i) {
      auto l = x[i];
      auto r = y[i];
      return l - r;
    });
    auto right_first = run([&](I32 i) {
      auto r = y[i];
      auto l = x[i];
      return l - r;
    });
    CHECK(both == left_first);
    CHECK(both == right_first);
  });
}

TEST_CASE("T10: a literal takes the type it meets, and must fit it") {
  on_every_device([](qn::Device& device) {
    auto out = filled<float>(device, 5, [](I32 i) {
      F32 x = cast<float>(i) + 0.5f;
      static_assert(std::is_same_v<decltype(x * 2), F32>);
      static_assert(std::is_same_v<decltype(x * 0.1), F32>);
      static_assert(std::is_same_v<decltype(i * 2ll), I32>);
      static_assert(std::is_same_v<decltype(i * x), F32>);
      return x * 0.1 + 2;
    });
    for (int i = 0; i < 5; i++) {
      float x = float(i) + 0.5f;
      CHECK(out[size_t(i)] == Approx(x * 0.1f + 2).epsilon(1e-6));
    }
  });
  CHECK_THAT(refused([](I32 i) { (void)(i * 5000000000); }).message(),
             contains("the host value 5000000000 does not fit i32"));
}

TEST_CASE("T11: a captured host value is the one of the recording, a captured field stays alive") {
  on_every_device([](qn::Device& device) {
    int step = 3;
    std::optional<Field<int>> x = Field<int>{device, {8}};
    Field<int> same = *x;
    Kernel k = [&, field = *x] {
      for (auto i : field) field[i] = step * i;
    };
    step = 1000;
    x.reset();
    k();
    CHECK(same.at(7) == 21);
  });
}

TEST_CASE("T11: a value in another recording is refused with both lines") {
  std::vector<F32> kept;
  const int made = __LINE__ + 1;
  record([&](F32 v) { kept.push_back(v + 1); });
  const int used = __LINE__ + 1;
  Error e = refused([&](Field<float> x) { x[0] = kept[0]; });
  CHECK(e.loc().line == used);
  CHECK_THAT(e.message(), contains("traps.cpp:" + std::to_string(made)));
}

namespace {
I32 squared(I32 a) { return a * a; }
}  // namespace

TEST_CASE("T12: signatures of every kind of function are deduced") {
  on_every_device([](qn::Device& device) {
    Field<int> x{device, {4}};
    Kernel plain = [&](I32 a) { x[0] = a; };
    Kernel silent = [&](I32 a) noexcept { x[1] = a; };
    Kernel changing = [&, n = 5](I32 a) mutable {
      n++;
      x[2] = a + n;
    };
    Kernel pointer = squared;
    Kernel<I32(I32)> generic = [](auto a) { return a + 1; };
    plain(1);
    silent(2);
    changing(3);
    CHECK(qn::to_vector(x) == std::vector<int>{1, 2, 9, 0});
    CHECK(int(pointer(7)) == 49);
    CHECK(int(generic(7)) == 8);
  });
}

namespace {
template <class W = HostW>
struct Inner {
  In<W, float> a, b;
  auto product() const { return a * b; }
};
template <class W = HostW>
struct Outer {
  In<W, vec2> p;
  In<W, Inner<>> in;
  In<W, int> n;
  auto total() const { return p.x + p.y + in.product(); }
};
}  // namespace

TEST_CASE("T13: one structure serves host, value, variable and storage, methods included") {
  on_every_device([](qn::Device& device) {
    Field<Outer<>> x{device, {5}};
    Outer<> host;
    host.p = vec2(1, 2);
    host.in = {3, 4};
    host.n = 7;
    for (int i = 0; i < 5; i++) x.set(i, host);
    Kernel k = [&](Val<Inner<>> given) {
      Var<float> sum = 0;
      for (auto i : x) {
        Var<Outer<>> o = x[i];
        o.in = given;
        o.p.y += 1;
        o.n += i;
        x[i] = o;
        x[i].p.x = 10;
        sum += o.total();
      }
      return sum;
    };
    CHECK(float(k(Inner<>{5, 6})) == 5 * (1 + 3 + 30));
    Outer<> last = x.at(4);
    CHECK(last.p == vec2(10, 3));
    CHECK(last.total() == 43);
    CHECK(last.n == 11);
  });
}

TEST_CASE("T14: several indices, in every spelling that the language has") {
  on_every_device([](qn::Device& device) {
    Field<int, 2> u{device, {3, 4}}, v{device, {3, 4}};
    Kernel k = [&] {
      for (auto [i, j] : u) u(i, j) = 10 * i + j;
      for (auto at : v) v[at] = u[at] + u(at.x, at.y);
    };
    k();
    for (int i = 0; i < 3; i++)
      for (int j = 0; j < 4; j++) CHECK(v.at(i, j) == 2 * (10 * i + j));
#ifdef __cpp_multidimensional_subscript
    Kernel brackets = [&] {
      for (auto [i, j] : u) u[i, j] = i - j;
    };
    brackets();
    CHECK(u.at(1, 3) == -2);
#endif
  });
}

TEST_CASE("T15: two threads record at once, each its own kernel") {
  auto text = [](int steps) {
    return recorded([steps](Field<float> x, F32 a) {
      for (auto i : x) {
        Var<float> v = a;
        for (int k = 0; k < steps; k++) v = v * a + float(k);
        If(v > 1) { x[i] = v; }
      }
    });
  };
  const std::string expected[] = {text(40), text(41)};
  int wrong[2] = {};
  std::thread threads[2];
  for (int t = 0; t < 2; t++)
    threads[t] = std::thread([&, t] {
      for (int round = 0; round < 50; round++) wrong[t] += text(40 + t) != expected[t];
    });
  for (std::thread& t : threads) t.join();
  CHECK(wrong[0] == 0);
  CHECK(wrong[1] == 0);
}

TEST_CASE("T15: a function recorded inside a kernel's body, and one that fails there") {
  struct Mine {};
  on_every_device([](qn::Device& device) {
    Field<int> x{device, {6}};
    Kernel k = [&](I32 n) {
      for (auto i : x) {
        Func cube = [](I32 a) {
          Func square = [](I32 b) { return b * b; };
          return square(a) * a;
        };
        // An exception leaves the inner recording only: this one goes on.
        CHECK_THROWS_AS([] { Func broken = [](I32) -> I32 { throw Mine(); }; }(), Mine);
        x[i] = cube(i) + n;
      }
    };
    k(1);
    CHECK(qn::to_vector(x) == std::vector<int>{1, 2, 9, 28, 65, 126});
  });
}

// Iterations with loops of their own become lanes of vectors.
#include "tests/cpu/instructions/x86.h"

using namespace quern;
using test::all_x86;
using test::count_compiled;
using test::X86;

TEST_CASE("iterations with loops of their own are lanes of vectors") {
  // The least square of the distances of points to 25 centres, and how much each centre got.
  const std::string text = R"(quern 1
  kernel @nearest level=structured modes=contract
  binding field rank=2 f64 "points"
  binding field rank=2 f64 "centres"
  binding field rank=1 f64 "least"
  binding field rank=1 f64 "given"
  body {
    %zero = constant<0> : i32
    %one = constant<1> : i32
    %dimensions = constant<20> : i32
    %centres = constant<25> : i32
    %none = constant<0> : f64
    %far = constant<inf> : f64
    parallel over=2 {(%i: i32)
      %square = slot<25> : slot f64
      %all = loop %zero, %centres, %one, %far : f64 {(%c: i32, %nearest: f64)
        %sum = loop %zero, %dimensions, %one, %none : f64 {(%d: i32, %s: f64)
          %p = load<0.0> %i, %d : f64
          %q = load<1.0> %c, %d : f64
          %off = sub %p, %q : f64
          %part = mul %off, %off : f64
          %t = add %s, %part : f64
          yield %t
        }
        put %square, %c, %sum
        %less = min %nearest, %sum : f64
        yield %less
      }
      loop %zero, %centres, %one {(%c: i32)
        %own = get %square, %c : f64
        %more = sub %own, %all : f64
        %old = atomic.add<3.0> %c, %more : f64
        yield
      }
      store<2.0> %i, %all
      yield
    }
    yield
  })";
  for (const X86& cpu : all_x86) {
    INFO(cpu.name);
    CHECK(count_compiled(cpu, text, "vfmadd\\w+pd[^\n]*[yz]mm") >= 4);
    CHECK(count_compiled(cpu, text, "vminpd[^\n]*[yz]mm") >= 1);
  }
  // Where lanes are masked nothing is left over for single iterations, but where there are few.
  CHECK(count_compiled(test::sapphire_rapids, text, "vfmadd\\w+sd") <= 20);
  CHECK(count_compiled(test::sapphire_rapids, text, "vminsd") == 1);
}

TEST_CASE("rows of iterations that are lanes may lie any number of bytes apart") {
  const std::string text = R"(quern 1
  kernel @powers level=structured modes=contract
  binding field rank=2 f64 "of"
  binding field rank=1 f64 "sums"
  body {
    %zero = constant<0> : i32
    %one = constant<1> : i32
    %all = constant<14> : i32
    %none = constant<0> : f64
    parallel over=1 {(%i: i32)
      %sum = loop %zero, %all, %one, %none : f64 {(%d: i32, %s: f64)
        %x = load<0.0> %i, %d : f64
        %e = exp %x : f64
        %t = add %s, %e : f64
        yield %t
      }
      store<1.0> %i, %sum
      yield
    }
    yield
  })";
  // No vector code is made for rows one byte apart, which none are.
  for (const X86& cpu : all_x86) {
    INFO(cpu.name);
    CHECK(count_compiled(cpu, text, "vfmadd\\w+pd[^\n]*[yz]mm") >= 8);
    CHECK(count_compiled(cpu, text, "cmpq\\s+\\$1,") == 0);
  }
}

TEST_CASE("so may they where the code is long enough to be cut into functions") {
  const std::string text = R"(quern 1
  kernel @shares level=structured modes=contract
  binding field rank=2 f64 "of"
  binding field rank=2 f64 "shares"
  binding field rank=0 f64 "value"
  body {
    %zero = constant<0> : i32
    %one = constant<1> : i32
    %all = constant<14> : i32
    %n = extent<0.0> : i32
    %none = constant<0> : f64
    parallel %zero, %n {(%i: i32)
      %sum = loop %zero, %all, %one, %none : f64 {(%d: i32, %s: f64)
        %x = load<0.0> %i, %d : f64
        %e = exp %x : f64
        %t = add %s, %e : f64
        yield %t
      }
      %logarithm = log %sum : f64
      %old = atomic.add<2.0> %logarithm : f64
      %share = div %logarithm, %sum : f64
      loop %zero, %all, %one {(%d: i32)
        %x = load<0.0> %i, %d : f64
        %e = exp %x : f64
        %own = mul %share, %e : f64
        %is_none = eq %share, %none : b1
        %given = select %is_none, %none, %own : f64
        %before = load<1.0> %i, %d : f64
        %after = add %before, %given : f64
        store<1.0> %i, %d, %after
        yield
      }
      yield
    }
    yield
  })";
  for (const X86& cpu : all_x86) {
    INFO(cpu.name);
    CHECK(count_compiled(cpu, text, "call[^\n]*piece") >= 1);
    CHECK(count_compiled(cpu, text, "vfmadd\\w+pd[^\n]*[yz]mm") >= 16);
    CHECK(count_compiled(cpu, text, "cmpq\\s+\\$1,[^\n]*\n\\s*(j|set)") == 0);
  }
}

TEST_CASE("what rows far apart hold is asked for a round ahead") {
  const auto sums = [](const std::string& element) {
    return R"(quern 1
  kernel @sums level=structured modes=contract
  binding field rank=2 f64 "of"
  binding field rank=1 f64 "sums"
  body {
    %zero = constant<0> : i32
    %one = constant<1> : i32
    %all = constant<500> : i32
    %none = constant<0> : f64
    parallel over=1 {(%i: i32)
      %sum = loop %zero, %all, %one, %none : f64 {(%d: i32, %s: f64)
        %back = sub %all, %d : i32
        %x = load<0.0> )" +
           element + R"( : f64
        %e = sin %x : f64
        %t = add %s, %e : f64
        yield %t
      }
      store<1.0> %i, %sum
      yield
    }
    yield
  })";
  };
  for (const X86& cpu : all_x86) {
    INFO(cpu.name);
    CHECK(count_compiled(cpu, sums("%d, %i"), "prefetch") >= 1);
    CHECK(count_compiled(cpu, sums("%back, %i"), "prefetch") >= 1);
    CHECK(count_compiled(cpu, sums("%d, %i"), "vfmadd\\w+pd[^\n]*[yz]mm") >= 8);
    CHECK(count_compiled(cpu, sums("%i, %d"), "prefetch") == 0);  // they are short
  }
}

namespace {
/// Rounds over triangles of a local array of so many elements, each of which needs what the one before has
/// put: `next` of %v and %w, its neighbour.
std::string triangle(int elements, const std::string& rest) {
  return R"(quern 1
  kernel @triangle level=structured modes=contract
  binding field rank=1 f64 "x"
  binding field rank=2 f64 "kept"
  binding scalar i32 "n"
  body {
    %zero = constant<0> : i32
    %one = constant<1> : i32
    %all = constant<)" +
         std::to_string(elements) + R"(> : i32
    %half = constant<0.5> : f64
    %n = param<2> : i32
    parallel over=0 {(%i: i32)
      %array = slot<)" +
         std::to_string(elements) + R"(> : slot f64
      %start = load<0.0> %i : f64
      loop %zero, %all, %one {(%j: i32)
        put %array, %j, %start
        yield
      }
      %count = loop %zero, %n, %one, %zero : i32 {(%t: i32, %c: i32)
        %less = sub %n, %t : i32
        %c3 = loop %one, %less, %one, %c : i32 {(%j: i32, %c2: i32)
          %before = sub %j, %one : i32
          %v = get %array, %before : f64
          %w = get %array, %j : f64
)" + rest +
         R"(
          %half_v = mul %half, %v : f64
          %next = add %half_v, %w : f64
          put %array, %j, %next
          %c4 = add %c2, %one : i32
          yield %c4
        }
        yield %c3
      }
      %last = get %array, %zero : f64
      store<0.0> %i, %last
      yield
    }
    yield
  })";
}
}  // namespace

TEST_CASE("recurrences in local arrays are lanes of vectors, beside what they keep in rows") {
  for (const X86& cpu : all_x86)
    for (int elements : {20, 300, 4000}) {
      INFO(cpu.name << ", " << elements << " elements");
      const std::string lanes = "vfmadd\\w+pd[^\n]*[yz]mm";
      CHECK(count_compiled(cpu, triangle(elements, ""), lanes) >= 1);
      // Rows counted through all rounds: neighbours' lie side by side.
      const std::string kept = "store<1.0> %c2, %i, %w";
      CHECK(count_compiled(cpu, triangle(elements, kept), lanes) >= 1);
      CHECK(count_compiled(cpu, triangle(elements, kept), "vscatter|vmovhpd") == 0);
    }
  // Beyond that caches would not hold what a vector takes.
  CHECK(count_compiled(all_x86[2], triangle(5000, ""), "vfmadd\\w+pd[^\n]*[yz]mm") == 0);
}

namespace {
/// Σ over parts and rows of (x_r + Σ_{j<r} f(a_rj x_j))², with `operations` of f for each row and column.
std::string triangles(int operations) {
  std::string f = "%p0 = mul %a, %b : f64\n";
  for (int k = 0; k < operations; k++)
    f += "%s" + std::to_string(k) + " = mul %p" + std::to_string(k) + ", %b : f64\n%p" +
         std::to_string(k + 1) + " = add %s" + std::to_string(k) + ", %a : f64\n";
  return R"(quern 1
  kernel @triangles level=structured modes=contract
  binding field rank=2 f64 "x"
  binding field rank=3 f64 "a"
  binding field rank=1 f64 "y"
  body {
    %zero = constant<0> : i32
    %one = constant<1> : i32
    %side = constant<9> : i32
    %parts = constant<25> : i32
    %none = constant<0> : f64
    parallel over=2 {(%i: i32)
      %all = loop %zero, %parts, %one, %none : f64 {(%c: i32, %of_part: f64)
        %of_rows = loop %zero, %side, %one, %of_part : f64 {(%r: i32, %of_row: f64)
          %first = load<0.0> %i, %r : f64
          %sum = loop %zero, %r, %one, %first : f64 {(%j: i32, %t: f64)
            %a = load<1.0> %c, %r, %j : f64
            %b = load<0.0> %i, %j : f64
            )" +
         f + "%next = add %t, %p" + std::to_string(operations) + R"( : f64
            yield %next
          }
          %square = mul %sum, %sum : f64
          %more = add %of_row, %square : f64
          yield %more
        }
        yield %of_rows
      }
      store<2.0> %i, %all
      yield
    }
    yield
  })";
}
}  // namespace

TEST_CASE("rounds through triangles of constant sides are written out, and lanes of vectors") {
  constexpr int pairs = 9 * 8 / 2;
  for (const X86& cpu : all_x86)
    for (int operations : {0, 5, 20}) {  // the last is more than one loop may have
      INFO(cpu.name << ", " << operations << " operations");
      CHECK(count_compiled(cpu, triangles(operations), "vfmadd\\w+pd[^\n]*[yz]mm") >=
            pairs * (1 + operations));
    }
}

TEST_CASE("what follows from the index through long code is not made again in each part of it") {
  const auto chain = [](int steps) {
    std::string code = "%t0 = constant<1> : f64\n%t1 = convert %i : f64\n%s0 = constant<0> : f64\n";
    for (int k = 0; k < steps; k++) {
      const std::string n = std::to_string(k), next = std::to_string(k + 2);
      code += "%p" + n + " = mul %t1, %t" + std::to_string(k + 1) + " : f64\n%t" + next +
              " = sub %p" + n + ", %t" + n + " : f64\n%q" + n + " = mul %s" + n + ", %t" + next +
              " : f64\n%s" + std::to_string(k + 1) + " = add %q" + n + ", %x : f64\n";
    }
    return R"(quern 1
  kernel @chain level=structured
  binding field rank=1 f64 "x"
  binding field rank=1 f64 "y"
  body {
    %zero = constant<0> : i32
    %one = constant<1> : i32
    %rounds = constant<40> : i32
    parallel over=0 {(%i: i32)
      %x = load<0.0> %i : f64
      )" + code +
           "%all = loop %zero, %rounds, %one, %s" + std::to_string(steps) +
           " : f64 {(%j: i32, %v: f64)\n%w = load<0.0> %j : f64\n%u = mul %v, %w : f64\n"
           "%r = add %u, %t" +
           std::to_string(steps + 1) + R"( : f64
        yield %r
      }
      store<1.0> %i, %all
      yield
    }
    yield
  })";
  };
  const auto products = [&](int steps) {
    return count_compiled(all_x86[1], chain(steps), "vmul[ps]d");
  };
  const int few = products(300);
  CHECK(few >= 2 * 300);
  CHECK(products(2400) <= 10 * few);
}

TEST_CASE("few elements far apart do not keep long sums from being lanes") {
  const std::string text = R"(quern 1
  kernel @layer level=structured modes=contract
  binding field rank=2 f64 "x"
  binding field rank=2 f64 "w"
  binding field rank=1 f64 "y"
  body {
    %zero = constant<0> : i32
    %one = constant<1> : i32
    %size = constant<24> : i32
    parallel over=2 {(%i: i32)
      %z = slot<24> : slot f64
      %h = slot<24> : slot f64
      loop %zero, %size, %one {(%r: i32)
        %far = load<0.0> %i, %r : f64
        put %h, %r, %far
        yield
      }
      loop %zero, %size, %one {(%r: i32)
        %far = load<0.0> %i, %r : f64
        %sum = loop %zero, %size, %one, %far : f64 {(%c: i32, %s: f64)
          %a = load<1.0> %r, %c : f64
          %b = get %h, %c : f64
          %p = mul %a, %b : f64
          %t = add %s, %p : f64
          yield %t
        }
        put %z, %r, %sum
        yield
      }
      %last = get %z, %zero : f64
      store<2.0> %i, %last
      yield
    }
    yield
  })";
  for (const X86& cpu : all_x86) {
    INFO(cpu.name);
    CHECK(count_compiled(cpu, text, "vfmadd\\w+pd[^\n]*[yz]mm") >= 4);
  }
}

TEST_CASE("what inner loops add to a sum of all iterations leaves these lanes") {
  const std::string text = R"(quern 1
  kernel @sum level=structured modes=contract results(f64)
  binding field rank=1 f64 "x"
  body {
    %zero = constant<0> : i32
    %one = constant<1> : i32
    %rounds = constant<40> : i32
    %all = slot<1> : slot f64
    parallel over=0 {(%i: i32)
      %x = load<0.0> %i : f64
      %last = loop %zero, %rounds, %one, %x : f64 {(%j: i32, %v: f64)
        %w = sqrt %v : f64
        reduce.add %all, %w
        %next = add %w, %x : f64
        yield %next
      }
      store<0.0> %i, %last
      yield
    }
    %sum = get %all : f64
    yield %sum
  })";
  for (const X86& cpu : all_x86) {
    INFO(cpu.name);
    CHECK(count_compiled(cpu, text, "vsqrtpd[^\n]*[yz]mm") >= 1);
  }
}

TEST_CASE("pairs that iterations leave out are lanes of vectors, with what all share read once") {
  // All others' inverse distances, and to each what it has given.
  const std::string text = R"(quern 1
  kernel @pairs level=structured modes=contract
  binding field rank=1 f32 "x"
  binding field rank=1 f32 "y"
  binding field rank=1 f32 "sum"
  binding field rank=1 f32 "given"
  body {
    %zero = constant<0> : i32
    %one = constant<1> : i32
    %none = constant<0> : f32
    %unit = constant<1> : f32
    %n = extent<0.0> : i32
    parallel over=0 {(%i: i32)
      %x = load<0.0> %i : f32
      %y = load<1.0> %i : f32
      %sum = loop %zero, %n, %one, %none : f32 {(%j: i32, %s: f32)
        %other = ne %i, %j : b1
        %r = if %other : f32 {
          %p = load<0.0> %j : f32
          %q = load<1.0> %j : f32
          %a = sub %p, %x : f32
          %b = sub %q, %y : f32
          %c = mul %a, %a : f32
          %d = mul %b, %b : f32
          %e = add %c, %d : f32
          %f = sqrt %e : f32
          %g = div %unit, %f : f32
          %old = atomic.add<3.0> %j, %g : f32
          %t = add %s, %g : f32
          yield %t
        } {
          yield %s
        }
        yield %r
      }
      store<2.0> %i, %sum
      yield
    }
    yield
  })";
  for (const X86& cpu : all_x86) {
    INFO(cpu.name);
    CHECK(count_compiled(cpu, text, "vsqrtps[^\n]*[yz]mm") >= 1);
    CHECK(count_compiled(cpu, text, "v\\w*gather") == 0);
  }
}

// Streaming loops become wide instructions.
#include "ir/passes/lower/widen_halves.h"
#include "quern/ir/lower.h"
#include "quern/ir/text.h"
#include "tests/cpu/instructions/x86.h"

using namespace quern;
using test::all_x86;
using test::count_compiled;
using test::lowered;
using test::X86;

namespace {

runtime::Driver& driver() { return test::driver("cpu"); }

/// How many instructions of the optimised code match `pattern`.
int count(const X86& cpu, const std::string& text, const std::string& pattern) {
  return test::count(test::target_of(cpu), *ir::parse(text), pattern);
}

/// y[i] = a * x[i] + y[i] with the given alias classes.
std::string saxpy(const std::string& class_x, const std::string& class_y) {
  return test::each(driver(), R"(
    %a = arg<64> : f32
    %x = arg<72> : address
    %y = arg<80> : address
    %four = constant<4> : i64)",
                    R"(
      %o = mul %i, %four : i64
      %px = offset %x, %o : address
      %py = offset %y, %o : address
      %vx = read<)" + class_x +
                        R"(> %px : f32
      %vy = read<)" + class_y +
                        R"(> %py : f32
      %m = mul %a, %vx : f32
      %s = add %m, %vy : f32
      write<)" + class_y +
                        "> %py, %s",
                    " modes=contract");
}

const char* stencil = R"(quern 1
  kernel @stencil level=lowered modes=contract
  task range rank=1 walk=chunked domain { yield } {
    %u = arg<64> : address
    %v = arg<72> : address
    %row = arg<80> : i64
    %n = arg<88> : i64
    %lo = builtin.begin : i64
    %hi = builtin.end : i64
    %one = constant<1> : i64
    %four = constant<4> : i64
    %minus = constant<-4> : i64
    %c = constant<-4> : f32
    loop %lo, %hi, %one {(%i: i64)
      %r = mul %i, %row : i64
      %up = neg %row : i64
      loop.parallel_walk %one, %n, %one {(%j: i64)
        %o = mul %j, %four : i64
        %k = add %r, %o : i64
        %p = offset %u, %k : address
        %pn = offset %p, %up : address
        %ps = offset %p, %row : address
        %pw = offset %p, %minus : address
        %pe = offset %p, %four : address
        %vc = read<1> %p : f32
        %vn = read<1> %pn : f32
        %vs = read<1> %ps : f32
        %vw = read<1> %pw : f32
        %ve = read<1> %pe : f32
        %s1 = add %vn, %vs : f32
        %s2 = add %vw, %ve : f32
        %s3 = add %s1, %s2 : f32
        %s4 = mul %c, %vc : f32
        %s5 = add %s3, %s4 : f32
        %q = offset %v, %k : address
        write<2> %q, %s5
        yield
      }
      yield
    }
    yield
  })";

}  // namespace

TEST_CASE("streaming loops use the widest vectors") {
  for (const X86& cpu : all_x86) {
    INFO(cpu.name);
    const std::string wide = cpu.registers;
    CHECK(count(cpu, saxpy("1", "2"), "vfmadd\\w+ps[^\n]*" + wide) >= 1);
    CHECK(count(cpu, stencil, "vaddps[^\n]*" + wide) >= 3);
  }
}

TEST_CASE("halves convert by vectors") {
  const std::string text = R"(quern 1
  kernel @saxpy level=lowered modes=contract
  task range rank=1 walk=chunked domain { yield } {
    %a = arg<64> : f16
    %x = arg<72> : address
    %y = arg<80> : address
    %lo = builtin.begin : i64
    %hi = builtin.end : i64
    %one = constant<1> : i64
    %two = constant<2> : i64
    loop.parallel_walk %lo, %hi, %one {(%i: i64)
      %o = mul %i, %two : i64
      %px = offset %x, %o : address
      %py = offset %y, %o : address
      %vx = read<1> %px : f16
      %vy = read<2> %py : f16
      %m = mul %a, %vx : f16
      %s = add %m, %vy : f16
      write<2> %py, %s
      yield
    }
    yield
  })";
  for (const X86& cpu : all_x86) {
    INFO(cpu.name);
    auto kernel = ir::parse(text);
    ir::widen_halves(*kernel, test::target_of(cpu).traits);
    const std::string widened = ir::print(*kernel);
    // an instruction on halves rounds as the conversions do
    CHECK(count(cpu, widened, cpu.halves ? "vmulph[^\n]*[yz]mm" : "vcvtph2ps[^\n]*[yz]mm") >= 1);
    CHECK(count(cpu, widened, cpu.halves ? "vaddph[^\n]*[yz]mm" : "vcvtps2ph[^\n]*[yz]mm") >= 1);
    CHECK(count(cpu, widened, "vfmadd") == 0);
  }
}

TEST_CASE("a parallel loop over memory that may overlap needs no check of it") {
  for (const X86& cpu : all_x86) {
    INFO(cpu.name);
    for (const char* x : {"0", "1"})
      CHECK(count(cpu, saxpy(x, "1"), "vfmadd\\w+ps[^\n]*[yz]mm") >= 1);
    // one compare of pointers would be a `cmp` of two addresses read from the arguments
    auto kernel = ir::parse(saxpy("1", "1"));
    const std::string code =
        test::compiler(driver()).listing(*kernel, test::target_of(cpu), "llvm-optimised");
    CHECK(code.find("vector.body") != std::string::npos);
    CHECK(code.find("vector.memcheck") == std::string::npos);
  }
}

TEST_CASE("conversions, integer arithmetic and masked stores vectorise") {
  const std::string text = test::each(driver(), R"(
    %x = arg<64> : address
    %y = arg<72> : address
    %four = constant<4> : i64
    %zero = constant<0> : f32)",
                                      R"(
      %o = mul %i, %four : i64
      %px = offset %x, %o : address
      %py = offset %y, %o : address
      %v = read<1> %px : f32
      %c = lt %zero, %v : b1
      if %c {
        %n = convert %v : i32
        write<2> %py, %n
        yield
      } {
        yield
      })");
  for (const X86& cpu : test::with_avx512) {
    INFO(cpu.name);
    CHECK(count(cpu, text, "vmovdqu32[^\n]*zmm[^\n]*\\{%k") >= 1);
  }
}

TEST_CASE("components that lie side by side in a struct move as whole vectors, not one by one") {
  const std::string text = R"(quern 1
  kernel @aos level=lowered modes=contract
  task range rank=1 walk=chunked domain { yield } {
    %x = arg<64> : address
    %y = arg<72> : address
    %lo = builtin.begin : i64
    %hi = builtin.end : i64
    %one = constant<1> : i64
    %four = constant<4> : i64
    %eight = constant<8> : i64
    loop.parallel_walk %lo, %hi, %one {(%i: i64)
      %o = mul %i, %eight : i64
      %px = offset %x, %o : address
      %py = offset %y, %o : address
      %qx = offset %px, %four : address
      %qy = offset %py, %four : address
      %a = read<1> %px : f32
      %b = read<1> %qx : f32
      %c = read<2> %py : f32
      %d = read<2> %qy : f32
      %s = add %a, %c : f32
      %t = add %b, %d : f32
      write<2> %py, %s
      write<2> %qy, %t
      yield
    }
    yield
  })";
  for (const X86& cpu : all_x86) {
    INFO(cpu.name);
    CHECK(count(cpu, text, "vaddps[^\n]*[yz]mm") >= 1);
    CHECK(count(cpu, text, "gather|scatter") == 0);
  }
}

namespace {

/// y[i, j] by `rule`, of two elements of x.
std::string neighbours_in_row(const std::string& left_and_right, const std::string& rule) {
  return R"(quern 1
  kernel @row level=structured
  binding field rank=2 u8 "x"
  binding field rank=2 u8 "y"
  body {
    %zero = constant<0> : i32
    %one = constant<1> : i32
    %two = constant<2> : i32
    %h = extent<0.0> : i32
    %w = extent<0.1> : i32
    parallel %zero, %h, %zero, %w {(%i: i32, %j: i32)
      )" +
         left_and_right +
         R"(
      %a = convert %left : i32
      %b = convert %right : i32
      %n = add %a, %b : i32
      )" +
         rule +
         R"(
      store<1.0> %i, %j, %v
      yield
    }
    yield
  })";
}

const std::string exactly_one = R"(
  %c = eq %n, %one : b1
  %v = convert %c : u8)";

const std::string around = R"(
  %j0 = sub %j, %one : i32
  %j1 = add %j0, %w : i32
  %j2 = rem %j1, %w : i32
  %left = load<0.0> %i, %j2 : u8
  %j3 = add %j, %one : i32
  %j4 = eq %j3, %w : b1
  %j5 = select %j4, %zero, %j3 : i32
  %right = load<0.0> %i, %j5 : u8)";

const std::string guarded = R"(
  %dead = constant<0> : u8
  %j0 = sub %j, %one : i32
  %in0 = ge %j0, %zero : b1
  %left = if %in0 : u8 {
    %l = load<0.0> %i, %j0 : u8
    yield %l
  } {
    yield %dead
  }
  %j1 = add %j, %one : i32
  %in1 = lt %j1, %w : b1
  %right = if %in1 : u8 {
    %r = load<0.0> %i, %j1 : u8
    yield %r
  } {
    yield %dead
  })";

const std::string both_sides = R"(
  %left = load<0.0> %i, %j : u8
  %right = load<0.0> %zero, %j : u8)";

/// n == 2 || n == 1 && x[2, j] == 1, as it is recorded.
const std::string chain = R"(
  %yes = constant<1> : b1
  %no = constant<0> : b1
  %is2 = eq %n, %two : b1
  %c = if %is2 : b1 {
    yield %yes
  } {
    %is1 = eq %n, %one : b1
    %d = if %is1 : b1 {
      %again = load<0.0> %two, %j : u8
      %k = convert %again : i32
      %e = eq %k, %one : b1
      yield %e
    } {
      yield %no
    }
    yield %d
  }
  %v = convert %c : u8)";

/// v[i, j] = u between its elements at (a·i, a·j), clamped at the borders, as quern/sample.h records
/// it.
const char* bilinear = R"(quern 1
kernel @sample level=structured modes=contract
binding field rank=2 f32 "u"
binding field rank=2 f32 "v"
binding scalar f32 "a"
body {
  %a = param<2> : f32
  %zero = constant<0> : i32
  %one = constant<1> : i32
  %rows = extent<1.0> : i32
  %columns = extent<1.1> : i32
  %n = extent<0.0> : i32
  %m = extent<0.1> : i32
  %bottom = sub %n, %one : i32
  %right = sub %m, %one : i32
  %least = constant<-1073741824> : f32
  %greatest = constant<1073741824> : f32
  %none = constant<0> : f32
  parallel %zero, %rows, %zero, %columns {(%i: i32, %j: i32)
    %fi = convert %i : f32
    %x = mul %a, %fi : f32
    %xf = floor %x : f32
    %xl = max %least, %xf : f32
    %xg = min %greatest, %xl : f32
    %k = convert %xg : i32
    %s = sub %x, %xf : f32
    %fj = convert %j : f32
    %y = mul %a, %fj : f32
    %yf = floor %y : f32
    %yl = max %least, %yf : f32
    %yg = min %greatest, %yl : f32
    %l = convert %yg : i32
    %t = sub %y, %yf : f32
    %k1 = add %k, %one : i32
    %l1 = add %l, %one : i32
    %kb = min %k, %bottom : i32
    %kp = max %kb, %zero : i32
    %lb = min %l, %right : i32
    %lp = max %lb, %zero : i32
    %k1b = min %k1, %bottom : i32
    %k1p = max %k1b, %zero : i32
    %l1b = min %l1, %right : i32
    %l1p = max %l1b, %zero : i32
    %p = load<0.0> %kp, %lp : f32
    %q = load<0.0> %kp, %l1p : f32
    %r = load<0.0> %k1p, %lp : f32
    %u = load<0.0> %k1p, %l1p : f32
    %at_column = eq %t, %none : b1
    %at_row = eq %s, %none : b1
    %pq = sub %q, %p : f32
    %tpq = mul %t, %pq : f32
    %pt = add %p, %tpq : f32
    %above = select %at_column, %p, %pt : f32
    %ru = sub %u, %r : f32
    %tru = mul %t, %ru : f32
    %rt = add %r, %tru : f32
    %below = select %at_column, %r, %rt : f32
    %d = sub %below, %above : f32
    %sd = mul %s, %d : f32
    %as = add %above, %sd : f32
    %result = select %at_row, %above, %as : f32
    store<1.0> %i, %j, %result
    yield
  }
  yield
}
)";

/// Neighbouring bytes of memory become wider numbers of a vector.
const char* widened = "vpmovzxb\\w+[^\n]*\\([^\n]*[yz]mm";

}  // namespace

TEST_CASE("reads that wrap around or stop at a border become reads of neighbours by vectors") {
  for (const std::string& reads : {around, guarded}) {
    const std::string text = neighbours_in_row(reads, exactly_one);
    for (const X86& cpu : all_x86) {
      INFO(cpu.name << ":" << reads);
      CHECK(count_compiled(cpu, text, widened) >= 2);
    }
  }
}

TEST_CASE("a chain of comparisons does not keep a loop from vectors") {
  const std::string text = neighbours_in_row(both_sides, chain);
  for (const X86& cpu : test::with_avx512) {
    INFO(cpu.name);
    CHECK(count_compiled(cpu, text, widened) >= 2);
  }
}

TEST_CASE("a serial sum becomes wide where it may be reassociated, and only there") {
  auto dot = [](const std::string& flag, const std::string& length = "arg<80>") {
    return R"(quern 1
  kernel @dot level=lowered modes=contract
  task range rank=1 walk=chunked domain { yield } {
    %x = arg<64> : address
    %y = arg<72> : address
    %n = )" +
           length +
           R"( : i64
    %lo = builtin.begin : i64
    %hi = builtin.end : i64
    %none = constant<0> : i64
    %one = constant<1> : i64
    %four = constant<4> : i64
    %zero = constant<0> : f32
    loop %lo, %hi, %one {(%i: i64)
      %first = mul %i, %n : i64
      %sum = loop %none, %n, %one, %zero : f32 {(%j: i64, %s: f32)
        %at = add %first, %j : i64
        %o = mul %at, %four : i64
        %px = offset %x, %o : address
        %vx = read<1> %px : f32
        %square = mul %vx, %vx : f32
        %more = add)" +
           flag + R"( %s, %square : f32
        yield %more
      }
      %or = mul %i, %four : i64
      %q = offset %y, %or : address
      write<2> %q, %sum
      yield
    }
    yield
  })";
  };
  const std::string sums = "v(fmadd\\w+|add)ps[^\n]*[yz]mm";
  for (const X86& cpu : all_x86) {
    INFO(cpu.name);
    CHECK(count(cpu, dot(".reassociate"), sums) >= 1);
    CHECK(count(cpu, dot(""), sums) == 0);
    // Of few rounds they are not unrolled first, one addition for each.
    const int of_few = count(cpu, dot(".reassociate", "constant<32>"), sums);
    CHECK(of_few >= 1);
    CHECK(of_few <= 12);
  }
}

TEST_CASE("samples between elements, clamped at the borders, are computed by vectors") {
  for (const X86& cpu : test::with_avx512) {  // with AVX2 alone, LLVM takes gathers to be slow
    INFO(cpu.name);
    CHECK(count_compiled(cpu, bilinear, "vcvttps2dq[^\n]*[yz]mm") >= 1);
    CHECK(count_compiled(cpu, bilinear, "v(round|rndscale)ps[^\n]*[yz]mm") >= 1);
  }
}

namespace {
/// y[i] = x[i] and the sum of exp(x[i] * x[k]) over all k.
const char* sums = R"(quern 1
  kernel @sums level=structured modes=contract
  binding field rank=1 f32 "x"
  binding field rank=1 f32 "y"
  body {
    %zero = constant<0> : i32
    %one = constant<1> : i32
    %n = extent<0.0> : i32
    parallel %zero, %n {(%i: i32)
      %x = load<0.0> %i : f32
      %sum = loop %zero, %n, %one, %x : f32 {(%k: i32, %s: f32)
        %y = load<0.0> %k : f32
        %m = mul %x, %y : f32
        %e = exp %m : f32
        %t = add %s, %e : f32
        yield %t
      }
      store<1.0> %i, %sum
      yield
    }
    yield
  })";
}  // namespace

TEST_CASE("exp in an inner loop becomes vectors over the outer one") {
  // exp of r, less its constant term, is a polynomial of degree 6 at least
  for (const X86& cpu : all_x86) {
    INFO(cpu.name);
    CHECK(count_compiled(cpu, sums, "vfn?madd\\w+ps[^\n]*[yz]mm") >= 6);
  }
}

TEST_CASE("arrays that take values from one part of a strip to the next are not cleared") {
  const std::string mark = "slot.unset";
  for (const X86& cpu : all_x86) {
    INFO(cpu.name);
    auto is_cleared = [&](const std::string& text) {
      const std::string code = test::compiler(driver()).listing(
          *ir::parse(text), test::target_of(cpu), "llvm-optimised");
      return code.find("@llvm.memset") != std::string::npos;
    };
    std::string text = lowered(cpu, sums);
    CHECK_FALSE(is_cleared(text));
    for (size_t at; (at = text.find(mark)) != std::string::npos;)
      text.replace(at, mark.size(), "slot");
    CHECK(is_cleared(text));
  }
}

TEST_CASE("what stands before atomics is computed by vectors") {
  const std::string text = R"(quern 1
  kernel @scatter level=structured modes=contract
  binding field rank=1 f32 "x"
  binding field rank=1 i32 "at"
  binding field rank=1 f32 "y"
  body {
    %zero = constant<0> : i32
    %one = constant<1> : f32
    %n = extent<0.0> : i32
    parallel %zero, %n {(%i: i32)
      %x = load<0.0> %i : f32
      %k = load<1.0> %i : i32
      %a = mul %x, %x : f32
      %b = add %a, %one : f32
      %c = sqrt %b : f32
      %d = div %x, %c : f32
      %e = sub %d, %b : f32
      %f = mul %e, %d : f32
      %old = atomic.add<2.0> %k, %f : f32
      yield
    }
    yield
  })";
  for (const X86& cpu : all_x86) {
    INFO(cpu.name);
    CHECK(count_compiled(cpu, text, "vdivps[^\n]*[yz]mm") >= 1);
  }
}

TEST_CASE("copies of a field are combined, and merged with it, by vectors") {
  const std::string text = R"(quern 1
  kernel @scatter level=structured modes=contract
  binding field rank=1 f32 "x"
  binding field rank=1 i32 "at"
  binding field rank=1 f32 "y"
  body {
    %zero = constant<0> : i32
    %n = extent<0.0> : i32
    parallel %zero, %n {(%i: i32)
      %x = load<0.0> %i : f32
      %k = load<1.0> %i : i32
      %old = atomic.add<2.0> %k, %x : f32
      yield
    }
    yield
  })";
  // A copy's elements are added from memory; of the field's, what there is to add is asked first.
  for (const X86& cpu : all_x86) {
    INFO(cpu.name);
    CHECK(count_compiled(cpu, text, "vaddps\\s[^\n]*\\([^\n]*[yz]mm") >= 1);
    CHECK(count_compiled(cpu, text, "vaddps\\s+%[yz]mm") >= 1);
    CHECK(count_compiled(cpu, text, "vpcmpeqd\\s[^\n]*[yz]mm") >= 1);
  }
}

TEST_CASE(
    "copies of what components lie beside each other are combined without a check of overlap") {
  const std::string text = R"(quern 1
  kernel @scatter level=structured modes=contract
  binding field rank=1 f32 "x"
  binding field rank=1 i32 "at"
  binding field rank=1 f32, f32 "y"
  body {
    %zero = constant<0> : i32
    %n = extent<0.0> : i32
    parallel %zero, %n {(%i: i32)
      %x = load<0.0> %i : f32
      %k = load<1.0> %i : i32
      %one = atomic.add<2.0> %k, %x : f32
      %other = atomic.add<2.1> %k, %x : f32
      yield
    }
    yield
  })";
  for (const X86& cpu : all_x86) {
    INFO(cpu.name);
    const std::string code = test::compiler(driver()).listing(
        *ir::parse(lowered(cpu, text)), test::target_of(cpu), "llvm-optimised");
    CHECK(code.find("vector.body") != std::string::npos);
    CHECK(code.find("vector.memcheck") == std::string::npos);
  }
}

TEST_CASE("quotients and remainders of integers are computed by vectors") {
  const std::string text = R"(quern 1
  kernel @wrap level=structured
  binding field rank=1 i32 "x"
  binding field rank=1 u32 "y"
  body {
    %zero = constant<0> : i32
    %n = extent<0.0> : i32
    %u = convert %n : u32
    parallel %zero, %n {(%i: i32)
      %x = load<0.0> %i : i32
      %r = rem %x, %n : i32
      store<0.0> %i, %r
      %y = load<1.0> %i : u32
      %q = div %y, %u : u32
      store<1.0> %i, %q
      yield
    }
    yield
  })";
  for (const X86& cpu : all_x86) {
    INFO(cpu.name);
    CHECK(count_compiled(cpu, text, "vdivpd[^\n]*[yz]mm") >= 2);
  }
}

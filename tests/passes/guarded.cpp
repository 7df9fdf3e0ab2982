// Checks of checked mode beside guards: those that guards make needless go away, and random indices
// under random guards are reported exactly where arithmetic in C++ says that they are out of range.
#include <algorithm>
#include <functional>
#include <optional>
#include <random>
#include <utility>

#include "ir/passes/checks/check_access.h"
#include "ir/passes/checks/check_arithmetic.h"
#include "ir/passes/record/add_sites.h"
#include "ir/passes/tasks/bind.h"
#include "ir/passes/tasks/open_tasks.h"
#include "ir/passes/tasks/split_tasks.h"
#include "quern/ir/lower.h"
#include "quern/ir/text.h"
#include "tests/catch.h"
#include "tests/passes/run.h"

using namespace quern;
using namespace quern::ir;

namespace {

Signature signature_of(const Kernel& kernel) {
  Signature s;
  for (uint32_t k = 0; k < kernel.bindings.size(); k++) s.fields.push_back({true, k});
  s.modes = kernel.modes;
  return s;
}

/// A loop over x (i32, its extent is %n) with parameters %a and %b; y is another field.
std::string over_x(const std::string& body, const std::string& bounds = "%zero, %n") {
  return R"(quern 1
    kernel @k level=structured modes=checked
    binding field rank=1 i32 "x"
    binding field rank=1 i32 "y"
    binding scalar i32 "a"
    binding scalar i32 "b"
    body {
      %zero = constant<0> : i32
      %one = constant<1> : i32
      %two = constant<2> : i32
      %n = extent<0.0> : i32
      %m = extent<1.0> : i32
      %a = param<2> : i32
      %b = param<3> : i32
      parallel )" +
         bounds + " {(%i: i32)\n" + body + "\nyield\n}\nyield\n}";
}

size_t checks(const std::string& text, void (*pass)(Kernel&) = check_access) {
  auto kernel = parse(text);
  add_sites(*kernel);
  split_tasks(*kernel);
  bind(*kernel, signature_of(*kernel));
  open_tasks(*kernel, {});
  pass(*kernel);
  size_t found = 0;
  walk(*kernel, [&](Inst* inst) { found += inst->is(Op::check); });
  return found;
}

/// Walks that report nothing, and walks, of the lowered kernel.
std::pair<int, int> free_walks(const std::string& text) {
  auto kernel = parse(text);
  optimise(*kernel);
  split(*kernel);
  lower(*kernel, signature_of(*kernel), {});
  std::pair<int, int> found{0, 0};
  walk(*kernel, [&](Inst* inst) {
    if (!inst->is(Op::loop) || inst->kind != parallel_walk) return;
    bool reports = false;
    walk(inst->region(0), [&](Inst* i) { reports |= i->is(Op::rmw) || i->is(Op::call); });
    found.first += !reports;
    found.second++;
  });
  return found;
}

/// `if i > 0 && i < last` around x[i - 1] and x[i + 1]; `&&` as it is recorded.
std::string guarded(const std::string& last, const std::string& field) {
  return R"(
    %low = gt %i, %zero : b1
    %in = if %low : b1 {
      %last = )" +
         last + R"( : i32
      %high = lt %i, %last : b1
      yield %high
    } {
      %no = constant<0> : b1
      yield %no
    }
    if %in {
      %up = add %i, %one : i32
      %down = sub %i, %one : i32
      %p = load<)" +
         field + R"(.0> %up : i32
      store<)" +
         field + R"(.0> %down, %p
      yield
    } {
      yield
    })";
}

}  // namespace

TEST_CASE("guards by the extent leave no check") {
  CHECK(checks(over_x(guarded("sub %n, %one", "0"))) == 0);
  CHECK(checks(over_x(guarded("sub %n, %one", "0"), "%a, %b")) == 0);  // whatever the loop is
  CHECK(checks(over_x(guarded("add %n, %zero", "0"))) == 1);           // i + 1 may be n
  CHECK(checks(over_x(guarded("sub %m, %one", "1"), "%a, %b")) == 0);
  CHECK(checks(over_x(guarded("sub %m, %one", "0"))) == 1);  // that is another field's extent
}

TEST_CASE("guards by a parameter leave a walk without checks") {
  using Pair = std::pair<int, int>;
  CHECK(free_walks(over_x(guarded("sub %n, %one", "0"))) == Pair(1, 1));
  CHECK(free_walks(over_x(guarded("sub %a, %one", "0"))) == Pair(1, 2));
  CHECK(free_walks(over_x(guarded("sub %m, %one", "0"))) == Pair(1, 2));
  CHECK(free_walks(over_x(R"(
    %at = load<0.0> %i : i32
    %v = load<1.0> %at : i32
    store<0.0> %i, %v)")) == Pair(0, 1));  // anything
}

TEST_CASE("in checked mode too, the inside of a guarded walk is a walk without branches") {
  auto has_straight_walk = [](const std::string& text) {
    auto kernel = parse(text);
    optimise(*kernel);
    split(*kernel);
    TargetTraits target;
    target.strip = 4;
    lower(*kernel, signature_of(*kernel), target);
    bool found = false;
    walk(*kernel, [&](Inst* inst) {
      if (!inst->is(Op::loop) || inst->kind != parallel_walk) return;
      bool branches = false, writes = false;
      walk(inst->region(0), [&](Inst* i) {
        branches |= !i->regions.empty();
        writes |= i->is(Op::write);
      });
      found |= writes && !branches;
    });
    return found;
  };
  CHECK(has_straight_walk(over_x(guarded("sub %n, %one", "0"))));
  CHECK(has_straight_walk(over_x(guarded("sub %a, %one", "0"))));
  CHECK_FALSE(has_straight_walk(over_x(R"(
    %at = load<0.0> %i : i32
    %v = load<1.0> %at : i32
    store<0.0> %i, %v)")));
}

TEST_CASE("clamped, wrapped, halved and doubled indices need no check") {
  auto reads = [](const std::string& index) {
    return checks(over_x("%last = sub %n, %one : i32\n" + index + R"(
      %v = load<0.0> %at : i32
      store<0.0> %i, %v)"));
  };
  CHECK(reads("%up = add %i, %two : i32\n%c = min %up, %last : i32\n%at = max %c, %zero : i32") ==
        0);
  CHECK(reads("%up = add %i, %two : i32\n%at = max %up, %zero : i32") == 1);
  CHECK(reads("%e = eq %i, %zero : b1\n%down = sub %i, %one : i32\n"
              "%at = select %e, %last, %down : i32") == 0);
  CHECK(reads("%e = eq %i, %one : b1\n%down = sub %i, %one : i32\n"
              "%at = select %e, %last, %down : i32") == 1);
  CHECK(reads("%at = shr %i, %one : i32") == 0);
  CHECK(reads("%at = div %i, %two : i32") == 0);
  CHECK(reads("%at = shl %i, %one : i32") == 1);
  CHECK(checks(over_x(R"(
    %half = div %n, %two : i32
    %in = lt %i, %half : b1
    if %in {
      %at = mul %i, %two : i32
      %next = add %at, %one : i32
      %v = load<0.0> %at : i32
      store<0.0> %next, %v
      yield
    } {
      yield
    })")) == 0);
}

TEST_CASE("arrays are not checked where the index is known to be in range") {
  auto gets = [](const std::string& count) {
    return checks(over_x("%t = slot<" + count + R"(> : slot i32
      %four = constant<4> : i32
      loop %zero, %four, %one {(%k: i32)
        put %t, %k, %i
        yield
      })"));
  };
  CHECK(gets("4") == 0);
  CHECK(gets("3") == 1);
}

TEST_CASE("conversions and divisions that cannot fail are not checked") {
  auto remain = [](const std::string& body) { return checks(over_x(body), check_arithmetic); };
  CHECK(remain("%q = div %a, %n : i32\nstore<0.0> %i, %q") == 0);  // the loop runs: n > 0
  CHECK(remain("%q = div %a, %i : i32\nstore<0.0> %i, %q") == 1);
  CHECK(remain("%d = add %i, %one : i32\n%q = rem %a, %d : i32\nstore<0.0> %i, %q") == 0);
  CHECK(remain("%q = rem %a, %m : i32\nstore<0.0> %i, %q") == 1);
  CHECK(remain(R"(
    %some = gt %i, %zero : b1
    if %some {
      %q = rem %a, %i : i32
      store<0.0> %i, %q
      yield
    } {
      %q = rem %a, %i : i32
      store<0.0> %i, %q
      yield
    })") == 1);
  const std::string root = R"(
    %seven = constant<7> : i32
    %r = rem %a, %seven : i32
    %f = convert %r : f32
    %s = mul %f, %f : f32
    %t = sqrt %s : f32
    )";
  CHECK(remain(root + "%v = convert %t : i8\n%w = convert %v : i32\nstore<0.0> %i, %w") == 0);
  CHECK(remain(root + "%e = exp %s : f32\n%w = convert %e : i32\nstore<0.0> %i, %w") == 1);
  CHECK(remain(root + "%e = sqrt %f : f32\n%w = convert %e : i32\nstore<0.0> %i, %w") == 1);
}

// ---- random guards and indices

namespace {

struct Inputs {
  int32_t i, k, a, b, n, m;
};

/// An expression of i32, as text and as C++.
struct Expr {
  std::string name;
  std::function<int32_t(const Inputs&)> value;
};
struct Condition {
  std::string name;
  std::function<bool(const Inputs&)> value;
};

int32_t wrapped(int64_t v) { return int32_t(uint32_t(uint64_t(v))); }

class Programs {
 public:
  explicit Programs(uint64_t seed) : random_(seed) {}

  std::string code;

  uint64_t below(uint64_t n) { return random_() % n; }

  Expr expr(int depth, bool inner) {
    if (depth == 0 || below(4) == 0) return leaf(inner);
    const Expr a = expr(depth - 1, inner), b = expr(depth - 1, inner);
    const int32_t c = int32_t(below(3)) + 1;
    switch (below(9)) {
      case 0:
      case 1:
        return made("add " + a.name + ", " + b.name,
                    [=](const Inputs& in) { return wrapped(int64_t(a.value(in)) + b.value(in)); });
      case 2:
      case 3:
        return made("sub " + a.name + ", " + b.name,
                    [=](const Inputs& in) { return wrapped(int64_t(a.value(in)) - b.value(in)); });
      case 4:
        return made("min " + a.name + ", " + b.name,
                    [=](const Inputs& in) { return std::min(a.value(in), b.value(in)); });
      case 5:
        return made("max " + a.name + ", " + b.name,
                    [=](const Inputs& in) { return std::max(a.value(in), b.value(in)); });
      case 6:
        return made("mul " + a.name + ", " + number(c),
                    [=](const Inputs& in) { return wrapped(int64_t(a.value(in)) * c); });
      case 7:
        if (below(2))
          return made("shr " + a.name + ", " + number(c),
                      [=](const Inputs& in) { return a.value(in) >> c; });
        return made("rem " + a.name + ", " + number(c),
                    [=](const Inputs& in) { return a.value(in) % c; });
      default: {
        const Condition q = condition(depth - 1, inner);
        return made("select " + q.name + ", " + a.name + ", " + b.name,
                    [=](const Inputs& in) { return q.value(in) ? a.value(in) : b.value(in); });
      }
    }
  }

  Condition condition(int depth, bool inner) {
    if (depth > 0 && below(2)) {
      const Condition a = condition(depth - 1, inner), b = condition(depth - 1, inner);
      switch (below(3)) {
        case 0:
          return asked("bit_and " + a.name + ", " + b.name,
                       [=](const Inputs& in) { return a.value(in) && b.value(in); });
        case 1:
          return asked("bit_or " + a.name + ", " + b.name,
                       [=](const Inputs& in) { return a.value(in) || b.value(in); });
        default: return asked("bit_not " + a.name, [=](const Inputs& in) { return !a.value(in); });
      }
    }
    const Expr a = expr(1, inner), b = below(3) ? bound() : expr(1, inner);
    switch (below(6)) {
      case 0:
        return asked("lt " + a.name + ", " + b.name,
                     [=](const Inputs& in) { return a.value(in) < b.value(in); });
      case 1:
        return asked("le " + a.name + ", " + b.name,
                     [=](const Inputs& in) { return a.value(in) <= b.value(in); });
      case 2:
        return asked("gt " + a.name + ", " + b.name,
                     [=](const Inputs& in) { return a.value(in) > b.value(in); });
      case 3:
        return asked("ge " + a.name + ", " + b.name,
                     [=](const Inputs& in) { return a.value(in) >= b.value(in); });
      case 4:
        return asked("eq " + a.name + ", " + b.name,
                     [=](const Inputs& in) { return a.value(in) == b.value(in); });
      default:
        return asked("ne " + a.name + ", " + b.name,
                     [=](const Inputs& in) { return a.value(in) != b.value(in); });
    }
  }

  /// What loops and guards compare with.
  Expr bound() {
    const Expr leaves[] = {{"%zero", [](const Inputs&) { return 0; }},
                           {"%n", [](const Inputs& in) { return in.n; }},
                           {"%m", [](const Inputs& in) { return in.m; }},
                           {"%a", [](const Inputs& in) { return in.a; }}};
    const Expr from = leaves[below(4)];
    const int32_t c = int32_t(below(4)) - 1;
    if (below(2)) return from;
    return made("sub " + from.name + ", " + number(c),
                [=](const Inputs& in) { return wrapped(int64_t(from.value(in)) - c); });
  }

 private:
  std::string fresh() { return "%v" + std::to_string(names_++); }
  std::string number(int32_t c) {
    const std::string name = fresh();
    code += name + " = constant<" + std::to_string(c) + "> : i32\n";
    return name;
  }
  Expr made(const std::string& what, std::function<int32_t(const Inputs&)> value) {
    const std::string name = fresh();
    code += name + " = " + what + " : i32\n";
    return {name, std::move(value)};
  }
  Condition asked(const std::string& what, std::function<bool(const Inputs&)> value) {
    const std::string name = fresh();
    code += name + " = " + what + " : b1\n";
    return {name, std::move(value)};
  }
  Expr leaf(bool inner) {
    if (below(3) == 0) return bound();
    if (inner && below(2)) return {"%k", [](const Inputs& in) { return in.k; }};
    if (below(6) == 0) {
      const int32_t c = int32_t(below(5)) - 2;
      return {number(c), [=](const Inputs&) { return c; }};
    }
    return {"%i", [](const Inputs& in) { return in.i; }};
  }

  std::mt19937_64 random_;
  int names_ = 0;
};

}  // namespace

TEST_CASE("random indices under random guards fail exactly where they are out of range") {
  constexpr int32_t extremes[] = {INT32_MIN, INT32_MIN + 1, INT32_MAX, INT32_MAX - 1};
  int failures = 0, successes = 0;
  for (uint64_t seed = 0; seed < 3000; seed++) {
    Programs p(seed);
    const bool inner = p.below(3) == 0;
    const Expr from = p.below(2) ? Expr{"%zero", [](const Inputs&) { return 0; }} : p.bound();
    const Expr to = p.bound();
    // Few rounds, whatever the parameters are: a bound is used where it is small.
    const std::string ends =
        p.code + R"(
      %few = constant<12> : i32
      %little = constant<-3> : i32
      )" +
        (p.below(2)
             ? "%lo = max " + from.name + ", %little : i32\n%hi = min " + to.name + ", %few : i32\n"
             : "%l = min " + from.name +
                   ", %few : i32\n%lo = max %l, %little : i32\n"
                   "%h = max " +
                   to.name + ", %little : i32\n%hi = min %h, %few : i32\n");
    const bool clamped = ends.find("%l = min") != std::string::npos;
    p.code.clear();
    const Condition guard = p.condition(2, inner);
    const std::string before = std::exchange(p.code, "");
    const Expr index = p.expr(3, inner);
    std::string body = before + "if " + guard.name + " {\n" + p.code + "%got = load<1.0> " +
                       index.name + " : i32\nstore<1.0> " + index.name +
                       ", %i\nyield\n} {\nyield\n}\n";
    if (inner)
      body =
          "%three = constant<3> : i32\nloop %zero, %three, %one {(%k: i32)\n" + body + "yield\n}\n";
    std::string text = over_x(body, "%lo, %hi");
    text.insert(text.find("parallel"), ends);
    CAPTURE(seed, text);
    auto kernel = parse(text);
    optimise(*kernel);
    split(*kernel);
    TargetTraits target;
    target.strip = seed % 2 ? 4 : 0;
    target.calls = seed % 3 == 0;
    lower(*kernel, signature_of(*kernel), target);
    for (int round = 0; round < 6; round++) {
      Inputs in{};
      in.n = int32_t(p.below(7));
      in.m = int32_t(p.below(7));
      in.a = p.below(5) ? int32_t(p.below(9)) - 1 : extremes[p.below(4)];
      in.b = 0;
      int64_t lo = from.value(in), hi = to.value(in);
      lo = std::max<int64_t>(clamped ? std::min<int64_t>(lo, 12) : lo, -3);
      hi = std::min<int64_t>(clamped ? std::max<int64_t>(hi, -3) : hi, 12);
      std::optional<int64_t> wrong;
      std::vector<Bits> y(size_t(in.m), 0);
      for (int64_t i = lo; i < hi; i++)
        for (int k = 0; k < (inner ? 3 : 1); k++) {
          in.i = int32_t(i);
          in.k = k;
          if (!guard.value(in)) continue;
          const int32_t at = index.value(in);
          if (at >= 0 && at < in.m)
            y[size_t(at)] = Bits(uint32_t(in.i));
          else if (!wrong)
            wrong = at;
        }
      const test::Fields fields = {std::vector<Bits>(size_t(in.n), 0),
                                   std::vector<Bits>(size_t(in.m), 0),
                                   {Bits(uint32_t(in.a))},
                                   {0}};
      const auto out = test::run(*kernel, fields, {.grain = 100});
      REQUIRE(out.failed == wrong.has_value());
      if (wrong) {
        REQUIRE(out.values == std::vector<Bits>{Bits(*wrong), 0, Bits(uint32_t(in.m))});
        failures++;
      } else {
        successes++;
      }
      REQUIRE(out.fields[1] == y);
    }
  }
  CHECK(failures > 2000);
  CHECK(successes > 2000);
}

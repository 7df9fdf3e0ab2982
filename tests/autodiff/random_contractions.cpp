// Random kernels that sum products over rounds, as those that going back turns round: adjoints
// beside sums by plain loops. A program is a tree of small structures, and what each does is written
// twice: `value` and what is like it for the host, `record` for a kernel.
#include <quern/autodiff.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <optional>
#include <random>

#include "tests/end_to_end/devices.h"

using namespace qn::lang;

namespace {

using Place = std::array<int, 3>;

/// A field to read, and what is in it. Its bounds follow from what a program reads.
struct Operand {
  Place lo = {1000, 1000, 1000}, end = {-1000, -1000, -1000};
  bool is_guarded = true;  ///< reads ask first whether the element is there
  std::vector<double> values, adjoints;
  std::optional<qn::Field<double, 3>> field;

  size_t size() const {
    return size_t(end[0] - lo[0]) * size_t(end[1] - lo[1]) * size_t(end[2] - lo[2]);
  }
  bool has(const Place& p) const {
    for (size_t a = 0; a < 3; a++)
      if (p[a] < lo[a] || p[a] >= end[a]) return false;
    return true;
  }
  size_t number(const Place& p) const {
    size_t n = 0;
    for (size_t a = 0; a < 3; a++) n = n * size_t(end[a] - lo[a]) + size_t(p[a] - lo[a]);
    return n;
  }
  void reach(const Place& p, bool guarded) {
    for (size_t a = 0; a < 3; a++)
      lo[a] = std::min(lo[a], p[a]), end[a] = std::max(end[a], p[a] + 1);
    is_guarded &= guarded;
  }
};
using Operands = std::vector<Operand>;

/// What indices are sums of: settings, which are the kernel's parameter and three extents of a
/// field, then three indices of the result's element and those of rounds, outermost first.
using Indices = std::vector<int>;
using Recorded = std::vector<I32>;
constexpr int settings = 4;

/// A sum of indices and a number.
struct Index {
  struct Part {
    int of, factor;
  };
  std::vector<Part> parts;
  int constant = 0;

  int value(const Indices& i) const {
    int sum = constant;
    for (const auto& [of, factor] : parts) sum += factor * i[size_t(of)];
    return sum;
  }
  I32 record(const Recorded& i, size_t first = 0) const {
    if (first == parts.size()) return constant;
    const auto [of, factor] = parts[first];
    const I32 index = i[size_t(of)], rest = record(i, first + 1);
    return factor == 1 ? index + rest : factor == -1 ? rest - index : index * factor + rest;
  }
};

enum class Function { none, tanh, relu, square };

double value_of(Function f, double x) {
  if (f == Function::tanh) return std::tanh(x);
  if (f == Function::relu) return std::max(x, 0.0);
  return f == Function::square ? x * x : x;
}
double slope_of(Function f, double x) {
  if (f == Function::tanh) return 1 - std::tanh(x) * std::tanh(x);
  if (f == Function::relu) return x > 0 ? 1 : 0;
  return f == Function::square ? 2 * x : 1;
}
F64 record(Function f, F64 x) {
  if (f == Function::tanh) return tanh(x);
  if (f == Function::relu) return max(x, 0.0);
  return f == Function::square ? F64(x * x) : x;
}

/// A function of an element.
struct Read {
  size_t operand = 0;
  Index at[3];
  Function function = Function::none;

  Place place(const Indices& i) const { return {at[0].value(i), at[1].value(i), at[2].value(i)}; }
  double element(const Indices& i, const Operands& all) const {
    return all[operand].values[all[operand].number(place(i))];
  }
  double value(const Indices& i, const Operands& all) const {
    return value_of(function, element(i, all));
  }
  void go_back(const Indices& i, Operands& all, double adjoint) const {
    double& sum = all[operand].adjoints[all[operand].number(place(i))];
    sum += adjoint * slope_of(function, element(i, all));
  }
  F64 record(const Recorded& i, const Operands& all) const {
    const auto& field = *all[operand].field;
    return ::record(function, field(at[0].record(i), at[1].record(i), at[2].record(i)));
  }
};

struct Condition {
  enum Kind { at_most, differs, on_data, is_there } kind;
  Index a, b;
  Read read;

  bool value(const Indices& i, const Operands& all) const {
    switch (kind) {
      case at_most: return a.value(i) <= b.value(i);
      case differs: return a.value(i) != b.value(i);
      case on_data: return read.value(i, all) > -0.3;
      case is_there: break;
    }
    return all[read.operand].has(read.place(i));
  }
  B1 record(const Recorded& i, const Operands& all) const {
    switch (kind) {
      case at_most: return a.record(i) <= b.record(i);
      case differs: return a.record(i) != b.record(i);
      case on_data: return read.record(i, all) > -0.3;
      case is_there: break;
    }
    const auto& [lo, end] = std::tie(all[read.operand].lo, all[read.operand].end);
    const I32 p = read.at[0].record(i), q = read.at[1].record(i), r = read.at[2].record(i);
    return p >= lo[0] && p < end[0] && q >= lo[1] && q < end[1] && r >= lo[2] && r < end[2];
  }
};

/// One within the other.
struct Conditions {
  std::vector<Condition> all;

  bool value(const Indices& i, const Operands& operands) const {
    return std::ranges::all_of(all, [&](const Condition& c) { return c.value(i, operands); });
  }
  template <class F>
  void record(const Recorded& i, const Operands& operands, const F& body, size_t first = 0) const {
    if (first == all.size()) return body();
    If(all[first].record(i, operands)) { record(i, operands, body, first + 1); }
  }
};

/// A product of reads, in rounds of that depth; 0 is outside of them.
struct Term {
  size_t depth = 0;
  double factor = 1;
  std::vector<Read> reads;
  bool is_guarded = false;
  Conditions conditions;

  double value(const Indices& i, const Operands& all) const {
    double product = factor;
    for (const Read& r : reads) product *= r.value(i, all);
    return product;
  }
  void go_back(const Indices& i, Operands& all, double adjoint) const {
    for (const Read& r : reads) {
      double product = factor * adjoint;
      for (const Read& other : reads)
        if (&other != &r) product *= other.value(i, all);
      r.go_back(i, all, product);
    }
  }
  void record(const Recorded& i, const Operands& all, Var<double>& sum) const {
    conditions.record(i, all, [&] {
      Var<double> product = factor;
      for (const Read& r : reads) product *= r.record(i, all);
      sum += product;
    });
  }
};

/// Nested rounds: terms stand before the rounds within.
struct Rounds {
  struct Bounds {
    Index lo, end;
  };
  std::vector<Bounds> bounds;
  std::vector<Term> terms;
  Conditions conditions;  ///< for all

  /// Calls f(term) wherever one stands, i being the indices there.
  template <class F>
  void each(Indices& i, const F& f, size_t depth = 0) const {
    for (const Term& t : terms)
      if (t.depth == depth) f(t);
    if (depth == bounds.size()) return;
    for (int k = bounds[depth].lo.value(i); k < bounds[depth].end.value(i); k++) {
      i.push_back(k);
      each(i, f, depth + 1);
      i.pop_back();
    }
  }
  void record(const Recorded& i, const Operands& all, Var<double>& sum, size_t depth = 0) const {
    for (const Term& t : terms)
      if (t.depth == depth) t.record(i, all, sum);
    if (depth == bounds.size()) return;
    for (auto k : range(bounds[depth].lo.record(i), bounds[depth].end.record(i))) {
      Recorded within = i;
      within.push_back(k);
      record(within, all, sum, depth + 1);
    }
  }
};

/// Each element of the result is a function of a sum.
struct Program {
  int rank = 2;
  Place lo{}, end{};  ///< of the result; where its rank is 2, the last index is 0
  bool is_over_field = false, adds = false, is_strict = false;
  Function activation = Function::none;
  int parameter = 0;
  Place extents{};
  std::vector<Rounds> sums;
  Operands operands;
  static constexpr double start = 0.25;

  /// Calls f(indices) for each, in order.
  template <class F>
  void each_element(const F& f) const {
    for (int i = lo[0]; i < end[0]; i++)
      for (int j = lo[1]; j < end[1]; j++)
        for (int k = lo[2]; k < end[2]; k++) {
          Indices all = {parameter, extents[0], extents[1], extents[2], i, j, k};
          f(all);
        }
  }
  /// Calls f(term) for those that count.
  template <class F>
  void each_term(Indices& i, const F& f) const {
    for (const Rounds& r : sums)
      if (r.conditions.value(i, operands))
        r.each(i, [&](const Term& t) {
          if (t.conditions.value(i, operands)) f(t);
        });
  }
  /// From adjoints of the result: those of what is overwritten become 0.
  void go_back(std::vector<double>& of_result) {
    size_t n = 0;
    each_element([&](Indices& i) {
      double sum = start;
      each_term(i, [&](const Term& t) { sum += t.value(i, operands); });
      const double adjoint = of_result[n] * slope_of(activation, sum);
      each_term(i, [&](const Term& t) { t.go_back(i, operands, adjoint); });
      if (!adds) of_result[n] = 0;
      n++;
    });
  }
  F64 record(const Recorded& i) const {
    Var<double> sum = start;
    for (const Rounds& r : sums)
      r.conditions.record(i, operands, [&] { r.record(i, operands, sum); });
    return ::record(activation, sum);
  }

  /// Makes operands as large as reads want, smaller where these ask. Comes back: is it little work?
  bool make_room() {
    constexpr size_t most_reads = 120'000, most_elements = 1'000'000;
    size_t reads = 0, elements = 0;
    const auto reach = [&](const Read& r, const Indices& i, bool guarded) {
      operands[r.operand].reach(r.place(i), guarded);
      reads++;
    };
    const auto reach_for = [&](const Conditions& conditions, const Indices& i) {
      for (const Condition& c : conditions.all)
        if (c.kind == Condition::on_data) reach(c.read, i, false);
    };
    each_element([&](Indices& i) {
      if (reads > most_reads) return;
      for (const Rounds& sum : sums) {
        reach_for(sum.conditions, i);
        sum.each(i, [&](const Term& t) {
          reach_for(t.conditions, i);
          for (const Read& r : t.reads) reach(r, i, t.is_guarded);
        });
      }
    });
    for (Operand& o : operands) {
      if (o.lo[0] >= o.end[0]) o.reach({}, false);  // nothing is read
      for (size_t a = 0; a < 3; a++)
        if (o.is_guarded && o.end[a] - o.lo[a] > 2) o.lo[a]++, o.end[a] -= int(a % 2);
      elements += o.size();
    }
    return reads <= most_reads && elements <= most_elements;
  }
};

class Draw {
 public:
  explicit Draw(unsigned seed) : random_(seed) {}

  Program program() {
    Program p;
    p.rank = rank_ = between(2, 3);
    p.operands.resize(size_t(operands_ = between(1, 3)));
    const int of_many = one_in(3) ? between(0, rank_ - 1) : -1;  // sums over it go in pieces
    p.end[2] = 1;
    for (int a = 0; a < rank_; a++) {
      p.lo[size_t(a)] = between(-3, 3);
      p.end[size_t(a)] = p.lo[size_t(a)] + (a == of_many ? between(300, 600) : extent());
    }
    p.is_over_field = one_in(3), p.adds = one_in(3), p.is_strict = one_in(5);
    p.activation = function();
    p.parameter = one_in(4) ? 0 : between(1, 4);
    for (int& e : p.extents) e = extent();
    for (int n = one_in(3) ? 2 : 1; n > 0; n--) p.sums.push_back(rounds());
    return p.make_room() ? p : program();
  }
  std::vector<double> numbers(size_t n) {
    std::uniform_real_distribution<double> number(-1, 1);
    std::vector<double> v(n);
    for (double& e : v) e = number(random_);
    return v;
  }

 private:
  int between(int least, int most) { return least + int(random_() % unsigned(most - least + 1)); }
  bool one_in(int n) { return random_() % unsigned(n) == 0; }
  int extent() { return one_in(15) ? 0 : one_in(15) ? 20 : between(1, 5); }
  Function function() { return Function(between(0, 3)); }

  // Below, `loops` are as many as are around.
  Index::Part part(int loop, int factor) {
    return {settings + (loop < rank_ ? loop : loop + 3 - rank_), factor};
  }
  Index index(int loops, int first) {
    Index x;
    if (!one_in(8)) x.parts.push_back(part(first, !one_in(12) ? 1 : one_in(2) ? 2 : -1));
    if (one_in(3)) x.parts.push_back(part(loops - between(1, 2), one_in(3) ? -1 : 1));
    if (one_in(12)) x.parts.push_back(part(between(0, loops - 1), 1));
    if (one_in(10)) x.parts.push_back({between(0, settings - 1), 1});
    if (one_in(4)) x.constant = between(-2, 2);
    return x;
  }
  Read read(int loops) {
    Read r{size_t(between(0, operands_ - 1)), {}, one_in(3) ? function() : Function::none};
    // Mostly each axis has a loop of its own.
    const int first = between(0, loops - 1), step = one_in(2) ? 1 : loops - 1;
    for (int a = 0; a < 3; a++)
      if (a < 2 || one_in(2)) r.at[a] = index(loops, (first + a * step) % loops);
    return r;
  }
  void add_condition(Conditions& to, int loops) {
    Condition c{Condition::Kind(between(0, 2)), index(loops, between(0, loops - 1)),
                index(loops, between(0, loops - 1)), read(loops)};
    if (one_in(2)) c.b = {{}, between(0, 2)};
    to.all.push_back(c);
  }
  Term term(int depth) {
    Term t;
    const int loops = rank_ + depth;
    t.depth = size_t(depth), t.factor = 0.5 + between(0, 2), t.is_guarded = one_in(4);
    for (int n = between(1, 3); n > 0; n--) {
      t.reads.push_back(read(loops));
      if (t.is_guarded) t.conditions.all.push_back({Condition::is_there, {}, {}, t.reads.back()});
    }
    for (int n = one_in(2) ? 2 : 1; n > 0; n--)
      if (one_in(3)) add_condition(t.conditions, loops);
    return t;
  }
  Rounds::Bounds bounds() {
    const Index lo{{}, between(-2, 2)};
    if (one_in(3)) return {{}, {{{between(1, settings - 1), 1}}}};
    if (one_in(3)) return {lo, {{{0, 1}}, lo.constant}};
    return {lo, {{}, lo.constant + extent()}};
  }
  Rounds rounds() {
    Rounds r;
    const int depth = between(1, 3);
    for (int n = 0; n < depth; n++) r.bounds.push_back(bounds());
    r.terms.push_back(term(depth));
    for (int n = between(0, 2); n > 0; n--)
      r.terms.push_back(term(one_in(3) ? between(0, depth) : depth));
    if (one_in(6)) add_condition(r.conditions, rank_);
    return r;
  }

  std::mt19937 random_;
  int rank_ = 2, operands_ = 1;
};

template <int N>
qn::Field<double, N> field(const qn::Device& device, const Place& lo, const Place& end) {
  const int n = end[0] - lo[0], m = end[1] - lo[1];
  if constexpr (N == 2)
    return {device, {n, m}, qn::offset(lo[0], lo[1])};
  else
    return {device, {n, m, end[2] - lo[2]}, qn::offset(lo[0], lo[1], lo[2])};
}

template <int N>
void record(const Program& p, const qn::Field<int, 3>& extents, const qn::Field<double, N>& result,
            const I32& parameter) {
  const auto element = [&](const auto&... i) {
    Recorded all = {parameter, extents.dim(0), extents.dim(1), extents.dim(2), i...};
    if (N == 2) all.push_back(0);
    const F64 value = p.record(all);
    if (p.adds)
      result(i...) += value;
    else
      result(i...) = value;
  };
  const auto run = [&](const auto& domain) {
    if constexpr (N == 2)
      for (auto [i, j] : domain) element(i, j);
    else
      for (auto [i, j, k] : domain) element(i, j, k);
  };
  const auto along = [&](size_t axis) { return range(p.lo[axis], p.end[axis]); };
  if (p.is_over_field)
    run(result);
  else if constexpr (N == 2)
    run(grid(along(0), along(1)));
  else
    run(grid(along(0), along(1), along(2)));
}

void expect_near(const std::vector<double>& found, const std::vector<double>& expected) {
  double largest = 0, error = 0;
  for (double e : expected) largest = std::max(largest, std::abs(e));
  for (size_t k = 0; k < expected.size() && !std::isnan(error); k++)
    error = std::max(std::abs(found[k] - expected[k]), error);  // NaN where the first is
  CHECK(error <= 1e-10 * largest);
}

/// Comes back: was it compared, rather than refused?
template <int N>
bool compare(Program p, Draw& draw, const qn::Device& device) {
  for (Operand& o : p.operands) {
    o.values = draw.numbers(o.size()), o.adjoints = draw.numbers(o.size());
    o.field.emplace(field<3>(device, o.lo, o.end));
    o.field->copy_from(o.values), o.field->grad().copy_from(o.adjoints);
  }
  qn::Field<double, N> result = field<N>(device, p.lo, p.end);
  qn::Field<int, 3> extents{device, {p.extents[0], p.extents[1], p.extents[2]}};
  std::vector<double> of_result = draw.numbers(result.size());
  result.copy_from(draw.numbers(result.size())), result.grad().copy_from(of_result);
  qn::Kernel<void(I32)> kernel{[&](I32 parameter) { record<N>(p, extents, result, parameter); },
                               {.strict = p.is_strict}};
  const std::string refused = error_of([&] { qn::vjp(kernel)(p.parameter)(); });
  if (!refused.empty()) {
    INFO(refused);
    CHECK(p.is_strict);
    CHECK_THAT(refused, contains("strict"));
    return false;
  }
  p.go_back(of_result);
  expect_near(qn::to_vector(result.grad()), of_result);
  for (const Operand& o : p.operands) expect_near(qn::to_vector(o.field->grad()), o.adjoints);
  return true;
}

/// Programs of seeds up to the last of the device.
void compare_seeds(unsigned last_on_interpreter, unsigned last_on_cpu, unsigned last_on_others) {
  on_every_device([&](const qn::Device& device) {
    const std::string name = device.name();
    const unsigned on_cpu = name == "cpu" ? last_on_cpu : last_on_others;
    const unsigned last = name == "interpreter" ? last_on_interpreter : on_cpu;
    unsigned compared = 0;
    for (unsigned seed = 1; seed <= last; seed++) {
      INFO("seed " << seed);
      Draw draw(seed);
      const Program p = draw.program();
      compared += p.rank == 2 ? compare<2>(p, draw, device) : compare<3>(p, draw, device);
    }
    CHECK(2 * compared >= last);
    if (last > 0)
      std::printf("%s: %u compared, %u refused\n", name.c_str(), compared, last - compared);
  });
}

}  // namespace

TEST_CASE("random sums over rounds agree with sums by hand") { compare_seeds(150, 30, 10); }
TEST_CASE("random sums over rounds agree with sums by hand: 4,000 of them", "[.long][autodiff]") {
  compare_seeds(3'000, 1'000, 0);
}

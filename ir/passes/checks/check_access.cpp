#include "ir/passes/checks/check_access.h"

#include <algorithm>
#include <map>
#include <utility>

#include "ir/analysis/facts.h"
#include "ir/analysis/ranges.h"
#include "ir/analysis/slice.h"
#include "ir/passes/checks/guarded_access.h"
#include "quern/ir/builder.h"

namespace quern::ir {

namespace {

/// Holds if its form is not negative; or if any, or all, of its parts hold.
struct Test {
  enum Kind : uint8_t { form, any, all } kind = form;
  Affine of;
  std::vector<Test> parts;
};

/// Alike but for the constants of their forms?
bool alike(const Test& a, const Test& b) {
  return a.kind == b.kind && a.of.terms == b.of.terms &&
         std::ranges::equal(a.parts, b.parts, alike);
}

/// Makes of a test one that implies another as well, which is alike.
void tighten(Test& a, const Test& b) {
  a.of.constant = std::min(a.of.constant, b.of.constant);
  for (size_t k = 0; k < a.parts.size(); k++) tighten(a.parts[k], b.parts[k]);
}

/// Turns questions about all rounds of a loop into tests that stand before it.
class Eliminator {
 public:
  Eliminator(const Kernel& kernel, Ranges& ranges, Inst* loop)
      : ranges_(ranges), loop_(loop), slicer_(kernel, loop->region(0)) {}

  /// A test that holds before the loop only if the form is never negative where the region, which is
  /// within the loop, runs.
  std::optional<Test> test(const Affine& form, const Region* region) {
    steps_ = most_steps;
    region_ = region;
    return eliminate(form, {}, deepest);
  }

  /// Every test takes these symbols to be within ±2^40.
  const std::vector<const Value*>& limited() const { return limited_; }

  /// The value of a symbol that `test` left, before the loop.
  Value* value(Builder& b, const Value* symbol) {
    if (const Ranges::Named* n = ranges_.named(symbol)) {
      if (n->op == Op::param) return b.param(n->part.binding, n->type);
      return n->op == Op::extent ? b.extent(n->part.binding, n->part.component, n->type)
                                 : b.first(n->part.binding, n->part.component, n->type);
    }
    if (!is_inside(symbol)) return const_cast<Value*>(symbol);
    repeat(b, slicer_.of(symbol), map_);
    return map_.at(symbol);
  }

 private:
  static constexpr int deepest = 8, most_steps = 60;
  static constexpr size_t most_alternatives = 3;
  static constexpr int64_t limit = int64_t(1) << 40, few = 1 << 20;

  static const Region* home(const Value* v) { return v->inst ? v->inst->parent : v->region; }
  bool is_inside(const Value* v) const { return encloses(loop_->region(0), home(v)); }
  bool is_known_before(const Value* v) {
    if (ranges_.named(v)) return true;
    return is_inside(v) ? slicer_.repeatable(v) : encloses(home(v), loop_->parent);
  }

  std::optional<Test> eliminate(const Affine& form, const std::vector<Affine>& assumed, int depth) {
    if (ranges_.of(form).least >= 0) return Test{Test::all, {}, {}};
    if (depth == 0 || steps_-- <= 0) return std::nullopt;
    const std::vector<Affine::Term> terms = ranges_.ordered(form);
    auto inner = std::ranges::find_if(
        terms, [&](const Affine::Term& t) { return !is_known_before(t.symbol); });
    if (inner == terms.end()) return known_before(form);
    const Affine::Term term = *inner;
    Test any{Test::any, {}, {}};
    auto by = [&](const std::vector<Affine>& facts) {
      for (const Affine& fact : facts) {
        if (any.parts.size() == most_alternatives) return;
        std::optional<Affine> rest = Ranges::without(form, fact, term.symbol);
        if (!rest) continue;
        if (std::optional<Test> t = eliminate(*rest, assumed, depth - 1)) add(any, *std::move(t));
      }
    };
    by(assumed);
    by(ranges_.facts(region_));
    by(ranges_.facts_of(term.symbol, region_));
    if (std::optional<Test> t = by_cases(form, term, assumed, depth)) add(any, *std::move(t));
    if (any.parts.empty()) return by_numbers(form, term, assumed, depth);
    if (std::ranges::any_of(any.parts, holds)) return Test{Test::all, {}, {}};
    return any.parts.size() == 1 ? std::move(any.parts[0]) : std::move(any);
  }

  static bool holds(const Test& t) { return t.kind == Test::all && t.parts.empty(); }
  static void add(Test& any, Test t) {
    auto same = std::ranges::find_if(any.parts, [&](const Test& p) { return alike(p, t); });
    if (same == any.parts.end())
      any.parts.push_back(std::move(t));
    else if (t.kind == Test::form)
      same->of.constant = std::max(same->of.constant, t.of.constant);
  }

  std::optional<Test> by_cases(const Affine& form, const Affine::Term& term,
                               const std::vector<Affine>& assumed, int depth) {
    Test all{Test::all, {}, {}};
    const std::vector<Ranges::Case> cases = ranges_.cases(term.symbol, region_);
    if (cases.empty()) return std::nullopt;
    for (const Ranges::Case& c : cases) {
      std::vector<Affine> here = assumed;
      here.insert(here.end(), c.facts.begin(), c.facts.end());
      std::optional<Affine> rest = sum(form, {{{term.symbol, 1}}, 0}, -term.factor);
      if (rest) rest = sum(*rest, c.value, term.factor);
      std::optional<Test> t;
      if (rest) t = eliminate(*rest, here, depth - 1);
      if (!t) return std::nullopt;
      if (!holds(*t)) all.parts.push_back(*std::move(t));
    }
    return all;
  }

  /// By what the symbol may be as a number, where that is not anything.
  std::optional<Test> by_numbers(const Affine& form, const Affine::Term& term,
                                 const std::vector<Affine>& assumed, int depth) {
    const Interval range = ranges_.of(term.symbol);
    const int64_t least = term.factor > 0 ? range.least : range.most;
    if (range.least < -few || range.most > few) return std::nullopt;
    std::optional<Affine> rest = sum(form, {{{term.symbol, 1}}, -least}, -term.factor);
    return rest ? eliminate(*rest, assumed, depth - 1) : std::nullopt;
  }

  /// The form itself, where it can be computed in 64 bits.
  std::optional<Test> known_before(const Affine& form) {
    if (ranges_.of(form).most < 0) return std::nullopt;
    auto grows = [](int64_t& total, int64_t by) {
      return by == INT64_MIN || __builtin_add_overflow(total, by < 0 ? -by : by, &total);
    };
    int64_t most = 0;
    if (grows(most, form.constant)) return std::nullopt;
    std::vector<const Value*> limited;
    for (const Affine::Term& t : ranges_.ordered(form)) {
      Interval range = ranges_.of(t.symbol);
      if (range.least < -limit || range.most > limit) {
        if (t.symbol->type == Type::u64) return std::nullopt;
        limited.push_back(t.symbol);
        range = {-limit, limit};
      }
      int64_t part;
      if (__builtin_mul_overflow(t.factor, std::max(-range.least, range.most), &part) ||
          grows(most, part))
        return std::nullopt;
    }
    for (const Value* v : limited)
      if (std::ranges::find(limited_, v) == limited_.end()) limited_.push_back(v);
    return Test{Test::form, form, {}};
  }

 public:
  /// The tests that a symbol is within ±2^40; right for symbols that are not, too, as they wrap.
  static std::vector<Test> within_limit(const Value* symbol) {
    return {{Test::form, {{{symbol, 1}}, limit}, {}}, {Test::form, {{{symbol, -1}}, limit}, {}}};
  }

 private:
  Ranges& ranges_;
  Inst* loop_;
  Slicer slicer_;
  const Region* region_ = nullptr;
  int steps_ = 0;
  std::vector<const Value*> limited_;
  ValueMap map_;
};

class Checker {
 public:
  Checker(Kernel& kernel, Region* body)
      : kernel_(kernel), b_(kernel), ranges_(body, &kernel), body_(body) {}

  void run() {
    std::vector<Inst*> accesses;
    walk(body_, [&](Inst* inst) {
      if (inst->is(Op::check) || inst->site == no_site) return;
      if (kernel_.sites[inst->site].kind != Site::bounds) return;
      accesses.push_back(inst);
    });
    // Forms and facts are of the code as it was, so the tests stand before the first check.
    std::vector<Access> judged;
    for (Inst* inst : accesses) judged.push_back(judge(inst));
    for (const Access& access : judged)
      for (const Axis& axis : access.axes)
        if (axis.state == Axis::tested) make_test(access.inst->parent, axis.loop);
    for (const Access& access : judged) check(access);
  }

 private:
  /// Accesses that run together: the region they stand in, and the loop before which one test
  /// tells of all of them.
  using Place = std::pair<Region*, Inst*>;
  struct Tests {
    std::vector<Test> all;
    Value* holds = nullptr;
  };
  struct Axis {
    enum : uint8_t { proven, tested, open } state = open;
    Inst* loop = nullptr;     ///< tested
    std::vector<Test> tests;  ///< before it
  };
  struct Access {
    Inst* inst;
    std::vector<Axis> axes;
  };

  // ---- what is known of an index

  /// What must not be negative for the index to be in range.
  struct Question {
    std::vector<Affine> forms;
    void add(const std::optional<Affine>& form) {
      if (form)
        forms.push_back(*form);
      else
        impossible = true;
    }
    bool impossible = false;
  };

  Question question(const Value* index, const Affine& at, const Affine& begin, const Affine& size,
                    bool may_wrap) {
    Question q;
    q.add(sum(at, begin, -1));
    std::optional<Affine> last = sum(begin, size, 1);
    if (last) last = sum(*last, {{}, 1}, -1);
    if (last) last = sum(*last, at, -1);
    q.add(last);
    if (may_wrap) q.add(sum({{}, interval_of(index->type).most}, at, -1));
    return q;
  }

  /// The questions of which one suffices: of the index as a number; and of its form modulo 2^width,
  /// which is the index where it is in range.
  std::vector<Question> questions(const Value* index, const Affine& begin, const Affine& size) {
    std::vector<Question> all;
    const Affine& exact = ranges_.exact(index);
    all.push_back(question(index, exact, begin, size, false));
    if (!is_signed(index->type) || bit_width(index->type) < 32) return all;
    std::optional<Affine> wrapping = ranges_.expanded(forms_.of(index));
    if (wrapping && *wrapping != exact)
      all.push_back(question(index, *wrapping, begin, size, index->type == Type::i32));
    return all;
  }

  bool proven(const Question& q, const Region* region) {
    return !q.impossible && std::ranges::all_of(q.forms, [&](const Affine& form) {
      return ranges_.not_negative(form, region);
    });
  }

  Access judge(Inst* inst) {
    Access access{inst, {}};
    const bool is_array = inst->is(Op::get) || inst->is(Op::put);
    const uint32_t rank = is_array ? 1 : kernel_.bindings[inst->binding()].rank;
    for (uint32_t k = 0; k < rank; k++) {
      Affine begin, size;
      if (is_array) {
        size = {{}, int64_t(inst->operand(0)->inst->imm)};
      } else {
        size = {{{ranges_.extent(inst->binding(), k), 1}}, 0};
        if (!kernel_.bindings[inst->binding()].zero_based)
          begin = {{{ranges_.first(inst->binding(), k), 1}}, 0};
      }
      const Value* index = inst->operand(is_array ? 1 : k);
      access.axes.push_back(judge(index, inst->parent, begin, size, is_array));
    }
    // Where one index is checked in any case, no test tells of the access.
    const bool all =
        std::ranges::none_of(access.axes, [](const Axis& a) { return a.state == Axis::open; });
    for (Axis& axis : access.axes) {
      if (axis.state != Axis::tested) continue;
      if (all)
        add(axis.tests, places_[{inst->parent, axis.loop}].all);
      else
        axis.state = Axis::open;
    }
    return access;
  }

  static void add(std::vector<Test>& tests, std::vector<Test>& all) {
    for (Test& t : tests) {
      auto same = std::ranges::find_if(all, [&](const Test& other) { return alike(other, t); });
      if (same == all.end())
        all.push_back(std::move(t));
      else
        tighten(*same, t);
    }
  }

  Axis judge(const Value* index, Region* region, const Affine& begin, const Affine& size,
             bool is_array) {
    const std::vector<Question> all = questions(index, begin, size);
    for (const Question& q : all)
      if (proven(q, region)) return {Axis::proven, nullptr, {}};
    if (is_array) return {};
    std::vector<Inst*> loops;  // innermost first
    for (Inst* at = region->parent; at; at = at->parent->parent)
      if (at->is(Op::parallel) || at->is(Op::loop)) loops.push_back(at);
    const size_t outermost = loops.size() > most_loops ? loops.size() - most_loops : 0;
    for (size_t k = loops.size(); k-- > outermost;)
      for (const Question& q : all)
        if (auto tests = tests_of(q, region, loops[k]))
          return {Axis::tested, loops[k], *std::move(tests)};
    return {};
  }

  /// The tests before the loop that answer the question, if there are such.
  std::optional<std::vector<Test>> tests_of(const Question& q, Region* region, Inst* loop) {
    if (q.impossible) return std::nullopt;
    Eliminator& eliminator = eliminators_.try_emplace(loop, kernel_, ranges_, loop).first->second;
    std::vector<Test> found;
    for (const Affine& form : q.forms) {
      if (ranges_.not_negative(form, region)) continue;
      std::optional<Test> t = eliminator.test(form, region);
      if (!t) return std::nullopt;
      found.push_back(*std::move(t));
    }
    return found;
  }

  // ---- tests before a loop

  Value* emit(const Test& t, Eliminator& eliminator) {
    if (t.kind == Test::form) {
      Value* total = b_.integer(Type::i64, t.of.constant);
      for (const Affine::Term& term : ranges_.ordered(t.of)) {
        Value* v = b_.convert(eliminator.value(b_, term.symbol), Type::i64);
        if (term.factor == -1) {
          total = b_.sub(total, v);
        } else {
          if (term.factor != 1) v = b_.mul(v, b_.integer(Type::i64, term.factor));
          total = b_.add(total, v);
        }
      }
      return b_.binary(Op::ge, total, b_.integer(Type::i64, 0));
    }
    Value* out = nullptr;
    for (const Test& part : t.parts) {
      Value* v = emit(part, eliminator);
      out = out ? b_.binary(t.kind == Test::any ? Op::bit_or : Op::bit_and, out, v) : v;
    }
    return out ? out : b_.boolean(t.kind == Test::all);
  }

  /// Before the loop: does every round of it keep all accesses of the region in range?
  void make_test(Region* region, Inst* loop) {
    Tests& tests = places_.at({region, loop});
    if (tests.holds) return;
    b_.before(loop).at(loop->loc);
    Eliminator& eliminator = eliminators_.at(loop);
    Test all{Test::all, {}, tests.all};
    for (const Value* symbol : eliminator.limited())
      for (Test& t : Eliminator::within_limit(symbol)) all.parts.push_back(std::move(t));
    tests.holds = emit(all, eliminator);
  }

  // ---- checks of one access

  void check(const Access& access) {
    const auto is_proven = [](const Axis& a) { return a.state == Axis::proven; };
    if (std::ranges::all_of(access.axes, is_proven)) return;
    Inst* inst = access.inst;
    if (inst->is(Op::get) || inst->is(Op::put))
      guard_array(b_, inst, inst->operand(1), inst->operand(0)->inst->imm);
    else
      field(access);
  }

  void field(const Access& access) {
    Inst* inst = access.inst;
    b_.before(inst).at(inst->loc);
    std::vector<uint32_t> axes;
    Value* known = nullptr;
    for (uint32_t k = 0; k < access.axes.size(); k++) {
      const Axis& judged = access.axes[k];
      if (judged.state == Axis::proven) continue;
      axes.push_back(k);
      if (judged.state != Axis::tested) continue;
      Value* holds_here = places_.at({inst->parent, judged.loop}).holds;
      if (!known) known = holds_here;
      if (known != holds_here) known = b_.binary(Op::bit_and, known, holds_here);
    }
    guard_indices(b_, kernel_, inst, axes, known);
  }

  static constexpr size_t most_loops = 4;

  Kernel& kernel_;
  Builder b_;
  AffineForms forms_;
  Ranges ranges_;
  Region* body_;
  std::map<Place, Tests> places_;
  std::map<Inst*, Eliminator> eliminators_;
};

}  // namespace

void check_access(Kernel& kernel) {
  if (!kernel.modes.checked) return;
  for (Task& task : kernel.tasks) Checker(kernel, task.body).run();
}

}  // namespace quern::ir

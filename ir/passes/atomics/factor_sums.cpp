#include "ir/passes/atomics/factor_sums.h"

#include <algorithm>
#include <optional>
#include <unordered_set>

#include "ir/analysis/facts.h"
#include "ir/analysis/slice.h"
#include "ir/passes/atomics/atomic_rules.h"
#include "ir/passes/atomics/follow.h"
#include "ir/passes/atomics/polynomials.h"
#include "ir/passes/optimise/dead_code.h"
#include "ir/passes/optimise/forward.h"
#include "ir/passes/optimise/simplify.h"
#include "ir/passes/optimise/write_out.h"
#include "quern/ir/abi.h"

namespace quern::ir {

namespace {

constexpr int64_t most_rounds = 4096;
constexpr size_t fewest_places = 6, most_sums = 128;
/// Loops of a task that are looked at closer, each of which takes as long as the task.
constexpr size_t most_looks = 4;
/// An update takes as long as so many operations, as iterations that are taken together add up what
/// they give first.
constexpr size_t operations_of_update = 3;
/// What two tasks more take, in operations.
constexpr uint64_t operations_of_tasks = 30000;

struct Rounds {
  int64_t first = 0, count = 0;
};

/// Of a loop whose rounds are constant, one by one, and carry nothing; its index may be a task's.
std::optional<Rounds> rounds_of(const Inst* loop) {
  if (!loop->is(Op::loop) || loop->operand_count() > 3 || loop->kind != 0) return std::nullopt;
  const Inst *lo = constant_of(loop->operand(0)), *hi = constant_of(loop->operand(1));
  if (!lo || !hi || !is_constant(loop->operand(2), 1)) return std::nullopt;
  const Type type = loop->operand(0)->type;
  if (type != Type::i32 && type != Type::i64) return std::nullopt;
  const int64_t first = to_signed(lo->imm, type), end = to_signed(hi->imm, type);
  int64_t count = 0;
  if (__builtin_sub_overflow(end, first, &count) || count < 2 || count > most_rounds)
    return std::nullopt;
  return Rounds{first, count};
}

/// A sum that may be of several: an addition to a place, whose result nobody uses.
bool is_sum(const Kernel& kernel, const Inst* inst) {
  return inst->is(Op::atomic) && inst->atomic() == AtomicOp::add && inst->elem == Type::f64 &&
         !inst->used() && !kernel.bindings[inst->binding()].layout.is_sparse() &&
         kernel.bindings[inst->binding()].components[inst->component()].exact;
}

/// Sums in a round, written out; at most, where rounds of inner loops follow from an index.
size_t sums_of(const Kernel& kernel, const Region* round) {
  size_t count = 0;
  for (const Inst* inst : *round) {
    count += is_sum(kernel, inst);
    if (!inst->is(Op::loop)) continue;
    const auto rounds = known_rounds(inst);
    count += sums_of(kernel, inst->region(0)) * size_t(rounds.value_or(most_rounds_written_out));
  }
  return count;
}

/// Loops directly in the iteration in which it may pay to look closer: by number in their region.
std::vector<size_t> worth_a_look(const Kernel& kernel, const Task& task) {
  std::vector<size_t> found;
  size_t number = 0;
  for (Inst* loop : *task.body) {
    number++;
    if (!rounds_of(loop) || sums_of(kernel, loop->region(0)) < fewest_places) continue;
    WrittenCode code;
    bool fits = true;
    for (Inst* inst : *loop->region(0))
      if (inst->is(Op::loop)) fits &= code.add(inst);
    if (fits && found.size() < most_looks) found.push_back(number - 1);
  }
  return found;
}

/// One loop of a task. Whoever tries keeps a copy of the task's body: where it does not pay, what is
/// left of it is good for nothing.
class Factoring {
 public:
  Factoring(Kernel& kernel, uint32_t task, size_t loop) : kernel_(kernel), task_(task), b_(kernel) {
    loop_ = kernel.tasks[task].body->first;
    for (size_t k = 0; k < loop; k++) loop_ = loop_->next;
    round_ = loop_->region(0);
    rounds_ = *rounds_of(loop_);
  }

  bool run() {
    write_out_loops();
    find_sums();
    if (places_.size() < fewest_places) return false;
    if (!find_products()) return false;
    const size_t before = operations() + operations_of_update * places_.size();
    declare();
    add_products();
    Task behind = finish();
    for (const std::vector<Inst*>& place : places_)
      for (Inst* sum : place) sum->erase();
    dead_code(kernel_, kernel_.tasks[task_].body);
    const size_t after = operations() + operations_of_update * products_.size();
    if (3 * after > 2 * before || !pays(before - after, behind.body)) return false;
    schedule(std::move(behind));
    return true;
  }

 private:
  void write_out_loops() {
    for (Inst* inst : *round_)
      if (inst->is(Op::loop)) write_out(kernel_, inst);
    Region* body = kernel_.tasks[task_].body;
    simplify_root(kernel_, body);
    forward_root(kernel_, body);
    simplify_root(kernel_, body);
  }

  /// Sums directly in the loop at places that all iterations share.
  void find_sums() {
    const Value* index = round_->arg(0);
    shared_.emplace(kernel_, kernel_.tasks[task_].body, std::span(&index, 1));
    const auto qualifies = [](const Inst*) { return true; };
    std::unordered_set<const Inst*> all;
    for (const auto& group : combinable_atomics(kernel_, kernel_.tasks[task_].body, qualifies))
      all.insert(group.begin(), group.end());
    for (Inst* inst : *round_) {
      if (!is_sum(kernel_, inst) || !all.contains(inst) || !has_shared_place(inst)) continue;
      const auto place = std::ranges::find_if(places_, [&](const std::vector<Inst*>& other) {
        return Effects::same_element(other[0], inst);
      });
      if (place == places_.end())
        places_.push_back({inst});
      else
        place->push_back(inst);
    }
  }

  bool has_shared_place(const Inst* inst) {
    for (size_t k = 0; k < Effects::indices(inst); k++)
      if (!shared_->repeatable(inst->operand(k))) return false;
    return true;
  }

  static Value* contribution(const Inst* sum) { return sum->operand(Effects::indices(sum)); }

  bool find_products() {
    for (const std::vector<Inst*>& place : places_)
      for (const Inst* sum : place) {
        for (const auto& [product, by] : polynomials_.of(contribution(sum)))
          products_.try_emplace(product, products_.size());
        if (products_.size() > most_sums || !polynomials_.fits()) return false;
      }
    return true;
  }

  /// Of a round, on floats; where elements lie costs little beside.
  size_t operations() const {
    size_t count = 0;
    walk(round_, [&](const Inst* inst) {
      count += is_float(inst->type()) && !inst->is(Op::constant) && !inst->is(Op::atomic);
    });
    return count;
  }

  void declare() {
    const Type component = Type::f64;
    buffer_ = abi::declare_buffer(kernel_, "sums of products", {&component, 1},
                                  {.rule = BufferSize::constant,
                                   .task = task_,
                                   .number = uint64_t(rounds_.count) * products_.size()},
                                  kernel_.tasks[task_].loc);
  }

  /// Where the products of a round begin.
  Value* first_of(Value* index) {
    Value* at = b_.convert(index, Type::i64);
    if (rounds_.first != 0) at = b_.sub(at, b_.integer(Type::i64, rounds_.first));
    return b_.mul(at, b_.integer(Type::i64, int64_t(products_.size())));
  }
  Value* element(Value* first, size_t number) {
    return b_.add(first, b_.integer(Type::i64, int64_t(number)));
  }

  /// At the end of each round. Products of the same are made of those of fewer factors, of which
  /// what is in most of them comes first, and stand behind these: what is taken apart into several
  /// loops there is computed and used in one.
  void add_products() {
    std::vector<size_t> count(polynomials_.factors.size());
    for (const auto& [product, number] : products_)
      for (uint32_t factor : product) count[factor]++;
    const auto is_before = [&](uint32_t a, uint32_t b) {
      return count[a] != count[b] ? count[a] > count[b] : a > b;
    };
    std::map<Product, Product> in_order;  ///< to the same as it was numbered
    for (const auto& [product, number] : products_) {
      Product made = product;
      std::ranges::sort(made, is_before);
      in_order[made] = product;
    }
    b_.before(round_->last).at(loop_->loc);
    Value* first = first_of(round_->arg(0));
    std::map<Product, Value*> made;
    size_t number = 0;
    for (const auto& [product, as_numbered] : in_order) {
      Value* v = value_of(product, made);
      Value* at = element(first, number);
      b_.atomic(AtomicOp::add, buffer_, 0, Type::f64, {&at, 1}, {&v, 1});
      products_[as_numbered] = number++;
    }
  }

  Value* value_of(const Product& of, std::map<Product, Value*>& made) {
    if (of.empty()) return b_.real(Type::f64, 1);
    if (const auto known = made.find(of); known != made.end()) return known->second;
    Value* v = polynomials_.factors[of.back()];
    if (of.size() > 1) v = b_.mul(value_of({of.begin(), of.end() - 1}, made), v);
    return made[of] = v;
  }

  /// The task behind: an iteration for each round.
  Task finish() {
    Task task = range(round_->arg(0)->type, rounds_);
    map_[round_->arg(0)] = task.body->arg(0);
    Value* first = first_of(task.body->arg(0));
    for (size_t k = 0; k < products_.size(); k++) {
      Value* at = element(first, k);
      sums_.push_back(b_.load(buffer_, 0, Type::f64, {&at, 1}));
    }
    for (const std::vector<Inst*>& place : places_) add_up(place);
    b_.yield();
    return task;
  }

  /// One update of a place.
  void add_up(const std::vector<Inst*>& place) {
    Value* all = nullptr;
    for (const Inst* sum : place) {
      b_.at(sum->loc);
      Value* v = summed(contribution(sum));
      all = all && v ? b_.add(all, v) : all ? all : v;
    }
    if (!all) return;
    const Inst* like = place[0];
    std::vector<Value*> index;
    for (size_t k = 0; k < Effects::indices(like); k++) index.push_back(again(like->operand(k)));
    b_.atomic(AtomicOp::add, like->binding(), like->component(), Type::f64, index, {&all, 1})
        ->site = like->site;
  }

  /// In the task behind, what all iterations share.
  Value* again(const Value* v) { return repeat_outside(b_, kernel_.tasks[task_].body, v, map_); }

  /// The sum of a value over all iterations, from those of products; null: 0. What is linear in
  /// others goes by their sums, which several may have in common. As deep as the code written out is
  /// long at most.
  Value* summed(Value* v) {
    const auto known = summed_.find(v);
    if (known != summed_.end()) return known->second;
    return summed_[v] = linear(v);
  }

  Value* linear(Value* v) {
    const Polynomial& all = polynomials_.of(v);
    if (all.empty()) return nullptr;
    const Inst* inst = v->inst;
    const bool is_one = all.size() == 1 && all.begin()->second == Coefficients::one;
    if (!is_one && inst->is(Op::neg)) return b_.unary(Op::neg, summed(inst->operand(0)));
    if (!is_one && inst->is(Op::mul))
      for (size_t k : {0, 1})
        if (shared_->repeatable(inst->operand(k)))
          return b_.mul(again(inst->operand(k)), summed(inst->operand(1 - k)));
    if (!is_one && (inst->is(Op::add) || inst->is(Op::sub))) {
      Value *a = summed(inst->operand(0)), *b = summed(inst->operand(1));
      if (a && b) return b_.binary(inst->op, a, b);
      return a ? a : inst->is(Op::add) ? b : b_.unary(Op::neg, b);
    }
    Value* sum = nullptr;
    for (const auto& [product, by] : all) {
      Value* term = polynomials_.coefficients.times(b_, by, sums_[products_.at(product)],
                                                    [this](const Value* of) { return again(of); });
      sum = sum ? b_.add(sum, term) : term;
    }
    return sum;
  }

  /// A task over so many indices, without a body's code; the builder stands in it.
  Task range(Type type, Rounds over) {
    const Task& like = kernel_.tasks[task_];
    Task task;
    task.kind = Task::range;
    task.rank = 1;
    task.loc = like.loc;
    task.domain = b_.make_region();
    b_.at_end(task.domain).at(task.loc);
    b_.yield({b_.integer(type, over.first), b_.integer(type, over.first + over.count)});
    task.body = b_.make_region({type});
    b_.at_end(task.body);
    return task;
  }

  /// Does it pay for what is done once, as far as the number of iterations is known?
  bool pays(size_t saved, Region* behind) {
    uint64_t iterations = 1;
    const Region* domain = kernel_.tasks[task_].domain;
    for (size_t k = 0; k < domain->last->operand_count(); k += 2) {
      const Inst *lo = constant_of(domain->last->operand(k)),
                 *hi = constant_of(domain->last->operand(k + 1));
      if (!lo || !hi) return true;
      const Type type = domain->last->operand(k)->type;
      const int64_t first = to_signed(lo->imm, type), end = to_signed(hi->imm, type);
      const uint64_t extent = end > first ? uint64_t(end) - uint64_t(first) : 0;
      if (__builtin_mul_overflow(iterations, extent, &iterations)) return true;
    }
    uint64_t once = 0;
    walk(behind, [&](const Inst*) { once++; });
    const auto rounds = uint64_t(rounds_.count);
    const uint64_t enough = 2 * rounds * once + operations_of_tasks;
    return iterations > enough / (rounds * saved);
  }

  void schedule(Task behind) {
    const size_t count = kernel_.tasks.size();
    std::vector<std::vector<Step>> before(count), after(count);
    before[task_] = {launch_of(kernel_, clear())};
    kernel_.bindings[buffer_].size.task = before[task_][0].task;
    only_after_iterations(behind);
    after[task_] = {launch_of(kernel_, std::move(behind))};
    precede(kernel_.schedule, before);
    follow(kernel_.schedule, after);
  }

  Task clear() {
    const uint64_t elements = kernel_.bindings[buffer_].size.number;
    Task task = range(Type::i64, {0, int64_t(elements)});
    Value* at = task.body->arg(0);
    b_.store(buffer_, 0, {&at, 1}, b_.real(Type::f64, -0.0));
    b_.yield();
    return task;
  }

  /// Without any nothing was to be touched, or may be there to be read.
  void only_after_iterations(Task& behind) {
    b_.before(behind.domain->last).at(behind.loc);
    ValueMap map;
    const std::vector<Value*> bounds = inline_region(b_, kernel_.tasks[task_].domain, map);
    Value* any = nullptr;
    for (size_t k = 0; k < bounds.size(); k += 2) {
      Value* some = b_.lt(bounds[k], bounds[k + 1]);
      any = any ? b_.binary(Op::bit_and, any, some) : some;
    }
    Inst* last = behind.domain->last;
    last->set_operand(1, b_.select(any, last->operand(1), last->operand(0)));
  }

  Kernel& kernel_;
  const uint32_t task_;
  Builder b_;
  Inst* loop_ = nullptr;
  Region* round_ = nullptr;
  Rounds rounds_;
  std::optional<Slicer> shared_;
  std::vector<std::vector<Inst*>> places_;  ///< the sums of each
  Polynomials polynomials_{[this](const Value* v) { return shared_->repeatable(v); }};
  std::map<Product, size_t> products_;  ///< numbered
  uint32_t buffer_ = 0;                 ///< of their sums, round by round
  // Of the task behind:
  ValueMap map_;
  std::vector<Value*> sums_;                         ///< of products, by number
  std::unordered_map<const Value*, Value*> summed_;  ///< values of the loop
};

}  // namespace

void factor_sums(Kernel& kernel) {
  if (kernel.modes.checked || kernel.modes.strict) return;
  const size_t tasks = kernel.tasks.size();
  for (uint32_t t = 0; t < tasks; t++) {
    if (kernel.tasks[t].kind != Task::range || !kernel.tasks[t].domain) continue;
    for (size_t loop : worth_a_look(kernel, kernel.tasks[t])) {
      Builder b(kernel);
      ValueMap map;
      Region* before = clone_region(b, kernel.tasks[t].body, map);
      const size_t bindings = kernel.bindings.size();
      if (Factoring(kernel, t, loop).run()) break;  // its other loops may be others now
      kernel.tasks[t].body = before;
      kernel.bindings.resize(bindings);
    }
  }
}

}  // namespace quern::ir

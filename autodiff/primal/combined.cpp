#include "autodiff/primal/combined.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "autodiff/primal/changed_reads.h"
#include "autodiff/primal/random_calls.h"
#include "ir/passes/atomics/atomic_rules.h"
#include "ir/passes/optimise/dead_code.h"
#include "quern/ir/builder.h"

namespace quern::autodiff {

using namespace ir;

namespace {

std::string place(Loc loc) { return std::string(loc.file) + ":" + std::to_string(loc.line); }

bool is_write(const Inst* inst) {
  return inst->is(Op::store) || (inst->is(Op::atomic) && inst->atomic() != AtomicOp::load);
}

bool is_product(const Inst* inst) { return inst->atomic() == AtomicOp::mul; }

/// What the copies of one loop do for all that it combines.
class Rewriter {
 public:
  Rewriter(Kernel& kernel, const std::vector<bool>& varies, bool knows_overlaps, Second second,
           Combined& out)
      : kernel_(kernel),
        varies_(varies),
        knows_overlaps_(knows_overlaps),
        second_(second),
        out_(out),
        b_(kernel) {}

  void run() {
    std::vector<Inst*> loops;
    std::vector<Inst*> serial;
    walk(kernel_.body, [&](Inst* inst) {
      if (inst->is(Op::parallel))
        loops.push_back(inst);
      else if (inst->is(Op::atomic) && (is_site(inst) || is_ordered(inst)) && !is_in_parallel(inst))
        serial.push_back(inst);
    });
    for (Inst* inst : serial) is_site(inst) ? combine_alone(inst) : do_in_turn(inst);
    for (Inst* loop : loops) behind(loop);
    if (copies_.empty()) return;
    for (const Copy& copy : copies_) drop_unused(copy.made->region(0));
    dead_code(kernel_);
    for (const Copy& copy : copies_) drop_unused(copy.made->region(0));
    for (const Copy& copy : copies_) expect_same(copy);
  }

 private:
  /// A copy of a loop, with its accesses of what is combined by those of the loop itself.
  struct Copy {
    Inst *of = nullptr, *made = nullptr;
    std::unordered_map<const Inst*, Inst*> at;
  };
  /// A variable that the loop reduces into.
  struct Variable {
    Value* slot = nullptr;
    bool is_product = false;
    Value* before = nullptr;  ///< the loop
    Value *result = nullptr, *part = nullptr;
    /// Slots: how many contributions equal the result, i64; of a product how many are 0.
    Value* count = nullptr;
    /// Of a product, slots: of the contributions that are not 0, and the sum of those that are,
    /// which varies.
    Value *rest = nullptr, *zeros = nullptr;
    Value *share = nullptr, *product = nullptr, *zero = nullptr;  ///< what came out of these
  };

  static bool is_in_parallel(const Inst* inst) {
    for (const Region* r = inst->parent; r->parent; r = r->parent->parent)
      if (r->parent->is(Op::parallel)) return true;
    return false;
  }

  bool is_site(const Inst* inst) const {
    if (inst->is(Op::reduce)) return is_combined(inst);
    return inst->is(Op::atomic) && is_combined(inst) && varies_[inst->binding()] && !inst->used();
  }

  static std::string what_of(const Inst* inst) {
    return (inst->is(Op::reduce) ? "what a loop reduces by " : "an atomic ") +
           std::string(name(inst->atomic())) + (inst->is(Op::reduce) ? "" : " of floats");
  }

  /// Does its old value, or what it leaves, depend on what was done before? Outside of parallel
  /// loops that is known.
  static bool is_ordered(const Inst* inst) {
    const AtomicOp op = inst->atomic();
    return op == AtomicOp::exchange || op == AtomicOp::cas ||
           (inst->used() && op != AtomicOp::load);
  }

  /// What cas leaves: the bits that it compares vary with nothing.
  Value* swapped(Value* old, std::span<Value* const> values) {
    const auto bits = [&](Value* v) {
      return b_.bitcast(b_.unary(Op::stop_gradient, v), bits_type(v->type));
    };
    return b_.select(b_.binary(Op::eq, bits(old), bits(values[0])), values[1], old);
  }

  /// Outside of parallel loops: a read and a store.
  void do_in_turn(Inst* inst) {
    b_.before(inst).at(inst->loc);
    const std::vector<Value*> index = indices(inst);
    Value* old = b_.load(inst->binding(), inst->component(), inst->elem, index);
    old->inst->site = inst->site;
    std::vector<Value*> values;
    for (size_t k = index.size(); k < inst->operand_count(); k++)
      values.push_back(inst->operand(k));
    const bool compares = inst->atomic() == AtomicOp::cas && is_float(inst->elem);
    Value* v = compares ? swapped(old, values) : updated(b_, inst->atomic(), old, values);
    b_.store(inst->binding(), inst->component(), index, v)->site = inst->site;
    inst->result()->replace_with(old);
    inst->erase();
  }

  /// Outside of parallel loops each is a loop of its own, of one iteration.
  void combine_alone(Inst* inst) {
    b_.before(inst).at(inst->loc);
    const std::vector<Value*> index = indices(inst);
    Value* old = b_.load(inst->binding(), inst->component(), inst->elem, index);
    old->inst->site = inst->site;
    const Op op = is_product(inst)                  ? Op::mul
                  : inst->atomic() == AtomicOp::min ? Op::fmin
                                                    : Op::fmax;
    Value* v = b_.binary(op, inst->operands.back().value, old);
    b_.store(inst->binding(), inst->component(), index, v)->site = inst->site;
    inst->erase();
  }

  void behind(Inst* loop) {
    std::vector<const Inst*> atomics, factors, reduces;
    walk(loop->region(0), [&](const Inst* inst) {
      if (is_site(inst)) (inst->is(Op::atomic) ? atomics : reduces).push_back(inst);
    });
    if (atomics.empty() && reduces.empty()) return;
    if (copies_.empty()) number_calls(kernel_);
    for (const Inst* site : atomics) {
      expect_alone(site, loop);
      if (is_product(site)) factors.push_back(site);
    }
    std::vector<Variable> variables;
    const auto variable_of = [&](const Inst* site) -> const Variable& {
      return *std::ranges::find(variables, site->operand(0), &Variable::slot);
    };
    const std::vector<const Inst*> fields = one_of_each(atomics, false);
    const std::vector<const Inst*> products = one_of_each(atomics, true);
    b_.before(loop).at(loop->loc);
    for (const Inst* site : products)
      sweep(site, [&] { store(others_of(site), site, load(site->binding(), site)); });
    for (const Inst* site : reduces) {
      Value* slot = site->operand(0);
      if (std::ranges::find(variables, slot, &Variable::slot) != variables.end()) continue;
      variables.push_back({slot, is_product(site), b_.get(slot)});
    }
    b_.after(loop).at(loop->loc);
    for (Variable& v : variables) prepare(v);
    for (const Inst* site : fields)
      sweep(site, [&] { store(ties_of(site), site, b_.real(site->elem, 0)); });
    for (const Inst* site : products) sweep(site, [&] { prepare(site); });
    std::vector<const Inst*> all = atomics;
    all.insert(all.end(), reduces.begin(), reduces.end());
    copy(loop, all, [&](const Inst* site) {
      if (site->is(Op::reduce)) {
        const Variable& v = variable_of(site);
        return count(v);
      }
      if (is_product(site)) return count(site);
      where_won(load(site->binding(), site), [&] {
        Value* one = b_.real(site->elem, 1);
        add(ties_of(site), site, one);
      });
    });
    for (Variable& v : variables) finish_count(v);
    if (second_ == Second::by_log && !products.empty()) vary_products(loop, factors, products);
    for (const Inst* site : fields)
      sweep(site, [&] {
        Value* result = load(site->binding(), site);
        store(result_of(site), site, result);
        Value* ties = load(ties_of(site), site);
        where(b_.lt(b_.real(site->elem, 0), ties), [&] {
          Value* alone = b_.unary(Op::stop_gradient, result);
          out_.without_value.push_back(store(site->binding(), site, alone));
        });
      });
    for (const Inst* site : products) sweep(site, [&] { finish(site); });
    copy(loop, all, [&](const Inst* site) {
      if (site->is(Op::reduce)) {
        const Variable& v = variable_of(site);
        return v.is_product ? add_factor(v) : where_won(v.result, [&] { add_part(v, v.share); });
      }
      if (is_product(site)) return add_factor(site);
      where_won(load(result_of(site), site),
                [&] { add_part(site, share_of(load(ties_of(site), site))); });
    });
    for (const Variable& v : variables) finish(v);
  }

  // ---- variables

  void prepare(Variable& v) {
    v.result = b_.get(v.slot);
    const Type type = v.result->type;
    v.count = b_.slot(Type::i64);
    v.part = b_.slot(type);
    if (!v.is_product) return;
    v.rest = b_.slot(type);
    b_.put(v.rest, b_.real(type, 1));
    v.zeros = b_.slot(type);
  }

  void count(const Variable& v) {
    Value* one = b_.integer(Type::i64, 1);
    if (!v.is_product) return where_won(v.result, [&] { reduce(v.count, one); });
    where(
        is_zero(contribution_),
        [&] {
          reduce(v.count, one);
          reduce(v.zeros, contribution_);
        },
        [&] { reduce(v.rest, contribution_, AtomicOp::mul); });
  }

  void finish_count(Variable& v) {
    if (v.is_product) {
      v.product = b_.get(v.rest);
      v.zero = b_.get(v.zeros);
    } else {
      Value* count = b_.get(v.count);
      v.share = share_of(b_.convert(count, v.result->type));
    }
  }

  void add_factor(const Variable& v) {
    Value* all = b_.mul(v.before, v.product);
    add_others(all, b_.get(v.count), v.zero, [&](Value* factor) { add_part(v, factor); });
  }

  void finish(const Variable& v) {
    Value* part = b_.get(v.part);
    Value* alone = b_.unary(Op::stop_gradient, v.result);
    Value* others = nullptr;
    if (v.is_product) {
      Value* count = b_.get(v.count);
      Value* factor = where_zeros(count, 0, v.product, v.zero, v.product);
      others = along(alone, v.before, factor);
    } else {
      Value* none = b_.integer(Type::i64, 0);
      Value* any = b_.lt(none, b_.get(v.count));
      others = b_.select(any, alone, v.result);
    }
    Value* one = b_.real(v.result->type, 1);
    b_.put(v.slot, along(others, part, one));
  }

  void add_part(const Variable& v, Value* factor) { reduce(v.part, zero_along(factor)); }

  // ---- products

  /// By which a product varies with the contribution: the product of all others. `all`: that of
  /// those that are not 0, `count`: how many are 0, `zero`: their sum, which varies, or null.
  template <class F>
  void add_others(Value* all, Value* count, Value* zero, F&& add) {
    where(
        is_zero(contribution_),
        [&] {
          Value* rest = zero ? b_.sub(zero, contribution_) : nullptr;
          add(where_zeros(count, 1, all, rest, all));
        },
        [&] {
          Value* others = b_.div(all, contribution_);
          add(where_zeros(count, 0, others, zero, others));
        });
  }

  /// `value` where so many contributions are 0; where there is one more the 0 that varies by
  /// `factor` with `zero`, if that is given, that one; else 0.
  Value* where_zeros(Value* count, int64_t zeros, Value* value, Value* zero, Value* factor) {
    Value* none = b_.real(value->type, 0);
    const auto are = [&](int64_t k) {
      Value* number =
          is_float(count->type) ? b_.real(count->type, double(k)) : b_.integer(count->type, k);
      return b_.binary(Op::eq, count, number);
    };
    Value* varying = zero ? b_.select(are(zeros + 1), along(none, zero, factor), none) : none;
    return b_.select(are(zeros), value, varying);
  }

  Value* is_zero(Value* v) { return b_.binary(Op::eq, v, b_.real(v->type, 0)); }

  // ---- products of elements

  void prepare(const Inst* site) {
    store(zeros_of(site), site, b_.real(site->elem, 0));
    store(product_of(site), site, b_.real(site->elem, 1));
    if (second_ != Second::none) store(zero_of(site), site, b_.real(site->elem, 0));
  }

  void count(const Inst* site) {
    where(
        is_zero(contribution_),
        [&] {
          add(zeros_of(site), site, b_.real(site->elem, 1));
          if (second_ != Second::none) add(zero_of(site), site, contribution_);
        },
        [&] { combine(AtomicOp::mul, product_of(site), site, contribution_); });
  }

  /// The products of what is not 0 once more, so that they vary: by themselves they do not, as no
  /// loop stands behind this one's copies.
  void vary_products(Inst* loop, const std::vector<const Inst*>& factors,
                     const std::vector<const Inst*>& products) {
    for (const Inst* site : products)
      sweep(site, [&] { store(rest_of(site), site, load(product_of(site), site)); });
    copy(loop, factors, [&](const Inst* site) {
      where(
          is_zero(contribution_), [] {},
          [&] {
            Value* others = b_.div(load(product_of(site), site), contribution_);
            add(rest_of(site), site, zero_along(others));
          });
    });
  }

  /// What was there before the loop has its part in the element, and becomes a factor of what each
  /// contribution varies by.
  void finish(const Inst* site) {
    Value* rest = load(second_ == Second::by_log ? rest_of(site) : product_of(site), site);
    store(others_of(site), site, b_.mul(load(others_of(site), site), rest));
    Value* result = load(site->binding(), site);
    Value* alone = b_.unary(Op::stop_gradient, result);
    Value* factor = where_zeros(load(zeros_of(site), site), 0, rest, zero_now(site), rest);
    out_.without_value.push_back(store(site->binding(), site, along(alone, result, factor)));
  }

  void add_factor(const Inst* site) {
    Value* all = load(others_of(site), site);
    Value* count = load(zeros_of(site), site);
    add_others(all, count, zero_now(site), [&](Value* factor) { add_part(site, factor); });
  }

  Value* zero_now(const Inst* site) {
    return second_ == Second::none ? nullptr : load(zero_of(site), site);
  }

  // ---- shares

  void add_part(const Inst* site, Value* factor) {
    out_.without_value.push_back(add(site->binding(), site, zero_along(factor)));
  }

  Value* share_of(Value* ties) { return b_.div(b_.real(ties->type, 1), ties); }

  /// One site of each component of a field, of products or of all others.
  static std::vector<const Inst*> one_of_each(const std::vector<const Inst*>& sites,
                                              bool of_products) {
    std::vector<const Inst*> found;
    for (const Inst* site : sites)
      if (is_product(site) == of_products &&
          std::ranges::find(found, site->part, &Inst::part) == found.end())
        found.push_back(site);
    return found;
  }

  // ---- copies

  /// Puts a copy of the loop behind what is there, in which `make` stands where the loop combines,
  /// in place of all else that it does.
  template <class F>
  void copy(Inst* loop, const std::vector<const Inst*>& sites, F&& make) {
    ValueMap map;
    Copy made{loop, clone_inst(b_, loop, map), {}};
    std::vector<const Inst*> from;
    std::vector<Inst*> to;
    walk(loop->region(0), [&](const Inst* inst) { from.push_back(inst); });
    walk(made.made->region(0), [&](Inst* inst) { to.push_back(inst); });
    for (size_t k = 0; k < from.size(); k++) made.at[from[k]] = to[k];
    for (const Inst* site : sites) {
      Inst* at = made.at.at(site);
      b_.before(at).at(at->loc);
      contribution_ = at->operands.back().value;
      indices_ = site->is(Op::atomic) ? indices(at) : std::vector<Value*>();
      make(site);
    }
    for (Inst* inst : to) {
      const bool is_effect =
          is_write(inst) || inst->is(Op::reduce) || inst->is(Op::check) || inst->is(Op::print);
      inst->site = no_site;  // the loop has checked it
      if (is_effect && !inst->used()) inst->erase();
    }
    b_.after(made.made).at(loop->loc);
    copies_.push_back(std::move(made));
  }

  /// For each element of the site's field.
  template <class F>
  void sweep(const Inst* site, F&& make) {
    const uint32_t field = site->binding();
    const uint8_t rank = kernel_.bindings[field].rank;
    indices_.clear();
    if (rank == 0) return make();
    Inst* loop = b_.make(Op::parallel, {}, {});
    loop->kind = rank;
    loop->options.over = field;
    const std::vector<Type> types(rank, Type::i64);
    Region* body = b_.make_region(std::span<const Type>(types));
    b_.set_regions(loop, {body});
    for (Value& index : body->args) indices_.push_back(&index);
    b_.at_end(body);
    make();
    b_.yield();
    b_.after(loop);
  }

  /// Also what might fail, as the loop has done it.
  static void drop_unused(Region* region) {
    for (Inst *inst = region->last, *before = nullptr; inst; inst = before) {
      before = inst->prev;
      for (Region* r : inst->regions) drop_unused(r);
      const bool is_needed =
          inst->used() || inst->results.empty() || has(inst->op, flag::writes | flag::control);
      if (!is_needed) inst->erase();
    }
  }

  template <class F>
  void where(Value* condition, F&& make) {
    where(condition, make, [] {});
  }
  template <class F, class G>
  void where(Value* condition, F&& make, G&& make_else) {
    Inst* branch = b_.if_(condition);
    b_.at_end(branch->region(0));
    make();
    b_.yield();
    b_.at_end(branch->region(1));
    make_else();
    b_.yield();
    b_.after(branch);
  }
  template <class F>
  void where_won(Value* result, F&& make) {
    where(b_.binary(Op::eq, contribution_, result), make);
  }

  std::vector<Value*> indices(const Inst* inst) const {
    std::vector<Value*> all;
    for (uint32_t k = 0; k < kernel_.bindings[inst->binding()].rank; k++)
      all.push_back(inst->operand(k));
    return all;
  }

  // Accesses where the site's is, which was checked there.
  Inst* own(Inst* made) {
    own_.insert(made);
    return made;
  }
  Value* load(uint32_t binding, const Inst* like) {
    Value* v = b_.load(binding, like->component(), like->elem, indices_);
    own(v->inst);
    return v;
  }
  Inst* store(uint32_t binding, const Inst* like, Value* v) {
    return own(b_.store(binding, like->component(), indices_, v));
  }
  Inst* combine(AtomicOp op, uint32_t binding, const Inst* like, Value* v) {
    return own(b_.atomic(op, binding, like->component(), like->elem, indices_, {&v, 1}));
  }
  Inst* add(uint32_t binding, const Inst* like, Value* v) {
    return combine(AtomicOp::add, binding, like, v);
  }
  void reduce(Value* slot, Value* v, AtomicOp op = AtomicOp::add) {
    Inst* made = b_.make(Op::reduce, {}, {slot, v});
    made->elem = v->type;
    made->kind = uint8_t(op);
    own(made);
  }

  // ---- scratch

  uint32_t ties_of(const Inst* site) { return scratch(site->binding(), "ties"); }
  uint32_t result_of(const Inst* site) { return scratch(site->binding(), "extremes"); }

  // Of products: how many contributions are 0, their sum, and the product of those that are not;
  // the same product where it varies; what was there before the loop, later times that product.
  uint32_t zeros_of(const Inst* site) { return scratch(site->binding(), "zeros"); }
  uint32_t zero_of(const Inst* site) { return scratch(site->binding(), "sum of zeros", true); }
  uint32_t product_of(const Inst* site) { return scratch(site->binding(), "product"); }
  uint32_t rest_of(const Inst* site) { return scratch(site->binding(), "varying product", true); }
  uint32_t others_of(const Inst* site) { return scratch(site->binding(), "factors", true); }

  uint32_t scratch(uint32_t of, const char* companion, bool varies = false) {
    uint32_t& known = scratch_[{of, companion}];
    if (known) return known;
    const Binding& field = kernel_.bindings[of];
    Binding made;
    made.kind = Binding::field;
    made.rank = field.rank;
    for (Component c : field.components) made.components.push_back({derivative_type(c.type)});
    made.name = std::string("the ") + companion + " of " + field.name;
    made.loc = field.loc;
    for (const Binding& other : kernel_.bindings)  // it overlaps none
      made.alias_class = std::max(made.alias_class, other.alias_class + 1);
    out_.scratch.push_back({of, companion, varies});
    kernel_.bindings.push_back(std::move(made));
    known = uint32_t(kernel_.bindings.size() - 1);
    return known;
  }

  // ---- zeros that vary

  /// The zero that changes nothing where it is added, and varies by `share` with the contribution.
  Value* zero_along(Value* share) {
    return along(b_.real(share->type, -0.0), contribution_, share);
  }

  /// `v`, which varies besides by `factor` with `from`.
  Value* along(Value* v, Value* from, Value* factor) {
    return b_.make(Op::apply, {v->type}, {v, from, factor}, along_function(v->type))->result();
  }

  uint32_t function(const char* name, Type type, size_t arguments, auto&& make) {
    Function f;
    f.name = name;
    f.loc = kernel_.loc;
    const std::vector<Type> types(arguments, type);
    f.body = b_.make_region(std::span<const Type>(types));
    Builder inside(kernel_);
    const std::vector<Value*> given = make(inside.at_end(f.body).at(kernel_.loc), *f.body);
    inside.yield(given);
    for (const Value* v : given) f.results.push_back(v->type);
    kernel_.callees.push_back(std::move(f));
    return uint32_t(kernel_.callees.size() - 1);
  }

  uint32_t along_function(Type type) {
    const auto known = along_.find(type);
    if (known != along_.end()) return known->second;
    const uint32_t push = function("along", type, 7, [](Builder& b, Region& r) {
      Value* term = b.mul(r.arg(5), r.arg(2));
      return std::vector{b.add(r.arg(4), term)};
    });
    const uint32_t pull = function("along", type, 5, [](Builder& b, Region& r) {
      Value* term = b.mul(r.arg(4), r.arg(2));
      Value* zero = b.real(r.arg(4)->type, 0);
      return std::vector{r.arg(4), term, zero};
    });
    const uint32_t made =
        function("along", type, 3, [](Builder&, Region& r) { return std::vector{r.arg(0)}; });
    Function& f = kernel_.callees[made];
    f.derivative = "along";
    f.pushforward = push;
    f.pullback = pull;
    return along_[type] = made;
  }

  // ---- what cannot be computed again

  static constexpr const char* in_its_own = "; combine in a loop of its own";

  [[noreturn]] static void refuse(const Inst* inst, const std::string& why) {
    throw Error(inst->loc, what_of(inst) + " has no derivative here: " + why);
  }

  /// May iterations meet at an element by these accesses?
  bool may_meet(const Inst* a, const Inst* b) {
    const uint32_t x = a->binding(), y = b->binding();
    if (x == y) return a->component() == b->component() && !are_apart(a, b);
    if (knows_overlaps_) return kernel_.bindings[x].alias_class == kernel_.bindings[y].alias_class;
    out_.distinct.emplace_back(std::min(x, y), std::max(x, y));
    return false;
  }

  /// That nothing else in the loop changes the elements.
  void expect_alone(const Inst* site, const Inst* loop) {
    walk(loop->region(0), [&](const Inst* other) {
      if (!is_write(other) || !may_meet(other, site)) return;
      const bool is_same = other->is(Op::atomic) && other->binding() == site->binding() &&
                           other->atomic() == site->atomic() && !other->used();
      if (!is_same)
        refuse(site,
               "the loop changes the same elements otherwise at " + place(other->loc) + in_its_own);
    });
  }

  /// That the copy computes the same as the loop has.
  void expect_same(const Copy& copy) {
    std::vector<const Inst*> writes, sites;
    walk(copy.of->region(0), [&](const Inst* inst) {
      if (is_write(inst)) writes.push_back(inst);
      if (is_site(inst)) sites.push_back(inst);
    });
    walk(copy.made->region(0), [&](const Inst* inst) {
      if (own_.contains(inst) || !has(inst->op, flag::fields)) return;
      if (has(inst->op, flag::writes) && !(inst->is(Op::atomic) && !is_write(inst)))
        refuse(sites.front(), "what is combined follows from what " +
                                  std::string("is changed at ") + place(inst->loc) + in_its_own);
      for (const Inst* write : writes)
        if (may_meet(write, inst))
          refuse(sites.front(), "what is combined depends on what is read at " + place(inst->loc) +
                                    ", which the loop changes at " + place(write->loc) +
                                    in_its_own);
    });
  }

  Kernel& kernel_;
  const std::vector<bool>& varies_;
  const bool knows_overlaps_;
  const Second second_;
  Combined& out_;
  Builder b_;
  std::vector<Copy> copies_;
  std::set<const Inst*> own_;
  std::map<std::pair<uint32_t, std::string>, uint32_t> scratch_;
  std::map<Type, uint32_t> along_;
  Value* contribution_ = nullptr;  ///< of the site that is replaced
  std::vector<Value*> indices_;
};

}  // namespace

bool is_combined(const Inst* inst) {
  if (!is_float(inst->elem) || !(inst->is(Op::atomic) || inst->is(Op::reduce))) return false;
  return inst->atomic() == AtomicOp::min || inst->atomic() == AtomicOp::max || is_product(inst);
}

const char* instead_of(AtomicOp op) {
  return op == AtomicOp::exchange || op == AtomicOp::cas
             ? "which iteration's value stays depends on their order; store that of one of them"
             : "use atomic_add, or a loop over what is combined";
}

Combined derive_combined(Kernel& kernel, const std::vector<bool>& varies, bool knows_overlaps,
                         Second second) {
  Combined out;
  walk(kernel.body, [&](const Inst* inst) { out.is_any |= is_combined(inst); });
  Rewriter(kernel, varies, knows_overlaps, second, out).run();
  return out;
}

}  // namespace quern::autodiff

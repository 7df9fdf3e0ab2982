#include "autodiff/logged_reads.h"

#include <algorithm>
#include <optional>
#include <unordered_set>

#include "autodiff/iterations.h"
#include "ir/analysis/effects.h"
#include "quern/ir/builder.h"

namespace quern::autodiff {

using namespace ir;

namespace {

std::string place(Loc loc) { return std::string(loc.file) + ":" + std::to_string(loc.line); }

bool is_write(const Inst* inst) {
  return inst->is(Op::store) || (inst->is(Op::atomic) && inst->atomic() != AtomicOp::load);
}

/// What asks which elements of a tree are active reads none of them: about that tree_rules.h decides.
bool reads_element(const Inst* inst) {
  const bool asks = inst->is(Op::is_active) || inst->is(Op::empty_box) || inst->is(Op::length);
  return accesses_element(inst->op) && !asks && !is_write(inst) && !inst->results.empty();
}

const Inst* parallel_around(const Region* r) {
  for (; r->parent; r = r->parent->parent)
    if (r->parent->is(Op::parallel)) return r->parent;
  return nullptr;
}

// ---- which reads

class Finder {
 public:
  explicit Finder(const Kernel& kernel)
      : reads(), written(kernel.bindings.size(), false), kernel_(kernel), effects_(kernel) {
    walk(kernel.body, [&](Inst* inst) {
      const size_t number = order_.size();
      order_[inst] = number;
      if (inst->is(Op::put) || inst->is(Op::reduce)) puts_.push_back(inst);
      if (is_write(inst)) writes_.push_back(inst);
    });
    walk(kernel.body, [&](Inst* inst) {
      const bool is_read =
          inst->is(Op::get) ? changes(inst) : reads_element(inst) && is_behind(inst);
      if (is_read) reads.push_back(inst);
    });
  }

  std::vector<Inst*> reads;   ///< in program order
  std::vector<bool> written;  ///< of each binding: may what is written change what is read?

 private:
  /// An element of an array, unless all that is put there is put before anything is read, or a
  /// variable of an outer region that may have changed when the region is gone back through.
  bool changes(const Inst* get) const {
    const Value* slot = get->operand(0);
    if (slot->inst->imm > 1) return !is_filled_first(slot);
    if (slot->inst->parent == get->parent) return false;
    return std::ranges::any_of(
        puts_, [&](const Inst* put) { return put->operand(0) == slot && may_precede(get, put); });
  }

  /// Do all writes to an array stand before all reads, where it is made? It has what they have put
  /// from there on.
  static bool is_filled_first(const Value* slot) {
    const Region* home = slot->inst->parent;
    std::unordered_set<const Inst*> reads;
    for (const Use* use = slot->uses; use; use = use->next)
      if (!use->user->is(Op::put)) reads.insert(directly_in(home, use->user));
    bool is_read = false, is_filled = true;
    std::unordered_set<const Inst*> writes;
    for (const Use* use = slot->uses; use; use = use->next)
      if (use->user->is(Op::put)) writes.insert(directly_in(home, use->user));
    for (const Inst* inst : *home) {
      is_read |= reads.contains(inst);
      is_filled &= !is_read || !writes.contains(inst);
    }
    return is_filled;
  }
  static const Inst* directly_in(const Region* home, const Inst* inst) {
    while (inst->parent != home) inst = inst->parent->parent;
    return inst;
  }

  bool is_behind(const Inst* read) {
    bool behind = false;
    for (const Inst* write : writes_) {
      if (!may_reach(write, read)) continue;
      expect_ordered(write, read);
      behind = true;
      written[read->binding()] = written[write->binding()] = true;
    }
    return behind;
  }

  /// Between rounds and iterations indices vary: there those that differ by a constant may name the
  /// same element, which may_change does not know.
  bool may_reach(const Inst* write, const Inst* read) {
    if (!may_be_of_another_round(write, read))
      return order_.at(write) < order_.at(read) && effects_.may_change(write, read);
    const bool same_field = write->binding() == read->binding();
    return same_field ? write->component() == read->component() && !are_apart(write, read)
                      : effects_.may_overlap(write->binding(), read->binding());
  }

  bool may_precede(const Inst* first, const Inst* second) const {
    return order_.at(first) < order_.at(second) || may_be_of_another_round(first, second);
  }

  /// Are both in a loop in which one's rounds come before others of the other's?
  static bool may_be_of_another_round(const Inst* first, const Inst* second) {
    for (const Region* r = second->parent; r->parent; r = r->parent->parent) {
      const Inst* around = r->parent;
      const auto holds = [&](const Region* part) { return encloses(part, first->parent); };
      if (std::ranges::none_of(around->regions, holds)) continue;  // a While has two
      // What another iteration adds may come first; what it stores would be a race.
      if (around->is(Op::parallel) && first->is(Op::atomic)) return true;
      if (around->is(Op::loop) || around->is(Op::while_)) return true;
    }
    return false;
  }

  /// What other iterations of the same loop add depends on who is first, unless each has elements
  /// of its own.
  void expect_ordered(const Inst* write, const Inst* read) {
    const Inst* loop = parallel_around(read->parent);
    if (!write->is(Op::atomic) || !loop || loop != parallel_around(write->parent)) return;
    if (are_own(write, read, loop)) return;
    throw Error(read->loc, kernel_.bindings[read->binding()].name +
                               " is read here while other iterations may add to it (at " +
                               place(write->loc) +
                               "), so what is read has no derivative: read it in another loop");
  }

  /// Does no iteration come with one to an element that another comes to with the other?
  bool are_own(const Inst* write, const Inst* read, const Inst* loop) {
    if (write->binding() != read->binding()) return is_own(write, loop) && is_own(read, loop);
    auto& of = iterations_[loop];
    if (!of) of.emplace(kernel_, loop->region(0));
    // Along one axis each of the loop's indices alone decides, alike for both.
    const size_t count = loop->region(0)->args.size();
    for (size_t index = 0; index < count; index++) {
      const auto decides = [&](size_t axis) {
        const auto a = of->sum(write->operand(axis)), b = of->sum(read->operand(axis));
        if (!a || !b || *a != *b) return false;
        // What a round of a loop within has, another iteration may have in another round.
        for (const Affine::Term& term : a->shared.terms)
          if (of->is_inside(term.symbol)) return false;
        for (size_t k = 0; k < count; k++)
          if ((a->factors[k] != 0) != (k == index)) return false;
        return true;
      };
      bool is_decided = false;
      for (size_t axis = 0; axis < Effects::indices(read); axis++)
        is_decided = is_decided || decides(axis);
      if (!is_decided) return false;
    }
    return true;
  }

  /// Do the indices have each of the loop's, at its axis?
  static bool is_own(const Inst* access, const Inst* loop) {
    const Region* body = loop->region(0);
    if (body->args.size() > Effects::indices(access)) return false;
    for (size_t k = 0; k < body->args.size(); k++)
      if (access->operand(k) != body->arg(k)) return false;
    return true;
  }

  const Kernel& kernel_;
  Effects effects_;
  std::vector<const Inst*> writes_, puts_;
  std::unordered_map<const Inst*, std::optional<Iterations>> iterations_;  ///< by parallel loop
  std::unordered_map<const Inst*, size_t> order_;
};

// ---- rows

/// What kernels that go through the same rows add to a copy of the primal.
class Rows {
 public:
  explicit Rows(Kernel& kernel) : kernel_(kernel), b_(kernel) {
    const Finder found(kernel);
    copied = found.written;
    first_binding_ = uint32_t(kernel.bindings.size());
    for (Inst* read : found.reads) {
      const size_t at = site_of(home_of(read->parent), read->loc);
      reads[read] = {add_field(read->elem, sites_[at].rule, sites_[at].number), sites_[at].row};
    }
    for (auto& [loop, walked] : loops_) finish(walked);
    if (counted_ > 0) cursors = add_field(Type::i64, LogField::constant, counted_);
  }

  LoggedReads reads;
  std::vector<LogField> fields;
  std::vector<bool> copied;
  uint32_t cursors = no_binding;

  /// Removes what is not needed to read the same values.
  void keep_effects(bool any) {
    walk(kernel_.body, [&](Inst* inst) {
      const bool is_needed = any && is_write(inst) && copied[inst->binding()];
      const bool is_effect = is_write(inst) || inst->is(Op::check) || inst->is(Op::print);
      if (is_effect && !is_needed && !inst->used()) {
        inst->erase();
      } else if (inst->is(Op::atomic) && !is_write(inst) && !copied[inst->binding()]) {
        // Nobody writes the field here, which is a snapshot: atomics take none.
        std::vector<Value*> indices;
        for (const Use& use : inst->operands) indices.push_back(use.value);
        b_.before(inst).at(inst->loc);
        Value* v = b_.load(inst->binding(), inst->component(), inst->elem, indices);
        inst->result()->replace_with(v);
        inst->erase();
      }
    });
  }

  /// Results: the numbers that LogField::sized means.
  void return_sizes() {
    Inst* yield = kernel_.body->terminator();
    b_.before(yield).at(yield->loc);
    std::vector<Value*> sizes;
    for (Value* slot : sizes_) sizes.push_back(b_.get(slot));
    b_.set_operands(yield, sizes);
    kernel_.results.assign(sizes.size(), Type::i64);
  }

  void return_nothing() {
    b_.set_operands(kernel_.body->terminator(), {});
    kernel_.results.clear();
  }

  /// Each iteration takes the rows that it has counted.
  void take_rows() {
    for (const auto& [loop, walked] : loops_)
      for (const Counted& counted : walked.counted) {
        Inst* yield = loop->region(0)->terminator();
        b_.before(yield).at(yield->loc);
        Value* rows = b_.get(counted.counter);
        Value* cursor = b_.integer(Type::i64, int64_t(counted.number));
        Value* first =
            b_.atomic(AtomicOp::add, cursors, 0, Type::i64, {&cursor, 1}, {&rows, 1})->result();
        b_.store(counted.firsts, 0, {&walked.position, 1}, first);
        b_.store(counted.lengths, 0, {&walked.position, 1}, rows);
      }
  }

  void log(const std::vector<bool>& wanted) {
    for (const auto& [read, at] : reads) {
      if (!wanted[at.binding - first_binding_]) continue;
      b_.after(const_cast<Inst*>(read)).at(read->loc);
      Value* row = last_row_or(b_, at.binding, at.row);
      b_.store(at.binding, 0, {&row, 1}, read->result());
    }
    check_rows();
  }

 private:
  struct Site {
    const Region* home = nullptr;
    Value* row = nullptr;
    LogField::Rule rule = LogField::constant;
    uint64_t number = 1;
  };
  struct Counted {
    Value* counter = nullptr;                            ///< slot
    uint32_t firsts = no_binding, lengths = no_binding;  ///< by position: rows of the iteration
    uint64_t number = 0;
  };
  struct Walked {
    Inst* loop = nullptr;
    Value* position = nullptr;  ///< i64, in the body: of the iteration among all of all executions
    Value* before = nullptr;    ///< slot of the kernel: iterations of earlier executions
    uint64_t number = 0;        ///< of its size
    std::vector<Counted> counted;
  };

  uint32_t add_field(Type type, LogField::Rule rule, uint64_t number) {
    fields.push_back({type, rule, number});
    Binding made;
    made.kind = Binding::field;
    made.rank = 1;
    made.components = {{type}};
    made.name = "what is read behind writes";
    made.loc = kernel_.loc;
    kernel_.bindings.push_back(std::move(made));
    return uint32_t(kernel_.bindings.size() - 1);
  }

  static Region* home_of(Region* region) {
    while (region->parent && region->parent->is(Op::if_)) region = region->parent->parent;
    return region;
  }

  Builder& at_top(Region* region, Loc loc) { return b_.before(region->first).at(loc); }

  /// That each iteration has as many as were counted.
  void check_rows() {
    for (const auto& [loop, walked] : loops_)
      for (const Counted& counted : walked.counted) {
        Inst* yield = loop->region(0)->terminator();
        b_.before(yield).at(loop->loc);
        Value* rows = b_.get(counted.counter);
        Value* expected = b_.load(counted.lengths, 0, Type::i64, {&walked.position, 1});
        check_same_rounds(kernel_, b_, b_.binary(Op::eq, rows, expected));
      }
  }

  Value* size_slot(uint64_t& number) {
    Value* slot = at_top(kernel_.body, kernel_.loc).slot(Type::i64);
    number = sizes_.size();
    sizes_.push_back(slot);
    return slot;
  }

  Walked& walked(Inst* loop) {
    for (auto& [known, at] : loops_)
      if (known == loop) return at;
    Walked made;
    made.loop = loop;
    made.before = size_slot(made.number);
    b_.before(loop).at(loop->loc);
    Value* before = b_.get(made.before);
    at_top(loop->region(0), loop->loc);
    Value* iteration = b_.make(Op::iteration, {Type::u64}, {})->result();
    made.position = b_.add(before, b_.convert(iteration, Type::i64));
    loops_.emplace_back(loop, made);
    return loops_.back().second;
  }

  /// Behind the loop: how many iterations it had.
  void finish(const Walked& walked) {
    Inst* loop = walked.loop;
    b_.after(loop).at(loop->loc);
    Value* before = b_.get(walked.before);
    Value* all = b_.integer(Type::i64, 1);
    const Region* body = loop->region(0);
    for (size_t k = 0; k < body->args.size(); k++) {
      Value* length = nullptr;
      if (loop->options.over != no_binding) {
        length = b_.extent(loop->options.over, uint32_t(k), Type::i64);
      } else {
        Value* from = b_.convert(loop->operand(2 * k), Type::i64);
        Value* to = b_.convert(loop->operand(2 * k + 1), Type::i64);
        length = b_.binary(Op::max, b_.sub(to, from), b_.integer(Type::i64, 0));
      }
      all = b_.mul(all, length);
    }
    b_.put(walked.before, b_.add(before, all));
  }

  size_t site_of(Region* home, Loc loc) {
    for (size_t k = 0; k < sites_.size(); k++)
      if (sites_[k].home == home) return k;
    Site site;
    site.home = home;
    Inst* loop = const_cast<Inst*>(parallel_around(home));
    if (!home->parent) {
      site.row = at_top(home, loc).integer(Type::i64, 0);
    } else if (loop && loop->region(0) == home) {
      const Walked& at = walked(loop);
      site.row = at.position;
      site.rule = LogField::sized;
      site.number = at.number;
    } else {
      count_rounds(site, home, loop, loc);
    }
    sites_.push_back(site);
    return sites_.size() - 1;
  }

  /// A row for each round of a serial loop.
  void count_rounds(Site& site, Region* home, Inst* loop, Loc loc) {
    Value *counter = nullptr, *first = nullptr;
    if (loop) {
      Walked& at = walked(loop);
      const uint32_t firsts = add_field(Type::i64, LogField::sized, at.number);
      const uint32_t lengths = add_field(Type::i64, LogField::sized, at.number);
      b_.after(at.position->inst).at(loc);
      first = b_.load(firsts, 0, Type::i64, {&at.position, 1});
      counter = b_.slot(Type::i64);
      site.rule = LogField::counted;
      site.number = counted_++;
      at.counted.push_back({counter, firsts, lengths, site.number});
    } else {
      counter = size_slot(site.number);
      first = b_.integer(Type::i64, 0);
      site.rule = LogField::sized;
    }
    at_top(home, loc);
    Value* round = b_.get(counter);
    Value* one = b_.integer(Type::i64, 1);
    b_.put(counter, b_.add(round, one));
    site.row = b_.add(first, round);  // which stays when slots become values
  }

  Kernel& kernel_;
  Builder b_;
  uint32_t first_binding_ = 0;
  std::vector<Site> sites_;
  std::vector<std::pair<Inst*, Walked>> loops_;
  std::vector<Value*> sizes_;  ///< slots of the kernel
  uint64_t counted_ = 0;
};

/// Does it depend on elements that the launch writes?
bool reads_any(const Kernel& kernel, const std::vector<bool>& bindings) {
  bool reads = false;
  walk(kernel.body, [&](const Inst* inst) {
    reads |= accesses_element(inst->op) && inst->binding() < bindings.size() &&
             bindings[inst->binding()];
  });
  return reads;
}

}  // namespace

bool are_apart(const Inst* a, const Inst* b) {
  for (size_t k = 0; k < std::min(Effects::indices(a), Effects::indices(b)); k++) {
    const Inst *x = a->operand(k)->inst, *y = b->operand(k)->inst;
    if (x && y && x->is(Op::constant) && y->is(Op::constant) && x->imm != y->imm) return true;
  }
  return false;
}

void keep_order(Inst* inst) {
  if (inst->is(Op::parallel)) inst->options.deterministic = true;
  const bool is_arithmetic =
      info(inst->op).kind == KindUse::arithmetic && info(inst->op).rule == OperandRule::same;
  if (is_arithmetic && !inst->results.empty() && is_float(inst->type())) inst->kind = uncontracted;
}

Value* last_row_or(Builder& b, uint32_t binding, Value* row) {
  Value* rows = b.extent(binding, 0, Type::i64);
  Value* one = b.integer(Type::i64, 1);
  return b.binary(Op::min, row, b.sub(rows, one));
}

void check_same_rounds(Kernel& kernel, Builder& b, Value* same) {
  const Loc loc = b.loc();
  kernel.sites.push_back(
      {Site::check,
       loc,
       "a loop had more rounds when it was gone back through than when they were counted: they "
       "depend on the order in which iterations add",
       {}});
  b.make(Op::check, {}, {same})->site = uint32_t(kernel.sites.size() - 1);
}

LoggedReads number_rows(Kernel& kernel) { return Rows(kernel).reads; }

Log log_of(const Kernel& kernel, const std::vector<bool>& wanted) {
  Log log;
  const auto make = [&](const char* what, auto&& edit) {
    std::unique_ptr<Kernel> made = clone(kernel);
    made->name = what + kernel.name;
    walk(made->body, keep_order);
    Rows rows(*made);
    edit(rows);
    optimise(*made);
    log.fields = rows.fields;
    log.copied = rows.copied;
    log.cursors = rows.cursors;
    return made;
  };
  const auto make_sizes = [&](bool with_effects) {
    return make("sizes of the log of ", [&](Rows& rows) {
      rows.keep_effects(with_effects);
      rows.return_sizes();
    });
  };
  log.sizes = make_sizes(false);
  if (reads_any(*log.sizes, log.copied)) log.sizes = make_sizes(true);
  if (log.cursors != no_binding)
    log.count = make("rows of the log of ", [&](Rows& rows) {
      rows.keep_effects(true);
      rows.return_nothing();
      rows.take_rows();
    });
  log.record = make("log of ", [&](Rows& rows) {
    rows.keep_effects(true);
    rows.return_nothing();
    rows.log(wanted);
  });
  return log;
}

}  // namespace quern::autodiff

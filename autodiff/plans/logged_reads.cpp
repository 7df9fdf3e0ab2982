#include "autodiff/plans/logged_reads.h"

#include <algorithm>
#include <list>
#include <optional>

#include "autodiff/plans/alike_rows.h"
#include "autodiff/plans/row_counts.h"
#include "autodiff/primal/changed_reads.h"
#include "quern/ir/builder.h"

namespace quern::autodiff {

using namespace ir;

namespace {

/// What kernels that go through the same rows add to a copy of the primal.
class Rows {
 public:
  Rows(Kernel& kernel, bool on_trees)
      : kernel_(kernel), b_(kernel), counts_(kernel), on_trees_(on_trees) {
    const ChangedReads found = changed_reads(kernel);
    copied = found.written;
    first_binding_ = uint32_t(kernel.bindings.size());
    std::vector<bool> are_exact;  // before the kernel is changed
    for (Inst* read : found.reads) are_exact.push_back(is_exact(read));
    for (size_t k = 0; k < found.reads.size(); k++) {
      Inst* read = found.reads[k];
      const size_t at = site_of(home_of(read->parent), read->loc);
      const uint32_t field = add_field(read->elem, sites_[at].rule, sites_[at].number);
      fields.back().is_written_first = are_exact[k];
      reads[read] = {field, sites_[at].row, are_exact[k], are_exact[k] && is_own(read)};
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
      Value* row = row_or_last(b_, at, at.row);
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
  /// The rows of a region that all iterations run as often.
  struct Alike {
    Value* before = nullptr;  ///< slot of the kernel: rows of earlier executions
    Value* count = nullptr;   ///< i64, in front of the loop: of an iteration
  };
  struct Walked {
    Walked(const Kernel& kernel, RowCounts& counts, Inst* parallel)
        : loop(parallel), rows(kernel, counts, parallel) {}
    Inst* loop;
    Value* iteration = nullptr;  ///< i64, in the body: among those of the execution
    Value* position = nullptr;   ///< and among all of all executions
    Value* before = nullptr;     ///< slot of the kernel: iterations of earlier executions
    uint64_t number = 0;         ///< of its size
    Value* places = nullptr;     ///< i64, in front of the loop: of a row of what is alike
    std::vector<Counted> counted;
    std::vector<Alike> alike;
    AlikeRows rows;
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
    Walked made(kernel_, counts_, loop);
    made.before = size_slot(made.number);
    b_.before(loop).at(loop->loc);
    Value* before = b_.get(made.before);
    at_top(loop->region(0), loop->loc);
    Value* iteration = b_.make(Op::iteration, {Type::u64}, {})->result();
    made.iteration = b_.bitcast(iteration, Type::i64);
    made.position = b_.add(before, made.iteration);
    loops_.emplace_back(loop, std::move(made));
    return loops_.back().second;
  }

  /// Behind the loop: how many iterations it had.
  void finish(const Walked& walked) {
    Inst* loop = walked.loop;
    b_.after(loop).at(loop->loc);
    const std::vector<Value*> bounds = operands_of(loop);
    Value* all = iterations_of(b_, loop, bounds);
    Value* before = b_.get(walked.before);
    b_.put(walked.before, b_.add(before, all));
    for (const Alike& alike : walked.alike) {
      Value* rows = b_.mul(walked.places, alike.count);
      Value* others = b_.get(alike.before);
      b_.put(alike.before, b_.add(others, rows));
    }
  }

  static std::vector<Value*> operands_of(const Inst* inst) {
    std::vector<Value*> all;
    for (const Use& use : inst->operands) all.push_back(use.value);
    return all;
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
    } else if (loop && !on_trees_ && walked(loop).rows.knows(home)) {
      number_alike(site, home, walked(loop), loc);
    } else {
      count_rounds(site, home, loop, loc);
    }
    sites_.push_back(site);
    return sites_.size() - 1;
  }

  /// A row for each round of a serial loop of which all iterations have as many.
  void number_alike(Site& site, Region* home, Walked& at, Loc loc) {
    Alike& made = at.alike.emplace_back();
    made.before = size_slot(site.number);
    site.rule = LogField::sized;
    b_.before(at.loop).at(loc);
    made.count = at.rows.count(b_, home);
    if (!at.places) {
      const std::vector<Value*> bounds = operands_of(at.loop);
      at.places = places_of(b_, iterations_of(b_, at.loop, bounds));
    }
    Value* before = b_.get(made.before);
    const bool is_by_round = at.rows.may_go_together();
    b_.after(at.position->inst);
    Value* first = b_.add(before, is_by_round ? at.iteration : b_.mul(at.iteration, made.count));
    Value* counter = b_.slot(Type::i64);
    Value* round = next(home, counter, loc);
    site.row = b_.add(first, is_by_round ? b_.mul(round, at.places) : round);
  }

  /// The counter's value, one more each time.
  Value* next(Region* home, Value* counter, Loc loc) {
    at_top(home, loc);
    Value* round = b_.get(counter);
    Value* one = b_.integer(Type::i64, 1);
    b_.put(counter, b_.add(round, one));
    return round;
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
    Value* round = next(home, counter, loc);
    site.row = b_.add(first, round);  // which stays when slots become values
  }

  /// Do integers alone decide how many rows there are, and whether this one is written?
  bool is_exact(const Inst* read) { return counts_.is_by_integers(read); }

  /// Of a variable that each iteration has for itself.
  static bool is_own(const Inst* read) {
    const Inst* loop = parallel_around(read->parent);
    return read->is(Op::get) && loop && encloses(loop->region(0), read->operand(0)->inst->parent);
  }

  Kernel& kernel_;
  Builder b_;
  RowCounts counts_;
  const bool on_trees_;
  uint32_t first_binding_ = 0;
  std::vector<Site> sites_;
  std::list<std::pair<Inst*, Walked>> loops_;
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

void keep_order(Inst* inst) {
  if (inst->is(Op::parallel)) inst->options.deterministic = true;
  const bool is_arithmetic =
      info(inst->op).kind == KindUse::arithmetic && info(inst->op).rule == OperandRule::same;
  if (is_arithmetic && !inst->results.empty() && is_float(inst->type()))
    inst->kind = uint8_t((inst->kind & unasked) | uncontracted);
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

Value* row_or_last(Builder& b, const LoggedRead& read, Value* row) {
  return read.is_exact ? row : last_row_or(b, read.binding, row);
}

LoggedReads number_rows(Kernel& kernel, bool on_trees) { return Rows(kernel, on_trees).reads; }

Log log_of(const Kernel& kernel, bool on_trees, const std::vector<bool>& wanted,
           const LoggedReads& logged) {
  Log log;
  std::vector<bool> is_accessed = wanted, is_recorded(wanted.size(), false);
  const auto first = uint32_t(kernel.bindings.size());
  for (const auto& [read, at] : logged)
    is_recorded[at.binding - first] = wanted[at.binding - first] && !at.is_private;
  const auto make = [&](const char* what, auto&& edit) {
    std::unique_ptr<Kernel> made = clone(kernel);
    made->name = what + kernel.name;
    walk(made->body, keep_order);
    Rows rows(*made, on_trees);
    edit(rows);
    optimise(*made);
    walk(made->body, [&](const Inst* inst) {
      if (accesses_element(inst->op) && inst->binding() >= first)
        is_accessed[inst->binding() - first] = true;
    });
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
  if (std::ranges::find(is_recorded, true) != is_recorded.end())
    log.record = make("log of ", [&](Rows& rows) {
      rows.keep_effects(true);
      rows.return_nothing();
      rows.log(is_recorded);
    });
  // Cursors are read on the host, also where no kernel that is left counts.
  for (size_t k = 0; k < log.fields.size(); k++)
    if (!is_accessed[k] && first + k != log.cursors)
      log.fields[k] = {.type = Type::u8, .rule = LogField::unused};
  return log;
}

}  // namespace quern::autodiff

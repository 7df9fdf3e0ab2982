// Blocks, guards and exits: quern/values/record.h on the recording of this thread.
#include <exception>
#include <utility>

#include "dsl/recording.h"

namespace quern::detail {

namespace {

const char* spoken(Block kind) {
  switch (kind) {
    case Block::body: return "body";
    case Block::loop: return "for loop";
    case Block::while_: return "While block";
    case Block::then: return "If block";
    case Block::otherwise: return "else block";
  }
  return "block";
}

void open(Recording& r, Frame frame, ir::Region* region) {
  r.frames.push_back(frame);
  r.b.at_end(region);
}

/// The innermost loop an exit can mean; null where there is none.
const Frame* innermost_loop(const Recording& r) {
  for (size_t k = r.frames.size(); k-- > 0;) {
    const Frame& f = r.frames[k];
    if (f.condition) break;
    if (f.kind == Block::loop || f.kind == Block::while_) return &f;
  }
  return nullptr;
}

/// An axis of a loop: lo, lo + step … below hi. Without a step it is 1, else it is positive.
struct Axis {
  ir::Value *lo = nullptr, *hi = nullptr, *step = nullptr;
};

Axis axis(Recording& r, const LoopSpec& spec, int k, Loc loc) {
  Axis out{r.value(spec.lo[k], loc), r.value(spec.hi[k], loc)};
  const Id given = spec.step[k];
  if (!given.recording) return out;
  out.step = r.value(given, loc);
  if (!out.step) return out;
  const char* text = "a loop's step is {}; it is 1 or more (downward: count up, use last - i)";
  if (out.step->inst && out.step->inst->is(ir::Op::constant)) {
    int64_t n = ir::to_signed(out.step->inst->imm, out.step->type);
    std::string refused = text;
    if (n < 1) r.fail(loc, refused.replace(refused.find("{}"), 2, std::to_string(n)));
    return out;
  }
  ir::Builder& b = r.at(loc);
  ir::Value* one = b.integer(out.step->type, 1);
  ir::Value* positive = b.binary(ir::Op::ge, out.step, one);
  if (r.checked) {
    Reported reported = {"{}", &given, 1};
    check(r.add(positive), text, &reported, 1, loc);
  }
  // Such a loop has no iterations.
  out.hi = r.at(loc).select(positive, out.hi, out.lo);
  out.step = b.binary(ir::Op::max, out.step, one);
  return out;
}

/// The bounds of a parallel loop's axis: those given, or from 0 on the number of steps, which i64
/// holds.
void domain(ir::Builder& b, const Axis& axis, bool stepped, std::vector<ir::Value*>& bounds) {
  const ir::Type type = stepped ? ir::Type::i64 : axis.lo->type;
  ir::Value *lo = b.convert(axis.lo, type), *hi = b.convert(axis.hi, type);
  if (axis.step) {
    ir::Value *zero = b.integer(type, 0), *one = b.integer(type, 1);
    ir::Value* more = b.div(b.sub(b.sub(hi, lo), one), b.convert(axis.step, type));
    hi = b.select(b.lt(lo, hi), b.add(more, one), zero);
    lo = zero;
  }
  bounds.push_back(lo);
  bounds.push_back(hi);
}

/// The index that iteration i of a parallel loop has on an axis.
ir::Value* index_of(ir::Builder& b, const Axis& axis, ir::Value* i) {
  if (axis.step) i = b.add(b.convert(axis.lo, i->type), b.mul(i, b.convert(axis.step, i->type)));
  return b.convert(i, axis.lo->type);
}

}  // namespace

std::string exits_here(const Recording& r) {
  const Frame* loop = innermost_loop(r);
  std::string text;
  auto add = [&](const std::string& exit) { text += (text.empty() ? "; here " : ", ") + exit; };
  if (loop && !loop->parallel) add("Break() leaves the loop");
  if (loop) add("Continue() ends the iteration");
  if (r.can_return())
    add((r.kernel->results.empty() ? "Return() ends the " : "Return(value) ends the ") +
        r.spoken());
  return text +
         "; a C++ function or loop that runs while recording cannot end under a device condition: "
         "use select(c, a, b), a Var, a loop over range(n), or a Func with Return(value)";
}

LoopSpec indices_of(FieldObject* field, Scalar type, Loc loc) {
  Recording& r = recording(loc);
  LoopSpec spec;
  spec.rank = field->type.rank;
  if (r.failed()) return spec;
  if (auto binding = r.binding(field, loc)) spec.over = {*binding, r.number, type};
  return spec;
}

LoopSpec bounded(LoopSpec spec, Loc loc) {
  const FieldIndices over = std::exchange(spec.over, {});
  if (!over.recording) return spec;
  Recording& r = recording(loc);
  if (r.failed() || !r.expect_own(over.recording, recording_loc(over.recording), loc)) return spec;
  ir::Builder& b = r.at(loc);
  const ir::Type type = type_of_scalar(over.type);
  for (int k = 0; k < spec.rank; k++) {
    ir::Value* first = b.first(over.binding, uint32_t(k), type);
    spec.lo[k] = r.add(first);
    spec.hi[k] = r.add(b.add(first, b.extent(over.binding, uint32_t(k), type)));
  }
  return spec;
}

void loop_begin(const LoopSpec& given, Id* index, Loc loc) {
  Recording& r = recording(loc);
  for (int k = 0; k < given.rank; k++) index[k] = {};
  const bool parallel = !r.function && !r.in_parallel() && !given.serial;
  const LoopSpec spec = parallel ? given : bounded(given, loc);
  const FieldIndices& over = spec.over;
  if (over.recording) r.expect_own(over.recording, recording_loc(over.recording), loc);
  std::vector<Axis> axes;
  for (int k = 0; k < spec.rank && !over.recording; k++) axes.push_back(axis(r, spec, k, loc));
  if (r.failed()) return;
  ir::Builder& b = r.at(loc);
  Frame frame{Block::loop, nullptr, r.last};
  frame.parallel = parallel;
  if (spec.deterministic && !frame.parallel) {
    r.fail(loc, "deterministic() on a loop that is not parallel; only outermost loops are");
    return;
  }
  if (spec.has_block && !frame.parallel) {
    r.fail(loc, "block_size() on a loop that is not parallel; only outermost loops are");
    return;
  }
  if (spec.has_block && (spec.block < 1 || spec.block > 1024)) {
    r.fail(loc, "a block of " + std::to_string(spec.block) + " iterations; allowed are 1 to 1024");
    return;
  }
  if (frame.parallel) {
    bool stepped = false;
    for (const Axis& axis : axes) stepped |= axis.step != nullptr;
    std::vector<ir::Value*> bounds;
    for (const Axis& axis : axes) domain(b, axis, stepped, bounds);
    std::vector<ir::Type> types(size_t(spec.rank),
                                over.recording ? type_of_scalar(over.type) : bounds[0]->type);
    frame.inst = b.make(ir::Op::parallel, std::span<const ir::Type>(), bounds);
    frame.inst->kind = uint8_t(spec.rank);
    frame.inst->options = {.over = over.recording ? over.binding : ir::no_binding,
                           .block = uint16_t(spec.block),
                           .deterministic = spec.deterministic};
    ir::Region* body = b.make_region(std::span<const ir::Type>(types));
    b.set_regions(frame.inst, {body});
    r.outer_variables.clear();
    open(r, frame, body);
    for (size_t k = 0; k < body->args.size(); k++) {
      ir::Value* i = body->arg(k);
      index[k] = r.add(over.recording ? i : index_of(b, axes[k], i));
    }
    return;
  }
  frame.loops = spec.rank;
  for (int k = 0; k < spec.rank; k++) {
    auto [lo, hi, step] = axes[size_t(k)];
    ir::Inst* loop = b.loop(lo, hi, step ? step : b.integer(lo->type, 1));
    if (k == 0) frame.inst = loop;
    index[k] = r.add(loop->region(0)->arg(0));
    b.at_end(loop->region(0));
  }
  r.frames.push_back(frame);
}

void if_begin(Id condition, Loc loc) {
  Recording& r = recording(loc);
  ir::Value* c = r.value(condition, loc);
  if (!c) return;
  ir::Inst* inst = r.at(loc).if_(c);
  open(r, {Block::then, inst, r.last}, inst->region(0));
}

void else_begin(Loc loc) {
  Recording& r = recording(loc);
  if (r.failed()) return;
  ir::Inst* inst = r.b.region()->last;
  bool attaches = inst && inst->is(ir::Op::if_) && inst->results.empty() &&
                  inst->region(1)->first == inst->region(1)->last;
  if (!attaches) return r.fail(loc, "otherwise() does not follow a when()");
  inst->region(1)->last->erase();
  open(r, {Block::otherwise, inst, loc.line ? loc : r.last}, inst->region(1));
}

void while_begin(Loc loc) {
  Recording& r = recording(loc);
  if (r.failed()) return;
  ir::Inst* inst = r.at(loc).while_({});
  Frame frame{Block::while_, inst, r.last};
  frame.condition = true;
  open(r, frame, inst->region(0));
}

void while_condition(Id condition, Loc loc) {
  Recording& r = recording(loc);
  ir::Value* c = r.value(condition, loc);
  if (!c) return;
  r.at(loc).yield({c});
  r.frames.back().condition = false;
  r.b.at_end(r.frames.back().inst->region(1));
}

void block_end(Block kind, bool complete, Loc loc) noexcept {
  Recording* active = active_recording();
  if (!active) return;
  Recording& r = *active;
  if (r.failed()) return;
  Frame frame = r.frames.back();
  const bool thrown = !complete && std::uncaught_exceptions() > frame.exceptions;
  if (!complete && !thrown)
    return r.fail(loc, std::string("a native break, return or goto left this recorded ") +
                           spoken(kind) + exits_here(r));
  if (frame.condition) {  // thrown while it was recorded: there is no loop without it
    r.frames.pop_back();
    r.b.at_end(frame.inst->parent);
    frame.inst->erase();
    return;
  }
  if (kind == Block::then && !thrown && r.b.region()->empty())
    return r.fail(loc,
                  "this If is empty: nothing was recorded in it; an If that is to do nothing is "
                  "left out, and a native continue leaves one so" +
                      exits_here(r));
  ir::Region* region = r.b.region();
  r.at(frame.loc);
  r.close_region();
  r.frames.pop_back();
  for (int k = 1; k < frame.loops; k++) r.b.at_end(region = region->parent->parent).yield();
  if (kind == Block::then) r.b.at_end(frame.inst->region(1)).yield();
  r.b.at_end(frame.inst->parent);
}

void break_(Loc loc) {
  Recording& r = recording(loc);
  if (r.failed()) return;
  const Frame* loop = innermost_loop(r);
  if (!loop) return r.fail(loc, "Break() outside a loop" + exits_here(r));
  if (loop->parallel)
    return r.fail(loc,
                  "Break() in a parallel loop, whose iterations have no order" + exits_here(r));
  r.leave(ir::Op::break_, {}, uint64_t(loop->loops), loc);
}

void continue_(Loc loc) {
  Recording& r = recording(loc);
  if (r.failed()) return;
  if (!innermost_loop(r)) return r.fail(loc, "Continue() outside a loop" + exits_here(r));
  r.leave(ir::Op::continue_, {}, 0, loc);
}

Position position() {
  Recording* r = active_recording();
  return r ? Position{r->b.region(), r->b.region()->last} : Position{};
}

Id guard(bool is_and, Id a, Id b, Position after_a, Loc loc) {
  Recording& r = recording(loc);
  ir::Value *left = r.value(a, loc), *right = r.value(b, loc);
  if (!left || !right) return {};
  ir::Region* region = r.b.region();
  ir::Inst* last = static_cast<ir::Inst*>(after_a.last);
  ir::Inst* first = last ? last->next : region->first;
  if (after_a.region != region || (last && last->parent != region)) {
    r.fail(loc, "the right operand of && or || leaves the block it stands in");
    return {};
  }
  ir::Builder& at = r.at(loc);
  if (!first)
    return r.add(at.binary(is_and ? ir::Op::bit_and : ir::Op::bit_or, left, right), {a, b});
  for (ir::Inst* inst = first; inst; inst = inst->next)
    if (ir::has(inst->op, ir::flag::ends)) {
      r.fail(loc, "Break(), Continue() or Return() in an operand of && or ||");
      return {};
    }
  ir::Type b1 = ir::Type::b1;
  ir::Inst* choice = at.if_(left, {&b1, 1});
  ir::Builder inner = at;
  inner.at_end(choice->region(is_and ? 0 : 1));
  while (first != choice) {
    ir::Inst* next = first->next;
    ir::move(inner, first);
    first = next;
  }
  inner.yield({right});
  inner.at_end(choice->region(is_and ? 1 : 0));
  ir::Value* decided = inner.boolean(!is_and);
  inner.yield({decided});
  return r.add(choice->result(), {a, b});
}

}  // namespace quern::detail

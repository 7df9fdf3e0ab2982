// What an image says of a lowered kernel.
#include <algorithm>
#include <unordered_map>

#include "quern/ir/text.h"
#include "quern/ir/trees.h"
#include "quern/runtime/compiler.h"

namespace quern::runtime {

using namespace ir;

namespace {

/// Throws InternalError for an instruction that the host cannot evaluate.
HostExpression expression_of(const Kernel& kernel, const Region* region,
                             const abi::Layout& layout) {
  HostExpression out;
  std::unordered_map<const Value*, uint32_t> number;
  for (const Inst* inst = region->first; inst && inst != region->last; inst = inst->next) {
    HostExpression::Step step;
    step.op = inst->op;
    step.result = inst->type();
    const auto argument = [&](uint32_t offset) {
      step.source = HostExpression::argument;
      step.imm = offset;
    };
    switch (inst->op) {
      case Op::constant:
        step.source = HostExpression::constant;
        step.imm = inst->imm;
        break;
      case Op::param: argument(layout.places[inst->binding()].value()); break;
      case Op::extent: argument(layout.places[inst->binding()].extent(inst->axis())); break;
      case Op::first: argument(layout.places[inst->binding()].first(inst->axis())); break;
      case Op::load:
        if (kernel.bindings[inst->binding()].kind != Binding::frame || inst->operand_count() != 0)
          throw InternalError("a task's domain reads a field: " + print(inst));
        step.source = HostExpression::cell;
        step.imm = inst->component() * 8;
        out.reads_frame = true;
        break;
      default:
        if (!is_pure(inst->op) || info(inst->op).library || inst->operand_count() > 3)
          throw InternalError("a task's domain holds what the host cannot evaluate: " +
                              print(inst));
        step.count = uint8_t(inst->operand_count());
        for (size_t k = 0; k < inst->operand_count(); k++)
          step.operands[k] = number.at(inst->operand(k));
        step.operand = inst->operand(inst->operand_count() - 1)->type;
    }
    number[inst->result()] = uint32_t(out.steps.size());
    out.steps.push_back(step);
  }
  for (const Use& use : region->last->operands) out.results.push_back(number.at(use.value));
  return out;
}

HostExpression::Step constant(uint64_t v) {
  HostExpression::Step step;
  step.source = HostExpression::constant;
  step.result = Type::u64;
  step.imm = v;
  return step;
}

/// Of a field, or of a buffer of constant size.
HostExpression elements_of(const Binding& binding, const abi::Place& place) {
  if (binding.kind == Binding::buffer) return {{constant(binding.size.number)}, {0}, false};
  HostExpression out;
  for (uint32_t axis = 0; axis < place.rank; axis++) {
    HostExpression::Step extent;
    extent.source = HostExpression::argument;
    extent.result = Type::i64;
    extent.imm = place.extent(axis);
    out.steps.push_back(extent);
    if (axis == 0) continue;
    const auto here = uint32_t(out.steps.size()) - 1;
    HostExpression::Step product;
    product.op = Op::mul;
    product.operand = product.result = Type::i64;
    product.count = 2;
    product.operands[0] = here - 1;
    product.operands[1] = here;
    out.steps.push_back(product);
  }
  out.results = {uint32_t(out.steps.size()) - 1};
  return out;
}

Image::Buffer buffer_of(const Kernel& kernel, uint32_t binding, const abi::Layout& layout) {
  const Binding& b = kernel.bindings[binding];
  Image::Buffer out;
  out.binding = binding;
  out.task = b.size.task;
  HostExpression::Step count;
  switch (b.size.rule) {
    case BufferSize::rows: out.size = Image::Buffer::rows; break;
    case BufferSize::iterations: out.size = Image::Buffer::iterations; break;
    case BufferSize::constant:
      out.size = Image::Buffer::counted;
      count = constant(b.size.number);
      break;
    case BufferSize::cell:
      out.size = Image::Buffer::counted;
      count.source = HostExpression::cell;
      count.result = kernel.frame[b.size.number];
      count.imm = b.size.number * 8;
      break;
    case BufferSize::copies:
      out.size = Image::Buffer::copies;
      out.count = elements_of(kernel.bindings[b.size.number], layout.places[b.size.number]);
      out.updates = b.size.updates;
  }
  if (out.size == Image::Buffer::counted)
    out.count = {{count}, {0}, count.source == HostExpression::cell};
  out.components = b.components;
  out.is_kept = b.is_kept;
  out.name = b.name;
  out.loc = b.loc;
  return out;
}

bool combines(const Region* body) {
  bool found = false;
  walk(const_cast<Region*>(body), [&](const Inst* inst) { found |= inst->is(Op::block_reduce); });
  return found;
}

}  // namespace

Image Compiler::compile(const Kernel& kernel, const Target& target) const {
  Image image;
  image.kernel = kernel.name;
  image.loc = kernel.loc;
  image.backend = target.backend;
  image.isa = target.isa;
  image.one_thread = target.workers == 1 && target.traits.walk == Task::chunked;
  image.made_for.modes = kernel.modes;
  image.layout = abi::layout(kernel);
  bool behind_frame = false;
  for (uint32_t k = 0; k < kernel.bindings.size(); k++) {
    const Binding& b = kernel.bindings[k];
    if (b.kind == Binding::buffer)
      image.buffers.push_back(buffer_of(kernel, k, image.layout));
    else if (b.is_derived() && behind_frame)
      image.tree_parts.push_back({k, b.of, b.companion, b.components, b.is_written});
    else if (b.kind != Binding::frame)
      image.parameters.push_back({.is_field = b.kind == Binding::field,
                                  .rank = b.rank,
                                  .components = b.components,
                                  .name = b.name,
                                  .of = b.of,
                                  .companion = b.companion});
    behind_frame |= b.kind == Binding::frame;
  }
  image.takes_value = takes_value(kernel, target.traits);
  image.frame_bytes = kernel.frame_bytes();
  image.results = kernel.results;
  image.schedule = kernel.schedule;
  image.sites = kernel.sites;
  for (const Task& task : kernel.tasks) {
    Image::Task t;
    t.kind = task.kind;
    t.walk = task.walk;
    t.rank = task.rank;
    t.innermost = task.innermost;
    t.once = task.once;
    t.lanes = task.lanes;
    t.combines = task.body && combines(task.body);
    t.block_size = task.options.block;
    t.reductions = uint32_t(task.reductions.size());
    t.grain = task.grain;
    t.together = task.together;
    t.strip = task.strip;
    if (task.domain) t.domain = expression_of(kernel, task.domain, image.layout);
    if (task.bound) t.bound = expression_of(kernel, task.bound, image.layout);
    t.merges = task.merges;
    t.follows = task.follows.task;
    t.loc = task.loc;
    image.tasks.push_back(std::move(t));
  }
  for (const Image::Task& t : image.tasks)
    if (t.follows != no_task) image.tasks[t.follows].is_followed = true;
  image.code = code(kernel, target);
  return image;
}

const Compiler& compiler_of(const std::string& backend) {
  for (const CompilerEntry& entry : compilers())
    if (entry.backend == backend) return *entry.compiler;
  throw InternalError("no compiler for the back end " + backend);
}

}  // namespace quern::runtime

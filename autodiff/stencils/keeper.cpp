#include "autodiff/stencils/keeper.h"

#include <algorithm>
#include <string>

#include "ir/analysis/effects.h"
#include "quern/runtime/storage.h"

namespace quern::autodiff {

using namespace ir;

bool is_at_own_element(const Inst* access, const Inst* loop) {
  const Region* body = loop->region(0);
  if (access->parent != body) return false;
  std::vector<bool> found(body->args.size(), false);
  for (size_t axis = 0; axis < Effects::indices(access); axis++) {
    const Value* v = access->operand(axis);
    const bool is_index = !v->inst && v->region == body;
    if (is_index ? found[v->index] : encloses(body, v->inst ? v->inst->parent : v->region))
      return false;
    if (is_index) found[v->index] = true;
  }
  return std::ranges::find(found, false) == found.end();
}

Keeper::Keeper(Kernel& kernel, std::span<const uint32_t> fields, const Inst* loop)
    : kernel_(kernel), loop_(loop), b_(kernel) {
  for (const Inst* inst : *loop->region(0)) add_room(inst, fields);
  // A field that is no input may be a small part of another.
  std::ranges::stable_partition(
      rooms_, [&](const Room& r) { return kernel.bindings[r.binding].is_derived(); });
}

void Keeper::add_room(const Inst* access, std::span<const uint32_t> fields) {
  if (!accesses_element(access->op) || !is_float(access->elem)) return;
  const uint32_t number = access->binding();
  const Binding& binding = kernel_.bindings[number];
  const uint32_t of = binding.is_derived()     ? binding.of
                      : number < fields.size() ? fields[number]
                                               : no_binding;
  if (of == no_binding || !is_at_own_element(access, loop_)) return;
  rooms_.push_back({number, of, access->component(), derivative_type(access->elem), access});
}

const Keeper::Room* Keeper::room_for(const Value* v) const {
  const auto fits = [&](const Room& r) { return v->type == Type::b1 || v->type == r.type; };
  const auto found = std::ranges::find_if(rooms_, fits);
  return found == rooms_.end() ? nullptr : &*found;
}

uint32_t Keeper::declare(const Room& room) {
  const std::string companion = runtime::Storage::scratch + std::to_string(kept_.size());
  for (uint32_t number = 0; number < kernel_.bindings.size(); number++) {
    const Binding& b = kernel_.bindings[number];
    if (b.of == room.of && b.companion == companion) return number;
  }
  Binding made = kernel_.bindings[room.binding];
  for (Component& c : made.components) c.type = derivative_type(c.type);
  made.name = "the parts of " + made.name;
  made.of = room.of;
  made.companion = companion;
  kernel_.bindings.push_back(std::move(made));
  return uint32_t(kernel_.bindings.size() - 1);
}

void Keeper::keep(Value* v) {
  if (kept_.contains(v)) return;
  const Room& room = *room_for(v);
  const uint32_t array = declare(room);
  b_.after(v->inst).at(v->inst->loc);
  Value* number = v;
  if (v->type == Type::b1) {
    Value* one = b_.real(room.type, 1);
    number = b_.select(v, one, b_.real(room.type, 0));
  }
  std::vector<Value*> element;
  for (size_t axis = 0; axis < Effects::indices(room.access); axis++)
    element.push_back(room.access->operand(axis));
  b_.store(array, room.component, element, number);
  kept_[v] = {array, room.component, room.type, room.access};
}

Value* Keeper::kept(Builder& b, const Value* v, std::span<Value* const> iteration) const {
  const Kept& at = kept_.at(v);
  const Region* body = loop_->region(0);
  std::vector<Value*> element;
  for (size_t axis = 0; axis < Effects::indices(at.access); axis++) {
    Value* index = at.access->operand(axis);
    element.push_back(!index->inst && index->region == body ? iteration[index->index] : index);
  }
  Value* number = b.load(at.binding, at.component, at.type, element);
  return v->type == Type::b1 ? b.binary(Op::ne, number, b.real(at.type, 0)) : number;
}

}  // namespace quern::autodiff

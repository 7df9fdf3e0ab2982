// Fields on trees.
#include <algorithm>
#include <utility>

#include "quern/ir/trees.h"
#include "quern/runtime/tree.h"
#include "runtime/storage_memory.h"

namespace quern::runtime {

std::shared_ptr<Storage> Storage::on_tree(std::shared_ptr<Tree> tree,
                                          std::shared_ptr<Storage> elements,
                                          const ir::Placement& layout,
                                          std::span<const int64_t> shape,
                                          std::span<const int64_t> firsts, Loc loc) {
  std::shared_ptr<Storage> s(new Storage(*elements));
  s->tree_ = std::move(tree);
  s->elements_ = std::move(elements);
  s->loc_ = loc;
  s->axes_.clear();
  for (size_t k = 0; k < shape.size(); k++)
    s->axes_.push_back({.extent = shape[k], .first = firsts[k], .tree_origin = -firsts[k]});
  s->facts_.layout.pools = layout.pools;
  std::ranges::copy(layout.cell, s->facts_.layout.cell);
  s->facts_.layout.cut = layout.cut;
  s->facts_.layout.wide = layout.wide;
  s->settle();
  return s;
}

/// How the elements lie, their own storage knows.
void Storage::settle_on_tree() {
  const ir::Placement own = std::exchange(facts_.layout, elements_->facts_.layout);
  facts_.layout.pools = own.pools;
  std::ranges::copy(own.cell, facts_.layout.cell);
  facts_.layout.cut = own.cut;
  facts_.layout.wide = own.wide;
  facts_.contiguous = elements_->facts_.contiguous;
  facts_.zero_based = true;
  steps_ = elements_->steps_;
  is_dense_ = false;
  for (uint32_t k = 0; k < axes_.size(); k++) {
    facts_.zero_based &= axes_[k].first == 0;
    facts_.layout.shifted |= origin(k) != 0;
    facts_.layout.rebased |= origin(k) != axes_[k].tree_origin;
  }
}

void Storage::expect_no_tree(std::string_view why, Loc loc) const {
  if (tree_) throw Error(loc, "this field is on a tree: " + std::string(why));
}

std::shared_ptr<Storage> Storage::resized(int64_t extent, Loc loc) const {
  return unset(device_, stored_, {extent}, "the cells of a tree", loc, memory_->declared->layout,
               element_);
}

void Storage::grow(int64_t extent, const void* element, Loc loc) {
  const std::shared_ptr<Storage> larger = resized(extent, loc);
  larger->fill(element, loc);
  std::vector<Command> commands;
  for (size_t k = 0; k < memory_->bytes().size(); k++)
    if (memory_->bytes()[k] > 0)
      commands.push_back(
          Copy{larger->memory_->allocations[k], memory_->allocations[k], memory_->bytes()[k]});
  const Touch touched[] = {{memory_->uses.get(), false}, {larger->memory_->uses.get(), true}};
  Stream::current(*device_).submit(commands, touched);
  exchange(*larger);
}

void Storage::exchange(Storage& other) {
  memory_->swap(*other.memory_);
  std::swap(memory_->identity, other.memory_->identity);  // each stays what it was
  std::swap(memory_->declared, other.memory_->declared);
  std::swap(axes_, other.axes_);
  std::swap(shape_, other.shape_);
  std::swap(size_, other.size_);
  number_.value = Number::next();
  other.number_.value = Number::next();
}

void Storage::copy_from(const Storage& other, Loc loc) {
  begin_write(loc);
  memory_->copy_from(*other.memory_);
}

std::shared_ptr<Storage> Storage::tree_part(const std::string& name, Loc loc) const {
  expect_alive(loc);
  if (name == ir::tree::elements) {
    // Those of a view of components follow the memory, which may have grown.
    Storage& e = *elements_;
    if (e.shape_ != memory_->declared->shape) {
      e.shape_ = memory_->declared->shape;
      e.axes_[0].extent = e.size_ = e.shape_[0];
      e.number_.value = Number::next();
    }
    return elements_;
  }
  if (std::shared_ptr<Storage> part = tree_->part(name)) return part;
  throw InternalError("a tree has no part '" + name + "'");
}

}  // namespace quern::runtime

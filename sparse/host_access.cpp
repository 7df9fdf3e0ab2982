// What the host reads and writes of fields on trees.
#include <vector>

#include "quern/algorithms.h"
#include "quern/ir/trees.h"
#include "quern/runtime/observer.h"
#include "sparse/parts.h"

namespace quern::detail {

namespace {

using namespace lang;

/// The way down the tree, by tables that are read as needed: word by word for a few elements, else
/// whole.
class HostTables {
 public:
  HostTables(const TreeData& tree, int64_t elements) : tree_(tree), whole_(tree.pools.size()) {
    if (elements <= few) return;
    for (size_t p = 0; p < tree.last(); p++) {
      whole_[p].resize(size_t(tree.parts[p].table->size()));
      tree.parts[p].table->read(whole_[p].data(), 0, tree.parts[p].table->size());
    }
  }

  /// The number of the element at a position, which is overwritten.
  int64_t find(std::vector<int64_t>& position) const {
    std::vector<int64_t> children(tree_.pools.size(), 0);
    for (size_t p = tree_.pools.size(); p-- > 0;)
      for (size_t k = tree_.pools[p].levels.size(); k-- > 0;)
        for (size_t axis = 0; axis < position.size(); axis++) {
          const ir::Placement::Level& level = tree_.pools[p].levels[k];
          children[p] += position[axis] % level.extent[axis] * level.stride[axis];
          position[axis] /= level.extent[axis];
        }
    int64_t slot = 0, number = 0;
    for (size_t p = 0; p < tree_.pools.size(); p++) {
      number = slot * tree_.pools[p].children + children[p];
      if (p < tree_.last()) slot = entry(p, number);
    }
    return number;
  }

 private:
  static constexpr int64_t few = 8;

  uint32_t entry(size_t pool, int64_t number) const {
    if (!whole_[pool].empty()) return whole_[pool][size_t(number)];
    uint32_t slot = 0;
    tree_.parts[pool].table->read(&slot, number, 1);
    return slot;
  }

  const TreeData& tree_;
  std::vector<std::vector<uint32_t>> whole_;
};

/// Calls visit(number, from, count) for runs of the field's elements that follow each other in memory,
/// from the first-th in row-major order on.
template <class F>
void for_each_run(const TreeData& tree, const Storage& field, int64_t first, int64_t count,
                  F&& visit) {
  const HostTables tables(tree, count);
  const std::vector<int64_t>& shape = field.shape();
  int64_t start = 0, from = 0, length = 0;
  for (int64_t k = 0; k < count; k++) {
    std::vector<int64_t> position(shape.size());
    int64_t rest = first + k;
    for (size_t axis = shape.size(); axis-- > 0; rest /= shape[axis])
      position[axis] =
          rest % shape[axis] + field.first(uint32_t(axis)) + field.origin(uint32_t(axis));
    const int64_t number = tables.find(position);
    if (length > 0 && number == start + length) {
      length++;
      continue;
    }
    if (length > 0) visit(start, from, length);
    start = number, from = k, length = 1;
  }
  if (length > 0) visit(start, from, length);
}

/// Makes elements active by their numbers in row-major order. Of which type they are, it never asks.
template <int N>
void activate_all(const std::shared_ptr<Storage>& field, int64_t first, int64_t count, Loc loc) {
  const uint32_t bytes = ir::byte_size(ir::storage_type(field->components()[0].type));
  auto object = std::make_unique<FieldObject>();
  object->type = Field<uint8_t, N>::type();
  object->storage = field->part(0, {bytes, {0}}, loc);
  const Field<uint8_t, N> elements{Ref<FieldObject>(object.release())};
  begin_algorithm("writing elements of a tree", elements.object(), loc);
  kernel_of([](bool) {
    return Kernel{[](Field<uint8_t, N> x, I64 from, I64 to) {
                    for (auto k : range(from, to)) activate(x, index_of(x, k));
                  },
                  modes("activating elements")};
  })(elements, first, first + count, loc);
}

}  // namespace

void TreeData::read(const std::shared_ptr<Storage>& field, void* elements, int64_t first,
                    int64_t count) {
  const auto from = field->tree_part(ir::tree::elements, {});
  auto* host = static_cast<std::byte*>(elements);
  const uint32_t bytes = from->element_bytes();
  for_each_run(*this, *field, first, count, [&](int64_t number, int64_t at, int64_t length) {
    from->read(host + at * bytes, number, length);
  });
}

void TreeData::write(const std::shared_ptr<Storage>& field, const void* elements, int64_t first,
                     int64_t count, Loc at) {
  {
    const runtime::LaunchCall call(runtime::LaunchCall::upkeep);
    switch (rank) {
      case 1: activate_all<1>(field, first, count, at); break;
      case 2: activate_all<2>(field, first, count, at); break;
      case 3: activate_all<3>(field, first, count, at); break;
      default: activate_all<4>(field, first, count, at); break;
    }
  }
  const auto to = field->tree_part(ir::tree::elements, at);
  const auto* host = static_cast<const std::byte*>(elements);
  const uint32_t bytes = to->element_bytes();
  for_each_run(*this, *field, first, count, [&](int64_t number, int64_t from, int64_t length) {
    to->write(host + from * bytes, number, length, at);
  });
}

}  // namespace quern::detail

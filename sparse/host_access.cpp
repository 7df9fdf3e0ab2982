// What the host reads and writes of fields on trees.
#include <map>
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
  HostTables(const TreeData& tree, const Storage& field, int64_t elements)
      : tree_(tree), pools_(field.facts().layout.pools) {
    if (elements <= few) return;
    for (size_t p = 0; p + 1 < pools_.size(); p++) read_whole(tree.parts[p].table);
    if (tree.keys) read_whole(tree.keys);
  }

  /// The number of the element at a position on the tree.
  int64_t find(std::vector<int64_t> position) const {
    std::vector<int64_t> children(pools_.size(), 0);
    for (size_t p = pools_.size(); p-- > 0;)
      for (size_t k = pools_[p].levels.size(); k-- > 0;)
        for (size_t axis = 0; axis < position.size(); axis++) {
          const ir::Placement::Level& level = pools_[p].levels[k];
          children[p] += position[axis] % level.extent[axis] * level.stride[axis];
          position[axis] /= level.extent[axis];
        }
    int64_t slot = 0, number = 0;
    for (size_t p = 0; p < pools_.size(); p++) {
      number = slot * pools_[p].children + children[p];
      if (pools_[p].is_hashed()) number = entry_of(key_of(tree_, position));
      if (p + 1 < pools_.size()) slot = word(tree_.parts[p].table, number);
    }
    return number;
  }

  /// Is the element of this number there? Of a field of cells.
  bool is_there(int64_t number) const {
    const ir::Placement::Pool& own = pools_.back();
    if (pools_.size() > 1 && number < int64_t(ir::tree::first_slot) * own.children) return false;
    if (!own.has_mask()) return true;
    const int64_t bit = number / own.unit;
    return (word(tree_.mask, bit / 32) >> (bit % 32) & 1) != 0;
  }

 private:
  static constexpr int64_t few = 8;

  void read_whole(const std::shared_ptr<Storage>& part) {
    std::vector<uint32_t>& words = whole_[part.get()];
    words.resize(size_t(part->size()));
    part->read(words.data(), 0, part->size());
  }

  uint32_t word(const std::shared_ptr<Storage>& part, int64_t at) const {
    if (auto whole = whole_.find(part.get()); whole != whole_.end())
      return whole->second[size_t(at)];
    uint32_t out = 0;
    part->read(&out, at, 1);
    return out;
  }

  int64_t entry_of(const std::vector<uint32_t>& key) const {
    return detail::entry_of(tree_.parts[0].table->size(), key,
                            [&](int64_t at) { return word(tree_.keys, at); });
  }

  const TreeData& tree_;
  const std::vector<ir::Placement::Pool> pools_;
  std::map<const Storage*, std::vector<uint32_t>> whole_;
};

/// Calls visit(number, from, count) for runs of the field's elements that follow each other in memory,
/// from `first` on in row-major order.
template <class F>
void for_each_run(const TreeData& tree, const Storage& field, std::vector<int64_t> first,
                  int64_t count, F&& visit) {
  const HostTables tables(tree, field, count);
  const std::vector<int64_t>& shape = field.shape();
  int64_t start = 0, from = 0, length = 0;
  for (int64_t k = 0; k < count; k++) {
    std::vector<int64_t> position = first;
    for (uint32_t axis = 0; axis < position.size(); axis++)
      position[axis] += field.first(axis) + field.origin(axis);
    const int64_t number = tables.find(std::move(position));
    for (size_t axis = shape.size(); axis-- > 0 && ++first[axis] == shape[axis];) first[axis] = 0;
    if (length > 0 && number == start + length) {
      length++;
      continue;
    }
    if (length > 0) visit(start, from, length);
    start = number, from = k, length = 1;
  }
  if (length > 0) visit(start, from, length);
}

/// Throws Error where an element of a field of cells is not there.
void expect_cells(const TreeData& tree, const Storage& field, const std::vector<int64_t>& first,
                  int64_t count, Loc loc) {
  const HostTables tables(tree, field, count);
  for_each_run(tree, field, first, count, [&](int64_t number, int64_t from, int64_t length) {
    for (int64_t k = 0; k < length; k++) {
      if (tables.is_there(number + k)) continue;
      std::vector<int64_t> index = first;
      int64_t rest = from + k;
      for (size_t axis = index.size(); axis-- > 0;) {
        const int64_t sum = index[axis] + rest;
        index[axis] = sum % field.shape()[axis] + field.first(uint32_t(axis));
        rest = sum / field.shape()[axis];
      }
      throw Error(loc, "a field of a level's cells is written at " + runtime::shape_text(index) +
                           ", where its tree has no cell");
    }
  });
}

template <int N>
using Indices = std::conditional_t<N == 1, int64_t, Vec<int64_t, N == 1 ? 2 : N>>;

/// Makes elements active, `count` in row-major order from `first` on. Of which type they are, it never
/// asks.
template <int N>
void activate_all(const std::shared_ptr<Storage>& field, const std::vector<int64_t>& first,
                  int64_t count, Loc loc) {
  const uint32_t bytes = ir::byte_size(ir::storage_type(field->components()[0].type));
  auto object = std::make_unique<FieldObject>();
  object->type = Field<uint8_t, N>::type();
  object->storage = field->part(0, {bytes, {0}}, loc);
  const Field<uint8_t, N> elements{Ref<FieldObject>(object.release())};
  begin_algorithm("writing elements of a tree", elements.object(), loc);
  Indices<N> at{};
  for (int axis = 0; axis < N; axis++) {
    const int64_t index = first[size_t(axis)] + field->first(uint32_t(axis));
    if constexpr (N == 1)
      at = index;
    else
      at[axis] = index;
  }
  kernel_of([](bool) {
    return Kernel{[](Field<uint8_t, N> x, Val<Indices<N>> from, I64 n) {
                    for (auto k : range(n)) {
                      Var<Indices<N>> i = from;
                      Var<int64_t> rest = k;
                      if constexpr (N == 1) {
                        i += rest;
                      } else {
                        for (int axis = N; axis-- > 0;) {
                          I64 extent = x.template dim<int64_t>(axis);
                          I64 lowest = x.template first<int64_t>(axis);
                          I64 sum = i[axis] - lowest + rest;
                          i[axis] = lowest + sum % extent;
                          rest = sum / extent;
                        }
                      }
                      activate(x, i);
                    }
                  },
                  modes("activating elements")};
  })(elements, at, count, loc);
}

}  // namespace

void TreeData::read(const std::shared_ptr<Storage>& field, void* elements,
                    std::vector<int64_t> first, int64_t count) {
  const auto from = field->tree_part(ir::tree::elements, {});
  auto* host = static_cast<std::byte*>(elements);
  const uint32_t bytes = from->element_bytes();
  for_each_run(*this, *field, first, count, [&](int64_t number, int64_t at, int64_t length) {
    from->read(host + at * bytes, number, length);
  });
}

void TreeData::write(const std::shared_ptr<Storage>& field, const void* elements,
                     std::vector<int64_t> first, int64_t count, Loc at) {
  if (field->facts().layout.is_of_cells()) {
    expect_cells(*this, *field, first, count, at);
  } else {
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

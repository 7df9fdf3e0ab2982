// Elements are gathered from cells, and scattered to them, by kernels over the tree's list of cells: one
// iteration for each word that says what is active.
#include "sparse/files/cells.h"

#include "dsl/recording.h"
#include "quern/algorithms.h"
#include "quern/ir/trees.h"

namespace quern::detail {

namespace {

using namespace lang;

std::shared_ptr<Storage> make_array(const TreeData& tree, ir::Type type, int64_t count, Loc loc) {
  return std::make_shared<Storage>(tree.device,
                                   std::vector<ir::Storage>{{type, ir::storage_type(type)}},
                                   std::vector<int64_t>{count}, loc);
}
template <class T>
std::shared_ptr<Storage> array_from(const TreeData& tree, ir::Type type, const std::vector<T>& from,
                                    Loc loc) {
  auto made = make_array(tree, type, int64_t(from.size()), loc);
  made->write(from.data(), 0, int64_t(from.size()), loc);
  return made;
}

B1 bit_of(const U32& word, const I32& bit) { return (word >> cast<uint32_t>(bit) & 1u) != 0u; }

/// How many elements of the chunks of the tree's list are active: lists have lengths.
void read_lengths(const TreeData& tree, const Words& words, Loc loc) {
  const ir::Placement::Pool& pool = tree.pools.back();
  kernel_of([](bool) {
    return Kernel{
        [](Words to, Words lengths, Words list, Field<int64_t> owners, I64 children, I64 chunks) {
          for (auto k : to.wide()) {
            I64 chunk = owners[list[k]];
            I64 length = cast<int64_t>(lengths[chunk / chunks]);
            to[k] = cast<uint32_t>(clamp(length - chunk % chunks * children, I64(0), children));
          }
        },
        modes("reading which elements are active")};
  })(words, words_of(tree.mask), words_of(tree.parts.back().list),
     field_of<int64_t>(tree.parts.back().owners), int64_t(pool.children), int64_t(pool.chunks),
     loc);
}

/// The bits of the cells of the tree's list, of which a mask has one for each unit.
void read_bits(const TreeData& tree, const Words& bits, int64_t words, Loc loc) {
  const ir::Placement::Pool& pool = tree.pools.back();
  kernel_of(
      [](bool masked) {
        return Kernel{[masked](Words to, Words mask, Words list, I64 each, I32 children, I32 unit) {
                        for (auto k : to.wide()) {
                          I64 slot = cast<int64_t>(list[k / each]);
                          Var<uint32_t> word = 0u;
                          for (auto b : range(32)) {
                            I32 e = cast<int>(k % each) * 32 + b;
                            If(e < children) {
                              if (masked) {
                                I64 one = (slot * children + e) / unit;
                                I32 bit = cast<int>(one % 32);
                                word |= cast<uint32_t>(bit_of(mask[one / 32], bit))
                                        << cast<uint32_t>(b);
                              } else {
                                word |= U32(1u) << cast<uint32_t>(b);
                              }
                            }
                          }
                          to[k] = word;
                        }
                      },
                      modes("reading which elements are active")};
      },
      pool.has_mask())(bits, words_of(tree.mask), words_of(tree.parts.back().list), words,
                       int(pool.children), int(pool.unit), loc);
}

/// Of so many cells of the tree's list.
std::vector<uint32_t> read_activity(const TreeData& tree, const TreeContent& c, int64_t cells,
                                    Loc loc) {
  const auto words = make_array(tree, ir::Type::u32, cells * c.words(), loc);
  if (c.has_lists())
    read_lengths(tree, words_of(words), loc);
  else
    read_bits(tree, words_of(words), c.words(), loc);
  std::vector<uint32_t> out(size_t(words->size()));
  words->read(out.data(), 0, words->size());
  return out;
}

int64_t cells_of(const TreeData& tree) {
  return read_state(tree)[tree.last() * ir::tree::words_of_pool + ir::tree::count];
}
std::vector<int64_t> read_places(const TreeData& tree, int64_t cells) {
  const auto read = [&]<class I>(I) {
    std::vector<I> places(size_t(cells * tree.rank));
    tree.parts.back().places->read(places.data(), 0, cells);
    return std::vector<int64_t>(places.begin(), places.end());
  };
  return with_index(tree.wide, read);
}

/// Active elements of cells to an array, or back.
template <class T>
void move_values(const TreeData& tree, const Field<T>& cells, const Field<T>& array,
                 const CellActivity& at, bool gathers, Loc loc) {
  const ir::Placement::Pool& pool = tree.pools.back();
  const auto move = [](bool gather, const Field<T>& elements, const I64& element,
                       const Field<T>& values, const I64& number) {
    if (gather)
      values[number] = elements[element];
    else
      elements[element] = values[number];
  };
  const auto lists = [](bool gather) {
    return Kernel{[gather](Field<T> elements, Field<T> values, Words lengths,
                           Field<int64_t> numbers, Words list, I64 children) {
                    for (auto k : lengths.wide()) {
                      I64 first = cast<int64_t>(list[k]) * children;
                      I64 number = numbers[k];
                      for (auto e : range(cast<int>(lengths[k]))) {
                        I64 element = first + e;
                        I64 value = number + e;
                        decltype(move)()(gather, elements, element, values, value);
                      }
                    }
                  },
                  modes("moving elements of lists")};
  };
  const auto bits = [](bool gather) {
    return Kernel{[gather](Field<T> elements, Field<T> values, Words words, Field<int64_t> numbers,
                           Words list, I64 each, I64 children) {
                    for (auto k : words.wide()) {
                      I64 first = cast<int64_t>(list[k / each]) * children + k % each * 32;
                      U32 word = words[k];
                      Var<int64_t> number = numbers[k];
                      for (auto b : range(32)) {
                        If(bit_of(word, b)) {
                          I64 element = first + b;
                          decltype(move)()(gather, elements, element, values, number);
                          number += 1;
                        }
                      }
                    }
                  },
                  modes("moving active elements")};
  };
  const Words list = words_of(tree.parts.back().list);
  const auto numbers = field_of<int64_t>(at.numbers);
  const int64_t children = int64_t(pool.children);
  if (pool.has_lists())
    kernel_of(lists, gathers)(cells, array, words_of(at.words), numbers, list, children, loc);
  else
    kernel_of(bits, gathers)(cells, array, words_of(at.words), numbers, list, mask_words(children),
                             children, loc);
}

void move_component(const TreeData& tree, const Storage& elements, uint32_t component,
                    const std::shared_ptr<Storage>& array, const CellActivity& at, bool gathers,
                    Loc loc) {
  const ir::Type type = elements.components()[component].type;
  const auto part = elements.part(component, {ir::byte_size(ir::storage_type(type)), {0}}, loc);
  for_type(type, [&]<class T>(T) {
    move_values<T>(tree, field_of<T>(part), field_of<T>(array), at, gathers, loc);
  });
}

/// The last active element of each chunk becomes active: with it those before it.
template <class I, int N>
void activate_lists(TreeData& tree, const Words& lengths, const Field<int64_t>& places, Loc loc) {
  kernel_of([](bool) {
    return Kernel{[](Topology<N> x, Words counts, Field<int64_t> from) {
                    for (auto k : counts.wide()) {
                      Val<TreeIndex<N, I>> index = index_from<N, I>([&](int axis) {
                        I64 place = from[k * N + axis];
                        I64 last = axis == N - 1 ? place + cast<int64_t>(counts[k]) - 1 : place;
                        return cast<I>(last) + x.template first<I>(axis);
                      });
                      If(is_inside<I>(x, index)) { activate(x, index); }
                    }
                  },
                  modes("activating lists of a file")};
  })(topology<N>(tree), lengths, places, loc);
}

/// `steps`: of each level of a cell, its stride among the elements, its extent and the distance of its
/// children along each axis.
template <class I, int N>
void activate_bits(TreeData& tree, const Words& bits, int64_t words, const Field<int64_t>& places,
                   Loc loc) {
  const std::vector<ir::Placement::Level>& levels = tree.pools.back().levels;
  std::vector<int> steps;
  std::array<int, N> size;
  size.fill(1);
  for (size_t k = levels.size(); k-- > 0;)
    for (int axis = 0; axis < N; axis++) {
      steps.insert(steps.end(),
                   {int(levels[k].stride[axis]), int(levels[k].extent[axis]), size[size_t(axis)]});
      size[size_t(axis)] *= int(levels[k].extent[axis]);
    }
  if (steps.empty()) steps.push_back(0);
  const auto level_digits = field_of<int>(array_from(tree, ir::Type::i32, steps, loc));
  kernel_of([](bool) {
    return Kernel{
        [](Topology<N> x, Words active, Field<int64_t> from, Field<int> digits, I64 each,
           I32 count) {
          for (auto k : active.wide())
            for (auto b : range(32)) {
              If(bit_of(active[k], b)) {
                I32 e = cast<int>(k % each) * 32 + b;
                std::array<Var<I>, N> at;
                for (int axis = 0; axis < N; axis++)
                  at[size_t(axis)] = cast<I>(from[k / each * N + axis]) + x.template first<I>(axis);
                for (auto level : range(count))
                  for (int axis = 0; axis < N; axis++) {
                    I32 digit = (level * N + axis) * 3;
                    at[size_t(axis)] +=
                        cast<I>(e / digits[digit] % digits[digit + 1] * digits[digit + 2]);
                  }
                Val<TreeIndex<N, I>> index =
                    index_from<N, I>([&](int axis) { return at[size_t(axis)]; });
                // Of a unit that the shape cuts some are no elements.
                If(is_inside<I>(x, index)) { activate(x, index); }
              }
            }
        },
        modes("activating elements of a file")};
  })(topology<N>(tree), bits, places, level_digits, words, int(levels.size()), loc);
}

}  // namespace

TreeData::Elements whole_field(const char* operation, TreeData& tree, FieldObject* field,
                               const std::string& name, Loc loc) {
  expect_on_tree(operation, tree, field, loc);
  const Storage& storage = *field->storage;
  const auto elements = storage.tree_part(ir::tree::elements, loc);
  if (storage.shape() == tree.shape) {
    std::lock_guard lock(tree.mutex);
    for (const TreeData::Elements& known : tree.fields)
      if (known.storage.lock() == elements) return known;
  }
  throw Error(
      loc, std::string(operation) + " is given a view for '" + name + "'; give it the whole field");
}

CellActivity activity_on_device(const TreeData& tree, const TreeContent& content, Loc loc) {
  std::vector<int64_t> numbers;
  int64_t count = 0;
  for (const uint32_t word : content.activity) {
    numbers.push_back(count);
    count += content.active_in(word);
  }
  return {array_from(tree, ir::Type::u32, content.activity, loc),
          array_from(tree, ir::Type::i64, numbers, loc)};
}

void read_cells(TreeData& tree, TreeContent& content, Loc loc) {
  tree.refresh(loc);
  content.shape = tree.shape, content.firsts = tree.firsts, content.levels = tree.levels;
  content.children = tree.pools.back().children;
  const int64_t cells = cells_of(tree);
  content.places = read_places(tree, cells);
  content.activity = read_activity(tree, content, cells, loc);
  content.active = 0;
  for (const uint32_t word : content.activity) content.active += content.active_in(word);
}

bool has_cells(TreeData& tree, const TreeContent& content, Loc loc) {
  tree.refresh(loc);
  return cells_of(tree) == content.cells() &&
         read_places(tree, content.cells()) == content.places &&
         read_activity(tree, content, content.cells(), loc) == content.activity;
}

void activate_cells(TreeData& tree, const TreeContent& content, Loc loc) {
  if (content.places.empty()) return;
  const auto words = words_of(array_from(tree, ir::Type::u32, content.activity, loc));
  const auto places = field_of<int64_t>(array_from(tree, ir::Type::i64, content.places, loc));
  with_indices(tree, tree, [&]<int N, class I>(Rank<N>, I) {
    if (content.has_lists())
      activate_lists<I, N>(tree, words, places, loc);
    else
      activate_bits<I, N>(tree, words, content.words(), places, loc);
  });
}

std::vector<std::byte> read_component(const TreeData& tree, const Storage& elements,
                                      uint32_t component, const CellActivity& at, int64_t active,
                                      Loc loc) {
  const ir::Type type = elements.components()[component].type;
  const auto array = make_array(tree, type, active, loc);
  move_component(tree, elements, component, array, at, true, loc);
  std::vector<std::byte> values(size_t(active) * ir::byte_size(ir::storage_type(type)));
  array->read(values.data(), 0, active);
  return values;
}

void write_component(const TreeData& tree, const Storage& elements, uint32_t component,
                     const CellActivity& at, int64_t active, std::span<const std::byte> values,
                     Loc loc) {
  const auto array = make_array(tree, elements.components()[component].type, active, loc);
  array->write(values.data(), 0, active, loc);
  move_component(tree, elements, component, array, at, false, loc);
}

}  // namespace quern::detail

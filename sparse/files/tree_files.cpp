// Trees to and from files. Elements are gathered from cells, and scattered to them, by the numbers that
// the bits give them: kernels over the tree's list of cells, which follows from what is active alone.
#include <algorithm>
#include <bit>
#include <cstring>
#include <set>

#include "dsl/files/bytes.h"
#include "dsl/recording.h"
#include "quern/algorithms.h"
#include "quern/ir/trees.h"
#include "quern/sparse/files.h"
#include "sparse/files/format.h"
#include "sparse/operations/topology.h"

namespace quern::detail {

struct TreeFileData {
  std::vector<std::byte> bytes;  ///< of the file, among which the content's values are
  TreeContent content;
  /// As the file says it; whoever reads the file has copies, so that nothing changes it.
  std::shared_ptr<TreeData> tree;
  std::shared_ptr<Storage> bits, numbers;  ///< see CellBits
  std::string path;
};

namespace {

using namespace lang;

/// Which elements of the cells of a list are active, `words` words for each cell, and how many are so
/// before each word.
struct CellBits {
  Words bits, numbers;
};

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
/// How many bits are set before each word.
std::vector<uint32_t> numbers_of(const std::vector<uint32_t>& bits) {
  std::vector<uint32_t> out;
  uint32_t count = 0;
  for (const uint32_t word : bits) {
    out.push_back(count);
    count += uint32_t(std::popcount(word));
  }
  return out;
}

B1 bit_of(const Words& bits, const I64& word, const I32& bit) {
  return (bits[word] >> cast<uint32_t>(bit) & 1u) != 0u;
}

/// The bits of the chunks of the tree's list: lists have lengths.
void read_list_bits(const TreeData& tree, const Words& bits, int64_t words, Loc loc) {
  const ir::Placement::Pool& pool = tree.pools.back();
  kernel_of([](bool) {
    return Kernel{[](Words to, Words lengths, Words list, Field<int64_t> owners, I64 each,
                     I32 children, I32 chunks) {
                    for (auto k : to.wide()) {
                      I64 chunk = owners[list[k / each]];
                      I64 before = chunk % chunks * children;
                      I64 length = cast<int64_t>(lengths[chunk / chunks]);
                      Var<uint32_t> word = 0u;
                      for (auto b : range(32)) {
                        I64 e = k % each * 32 + b;
                        If(e < children && before + e < length) {
                          word |= U32(1u) << cast<uint32_t>(b);
                        }
                      }
                      to[k] = word;
                    }
                  },
                  modes("reading which elements are active")};
  })(bits, words_of(tree.mask), words_of(tree.parts.back().list),
     field_of<int64_t>(tree.parts.back().owners), words, int(pool.children), int(pool.chunks), loc);
}

/// The bits of the cells of the tree's list, of which a mask has one for each unit.
void read_bits(const TreeData& tree, const Words& bits, int64_t words, Loc loc) {
  const ir::Placement::Pool& pool = tree.pools.back();
  if (pool.has_lists()) return read_list_bits(tree, bits, words, loc);
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
                                word |= cast<uint32_t>(bit_of(mask, one / 32, bit))
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

/// Active elements of cells to an array, or back.
template <class T>
void move_values(const TreeData& tree, const std::shared_ptr<Storage>& cells,
                 const std::shared_ptr<Storage>& array, const CellBits& at, bool gathers, Loc loc) {
  kernel_of(
      [](bool gather) {
        return Kernel{[gather](Field<T> elements, Field<T> values, Words bits, Words numbers,
                               Words list, I64 each, I64 children) {
                        for (auto k : bits.wide()) {
                          I64 first = cast<int64_t>(list[k / each]) * children + k % each * 32;
                          Var<int64_t> number = cast<int64_t>(numbers[k]);
                          for (auto b : range(32)) {
                            If(bit_of(bits, k, b)) {
                              if (gather)
                                values[number] = elements[first + b];
                              else
                                elements[first + b] = values[number];
                              number += 1;
                            }
                          }
                        }
                      },
                      modes("moving active elements")};
      },
      gathers)(field_of<T>(cells), field_of<T>(array), at.bits, at.numbers,
               words_of(tree.parts.back().list), mask_words(int64_t(tree.pools.back().children)),
               int64_t(tree.pools.back().children), loc);
}

void move_component(const TreeData& tree, const Storage& elements, uint32_t component,
                    const std::shared_ptr<Storage>& array, const CellBits& at, bool gathers,
                    Loc loc) {
  const ir::Type type = elements.components()[component].type;
  const auto part = elements.part(component, {ir::byte_size(ir::storage_type(type)), {0}}, loc);
  for_type(type, [&]<class T>(T) { move_values<T>(tree, part, array, at, gathers, loc); });
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
/// Of so many cells of the tree's list.
std::shared_ptr<Storage> bits_of(const TreeData& tree, int64_t cells, Loc loc) {
  const int64_t words = mask_words(int64_t(tree.pools.back().children));
  const auto bits = make_array(tree, ir::Type::u32, cells * words, loc);
  read_bits(tree, words_of(bits), words, loc);
  return bits;
}
std::vector<uint32_t> on_host(const Storage& words) {
  std::vector<uint32_t> out(size_t(words.size()));
  words.read(out.data(), 0, words.size());
  return out;
}

/// The field's elements, and what they are where they are not active.
TreeData::Elements whole_field(TreeData& tree, const NamedField& field, Loc loc) {
  expect_on_tree("write_tree", tree, field.object.get(), loc);
  const Storage& storage = *field.object.get()->storage;
  const auto elements = storage.tree_part(ir::tree::elements, loc);
  if (storage.shape() == tree.shape) {
    std::lock_guard lock(tree.mutex);
    for (const TreeData::Elements& known : tree.fields)
      if (known.storage.lock() == elements) return known;
  }
  throw Error(loc, "write_tree is given a view for '" + field.name + "'; give it the whole field");
}

/// Makes active what the bits say. `steps`: of each level of a cell, its stride among the elements, its
/// extent and the distance of its children along each axis.
template <class I, int N>
void activate_cells(TreeData& tree, const TreeContent& c, const Words& bits, Loc loc) {
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
  if (c.places.empty()) return;
  if (steps.empty()) steps.push_back(0);
  const auto cell_places = field_of<int64_t>(array_from(tree, ir::Type::i64, c.places, loc));
  const auto level_digits = field_of<int>(array_from(tree, ir::Type::i32, steps, loc));
  kernel_of([](bool) {
    return Kernel{[](Topology<N> x, Words active, Field<int64_t> places, Field<int> digits,
                     I64 each, I32 count) {
                    for (auto k : active.wide())
                      for (auto b : range(32)) {
                        If(bit_of(active, k, b)) {
                          I32 e = cast<int>(k % each) * 32 + b;
                          std::array<Var<I>, N> at;
                          for (int axis = 0; axis < N; axis++)
                            at[size_t(axis)] =
                                cast<I>(places[k / each * N + axis]) + x.template first<I>(axis);
                          for (auto level : range(count))
                            for (int axis = 0; axis < N; axis++) {
                              I32 digit = (level * N + axis) * 3;
                              at[size_t(axis)] += cast<I>(e / digits[digit] % digits[digit + 1] *
                                                          digits[digit + 2]);
                            }
                          Val<TreeIndex<N, I>> index =
                              index_from<N, I>([&](int axis) { return at[size_t(axis)]; });
                          // Of a unit that the shape cuts some are no elements.
                          If(is_inside<I>(x, index)) { activate(x, index); }
                        }
                      }
                  },
                  modes("activating elements of a file")};
  })(topology<N>(tree), bits, cell_places, level_digits, c.words(), int(levels.size()), loc);
}

[[noreturn]] void refuse_file(const std::string& path, const std::string& why, Loc loc) {
  throw Error(loc, "cannot read '" + path + "': " + why);
}

}  // namespace

void write_tree(const std::string& path, TreeData& tree, std::span<const NamedField> fields,
                Loc loc) {
  const Operation operation("write_tree", tree, loc);
  std::vector<TreeData::Elements> known;
  std::set<std::string> names;
  for (const NamedField& field : fields) {
    known.push_back(whole_field(tree, field, loc));
    if (!names.insert(field.name).second)
      throw Error(loc, "write_tree is given two fields called '" + field.name + "'");
  }
  tree.refresh(loc);
  TreeContent c;
  c.shape = tree.shape, c.firsts = tree.firsts, c.levels = tree.levels;
  c.children = tree.pools.back().children;
  const int64_t cells = cells_of(tree);
  c.places = read_places(tree, cells);
  const auto bits = bits_of(tree, cells, loc);
  c.bits = on_host(*bits);
  const CellBits at{words_of(bits),
                    words_of(array_from(tree, ir::Type::u32, numbers_of(c.bits), loc))};
  for (const uint32_t word : c.bits) c.active += std::popcount(word);

  std::vector<std::vector<std::byte>> values;
  for (size_t k = 0; k < fields.size(); k++) {
    const auto elements = known[k].storage.lock();
    TreeFileField& field = c.fields.emplace_back();
    field.name = fields[k].name;
    for (uint32_t component = 0; component < elements->components().size(); component++) {
      const ir::Type type = elements->components()[component].type;
      const size_t bytes = ir::byte_size(ir::storage_type(type));
      const auto none = known[k].background.begin() + known[k].offsets[component];
      field.background.insert(field.background.end(), none, none + int64_t(bytes));
      field.components.push_back(type);
      const auto array = make_array(tree, type, c.active, loc);
      move_component(tree, *elements, component, array, at, true, loc);
      auto& host = values.emplace_back(size_t(c.active) * bytes);
      array->read(host.data(), 0, c.active);
      field.values.emplace_back(host);
    }
  }
  const std::vector<std::byte> file = encoded(c);
  write_bytes(path, {file}, loc);
}

std::shared_ptr<TreeFileData> read_tree(DeviceObject* device, int rank, const std::string& path,
                                        Loc loc) {
  expect_no_recording("reading a tree", loc);
  auto file = std::make_shared<TreeFileData>();
  file->path = path;
  file->bytes = read_bytes(path, loc);
  file->content = decoded(file->bytes, rank, path, loc);
  const TreeContent& c = file->content;
  try {
    file->tree = make_tree(device->device, rank, c.levels, c.shape, c.firsts, c.cells(), loc);
  } catch (const Error& e) {
    refuse_file(path, e.message(), loc);
  }
  TreeData& tree = *file->tree;
  const Operation operation("read_tree", tree, loc);
  if (c.children != tree.pools.back().children)
    refuse_file(path,
                "its levels make cells of " + std::to_string(tree.pools.back().children) +
                    " elements, and it says " + std::to_string(c.children),
                loc);
  file->bits = array_from(tree, ir::Type::u32, c.bits, loc);
  file->numbers = array_from(tree, ir::Type::u32, numbers_of(c.bits), loc);
  with_indices(tree, tree, [&]<int N, class I>(Rank<N>, I) {
    activate_cells<I, N>(tree, c, words_of(file->bits), loc);
  });
  tree.refresh(loc);
  // Values go to the cells of the tree's list, which must be the file's, and active as there.
  if (cells_of(tree) != c.cells() || read_places(tree, c.cells()) != c.places ||
      on_host(*bits_of(tree, c.cells(), loc)) != c.bits)
    refuse_file(path, "its cells are not those of a tree of its levels, in order", loc);
  return file;
}

std::shared_ptr<TreeData> tree_in(const TreeFileData& file, Loc loc) {
  return copy_tree(*file.tree, loc);
}

std::vector<std::string> names_in(const TreeFileData& file) {
  std::vector<std::string> names;
  for (const TreeFileField& field : file.content.fields) names.push_back(field.name);
  return names;
}

FieldObject* field_in(const TreeFileData& file, const std::string& name, FieldType type, Loc loc) {
  const auto found = std::ranges::find(file.content.fields, name, &TreeFileField::name);
  if (found == file.content.fields.end()) {
    std::string all;
    for (const std::string& one : names_in(file)) all += (all.empty() ? "'" : ", '") + one + "'";
    refuse_file(file.path, "it has no field '" + name + "'; it has " + (all.empty() ? "none" : all),
                loc);
  }
  const std::vector<ir::Storage> wanted = stored(type);
  const auto text = [](const auto& types, auto&& type_of) {
    std::string all;
    for (const auto& one : types)
      all += (all.empty() ? "" : ", ") + std::string(ir::name(type_of(one)));
    return "(" + all + ")";
  };
  const std::string in_file = text(found->components, [](ir::Type t) { return t; });
  const std::string asked = text(wanted, [](const ir::Storage& s) { return s.value; });
  if (in_file != asked)
    refuse_file(file.path,
                "elements of '" + name + "' consist of " + in_file +
                    " where those of the field consist of " + asked,
                loc);

  const Operation operation("reading a field on a tree", *file.tree, loc);
  const std::vector<uint32_t> offsets(type.element.offsets,
                                      type.element.offsets + type.element.count);
  std::vector<std::byte> none(type.element.bytes);
  size_t at = 0;
  for (size_t k = 0; k < offsets.size(); k++) {
    const size_t bytes = ir::byte_size(wanted[k].storage);
    std::memcpy(none.data() + offsets[k], found->background.data() + at, bytes);
    at += bytes;
  }
  auto field = std::unique_ptr<FieldObject, void (*)(FieldObject*)>(
      make_tree_field(file.tree, type, {}, none.data(), loc), release);
  const auto elements = field->storage->tree_part(ir::tree::elements, loc);
  for (uint32_t c = 0; c < wanted.size(); c++) {
    const auto array = make_array(*file.tree, wanted[c].value, file.content.active, loc);
    array->write(found->values[c].data(), 0, file.content.active, loc);
    move_component(*file.tree, *elements, c, array, {words_of(file.bits), words_of(file.numbers)},
                   false, loc);
  }
  return field.release();
}

}  // namespace quern::detail

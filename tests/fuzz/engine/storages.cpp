#include "tests/fuzz/engine/storages.h"

#include <algorithm>
#include <set>

#include "sparse/tree.h"
#include "tests/fuzz/engine/values.h"

namespace quern::fuzz {

using namespace ir;
using detail::TreeData;

namespace {

/// On the host an element is the bits of its components, 64 of each.
runtime::Element element_of(size_t components) {
  runtime::Element out{uint32_t(8 * components), {}};
  for (size_t c = 0; c < components; c++) out.offsets.push_back(uint32_t(8 * c));
  return out;
}

std::vector<Bits> interleaved(const Input& input) {
  std::vector<Bits> all;
  for (size_t k = 0; k < input.components[0].size(); k++)
    for (const std::vector<Bits>& component : input.components) all.push_back(component[k]);
  return all;
}

class Placer {
 public:
  Placer(const std::shared_ptr<runtime::Device>& device, const Program& program, bool on_trees)
      : device_(device), program_(program), random_(program.seed ^ 0x7472656573) {
    walk(program.kernel->body, [&](const Inst* inst) {
      if (inst->is(Op::parallel) && inst->options.over != no_binding)
        walked_.insert(program.inputs[inst->options.over].memory);
    });
    on_trees_ = on_trees;
  }

  std::vector<runtime::Argument> place() {
    std::vector<runtime::Argument> all;
    for (uint32_t k = 0; k < program_.inputs.size(); k++) {
      const Input& input = program_.inputs[k];
      if (program_.kernel->bindings[k].kind == Binding::scalar)
        all.push_back({input.scalar, nullptr});
      else
        all.push_back({0, input.memory != k ? all[input.memory].storage : field(k)});
    }
    return all;
  }

 private:
  std::shared_ptr<runtime::Storage> field(uint32_t number) {
    const Input& input = program_.inputs[number];
    std::vector<ir::Storage> stored;
    for (const Component& c : program_.kernel->bindings[number].components)
      stored.push_back({c.type, storage_type(c.type)});
    const runtime::Element element = element_of(stored.size());
    const std::vector<Bits> elements = interleaved(input);
    const auto count = int64_t(input.components[0].size());
    // Strict programs add floats in the order of the loop.
    const bool is_walked = walked_.contains(number);
    const bool ordered = is_walked && program_.kernel->modes.strict;
    if (!on_trees_ || ordered || count == 0 || random_.chance(40)) {
      auto dense = std::make_shared<runtime::Storage>(device_, stored, input.shape, Loc(), Layout(),
                                                      element);
      dense->write(elements.data(), 0, count);
      return dense;
    }
    const auto tree = tree_for(input.shape);
    const auto made =
        detail::make_storage(tree, tree->elements(), stored, element, {}, elements.data(), {});
    if (is_walked || random_.chance(50))
      made->write(elements.data(), 0, count);
    else
      write_unlike(*made, elements, count);
    return made;
  }

  /// The elements that are not the first one, which is the background.
  static void write_unlike(runtime::Storage& to, const std::vector<Bits>& elements, int64_t count) {
    const auto size = std::ptrdiff_t(elements.size() / size_t(count));
    const auto at = [&](int64_t k) { return elements.begin() + k * size; };
    const auto is_background = [&](int64_t k) { return std::equal(at(k), at(k) + size, at(0)); };
    for (int64_t k = 0, end = 0; k < count; k = end + 1) {
      for (end = k; end < count && !is_background(end);) end++;
      if (end > k) to.write(&*at(k), k, end - k);
    }
  }

  /// Fields of one shape may share a tree.
  std::shared_ptr<TreeData> tree_for(const std::vector<int64_t>& shape) {
    for (const auto& tree : trees_)
      if (tree->shape == shape && random_.chance(40)) return tree;
    const int rank = int(shape.size());
    std::vector<TreeLevel> levels;
    std::vector<int64_t> left = shape;
    const auto level = [&](TreeLevel::Kind kind, int most) {
      TreeLevel made;
      made.kind = kind;
      made.count = rank;
      for (int axis = 0; axis < rank; axis++) {
        int64_t& n = left[size_t(axis)];
        made.n[axis] = most ? 1 + int(random_.below(uint64_t(most))) : int(n);
        n = (n + made.n[axis] - 1) / made.n[axis];
      }
      levels.insert(levels.begin(), made);
    };
    level(random_.chance(60) ? TreeLevel::bitmasked : TreeLevel::dense, 4);
    if (random_.chance(50))
      level(random_.pick<TreeLevel::Kind>(
                {TreeLevel::dense, TreeLevel::pointer, TreeLevel::pointer, TreeLevel::bitmasked}),
            3);
    if (random_.chance(20))
      levels.insert(levels.begin(), TreeLevel{TreeLevel::hash});
    else
      level(random_.chance(80) ? TreeLevel::pointer : TreeLevel::dense, 0);
    trees_.push_back(
        detail::make_tree(device_, rank, levels, shape, {}, int64_t(random_.below(5)), Loc()));
    return trees_.back();
  }

  const std::shared_ptr<runtime::Device>& device_;
  const Program& program_;
  Random random_;
  bool on_trees_ = false;
  std::set<uint32_t> walked_;  ///< memories that loops name
  std::vector<std::shared_ptr<TreeData>> trees_;
};

}  // namespace

std::vector<runtime::Argument> arguments_on(const std::shared_ptr<runtime::Device>& device,
                                            const Program& program, bool on_trees) {
  return Placer(device, program, on_trees).place();
}

std::vector<std::vector<Bits>> elements_of(const runtime::Storage& field) {
  const size_t components = field.components().size();
  std::vector<Bits> all(size_t(field.size()) * components, 0);
  field.read(all.data(), 0, field.size());
  std::vector<std::vector<Bits>> out(components);
  for (size_t k = 0; k < all.size(); k++) out[k % components].push_back(all[k]);
  return out;
}

}  // namespace quern::fuzz

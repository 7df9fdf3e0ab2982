#include "autodiff/tapes/kept_fields.h"

#include <algorithm>

namespace quern::autodiff {

std::vector<ir::Storage> stored(std::span<const ir::Type> types) {
  std::vector<ir::Storage> components;
  components.reserve(types.size());
  for (ir::Type t : types) components.push_back({t, ir::storage_type(t)});
  return components;
}

int64_t at_least_one(uint64_t rows) { return std::max<int64_t>(int64_t(rows), 1); }

std::vector<ir::Type> adjoint_types(const runtime::Storage& field) {
  std::vector<ir::Type> types;
  for (const ir::Component& c : field.components()) types.push_back(ir::derivative_type(c.type));
  return types;
}

std::shared_ptr<runtime::Storage> like_adjoints_of(const runtime::Storage& field, bool unset,
                                                   Loc loc) {
  static const std::string what = "a gradient at once";
  std::vector<ir::Storage> types = stored(adjoint_types(field));
  const auto made = unset ? runtime::Storage::unset(field.shared_device(), std::move(types),
                                                    field.shape(), what, loc)
                          : std::make_shared<runtime::Storage>(
                                field.shared_device(), std::move(types), field.shape(), loc);
  std::vector<int64_t> firsts(field.shape().size());
  for (uint32_t axis = 0; axis < firsts.size(); axis++) firsts[axis] = field.first(axis);
  const bool is_based = std::ranges::any_of(firsts, [](int64_t first) { return first != 0; });
  return is_based ? made->rebased(firsts, loc) : made;
}

}  // namespace quern::autodiff

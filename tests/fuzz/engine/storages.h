#pragma once
// A program's fields on a device.
#include <memory>
#include <vector>

#include "quern/runtime/launch.h"
#include "tests/fuzz/engine/program.h"

namespace quern::fuzz {

/// What each binding is given there. `on_trees`: some fields lie on trees, which ones and on what trees
/// the program's seed says. The program does the same with them: of a field that a loop runs over all
/// elements are active, of others at least those that are not the field's background. Fields whose
/// loops add floats in an order stay dense, as loops over trees have another.
std::vector<runtime::Argument> arguments_on(const std::shared_ptr<runtime::Device>& device,
                                            const Program& program, bool on_trees);
/// Elements of each component.
std::vector<std::vector<ir::Bits>> elements_of(const runtime::Storage& field);

}  // namespace quern::fuzz

#pragma once
// The element-wise rows of the table of operations at every type, as back ends meet them.
#include "tests/backend/harness/harness.h"

namespace quern::test {

struct Row {
  ir::Op op{};
  std::vector<ir::Type> operands;
  ir::Type result{};
};

/// The rows whose last operand is a `t`, library rows excepted (they are replaced before). Of a
/// target whose fma is not exact that row is replaced too.
std::vector<Row> rows_of(ir::Type t, const ir::TargetTraits& target);

/// The row's value by definition.
ir::Bits value_of(const Row& row, std::span<const ir::Bits> operands);
std::string describe(const Row& row, std::span<const ir::Bits> operands, ir::Bits got);

}  // namespace quern::test

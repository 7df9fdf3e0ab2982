#include "tools/gpus/classes.h"

#include <algorithm>

namespace quern::gpus {

namespace {

/// Of vectors, without what stands before the operation: "ADD_F32_e32_gfx11".
void count_vector(std::string_view operation, Classes& to) {
  auto is = [&](std::initializer_list<const char*> beginnings) {
    return std::ranges::any_of(beginnings, [&](const char* b) { return operation.starts_with(b); });
  };
  if (is({"RCP_", "RSQ_", "SQRT_", "EXP_", "LOG_", "SIN_", "COS_"}))
    to.special++;
  else if (is({"PERMLANE"}))
    to.shuffles++;
  else if (!is({"MOV", "CVT", "ACCVGPR", "NOP", "READ", "WRITE"}))
    to.arithmetic++;
}

}  // namespace

void count(std::string_view name, Classes& to) {
  auto is = [&](std::initializer_list<const char*> beginnings) {
    return std::ranges::any_of(beginnings, [&](const char* b) { return name.starts_with(b); });
  };
  const bool global = is({"GLOBAL_", "FLAT_", "BUFFER_"});
  auto has = [&](const char* part) { return name.find(part) != name.npos; };
  if (is({"S_BARRIER_SIGNAL", "S_BARRIER_gfx", "S_BARRIER_vi"}) || name == "S_BARRIER") {
    to.barriers++;
  } else if (is({"DS_BPERMUTE", "DS_PERMUTE", "DS_SWIZZLE"})) {
    to.shuffles++;  // by the crossbar of the block's memory, which they leave alone
  } else if (is({"DS_"})) {
    to.shared++;
  } else if (global && has("_ATOMIC_")) {
    to.atomics++;
  } else if (global && has("_LOAD_")) {
    to.loads++;
  } else if (global && has("_STORE_")) {
    to.stores++;
  } else if (is({"V_DUAL_"})) {
    const size_t second = name.find("_X_");
    count_vector(name.substr(7, second - 7), to);
    if (second != name.npos) count_vector(name.substr(second + 3), to);
  } else if (is({"V_S_"})) {  // of one number for all lanes, in the vector unit
    count_vector(name.substr(4), to);
  } else if (is({"V_"})) {
    count_vector(name.substr(2), to);
  }
}

}  // namespace quern::gpus

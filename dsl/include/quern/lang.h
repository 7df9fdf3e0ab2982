#pragma once
// The names a kernel's author writes: `using namespace quern::lang;`.
#include "quern/elem.h"

namespace quern::lang {
using quern::Val;
using quern::Var;
using B1 = Val<bool>;
using I8 = Val<int8_t>;
using I16 = Val<int16_t>;
using I32 = Val<int32_t>;
using I64 = Val<int64_t>;
using U8 = Val<uint8_t>;
using U16 = Val<uint16_t>;
using U32 = Val<uint32_t>;
using U64 = Val<uint64_t>;
using F32 = Val<float>;
using F64 = Val<double>;
using ivec2 = Vec<int32_t, 2>;
using ivec3 = Vec<int32_t, 3>;
using ivec4 = Vec<int32_t, 4>;
using IVec2 = Val<ivec2>;
using IVec3 = Val<ivec3>;
using IVec4 = Val<ivec4>;
}  // namespace quern::lang

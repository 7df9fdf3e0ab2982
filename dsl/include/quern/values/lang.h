#pragma once
// The names a kernel's author writes: `using namespace quern::lang;`.
#include "quern/values/elem.h"

namespace quern::lang {
using quern::Array;
using quern::HostW;
using quern::In;
using quern::Mat;
using quern::Val;
using quern::Var;
using quern::Vec;
using B1 = Val<bool>;
using I8 = Val<int8_t>;
using I16 = Val<int16_t>;
using I32 = Val<int32_t>;
using I64 = Val<int64_t>;
using U8 = Val<uint8_t>;
using U16 = Val<uint16_t>;
using U32 = Val<uint32_t>;
using U64 = Val<uint64_t>;
using F16 = Val<half>;
using F32 = Val<float>;
using F64 = Val<double>;
using vec2 = Vec<float, 2>;
using vec3 = Vec<float, 3>;
using vec4 = Vec<float, 4>;
using Vec2 = Val<vec2>;
using Vec3 = Val<vec3>;
using Vec4 = Val<vec4>;
using dvec2 = Vec<double, 2>;
using dvec3 = Vec<double, 3>;
using dvec4 = Vec<double, 4>;
using DVec2 = Val<dvec2>;
using DVec3 = Val<dvec3>;
using DVec4 = Val<dvec4>;
using ivec2 = Vec<int32_t, 2>;
using ivec3 = Vec<int32_t, 3>;
using ivec4 = Vec<int32_t, 4>;
using IVec2 = Val<ivec2>;
using IVec3 = Val<ivec3>;
using IVec4 = Val<ivec4>;
using uvec2 = Vec<uint32_t, 2>;
using uvec3 = Vec<uint32_t, 3>;
using uvec4 = Vec<uint32_t, 4>;
using UVec2 = Val<uvec2>;
using UVec3 = Val<uvec3>;
using UVec4 = Val<uvec4>;
using bvec2 = Vec<bool, 2>;
using bvec3 = Vec<bool, 3>;
using bvec4 = Vec<bool, 4>;
using BVec2 = Val<bvec2>;
using BVec3 = Val<bvec3>;
using BVec4 = Val<bvec4>;
using mat2 = Mat<float, 2, 2>;
using mat3 = Mat<float, 3, 3>;
using mat4 = Mat<float, 4, 4>;
using Mat2 = Val<mat2>;
using Mat3 = Val<mat3>;
using Mat4 = Val<mat4>;
using dmat2 = Mat<double, 2, 2>;
using dmat3 = Mat<double, 3, 3>;
using dmat4 = Mat<double, 4, 4>;
using DMat2 = Val<dmat2>;
using DMat3 = Val<dmat3>;
using DMat4 = Val<dmat4>;
}  // namespace quern::lang

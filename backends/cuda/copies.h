#pragma once
// The kernel that gpu::Copies launches.
#include <string>

namespace quern::cuda {

/// For compute capability 7.0, the oldest that Quern serves, and so for all; PTX ISA 6.0.
inline std::string copies_text(size_t pieces) {
  return R"(.version 6.0
.target sm_70
.address_size 64
.visible .entry copies(.param .align 8 .b8 pieces[)" +
         std::to_string(24 * pieces) +
         R"(]) {
  .reg .pred %past;
  .reg .b32 %column, %block, %size, %thread, %i, %word;
  .reg .b64 %piece, %at, %to, %from, %words, %wide, %first;
  mov.u32 %column, %ctaid.y;
  mov.u32 %block, %ctaid.x;
  mov.u32 %size, %ntid.x;
  mov.u32 %thread, %tid.x;
  mad.lo.u32 %i, %block, %size, %thread;
  mov.b64 %first, pieces;
  mul.wide.u32 %at, %column, 24;
  add.u64 %piece, %first, %at;
  ld.param.u64 %to, [%piece];
  ld.param.u64 %from, [%piece+8];
  ld.param.u64 %words, [%piece+16];
  cvt.u64.u32 %wide, %i;
  setp.ge.u64 %past, %wide, %words;
  @%past ret;
  shl.b64 %at, %wide, 2;
  add.u64 %to, %to, %at;
  add.u64 %from, %from, %at;
  ld.global.u32 %word, [%from];
  st.global.u32 [%to], %word;
  ret;
}
)";
}

}  // namespace quern::cuda

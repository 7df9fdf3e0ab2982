#pragma once
// The text form. print → parse → print is the identity.
//
//   quern 1
//   kernel @saxpy level=structured modes=checked,contract results(f32)
//   binding scalar f32 "a"
//   binding field rank=1 f32 "x"                 ; components
//   binding field rank=2 b1 "m" class=1 strided
//   binding field rank=1 inexact f32:f16, f32 "h"        ; Component::exact and Binding::encodings
//   binding field rank=1 f32, f32 "q" align=8 step=8 offsets(0, 4)
//   binding field rank=1 f32, f32 "p" based step=12      ; a Binding's zero_based and layout, where
//   binding field rank=2 f32 "u" blocks(8:8, 8:1)        ; not the usual; blocks(extent:stride, …)
//   frame f32, i64                               ; types of the frame's cells
//   site check "saxpy.cpp":12 "negative at {}" (i32)   ; file and line only with locations
//   function @smoothstep(%e0: f32, %x: f32) -> (f32) {
//     %t = sub %x, %e0 : f32
//     yield %t
//   }
//   body {
//     %a = param<0> : f32
//     %n = extent<1.0> : i32                     ; <binding.axis>
//     %z = constant<0> : i32                     ; integers decimal, floats shortest round trip
//     parallel ordinal=1 %z, %n {(%i: i32)       ; or `parallel deterministic …`; or, over all
//                                                ; indices of a field, `parallel over=2 {(%i: i32)`
//       %v = load<1.0> %i : f32                  ; <binding.component>
//       %w = mul %a, %v : f32 @ "saxpy.cpp":9    ; location, optional
//       store<2.0> %i, %w
//       %old = atomic.add<2.0> %i, %w : f32
//       yield
//     }
//     %r = if %c : f32 { yield %v } { yield %w }
//     %s = loop %z, %n, %one, %x : f32 {(%k: i32, %acc: f32) … yield %acc2 }
//     %q = while %x : f32 {(%c: f32) … yield %go, %c} {(%d: f32) … yield %e}
//     %p = slot<1> : slot f32                    ; element type last
//     check %c, %i !0                            ; !site
//     yield
//   }
//   task serial {
//     …
//   }
//   task range rank=1 walk=chunked deterministic ordinal=0 grain=1024 reduce(add f32 3) domain {
//     … yield %lo, %hi
//   } {(%i: i32)
//     …
//   }
//   schedule { launch 0 if 2 { launch 1 } repeat 3 { launch 2 } { launch 3 } }
//
// `repeat CELL { condition } { body }`. `follows(TASK, BEFORE AFTER, …)` names the task in whose chunks
// one runs, and how far it depends on it along each axis but the last. Attributes of a task come in any order. A NaN prints as its
// bits: constant<nan:0x7fc00000>. Flags of an operation follow its name: add.uncontracted,
// loop.parallel_walk. An operand list starts on the line of its operation. A name may be used again
// once the region that defined it has ended. Strings know \" \ \n \t \xHH.
//
// Everything an operation has beyond its operands prints in a fixed order:
//   %results = name.kind<what it names> operands : result-types !site @ "file":line {regions}
// store/put/write/… without a result print no types. `elem` prints only where it is not the result
// type (slot). A value's name is % and a number in order of definition; the parser takes any name.
// `;` starts a comment. Locations print when PrintOptions::locations is set; what analyses know of
// values, as a comment where they are defined, when PrintOptions::notes names them.
#include <string>
#include <string_view>
#include <vector>

#include "quern/ir/ir.h"

namespace quern::ir {

struct PrintOptions {
  bool locations = false;
  std::vector<std::string> notes = {};  ///< affine, divergence, effects, exact, range, uniform
};
std::string print(const Kernel& kernel, PrintOptions options = {});
/// One instruction with its operands by number, for messages.
std::string print(const Inst* inst);

/// Throws Error with `source`:line of the text, what was found and what was expected. The result is
/// parsed, not verified.
std::unique_ptr<Kernel> parse(std::string_view text, const std::string& source = "text");

}  // namespace quern::ir

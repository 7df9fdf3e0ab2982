#pragma once
// Quern: kernels written in C++, run on every device.
//
//   quern::Field<float> x{device, {n}}, y{device, {n}};
//   quern::Kernel saxpy = [&](F32 a) { for (auto i : y) y[i] = a * x[i] + y[i]; };
//   saxpy(2.0f);
//
// Programs include this header and those beside it; the folders hold what they consist of. The order
// is that of dependence: a compiler's "included from" then names this file only.
// clang-format off
#include "quern/error.h"
#include "quern/loc.h"

// The host's types, and what the language knows of types.
#include "quern/types/swizzle.h"
#include "quern/types/vector.h"
#include "quern/types/structure.h"
#include "quern/types/array.h"
#include "quern/types/half.h"
#include "quern/types/types.h"

// Values, variables, elements, their operators; the interface of the recorder.
#include "quern/values/record.h"
#include "quern/values/convert.h"
#include "quern/values/ops.h"
#include "quern/values/std_names.h"
#include "quern/values/parts.h"
#include "quern/values/foreign.h"
#include "quern/values/val.h"
#include "quern/values/var.h"
#include "quern/values/item.h"
#include "quern/values/elem.h"
#include "quern/values/atomics.h"
#include "quern/values/lang.h"

// Functions of values.
#include "quern/math/functions.h"
#include "quern/math/elementary.h"
#include "quern/math/floating.h"
#include "quern/math/rules.h"
#include "quern/math/linear.h"

// Loops and branches; powers of integers are made of them.
#include "quern/control/loops.h"
#include "quern/control/control.h"
#include "quern/math/integers.h"

// Devices and storage.
#include "quern/fields/objects.h"
#include "quern/fields/device.h"
#include "quern/fields/stream.h"
#include "quern/layout.h"
#include "quern/fields/field.h"
#include "quern/fields/active.h"

// What is recorded and launched, and what it tells the host.
#include "quern/kernels/print.h"
#include "quern/kernels/signature.h"
#include "quern/kernels/kernel.h"
#include "quern/kernels/func.h"
#include "quern/kernels/differentiable.h"

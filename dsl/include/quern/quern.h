#pragma once
// Quern: kernels written in C++, run on every device.
//
//   quern::Field<float> x{device, {n}}, y{device, {n}};
//   quern::Kernel saxpy = [&](F32 a) { for (auto i : y) y[i] = a * x[i] + y[i]; };
//   saxpy(2.0f);
//
// The order is that of dependence: a compiler's "included from" then names this file only.
// clang-format off
#include "quern/error.h"
#include "quern/loc.h"
#include "quern/swizzle.h"
#include "quern/vector.h"
#include "quern/structure.h"
#include "quern/array.h"
#include "quern/types.h"
#include "quern/detail/record.h"
#include "quern/detail/convert.h"
#include "quern/ops.h"
#include "quern/detail/std_names.h"
#include "quern/detail/parts.h"
#include "quern/foreign.h"
#include "quern/val.h"
#include "quern/var.h"
#include "quern/item.h"
#include "quern/elem.h"
#include "quern/lang.h"
#include "quern/functions.h"
#include "quern/elementary.h"
#include "quern/floating.h"
#include "quern/linear.h"
#include "quern/atomics.h"
#include "quern/print.h"
#include "quern/loops.h"
#include "quern/control.h"
#include "quern/integers.h"
#include "quern/detail/objects.h"
#include "quern/device.h"
#include "quern/layout.h"
#include "quern/field.h"
#include "quern/detail/signature.h"
#include "quern/kernel.h"
#include "quern/func.h"

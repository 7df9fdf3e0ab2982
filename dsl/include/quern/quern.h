#pragma once
// Quern: kernels written in C++, run on every device.
//
//   quern::Field<float> x{device, {n}}, y{device, {n}};
//   quern::Kernel saxpy = [&](F32 a) { for (auto i : y) y[i] = a * x[i] + y[i]; };
//   saxpy(2.0f);
#include "quern/atomics.h"
#include "quern/control.h"
#include "quern/device.h"
#include "quern/error.h"
#include "quern/field.h"
#include "quern/func.h"
#include "quern/functions.h"
#include "quern/kernel.h"
#include "quern/lang.h"
#include "quern/loops.h"
#include "quern/print.h"
#include "quern/types.h"

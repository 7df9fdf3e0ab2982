#pragma once
// Algorithms on fields, called by the host: reduce, scan, compact, sort, histogram. Not part of
// quern.h.
//
// They are kernels written in the language, recorded once a process for each combination of types
// and operator, and compiled once for each device, so they run wherever kernels do. Calls launch
// and return, except where they say that they wait; they may come from several host threads.
// Temporary memory is allocated by the call and given back once its launches have run. They run in
// the stream in use (quern/stream.h).
// Operators and predicates are functions of device values that capture nothing, such as
// `[](auto a, auto b) { return a + b; }`. Every call throws Error with the caller's line for fields
// that do not fit each other.
#include "quern/algorithms/compact.h"
#include "quern/algorithms/histogram.h"
#include "quern/algorithms/reduce.h"
#include "quern/algorithms/scan.h"
#include "quern/algorithms/sort.h"

#pragma once
// Applies the facts of a launch: `assume` those that optimising depends on, modes and alias classes, at any
// level up to split; `bind` these and all others.
//
// Expects: level split; the signature has an entry for each binding but the frame.
// Guarantees: modes are the signature's; each field knows its layout and encodings, and its alias class: the
// signature's plus one (0 is reserved for "may be any field"). A task that named the field that it
// walks has a domain: from the first index of each axis on, as many as its extent. No `first` of a field that starts at
// 0 is left: the code is as if it had been written with 0. What the bounds sites of other fields
// say ends in their first index.
// Linear.
#include "quern/ir/lower.h"

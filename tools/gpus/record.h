#pragma once
// A record of what kernels take, kept in a text file and compared with the last.
#include <map>

#include "tools/gpus/resources.h"

namespace quern::gpus {

/// By the name of a task, whose last word is the GPU's.
using Recorded = std::map<std::string, Resources>;

/// A line for each task: its name, a colon and the four numbers, on AMD's GPUs the eight of its
/// classes; lines from # are comments. Throws Error where a file cannot be written or read, with
/// the line where it is none of these.
void write(const Recorded& recorded, const std::string& file);
Recorded read(const std::string& file);

/// Prints what is new, gone or other than in the file, and the sums over all tasks for each GPU.
void compare(const Recorded& recorded, const std::string& file);

}  // namespace quern::gpus

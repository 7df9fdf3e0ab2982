#pragma once
// The assembly of small kernels, for GPUs that need not be present.
#include <string>

namespace quern::test {

struct Modes {
  bool strict = false;
};

/// Of a kernel in text (without its first line) whose bindings share no memory, for the GPU called
/// `name`: PTX, or AMD's assembly. Throws std::runtime_error where there is no such GPU.
std::string assembly(const std::string& name, const std::string& kernel_text, Modes modes = {});

/// out[i] = f(x[i], y[i]) for code that makes %r of %a and %b; `out` is the type of %r, if another.
std::string element_wise(const std::string& code, const std::string& type = "f32",
                         const std::string& out = "");

}  // namespace quern::test

#pragma once
// LLVM's sanitizers over the code of kernels, for builds of Quern with one (QUERN_SANITIZE): the
// sanitizer's runtime is part of such a process, and knows its memory and its threads.
#include <cstdint>

namespace llvm {
class Module;
}

namespace quern::codegen {

enum class Sanitizer : uint8_t { none, address, thread };

/// The one that this library itself is compiled with: g++ says so by macros, clang by features.
#ifndef __has_feature
#define __has_feature(feature) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
constexpr Sanitizer own_sanitizer = Sanitizer::address;
#elif defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
constexpr Sanitizer own_sanitizer = Sanitizer::thread;
#else
constexpr Sanitizer own_sanitizer = Sanitizer::none;
#endif

/// Before the optimiser: it makes no access that the kernel does not ask for, and keeps frames
/// that the sanitizer's reports walk.
void prepare_for(Sanitizer sanitizer, llvm::Module& module);
/// Behind the optimiser: each access to memory asks the sanitizer's runtime, or shadow memory.
/// Accesses of vectors wider than 16 bytes are none to the thread sanitizer.
void instrument_for(Sanitizer sanitizer, llvm::Module& module);

}  // namespace quern::codegen

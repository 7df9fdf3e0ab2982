#include "backends/gpu/copies.h"

#include <algorithm>

namespace quern::gpu {

using runtime::Command;
using runtime::Copy;

namespace {
constexpr unsigned block = 256;

bool is_small(const Copy& c) {
  return c.bytes > 0 && c.bytes <= Copies::most_bytes && (c.bytes | c.to | c.from) % 4 == 0;
}

bool meet(Address a, uint64_t a_bytes, Address b, uint64_t b_bytes) {
  return a < b + b_bytes && b < a + a_bytes;
}
}  // namespace

Copies::~Copies() {
  if (!module_) return;
  Current current(*gpu_);
  gpu_->api->module_unload(module_);
}

/// The first commands that are small copies, none of which writes what another of them touches.
size_t Copies::gather(std::span<const Command> commands, Piece (&found)[pieces]) const {
  size_t n = 0;
  for (const Command& command : commands.first(std::min(commands.size(), pieces))) {
    const Copy* copy = std::get_if<Copy>(&command);
    if (!copy || !is_small(*copy) || meet(copy->to, copy->bytes, copy->from, copy->bytes)) break;
    const bool is_apart = std::none_of(found, found + n, [&](const Piece& p) {
      return meet(copy->to, copy->bytes, p.to, 4 * p.words) ||
             meet(copy->to, copy->bytes, p.from, 4 * p.words) ||
             meet(copy->from, copy->bytes, p.to, 4 * p.words);
    });
    if (!is_apart) break;
    found[n++] = {copy->to, copy->from, copy->bytes / 4};
  }
  return n;
}

size_t Copies::record(std::span<const Command> commands, StreamHandle stream) {
  if (!supported_) return 0;
  Piece found[pieces];
  const size_t n = gather(commands, found);
  if (n == 0 || (!function_ && (n == 1 || !load()))) return 0;
  uint64_t words = 0;
  for (const Piece& p : std::span(found, n)) words = std::max(words, p.words);
  void* parameters[] = {found};
  gpu_->expect(gpu_->api->launch(function_, unsigned((words + block - 1) / block), unsigned(n), 1,
                                 block, 1, 1, 0, stream, parameters, nullptr),
               "launching copies");
  return n;
}

bool Copies::load() {
  const Api& api = *gpu_->api;
  const std::string text = api.copy_module(pieces);
  std::string log;
  supported_ = !text.empty() &&
               api.load_module(&module_, std::as_bytes(std::span(text)), log) == code::success &&
               api.module_function(&function_, module_, "copies") == code::success;
  return supported_;
}

}  // namespace quern::gpu

#include "quern/runtime/backend.h"

namespace quern::runtime {

std::array<uint64_t, 3> words_of(const Work& work) {
  struct {
    std::array<uint64_t, 3> operator()(const Serial& w) const { return {w.rows, w.rows, 1}; }
    std::array<uint64_t, 3> operator()(const Chunked& w) const {
      return {w.iterations, w.grain, w.chunks()};
    }
    std::array<uint64_t, 3> operator()(const Elements& w) const {
      return {w.iterations, w.reciprocals[0], w.reciprocals[1]};
    }
    std::array<uint64_t, 3> operator()(const Combining& w) const {
      return {w.threads, w.first_row, w.rows};
    }
  } words;
  return std::visit(words, work);
}

uint64_t threads_of(const Work& work, bool lanes) {
  if (std::holds_alternative<Serial>(work)) return 1;
  if (auto* chunked = std::get_if<Chunked>(&work)) return chunked->chunks();
  if (auto* combining = std::get_if<Combining>(&work)) return combining->threads;
  const uint64_t iterations = std::get<Elements>(work).iterations;
  return lanes ? ir::abi::lanes(iterations) : iterations;
}

void expect_runs(const Image& image, const Target& target,
                 bool (*runs)(const std::string& code, const std::string& machine)) {
  if (image.backend == target.backend && runs(image.isa, target.isa)) return;
  throw Error(image.loc, "kernel '" + image.kernel + "' was compiled for " + image.backend + " (" +
                             image.isa + "), which " + target.backend + " (" + target.isa +
                             ") does not run");
}

}  // namespace quern::runtime

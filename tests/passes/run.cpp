#include "tests/passes/run.h"

#include <cstring>

#include "quern/ir/abi.h"

namespace quern::test {

using namespace ir;

namespace {

class Launch {
 public:
  Launch(const Kernel& kernel, const Fields& fields)
      : kernel_(kernel), layout_(abi::layout(kernel)), memory_(fields.size()) {
    words_.resize(layout_.bytes / 8);
    word(abi::random_seed, 7);
    word(abi::launch_number, 3);
    word(abi::random_launch, 2);
    for (size_t k = 0; k < fields.size(); k++) bind(k, fields[k]);
  }

  std::byte* args() { return reinterpret_cast<std::byte*>(words_.data()); }

  std::vector<Bits> contents(size_t k, const std::vector<Bits>& before) const {
    if (kernel_.bindings[k].kind == Binding::scalar) return before;
    const size_t bytes = width(k);
    std::vector<Bits> out(before.size());
    for (size_t i = 0; i < out.size(); i++)
      std::memcpy(&out[i], memory_[k].data() + i * bytes, bytes);
    return out;
  }

 private:
  void word(uint32_t offset, uint64_t v) { words_.at(offset / 8) = v; }
  size_t width(size_t k) const { return byte_size(kernel_.bindings[k].components[0].storage); }

  void bind(size_t k, const std::vector<Bits>& values) {
    const abi::Place& place = layout_.places[k];
    if (kernel_.bindings[k].kind == Binding::scalar) return word(place.value(), values.at(0));
    const size_t bytes = width(k);
    // Whole words: an atomic on a narrow element may take the word around it.
    memory_[k].resize((values.size() * bytes + 7) / 8 * 8);
    for (size_t i = 0; i < values.size(); i++)
      std::memcpy(memory_[k].data() + i * bytes, &values[i], bytes);
    word(place.base(0), reinterpret_cast<uint64_t>(memory_[k].data()));
    word(place.stride(0, 0), bytes);
    word(place.extent(0), values.size());
  }

  const Kernel& kernel_;
  abi::Layout layout_;
  std::vector<uint64_t> words_;
  std::vector<std::vector<std::byte>> memory_;
};

}  // namespace

Outcome run(const Kernel& kernel, const Fields& fields, const interpreter::Options& options) {
  Launch launch(kernel, fields);
  interpreter::Report report;
  interpreter::run(kernel, launch.args(), options, report);
  Outcome out;
  out.results = report.results;
  out.ended = report.ended;
  for (size_t k = 0; k < fields.size(); k++) out.fields.push_back(launch.contents(k, fields[k]));
  for (const abi::PrintEntry& line : report.prints)
    out.printed.insert(out.printed.end(), line.values, line.values + line.count);
  out.failed = report.error.state != 0;
  if (!out.failed) return out;
  out.site = report.error.site;
  out.iteration = report.error.iteration;
  out.values.assign(report.error.values, report.error.values + report.error.count);
  return out;
}

}  // namespace quern::test

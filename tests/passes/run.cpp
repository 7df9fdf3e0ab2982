#include "tests/passes/run.h"

#include <cstring>

#include "quern/ir/abi.h"

namespace quern::test {

using namespace ir;

namespace {

class Launch {
 public:
  Launch(const Kernel& kernel, const Fields& fields)
      : kernel_(kernel),
        layout_(abi::layout(kernel)),
        block_(layout_.bytes),
        memory_(fields.size()) {
    abi::Writer(layout_, block_.data())
        .head({.random_seed = 7, .launch_number = 3, .random_launch = 2});
    for (size_t k = 0; k < fields.size(); k++) bind(k, fields[k]);
  }

  std::byte* args() { return block_.data(); }

  std::vector<Bits> contents(size_t k, const std::vector<Bits>& before) const {
    if (kernel_.bindings[k].kind == Binding::scalar) return before;
    const size_t bytes = width(k);
    std::vector<Bits> out(before.size());
    for (size_t i = 0; i < out.size(); i++)
      std::memcpy(&out[i], memory_[k].data() + i * bytes, bytes);
    return out;
  }

 private:
  uint32_t width(size_t k) const { return byte_size(kernel_.bindings[k].components[0].type); }

  void bind(size_t k, const std::vector<Bits>& values) {
    abi::Writer writer(layout_, block_.data());
    if (kernel_.bindings[k].kind == Binding::scalar) return writer.scalar(k, values.at(0));
    const uint32_t bytes = width(k);
    // Whole words: an atomic on a narrow element may take the word around it.
    memory_[k].resize((values.size() * bytes + 7) / 8 * 8);
    for (size_t i = 0; i < values.size(); i++)
      std::memcpy(memory_[k].data() + i * bytes, &values[i], bytes);
    const uint64_t base = reinterpret_cast<uint64_t>(memory_[k].data());
    const int64_t extent = int64_t(values.size());
    writer.arrays(k, {&base, 1}, {&bytes, 1}, {&extent, 1});
  }

  const Kernel& kernel_;
  abi::Layout layout_;
  std::vector<std::byte> block_;
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

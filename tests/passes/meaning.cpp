#include "tests/passes/meaning.h"

#include <cmath>
#include <cstring>
#include <random>

#include "backends/interpreter/interpreter.h"

namespace quern::test {

using namespace ir;

namespace {

constexpr int64_t extents[] = {6, 5, 4, 3, 2, 2, 2, 2};
constexpr size_t margin = 64;  // elements on either side: an address a little off harms nobody

/// Small values: indices stay in range and float sums are exact in any order.
Bits small_value(Type t, std::mt19937_64& random) {
  if (is_float(t)) return bits_of_real(double(random() % 33) / 4 - 4, t);
  if (t == Type::b1) return random() % 2;
  return random() % 5;
}

struct Component {
  std::vector<std::byte> memory;
  size_t owner = 0;  ///< the component in whose memory this one lies
  uint64_t base = 0, count = 0, width = 0, step = 0;
};

/// One run of a kernel on memory of its own, filled from a seed.
class Run {
 public:
  Run(const Kernel& kernel, uint64_t seed, bool check_bounds) {
    std::mt19937_64 random(seed);
    const abi::Layout layout = abi::layout(kernel);
    args_.resize(layout.bytes);
    abi::Writer writer(layout, args_.data());
    writer.head({.random_seed = 12345, .launch_number = 6, .random_launch = 4});
    for (size_t k = 0; k < kernel.bindings.size(); k++) bind(kernel.bindings[k], k, writer, random);
    interpreter::Options options;
    options.max_steps = 1'000'000;
    options.check_bounds = check_bounds;
    interpreter::run(kernel, args_.data(), options, report);
  }

  /// What the program can see of field memory.
  std::vector<Bits> contents() const {
    std::vector<Bits> out;
    for (const Component& c : components_) {
      for (uint64_t k = 0; k < c.count; k++) {
        Bits v = 0;
        std::memcpy(&v, components_[c.owner].memory.data() + c.base + k * c.step, c.width);
        out.push_back(v);
      }
    }
    return out;
  }
  std::vector<Type> types() const {
    std::vector<Type> out;
    for (size_t k = 0; k < components_.size(); k++)
      out.insert(out.end(), components_[k].count, storage_[k]);
    return out;
  }

  interpreter::Report report;

 private:
  void bind(const Binding& b, size_t number, abi::Writer& writer, std::mt19937_64& random) {
    if (b.kind == Binding::scalar) writer.scalar(number, small_value(b.components[0].type, random));
    if (b.kind != Binding::field) return;
    writer.axes(number, extents);
    for (uint32_t k = 0; k < b.components.size(); k++) {
      Component c;
      c.width = byte_size(b.encoding(k));
      c.step = b.layout.step ? b.layout.step : c.width * (b.contiguous ? 1 : 2);
      uint64_t stride = c.step;
      for (uint32_t axis = 0; axis < b.rank; axis++) stride *= uint64_t(b.layout.block(axis));
      int64_t strides[Placement::max_axes] = {};
      auto place_axis = [&](uint32_t axis) {
        strides[axis] = int64_t(stride);
        const uint64_t block = uint64_t(b.layout.block(axis));
        stride *= (uint64_t(extents[axis]) + block - 1) / block;
      };
      const uint32_t fast = b.layout.fast_axis(b.rank);
      if (b.rank > 0) place_axis(fast);
      for (uint32_t axis = b.rank; axis-- > 0;)
        if (axis != fast) place_axis(axis);
      c.count = stride / c.step;
      c.base = margin * c.step;
      c.owner = components_.size();
      const std::vector<int32_t>& offsets = b.layout.offsets;
      if (k > 0 && !offsets.empty()) {
        c.owner -= k;
        c.base += uint64_t(offsets[k]);
      } else {
        c.memory.resize(stride + 2 * margin * c.step);
      }
      std::byte* memory =
          c.owner < components_.size() ? components_[c.owner].memory.data() : c.memory.data();
      for (uint64_t e = 0; e < c.count; e++) {
        const Bits v = small_value(b.components[k].type, random);
        std::memcpy(memory + c.base + e * c.step, &v, c.width);
      }
      writer.component(number, k, reinterpret_cast<uint64_t>(memory) + c.base, strides);
      storage_.push_back(b.encoding(k));
      components_.push_back(std::move(c));
    }
  }

  std::vector<std::byte> args_;
  std::vector<Component> components_;
  std::vector<Type> storage_;
};

bool same(Bits a, Bits b, Type t) {
  if (a == b) return true;
  if (t == Type::f32) return std::isnan(f32_of(a)) && std::isnan(f32_of(b));
  return t == Type::f64 && std::isnan(f64_of(a)) && std::isnan(f64_of(b));
}

std::string differing(const char* what, const std::vector<Bits>& a, const std::vector<Bits>& b,
                      const std::vector<Type>& types) {
  if (a.size() != b.size()) return std::string(what) + ": another number of them";
  for (size_t k = 0; k < a.size(); k++)
    if (!same(a[k], b[k], types[k]))
      return std::string(what) + " " + std::to_string(k) + " was " + std::to_string(a[k]) +
             ", is " + std::to_string(b[k]) + " (bits)";
  return "";
}

std::string differing_lines(const interpreter::Report& a, const interpreter::Report& b) {
  if (a.printed != b.printed) return "prints another number of lines";
  for (size_t k = 0; k < a.prints.size(); k++)
    if (a.prints[k].count != b.prints[k].count ||
        std::memcmp(a.prints[k].values, b.prints[k].values, 8 * a.prints[k].count) != 0)
      return "line " + std::to_string(k) + " has other values";
  return "";
}

std::string difference(const Kernel& before, const Kernel& after, uint64_t seed) {
  const Run a(before, seed, before.level != Level::lowered), b(after, seed, false);
  if (!a.report.ended) return "the case does not end";
  if (!a.report.findings.empty() && a.report.error.state == 0)
    return "the case is out of range: " + a.report.findings[0].message;
  if (!b.report.ended) return "does not end any more";
  if ((a.report.error.state != 0) != (b.report.error.state != 0))
    return a.report.error.state ? "does not fail any more" : "fails now";
  if (a.report.error.state != 0) return "";  // what follows a failure is not compared
  std::string d = differing("element", a.contents(), b.contents(), a.types());
  if (d.empty()) d = differing("result", a.report.results, b.report.results, before.results);
  if (d.empty()) d = differing_lines(a.report, b.report);
  return d;
}

}  // namespace

std::string difference(const Kernel& before, const Kernel& after) {
  for (uint64_t seed = 1; seed <= 5; seed++) {
    const std::string d = difference(before, after, seed);
    if (!d.empty()) return "input " + std::to_string(seed) + ": " + d;
  }
  return "";
}

}  // namespace quern::test

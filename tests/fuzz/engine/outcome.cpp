#include "tests/fuzz/engine/outcome.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <limits>

#include "runtime/compile/compile.h"
#include "runtime/loaded.h"
#include "tests/fuzz/engine/storages.h"
#include "tests/fuzz/engine/values.h"

namespace quern::fuzz {

using namespace ir;
using runtime::Address;

namespace {

constexpr uint32_t seed = 77, launch_number = 5;

Bits canonical(Type t, Bits v) {
  if (!is_float(t) || !std::isnan(real_of(v, t))) return v;
  return bits_of_real(std::numeric_limits<double>::quiet_NaN(), t);
}

/// Elements as they lie in memory.
std::vector<std::byte> packed(Type type, const std::vector<Bits>& elements) {
  size_t width = byte_size(type);
  std::vector<std::byte> bytes(elements.size() * width);
  for (size_t k = 0; k < elements.size(); k++)
    std::memcpy(bytes.data() + k * width, &elements[k], width);
  return bytes;
}

std::vector<Bits> unpacked(Type type, const std::vector<std::byte>& bytes) {
  size_t width = byte_size(type);
  std::vector<Bits> elements(bytes.size() / width);
  for (size_t k = 0; k < elements.size(); k++) {
    std::memcpy(&elements[k], bytes.data() + k * width, width);
    elements[k] = canonical(type, elements[k]);
  }
  return elements;
}

/// Addresses of the components of each binding.
using Bases = std::vector<std::vector<uint64_t>>;

/// Bindings' part of the argument block.
void fill(const Program& program, const Kernel& kernel, std::byte* args, const Bases& bases) {
  const abi::Layout layout = abi::layout(kernel);
  abi::Writer writer(layout, args);
  for (size_t k = 0; k < program.inputs.size(); k++) {
    const Input& input = program.inputs[k];
    if (kernel.bindings[k].kind == Binding::scalar) {
      writer.scalar(k, input.scalar);
      continue;
    }
    std::vector<uint32_t> bytes;
    for (const Component& c : kernel.bindings[k].components) bytes.push_back(byte_size(c.type));
    writer.arrays(k, bases[k], bytes, input.shape);
  }
}

/// Calls `make` for each component that has memory of its own, with its elements as they lie in
/// memory; it returns their address.
template <class F>
Bases place(const Program& program, const Kernel& kernel, F&& make) {
  Bases bases(program.inputs.size());
  for (size_t k = 0; k < bases.size(); k++) {
    const Input& in = program.inputs[k];
    if (in.memory != k)
      bases[k] = bases[in.memory];
    else
      for (size_t c = 0; c < in.components.size(); c++)
        bases[k].push_back(make(kernel.bindings[k].components[c].type,
                                packed(kernel.bindings[k].components[c].type, in.components[c])));
  }
  return bases;
}

void add_results(Outcome& out, const Kernel& kernel, const std::vector<Bits>& results) {
  for (size_t k = 0; k < kernel.results.size(); k++)
    out.results.push_back(canonical(kernel.results[k], results[k]));
}

void add_lines(Outcome& out, const std::vector<Site>& sites,
               std::span<const abi::PrintEntry> entries) {
  for (const abi::PrintEntry& e : entries) {
    const Site& site = sites.at(e.site);
    std::vector<Bits> line = {std::hash<std::string>()(site.text)};
    for (uint32_t k = 0; k < e.count; k++)
      line.push_back(canonical(site.values.at(k), e.values[k]));
    out.lines.push_back(std::move(line));
  }
  std::sort(out.lines.begin(), out.lines.end());
}

std::string text(const std::vector<Bits>& values) {
  std::string out;
  for (Bits v : values) out += (out.empty() ? "" : " ") + std::to_string(v);
  return out;
}

}  // namespace

std::string difference(const Outcome& expected, const Outcome& found) {
  if (!found.refused.empty()) return found.refused;
  if (!found.ended) return "it does not end";
  if (expected.failed != found.failed) return found.failed ? "a check fails" : "no check fails";
  if (expected.failed) return "";
  for (size_t k = 0; k < expected.results.size(); k++)
    if (expected.results[k] != found.results[k])
      return "result " + std::to_string(k) + " is " + std::to_string(found.results[k]) +
             ", expected " + std::to_string(expected.results[k]);
  for (size_t f = 0; f < expected.fields.size(); f++)
    for (size_t k = 0; k < expected.fields[f].size(); k++)
      if (expected.fields[f][k] != found.fields[f][k])
        return "element " + std::to_string(k) + " of field memory " + std::to_string(f) + " is " +
               std::to_string(found.fields[f][k]) + ", expected " +
               std::to_string(expected.fields[f][k]);
  if (expected.printed != found.printed)
    return std::to_string(found.printed) + " lines were printed, expected " +
           std::to_string(expected.printed);
  if (expected.printed > abi::print_capacity) return "";
  for (size_t k = 0; k < expected.lines.size(); k++)
    if (expected.lines[k] != found.lines[k])
      return "a line " + text(found.lines[k]) + " was printed, expected " + text(expected.lines[k]);
  return "";
}

Outcome interpret(const Program& program, const Kernel& kernel, const interpreter::Options& options,
                  std::vector<interpreter::Finding>* findings) {
  struct Piece {
    Type type;
    std::vector<std::byte> bytes;
  };
  std::deque<Piece> memory;
  Bases bases = place(program, kernel, [&](Type type, std::vector<std::byte> bytes) {
    memory.push_back({type, std::move(bytes)});
    return reinterpret_cast<uint64_t>(memory.back().bytes.data());
  });
  const abi::Layout layout = abi::layout(kernel);
  std::vector<std::byte> args(layout.bytes);
  abi::Writer(layout, args.data())
      .head({.random_seed = seed, .launch_number = launch_number, .random_launch = launch_number});
  fill(program, kernel, args.data(), bases);
  interpreter::Report report;
  Outcome out;
  try {
    interpreter::run(kernel, args.data(), options, report);
  } catch (const Error& error) {
    out.refused = error.what();
    return out;
  }
  out.ended = report.ended;
  out.steps = report.steps;
  out.failed = report.error.state != 0;
  out.printed = report.printed;
  for (const Piece& piece : memory) out.fields.push_back(unpacked(piece.type, piece.bytes));
  add_results(out, kernel, report.results);
  add_lines(out, kernel.sites, report.prints);
  if (findings) *findings = report.findings;
  return out;
}

Signature signature(const Program& program) {
  Signature s;
  s.modes = program.kernel->modes;
  s.wide = Random(program.seed ^ 0x77696465).chance(30);
  for (uint32_t k = 0; k < program.inputs.size(); k++)
    s.fields.push_back({true, program.inputs[k].memory});
  return s;
}

namespace {

template <class T>
void read(runtime::Driver& driver, Address from, T& to) {
  driver.download({reinterpret_cast<std::byte*>(&to), sizeof to}, from);
}
template <class T>
void write(runtime::Driver& driver, Address to, const T& from) {
  driver.upload(to, {reinterpret_cast<const std::byte*>(&from), sizeof from});
}

}  // namespace

Outcome run_on(const std::shared_ptr<runtime::Device>& device, const Program& program,
               bool on_trees) {
  runtime::Driver& driver = device->driver();
  std::unique_ptr<Kernel> whole = clone(*program.kernel);
  if (whole->level == Level::recorded) finish_recording(*whole);
  runtime::Recording source(std::move(whole));
  const Kernel* kernel = &source.kernel();
  const std::vector<runtime::Argument> arguments = arguments_on(device, program, on_trees);
  Signature given = runtime::signature_of(arguments, kernel->modes);
  given.wide = signature(program).wide;
  const runtime::Target target = runtime::compiler_of(device->target().backend).target_on(driver);
  auto loaded = std::make_shared<runtime::Loaded>(device, runtime::compile(source, given, target),
                                                  runtime::WideImage());
  const runtime::Loaded::Taken block = loaded->take_memory(0, runtime::other_arguments);
  runtime::fill_arguments(*loaded, arguments, nullptr, *block);
  runtime::LaunchRecord launch;
  launch.number = launch.key.launch = launch_number;
  launch.key.seed = seed;
  runtime::Stream& stream = device->stream();
  runtime::TreeArguments trees(*loaded->image, arguments, {});
  runtime::execute(*loaded, *block, stream, launch, trees);
  driver.wait(block->last);

  Outcome out;
  std::vector<Bits> results(std::max<size_t>(kernel->results.size(), 1));
  if (!kernel->results.empty())
    driver.download(std::as_writable_bytes(std::span(results)), loaded->frame(*block));
  add_results(out, *kernel, results);

  abi::ErrorRecord error;
  read(driver, stream.error_record(), error);
  out.failed = error.state != 0;
  write(driver, stream.error_record(), abi::ErrorRecord());
  read(driver, stream.print_ring(), out.printed);
  std::vector<abi::PrintEntry> entries(std::min(out.printed, abi::print_capacity));
  if (!entries.empty())
    driver.download(std::as_writable_bytes(std::span(entries)),
                    stream.print_ring() + offsetof(abi::PrintRing, entries));
  add_lines(out, loaded->image->sites, entries);
  write(driver, stream.print_ring(), uint64_t(0));
  for (size_t k = 0; k < arguments.size(); k++) {
    if (!arguments[k].storage || program.inputs[k].memory != k) continue;
    std::vector<std::vector<Bits>> components = elements_of(*arguments[k].storage);
    for (size_t c = 0; c < components.size(); c++) {
      for (Bits& v : components[c]) v = canonical(kernel->bindings[k].components[c].type, v);
      out.fields.push_back(std::move(components[c]));
    }
  }
  return out;
}

}  // namespace quern::fuzz

#include "tests/fuzz/engine/outcome.h"

#include <algorithm>
#include <cstring>

#include "runtime/variant.h"

namespace quern::fuzz {

using namespace ir;
using runtime::Address;

namespace {

constexpr uint32_t seed = 77, launch_number = 5;

Bits canonical(Type t, Bits v) {
  if (t == Type::f32 && f32_of(v) != f32_of(v)) return 0x7fc00000;
  if (t == Type::f64 && f64_of(v) != f64_of(v)) return 0x7ff8000000000000;
  return v;
}

ir::Storage storage(const Binding& b) { return b.components[0]; }

/// Elements as they lie in memory.
std::vector<std::byte> packed(const Binding& b, const std::vector<Bits>& elements) {
  size_t width = byte_size(storage(b).storage);
  std::vector<std::byte> bytes(elements.size() * width);
  for (size_t k = 0; k < elements.size(); k++)
    std::memcpy(bytes.data() + k * width, &elements[k], width);
  return bytes;
}

std::vector<Bits> unpacked(const Binding& b, const std::vector<std::byte>& bytes) {
  size_t width = byte_size(storage(b).storage);
  std::vector<Bits> elements(bytes.size() / width);
  for (size_t k = 0; k < elements.size(); k++) {
    std::memcpy(&elements[k], bytes.data() + k * width, width);
    elements[k] = canonical(storage(b).value, elements[k]);
  }
  return elements;
}

void put(std::byte* args, uint32_t offset, uint64_t v) { std::memcpy(args + offset, &v, 8); }

/// Bindings' part of the argument block; `bases` are addresses of the fields' memory.
void fill(const Program& program, const Kernel& kernel, std::byte* args,
          const std::vector<uint64_t>& bases) {
  abi::Layout layout = abi::layout(kernel);
  for (size_t k = 0; k < program.inputs.size(); k++) {
    const Input& input = program.inputs[k];
    const abi::Place& place = layout.places[k];
    if (kernel.bindings[k].kind == Binding::scalar) {
      put(args, place.value(), input.scalar);
      continue;
    }
    put(args, place.base(0), bases[k]);
    uint64_t stride = byte_size(storage(kernel.bindings[k]).storage);
    for (uint32_t axis = place.rank; axis-- > 0;) {
      put(args, place.stride(0, axis), stride);
      put(args, place.extent(axis), uint64_t(input.shape[axis]));
      stride *= uint64_t(input.shape[axis]);
    }
  }
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
        return "element " + std::to_string(k) + " of binding " + std::to_string(f) + " is " +
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
  std::vector<std::vector<std::byte>> memory(program.inputs.size());
  std::vector<uint64_t> bases(program.inputs.size());
  for (size_t k = 0; k < memory.size(); k++) {
    if (program.inputs[k].shape.empty()) continue;
    uint32_t at = program.inputs[k].memory;
    if (at == k) memory[k] = packed(kernel.bindings[k], program.inputs[k].elements);
    bases[k] = reinterpret_cast<uint64_t>(memory[at].data());
  }
  std::vector<std::byte> args(abi::layout(kernel).bytes);
  fill(program, kernel, args.data(), bases);
  put(args.data(), abi::random_seed, seed);
  put(args.data(), abi::launch_number, launch_number);
  interpreter::Report report;
  interpreter::run(kernel, args.data(), options, report);
  Outcome out;
  out.ended = report.ended;
  out.steps = report.steps;
  out.failed = report.error.state != 0;
  out.printed = report.printed;
  for (size_t k = 0; k < memory.size(); k++)
    out.fields.push_back(unpacked(kernel.bindings[k], memory[k]));
  add_results(out, kernel, report.results);
  add_lines(out, kernel.sites, report.prints);
  if (findings) *findings = report.findings;
  return out;
}

Signature signature(const Program& program) {
  Signature s;
  s.modes = program.kernel->modes;
  for (uint32_t k = 0; k < program.inputs.size(); k++)
    s.fields.push_back({true, program.inputs[k].memory});
  return s;
}

namespace {

/// Device memory that is given back.
class Memory {
 public:
  Memory(runtime::Driver& driver, size_t bytes)
      : driver_(driver), bytes_(bytes), address_(driver.allocate((bytes + 3) / 4 * 4)) {}
  ~Memory() { driver_.release(address_); }
  Memory(const Memory&) = delete;
  Address address() const { return address_; }
  std::vector<std::byte> download() const {
    std::vector<std::byte> bytes(bytes_);
    driver_.download(bytes, address_);
    return bytes;
  }

 private:
  runtime::Driver& driver_;
  size_t bytes_;
  Address address_;
};

template <class T>
void read(runtime::Driver& driver, Address from, T& to) {
  driver.download({reinterpret_cast<std::byte*>(&to), sizeof to}, from);
}
template <class T>
void write(runtime::Driver& driver, Address to, const T& from) {
  driver.upload(to, {reinterpret_cast<const std::byte*>(&from), sizeof from});
}

}  // namespace

Outcome run_on(const std::shared_ptr<runtime::Device>& device, const Program& program) {
  runtime::Driver& driver = device->driver();
  std::unique_ptr<Kernel> kernel = clone(*program.kernel);
  if (kernel->level == Level::recorded) finish_recording(*kernel);
  auto variant = std::make_shared<runtime::Variant>(device, *kernel, signature(program));
  std::vector<std::unique_ptr<Memory>> memory(program.inputs.size());
  std::vector<uint64_t> bases(program.inputs.size());
  for (size_t k = 0; k < memory.size(); k++) {
    if (program.inputs[k].shape.empty()) continue;
    uint32_t at = program.inputs[k].memory;
    if (at == k) {
      std::vector<std::byte> bytes = packed(kernel->bindings[k], program.inputs[k].elements);
      memory[k] = std::make_unique<Memory>(driver, bytes.size());
      driver.upload(memory[k]->address(), bytes);
    }
    bases[k] = memory[at]->address();
  }
  std::shared_ptr<runtime::Block> block = runtime::Variant::take_block(variant);
  block->variant = variant.get();
  fill(program, *variant->kernel, block->args(), bases);
  device->set_random_seed(seed);
  runtime::execute(*variant, *block, launch_number);
  driver.wait(block->last);

  Outcome out;
  for (size_t k = 0; k < memory.size(); k++)
    out.fields.push_back(memory[k] ? unpacked(kernel->bindings[k], memory[k]->download())
                                   : std::vector<Bits>());
  std::vector<Bits> results(std::max<size_t>(kernel->results.size(), 1));
  if (!kernel->results.empty())
    driver.download(std::as_writable_bytes(std::span(results)),
                    block->memory + variant->frame_offset);
  add_results(out, *kernel, results);

  abi::ErrorRecord error;
  read(driver, device->error_record(), error);
  out.failed = error.state != 0;
  write(driver, device->error_record(), abi::ErrorRecord());
  read(driver, device->print_ring(), out.printed);
  std::vector<abi::PrintEntry> entries(std::min(out.printed, abi::print_capacity));
  if (!entries.empty())
    driver.download(std::as_writable_bytes(std::span(entries)),
                    device->print_ring() + offsetof(abi::PrintRing, entries));
  add_lines(out, variant->kernel->sites, entries);
  write(driver, device->print_ring(), uint64_t(0));
  return out;
}

}  // namespace quern::fuzz

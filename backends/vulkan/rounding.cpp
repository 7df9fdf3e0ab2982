#include "backends/vulkan/rounding.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <mutex>
#include <random>

#include "backends/vulkan/interface.h"
#include "quern/ir/abi.h"
#include "quern/ir/builder.h"

namespace quern::vulkan {

using namespace ir;

namespace {

struct Row {
  Op op;
  Type operand, result;
  const char* name;
};
constexpr Row rows[] = {
    {Op::add, Type::f32, Type::f32, "f32 addition"},
    {Op::sub, Type::f32, Type::f32, "f32 subtraction"},
    {Op::mul, Type::f32, Type::f32, "f32 multiplication"},
    {Op::div, Type::f32, Type::f32, "f32 division"},
    {Op::sqrt, Type::f32, Type::f32, "f32 square root"},
    {Op::add, Type::f64, Type::f64, "f64 addition"},
    {Op::sub, Type::f64, Type::f64, "f64 subtraction"},
    {Op::mul, Type::f64, Type::f64, "f64 multiplication"},
    {Op::div, Type::f64, Type::f64, "f64 division"},
    {Op::sqrt, Type::f64, Type::f64, "f64 square root"},
    {Op::convert, Type::f64, Type::f32, "f64 to f32"},
    {Op::convert, Type::f32, Type::f64, "f32 to f64"},
    {Op::convert, Type::i64, Type::f32, "i64 to f32"},
    {Op::convert, Type::u64, Type::f64, "u64 to f64"},
    {Op::lt, Type::f32, Type::b1, "f32 comparison"},
    {Op::eq, Type::f32, Type::b1, "f32 equality"},
    {Op::lt, Type::f64, Type::b1, "f64 comparison"},
    {Op::eq, Type::f64, Type::b1, "f64 equality"},
    {Op::fma, Type::f32, Type::f32, "f32 fma"},
    {Op::fma, Type::f64, Type::f64, "f64 fma"},
};
constexpr size_t cases = 512;

/// Operands of case n, 8 bytes each: ends of the range, halfway sums, subnormal results, quotients
/// and roots next to a rounding boundary, products that cancel against the third operand.
void operands(Type type, std::mt19937_64& random, Bits (&out)[3]) {
  if (!is_float(type)) {
    out[0] = random() >> random() % 64;
    return;
  }
  bool narrow = type == Type::f32;
  unsigned digits = narrow ? 23 : 52;
  uint64_t exponents = narrow ? 255 : 2047;
  uint64_t middle = exponents / 2, mantissas = Bits(1) << digits;
  auto real = [&](uint64_t exponent, uint64_t mantissa) {
    return (random() & 1) << (digits + (narrow ? 8 : 11)) | exponent << digits | mantissa;
  };
  uint64_t kind = random() % 4;
  uint64_t m[2] = {random() % mantissas, random() % mantissas};
  if (kind == 0) {  // few bits: exact ties
    for (uint64_t& v : m) v = random() % 8 << (digits - 3) | random() % 2;
    out[0] = real(middle + random() % digits, m[0]);
    out[1] = real(middle, m[1]);
  } else if (kind == 1) {  // results around the smallest numbers
    out[0] = real(random() % 40, m[0]);
    out[1] = real(random() % 2 ? middle + random() % 8 : random() % 40, m[1]);
  } else if (kind == 2) {  // next to powers of two
    out[0] =
        real(middle + random() % 4, random() % 2 ? mantissas - 1 - random() % 4 : random() % 4);
    out[1] =
        real(middle + random() % 4, random() % 2 ? mantissas - 1 - random() % 4 : random() % 4);
  } else {
    out[0] = real(random() % (exponents + 1), m[0]);
    out[1] = real(random() % (exponents + 1), m[1]);
  }
  Bits product = 0;
  const Bits factors[] = {out[0], out[1]};
  evaluate(Op::mul, type, type, factors, product);
  out[2] = product ^ Bits(1) << (bit_width(type) - 1);
  if (random() % 2) out[2] += random() % 3;
}

/// Both near zero, where subnormal numbers are, and often alike; a few are NaN.
void compared_operands(Type type, std::mt19937_64& random, Bits (&out)[3]) {
  const unsigned digits = type == Type::f32 ? 23 : 52, bits = bit_width(type);
  const Bits normal = Bits(1) << digits, infinity = (Bits(1) << (bits - 1)) - normal;
  const Bits magnitudes[] = {0, 1, 2, normal / 2, normal - 1, normal, normal + 1, infinity + 1};
  for (Bits& v : out)
    v = magnitudes[random() % std::size(magnitudes)] | (random() & 1) << (bits - 1);
  if (random() % 4 == 0) out[1] = out[0];
}

/// Row r of `rows` reads its operands at (3r + k)·cases + n and writes its result at r·cases + n.
void build(Kernel& kernel) {
  Builder b(kernel);
  kernel.name = "rounding";
  kernel.level = Level::lowered;
  kernel.modes.strict = true;
  Task task;
  task.kind = Task::range;
  task.walk = Task::element;
  task.body = b.make_region();
  b.at_end(task.body);
  Value* in = b.arg(abi::head_bytes, Type::address);
  Value* out = b.arg(abi::head_bytes + 8, Type::address);
  Inst* loop =
      b.loop(b.builtin(Builtin::thread), b.builtin(Builtin::end), b.builtin(Builtin::threads));
  b.yield();
  b.at_end(loop->region(0));
  Value* bytes = b.mul(loop->region(0)->arg(0), b.integer(Type::i64, 8));
  auto place = [&](Value* base, size_t column) {
    return b.offset(b.offset(base, bytes), b.integer(Type::i64, int64_t(8 * column * cases)));
  };
  for (size_t r = 0; r < std::size(rows); r++) {
    const Row& row = rows[r];
    std::vector<Value*> values;
    for (int k = 0; k < info(row.op).operands; k++)
      values.push_back(b.read(place(in, 3 * r + size_t(k)), row.operand, 1));
    Value* result = b.make(row.op, std::span(&row.result, 1), values)->result();
    if (row.result == Type::b1) result = b.convert(result, Type::u32);
    b.write(place(out, r), result, 2);
  }
  b.yield();
  kernel.tasks.push_back(task);
}

bool same(Type type, Bits a, Bits b) {
  auto nan = [&](Bits v) {
    return type == Type::f32 ? std::isnan(f32_of(v)) : std::isnan(f64_of(v));
  };
  return a == b || (nan(a) && nan(b));
}

/// For each row: is every case right?
std::vector<bool> run(runtime::Driver& driver, const runtime::Compiler& compiler,
                      const runtime::Target& target) {
  constexpr size_t count = std::size(rows);
  std::vector<Bits> in(3 * count * cases), out(count * cases);
  std::mt19937_64 random(1);
  for (size_t r = 0; r < count; r++)
    for (size_t n = 0; n < cases; n++) {
      Bits values[3] = {};
      const bool compares = rows[r].result == Type::b1;
      (compares ? compared_operands : operands)(rows[r].operand, random, values);
      for (size_t k = 0; k < 3; k++)
        in[(3 * r + k) * cases + n] = truncate(values[k], rows[r].operand);
    }
  Kernel kernel;
  build(kernel);
  auto executable = driver.load(compiler.compile(kernel, target));
  uint64_t in_bytes = in.size() * 8, out_bytes = out.size() * 8;
  runtime::Address memory = driver.allocate(in_bytes + out_bytes + 128);
  runtime::Launch launch;
  launch.executable = executable.get();
  launch.work = runtime::Elements{cases};
  launch.args = memory + in_bytes + out_bytes;
  std::vector<Bits> args(10);
  args[8] = memory;
  args[9] = memory + in_bytes;
  runtime::Command commands[] = {runtime::Fill{memory + in_bytes, out_bytes, 0}, launch};
  driver.upload(memory, std::as_bytes(std::span(in)));
  driver.upload(launch.args, std::as_bytes(std::span(args)));
  driver.submit(commands);
  driver.download(std::as_writable_bytes(std::span(out)), memory + in_bytes);
  driver.release(memory);

  std::vector<bool> good(count, true);
  for (size_t r = 0; r < count; r++)
    for (size_t n = 0; n < cases; n++) {
      const Row& row = rows[r];
      Bits values[3], want = 0;
      for (size_t k = 0; k < 3; k++) values[k] = in[(3 * r + k) * cases + n];
      evaluate(row.op, row.operand, row.result, std::span(values, size_t(info(row.op).operands)),
               want);
      if (!same(row.result, out[r * cases + n], want)) good[r] = false;
    }
  return good;
}

/// What fails and has no replacement in IR is why strict mode is refused.
struct Finding {
  bool flushes = false;  ///< comparisons or conversions of f32 fail
  bool fma_exact[2] = {true, true};
  bool div_exact = true, sqrt_exact = true;
  std::string refusal;
};

Finding judge(const std::vector<bool>& good, const std::string& device) {
  Finding f;
  for (size_t r = 0; r < good.size(); r++) {
    if (good[r]) continue;
    bool narrow = rows[r].operand == Type::f32;
    const bool rounds = rows[r].result == Type::f32;
    if (narrow && !rounds) f.flushes = true;
    if (rows[r].op == Op::fma)
      f.fma_exact[!narrow] = false;
    else if (rows[r].op == Op::div && narrow)
      f.div_exact = false;
    else if (rows[r].op == Op::sqrt && narrow)
      f.sqrt_exact = false;
    else
      f.refusal += (f.refusal.empty() ? "" : ", ") + std::string(rows[r].name);
  }
  if (!f.refusal.empty())
    f.refusal = device + " does not round correctly or loses subnormal numbers: " + f.refusal;
  return f;
}

std::string flushing(const std::string& isa) {
  Abilities all = Abilities::parse(isa);
  if (all.flushes_f32) return isa;
  all = {};
  all.flushes_f32 = true;
  return isa + all.text();
}

/// Where f32 is flushed, of code that mends that.
Finding find(runtime::Driver& driver, const runtime::Compiler& compiler, runtime::Target target) {
  Finding found = judge(run(driver, compiler, target), target.device);
  if (!found.flushes) return found;
  target.isa = flushing(target.isa);
  found = judge(run(driver, compiler, target), target.device);
  found.flushes = true;
  return found;
}

}  // namespace

void measure_rounding(runtime::Driver& driver, const runtime::Compiler& compiler,
                      runtime::Target& target) {
  static std::mutex mutex;
  static std::map<std::string, Finding> known;
  std::lock_guard lock(mutex);
  auto it = known.find(target.device);
  if (it == known.end()) it = known.emplace(target.device, find(driver, compiler, target)).first;
  const Finding& f = it->second;
  if (f.flushes) target.isa = flushing(target.isa);
  std::ranges::copy(f.fma_exact, target.traits.fma_exact);
  target.traits.div_exact = f.div_exact;
  target.traits.sqrt_exact = f.sqrt_exact;
  target.strict_refusal = f.refusal;
}

}  // namespace quern::vulkan

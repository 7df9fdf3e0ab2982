// Images as bytes: what was written comes back, and nothing else is taken for an image.
#include <cstring>
#include <random>

#include "quern/runtime/program.h"
#include "tests/catch.h"
#include "tests/images/kernels.h"
#include "tests/message_of.h"

using namespace quern;
using namespace quern::runtime;
using test::message_of;

namespace {

std::shared_ptr<const Image> image_on(const std::string& device) {
  Program program(ir::parse(test::scale_and_sum));
  ir::Modes modes;
  modes.checked = true;
  return program.image(test::arguments(Device::open(device), 10, 1, 0), modes, Loc::here());
}

using Bytes = std::vector<std::byte>;

template <class T>
void put(Bytes& bytes, size_t at, T v) {
  std::memcpy(bytes.data() + at, &v, sizeof v);
}

/// A second witness of the checksum of an image's body: FNV-1a on words of 8 bytes, each folded.
uint64_t checksum(const Bytes& bytes, size_t from) {
  uint64_t h = 0xcbf29ce484222325;
  for (size_t at = from; at < bytes.size(); at += 8) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, std::min<size_t>(8, bytes.size() - at));
    h = (h ^ word) * 0x100000001b3;
    h ^= h >> 32;
  }
  return h;
}

constexpr size_t head = 32;  // magic, two versions, length, checksum

std::string refusal(const Bytes& bytes) {
  return message_of([&] { Image::from(bytes, "some.image"); });
}

}  // namespace

TEST_CASE("an image comes back from its bytes as it was") {
  for (const char* device : {"cpu", "interpreter"}) {
    const auto image = image_on(device);
    const Bytes bytes = image->bytes();
    const Image back = Image::from(bytes);
    CHECK(back.bytes() == bytes);
    CHECK(back.kernel == "scale_and_sum");
    CHECK(back.backend == device);
    CHECK(back.signature == image->signature);
    CHECK(back.made_for == image->made_for);
    CHECK(back.code == image->code);
    REQUIRE(back.parameters.size() == 4);
    CHECK(back.parameters[1].name == "x");
    CHECK(back.parameters[1].is_field);
    CHECK(!back.parameters[3].is_field);
    REQUIRE(back.parameters[1].narrow.size() >= 1);  // its extent is read as an i32
    CHECK(back.parameters[2].narrow.empty());
    CHECK(back.results == std::vector<ir::Type>{ir::Type::i64});
    CHECK(back.tasks.size() == image->tasks.size());
    bool found = false;
    for (const ir::Site& site : back.sites)
      found |= site.text == "negative: {}" && site.loc.line == 12 &&
               std::string(site.loc.file) == "user.cpp";
    CHECK(found);
  }
}

TEST_CASE("bytes that are no image are errors that say why") {
  const Bytes good = image_on("cpu")->bytes();
  CHECK_THAT(refusal({}), contains("some.image is no image of a kernel: its 0 bytes"));
  Bytes bytes = good;
  bytes[0] = std::byte('q');
  CHECK_THAT(refusal(bytes), contains("is no image of a kernel"));
  bytes = good;
  put(bytes, 8, uint32_t(77));
  CHECK_THAT(refusal(bytes),
             contains("is of version 77.") && contains("this build of Quern loads"));
  bytes = good;
  put(bytes, 12, uint32_t(99));
  CHECK_THAT(refusal(bytes), contains(".99;"));
  bytes = good;
  bytes.push_back(std::byte(0));
  CHECK_THAT(refusal(bytes), contains("has 1 bytes behind its end"));
  for (size_t n = 0; n < good.size(); n += n < 200 ? 1 : 97)
    CHECK_THROWS_AS(Image::from(std::span(good).first(n)), Error);
  CHECK_THAT(refusal(Bytes(good.begin(), good.end() - 1)),
             contains("is cut: it has " + std::to_string(good.size() - 1) + " bytes of " +
                      std::to_string(good.size())));
  std::mt19937 random(3);
  for (int k = 0; k < 300; k++) {
    bytes = good;
    bytes[head + random() % (good.size() - head)] ^= std::byte(1 + random() % 255);
    CHECK_THAT(refusal(bytes), contains("is damaged"));
  }
}

// A checksum is no lock: whatever bytes stand behind a right one are refused or consistent.
TEST_CASE("what passes the checksum is consistent, or refused") {
  const Bytes good = image_on("cpu")->bytes();
  REQUIRE(checksum(good, head) == [&] {
    uint64_t sum = 0;
    std::memcpy(&sum, good.data() + 24, 8);
    return sum;
  }());
  const size_t code = image_on("cpu")->code.size();
  std::mt19937 random(4);
  int refused = 0, taken = 0;
  for (int k = 0; k < 5000; k++) {
    Bytes bytes = good;
    const size_t at = head + random() % (good.size() - head - code);
    bytes[at] = std::byte(random());
    if (k % 4 == 0) bytes.resize(bytes.size() - random() % 3);
    put(bytes, 16, uint64_t(bytes.size() - head));
    put(bytes, 24, checksum(bytes, head));
    try {
      const Image image = Image::from(bytes);
      for (const Image::Task& task : image.tasks) {
        if (!task.domain) continue;
        Bytes args(image.layout.bytes), frame(image.frame_bytes);
        int64_t bounds[16];
        task.domain->evaluate(args.data(), frame.data(), bounds);
      }
      taken++;
    } catch (const Error&) {
      refused++;
    }
  }
  CHECK(refused > 500);
  CHECK(taken > 500);  // names, lines and numbers that may be anything
}

TEST_CASE("the text of a signature tells apart what makes other code, and nothing else") {
  auto device = Device::open("cpu");
  const Target target = device->target();
  ir::Signature s;
  s.fields.resize(2);
  const std::string usual = signature_text(s, target);
  CHECK(signature_text(s, target) == usual);
  CHECK(usual.find('\n') == std::string::npos);
  CHECK_THAT(usual, contains(pipeline_version()) && contains(target.isa) && contains("LLVM "));
  std::vector<std::string> all = {usual};
  auto differs = [&](const ir::Signature& signature, const Target& on) {
    const std::string text = signature_text(signature, on);
    CHECK(std::find(all.begin(), all.end(), text) == all.end());
    all.push_back(text);
  };
  auto change = [&](auto&& f) {
    ir::Signature other = s;
    f(other);
    differs(other, target);
  };
  change([](auto& o) { o.modes.checked = true; });
  change([](auto& o) { o.modes.strict = true; });
  change([](auto& o) { o.modes.contract = false; });
  change([](auto& o) { o.wide = true; });
  change([](auto& o) { o.fields.pop_back(); });
  change([](auto& o) { o.fields[1].alias_class = 1; });
  change([](auto& o) { o.fields[1].contiguous = false; });
  change([](auto& o) { o.fields[0].contiguous = false; });
  change([](auto& o) { o.fields[0].zero_based = false; });
  change([](auto& o) { o.fields[0].alignment = 8; });
  change([](auto& o) { o.fields[0].encodings = {ir::Type::f16}; });
  change([](auto& o) { o.fields[0].encodings = {ir::Type::f16, ir::Type::u8}; });
  change([](auto& o) { o.fields[0].layout.step = 12; });
  change([](auto& o) { o.fields[0].layout.group = 12; });
  change([](auto& o) { o.fields[0].layout.group_bytes = 12; });
  change([](auto& o) { o.fields[0].layout.offsets = {0, 4}; });
  change([](auto& o) { o.fields[0].layout.shifted = true; });
  change([](auto& o) { o.fields[0].layout.rebased = true; });
  change([](auto& o) { o.fields[0].layout.fast = 1; });
  change([](auto& o) { o.fields[0].layout.levels.resize(1); });
  change([](auto& o) {
    o.fields[0].layout.levels.resize(1);
    o.fields[0].layout.levels[0].extent[2] = 4;
  });
  auto on = [&](auto&& f) {
    Target other = target;
    f(other);
    differs(s, other);
  };
  on([](Target& t) { t.isa += " +more"; });
  on([](Target& t) { t.backend = "interpreter"; });
  on([](Target& t) { t.workers = t.workers == 1 ? 2 : 1; });
  on([](Target& t) { t.optimise = false; });
  on([](Target& t) { t.traits.walk = ir::Task::element; });
  on([](Target& t) { t.traits.fma_exact[0] ^= true; });
  on([](Target& t) { t.traits.fma_exact[1] ^= true; });
  on([](Target& t) { t.traits.div_exact ^= true; });
  on([](Target& t) { t.traits.sqrt_exact ^= true; });
  on([](Target& t) { t.traits.float_atomic_add[1] ^= true; });
  on([](Target& t) { t.traits.float_atomic_min_max[0] ^= true; });
  on([](Target& t) { t.traits.block_reductions ^= true; });
  on([](Target& t) { t.traits.narrow_atomics ^= true; });
  on([](Target& t) { t.traits.stoppable ^= true; });
  on([](Target& t) { t.traits.told_of_failures ^= true; });
  on([](Target& t) { t.traits.whole_grids ^= true; });
  on([](Target& t) { t.traits.strip++; });
  on([](Target& t) { t.traits.calls ^= true; });
  on([](Target& t) { t.traits.most_copied++; });
  on([](Target& t) { t.traits.half_conversions ^= true; });
  on([](Target& t) { t.traits.if_nesting++; });
  on([](Target& t) { t.traits.loop_nesting++; });
  on([](Target& t) { t.traits.value_bytes++; });
  on([](Target& t) { t.traits.value_tasks++; });
  on([](Target& t) { t.traits.native_math.push_back({ir::Op::rsqrt, ir::Type::f32}); });
  // What the code does not depend on.
  Target same = target;
  same.device = "another of the kind";
  same.max_allocation = 1;
  same.strict_refusal = "none";
  if (same.workers != 1) same.workers += 5;
  CHECK(signature_text(s, same) == usual);
}

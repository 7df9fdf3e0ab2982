#include "backends/vulkan/interface.h"

#include "runtime/bytes.h"

namespace quern::vulkan {

namespace {
struct Flag {
  const char* name;
  bool Abilities::* field;
};
constexpr Flag flags[] = {{" +int64-atomics", &Abilities::int64_atomics},
                          {" +f32-atomic-add", &Abilities::f32_atomic_add},
                          {" +keep-nan", &Abilities::keep_nan},
                          {" +round-even", &Abilities::round_even},
                          {" +keep-denorm", &Abilities::keep_denorm},
                          {" +mesa-software", &Abilities::mesa_software},
                          {" +flushes-f32", &Abilities::flushes_f32}};

template <class Archive>
void archive(Archive& a, std::vector<Module>& modules) {
  runtime::each(a, modules, [&](Module& m) {
    runtime::each(a, m.words, [&](uint32_t& word) { a(word); });
    runtime::each(a, m.loops, [&](Loc& loc) { a(loc); });
  });
}
}  // namespace

std::string Abilities::text() const {
  std::string all;
  for (const Flag& f : flags)
    if (this->*f.field) all += f.name;
  return all;
}

Abilities Abilities::parse(std::string_view isa) {
  Abilities a;
  for (const Flag& f : flags) a.*f.field = isa.find(f.name) != std::string_view::npos;
  return a;
}

bool runs_on(const std::string& code, const std::string& machine) {
  Abilities asked;
  asked.flushes_f32 = true;
  return code == machine || code == machine + asked.text();
}

std::vector<std::byte> pack(std::vector<Module> modules) {
  runtime::ByteWriter out;
  archive(out, modules);
  return std::move(out.bytes);
}

std::vector<Module> unpack(std::span<const std::byte> code) {
  std::vector<Module> modules;
  try {
    runtime::ByteReader in(code, "damaged code of the vulkan back end");
    archive(in, modules);
    in.expect(in.left() == 0);
  } catch (const Error& e) {
    throw InternalError(e.message());
  }
  return modules;
}

}  // namespace quern::vulkan

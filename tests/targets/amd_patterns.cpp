// AMD's instruction set cannot be executed here. What can be judged is which instructions on floats
// a pattern of operations becomes: exactly those that its meaning asks for (docs/semantics.md,
// sections 3 and 8; instructions round as their name says, "RDNA3" and "CDNA3 Instruction Set
// Architecture").
#include <algorithm>
#include <regex>
#include <set>

#include "tests/catch.h"
#include "tests/targets/assembly.h"

using quern::test::assembly;
using quern::test::element_wise;

namespace {

/// One of each architecture: CDNA2, CDNA3, RDNA2, RDNA3, RDNA4.
const char* architectures[] = {"gfx90a", "gfx942", "gfx1030", "gfx1100", "gfx1201"};

/// Operations that make %r of %a and %b, of type `type`; T in them stands for it.
struct Pattern {
  const char* code;
  std::multiset<std::string> strict, contracted;  ///< T stands for the type here, too
};

std::string with_type(const std::string& text, const std::string& type) {
  return std::regex_replace(text, std::regex("\\bT\\b"), type);
}

/// The instructions on floats, without what says how they are encoded: "mul_f32".
std::multiset<std::string> on_floats(const std::string& text) {
  const std::regex instruction("(\\n\\s+|:: )v_(pk_|dual_)?([a-z0-9_]*f(16|32|64)[a-z0-9_]*)");
  std::multiset<std::string> all;
  for (std::sregex_iterator at(text.begin(), text.end(), instruction), end; at != end; ++at) {
    std::string name = std::regex_replace(at->str(3), std::regex("_e(32|64)(_dpp)?$"), "");
    if (name.starts_with("fmac")) name.erase(3, 1);    // it adds to its own result
    if (name.starts_with("subrev")) name.erase(3, 3);  // the other way round
    if (name.starts_with("fmaak") || name.starts_with("fmamk"))
      name.erase(3, 2);  // a constant in it
    all.insert(name);
  }
  return all;
}

std::multiset<std::string> named(const std::multiset<std::string>& pattern,
                                 const std::string& type) {
  std::multiset<std::string> all;
  for (const std::string& name : pattern)  // f64 has no subtraction, but a sign at each operand
    all.insert((type == "f64" && name == "sub" ? "add" : name) + "_" + type);
  return all;
}

std::string listed(const std::multiset<std::string>& names) {
  std::string all;
  for (const std::string& name : names) all += name + " ";
  return all;
}

}  // namespace

TEST_CASE("AMD's instructions of a pattern are those of its meaning") {
  const Pattern patterns[] = {
      // Signs of zeros: x + 0 is +0 for -0, 0 - x is +0 for +0, x - 0 and x + -0 are x.
      {"%c = constant<0> : T\n%r = add %a, %c : T", {"add"}, {"add"}},
      {"%c = constant<0> : T\n%r = sub %c, %a : T", {"sub"}, {"sub"}},
      {"%c = constant<0> : T\n%r = sub %a, %c : T", {}, {}},
      {"%c = constant<-0> : T\n%r = add %a, %c : T", {}, {}},
      {"%r = neg %a : T", {}, {}},
      {"%r = abs %a : T", {}, {}},
      {"%r = copysign %a, %b : T", {}, {}},
      {"%p = mul %a, %b : T\n%r = neg %p : T", {"mul"}, {"mul"}},
      {"%p = abs %a : T\n%r = add %p, %b : T", {"add"}, {"add"}},
      // NaN and infinity: nothing is known to cancel.
      {"%r = sub %a, %a : T", {"sub"}, {"sub"}},
      {"%c = constant<0> : T\n%r = mul %a, %c : T", {"mul"}, {"mul"}},
      {"%c = constant<1> : T\n%r = mul %a, %c : T", {}, {}},
      // Nothing is regrouped.
      {"%p = add %a, %b : T\n%r = sub %p, %b : T", {"add", "sub"}, {"add", "sub"}},
      {"%p = mul %a, %b : T\n%r = mul %p, %a : T", {"mul", "mul"}, {"mul", "mul"}},
      {"%p = mul %a, %a : T\n%q = mul %b, %b : T\n%r = mul %p, %q : T",
       {"mul", "mul", "mul"},
       {"mul", "mul", "mul"}},
      // Contraction: of a product and a sum, in default mode only.
      {"%p = mul %a, %b : T\n%r = add %p, %b : T", {"mul", "add"}, {"fma"}},
      {"%p = mul %a, %b : T\n%r = sub %p, %b : T", {"mul", "sub"}, {"fma"}},
      {"%p = mul %a, %b : T\n%r = sub %b, %p : T", {"mul", "sub"}, {"fma"}},
      {"%p = mul %a, %b : T\n%q = mul %a, %a : T\n%r = add %p, %q : T",
       {"mul", "mul", "add"},
       {"mul", "fma"}},
      // Rounding to whole numbers; to nearest, ties to even.
      {"%r = floor %a : T", {"floor"}, {"floor"}},
      {"%r = ceil %a : T", {"ceil"}, {"ceil"}},
      {"%r = trunc %a : T", {"trunc"}, {"trunc"}},
      {"%r = round %a : T", {"rndne"}, {"rndne"}},
  };
  for (const char* architecture : architectures)
    for (const char* type : {"f16", "f32", "f64"})
      for (const Pattern& p : patterns)
        for (bool strict : {false, true}) {
          const std::string code = with_type(p.code, type);
          INFO(architecture << (strict ? " strict:\n" : ":\n") << code);
          const std::string text = assembly(architecture, element_wise(code, type, type), {strict});
          // An operation on halves is that on f32, rounded: there is nothing to contract.
          const bool kept = strict || type == std::string("f16");
          CHECK(listed(on_floats(text)) == listed(named(kept ? p.strict : p.contracted, type)));
        }
}

TEST_CASE("AMD's fma is one instruction in every mode; that of halves is f32's, rounded") {
  for (const char* architecture : architectures)
    for (const char* code : {"%r = fma %a, %b, %a : T", "%m = neg %a : T\n%r = fma %m, %b, %a : T"})
      for (bool strict : {false, true}) {
        INFO(architecture << (strict ? " strict: " : ": ") << code);
        auto instructions = [&](const char* type) {
          return listed(on_floats(
              assembly(architecture, element_wise(with_type(code, type), type, type), {strict})));
        };
        CHECK(instructions("f32") == "fma_f32 ");
        CHECK(instructions("f64") == "fma_f64 ");
        const std::string mixed = instructions("f16");
        const bool apart = mixed.find("fma_f32 ") != std::string::npos &&
                           mixed.find("cvt_f16_f32 ") != std::string::npos;
        CHECK(
            (apart || mixed == "fma_mixlo_f16 "));  // which multiplies, adds and rounds as f32 does
      }
}

TEST_CASE("AMD's conversions round once") {
  struct Conversion {
    const char *from, *to;
    std::multiset<std::string> wanted;
  };
  const Conversion conversions[] = {
      {"f32", "f64", {"cvt_f64_f32"}}, {"f64", "f32", {"cvt_f32_f64"}},
      {"f16", "f32", {"cvt_f32_f16"}}, {"f32", "f16", {"cvt_f16_f32"}},
      {"i32", "f32", {"cvt_f32_i32"}}, {"u32", "f32", {"cvt_f32_u32"}},
      {"i32", "f64", {"cvt_f64_i32"}}, {"u32", "f64", {"cvt_f64_u32"}},
  };
  for (const char* architecture : architectures) {
    for (const Conversion& c : conversions) {
      INFO(architecture << " " << c.from << " to " << c.to);
      const std::string code = std::string("%r = convert %a : ") + c.to;
      const std::string text = assembly(architecture, element_wise(code, c.from, c.to), {true});
      CHECK(listed(on_floats(text)) == listed(c.wanted));
    }
    // f64 to f16 by way of f32 would round twice: 1 + 2^-11 + 2^-40 would become 1. So what the
    // first conversion made is compared with what it had, and made odd where it rounded (Boldo and
    // Melquiond, "Emulation of FMA and Correctly Rounded Sums", IEEE TC 2008).
    INFO(architecture);
    const std::multiset<std::string> found = on_floats(
        assembly(architecture, element_wise("%r = convert %a : f16", "f64", "f16"), {true}));
    for (const char* once : {"cvt_f32_f64", "cvt_f64_f32", "cvt_f16_f32"})
      CHECK(found.count(once) == 1);
    const auto compares = std::ranges::count_if(found, [](const std::string& name) {
      return name.starts_with("cmp_") && name.ends_with("f64");
    });
    CHECK(compares == 2);  // equal? else above or below
    CHECK(found.size() == 5);
  }
}

TEST_CASE("AMD's code leaves the modes of rounding and of subnormals as the kernel has them") {
  for (const char* architecture : architectures)
    for (const char* type : {"f16", "f32", "f64"}) {
      INFO(architecture << " " << type);
      const std::string code =
          with_type("%p = mul %a, %b : T\n%q = add %p, %a : T\n%r = div %q, %b : T", type);
      for (bool strict : {false, true}) {
        const std::string text = assembly(architecture, element_wise(code, type, type), {strict});
        CHECK(text.find(".amdhsa_float_round_mode_32 0") != std::string::npos);  // to nearest even
        CHECK(text.find(".amdhsa_float_round_mode_16_64 0") != std::string::npos);
        CHECK(text.find(".amdhsa_float_denorm_mode_32 3") != std::string::npos);  // kept
        CHECK(text.find(".amdhsa_float_denorm_mode_16_64 3") != std::string::npos);
        CHECK(!std::regex_search(text, std::regex("v_(mad|mac)_f(16|32)")));  // these flush
        CHECK(text.find("s_round_mode") == std::string::npos);
      }
    }
}

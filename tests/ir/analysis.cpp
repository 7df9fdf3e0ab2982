// The analyses, on small kernels, shown by the names of the text form; expected by hand.
#include <map>
#include <string>

#include "ir/analysis/affine.h"
#include "ir/analysis/uniformity.h"
#include "ir/text/names.h"
#include "quern/ir/text.h"
#include "tests/catch.h"

using namespace quern;
using namespace quern::ir;

namespace {

/// "2*%i - %j + 3", by the names of the text form.
std::string shown(const Affine& form, const text::Names& names) {
  std::map<std::string, int64_t> terms;
  for (const Affine::Term& t : form.terms) terms[names(t.symbol)] = t.factor;
  std::string out;
  for (const auto& [name, factor] : terms)
    out += (out.empty() ? "" : " + ") + std::to_string(factor) + "*" + name;
  return out + (out.empty() ? "" : " + ") + std::to_string(form.constant);
}

struct Analysed {
  std::unique_ptr<Kernel> kernel;
  const Region* body;
  text::Names names;
  std::map<std::string, const Value*> values;

  explicit Analysed(const std::string& code)
      : kernel(parse("quern 1\nkernel @k level=structured\n"
                     "binding field rank=1 i32 \"x\"\nbinding scalar i32 \"a\"\nbody {\n" +
                     code + "yield\n}\n")),
        body(kernel->body),
        names(kernel->body) {
    walk(kernel->body, [&](Inst* inst) {
      for (const Value& v : inst->results) values[names(&v)] = &v;
      for (const Region* r : inst->regions)
        for (const Value& v : r->args) values[names(&v)] = &v;
    });
  }
  std::string affine(const std::string& name, AffineForms::Mode mode = AffineForms::exact) {
    return shown(AffineForms(mode).of(values.at(name)), names);
  }
};

const char* const sums = R"(
  %0 = param<1> : i32
  %1 = constant<3> : i32
  %2 = constant<-4> : i32
  %3 = add %0, %1 : i32
  %4 = sub %3, %2 : i32
  %5 = mul %4, %1 : i32
  %6 = sub %5, %0 : i32
  %7 = shl %6, %1 : i32
  %8 = neg %7 : i32
  %9 = sub %4, %3 : i32
  %10 = mul %0, %0 : i32
  %11 = add %10, %0 : i32
  %12 = convert %4 : i64
  %13 = constant<2> : i64
  %14 = mul %12, %13 : i64
  %15 = constant<2147483647> : i32
  %16 = add %0, %15 : i32
  %17 = add %16, %15 : i32
)";

}  // namespace

TEST_CASE("affine forms: sums, differences, products by constants and shifts") {
  Analysed a(sums);
  CHECK(a.affine("%3") == "1*%0 + 3");
  CHECK(a.affine("%4") == "1*%0 + 7");
  CHECK(a.affine("%5") == "3*%0 + 21");
  CHECK(a.affine("%6") == "2*%0 + 21");
  CHECK(a.affine("%7") == "16*%0 + 168");
  CHECK(a.affine("%8") == "-16*%0 + -168");
  CHECK(a.affine("%9") == "4");
  CHECK(a.affine("%10") == "1*%10 + 0");
  CHECK(a.affine("%11") == "1*%0 + 1*%10 + 0");
}

TEST_CASE("affine forms wrap as the type does") {
  Analysed a(sums);
  CHECK(a.affine("%16") == "1*%0 + 2147483647");
  CHECK(a.affine("%17") == "1*%0 + -2");  // 2 (2^31 - 1) = 2^32 - 2
}

TEST_CASE("affine forms stop at conversions, or look through those between integers") {
  Analysed a(sums);
  CHECK(a.affine("%14") == "2*%12 + 0");
  CHECK(a.affine("%14", AffineForms::through_conversions) == "2*%0 + 14");
}

TEST_CASE("affine forms of equal values are equal, and constants tell values apart") {
  Analysed a(sums);
  AffineForms forms;
  const Affine three = forms.of(a.values.at("%3")), four = forms.of(a.values.at("%4"));
  CHECK(three != four);
  CHECK(three.differs_from(four));
  CHECK_FALSE(three.differs_from(forms.of(a.values.at("%11"))));
  CHECK(three.base() == a.values.at("%0"));
  CHECK(forms.of(a.values.at("%6")).base() == nullptr);
  CHECK(forms.of(a.values.at("%6")).factor_of(a.values.at("%0")) == 2);
  CHECK(forms.of(a.values.at("%6")).factor_of(a.values.at("%1")) == 0);
}

TEST_CASE("long sums and deep chains become symbols of their own") {
  const size_t n = AffineForms::most_terms + 1;
  std::string code, deep = "%0 = param<1> : i32\n";
  for (size_t k = 0; k < n; k++)
    code += "%z" + std::to_string(k) + " = constant<" + std::to_string(k) + "> : i32\n%l" +
            std::to_string(k) + " = load<0.0> %z" + std::to_string(k) + " : i32\n";
  code += "%s0 = add %l0, %l1 : i32\n";
  for (size_t k = 2; k < n; k++)
    code += "%s" + std::to_string(k - 1) + " = add %s" + std::to_string(k - 2) + ", %l" +
            std::to_string(k) + " : i32\n";
  Analysed a(code);
  const std::string last = "%" + std::to_string(2 * n + n - 2);
  CHECK(a.affine(last) == "1*" + last + " + 0");
  for (int k = 1; k <= 10000; k++)
    deep += "%" + std::to_string(k) + " = add %" + std::to_string(k - 1) + ", %0 : i32\n";
  Analysed b(deep);
  AffineForms forms;
  CHECK(forms.of(b.values.at("%10000")).terms.size() == 2);  // %0, and one on the way
}

TEST_CASE("uniform is what comes from outside, and what pure operations make of it") {
  Analysed a(R"(
  %0 = param<1> : i32
  %1 = constant<0> : i32
  parallel %1, %0 {(%2: i32)
    %3 = add %0, %1 : i32
    %4 = add %3, %2 : i32
    %5 = load<0.0> %0 : i32
    %6 = mul %3, %5 : i32
    %7 = div %3, %0 : i32
    yield
  }
)");
  const Region* loop = a.values.at("%2")->region;
  Uniformity uniform(*a.kernel, loop);
  CHECK(uniform(a.values.at("%0")));
  CHECK(uniform(a.values.at("%3")));
  CHECK_FALSE(uniform(a.values.at("%2")));
  CHECK_FALSE(uniform(a.values.at("%4")));
  CHECK_FALSE(uniform(a.values.at("%5")));
  CHECK_FALSE(uniform(a.values.at("%6")));
  CHECK(uniform(a.values.at("%7")));
  a.kernel->modes.checked = true;  // a division may fail there
  CHECK_FALSE(Uniformity(*a.kernel, loop)(a.values.at("%7")));
  Uniformity round(*a.kernel, loop);
  round.assume(a.values.at("%2"));
  CHECK(round(a.values.at("%4")));
}

// Drivers that cut long loops short are noticed.
#include "quern/error.h"
#include "tests/vulkan/support.h"

using namespace quern;
using test::Buffer;
using test::Program;

TEST_CASE("a loop either runs to its end or is an error that says so") {
  runtime::Driver& driver = test::driver("vulkan");
  // Mesa's software driver cuts loops short without a word.
  for (uint64_t n : {60000, 70000, 200000}) {
    for (std::string kind : {"loop", "while"}) {
      std::string loop = R"(
    %sum = loop %zero, %n, %one, %zero : i64 {(%i: i64, %s: i64)
      %q = bit_xor %i, %s : i64
      %t = add %q, %i : i64
      yield %t
    })";
      std::string repeat = R"(
    %last, %sum = while %zero, %zero : i64, i64 {(%i: i64, %s: i64)
      %go = lt %i, %n : b1
      yield %go, %i, %s
    } {(%i2: i64, %s2: i64)
      %q = bit_xor %i2, %s2 : i64
      %t = add %q, %i2 : i64
      %next = add %i2, %one : i64
      yield %next, %t
    })";
      Program p(driver, test::serial(R"(
    %p = arg<64> : address
    %n = arg<72> : i64
    %zero = constant<0> : i64
    %one = constant<1> : i64)" + (kind == "loop" ? loop : repeat) +
                                     "\nwrite<1> %p, %sum"));
      int64_t want = 0;
      for (int64_t i = 0; i < int64_t(n); i++) want = (i ^ want) + i;
      Buffer out(driver, 8);
      p.entry(0, out).entry(1, n);
      bool cut = false;
      try {
        p.run();
      } catch (const Error& e) {
        cut = true;
        CHECK(std::string(e.what()).find("65,535 rounds") != std::string::npos);
      }
      INFO(kind << " " << n);
      CHECK((cut || out.read<int64_t>()[0] == want));
      CHECK((!cut || n > 65535));
    }
  }
}

TEST_CASE("one iteration whose loop is cut is noticed among others that end") {
  runtime::Driver& driver = test::driver("vulkan");
  // iteration i runs n[i] rounds
  Program p(driver, test::each(driver, "%p = arg<64> : address", R"(
    %zero = constant<0> : i64
    %one = constant<1> : i64
    %eight = constant<8> : i64
    %o = mul %i, %eight : i64
    %at = offset %p, %o : address
    %n = read<1> %at : i64
    %sum = loop %zero, %n, %one, %zero : i64 {(%k: i64, %s: i64)
      %t = add %s, %one : i64
      yield %t
    }
    %m = neg %sum : i64
    write<1> %at, %m)"));
  std::vector<int64_t> n(100, 10);
  for (int64_t long_one : {60000, 100000}) {
    n[37] = long_one;
    Buffer d(driver, n);
    p.entry(0, d);
    bool cut = false;
    try {
      p.run(0, n.size());
    } catch (const Error&) {
      cut = true;
    }
    std::vector<int64_t> out = d.read<int64_t>();
    for (size_t k = 0; k < n.size(); k++) {
      INFO(k << ": " << out[k] << " " << cut);
      CHECK((out[k] == -n[k] || (cut && k == 37)));
    }
    CHECK((!cut || long_one > 65535));
  }
}

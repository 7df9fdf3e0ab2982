// Runs the cases of a test program. Those tagged with a back end that this build was configured
// without ([cpu], [vulkan]) are left out, visibly.
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_session.hpp>
#else
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
#endif
#include <cstdio>
#include <string>

#include "tests/at_end.h"

void (*quern::test::at_end)() = nullptr;

int main(int argc, char** argv) {
  Catch::Session session;
  if (int wrong = session.applyCommandLine(argc, argv)) return wrong;
  for (std::string name : {QUERN_LEFT_OUT}) {
    if (name.empty()) continue;
    std::printf("no case of [%s] runs: this build has no such back end\n", name.c_str());
    session.configData().testsOrTags.push_back("~[" + name + "]");
  }
  const int failed = session.run();
  if (quern::test::at_end) quern::test::at_end();
  return failed;
}

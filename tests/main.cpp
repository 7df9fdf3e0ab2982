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

#ifdef QUERN_SANITIZED
// What drivers of Vulkan and their layers do, whose code no sanitizer has seen.
extern "C" const char* __lsan_default_suppressions() {
  return "leak:libVkLayer_khronos_validation\nleak:libvulkan\n";
}
extern "C" const char* __tsan_default_suppressions() {
  return "called_from_lib:libVkLayer_khronos_validation\n"
         "called_from_lib:libvulkan.so\n"
         "called_from_lib:libvulkan_lvp\n"
         "mutex:quern::vulkan::Gpu::~Gpu\n";  // that the driver's part took unseen
}
// Child processes start threads, and after a crash inside LLVM its signal handler is left by a jump.
extern "C" const char* __tsan_default_options() {
  return "die_after_fork=0:report_signal_unsafe=0";
}
#endif

int main(int argc, char** argv) {
  Catch::Session session;
  if (int wrong = session.applyCommandLine(argc, argv)) return wrong;
  // A case that ends without a check fails: NOT_RUN says so where there is a reason.
  Catch::ConfigData& settings = session.configData();
  settings.warnings = Catch::WarnAbout::What(settings.warnings | Catch::WarnAbout::NoAssertions);
  for (std::string name : {QUERN_LEFT_OUT}) {
    if (name.empty()) continue;
    std::printf("no case of [%s] runs: this build has no such back end\n", name.c_str());
    settings.testsOrTags.push_back("~[" + name + "]");
  }
  const int failed = session.run();
  if (quern::test::at_end) quern::test::at_end();
  return failed;
}

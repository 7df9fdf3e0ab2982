// What a build without a back end says to those who ask for it.
#include <quern/quern.h>

#include <string>

#include "quern/runtime/device.h"
#include "tests/catch.h"
#include "tests/message_of.h"

namespace qn = quern;
using qn::test::message_of;

TEST_CASE("a back end that was not built is an error that names the option") {
  CHECK(message_of([] { qn::Device("cuda", qn::Loc{"user.cpp", 7}); }) ==
        "user.cpp:7: this build of Quern has no back end cuda; it has interpreter; configure with "
        "QUERN_CUDA=ON");
  CHECK_THAT(message_of([] { qn::Device("vulkan:1"); }), contains("QUERN_VULKAN=ON"));
  CHECK_THAT(message_of([] { qn::Device("opencl"); }), contains("there is no device 'opencl'"));
}

TEST_CASE("a build of one back end chooses it, and lists what it lacks") {
  CHECK(qn::Device::best().name() == std::string("interpreter"));
  CHECK_THAT(qn::runtime::Device::describe_all(), contains("rocm: not built (QUERN_ROCM)"));
}

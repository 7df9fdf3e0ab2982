#include "tests/catch.h"

TEST_CASE("OpenVDB's files") { NOT_RUN("OpenVDB was not there when this was built"); }

// What a Quern says that was built without OpenVDB and NanoVDB.
#include "tests/errors/compiler.h"
#include "tests/files/support.h"

TEST_CASE("without OpenVDB and NanoVDB their functions say what is missing") {
  Folder folder;
  const std::string vdb = folder.file("a.vdb", std::string(" BDV\0\0\0\0more", 12));
  const std::string nano = folder.file("a.nvdb", "NanoVDB0more");
  const auto out = quern::test::run(QUERN_VDB_ABSENT " " + vdb + " " + nano);
  INFO(out.text);
  CHECK(out.status == 0);
  CHECK_THAT(out.text, contains("0 0\n24: cannot write 'never.vdb': this Quern was built without "
                                "OpenVDB; install it with its headers and Boost's (Debian: "
                                "libopenvdb-dev, libboost-dev) and build Quern again\n"));
  CHECK_THAT(out.text,
             contains("25: cannot write 'never.nvdb': this Quern was built without NanoVDB"));
  CHECK_THAT(out.text,
             contains("26: cannot read '" + vdb + "': this Quern was built without OpenVDB"));
  CHECK_THAT(out.text,
             contains("27: cannot read '" + nano + "': this Quern was built without NanoVDB"));
}

// Rules of what a kernel's code refers to: companions of fields, buffers and their sizes.
#include "tests/ir/refuse.h"

using namespace quern;
using namespace quern::ir;

TEST_CASE("rules of companions") {
  const std::string head =
      "quern 1\nkernel @k level=structured\nbinding scalar f32 \"a\"\n"
      "binding field rank=2 f32, i32 \"x\"\n";
  const std::vector<std::pair<std::string, std::string>> rules = {
      {"binding field rank=2 f32, i32 \"d\" of=0 \"adjoint\"", "is a field of a field before it"},
      {"binding field rank=2 f32, i32 \"d\" of=2 \"adjoint\"", "is a field of a field before it"},
      {"binding scalar f32 \"d\" of=1 \"adjoint\"", "is a field of a field before it"},
      {"binding field rank=1 f32, i32 \"d\" of=1 \"adjoint\"",
       "the axes and components of its field"},
      {"binding field rank=2 f32 \"d\" of=1 \"adjoint\"", "the axes and components of its field"},
      {"binding field rank=2 f32, i32 \"d\" of=1 \"adjoint\"\nbinding scalar f32 \"b\"",
       "companions come behind what is passed"},
  };
  for (const auto& [code, says] : rules) refuse(head + code + "\nbody { yield }\n", says);
  const std::string sound = head +
                            "binding field rank=2 f32, i32 \"d\" of=1 \"adjoint\"\n"
                            "binding field rank=2 f32, i32 \"e\" of=2 \"dual\"\n"
                            "binding frame \"f\"\nbody {\n  yield\n}\n";
  CHECK(verify(*parse(sound)) == std::vector<std::string>{});
  CHECK(print(*parse(sound)) == sound);
}

TEST_CASE("rules of buffers") {
  const std::string head = R"(quern 1
kernel @k level=split
binding field rank=1 f32 "x"
binding frame "frame"
frame f32, i32
)";
  const std::string tasks = R"(
task serial { yield }
task range rank=1 domain {
  %z = constant<0> : i32
  yield %z, %z
} {(%i: i32)
  yield
}
)";
  auto buffer = [](const std::string& size, const std::string& of = "rank=1 i32") {
    return "binding buffer " + of + " \"b\" " + size;
  };
  const std::vector<std::pair<std::string, std::string>> rules = {
      {buffer("task=1 iterations class=65541", "i32"), "a buffer has components and rank 1"},
      {buffer("task=1 iterations class=65541", "rank=2 i32"), "a buffer has components and rank 1"},
      {buffer("task=1 iterations class=65541", "rank=1"), "a buffer has components and rank 1"},
      {buffer("task=1 iterations class=1"), "a buffer has an alias class of its own"},
      {buffer("task=2 iterations class=65541"), "for a task that does not exist"},
      {buffer("task=0 iterations class=65541"), "for iterations of a task without any"},
      {buffer("task=1 rows class=65541"), "partial values of a task that leaves none"},
      {buffer("task=1 cell=0 class=65541"), "no integer cell of the frame says its size"},
      {buffer("task=1 cell=2 class=65541"), "no integer cell of the frame says its size"},
  };
  for (const auto& [code, says] : rules) refuse(head + code + tasks, says);
  for (const char* size : {"task=1 iterations", "task=0 constant=0", "task=0 cell=1"})
    CHECK(verify(*parse(head + buffer(size + std::string(" class=65541")) + tasks)) ==
          std::vector<std::string>{});
  refuse("quern 1\nkernel @k level=structured\n" + buffer("task=0 constant=1 class=65539") +
             "\nbody { yield }\n",
         "for a task that does not exist");
  refuse(head + buffer("task=0 constant=8 class=65541") +
             "\ntask serial {\n%n = first<2.0> : i64\nyield }\n",
         "binding is no field");
  CHECK(verify(*parse(head + buffer("task=0 constant=8 class=65541") +
                      "\ntask serial {\n%n = extent<2.0> : i64\nyield }\n")) ==
        std::vector<std::string>{});
}

TEST_CASE("rules of copies, and of tasks that merge them") {
  const auto kernel = [](const std::string& size, const std::string& merges) {
    const std::string domain =
        " domain {\n  %z = constant<0> : i32\n  yield %z, %z\n} {\n  %z = constant<0> : i32\n"
        "  parallel %z, %z {(%i: i32)\n    yield\n  }\n  yield\n}\n";
    return "quern 1\nkernel @k level=opened\nbinding field rank=1 f32 \"x\" class=1\n"
           "binding frame \"frame\"\n"
           "binding buffer rank=1 f32 \"b\" " +
           size + " class=65541 align=4 step=4\ntask range rank=1 walk=chunked" + domain +
           "task range rank=1 walk=chunked " + merges + domain + "schedule { launch 0 launch 1 }\n";
  };
  const std::string sound = kernel("task=0 copies=0 updates=64", "merges=2");
  CHECK(verify(*parse(sound)) == std::vector<std::string>{});
  CHECK(print(*parse(print(*parse(sound)))) == print(*parse(sound)));
  refuse(kernel("task=0 copies=1 updates=64", ""), "it holds copies of what is no field");
  refuse(kernel("task=0 copies=7 updates=64", ""), "it holds copies of what is no field");
  refuse(kernel("task=0 copies=0", "merges=0"), "merges what is no buffer of copies");
  refuse(kernel("task=0 constant=8", "merges=2"), "merges what is no buffer of copies");
  refuse(kernel("task=0 copies=0", "merges=9"), "merges what is no buffer of copies");
}

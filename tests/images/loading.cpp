// Images are launched by a program that holds no compiler.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "quern/runtime/observer.h"
#include "quern/runtime/program.h"
#include "tests/catch.h"
#include "tests/images/kernels.h"
#include "tests/message_of.h"

using namespace quern;
using namespace quern::runtime;
using test::arguments;
using test::message_of;

namespace {

struct Said {
  int status = 0;
  std::string text;
};
Said run(const std::string& command) {
  Said said;
  FILE* out = popen((command + " 2>&1").c_str(), "r");
  char buffer[4096];
  for (size_t n; (n = fread(buffer, 1, sizeof buffer, out)) > 0;) said.text.append(buffer, n);
  const int status = pclose(out);
  said.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return said;
}

std::shared_ptr<const Image> image_for(const std::shared_ptr<Device>& device) {
  Program program(ir::parse(test::scale_and_sum));
  ir::Modes modes;
  modes.checked = true;
  return program.image(arguments(device, 10, 1, 0), modes, Loc::here());
}

/// A file in the folder for temporary ones, gone at the end.
class File {
 public:
  explicit File(const std::vector<std::byte>& bytes) {
    std::string pattern = (std::filesystem::temp_directory_path() / "quern-image-XXXXXX").string();
    const int at = mkstemp(pattern.data());
    REQUIRE(at >= 0);
    close(at);
    path = pattern;
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), std::streamsize(bytes.size()));
  }
  ~File() { std::filesystem::remove(path); }
  File(const File&) = delete;
  std::string path;
};

/// What the loading program must say.
std::string expected(int64_t n, int32_t a, int64_t limit) {
  int64_t sum = 0;
  for (int64_t i = 0; i < n; i++) sum += (a + 2) * i;
  std::string text = "sum " + std::to_string(sum) + "\n";
  for (int64_t i = 0; i < n; i++)
    text += std::to_string((a + 2) * i * (sum < limit ? 2 : 1)) + "\n";
  return text;
}

/// The devices whose images are tested; CUDA's is the interpreter of PTX where it was built.
std::vector<std::string> devices() {
#ifdef QUERN_PTX_CUDA
  setenv("QUERN_CUDA_LIBRARY", QUERN_PTX_CUDA, 0);
#endif
  std::vector<std::string> present;
  for (const Backend& backend : backends()) {
    std::string why;
    if (!backend.probe(why).empty()) present.push_back(backend.name);
  }
  return present;
}

}  // namespace

TEST_CASE("a program that links no compiler launches images from files, on every device") {
  for (const std::string& name : devices()) {
    INFO(name);
    const File file(image_for(Device::open(name))->bytes());
    const std::string program = std::string(QUERN_LOAD_IMAGE) + " " + name + " " + file.path;
    for (int64_t n : {1, 10, 1000})
      for (int64_t limit : {0, 1'000'000'000}) {
        const Said said =
            run(program + " " + std::to_string(n) + " 3 " + std::to_string(limit) + " -1");
        CHECK(said.status == 0);
        CHECK(said.text == expected(n, 3, limit));
      }
    const Said failed = run(program + " 100 3 0 70");
    CHECK(failed.status == 1);
    CHECK_THAT(failed.text, contains("user.cpp:12: negative: -5 (iteration 70 of scale_and_sum)"));
  }
}

TEST_CASE("the program that loads has no LLVM, lld or SPIRV-Tools in it, nor what it would need") {
  const Said libraries = run("ldd " QUERN_LOAD_IMAGE);
  REQUIRE(libraries.status == 0);
  CHECK_THAT(libraries.text, contains("libc.so"));
  const Said symbols = run("nm -C " QUERN_LOAD_IMAGE);
  REQUIRE(symbols.status == 0);
  CHECK_THAT(symbols.text, contains("quern::runtime::Image::from"));
  // Names of what is looked for, in some other program: this one.
  const Said own = run("nm -C /proc/" + std::to_string(getpid()) + "/exe");
  for (const char* name : {"llvm::", "lld::", "spvtools::", "quern::codegen", "quern::ir::lower(",
                           "quern::runtime::Compiler"}) {
    INFO(name);
    CHECK(symbols.text.find(name) == std::string::npos);
#ifdef QUERN_HAS_ALL
    CHECK(own.text.find(name) != std::string::npos);
#endif
  }
  for (const char* name : {"LLVM", "lld", "SPIRV"}) {
    INFO(name);
    CHECK(libraries.text.find(name) == std::string::npos);
  }
}

TEST_CASE("an image for another device or machine is refused, and says for which") {
  auto interpreter = Device::open("interpreter"), cpu = Device::open("cpu");
  auto image = image_for(interpreter);
  CHECK_THAT(message_of([&] { LoadedKernel(cpu, image, {"user.cpp", 5}); }),
             contains("kernel 'scale_and_sum' was compiled for interpreter (ir), which cpu (") &&
                 contains(") does not run") && contains("user.cpp:5"));
  auto foreign = std::make_shared<Image>(*image_for(cpu));
  foreign->isa += " +no-such-extension";
  CHECK_THAT(message_of([&] { LoadedKernel(cpu, foreign); }),
             contains("+no-such-extension), which cpu ("));
  // A machine that has more runs it.
  foreign->isa = foreign->isa.substr(0, foreign->isa.find(' '));
  CHECK_NOTHROW(LoadedKernel(cpu, foreign));
  foreign->one_thread = !foreign->one_thread;
  if (foreign->one_thread)
    CHECK_THAT(message_of([&] { LoadedKernel(cpu, foreign); }),
               contains("compiled for a CPU device of one thread"));
}

TEST_CASE(
    "arguments that an image was not made for are refused, those that it was made for are not") {
  auto device = Device::open("cpu");
  const LoadedKernel kernel(device, image_for(device));
  const Loc here{"user.cpp", 9};
  auto good = arguments(device, 8, 1, 0);
  auto refusal = [&](const std::vector<Argument>& given) {
    return message_of([&] { kernel.launch(given, here); });
  };
  CHECK(int64_t(kernel.launch(good, here)->result(0)) == 3 * 28);
  CHECK_THAT(refusal({good[0], good[1], good[2]}), contains("user.cpp:9") && contains("has 4 "));
  CHECK_THAT(refusal({good[0], good[1], good[1], good[3]}), contains("y shares elements"));
  CHECK_THAT(refusal({good[0], good[1], good[0], good[3]}),
             contains("y is a field without memory"));
  CHECK_THAT(refusal({good[1], good[1], good[2], good[3]}), contains("a is a field"));
  auto with = [&](std::shared_ptr<Storage> x) {
    return std::vector<Argument>{good[0], {0, std::move(x)}, good[2], good[3]};
  };
  auto field = [&](std::vector<int64_t> shape, ir::Type type) {
    return std::make_shared<Storage>(device, std::vector<ir::Storage>{{type, type}}, shape, here);
  };
  CHECK_THAT(refusal(with(field({4, 2}, ir::Type::i32))), contains("x has 2 axes"));
  CHECK_THAT(refusal(with(field({8}, ir::Type::f32))), contains("x has elements of another type"));
  CHECK_THAT(refusal(with(field({16}, ir::Type::i32)->slice(0, 0, 16, 2, here))),
             contains("x lies in memory otherwise"));
  CHECK(kernel.launch(with(field({8}, ir::Type::i32)), here)->result(0) == 2 * 28);  // x is 0
  auto other = Device::open("interpreter");
  CHECK_THAT(refusal(arguments(other, 8, 1, 0)),
             contains("is loaded on device cpu, and a field is on interpreter"));
}

TEST_CASE(
    "an image knows what its kernel reads and writes, and observers are told of its launches") {
  auto device = Device::open("cpu");
  auto image = std::make_shared<const Image>(Image::from(image_for(device)->bytes()));
  struct Noting : LaunchObserver {
    void before(const LaunchEvent& event) override {
      CHECK(event.recording == nullptr);
      CHECK(event.loc.line == 3);
      for (const Image::Parameter& p : event.parameters)
        told += std::string(p.reads ? "r" : "") + (p.writes ? "w" : "") + " ";
    }
    std::string told;
  } noting;
  const LoadedKernel kernel(device, image);
  auto given = arguments(device, 8, 1, 0);
  const uint64_t x = given[1].storage->version(), y = given[2].storage->version();
  const Observation observation(noting);
  kernel.launch(given, {"user.cpp", 3});
  CHECK(noting.told == " rw r  ");
  CHECK(given[1].storage->version() != x);
  CHECK(given[2].storage->version() == y);
}

// The device cuda on the interpreter of PTX: its settings, and how a kernel that goes wrong is
// told.
#include <dlfcn.h>
#include <quern/host.h>
#include <quern/interop.h>
#include <quern/quern.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "tests/catch.h"
#include "tests/gpu/recording/executed/environment.h"

namespace qn = quern;
using namespace qn::lang;

namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// Settings for the life of a test.
class Environment {
 public:
  Environment(const std::string& name, const std::string& value) : name_(name) {
    setenv(name.c_str(), value.c_str(), 1);
  }
  ~Environment() { unsetenv(name_.c_str()); }
  Environment(const Environment&) = delete;

 private:
  std::string name_;
};

/// What the error of `f` says, run on a new device in a process of its own: a fault ends a device.
template <class F>
std::string error_in_child(F f) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  if (fork() == 0) {
    setenv("QUERN_CUDA_LIBRARY", QUERN_PTX_CUDA, 1);
    std::string text = "no error";
    try {
      qn::Device device{"cuda"};
      f(device);
      device.synchronize();
    } catch (const std::exception& e) {
      text = e.what();
    }
    if (write(ends[1], text.data(), text.size()) < 0) _exit(1);
    _exit(0);
  }
  close(ends[1]);
  std::string text;
  char buffer[256];
  for (ssize_t n; (n = read(ends[0], buffer, sizeof buffer)) > 0;) text.append(buffer, size_t(n));
  close(ends[0]);
  wait(nullptr);
  return text;
}

}  // namespace

TEST_CASE("the environment says what the device is, and is refused where it is wrong") {
  qn::recording::Session s;
  qn::ptx::Schedule schedule;
  {
    Environment a("QUERN_PTX_CAPABILITY", "75"), b("QUERN_PTX_SCHEDULE", "shuffled+switches"),
        c("QUERN_PTX_DEVICES", "2"), d("QUERN_PTX_RACES", "1");
    qn::recording::read_environment(s, schedule);
  }
  CHECK(s.capability == 75);
  CHECK(s.devices == 2);
  CHECK(schedule.blocks == qn::ptx::Schedule::shuffled);
  CHECK(schedule.switches);
  CHECK(schedule.watched);
  for (auto [name, value] : {std::pair{"QUERN_PTX_CAPABILITY", "eighty"},
                             {"QUERN_PTX_DEVICES", "-1"},
                             {"QUERN_PTX_SCHEDULE", "backwards"},
                             {"QUERN_PTX_RACES", "2"}}) {
    Environment wrong(name, value);
    std::string said;
    try {
      qn::recording::read_environment(s, schedule);
    } catch (const std::runtime_error& e) {
      said = e.what();
    }
    INFO(said);
    CHECK(has(said, std::string(name) + " is '" + value + "'; allowed are "));
  }
  Environment wrong("QUERN_PTX_SCHEDULE", "backwards");
  CHECK(has(error_in_child([](qn::Device&) {}), "QUERN_PTX_SCHEDULE is 'backwards'"));
}

TEST_CASE("a kernel that leaves its memory is told with PTX line and thread") {
  const std::string said = error_in_child([](qn::Device& device) {
    qn::Field<int> x{device, {100}};
    qn::Kernel k{[&] {
                   for (auto i : x) x[i + 50] = 1;
                 },
                 qn::Options{.checked = false}};
    k();
  });
  INFO(said);
  CHECK(has(said, "CUDA_ERROR_ILLEGAL_ADDRESS"));
  CHECK(has(said, "4 bytes at"));
  CHECK(has(said, "kernel task_0, PTX line"));
}

TEST_CASE("a race in a kernel is an error where it is watched for") {
  auto racy = [](qn::Device& device) {
    qn::Field<int> x{device, {1000}};
    qn::Kernel k{[&] {
                   for (auto i : x) x[i / 2] = i;
                 },
                 qn::Options{.checked = false}};
    k();
  };
  CHECK(error_in_child(racy) == "no error");
  Environment watch("QUERN_PTX_RACES", "1");
  const std::string said = error_in_child(racy);
  INFO(said);
  CHECK(has(said, "a race: writes what thread"));
}

TEST_CASE("the memory of the device is not the host's") {
  int status = 0;
  if (const pid_t child = fork(); child == 0) {
    setenv("QUERN_CUDA_LIBRARY", QUERN_PTX_CUDA, 1);
    qn::Device device{"cuda"};
    qn::Field<int> x{device, {100}};
    x.fill(1);
    std::signal(SIGSEGV, SIG_DFL);
    volatile int* p = reinterpret_cast<volatile int*>(qn::interop::address(x));
    _exit(*p == 1 ? 1 : 2);
  } else {
    waitpid(child, &status, 0);
  }
  CHECK(WIFSIGNALED(status));
}

namespace {

/// How a process ends that runs `f` on the library, and what it wrote to its standard output.
template <class F>
std::pair<int, std::string> end_of_child(F f) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  if (child == 0) {
    if (!std::freopen("/dev/null", "w", stderr) || dup2(ends[1], 1) < 0) _exit(1);
    std::setvbuf(stdout, nullptr, _IOFBF, BUFSIZ);
    f(dlopen(QUERN_PTX_CUDA, RTLD_NOW | RTLD_LOCAL));
    std::exit(0);
  }
  close(ends[1]);
  std::string text;
  char buffer[256];
  for (ssize_t n; (n = read(ends[0], buffer, sizeof buffer)) > 0;) text.append(buffer, size_t(n));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, text};
}

}  // namespace

TEST_CASE("a program that gives something back too rarely ends with an error") {
  auto end = [](bool gives_back) {
    return end_of_child([&](void* library) {
      auto create = reinterpret_cast<int (*)(void**, unsigned)>(dlsym(library, "cuStreamCreate"));
      auto destroy = reinterpret_cast<int (*)(void*)>(dlsym(library, "cuStreamDestroy_v2"));
      void* stream = nullptr;
      if (create(&stream, 1) != 0) _exit(2);
      if (gives_back) destroy(stream);
      std::printf("its last words");
    });
  };
  CHECK(end(true) == std::pair(0, std::string("its last words")));
  CHECK(end(false) == std::pair(70, std::string("its last words")));
}

TEST_CASE("a module that is refused leaves nothing behind") {
  Environment capability("QUERN_PTX_CAPABILITY", "80");
  const std::string variable = ".address_size 64\n.global .align 4 .b8 table[64];\n";
  for (const std::string& text :
       {".version 7.8\n.target sm_90\n" + variable + ".visible .entry k() { ret; }\n",
        ".version 7.8\n.target sm_80\n" + variable + ".visible .entry k() { frob.b32; ret; }\n"}) {
    const auto [code, said] = end_of_child([&](void* library) {
      auto load = reinterpret_cast<int (*)(void**, const void*, unsigned, int*, void**)>(
          dlsym(library, "cuModuleLoadDataEx"));
      char log[256] = {};
      int options[] = {5, 6};
      void *values[] = {log, reinterpret_cast<void*>(sizeof log)}, *module = nullptr;
      const int refused = load(&module, text.c_str(), 2, options, values);
      std::printf("%d %s", refused, log);
    });
    INFO(said);
    CHECK(code == 0);
    CHECK(said.starts_with("218 line "));
  }
}

#include "bench/counts.h"

#include <dlfcn.h>

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <numeric>
#include <utility>

#include "bench/cuda/check.h"
#include "bench/roofline.h"

namespace bench {

using quern::ptx::Class;
using quern::ptx::Counts;

namespace {

/// The interpreter's settings are its own, whatever the environment says (environment.h of
/// tests/gpu/recording/executed).
void forget_settings() {
  std::vector<std::string> names;
  for (char** variable = environ; *variable; variable++)
    if (const std::string text = *variable; text.starts_with("QUERN_PTX_"))
      names.push_back(text.substr(0, text.find('=')));
  for (const std::string& name : names) unsetenv(name.c_str());
}

/// What the interpreter has counted since the last call.
Counts taken() {
  static auto* counts = [] {
    const char* name = std::getenv("QUERN_CUDA_LIBRARY");
    void* library = name ? dlopen(name, RTLD_NOW | RTLD_LOCAL) : nullptr;
    void* function = library ? dlsym(library, "quern_ptx_counts") : nullptr;
    if (!function)
      throw quern::Error("counts are of the interpreter of PTX, which QUERN_CUDA_LIBRARY names");
    return reinterpret_cast<Counts* (*)()>(function)();
  }();
  return std::exchange(*counts, {});
}

uint64_t sum(const uint64_t (&of_classes)[quern::ptx::class_count]) {
  return std::accumulate(std::begin(of_classes), std::end(of_classes), uint64_t(0));
}

double instructions(const Counted& row) { return double(sum(row.quern.instructions)); }
/// Larger runs take the interpreter more than a second or two.
constexpr double most_instructions = 8e6;

/// In the order of quern::ptx::Class.
constexpr const char* classes[] = {"move", "integer", "float",  "special", "conversion", "compare",
                                   "load", "store",   "atomic", "shuffle", "barrier",    "branch"};
static_assert(std::size(classes) == quern::ptx::class_count);

using Number = unsigned long long;

void print_side(std::FILE* to, const char* side, const Counts& c) {
  const uint64_t all = sum(c.instructions);
  std::fprintf(
      to,
      "  %-6s %9llu instructions, %4.1f lanes; %9llu arithmetic, %7llu special; %8llu sectors "
      "(ideal %llu)",
      side, Number(all), all ? double(sum(c.lanes)) / double(all) : 0, Number(arithmetic(c)),
      Number(special(c)), Number(c.sectors), Number(c.ideal_sectors));
  if (c.requests)
    std::fprintf(to, ", %.2f (%.2f) a request", double(c.sectors) / double(c.requests),
                 double(c.ideal_sectors) / double(c.requests));
  if (c.atomics)
    std::fprintf(to, "; %llu atomics, %llu collide", Number(c.atomics),
                 Number(c.colliding_atomics));
  if (c.shared_requests)
    std::fprintf(to, "; shared memory %llu requests, %llu passes (ideal %llu)",
                 Number(c.shared_requests), Number(c.shared_passes), Number(c.ideal_shared_passes));
  if (c.barriers) std::fprintf(to, "; %llu barriers", Number(c.barriers));
  std::fprintf(to, "\n        ");
  for (size_t k = 0; k < quern::ptx::class_count; k++)
    if (c.instructions[k]) std::fprintf(to, " %s %llu", classes[k], Number(c.instructions[k]));
  std::fprintf(to, "\n");
}

void print_ratios(std::FILE* to, const Counts& quern, const Counts& cuda) {
  std::fprintf(to, "  ratio ");
  auto ratio = [&](const char* what, uint64_t mine, uint64_t theirs) {
    if (theirs)
      std::fprintf(to, " %s %.2f", what, double(mine) / double(theirs));
    else if (mine)
      std::fprintf(to, " %s %llu to none", what, Number(mine));
  };
  ratio("arithmetic", arithmetic(quern), arithmetic(cuda));
  ratio("special", special(quern), special(cuda));
  ratio("sectors", quern.sectors, cuda.sectors);
  ratio("atomics", quern.atomics, cuda.atomics);
  ratio("barriers", quern.barriers, cuda.barriers);
  std::fprintf(to, "\n");
}

void print_model(std::FILE* to, const Counted& row) {
  std::fprintf(to, "  model ");
  for (const GpuFigures& gpu : modelled_gpus()) {
    const Prediction mine = predict(gpu, row.quern, row.bytes);
    std::fprintf(to, " %s %.3g us (%s)", gpu.name, mine.seconds * 1e6, mine.by);
    if (!row.cuda) continue;
    const Prediction theirs = predict(gpu, *row.cuda, row.bytes);
    std::fprintf(to, ", CUDA %.3g us (%s)", theirs.seconds * 1e6, theirs.by);
  }
  std::fprintf(to, "\n");
}

/// Of a record the sides of each row by its name, as print writes them; what follows from them is
/// left out.
std::map<std::string, std::string> read(std::FILE* file, bool with_cuda) {
  std::map<std::string, std::string> rows;
  std::string name, side;
  char* line = nullptr;
  size_t bytes = 0;
  while (getline(&line, &bytes, file) > 0) {
    const std::string text = line;
    if (!text.starts_with(' ')) {
      name = text.substr(0, text.find("  "));
    } else {
      if (text[2] != ' ') side = text.substr(2, text.find(' ', 2) - 2);
      if (side == "Quern" || (side == "CUDA" && with_cuda)) rows[name] += text;
    }
  }
  std::free(line);
  return rows;
}

}  // namespace

uint64_t arithmetic(const Counts& c) {
  return c.instructions[size_t(Class::integer)] + c.instructions[size_t(Class::floating)] +
         c.instructions[size_t(Class::compare)];
}

uint64_t special(const Counts& c) { return c.instructions[size_t(Class::special)]; }

std::vector<Counted> count(const std::vector<void (*)(Report&)>& groups) {
  std::vector<Counted> all;
  forget_settings();
  taken();
  quern::Device device("cuda");
  const cuda::Functions* cuda = nullptr;
  auto counted = [&](const std::function<void()>& run) {
    taken();
    run();
    device.synchronize();
    return taken();
  };
  Report report(device, [&](const Work& work) {
    auto known = std::ranges::find(all, work.name, &Counted::name);
    const double amount = work.bytes + work.flops;
    if (known != all.end() && instructions(*known) * (amount / known->amount) > most_instructions)
      return;
    std::fprintf(stderr, "counting %s, %s\n", work.name.c_str(), work.size.c_str());
    Counted row{work.name, work.size, work.bytes, amount, counted(work.quern), {}};
    if (cuda && work.cuda)
      row.cuda = counted([&] {
        work.cuda(*cuda, nullptr);
        cuda->wait(nullptr);
      });
    if (known != all.end())
      *known = std::move(row);
    else
      all.push_back(std::move(row));
  });
  cuda = report.cuda();
  if (cuda) cuda::expect_right(*cuda);
  for (auto group : groups) group(report);
  return all;
}

void print(std::FILE* to, const std::vector<Counted>& all) {
  std::fprintf(to,
               "Instructions of warps on an interpreter of PTX, no hardware; the times are a "
               "model's, no measurements (bench/roofline.h)\n");
  for (const Counted& row : all) {
    std::fprintf(to, "%s  %s\n", row.name.c_str(), row.size.c_str());
    print_side(to, "Quern", row.quern);
    if (row.cuda) {
      print_side(to, "CUDA", *row.cuda);
      print_ratios(to, row.quern, *row.cuda);
    }
    print_model(to, row);
  }
}

void expect_recordable(bool has_cuda, const std::string& group, const std::string& file) {
  if (!has_cuda)
    throw quern::Error(file + " is left as it is: it holds the counts of hand-written CUDA, and " +
                       "this build had no nvcc to compile that");
  if (!group.empty())
    throw quern::Error(file + " is left as it is: it holds all groups, not " + group + " alone");
}

void write(const std::vector<Counted>& all, const std::string& file) {
  std::FILE* to = std::fopen(file.c_str(), "w");
  if (!to) throw quern::Error("cannot write " + file);
  print(to, all);
  if (std::fclose(to) != 0) throw quern::Error("cannot write all of " + file);
}

void compare(std::FILE* to, const std::vector<Counted>& all, bool of_all_groups,
             const std::string& file) {
  const bool with_cuda =
      std::ranges::any_of(all, [](const Counted& row) { return row.cuda.has_value(); });
  std::FILE* record = std::fopen(file.c_str(), "r");
  if (!record) throw quern::Error("cannot read " + file);
  const std::map<std::string, std::string> last = read(record, with_cuda);
  std::fclose(record);
  std::FILE* printed = std::tmpfile();
  if (!printed) throw quern::Error("cannot make a temporary file");
  print(printed, all);
  std::rewind(printed);
  const std::map<std::string, std::string> now = read(printed, with_cuda);
  std::fclose(printed);
  size_t same = 0;
  for (const auto& [name, sides] : now) {
    auto was = last.find(name);
    if (was == last.end())
      std::fprintf(to, "%s: new\n", name.c_str());
    else if (was->second == sides)
      same++;
    else
      std::fprintf(to, "%s: was\n%sis\n%s", name.c_str(), was->second.c_str(), sides.c_str());
  }
  for (const auto& [name, sides] : last)
    if (of_all_groups && !now.contains(name)) std::fprintf(to, "%s: gone\n", name.c_str());
  std::fprintf(to, "%zu of %zu works as in %s\n", same, now.size(), file.c_str());
  if (!with_cuda) std::fprintf(to, "hand-written CUDA was not compared: this build had no nvcc\n");
}

}  // namespace bench

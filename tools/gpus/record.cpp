#include "tools/gpus/record.h"

#include <cstdio>
#include <fstream>
#include <sstream>

#include "quern/error.h"

namespace quern::gpus {

namespace {

constexpr int64_t Classes::* members[] = {&Classes::arithmetic, &Classes::special, &Classes::loads,
                                          &Classes::stores,     &Classes::atomics, &Classes::shared,
                                          &Classes::shuffles,   &Classes::barriers};

void print(const std::string& name, const char* what, const Resources& r) {
  std::printf("%-44s %-5s %6lld registers %6lld B spilled %6lld B shared %7lld instructions",
              name.c_str(), what, (long long)r.registers, (long long)r.spilled_bytes,
              (long long)r.shared_bytes, (long long)r.instructions);
  if (r.classes)
    std::printf(
        ": %lld arithmetic %lld special %lld loads %lld stores %lld atomics %lld shared %lld "
        "shuffles %lld barriers",
        (long long)r.classes->arithmetic, (long long)r.classes->special,
        (long long)r.classes->loads, (long long)r.classes->stores, (long long)r.classes->atomics,
        (long long)r.classes->shared, (long long)r.classes->shuffles,
        (long long)r.classes->barriers);
  std::printf("\n");
}

}  // namespace

void write(const Recorded& recorded, const std::string& file) {
  std::ofstream out(file);
  out << "# benchmark kernel task gpu: registers spilled_bytes shared_bytes instructions\n"
         "#   (of which on AMD's) arithmetic special loads stores atomics shared shuffles "
         "barriers\n";
  for (const auto& [name, r] : recorded) {
    out << name << ": " << r.registers << ' ' << r.spilled_bytes << ' ' << r.shared_bytes << ' '
        << r.instructions;
    if (r.classes)
      for (auto member : members) out << ' ' << *r.classes.*member;
    out << '\n';
  }
  out.close();
  if (!out) throw Error("cannot write " + file);
}

Recorded read(const std::string& file) {
  std::ifstream in(file);
  if (!in) throw Error("cannot read " + file);
  Recorded recorded;
  std::string line;
  for (int number = 1; std::getline(in, line); number++) {
    if (line.starts_with('#')) continue;
    size_t colon = line.find(':');
    Resources r;
    std::istringstream numbers(line.substr(std::min(colon, line.size() - 1) + 1));
    if (colon == std::string::npos ||
        !(numbers >> r.registers >> r.spilled_bytes >> r.shared_bytes >> r.instructions))
      throw Error(file + ":" + std::to_string(number) + ": not four numbers of a task");
    if (!(numbers >> std::ws).eof()) {
      r.classes.emplace();
      for (auto member : members) numbers >> *r.classes.*member;
      if (!numbers || !(numbers >> std::ws).eof())
        throw Error(file + ":" + std::to_string(number) + ": not eight numbers of its code");
    }
    recorded[line.substr(0, colon)] = r;
  }
  return recorded;
}

void compare(const Recorded& recorded, const std::string& file) {
  Recorded last = read(file);
  std::map<std::string, std::pair<Resources, Resources>> sums;
  auto add_to = [](Resources& sum, const Resources& r) {
    sum.registers += r.registers;
    sum.spilled_bytes += r.spilled_bytes;
    sum.shared_bytes += r.shared_bytes;
    sum.instructions += r.instructions;
    if (!r.classes) return;
    if (!sum.classes) sum.classes.emplace();
    for (auto member : members) *sum.classes.*member += *r.classes.*member;
  };
  auto gpu_of = [](const std::string& name) { return name.substr(name.rfind(' ') + 1); };
  for (const auto& [name, r] : last) {
    add_to(sums[gpu_of(name)].first, r);
    if (!recorded.count(name)) print(name, "gone", r);
  }
  for (const auto& [name, r] : recorded) {
    add_to(sums[gpu_of(name)].second, r);
    auto was = last.find(name);
    if (was == last.end()) {
      print(name, "new", r);
    } else if (was->second != r) {
      print(name, "was", was->second);
      print("", "is", r);
    }
  }
  for (const auto& [gpu, sum] : sums) {
    if (sum.first != sum.second) print("all tasks " + gpu, "was", sum.first);
    print(sum.first == sum.second ? "all tasks " + gpu : "", "is", sum.second);
  }
}

}  // namespace quern::gpus

// host PLUGIN DEVICE…: opens the plugin, asks it for a sum on each device, and closes it.
#include <dlfcn.h>

#include <chrono>
#include <cstdio>
#include <thread>

int main(int argc, char** argv) {
  void* plugin = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : nullptr;
  if (!plugin) {
    std::printf("no plugin: %s\n", dlerror());
    return 1;
  }
  auto sum = reinterpret_cast<int (*)(const char*, int)>(dlsym(plugin, "sum_below"));
  for (int a = 2; a < argc; a++) {
    int found = sum(argv[a], 60000);  // 59999 · 60000 / 2
    std::printf("%s %s\n", argv[a], found == 1799970000 ? "right" : found < 0 ? "absent" : "wrong");
  }
  // Threads of Quern that are still about come to no harm.
  dlclose(plugin);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  std::printf("closed right\n");
}

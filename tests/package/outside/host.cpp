// host PLUGIN DEVICE…: opens the plugin and asks it for a sum on each device.
#include <dlfcn.h>

#include <cstdio>

int main(int argc, char** argv) {
  void* plugin = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : nullptr;
  if (!plugin) {
    std::printf("no plugin: %s\n", dlerror());
    return 1;
  }
  auto sum = reinterpret_cast<int (*)(const char*, int)>(dlsym(plugin, "sum_of_squares"));
  for (int a = 2; a < argc; a++) {
    int found = sum(argv[a], 100);  // 99 · 100 · 199 / 6
    std::printf("%s %s\n", argv[a], found == 328350 ? "right" : found < 0 ? "absent" : "wrong");
  }
}

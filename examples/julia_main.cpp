// Draws a Julia set into out/julia.png.
#include <cstdio>
#include <filesystem>

#include "examples/image.h"
#include "examples/programs.h"

int main() {
  try {
    const int n = 512, limit = 100;
    std::vector<int> count = examples::julia(quern::Device(), n, -0.8f, 0.156f, limit);
    examples::Image image(n, n);
    for (int y = 0; y < n; y++)
      for (int x = 0; x < n; x++) {
        int k = count[size_t(y) * n + size_t(x)];
        uint8_t* c = image.at(x, y);
        c[0] = uint8_t(k * 255 / limit);
        c[1] = uint8_t(k * k * 255 / (limit * limit));
        c[2] = uint8_t(255 - k * 155 / limit);
      }
    std::filesystem::create_directories("out");
    examples::write_png("out/julia.png", image);
    std::printf("out/julia.png written\n");
  } catch (const std::exception& e) {
    std::fprintf(stderr, "julia: %s\n", e.what());
    return 1;
  }
}

#pragma once
// Pictures for the examples: 8-bit RGB, through stb.
#include <cstdint>
#include <string>
#include <vector>

namespace examples {

struct Image {
  int width = 0, height = 0;
  std::vector<uint8_t> rgb;  ///< row-major from the top, three bytes a pixel

  Image() = default;
  Image(int w, int h) : width(w), height(h), rgb(size_t(w) * size_t(h) * 3) {}
  uint8_t* at(int x, int y) { return &rgb[(size_t(y) * size_t(width) + size_t(x)) * 3]; }
  const uint8_t* at(int x, int y) const {
    return &rgb[(size_t(y) * size_t(width) + size_t(x)) * 3];
  }
};

/// Throws quern::Error naming the file and what is wrong with it.
Image read_image(const std::string& path);
/// Throws quern::Error where the file cannot be written in full.
void write_png(const std::string& path, const Image& image);

}  // namespace examples

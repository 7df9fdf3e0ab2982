#include "examples/image.h"

#include <quern/quern.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STBI_ONLY_PNG
#define STBI_ONLY_JPEG
#define STB_IMAGE_WRITE_IMPLEMENTATION
#define STB_IMAGE_WRITE_STATIC
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#include <stb/stb_image.h>
#include <stb/stb_image_write.h>
#pragma GCC diagnostic pop

namespace examples {

Image read_image(const std::string& path) {
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), std::fclose);
  if (!file) throw quern::Error("cannot open the image '" + path + "': " + std::strerror(errno));
  int w = 0, h = 0, channels = 0;
  std::unique_ptr<uint8_t, void (*)(void*)> data(
      stbi_load_from_file(file.get(), &w, &h, &channels, 3), stbi_image_free);
  if (!data)
    throw quern::Error("cannot read '" + path + "' as PNG or JPEG: " + stbi_failure_reason());
  Image image(w, h);
  std::memcpy(image.rgb.data(), data.get(), image.rgb.size());
  return image;
}

void write_png(const std::string& path, const Image& image) {
  if (!stbi_write_png(path.c_str(), image.width, image.height, 3, image.rgb.data(),
                      image.width * 3))
    throw quern::Error("cannot write the image '" + path + "'");
}

}  // namespace examples

#pragma once
// What the mains of the examples share: the options every one has, the folder of its pictures, a
// line that shows progress, and errors that end the program.
#include <quern/quern.h>

#include <CLI/CLI.hpp>
#include <cstdarg>
#include <cstdio>
#include <filesystem>
#include <string>

namespace examples {

class Command {
 public:
  Command(const std::string& name, const std::string& description)
      : options(description, name), out_("out/" + name) {
    options.add_option("--out", out_, "folder of the pictures")->capture_default_str();
    options.add_option("--device", device_,
                       "cpu, vulkan, … (else QUERN_DEVICE, else the best present)");
  }

  CLI::App options;  ///< to which a program adds its own

  /// Parses, then runs `body(device)`; what main returns.
  template <class F>
  int run(int argc, char** argv, F body) {
    CLI11_PARSE(options, argc, argv);
    try {
      body(device_.empty() ? quern::Device() : quern::Device(device_.c_str()));
      end_line();
    } catch (const std::exception& e) {
      end_line();
      std::fprintf(stderr, "%s: %s\n", options.get_name().c_str(), e.what());
      return 1;
    }
    return 0;
  }

  /// Where pictures go; it is made.
  const std::string& folder() const {
    std::error_code failure;
    std::filesystem::create_directories(out_, failure);
    if (failure) throw quern::Error("cannot make the folder '" + out_ + "': " + failure.message());
    return out_;
  }
  std::string picture(const std::string& file) const { return folder() + "/" + file; }
  std::string frame(int number) const {
    char file[32];
    std::snprintf(file, sizeof file, "frame_%04d.png", number);
    return picture(file);
  }

  /// Replaces the line that shows how far the program is.
  [[gnu::format(printf, 2, 3)]] void progress(const char* format, ...) {
    std::va_list values;
    va_start(values, format);
    std::printf("\r");
    std::vprintf(format, values);
    va_end(values);
    std::fflush(stdout);
    open_line_ = true;
  }
  /// A line that stays.
  [[gnu::format(printf, 2, 3)]] void say(const char* format, ...) {
    end_line();
    std::va_list values;
    va_start(values, format);
    std::vprintf(format, values);
    va_end(values);
    std::printf("\n");
  }

 private:
  void end_line() {
    if (open_line_) std::printf("\n");
    std::fflush(stdout);
    open_line_ = false;
  }
  std::string out_, device_;
  bool open_line_ = false;
};

}  // namespace examples

#include "examples/command.h"

#include <CLI/CLI.hpp>
#include <cstdarg>
#include <cstdio>
#include <filesystem>

namespace examples {

Command::Command(const std::string& name, const std::string& description)
    : options_(std::make_unique<CLI::App>(description, name)), out_("out/" + name) {
  option("--out", out_, "folder of the pictures");
  options_->add_option("--device", device_,
                       "cpu, vulkan, … (else QUERN_DEVICE, else the best present)");
}

Command::~Command() = default;

template <class T>
void Command::option(const std::string& name, T& value, const std::string& description) {
  options_->add_option(name, value, description)->capture_default_str();
}

template <class T>
void Command::option(const std::string& name, T& value, const std::string& description,
                     std::type_identity_t<T> least, std::type_identity_t<T> most) {
  CLI::Option* option = options_->add_option(name, value, description);
  option->check(CLI::Range(least, most));
  if (least <= value && value <= most) option->capture_default_str();
}

#define NUMBER(T)                                                            \
  template void Command::option(const std::string&, T&, const std::string&); \
  template void Command::option(const std::string&, T&, const std::string&,  \
                                std::type_identity_t<T>, std::type_identity_t<T>);
NUMBER(int)
NUMBER(unsigned)
NUMBER(float)
NUMBER(double)
#undef NUMBER
template void Command::option(const std::string&, std::string&, const std::string&);

void Command::option(const std::string& name, std::string& value, const std::string& description,
                     const std::vector<std::string>& words) {
  options_->add_option(name, value, description)
      ->capture_default_str()
      ->check(CLI::IsMember(words));
}

void Command::flag(const std::string& name, bool& value, const std::string& description) {
  options_->add_flag(name, value, description);
}

int Command::run(int argc, char** argv, const std::function<void(const quern::Device&)>& body) {
  CLI11_PARSE(*options_, argc, argv);
  try {
    body(device_.empty() ? quern::Device() : quern::Device(device_.c_str()));
    end_line();
  } catch (const std::exception& e) {
    end_line();
    std::fprintf(stderr, "%s: %s\n", options_->get_name().c_str(), e.what());
    return 1;
  }
  return 0;
}

const std::string& Command::folder() const {
  std::error_code failure;
  std::filesystem::create_directories(out_, failure);
  if (failure) throw quern::Error("cannot make the folder '" + out_ + "': " + failure.message());
  return out_;
}

std::string Command::frame(int number) const {
  char file[32];
  std::snprintf(file, sizeof file, "frame_%04d.png", number);
  return picture(file);
}

void Command::progress(const char* format, ...) {
  std::va_list values;
  va_start(values, format);
  std::printf("\r");
  std::vprintf(format, values);
  va_end(values);
  std::fflush(stdout);
  open_line_ = true;
}

void Command::say(const char* format, ...) {
  end_line();
  std::va_list values;
  va_start(values, format);
  std::vprintf(format, values);
  va_end(values);
  std::printf("\n");
}

void Command::end_line() {
  if (open_line_) std::printf("\n");
  std::fflush(stdout);
  open_line_ = false;
}

}  // namespace examples

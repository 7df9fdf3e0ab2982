#pragma once
// What the mains of the examples share: the options every one has, the folder of its pictures, a
// line that shows progress, and errors that end the program.
#include <quern/quern.h>

#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

namespace CLI {
class App;
}

namespace examples {

class Command {
 public:
  Command(const std::string& name, const std::string& description);
  ~Command();

  /// An option `name` that sets `value`, which is an int, unsigned, float, double or
  /// string; the default that --help shows is what `value` is now.
  template <class T>
  void option(const std::string& name, T& value, const std::string& description);
  /// A number between `least` and `most`, or neither, for "not said", where `value` is that now.
  template <class T>
  void option(const std::string& name, T& value, const std::string& description,
              std::type_identity_t<T> least, std::type_identity_t<T> most);
  /// One of several words.
  void option(const std::string& name, std::string& value, const std::string& description,
              const std::vector<std::string>& words);
  /// An option without a value; where it is given, `value` is true.
  void flag(const std::string& name, bool& value, const std::string& description);

  /// Parses, then runs `body(device)`; what main returns.
  int run(int argc, char** argv, const std::function<void(const quern::Device&)>& body);

  /// Where pictures go; it is made.
  const std::string& folder() const;
  std::string picture(const std::string& file) const { return folder() + "/" + file; }
  std::string frame(int number) const;

  /// Replaces the line that shows how far the program is.
  [[gnu::format(printf, 2, 3)]] void progress(const char* format, ...);
  /// A line that stays.
  [[gnu::format(printf, 2, 3)]] void say(const char* format, ...);

 private:
  void end_line();

  std::unique_ptr<CLI::App> options_;
  std::string out_, device_;
  bool open_line_ = false;
};

}  // namespace examples

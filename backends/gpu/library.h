#pragma once
// A vendor's library, opened at run time.
#include <initializer_list>
#include <string>

namespace quern::gpu {

class Library {
 public:
  /// Opens the first of `names` that can be; otherwise `why` says what was tried.
  bool open(std::initializer_list<std::string> names, std::string& why);
  /// Null, and a reason, where the library has no such symbol. A symbol that need not be there is
  /// asked for without `why`.
  void* find(const char* symbol, std::string* why) const;
  template <class F>
  bool find(F& function, const char* symbol, std::string* why) const {
    function = reinterpret_cast<F>(find(symbol, why));
    return function != nullptr;
  }
  const std::string& name() const { return name_; }

 private:
  void* handle_ = nullptr;  ///< never closed: a driver's threads outlive what uses it
  std::string name_;
};

}  // namespace quern::gpu

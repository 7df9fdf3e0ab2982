#include "backends/gpu/library.h"

#include <dlfcn.h>

namespace quern::gpu {

bool Library::open(std::initializer_list<std::string> names, std::string& why) {
  std::string reasons;
  for (const std::string& name : names) {
    handle_ = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_) {
      name_ = name;
      return true;
    }
    std::string reason = dlerror();
    if (reason.starts_with(name + ": ")) reason.erase(0, name.size() + 2);
    reasons += (reasons.empty() ? "" : "; ") + (name + " cannot be opened: ") + reason;
  }
  why = reasons;
  return false;
}

void* Library::find(const char* symbol, std::string* why) const {
  void* found = dlsym(handle_, symbol);
  if (!found && why) *why = name_ + " lacks the function " + symbol;
  return found;
}

}  // namespace quern::gpu

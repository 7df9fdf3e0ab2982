#pragma once
// Records a lambda and gives back its IR, verified, without a device.
#include <quern/quern.h>

#include <memory>
#include <string>

#include "dsl/recording.h"
#include "quern/ir/text.h"
#include "quern/ir/verify.h"

namespace quern::test {

template <class R, class... A, class F>
std::unique_ptr<ir::Kernel> record_as(R (F::*)(A...) const, const F& f, Loc loc) {
  using Returned = detail::TypeList<typename detail::ResultOf<R>::types>;
  detail::Recorder recorder(nullptr, false, Returned::scalars, Returned::count, loc);
  F copy = f;
  detail::Trace<R, A...>::run(copy, loc);
  std::unique_ptr<detail::Recording> r(recorder.finish());
  return std::move(r->kernel);
}

template <class F>
std::unique_ptr<ir::Kernel> record(const F& f, Loc loc = Loc::here()) {
  auto kernel = record_as(&F::operator(), f, loc);
  ir::expect_valid(*kernel, "recording");
  std::string text = ir::print(*kernel);
  if (ir::print(*ir::parse(text)) != text)
    throw InternalError("print, parse, print is not the identity:\n" + text);
  return kernel;
}

/// The lines of the recorded body, indentation removed, in one string.
template <class F>
std::string recorded(const F& f, Loc loc = Loc::here()) {
  std::string text = ir::print(*record(f, loc));
  std::string body = text.substr(text.find("body {"));
  std::string out;
  bool line_start = true;
  for (char c : body) {
    if (line_start && c == ' ') continue;
    line_start = c == '\n';
    out += c;
  }
  return out;
}

}  // namespace quern::test

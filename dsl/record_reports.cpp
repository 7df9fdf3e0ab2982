// What a kernel tells the host: quern/values/record.h on the recording of this thread.
#include "dsl/recording.h"
#include "quern/ir/abi.h"

namespace quern::detail {

namespace {
/// What is reported of values: the text with a {} for each scalar, and the scalars.
struct Report {
  std::string text;
  std::vector<ir::Value*> scalars;
};

/// Gives each place {} of the text the form of its value; poisons the recording where their numbers
/// differ or an error record cannot hold the scalars.
Report expanded(Recording& r, const char* format, const Reported* values, int count, Loc loc) {
  constexpr size_t most = ir::abi::reported_values;
  Report out;
  if (!format) {
    r.fail(loc, "the text of print or check is null");
    return out;
  }
  int places = 0;
  for (const char* p = format; *p; p++) {
    bool place = p[0] == '{' && p[1] == '}';
    if (place && places < count)
      out.text += values[places].form;
    else
      out.text.append(p, place || (p[0] == '{' && p[1] == '{') ? 2 : 1);
    places += place;
    p += place || (p[0] == '{' && p[1] == '{');
  }
  for (int k = 0; k < count; k++)
    for (int s = 0; s < values[k].count; s++)
      out.scalars.push_back(r.value(values[k].scalars[s], loc));
  if (r.failed()) return out;
  if (places != count)
    r.fail(loc, "the text has " + std::to_string(places) + " places {} for " +
                    std::to_string(count) + " values");
  else if (out.scalars.size() > most)
    r.fail(loc, "print and check take at most " + std::to_string(most) +
                    " values, the numbers of vectors, matrices and structures counted; here are " +
                    std::to_string(out.scalars.size()));
  return out;
}

void record(Recording& r, ir::Op op, ir::Site::Kind kind, Report report, ir::Value* condition,
            Loc loc) {
  if (r.failed()) return;
  ir::Site site;
  site.kind = kind;
  site.loc = loc.line ? loc : r.last;
  site.text = std::move(report.text);
  for (ir::Value* v : report.scalars) site.values.push_back(v->type);
  if (condition) report.scalars.insert(report.scalars.begin(), condition);
  ir::Inst* inst = r.at(loc).make(op, std::span<const ir::Type>(), report.scalars);
  inst->site = r.add_site(std::move(site));
}
}  // namespace

void print(const char* format, const Reported* values, int count, Loc loc) {
  Recording& r = recording(loc);
  record(r, ir::Op::print, ir::Site::print, expanded(r, format, values, count, loc), nullptr, loc);
}

void check(Id condition, const char* format, const Reported* values, int count, Loc loc) {
  Recording& r = recording(loc);
  ir::Value* holds = r.value(condition, loc);
  record(r, ir::Op::check, ir::Site::check, expanded(r, format, values, count, loc), holds, loc);
}

}  // namespace quern::detail

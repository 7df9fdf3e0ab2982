#include "backends/interpreter/races.h"

namespace quern::interpreter {

void Races::Pair::note(Touch touch) {
  if (count == 0) {
    first = touch;
    count = 1;
  } else if (count == 1 && touch.iteration != first.iteration) {
    second = touch;
    count = 2;
  }
}

const Touch* Races::Pair::by_other(uint64_t iteration) const {
  if (count > 0 && first.iteration != iteration) return &first;
  if (count > 1 && second.iteration != iteration) return &second;
  return nullptr;
}

std::optional<Touch> Races::report(Place& place, const Touch* touch) {
  if (!touch || place.reported) return {};
  place.reported = true;
  return *touch;
}

std::optional<Touch> Races::read(ir::Bits address, Touch touch) {
  Place& place = places_[address];
  place.reads.note(touch);
  const Touch* found = place.writes.by_other(touch.iteration);
  if (!found) found = place.atomic_writes.by_other(touch.iteration);
  return report(place, found);
}

std::optional<Touch> Races::write(ir::Bits address, Touch touch) {
  Place& place = places_[address];
  if (place.writes.count > 0 && place.writes.first.bits != touch.bits) place.mixed = true;
  place.writes.note(touch);
  const Touch* found = place.reads.by_other(touch.iteration);
  if (!found && place.mixed) found = place.writes.by_other(touch.iteration);
  if (!found) found = place.atomic_reads.by_other(touch.iteration);
  if (!found) found = place.atomic_writes.by_other(touch.iteration);
  return report(place, found);
}

std::optional<Touch> Races::atomic(ir::Bits address, Touch touch, bool writes) {
  Place& place = places_[address];
  (writes ? place.atomic_writes : place.atomic_reads).note(touch);
  const Touch* found = place.writes.by_other(touch.iteration);
  if (!found && writes) found = place.reads.by_other(touch.iteration);
  return report(place, found);
}

}  // namespace quern::interpreter

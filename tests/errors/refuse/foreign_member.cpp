// expect: a member named in QUERN_STRUCT has a type that no device value has
#include <quern/quern.h>
struct Body {
  float mass;
  const char* name;
};
QUERN_STRUCT(Body, mass, name);  // here

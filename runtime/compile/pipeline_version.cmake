# cmake -DROOT=… -DSOURCES=sources.txt -DOUT=pipeline_version.cpp -P pipeline_version.cmake
# Writes a digest of the sources, by their names below ROOT and what they hold.
cmake_minimum_required(VERSION 3.25)
file(STRINGS ${SOURCES} files)
list(SORT files)
foreach(file IN LISTS files)
  file(SHA256 ${file} digest)
  file(RELATIVE_PATH name ${ROOT} ${file})
  string(APPEND all "${name} ${digest}\n")
endforeach()
string(SHA256 digest "${all}")
string(SUBSTRING ${digest} 0 16 digest)
file(CONFIGURE OUTPUT ${OUT} CONTENT "#include \"quern/runtime/compiler.h\"

std::string quern::runtime::pipeline_version() { return \"${digest}\"; }
")

# quern_registry(FILE BUILT LEFT_OUT): writes the source that names the back ends of a build and those it
# was configured without.
set(QUERN_REGISTRY ${CMAKE_CURRENT_LIST_DIR}/registry.cpp.in CACHE INTERNAL "")
function(quern_registry file built left_out)
  foreach(name IN LISTS built)
    string(APPEND declarations "namespace quern::${name} { extern const runtime::Backend backend; }\n")
    string(APPEND entries "    ${name}::backend,\n")
  endforeach()
  foreach(name IN LISTS left_out)
    string(APPEND absent "\"${name}\", ")
  endforeach()
  configure_file(${QUERN_REGISTRY} ${file} @ONLY)
endfunction()

# quern_compiler_registry(FILE BUILT): the same of the compilers.
set(QUERN_COMPILER_REGISTRY ${CMAKE_CURRENT_LIST_DIR}/compilers.cpp.in CACHE INTERNAL "")
function(quern_compiler_registry file built)
  foreach(name IN LISTS built)
    string(APPEND declarations "namespace quern::${name} { const runtime::Compiler& compiler(); }\n")
    string(APPEND entries "      {\"${name}\", &${name}::compiler()},\n")
  endforeach()
  configure_file(${QUERN_COMPILER_REGISTRY} ${file} @ONLY)
endfunction()

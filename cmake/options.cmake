# Compiler settings common to every target, and the helpers the folders use.
find_program(QUERN_CCACHE ccache)
if(QUERN_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${QUERN_CCACHE})
endif()

add_library(quern_options INTERFACE)
target_compile_options(quern_options INTERFACE -Wall -Wextra -Wshadow -Wpedantic -Werror)
# Clang sees that libstdc++ 12's stable_sort uses what the standard has deprecated.
target_compile_options(quern_options INTERFACE $<$<CXX_COMPILER_ID:Clang>:-Wno-deprecated-declarations>)

set(QUERN_SANITIZE "" CACHE STRING "address,undefined or thread: sanitizers for everything")
if(QUERN_SANITIZE)
  add_compile_options(-fsanitize=${QUERN_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${QUERN_SANITIZE})
endif()

# quern_library(NAME SOURCES… [LINK LIBS…]): a part of Quern. Public headers in include/, private ones
# beside the sources.
function(quern_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINK" ${ARGN})
  add_library(${name} STATIC ${arg_SOURCES})
  if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/include)
    target_include_directories(${name} PUBLIC ${CMAKE_CURRENT_SOURCE_DIR}/include)
  endif()
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PUBLIC ${arg_LINK} PRIVATE quern_options)
endfunction()

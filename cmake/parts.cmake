# Compiler settings of Quern's own targets, and how its parts are declared.
if(PROJECT_IS_TOP_LEVEL AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(QUERN_CCACHE ccache)
  if(QUERN_CCACHE)
    set(CMAKE_CXX_COMPILER_LAUNCHER ${QUERN_CCACHE})
  endif()
endif()

# Warnings are for those who work on Quern: a project around it sees none, whatever flags it sets.
add_library(quern_options INTERFACE)
if(PROJECT_IS_TOP_LEVEL)
  target_compile_options(quern_options INTERFACE -Wall -Wextra -Wshadow -Wpedantic
    $<$<BOOL:${QUERN_WERROR}>:-Werror>)
  # Clang sees that libstdc++ 12's stable_sort uses what the standard has deprecated.
  target_compile_options(quern_options INTERFACE
    $<$<CXX_COMPILER_ID:Clang>:-Wno-deprecated-declarations>)
  # g++ 12 at -O3 takes the short strings of its own library to overlap, or not to be there (GCC bug 105651).
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    target_compile_options(quern_options INTERFACE
      "$<$<CONFIG:Release>:-Wno-restrict;-Wno-maybe-uninitialized>")
  endif()
  # With sanitizers g++ takes std::function within std::regex, and LLVM's unique_function, to be unset.
  if(QUERN_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    target_compile_options(quern_options INTERFACE -Wno-maybe-uninitialized)
  endif()
else()
  target_compile_options(quern_options INTERFACE -w)
endif()

if(QUERN_SANITIZE)
  # What is found ends the program, undefined behaviour too.
  add_compile_options(-fsanitize=${QUERN_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${QUERN_SANITIZE})
endif()

# quern_library(NAME SOURCES… [LINK LIBS…]): a static library of this tree. Public headers in include/,
# private ones beside the sources.
function(quern_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINK" ${ARGN})
  add_library(${name} STATIC ${arg_SOURCES})
  if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/include)
    target_include_directories(${name} PUBLIC ${CMAKE_CURRENT_SOURCE_DIR}/include)
  endif()
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  # Nobody replaces functions of Quern's when a program is loaded: those of one source know each other,
  # a tenth of the time of a small launch. Clang takes that for granted.
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    target_compile_options(${name} PRIVATE -fno-semantic-interposition)
  endif()
  target_link_libraries(${name} PUBLIC ${arg_LINK} PRIVATE quern_options)
endfunction()

# quern_part(NAME SOURCES… [LINK LIBS…] [USES LIBS…]): a part of the library `quern` that users link.
# USES are libraries from elsewhere, which only the sources see.
function(quern_part name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINK;USES" ${ARGN})
  quern_library(${name} SOURCES ${arg_SOURCES} LINK ${arg_LINK})
  target_link_libraries(${name} PRIVATE ${arg_USES})
  set_property(GLOBAL APPEND PROPERTY QUERN_PARTS ${name})
  set_property(GLOBAL APPEND PROPERTY QUERN_USES ${arg_USES})
endfunction()

# What the chosen parts need from elsewhere. Found here, in the folder that all of Quern lies below, so
# that every part and the library that they become see it, and a project around Quern does not.

# Ends the configuration where `found` is false: says who needs what, the Debian package that has it, and
# the options that do without.
function(quern_require found who what package)
  if(found)
    return()
  endif()
  list(TRANSFORM ARGN REPLACE "(.+)" "-D\\1=OFF" OUTPUT_VARIABLE without)
  list(JOIN without " " without)
  message(FATAL_ERROR "Quern: ${who} needs ${what}, which is not here (Debian: ${package}). "
    "To do without it, configure with ${without}")
endfunction()

if(QUERN_CPU OR QUERN_CUDA OR QUERN_ROCM)
  if(TARGET LLVM AND LLVM_PACKAGE_VERSION VERSION_LESS 19.1)
    message(FATAL_ERROR "Quern needs LLVM 19.1 or newer, and the project around it uses LLVM "
      "${LLVM_PACKAGE_VERSION}: install Quern as a shared library and find_package it instead")
  endif()
  foreach(version 22.1 21.1 20.1 19.1)
    find_package(LLVM ${version} QUIET CONFIG)
    if(LLVM_FOUND)
      break()
    endif()
  endforeach()
  quern_require("${LLVM_FOUND}" "the code generator for CPUs and for NVIDIA's and AMD's GPUs"
    "LLVM 19.1 or newer" llvm-19-dev QUERN_CPU QUERN_CUDA QUERN_ROCM)
  message(STATUS "LLVM ${LLVM_PACKAGE_VERSION}")
endif()

if(QUERN_CPU)
  find_package(Threads REQUIRED)
endif()

if(QUERN_ROCM)
  find_package(LLD QUIET CONFIG HINTS ${LLVM_INSTALL_PREFIX})
  quern_require("${LLD_FOUND}" "the back end for AMD's GPUs" "lld of LLVM ${LLVM_VERSION_MAJOR}"
    liblld-${LLVM_VERSION_MAJOR}-dev QUERN_ROCM)
endif()

if(QUERN_VULKAN)
  set(who "the back end for Vulkan")
  find_path(QUERN_VULKAN_HEADERS vulkan/vulkan.h)  # the loader is opened at run time
  quern_require("${QUERN_VULKAN_HEADERS}" ${who} "Vulkan's headers" libvulkan-dev QUERN_VULKAN)
  find_path(QUERN_SPIRV_HEADERS spirv/unified1/spirv.hpp11)
  quern_require("${QUERN_SPIRV_HEADERS}" ${who} "SPIR-V's headers" spirv-headers QUERN_VULKAN)
  find_package(SPIRV-Tools QUIET CONFIG)
  quern_require("${SPIRV-Tools_FOUND}" ${who} "SPIRV-Tools" spirv-tools QUERN_VULKAN)
endif()

if(QUERN_FILES)
  find_path(QUERN_STB stb/stb_image.h)
  quern_require("${QUERN_STB}" "quern::files" "stb" libstb-dev QUERN_FILES)
endif()

# OpenVDB and NanoVDB, where they are installed with what their headers want: quern::vdb has them then. What
# was not found is looked for again when this runs again.
if(QUERN_FILES AND QUERN_VDB)
  include(CheckCXXSourceCompiles)
  # quern_try_vdb(NAME SOURCE LIBRARIES…): sets QUERN_HAS_<NAME>, and adds to QUERN_VDB_LIBRARIES.
  function(quern_try_vdb name source)
    set(CMAKE_CXX_STANDARD 20)
    set(libraries ${QUERN_VDB_LIBRARIES})
    foreach(library IN LISTS ARGN)
      find_library(QUERN_${library}_LIBRARY NAMES ${library} ${library}-3_1)
      list(APPEND libraries ${QUERN_${library}_LIBRARY})
    endforeach()
    set(CMAKE_REQUIRED_LIBRARIES ${libraries})
    if(NOT libraries MATCHES NOTFOUND)
      check_cxx_source_compiles("${source}" QUERN_HAS_${name})
    endif()
    if(QUERN_HAS_${name})
      set(QUERN_VDB_LIBRARIES ${libraries} PARENT_SCOPE)
    else()
      unset(QUERN_HAS_${name} CACHE)
      message(STATUS "no ${name}: quern::vdb says so where its files are wanted")
    endif()
  endfunction()
  quern_try_vdb(OPENVDB "#include <openvdb/openvdb.h>
    int main() { return openvdb::FloatTree(0).empty() ? 0 : 1; }" openvdb tbb Imath)
  if(QUERN_HAS_OPENVDB)
    quern_try_vdb(NANOVDB "#include <nanovdb/util/IO.h>
      #include <nanovdb/util/OpenToNanoVDB.h>
      #include <blosc.h>
      #include <zlib.h>
      int main() { return compressBound(0) > 0 && blosc_compcode_to_compname(0, nullptr) < 0; }" blosc z)
  endif()
endif()

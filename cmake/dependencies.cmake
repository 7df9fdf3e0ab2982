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

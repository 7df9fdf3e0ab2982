# What users link: quern::quern, one library of all parts (static, or shared with BUILD_SHARED_LIBS), and
# quern::files. The same names whether Quern lies in their tree or is installed. Programs of this tree
# link the parts themselves, as tests look inside.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

# quern_product(NAME EXPORTED_NAME PARTS… [USES LIBS…])
function(quern_product name exported)
  cmake_parse_arguments(arg "" "" "PARTS;USES" ${ARGN})
  add_library(${name})
  add_library(quern::${exported} ALIAS ${name})
  set_target_properties(${name} PROPERTIES LINKER_LANGUAGE CXX EXPORT_NAME ${exported} SYSTEM ON
    INSTALL_RPATH $ORIGIN VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  foreach(part IN LISTS arg_PARTS)
    target_sources(${name} PRIVATE $<TARGET_OBJECTS:${part}>)
  endforeach()
  target_compile_features(${name} PUBLIC cxx_std_20)
  target_link_libraries(${name} PRIVATE ${arg_USES})
  if(BUILD_SHARED_LIBS)  # what comes from static libraries (lld, SPIRV-Tools) is nobody else's
    target_link_options(${name} PRIVATE LINKER:--exclude-libs,ALL)
  endif()
endfunction()

get_property(parts GLOBAL PROPERTY QUERN_PARTS)
get_property(uses GLOBAL PROPERTY QUERN_USES)
list(REMOVE_DUPLICATES uses)
quern_product(quern quern PARTS ${parts} USES ${uses})
set(header_folders ir/include runtime/include dsl/include sparse/include)
foreach(folder IN LISTS header_folders)
  target_include_directories(quern PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/${folder}>)
endforeach()
target_include_directories(quern INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
# Threads and compiled kernels live as long as the process: a shared library that holds Quern, its own or a
# user's module, stays when it is closed.
if(BUILD_SHARED_LIBS)
  target_link_options(quern PRIVATE LINKER:-z,nodelete)
else()
  foreach(type SHARED_LIBRARY MODULE_LIBRARY)
    target_link_options(quern INTERFACE $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,${type}>:LINKER:-z,nodelete>)
  endforeach()
endif()
set(products quern)
if(QUERN_FILES)
  quern_product(quern_files files PARTS quern_dsl_files quern_sparse_files)
  target_link_libraries(quern_files PUBLIC quern)
  list(APPEND products quern_files)
endif()

if(QUERN_INSTALL)
  set(folder ${CMAKE_INSTALL_LIBDIR}/cmake/quern)
  if(BUILD_SHARED_LIBS)
    set(linkage SHARED)
  else()
    set(linkage STATIC)
  endif()
  install(TARGETS ${products} EXPORT quern)
  foreach(headers IN LISTS header_folders)
    install(DIRECTORY ${headers}/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  endforeach()
  install(EXPORT quern NAMESPACE quern:: FILE quernTargets.cmake DESTINATION ${folder})
  configure_package_config_file(cmake/quernConfig.cmake.in
    ${CMAKE_CURRENT_BINARY_DIR}/quernConfig.cmake INSTALL_DESTINATION ${folder})
  write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/quernConfigVersion.cmake
    COMPATIBILITY SameMinorVersion)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/quernConfig.cmake
    ${CMAKE_CURRENT_BINARY_DIR}/quernConfigVersion.cmake DESTINATION ${folder})
  install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
endif()

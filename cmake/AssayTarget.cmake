# Flags for everything, and assay_stage(): one static library per folder of judge/.
option(ASSAY_TESTS "Build the tests" ON)
set(ASSAY_CUDA "AUTO" CACHE STRING "Build the CUDA back end: ON, OFF or AUTO (if nvcc is found)")
option(ASSAY_UNITY "Compile each stage as one unit: a third of the time" ON)
set(CMAKE_UNITY_BUILD ${ASSAY_UNITY})
set(CMAKE_UNITY_BUILD_BATCH_SIZE 32)
set(ASSAY_SANITIZE "" CACHE STRING "Sanitizers for host code, e.g. address,undefined")

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O2")
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
list(PREPEND CMAKE_FIND_LIBRARY_SUFFIXES .a) # the built folder can travel

if(ASSAY_CUDA STREQUAL "AUTO")
  find_program(ASSAY_NVCC nvcc HINTS $ENV{CUDA_HOME}/bin /usr/local/cuda/bin)
  if(ASSAY_NVCC)
    set(ASSAY_HAVE_CUDA ON)
  endif()
elseif(ASSAY_CUDA)
  set(ASSAY_HAVE_CUDA ON)
endif()
if(ASSAY_HAVE_CUDA)
  if(ASSAY_NVCC)
    set(CMAKE_CUDA_COMPILER ${ASSAY_NVCC})
  endif()
  if(NOT CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 90)
  endif()
  enable_language(CUDA)
  # CMake 3.25 does not know that nvcc can do C++20.
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
  set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
endif()
message(STATUS "CUDA back end: ${ASSAY_HAVE_CUDA}")

add_library(assay_flags INTERFACE)
# numeric.h promises the same bits on every device: no contraction into fused multiply-adds.
target_compile_options(assay_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wshadow -Wnon-virtual-dtor -Werror -ffp-contract=off>
  # fmt 9's consteval checks are too new for nvcc's host pass.
  $<$<COMPILE_LANGUAGE:CUDA>:-DFMT_CONSTEVAL= -DFMT_USE_CONSTEXPR=1 -fmad=false --extended-lambda --expt-relaxed-constexpr -Xcompiler=-Wall,-ffp-contract=off>)
if(ASSAY_HAVE_CUDA)
  target_compile_definitions(assay_flags INTERFACE ASSAY_HAVE_CUDA=1)
  target_include_directories(assay_flags SYSTEM INTERFACE ${CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES})
endif()
if(ASSAY_SANITIZE)
  target_compile_options(assay_flags INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${ASSAY_SANITIZE} -fno-omit-frame-pointer -g>)
  target_link_options(assay_flags INTERFACE -fsanitize=${ASSAY_SANITIZE})
endif()

set(ASSAY_PREVIOUS_STAGE "" CACHE INTERNAL "")
set(ASSAY_LARGE_HEADERS <fmt/format.h$<ANGLE-R> <nlohmann/json.hpp$<ANGLE-R> <map$<ANGLE-R>
  <memory$<ANGLE-R> <span$<ANGLE-R> <string$<ANGLE-R> <vector$<ANGLE-R>)
# assay_stage(NAME [DEPS ...]): judge/NAME/*.cc (and *.cu) -> assay_NAME, linked to the stage before it.
function(assay_stage name)
  cmake_parse_arguments(S "" "" "DEPS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/judge/${name}/*.cc)
  list(FILTER sources EXCLUDE REGEX "/main\\.cc$")
  if(ASSAY_HAVE_CUDA)
    file(GLOB cuda CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/judge/${name}/*.cu)
    list(APPEND sources ${cuda})
  endif()
  add_library(assay_${name} STATIC ${sources})
  set_target_properties(assay_${name} PROPERTIES LINKER_LANGUAGE CXX)
  target_link_libraries(assay_${name} PUBLIC assay_flags ${ASSAY_PREVIOUS_STAGE} ${S_DEPS})
  # The large headers nearly every file needs, parsed once.
  if(name STREQUAL base)
    target_precompile_headers(assay_base PRIVATE $<$<COMPILE_LANGUAGE:CXX>:${ASSAY_LARGE_HEADERS}>)
  else()
    target_precompile_headers(assay_${name} REUSE_FROM assay_base)
  endif()
  set(ASSAY_PREVIOUS_STAGE assay_${name} CACHE INTERNAL "")
endfunction()

# What a record says it was made with.
find_package(Git QUIET)
set(ASSAY_VERSION "unknown")
if(Git_FOUND)
  execute_process(COMMAND ${GIT_EXECUTABLE} -C ${CMAKE_SOURCE_DIR} describe --always --dirty
                  OUTPUT_VARIABLE ASSAY_VERSION OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
if(ASSAY_VERSION STREQUAL "")
  set(ASSAY_VERSION "unknown")
endif()

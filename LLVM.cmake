# LLVM, MLIR and lld from Debian's packages, linked as static archives.
#
# The imported MLIR targets of that package name the shared libLLVM; linking
# both would give a process two copies of LLVM's global state. So the archives
# are collected by path here: `qd_llvm` carries headers and flags, and
# `qd_llvm_archives` everything that an executable or shared library links.

find_package(MLIR 22.1 REQUIRED CONFIG PATHS /usr/lib/llvm-22 NO_DEFAULT_PATH)
find_package(LLD REQUIRED CONFIG PATHS /usr/lib/llvm-22 NO_DEFAULT_PATH)
list(APPEND CMAKE_MODULE_PATH ${MLIR_CMAKE_DIR} ${LLVM_CMAKE_DIR})
include(TableGen)
include(AddLLVM)
include(AddMLIR)

function(qd_archives_of out)
  set(seen "")
  set(queue ${ARGN})
  while(queue)
    list(POP_FRONT queue lib)
    if(lib STREQUAL "LLVM" OR lib IN_LIST seen OR NOT TARGET ${lib})
      continue()
    endif()
    get_target_property(type ${lib} TYPE)
    if(NOT type STREQUAL "STATIC_LIBRARY")
      continue()
    endif()
    list(APPEND seen ${lib})
    get_target_property(deps ${lib} INTERFACE_LINK_LIBRARIES)
    if(deps)
      string(REGEX REPLACE "\\$<LINK_ONLY:([^>]*)>" "\\1" deps "${deps}")
      list(APPEND queue ${deps})
    endif()
  endwhile()
  set(paths "")
  foreach(lib ${seen})
    list(APPEND paths $<TARGET_FILE:${lib}>)
  endforeach()
  set(${out} ${paths} PARENT_SCOPE)
endfunction()

qd_archives_of(mlir_archives
  MLIRIR MLIRParser MLIRPass MLIRTransforms MLIRTransformUtils MLIRBytecodeReader MLIRBytecodeWriter MLIRBytecodeOpInterface
  MLIRArithDialect MLIRSCFDialect MLIRMathDialect MLIRFuncDialect MLIRVectorDialect
  MLIRAnalysis MLIROptLib MLIRUBDialect)
qd_archives_of(lld_archives lldELF lldCommon)

execute_process(
  COMMAND ${LLVM_TOOLS_BINARY_DIR}/llvm-config --link-static --libfiles
    nvptx amdgpu native passes orcjit asmparser bitwriter irreader frontendoffloading object lto dtlto support
  OUTPUT_VARIABLE llvm_archives OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
separate_arguments(llvm_archives UNIX_COMMAND "${llvm_archives}")
# llvm-config names Polly, which the packages do not hold.
list(FILTER llvm_archives EXCLUDE REGEX "libPolly")

add_library(qd_llvm INTERFACE)
target_include_directories(qd_llvm SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS} ${LLD_INCLUDE_DIRS})
separate_arguments(llvm_definitions UNIX_COMMAND "${LLVM_DEFINITIONS}")
target_compile_definitions(qd_llvm INTERFACE ${llvm_definitions})

add_library(qd_llvm_archives INTERFACE)
target_link_libraries(qd_llvm_archives INTERFACE ${mlir_archives} ${lld_archives} ${llvm_archives} z zstd rt dl m pthread)

# lld, which could do LTO for any target, registers all of them at each link; those whose archives are left out get
# empty functions. Its LTO library also names Polly, which is never asked for.
set(absent_targets ${LLVM_TARGETS_TO_BUILD})
list(REMOVE_ITEM absent_targets AMDGPU NVPTX ${LLVM_NATIVE_ARCH})
set(absent_text "#include \"llvm/Plugins/PassPlugin.h\"
llvm::PassPluginLibraryInfo getPollyPluginInfo() { return {}; }
extern \"C\" {\n")
foreach(target ${absent_targets})
  foreach(part TargetInfo Target TargetMC AsmPrinter AsmParser)
    string(APPEND absent_text "void LLVMInitialize${target}${part}() {}\n")
  endforeach()
endforeach()
string(APPEND absent_text "}\n")
set(absent_source ${PROJECT_BINARY_DIR}/AbsentTargets.cpp)
file(CONFIGURE OUTPUT ${absent_source} CONTENT "${absent_text}")
add_library(qd_absent_targets STATIC ${absent_source})
target_link_libraries(qd_absent_targets PRIVATE qd_llvm)
target_link_libraries(qd_llvm_archives INTERFACE qd_absent_targets)

# lld was made for a process of its own: each link resets all of LLVM's command-line options and registers all targets
# again, under the hands of threads that generate code. Its calls are led elsewhere: no option is ever set from a link, so
# there is nothing to reset, and whoever registers a target first registers all of them once, before anybody looks one up.
set(registered ${LLVM_NATIVE_ARCH}AsmParser)
foreach(target AMDGPU NVPTX ${LLVM_NATIVE_ARCH})
  foreach(part TargetInfo Target TargetMC AsmPrinter)
    list(APPEND registered ${target}${part})
  endforeach()
endforeach()
if(NOT LLVM_NATIVE_ARCH STREQUAL "AMDGPU")
  list(APPEND registered AMDGPUAsmParser)
endif()
# Files that it writes would be removed when a signal comes: LLVM installs handlers for that, which are the host's to set,
# and keeps a record of each file for ever. A link's files are of a name of their own, and whoever started it removes them.
set(reset _ZN4llvm2cl25ResetAllOptionOccurrencesEv)
set(on_signal _ZN4llvm3sys18RemoveFileOnSignalENS_9StringRefEPNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE)
set(wrap_text "#include <mutex>\nextern \"C\" {\nvoid __wrap_${reset}() {}\nbool __wrap_${on_signal}() { return false; }\n")
set(register_text "")
set(wrapped ${reset} ${on_signal})
foreach(name ${registered})
  string(APPEND wrap_text "void __real_LLVMInitialize${name}();\n")
  string(APPEND register_text "  __real_LLVMInitialize${name}();\n")
  list(APPEND wrapped LLVMInitialize${name})
endforeach()
string(APPEND wrap_text "}\nstatic void registerAll() {\n${register_text}}\n"
                        "static void registerOnce() {\n  static std::once_flag once;\n  std::call_once(once, registerAll);\n}\n"
                        "extern \"C\" {\n")
foreach(name ${registered})
  string(APPEND wrap_text "void __wrap_LLVMInitialize${name}() { registerOnce(); }\n")
endforeach()
string(APPEND wrap_text "}\n")
set(wrap_source ${PROJECT_BINARY_DIR}/LinkerCalls.cpp)
file(CONFIGURE OUTPUT ${wrap_source} CONTENT "${wrap_text}")
target_sources(qd_absent_targets PRIVATE ${wrap_source})
list(TRANSFORM wrapped PREPEND "-Wl,--wrap=")
target_link_options(qd_llvm_archives INTERFACE ${wrapped})

# SPIR-V: the headers, and SPIRV-Tools as archives for validation and disassembly.
find_path(SPIRV_HEADERS_INCLUDE spirv/unified1/spirv.hpp11)
find_path(SPIRV_TOOLS_INCLUDE spirv-tools/libspirv.h)
find_library(SPIRV_TOOLS_ARCHIVE NAMES libSPIRV-Tools.a)
if(NOT SPIRV_HEADERS_INCLUDE OR NOT SPIRV_TOOLS_INCLUDE OR NOT SPIRV_TOOLS_ARCHIVE)
  message(FATAL_ERROR "The SPIR-V backend needs SPIRV-Tools with its static library and the SPIR-V headers "
                      "(Debian: spirv-tools, spirv-headers)")
endif()
target_include_directories(qd_llvm SYSTEM INTERFACE ${SPIRV_HEADERS_INCLUDE} ${SPIRV_TOOLS_INCLUDE})
target_link_libraries(qd_llvm_archives INTERFACE ${SPIRV_TOOLS_ARCHIVE})

# What nearly every source includes, compiled once.
if(QD_PRECOMPILED)
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/Precompiled.cpp CONTENT "")
  add_library(qd_precompiled OBJECT ${PROJECT_BINARY_DIR}/Precompiled.cpp)
  target_link_libraries(qd_precompiled PRIVATE qd_llvm)
  target_include_directories(qd_precompiled PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
  target_precompile_headers(qd_precompiled PRIVATE ${PROJECT_SOURCE_DIR}/ir/Precompiled.h)
endif()

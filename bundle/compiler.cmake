# Read after each project() of llama.cpp's build, ours and the peer's of the benchmarks (CMAKE_PROJECT_INCLUDE).
#
# ggml sets up the tiles of AMX on the stack and loads them with _tile_loadconfig. In GCC without the builtin below (12.2 of
# Debian 12 among them), that function claims to read 8 of the 64 bytes, so that the optimizer drops the stores of the others,
# and the first multiplication dies of an illegal instruction (GCC's bug 114098). Without these macros, ggml uses AVX-512.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
    include(CheckCXXSourceCompiles)
    set(CMAKE_REQUIRED_FLAGS "-mamx-tile")
    check_cxx_source_compiles(
        "int main() { char config[64] = {}; __builtin_ia32_ldtilecfg(config); }" TIERBAR_COMPILER_LOADS_TILES)
    unset(CMAKE_REQUIRED_FLAGS)
    if(NOT TIERBAR_COMPILER_LOADS_TILES)
        add_compile_options(-U__AMX_TILE__ -U__AMX_INT8__ -U__AMX_BF16__)
    endif()
endif()

# A sixth of the build's time goes into what only llama.cpp's own programs use: their options, their downloads and an HTTP client.
# Where no program is built, it is left out.
if(PROJECT_NAME STREQUAL "llama.cpp")
    function(tierbar_leave_out_programs)
        if(LLAMA_BUILD_TOOLS OR LLAMA_BUILD_SERVER OR LLAMA_BUILD_APP OR LLAMA_BUILD_TESTS OR NOT TARGET llama-common)
            return()
        endif()
        get_target_property(sources llama-common SOURCES)
        list(FILTER sources EXCLUDE REGEX "^(arg|console|debug|download|hf-cache|imatrix-loader|preset|subproc)[.]")
        set_property(TARGET llama-common PROPERTY SOURCES ${sources})
        if(TARGET cpp-httplib)
            foreach(list LINK_LIBRARIES INTERFACE_LINK_LIBRARIES)
                get_target_property(libraries llama-common ${list})
                list(FILTER libraries EXCLUDE REGEX "cpp-httplib")
                set_property(TARGET llama-common PROPERTY ${list} ${libraries})
            endforeach()
            set_target_properties(cpp-httplib PROPERTIES EXCLUDE_FROM_ALL ON)
        endif()
    endfunction()
    cmake_language(DEFER DIRECTORY "${CMAKE_SOURCE_DIR}" CALL tierbar_leave_out_programs)
endif()

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

# Where no program of llama.cpp is built, a third of its compilation is saved. A sixth of the time goes into what only its programs use:
# their options, their downloads and an HTTP client. Half of it goes into headers, which sources compiled in groups read once. What
# reads templates, answers and media takes -O2, which compiles clip.cpp in half the time; what computes or samples keeps its level.
if(PROJECT_NAME STREQUAL "llama.cpp")
    # In groups, but for the named ones, which do not compile beside others.
    function(tierbar_group_sources target)
        get_target_property(sources ${target} SOURCES)
        get_target_property(folder ${target} SOURCE_DIR)
        list(TRANSFORM sources PREPEND "${folder}/" REGEX "^[^/]")
        set_source_files_properties(${sources} TARGET_DIRECTORY ${target} PROPERTIES SKIP_UNITY_BUILD_INCLUSION OFF)
        list(TRANSFORM ARGN PREPEND "${folder}/" OUTPUT_VARIABLE alone)
        set_source_files_properties(${alone} TARGET_DIRECTORY ${target} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
        set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 16)
    endfunction()

    function(tierbar_build_less)
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
        tierbar_group_sources(llama-common json.cpp chat-peg-parser.cpp jinja/value.cpp)
        tierbar_group_sources(llama llama-kv-cache-dsv4.cpp llama-model-loader.cpp)
        if(TARGET mtmd)
            tierbar_group_sources(mtmd clip.cpp mtmd.cpp mtmd-audio.cpp mtmd-image.cpp mtmd-helper.cpp mtmd-helper-gen.cpp)
            target_compile_options(mtmd PRIVATE "$<$<CONFIG:Release>:-O2>")
        endif()
        target_compile_options(llama-common PRIVATE "$<$<CONFIG:Release>:-O2>")
    endfunction()
    cmake_language(DEFER DIRECTORY "${CMAKE_SOURCE_DIR}" CALL tierbar_build_less)
endif()

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

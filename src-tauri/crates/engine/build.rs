//! Compiles the chat shim against the llama.cpp that `llama-cpp-sys-2` has just built.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

fn main() {
    println!("cargo:rerun-if-changed=shim");
    println!("cargo:rerun-if-env-changed=TIERBAR_SKIP_SHIM");
    // A type check for a Mac from elsewhere has no C++ headers of that system.
    if env::var_os("TIERBAR_SKIP_SHIM").is_some() {
        println!("cargo:rustc-env=TIERBAR_LLAMA_CPP=unbuilt");
        return;
    }
    let Some(llama_cpp) = vendored_llama_cpp() else {
        panic!(
            "llama-cpp-sys-2 has left no CMakeCache.txt that names its sources; \
             is its pinned version still the one that this build script was written for?"
        );
    };
    // llama.cpp does not know its own build when it is built from a crate; the crate's folder has its version.
    let version = llama_cpp.parent().and_then(Path::file_name);
    let version = version.map_or_else(|| "unknown".into(), |name| name.to_string_lossy());
    println!("cargo:rustc-env=TIERBAR_LLAMA_CPP={version}");
    cc::Build::new()
        .cpp(true)
        .std("c++17")
        .file("shim/bounds.cpp")
        .file("shim/devices.cpp")
        .file("shim/shim.cpp")
        .file("shim/tools.cpp")
        .include(llama_cpp.join("common"))
        .include(llama_cpp.join("include"))
        .include(llama_cpp.join("ggml/include"))
        .include(llama_cpp.join("ggml/src"))
        .include(llama_cpp.join("src"))
        .include(llama_cpp.join("vendor"))
        .warnings(false)
        .compile("tierbar_shim");
    // Whole, since what calls it may be linked before it.
    cc::Build::new()
        .file("shim/mapping.c")
        .link_lib_modifier("+whole-archive")
        .compile("tierbar_mapping");
    if env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux") {
        for function in ["mmap", "posix_madvise"] {
            println!("cargo:rustc-link-arg=-Wl,--wrap={function}");
        }
    }
}

/// `DEP_LLAMA_GGML_CMAKE_DIR` is `OUT/lib/cmake/ggml`-like; the CMake cache beside it names the source tree.
fn vendored_llama_cpp() -> Option<PathBuf> {
    let exported = PathBuf::from(env::var_os("DEP_LLAMA_GGML_CMAKE_DIR")?);
    exported
        .ancestors()
        .find_map(|dir| home_directory(&dir.join("build/CMakeCache.txt")))
}

fn home_directory(cache: &Path) -> Option<PathBuf> {
    let text = fs::read_to_string(cache).ok()?;
    text.lines()
        .find_map(|line| line.strip_prefix("CMAKE_HOME_DIRECTORY:INTERNAL="))
        .map(PathBuf::from)
}

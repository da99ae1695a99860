//! `bundle/compiler.cmake`: no AMX from a compiler that drops most of what ggml stores before it loads the tiles.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// As in ggml's `ggml_tile_config_init`.
const TILES: &str = r"
#if defined(__AMX_INT8__)
#include <immintrin.h>
void load_tiles() {
    alignas(64) struct { unsigned char palette, row, reserved[14]; unsigned short columns[16]; unsigned char rows[16]; } config = {};
    config.palette = 1;
    for (int tile = 0; tile < 8; tile++) { config.rows[tile] = 16; config.columns[tile] = 64; }
    _tile_loadconfig(&config);
}
#endif
";

fn run(command: &mut Command) -> (bool, String) {
    let output = command.output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (
        output.status.success(),
        String::from_utf8_lossy(&text).into_owned(),
    )
}

/// Compiles for a CPU with AMX. Returns whether the code loads tiles.
fn loads_tiles(folder: &Path, option: Option<&str>) -> bool {
    let build = folder.join(option.map_or("plain", |_| "project"));
    let mut configure = Command::new("cmake");
    configure.arg("-S").arg(folder).arg("-B").arg(&build);
    configure.args(option);
    let (made, text) = run(&mut configure);
    assert!(made, "{text}");
    let (made, text) = run(Command::new("cmake").arg("--build").arg(&build));
    assert!(made, "{text}");
    let object = build.join("CMakeFiles/tiles.dir/tiles.cpp.o");
    let (read, text) = run(Command::new("objdump").arg("-d").arg(object));
    assert!(read, "{text}");
    text.contains("ldtilecfg")
}

#[test]
fn a_compiler_that_cannot_load_tiles_builds_without_amx() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("tiles.cpp"), TILES).unwrap();
    fs::write(
        folder.join("known.cpp"),
        "void load(void *config) { __builtin_ia32_ldtilecfg(config); }",
    )
    .unwrap();
    fs::write(
        folder.join("CMakeLists.txt"),
        "cmake_minimum_required(VERSION 3.20)\nproject(tiles CXX)\nadd_library(tiles OBJECT tiles.cpp)\ntarget_compile_options(tiles PRIVATE -O2 -march=sapphirerapids)\n",
    )
    .unwrap();
    let known: PathBuf = folder.join("known.cpp");
    let compile = |arguments: &[&str], source: &Path| {
        let mut command = Command::new("c++");
        command.args(arguments).arg("-c").arg(source);
        run(command.args(["-o", "/dev/null"])).0
    };
    if !compile(&["-march=sapphirerapids"], &folder.join("tiles.cpp")) {
        return tierbar_skip::skip("this compiler builds for no CPU with AMX");
    }
    let is_gcc = run(Command::new("c++").arg("--version"))
        .1
        .contains("Free Software Foundation");
    let loads_all = !is_gcc || compile(&["-mamx-tile"], &known);
    assert!(loads_tiles(folder, None), "the case has no tiles");
    let option = format!(
        "-DCMAKE_PROJECT_INCLUDE={}/bundle/compiler.cmake",
        root.display()
    );
    assert_eq!(loads_tiles(folder, Some(&option)), loads_all);
}

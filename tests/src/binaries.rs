//! The programs under test, from the same build as the test itself, and the models.

use std::path::{Path, PathBuf};

/// A program of this workspace.
///
/// # Panics
/// If it has not been built in the profile of the test.
#[must_use]
pub fn program(name: &str) -> PathBuf {
    let me = std::env::current_exe().expect("the test's own path");
    // target/PROFILE/deps/TEST-HASH or target/PROFILE/PROGRAM
    let folder = me
        .ancestors()
        .skip(1)
        .find(|folder| !folder.ends_with("deps"))
        .expect("a build folder");
    let path = folder.join(name);
    let release = if folder.ends_with("release") {
        " --release"
    } else {
        ""
    };
    assert!(
        path.exists(),
        "{} is not built: run `cargo build{release} --workspace --bins`",
        path.display()
    );
    path
}

/// A file of this repository.
#[must_use]
pub fn source(path: &str) -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).join(path)
}

pub const STARTER: &str = "SmolLM2-135M-Instruct.Q4_1.gguf";

/// Returns a test model, from `TIERBAR_TEST_MODELS` or the folder of `make test`.
///
/// # Panics
/// If it has not been downloaded.
#[must_use]
pub fn model(file: &str) -> PathBuf {
    let folder = std::env::var_os("TIERBAR_TEST_MODELS").map_or_else(
        || PathBuf::from(std::env::var_os("HOME").expect("HOME")).join(".cache/tierbar/models"),
        PathBuf::from,
    );
    let path = folder.join(file);
    assert!(
        path.exists(),
        "{} is missing: `make setup` fetches the test models",
        path.display()
    );
    path
}

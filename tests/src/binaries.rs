//! The programs under test, from the same build as the test itself, and the models.

use std::path::{Path, PathBuf};

/// The folder of the programs that were built as this was: that of tests/profile.toml, or the one that holds the folder of the
/// running test or example.
fn programs() -> (PathBuf, &'static str) {
    if let Some(folder) = option_env!("TIERBAR_BIN_DIR") {
        return (folder.into(), "cargo quick-build");
    }
    let me = std::env::current_exe().expect("the program's own path");
    let mut folders = me.ancestors().skip(1);
    let folder = folders.find(|folder| !folder.ends_with("deps") && !folder.ends_with("examples"));
    (folder.expect("a build folder").into(), "make build")
}

/// A program of this workspace.
///
/// # Panics
/// If it has not been built.
#[must_use]
pub fn program(name: &str) -> PathBuf {
    let (folder, command) = programs();
    let path = folder.join(name);
    assert!(
        path.exists(),
        "{} is not built: run `{command}`",
        path.display()
    );
    path
}

/// A file of this repository.
#[must_use]
pub fn source(path: &str) -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).join(path)
}

/// A small embedding model.
pub const MINILM: &str = "all-MiniLM-L6-v2.F32.gguf";
/// The smallest model whose words make sense: Qwen2.5-Coder 0.5B.
pub const QWEN: &str = "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf";
pub const STARTER: &str = "SmolLM2-135M-Instruct.Q4_1.gguf";

/// Returns the starter model's first layers, under its name and with its tokenizer and template: for tests that do not depend on its
/// words.
///
/// # Panics
/// If it cannot be made, or the model has not been downloaded.
#[must_use]
pub fn shallow_starter() -> PathBuf {
    tierbar_mixture::shallow(&model(STARTER)).expect("the starter model's first layers")
}

/// Returns a test model, from `TIERBAR_TEST_MODELS` or the folder of `make test`.
///
/// # Panics
/// If it has not been downloaded.
#[must_use]
pub fn model(file: &str) -> PathBuf {
    let path = models().join(file);
    assert!(
        path.exists(),
        "{} is missing: `make setup` fetches the test models",
        path.display()
    );
    path
}

/// As [`model`], of one that tests can do without.
///
/// # Errors
/// If a package of it is gone: why the test is skipped.
///
/// # Panics
/// If it has not been downloaded.
pub fn model_or_gone(file: &str) -> Result<PathBuf, String> {
    tierbar_skip::gone(&models().join(file)).map_or_else(|| Ok(model(file)), Err)
}

fn models() -> PathBuf {
    std::env::var_os("TIERBAR_TEST_MODELS").map_or_else(
        || PathBuf::from(std::env::var_os("HOME").expect("HOME")).join(".cache/tierbar/models"),
        PathBuf::from,
    )
}

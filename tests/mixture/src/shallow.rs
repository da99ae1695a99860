//! The first layers of a dense model, for tests that do not depend on its words: they mean nothing, and take a fraction of the time.

use crate::gguf::{self, Made, Model};
use anyhow::{Context, Result, ensure};
use std::{
    fs,
    path::{Path, PathBuf},
    process,
    sync::{Mutex, PoisonError},
};

const LAYERS: u32 = 3;
const LAYERS_KEY: &str = "llama.block_count";

/// Returns a model with the tokenizer, the chat template and the first layers of a model of architecture `llama`, such as SmolLM2. It
/// has the same name, in a folder next to the model's file, and is written once.
///
/// # Errors
/// If the model is of another kind or has no more layers, or a file cannot be read or written.
pub fn shallow(dense: &Path) -> Result<PathBuf> {
    static WRITING: Mutex<()> = Mutex::new(());
    let name = dense.file_name().context("the model's file has no name")?;
    let folder = dense.with_file_name(format!("first-{LAYERS}-layers"));
    let path = folder.join(name);
    let _alone = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
    if !path.is_file() {
        fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        // Other programs may write it at the same time.
        let unfinished = folder.join(format!("{}.unfinished", process::id()));
        write(dense, &unfinished)?;
        fs::rename(&unfinished, &path).with_context(|| path.display().to_string())?;
    }
    Ok(path)
}

fn write(dense: &Path, to: &Path) -> Result<()> {
    let bytes = fs::read(dense).with_context(|| dense.display().to_string())?;
    let model = Model::read(&bytes)?;
    let layers = model.number(LAYERS_KEY)?;
    ensure!(layers > LAYERS, "the model has {layers} layers");
    let tensors: Vec<Made<'_>> = model
        .tensors
        .iter()
        .filter(|tensor| layer_of(&tensor.head.name).is_none_or(|layer| layer < LAYERS))
        .map(|tensor| tensor.copied(&tensor.head.name))
        .collect();
    gguf::write(to, &model.pairs_with(LAYERS_KEY, LAYERS), &tensors)
}

/// The layer of a tensor, from its name.
fn layer_of(name: &str) -> Option<u32> {
    let (layer, _) = name.strip_prefix("blk.")?.split_once('.')?;
    layer.parse().ok()
}

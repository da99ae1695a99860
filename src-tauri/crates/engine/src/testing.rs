//! A model for unit tests.

use crate::llama::{Backend, Model, Weights};
use std::{
    path::PathBuf,
    sync::{Arc, OnceLock},
};

/// The starter model, on the CPU and in its file's mapping.
pub(crate) fn model() -> Arc<Model> {
    static MODEL: OnceLock<Arc<Model>> = OnceLock::new();
    Arc::clone(MODEL.get_or_init(|| Arc::new(load())))
}

pub(crate) fn load() -> Model {
    static BACKEND: OnceLock<Backend> = OnceLock::new();
    BACKEND.get_or_init(|| Backend::init().unwrap());
    let folder = std::env::var_os("TIERBAR_TEST_MODELS")
        .map_or_else(|| cache_folder().join("models"), PathBuf::from);
    let path = folder.join("SmolLM2-135M-Instruct.Q4_1.gguf");
    let weights = Weights {
        gpu_layers: Some(0),
        mapped: true,
        ..Weights::default()
    };
    Model::load(&path, weights, &|_| ())
        .unwrap_or_else(|error| panic!("{error:?}: run `make setup`"))
}

pub(crate) fn cache_folder() -> PathBuf {
    PathBuf::from(std::env::var_os("HOME").unwrap()).join(".cache/tierbar")
}

//! Models' names.

use tierbar_core::ModelId;

const EXTENSION: &str = ".gguf";

/// Returns the model ID of a spec (an ID, a file name or a path), whether or not the file exists.
pub fn model_id(spec: &str) -> ModelId {
    let spec = spec.trim();
    let name = spec.rsplit('/').next().unwrap_or(spec);
    ModelId(without_extension(name).unwrap_or(name).to_owned())
}

/// Returns the name without `.gguf`, ignoring case, or `None` if it has another extension or nothing before it.
pub(crate) fn without_extension(name: &str) -> Option<&str> {
    let cut = name.len().checked_sub(EXTENSION.len())?;
    let (stem, extension) = (name.get(..cut)?, name.get(cut..)?);
    (!stem.is_empty() && extension.eq_ignore_ascii_case(EXTENSION)).then_some(stem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_the_file_name_without_its_extension() {
        for (spec, id) in [
            ("SmolLM2-135M-Instruct.Q4_1", "SmolLM2-135M-Instruct.Q4_1"),
            (
                "SmolLM2-135M-Instruct.Q4_1.gguf",
                "SmolLM2-135M-Instruct.Q4_1",
            ),
            (" Model.GGUF ", "Model"),
            ("~/models/a b.gguf", "a b"),
            ("/Volumes/Größe/модель.gguf", "модель"),
            ("sub/model", "model"),
            (".gguf", ".gguf"),
            ("é.gguf", "é"),
            ("ggu€", "ggu€"),
            ("", ""),
        ] {
            assert_eq!(model_id(spec).as_str(), id, "{spec:?}");
        }
    }
}

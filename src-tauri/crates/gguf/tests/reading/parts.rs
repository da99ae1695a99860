//! Models in several files.

use crate::writer::{F32, Gguf};
use std::{
    fs::{self, File},
    path::PathBuf,
};
use tempfile::TempDir;
use tierbar_core::{Code, Error, ModelAccount};

/// The files of a model of 5 tensors in 3 parts, as the splitter writes them: keys in the first alone.
struct Split {
    folder: TempDir,
    parts: [Gguf; 3],
}

fn first() -> Gguf {
    // With the embeddings.
    Gguf::model("qwen3moe", 1).text("general.name", "Big")
}

impl Split {
    fn new() -> Self {
        let parts = [
            first().part(0, 3, 5),
            Gguf::empty()
                .part(1, 3, 5)
                .tensor("blk.0.attn_q.weight", &[10], F32, 40)
                .tensor("blk.0.ffn_up_exps.weight", &[11], F32, 44),
            Gguf::empty()
                .part(2, 3, 5)
                .tensor("output_norm.weight", &[12], F32, 48)
                .tensor("output.weight", &[13], F32, 52),
        ];
        Self {
            folder: tempfile::tempdir().unwrap(),
            parts,
        }
    }

    fn with(mut self, number: usize, part: Gguf) -> Self {
        self.parts[number - 1] = part;
        self
    }

    fn path(&self, number: usize) -> PathBuf {
        let name = format!("Big-Q4-0000{number}-of-00003.gguf");
        self.folder.path().join(name)
    }

    fn write(&self) {
        for (number, part) in (1..).zip(&self.parts) {
            part.write(&self.path(number));
        }
    }

    fn read(&self) -> Result<ModelAccount, Error> {
        self.write();
        tierbar_gguf::read(&self.path(1))
    }

    /// Refused, with the part of this number named.
    fn refused(&self, named: usize, text: &str) {
        let error = self.read().unwrap_err();
        assert_eq!(error.code, Code::ModelInvalid, "{error}");
        assert!(error.message.contains(text), "{error}");
        let path = self.path(named);
        assert!(error.message.contains(path.to_str().unwrap()), "{error}");
        assert!(error.hint.is_some());
    }
}

#[test]
fn the_parts_make_one_model() {
    let split = Split::new();
    let account = split.read().unwrap();
    assert_eq!(account.parts, 3);
    let bytes: u64 = split.parts.iter().map(Gguf::file_bytes).sum();
    assert_eq!(account.file_bytes, bytes);
    assert_eq!(account.embedding_bytes, 64 * 4 * 4);
    assert_eq!(account.dense_bytes, 40 + 48 + 52);
    assert_eq!(account.expert_bytes, 44);
    assert_eq!(account.parameters, 256 + 10 + 11 + 12 + 13);
    assert!(!account.tied_output, "the last part has the output layer");
    assert_eq!(account.name.as_deref(), Some("Big"));
}

#[test]
fn the_first_part_may_have_no_tensors() {
    let keys = Gguf::empty()
        .text("general.architecture", "llama")
        .number("llama.block_count", 1)
        .number("llama.context_length", 4096)
        .number("llama.embedding_length", 64)
        .text("tokenizer.ggml.model", "gpt2")
        .texts("tokenizer.ggml.tokens", &["a", "b", "", "ü"])
        .part(0, 3, 4);
    let renumbered = |part: &Gguf, number| {
        let mut tensors = Gguf::empty().part(number, 3, 4);
        tensors.take_tensors(part);
        tensors
    };
    let whole = Split::new();
    let split = Split::new()
        .with(1, keys.clone())
        .with(2, renumbered(&whole.parts[1], 1))
        .with(3, renumbered(&whole.parts[2], 2));
    assert_eq!(split.read().unwrap().parameters, 10 + 11 + 12 + 13);
    let alone = keys.read().unwrap();
    assert_eq!((alone.parts, alone.dense_bytes), (3, 0));
}

#[test]
fn the_first_part_gives_the_number_of_parts() {
    let account = Split::new().parts[0].read().unwrap();
    assert_eq!(account.parts, 3);
    assert_eq!(account.embedding_bytes, 64 * 4 * 4);
    assert_eq!((account.dense_bytes, account.expert_bytes), (0, 0));
}

#[test]
fn missing_parts_are_named() {
    let split = Split::new();
    split.write();
    fs::remove_file(split.path(2)).unwrap();
    let error = tierbar_gguf::read(&split.path(1)).unwrap_err();
    assert_eq!(error.code, Code::ModelMissing);
    assert!(
        error
            .message
            .ends_with("1 are missing: Big-Q4-00002-of-00003.gguf"),
        "{error}"
    );
    assert_eq!(error.details["missing_parts"], 1);

    let path = split.folder.path().join("Huge-00001-of-00009.gguf");
    first().part(0, 9, 5).write(&path);
    let error = tierbar_gguf::read(&path).unwrap_err();
    assert!(
        error.message.contains("8 are missing: Huge-00002"),
        "{error}"
    );
    assert!(
        error
            .message
            .ends_with("Huge-00004-of-00009.gguf and others"),
        "{error}"
    );
}

#[test]
fn only_the_first_part_is_accepted() {
    let split = Split::new();
    split.write();
    let of_stream = split.parts[1].read().unwrap_err();
    let of_file = tierbar_gguf::read(&split.path(2)).unwrap_err();
    for error in [of_stream, of_file] {
        assert_eq!(error.code, Code::ModelUnsupported);
        assert!(error.message.contains("it is part 2 of 3"), "{error}");
        let hint = error.hint.unwrap();
        assert!(hint.contains("NAME-00001-of-00003.gguf"), "{hint}");
    }
}

#[test]
fn a_first_part_must_be_named_as_one() {
    let split = Split::new();
    split.write();
    for name in [
        "renamed.gguf",
        "Big-Q4-00001-of-00004.gguf",
        "Big-Q4-00002-of-00003.gguf",
    ] {
        let path = split.folder.path().join(name);
        fs::copy(split.path(1), &path).unwrap();
        let error = tierbar_gguf::read(&path).unwrap_err();
        assert_eq!(error.code, Code::ModelUnsupported, "{error}");
        assert!(
            error
                .message
                .contains("its name is not NAME-00001-of-00003.gguf"),
            "{error}"
        );
    }
}

#[test]
fn a_complete_model_may_be_named_like_a_part() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("Big-00001-of-00003.gguf");
    for file in [first(), first().part(0, 0, 1), first().part(0, 1, 1)] {
        file.write(&path);
        assert_eq!(tierbar_gguf::read(&path).unwrap().parts, 1);
    }
}

#[test]
fn parts_of_different_models_are_refused() {
    let tensor = |file: Gguf, name: &str| file.tensor(name, &[10], F32, 40);
    let two = |file: Gguf| tensor(tensor(file, "a"), "b");
    let part = |number, count, tensors| two(Gguf::empty().part(number, count, tensors));
    Split::new()
        .with(2, part(2, 3, 5))
        .refused(2, "it is part 3 of 3 of a model, not part 2 of 3");
    Split::new()
        .with(3, part(2, 4, 5))
        .refused(3, "it is part 3 of 4 of a model, not part 3 of 3");
    Split::new()
        .with(2, part(1, 3, 6))
        .refused(2, "to a model of 6 tensors, the first part to one of 5");
    Split::new()
        .with(2, two(Gguf::empty()))
        .refused(2, "it is a complete model");
    Split::new()
        .with(2, part(1, 3, 5).text("general.architecture", "llama"))
        .refused(2, "another general.architecture");
    Split::new()
        .with(2, part(1, 3, 5).text("general.name", "Small"))
        .refused(2, "another general.name");
    Split::new()
        .with(2, part(1, 3, 5).text("general.name", "Big"))
        .read()
        .unwrap();
    Split::new()
        .with(
            3,
            tensor(
                tensor(Gguf::empty().part(2, 3, 5), "c"),
                "blk.0.attn_q.weight",
            ),
        )
        .refused(3, "blk.0.attn_q.weight is in two of them");
    Split::new()
        .with(3, tensor(part(2, 3, 5), "c"))
        .refused(3, "more tensors than the model's 5");
    Split::new()
        .with(3, tensor(Gguf::empty().part(2, 3, 5), "c"))
        .refused(1, "4 tensors of the model's 5");
}

#[test]
fn a_truncated_or_foreign_part_is_named() {
    let split = Split::new();
    split.write();
    let length = split.parts[2].file_bytes();
    let file = File::options().write(true).open(split.path(3)).unwrap();
    file.set_len(length - 9).unwrap();
    let error = tierbar_gguf::read(&split.path(1)).unwrap_err();
    assert_eq!(error.details["missing_bytes"], 9);
    assert!(error.message.contains("00003-of-00003"), "{error}");
    fs::write(split.path(3), "<html>").unwrap();
    let error = tierbar_gguf::read(&split.path(1)).unwrap_err();
    assert!(error.message.contains("it is not a GGUF file"), "{error}");
    assert!(error.message.contains("00003-of-00003"), "{error}");
}

#[test]
fn impossible_part_numbers_are_refused() {
    let refused = |file: Gguf, text: &str| {
        let error = file.read().unwrap_err();
        assert_eq!(error.code, Code::ModelInvalid);
        assert!(error.message.contains(text), "{error}");
    };
    refused(first().part(3, 3, 5), "without its number");
    refused(first().part(0, 3, -1), "without the number of tensors");
    refused(first().part(0, 3, 0), "without the number of tensors");
    refused(
        first().part(0, 3, i32::MAX),
        "without the number of tensors",
    );
    refused(first().number("split.count", 3), "without its number");
    refused(
        first().number("split.count", 100_000),
        "one of 100000 parts",
    );
    refused(first().text("split.count", "3"), "is not a number");
}

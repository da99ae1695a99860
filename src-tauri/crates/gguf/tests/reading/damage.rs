//! Files that are cut, damaged, foreign, or made to hurt.

use crate::writer::{F32, Gguf, Q4_K};
use proptest::prelude::*;
use std::{
    fs,
    io::{self, BufReader, Read},
};
use tierbar_core::{Code, Error};

fn sound() -> Gguf {
    Gguf::model("gemma3", 6)
        .text("general.name", "Sound")
        .number("gemma3.attention.head_count", 4)
        .numbers("gemma3.attention.head_count_kv", &[1; 6])
        .number("gemma3.attention.sliding_window", 512)
        .bools(
            "gemma3.attention.sliding_window_pattern",
            &[true, true, true, true, true, false],
        )
        .text("tokenizer.chat_template", "{{ messages }}")
        .tensor("blk.0.ffn_up.weight", &[256, 4], Q4_K, 4 * 144)
        .tensor("output_norm.weight", &[5], F32, 20)
}

fn read(bytes: &[u8], total: u64) -> Result<tierbar_core::ModelAccount, Error> {
    tierbar_gguf::read_from(bytes, total, "test.gguf")
}

fn refused(file: &Gguf, code: Code, part: &str) {
    let error = file.read().unwrap_err();
    assert_eq!(error.code, code, "{error}");
    assert!(error.message.contains(part), "{error}");
    assert!(error.message.contains("test.gguf"), "{error}");
    assert!(error.hint.is_some(), "{error}");
}

/// The sound file with `bytes` written over it at the first place where `at` stands.
fn patched(at: &[u8], offset: usize, bytes: &[u8]) -> Vec<u8> {
    let mut file = sound().header();
    let place = file
        .windows(at.len())
        .position(|window| window == at)
        .unwrap()
        + offset;
    file[place..place + bytes.len()].copy_from_slice(bytes);
    file
}

#[test]
fn versions_2_and_3_are_read_alike() {
    let mut second = sound();
    second.version = 2;
    assert_eq!(second.read(), sound().read());
    assert_eq!(sound().read().unwrap().kv.sliding_elements_per_cell, 5 * 32);
}

#[test]
fn other_versions_are_refused_with_a_hint() {
    let with = |version| {
        let mut file = sound();
        file.version = version;
        file
    };
    refused(&with(1), Code::ModelUnsupported, "GGUF version 1");
    refused(&with(4), Code::ModelUnsupported, "GGUF version 4");
    refused(
        &with(3u32.swap_bytes()),
        Code::ModelUnsupported,
        "big-endian",
    );
    refused(&with(0), Code::ModelInvalid, "version is 0");
}

#[test]
fn any_truncation_is_an_incomplete_download() {
    let (header, total) = (sound().header(), sound().file_bytes());
    let mut whole = header.clone();
    whole.resize(usize::try_from(total).unwrap(), 0x11);
    read(&whole, total).unwrap();
    for cut in 1..whole.len() {
        let error = read(&whole[..cut], cut as u64).unwrap_err();
        assert_eq!(error.code, Code::ModelInvalid, "{cut}: {error}");
        assert!(
            error.message.contains("the file is incomplete"),
            "{cut}: {error}"
        );
        let missing = error.details["missing_bytes"].as_u64().unwrap();
        assert!(missing <= total - cut as u64, "{cut}: {error}");
        if cut >= header.len() {
            assert_eq!(missing, total - cut as u64);
            assert_eq!(error.details["expected_bytes"], total);
        }
    }
    assert!(read(&[], 0).unwrap_err().message.contains("it is empty"));
}

#[test]
fn a_file_that_shrinks_while_read_is_reported() {
    let header = sound().header();
    // Without its last few bytes, which are padding.
    for step in 1..=61 {
        let cut = header.len() * step / 64;
        let error = read(&header[..cut], sound().file_bytes()).unwrap_err();
        assert!(error.message.contains("the file is incomplete"), "{error}");
    }
}

#[test]
fn other_formats_are_named_by_their_first_bytes() {
    for (bytes, part) in [
        (&b"<!DOCTYPE html>"[..], "begins with \"<!DO\""),
        (
            b"version https://git-lfs.github.com/spec/v1",
            "begins with \"vers\"",
        ),
        (b"\x00\xff\x1b[", "begins with"),
        (b"GG", "incomplete"),
        (b"GX", "begins with \"GX\""),
    ] {
        let error = read(bytes, bytes.len() as u64).unwrap_err();
        assert_eq!(error.code, Code::ModelInvalid);
        assert!(error.message.contains(part), "{error}");
        assert!(!error.message.contains('\u{1b}'), "{error:?}");
    }
}

#[test]
fn other_kinds_of_gguf_are_refused() {
    refused(
        &sound().text("general.type", "adapter"),
        Code::ModelUnsupported,
        "\"adapter\"",
    );
    sound().text("general.type", "model").read().unwrap();
    refused(
        &Gguf::model("clip", 2),
        Code::ModelUnsupported,
        "media projector",
    );
}

#[test]
fn an_unknown_tensor_type_is_named() {
    let with = |kind| sound().tensor("new.weight", &[256], kind, 0);
    refused(
        &with(4711),
        Code::ModelUnsupported,
        "new.weight has tensor type 4711",
    );
    refused(&with(31), Code::ModelUnsupported, "removed from GGUF");
}

#[test]
fn missing_required_keys_are_refused() {
    refused(&Gguf::empty(), Code::ModelInvalid, "names no architecture");
    refused(
        &Gguf::empty().number("general.architecture", 7),
        Code::ModelInvalid,
        "names no architecture",
    );
    refused(
        &Gguf::empty().text("general.architecture", "llama"),
        Code::ModelInvalid,
        "no tensors",
    );
    let bare = Gguf::empty()
        .text("general.architecture", "llama")
        .tensor("a", &[1], F32, 4);
    refused(&bare, Code::ModelInvalid, "no llama.block_count");
    refused(
        &Gguf::model("llama", 0),
        Code::ModelInvalid,
        "claims 0 layers",
    );
    refused(
        &Gguf::model("llama", 513),
        Code::ModelInvalid,
        "claims 513 layers",
    );
    let ahead = Gguf::model("llama", 2).number("llama.nextn_predict_layers", 2);
    refused(&ahead, Code::ModelInvalid, "only layers that predict");
}

#[test]
fn values_of_the_wrong_kind_are_refused() {
    refused(
        &Gguf::model("llama", 1).text("llama.attention.head_count", "4"),
        Code::ModelInvalid,
        "is not a number",
    );
    let negative =
        Gguf::model("llama", 1).pair("llama.attention.head_count", 5, &(-4i32).to_le_bytes());
    refused(
        &negative,
        Code::ModelInvalid,
        "is -4, which is out of range",
    );
    refused(
        &sound().pair("odd", 13, &[0; 8]),
        Code::ModelInvalid,
        "odd in its header has a value of an unknown type (13)",
    );
    refused(
        &sound().array("odd", 9, 0, &[]),
        Code::ModelInvalid,
        "an array of an unknown type (9)",
    );
}

#[test]
fn duplicates_are_refused() {
    refused(
        &sound().text("general.name", "Again"),
        Code::ModelInvalid,
        "the key general.name twice",
    );
    refused(
        &sound().tensor("output_norm.weight", &[1], F32, 4),
        Code::ModelInvalid,
        "output_norm.weight twice",
    );
}

#[test]
fn valid_alignments_are_used_and_others_refused() {
    let mut wide = sound().number("general.alignment", 4096);
    wide.alignment = 4096;
    wide.read().unwrap();
    refused(
        &sound().number("general.alignment", 48),
        Code::ModelInvalid,
        "power of two",
    );
    refused(
        &sound().number("general.alignment", 0),
        Code::ModelInvalid,
        "power of two",
    );
    refused(
        &sound().text("general.alignment", "32"),
        Code::ModelInvalid,
        "power of two",
    );
}

#[test]
fn impossible_tensors_are_refused() {
    refused(
        &sound().tensor("t", &[100, 2], Q4_K, 0),
        Code::ModelInvalid,
        "rows of 100 elements",
    );
    refused(
        &sound().tensor("t", &[1; 5], F32, 4),
        Code::ModelInvalid,
        "5 dimensions",
    );
    refused(
        &sound().tensor("t", &[1 << 40, 1 << 40], F32, 0),
        Code::ModelInvalid,
        "impossible shape",
    );
    refused(
        &sound().tensor(&"n".repeat(64), &[1], F32, 4),
        Code::ModelInvalid,
        "64 bytes, more than 63",
    );
    // Not where the one before it ends.
    let error = read(
        &patched(b"output_norm.weight", 18 + 4 + 8 + 4, &[1]),
        sound().file_bytes(),
    )
    .unwrap_err();
    assert!(
        error.message.contains("output_norm.weight lies at"),
        "{error}"
    );
}

#[test]
fn lengths_and_counts_beyond_the_file_allocate_nothing() {
    let huge = u64::MAX.to_le_bytes();
    let (file, total) = (sound().header(), sound().file_bytes());
    let with_counts = |at: usize, count: u64| {
        let mut file = file.clone();
        file[at..at + 8].copy_from_slice(&count.to_le_bytes());
        read(&file, total).unwrap_err()
    };
    for at in [8, 16] {
        assert!(
            with_counts(at, u64::MAX)
                .message
                .contains("its header claims")
        );
        // Below the cap, but more than the file can hold.
        assert!(
            with_counts(at, 4000)
                .message
                .contains("the file is incomplete")
        );
    }
    for (at, offset) in [
        (&b"general.architecture"[..], 20 + 4),
        (b"tokenizer.ggml.tokens", 21 + 4 + 4),
        (b"tokenizer.chat_template", 23 + 4),
    ] {
        let error = read(&patched(at, offset, &huge), total).unwrap_err();
        assert_eq!(error.code, Code::ModelInvalid);
        assert!(
            error.message.contains("claims 18446744073709551615"),
            "{error}"
        );
    }
    // A gibibyte is possible, but not in this file.
    let gibibyte = (1u64 << 30).to_le_bytes();
    for (at, offset) in [
        (&b"general.architecture"[..], 20 + 4),
        (b"tokenizer.chat_template", 23 + 4),
    ] {
        let error = read(&patched(at, offset, &gibibyte), total).unwrap_err();
        assert!(error.message.contains("the file is incomplete"), "{error}");
    }
}

#[test]
fn endless_lists_are_not_kept() {
    let with = |lists: usize| {
        (0..lists).fold(sound(), |file, list| {
            file.array(&format!("list.{list}"), 0, 512, &[0; 512])
        })
    };
    assert!(with(200).read().is_ok());
    let error = with(300).read().unwrap_err();
    assert!(
        error.message.contains("more than 256 lists of numbers"),
        "{error}"
    );
}

#[test]
fn a_path_that_is_not_a_file_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    for path in [
        folder.path().to_owned(),
        folder.path().join("none.gguf"),
        "/dev/null".into(),
    ] {
        let error = tierbar_gguf::read(&path).unwrap_err();
        assert_eq!(error.code, Code::ModelMissing);
        assert!(error.message.contains(path.to_str().unwrap()), "{error}");
    }
    let path = folder.path().join("some.gguf");
    fs::write(&path, "no model").unwrap();
    assert_eq!(
        tierbar_gguf::read(&path).unwrap_err().code,
        Code::ModelInvalid
    );
}

#[test]
fn a_read_error_does_not_blame_the_model() {
    struct Failing;
    impl Read for Failing {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("the volume was removed"))
        }
    }
    let header = sound().header();
    let source = header[..100].chain(BufReader::new(Failing));
    let error = tierbar_gguf::read_from(source, 10_000, "m").unwrap_err();
    assert_eq!(error.code, Code::Storage);
    assert!(error.message.contains("the volume was removed"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, ..ProptestConfig::default() })]

    #[test]
    fn changed_bytes_never_panic_and_never_claim_more_than_the_file(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut file = sound().header();
        for (place, byte) in changes {
            let place = place.index(file.len());
            file[place] = byte;
        }
        if let Some(cut) = cut {
            file.truncate(cut.index(file.len()));
        }
        let total = sound().file_bytes().min(file.len() as u64 + 4096);
        if let Ok(account) = read(&file, total) {
            let classes = [
                account.dense_bytes,
                account.embedding_bytes,
                account.per_layer_embedding_bytes,
                account.expert_bytes,
            ];
            prop_assert!(classes.iter().sum::<u64>() <= account.file_bytes);
        }
    }

    #[test]
    fn any_bytes_behind_the_magic_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..256), total in any::<u64>()) {
        let file = [b"GGUF\x03\0\0\0", &bytes[..]].concat();
        let _ = read(&file, file.len() as u64);
        let _ = read(&file, total);
    }
}

//! Headers that lie about themselves by one or by much: every count, length, size and place in turn.

use crate::writer::{F32, Gguf};
use tierbar_core::{Code, Error, ModelAccount};

fn sound() -> Gguf {
    Gguf::model("llama", 1)
        .text("general.name", "Sound")
        .numbers("llama.feed_forward_length", &[7])
        .tensor("blk.0.ffn_up.weight", &[8, 8], F32, 256)
        .tensor("output_norm.weight", &[64], F32, 256)
}

/// As if all of its data lay behind the header.
fn read(header: &[u8]) -> Result<ModelAccount, Error> {
    tierbar_gguf::read_from(header, sound().file_bytes(), "test.gguf")
}

/// The sound header with another number of `N` bytes where the first `mark` ends, `offset` further.
fn with<const N: usize>(
    mark: &[u8],
    offset: usize,
    change: impl Fn([u8; N]) -> [u8; N],
) -> Vec<u8> {
    let mut header = sound().header();
    let found = header.windows(mark.len()).position(|window| window == mark);
    let at = found.unwrap() + mark.len() + offset;
    let number: [u8; N] = header[at..at + N].try_into().unwrap();
    header[at..at + N].copy_from_slice(&change(number));
    header
}

/// By how much numbers lie.
const LIES: [u64; 8] = [1, 2, u64::MAX, 7, 1 << 31, 1 << 32, 1 << 62, 1 << 63];

#[test]
fn false_counts_and_lengths_are_refused() {
    read(&sound().header()).unwrap();
    for (what, mark, offset) in [
        ("tensors", &b"GGUF\x03\0\0\0"[..], 0),
        ("pairs", b"GGUF\x03\0\0\0", 8),
        ("a key's length", b"GGUF\x03\0\0\0", 16),
        ("a text's length", b"general.architecture", 4),
        ("a list's length", b"llama.feed_forward_length", 8),
        ("a list's first string", b"tokenizer.ggml.tokens", 16),
        ("a list of strings", b"tokenizer.ggml.tokens", 8),
        ("a name's length", b"llama.feed_forward_length", 8 + 8 + 4),
    ] {
        for lie in LIES {
            // With the last tensor left out, what describes it may be padding.
            if (what, lie) == ("tensors", u64::MAX) {
                continue;
            }
            let file = with(mark, offset, |n| {
                u64::from_le_bytes(n).wrapping_add(lie).to_le_bytes()
            });
            let error = read(&file).expect_err(what);
            assert_eq!(error.code, Code::ModelInvalid, "{what}, {lie}: {error}");
            assert!(error.hint.is_some(), "{what}, {lie}: {error}");
        }
    }
}

#[test]
fn false_tensor_sizes_and_offsets_are_refused() {
    let name = b"blk.0.ffn_up.weight";
    // Behind the name: dimensions (4), two sizes (8 each), type (4), offset (8).
    for (what, offset) in [("columns", 4), ("rows", 12), ("place", 24)] {
        for lie in LIES {
            let file = with(name, offset, |n| {
                u64::from_le_bytes(n).wrapping_add(lie).to_le_bytes()
            });
            let error = read(&file).expect_err(what);
            assert_eq!(error.code, Code::ModelInvalid, "{what}, {lie}: {error}");
        }
    }
    for dimensions in [0u32, 1, 3, 4, 5, u32::MAX] {
        read(&with(name, 0, |_| dimensions.to_le_bytes())).unwrap_err();
    }
    for (part, shape, bytes) in [
        ("impossible shape", &[0][..], 0),
        ("impossible shape", &[4, 0], 0),
        ("impossible shape", &[1 << 63], 0),
        ("impossible shape", &[1 << 32, 1 << 32], 0),
        ("lies at", &[8], 0),
    ] {
        let error = sound()
            .tensor("t", shape, F32, bytes)
            .tensor("u", &[1], F32, 4)
            .read()
            .unwrap_err();
        assert!(error.message.contains(part), "{shape:?}: {error}");
    }
    // Each place is right, but the last tensor's data is not all there.
    let error = sound().tensor("t", &[1 << 40], F32, 0).read().unwrap_err();
    assert!(error.message.contains("the file is incomplete"), "{error}");
    let error = sound()
        .tensor("t", &[1 << 60], F32, 1 << 62)
        .tensor("u", &[1 << 60], F32, 1 << 62)
        .tensor("v", &[1 << 61], F32, 0)
        .read()
        .unwrap_err();
    assert!(error.message.contains("larger than any file"), "{error}");
}

#[test]
fn alignments_beyond_the_file_are_refused() {
    for (kind, alignment) in [
        (4, 1u64 << 31),
        (10, 1 << 32),
        (10, 1 << 63),
        (10, 0),
        (10, 33),
    ] {
        let value = alignment.to_le_bytes();
        let value = if kind == 4 { &value[..4] } else { &value };
        let header = sound().pair("general.alignment", kind, value).header();
        let error =
            tierbar_gguf::read_from(&header[..], sound().file_bytes() + 64, "m").unwrap_err();
        assert_eq!(error.code, Code::ModelInvalid, "{alignment}: {error}");
    }
}

#[test]
fn names_that_are_not_utf8_are_refused() {
    for name in ["a\0", "\u{1b}[31m", "new\nline"] {
        let error = sound().tensor(name, &[1], F32, 4).read().unwrap_err();
        assert!(
            error
                .message
                .contains("a tensor's name in its header is not valid UTF-8"),
            "{error}"
        );
        let error = sound().number(name, 1).read().unwrap_err();
        assert!(
            error
                .message
                .contains("a key in its header is not valid UTF-8"),
            "{error}"
        );
    }
    let error = sound().pair("", 0, &[0]).read().unwrap_err();
    assert!(
        error.message.contains("a key in its header is empty"),
        "{error}"
    );
}

#[test]
fn lists_of_lists_are_refused() {
    let inner = [&4u32.to_le_bytes()[..], &1u64.to_le_bytes(), &[0; 4]].concat();
    let error = sound().array("nested", 9, 1, &inner).read().unwrap_err();
    assert!(
        error.message.contains("array of an unknown type (9)"),
        "{error}"
    );
}

#[test]
fn a_string_too_long_for_any_list_is_not_read() {
    let with = |length: usize| sound().texts("tokenizer.ggml.merges", &[&"m".repeat(length)]);
    with(1 << 20).read().unwrap();
    let error = with((1 << 20) + 1).read().unwrap_err();
    assert!(
        error.message.contains("1048577 bytes, more than 1048576"),
        "{error}"
    );
}

#[test]
fn a_wrong_sampling_value_leaves_the_others() {
    let float = |file: Gguf, key: &str, number: f32| {
        file.pair(&format!("general.sampling.{key}"), 6, &number.to_le_bytes())
    };
    let file = [
        ("temp", f32::NAN),
        ("top_p", 0.95),
        ("min_p", 7.0),
        ("penalty_repeat", 1.1),
    ];
    let file = file
        .into_iter()
        .fold(sound(), |file, (key, number)| float(file, key, number))
        .pair("general.sampling.top_k", 5, &64_i32.to_le_bytes());
    let sampling = file.read().unwrap().sampling;
    assert_eq!(
        (sampling.temperature, sampling.top_p, sampling.min_p),
        (None, Some(0.95), None)
    );
    assert_eq!(
        (sampling.top_k, sampling.repeat_penalty),
        (Some(64), Some(1.1))
    );
}

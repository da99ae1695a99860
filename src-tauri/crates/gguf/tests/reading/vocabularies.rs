//! Vocabularies that llama.cpp aborts on while it loads them, or at some text later.

use crate::{
    aborts::refused,
    writer::{F32, Gguf},
};
use tierbar_core::{Code, Error};

fn llama() -> Gguf {
    Gguf::model("llama", 2)
}

fn with_words(tokenizer: &str, words: &[&str]) -> Gguf {
    Gguf::with_vocabulary("llama", 1, tokenizer, words)
}

#[test]
fn embeddings_for_another_vocabulary_are_refused() {
    let with = |shape: &[u64]| {
        let bytes = shape.iter().product::<u64>() * 4;
        Gguf::empty()
            .text("general.architecture", "llama")
            .number("llama.block_count", 1)
            .number("llama.context_length", 4096)
            .number("llama.embedding_length", 64)
            .text("tokenizer.ggml.model", "gpt2")
            .texts("tokenizer.ggml.tokens", &["a", "b", "c"])
            .tensor("token_embd.weight", shape, F32, bytes)
    };
    with(&[64, 3]).read().unwrap();
    for shape in [&[64, 2][..], &[64, 4], &[32, 6], &[192], &[64, 3, 2]] {
        refused("embeddings", &with(shape), "for 3 tokens of 64");
    }
}

#[test]
fn duplicate_tokens_are_refused() {
    refused("twice", &with_words("gpt2", &["a", "b", "a"]), "two tokens");
    // llama.cpp gives names to those without.
    with_words("gpt2", &["", "", "a"]).read().unwrap();
    refused(
        "named",
        &with_words("gpt2", &["", "[EMPTY_0]"]),
        "two tokens",
    );
}

#[test]
fn lists_that_disagree_with_the_vocabulary_are_refused() {
    let zeros = [0; 16];
    for (key, element) in [
        ("tokenizer.ggml.token_type", 5),
        ("tokenizer.ggml.scores", 6),
    ] {
        llama().array(key, element, 4, &zeros).read().unwrap();
        let short = llama().array(key, element, 3, &zeros[..12]);
        refused(key, &short, "has 3 values for 4 tokens");
        refused(
            key,
            &llama().array(key, 0, 4, &zeros[..4]),
            "is not a valid list",
        );
        refused(key, &llama().number(key, 4), "is not a valid list");
    }
    refused(
        "merges",
        &llama().numbers("tokenizer.ggml.merges", &[1]),
        "is not a valid list",
    );
    let many = llama().array("tokenizer.ggml.token_type", 5, 1 << 22, &[]);
    let error = tierbar_gguf::read_from(&many.header()[..], 1 << 40, "m").unwrap_err();
    assert!(
        error.message.contains("a vocabulary of 4194304 tokens"),
        "{error}"
    );
    for tokens in [
        Gguf::empty(),
        Gguf::empty().texts("tokenizer.ggml.tokens", &[]),
    ] {
        let file = tokens
            .text("general.architecture", "llama")
            .number("llama.block_count", 1)
            .number("llama.context_length", 4096)
            .number("llama.embedding_length", 64)
            .text("tokenizer.ggml.model", "gpt2")
            .tensor("output_norm.weight", &[64], F32, 256);
        refused("no tokens", &file, "no vocabulary");
    }
}

#[test]
fn a_tokenizer_must_have_every_byte() {
    let named: Vec<String> = (0..=255)
        .map(|byte: u8| format!("<0x{byte:02X}>"))
        .collect();
    let escaped: Vec<String> = (0..=255).map(|byte: u8| format!("\\x{byte:02x}")).collect();
    for (tokenizer, words) in [("llama", named), ("rwkv", escaped)] {
        let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
        with_words(tokenizer, &words).read().unwrap();
        // Bytes that stand in no text.
        (words[0xC0], words[0xFF]) = ("x", "y");
        with_words(tokenizer, &words).read().unwrap();
        let without = std::mem::replace(&mut words[usize::from(b'\n')], "no newline");
        refused(
            tokenizer,
            &with_words(tokenizer, &words),
            "no token for the byte 0x0A",
        );
        words[usize::from(b'\n')] = "\n";
        with_words(tokenizer, &words).read().unwrap();
        words[usize::from(b'\n')] = without;
        words[0xE2] = "z";
        refused(
            tokenizer,
            &with_words(tokenizer, &words),
            "no token for the byte 0xE2",
        );
    }
}

#[test]
fn invalid_byte_tokens_are_refused() {
    let types = |of_second: u8| {
        with_words("gpt2", &["<0x41>", "B"]).array(
            "tokenizer.ggml.token_type",
            5,
            2,
            &[6, 0, 0, 0, of_second, 0, 0, 0],
        )
    };
    types(1).read().unwrap();
    refused("short", &types(6), "its byte token 1");
}

#[test]
fn tokens_added_to_a_text_must_exist() {
    let many: Vec<String> = (0..120).map(|number| format!("w{number}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let adding = |tokenizer: &str, words: &[&str], switch: &str| {
        with_words(tokenizer, words).pair(&format!("tokenizer.ggml.{switch}"), 7, &[1])
    };
    // The 12th, unless the file names others.
    adding("gpt2", &many, "add_bos_token").read().unwrap();
    let few = adding("gpt2", &many[..11], "add_bos_token");
    refused("bos", &few, "uses a token (bos)");
    few.clone()
        .number("tokenizer.ggml.bos_token_id", 10)
        .read()
        .unwrap();
    refused(
        "bos",
        &few.number("tokenizer.ggml.bos_token_id", 11),
        "uses a token (bos)",
    );
    refused(
        "eos",
        &adding("gpt2", &many[..11], "add_eos_token"),
        "uses a token (eos)",
    );
    refused(
        "t5",
        &adding("t5", &many, "add_bos_token"),
        "uses a token (bos)",
    );
    with_words("bert", &many).read().unwrap();
    refused(
        "bert",
        &with_words("bert", &many[..102]),
        "uses a token (seperator)",
    );
    refused(
        "bert",
        &with_words("bert", &many[..101]),
        "uses a token (bos)",
    );
    let bytes = with_words("bert", &many).array(
        "tokenizer.ggml.token_type",
        5,
        120,
        &[6, 0, 0, 0].repeat(120),
    );
    refused("bert's bytes", &bytes, "has byte tokens");
}

#[test]
fn missing_and_unknown_tokenizers_are_unsupported() {
    for (tokenizer, part) in [
        ("none", "it has no tokenizer"),
        ("no_vocab", "it has no tokenizer"),
        ("test", "its tokenizer \"test\" is not"),
        ("x\u{1b}[", "its tokenizer \"x\\u{1b}[\" is not"),
    ] {
        let error: Error = with_words(tokenizer, &["a"]).read().unwrap_err();
        assert_eq!(error.code, Code::ModelUnsupported, "{error}");
        assert!(error.message.contains(part), "{error}");
    }
    let spaces = |tokenizer| with_words(tokenizer, &["a"]).text("tokenizer.ggml.pre", "whitespace");
    spaces("whitespace").read().unwrap();
    refused(
        "spaces",
        &spaces("gpt2"),
        "tokenizer.ggml.pre is not for its tokenizer",
    );
    refused(
        "no spaces",
        &with_words("whitespace", &["a"]),
        "tokenizer.ggml.pre",
    );
}

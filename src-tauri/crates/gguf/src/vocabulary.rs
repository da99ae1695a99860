//! What llama.cpp demands of a vocabulary, noticed while its words pass by: none of them is kept.
//!
//! From `llama-vocab.cpp`: it aborts where two tokens are the same (`load`), and throws, where nothing catches it, on
//! a byte that no token stands for (`byte_to_token`) and a byte token too short to name its byte (`token_to_byte`).

use crate::{
    fault::{Fault, invalid, unsupported},
    header::{Array, HeaderValue, kind},
    keys::HeaderKeys,
    source::HeaderReader,
};
use std::{
    collections::BTreeSet,
    hash::{BuildHasher, RandomState},
    io::BufRead,
};

pub(crate) const TOKENS: &str = "tokenizer.ggml.tokens";
pub(crate) const TYPES: &str = "tokenizer.ggml.token_type";

/// The largest vocabularies have 262,144; a larger number than this is damage.
const MAX_TOKENS: u64 = 1 << 20;
/// `LLAMA_TOKEN_TYPE_BYTE`
const BYTE: i32 = 6;
/// What `<0x` takes, behind which llama.cpp reads a byte token's number.
const BYTE_PREFIX: usize = 3;

#[derive(Debug, Default)]
pub(crate) struct Vocabulary {
    /// Two tokens are the same.
    twice: bool,
    /// The bytes that a token stands for.
    bytes: BTreeSet<u8>,
    /// Tokens too short to name a byte, and those that claim to; by number.
    short: Vec<u32>,
    byte_typed: Vec<u32>,
}

impl Vocabulary {
    pub(crate) fn read_tokens<R: BufRead>(
        &mut self,
        source: &mut HeaderReader<R>,
        count: u64,
    ) -> Result<(), Fault> {
        check_token_count(count)?;
        // By hashes of 64 bits with a random key: of 262,144 tokens, two meet by chance once in 500 million files.
        let keyed = RandomState::new();
        let mut hashes = Vec::new();
        let mut number = 0u32;
        source.strings(count, |text| {
            hashes.push(match text {
                // As llama.cpp names it.
                [] => keyed.hash_one(format!("[EMPTY_{number}]").as_bytes()),
                text => keyed.hash_one(text),
            });
            self.bytes.extend(only_byte(text));
            if (1..BYTE_PREFIX).contains(&text.len()) {
                self.short.push(number);
            }
            number += 1;
        })?;
        hashes.sort_unstable();
        self.twice = hashes.windows(2).any(|pair| pair[0] == pair[1]);
        Ok(())
    }

    pub(crate) fn read_types<R: BufRead>(
        &mut self,
        source: &mut HeaderReader<R>,
        count: u64,
    ) -> Result<(), Fault> {
        check_token_count(count)?;
        for number in (0u32..).take(usize::try_from(count).unwrap_or(usize::MAX)) {
            if i32::from_le_bytes(source.array()?) == BYTE {
                self.byte_typed.push(number);
            }
        }
        Ok(())
    }

    /// Whether llama.cpp can make a tokenizer of it, and use it for any text.
    pub(crate) fn check(&self, keys: &HeaderKeys) -> Result<(), Fault> {
        let Some(tokenizer) = keys.text("tokenizer.ggml.model") else {
            return invalid("its header names no tokenizer (tokenizer.ggml.model)");
        };
        if matches!(tokenizer, "none" | "no_vocab") {
            return unsupported(
                "it has no tokenizer; it is an auxiliary model",
                "choose a text model",
            );
        }
        let Some(tokens) = list_length(keys, TOKENS, &[kind::STRING])?.filter(|&tokens| tokens > 0)
        else {
            return invalid("its header has no vocabulary");
        };
        for (key, elements) in [
            (TYPES, &[kind::I32][..]),
            ("tokenizer.ggml.scores", &[kind::F32, kind::I32]),
        ] {
            if let Some(length) = list_length(keys, key, elements)?
                && length < tokens
            {
                return invalid(format!("its {key} has {length} values for {tokens} tokens"));
            }
        }
        list_length(keys, "tokenizer.ggml.merges", &[kind::STRING])?;
        if self.twice {
            return invalid("two tokens of its vocabulary are identical");
        }
        check_special_tokens(keys, tokenizer, tokens)?;
        if tokenizer == "bert" && !self.byte_typed.is_empty() {
            return invalid("its vocabulary has byte tokens, which its tokenizer does not use");
        }
        // One would throw at a byte that no token stands for, the other never end.
        if matches!(tokenizer, "llama" | "rwkv")
            && let Some(byte) =
                (1..=u8::MAX).find(|&byte| in_text(byte) && !self.bytes.contains(&byte))
        {
            return invalid(format!(
                "its vocabulary has no token for the byte 0x{byte:02X}"
            ));
        }
        let short = self
            .byte_typed
            .iter()
            .find(|number| self.short.binary_search(number).is_ok());
        if let Some(number) = short {
            return invalid(format!("its byte token {number} has no value"));
        }
        Ok(())
    }
}

/// Whether there is a token for the beginning and one for the end where the tokenizer puts them.
fn check_special_tokens(keys: &HeaderKeys, tokenizer: &str, tokens: u64) -> Result<(), Fault> {
    // Tokens of this tokenizer unless the file names others, and whether it puts them.
    let (begin, end, begins, ends) = match tokenizer {
        "llama" => (Some(1), Some(2), true, false),
        // Both always, its end being the separator.
        "bert" => (Some(101), Some(102), true, true),
        "t5" => (None, Some(1), false, true),
        "plamo2" => (Some(1), Some(2), false, false),
        "gemma4" => (None, None, true, false),
        "rwkv" => (None, None, false, false),
        "gpt2" | "hybriddna" | "whitespace" => (Some(11), Some(11), false, false),
        other => {
            let shown = other.escape_default();
            return unsupported(
                format!("its tokenizer \"{shown}\" is not supported"),
                "update Tierbar, or choose another model",
            );
        }
    };
    // What it takes a text apart by must be its own.
    if (tokenizer == "whitespace") != (keys.text("tokenizer.ggml.pre") == Some("whitespace")) {
        return invalid("its tokenizer.ggml.pre is not for its tokenizer");
    }
    let end_key = if tokenizer == "bert" {
        "seperator"
    } else {
        "eos"
    };
    for (name, default, put, switch) in [
        ("bos", begin, begins, "tokenizer.ggml.add_bos_token"),
        (end_key, end, ends, "tokenizer.ggml.add_eos_token"),
    ] {
        let put = match keys.get(switch) {
            Some(HeaderValue::Bool(put)) if tokenizer != "bert" => *put,
            _ => put,
        };
        let there = |id: i128| (0..i128::from(tokens)).contains(&id);
        let named = match keys.get(&format!("tokenizer.ggml.{name}_token_id")) {
            Some(HeaderValue::Integer(id)) => there(*id),
            _ => false,
        };
        if put && !named && !default.is_some_and(there) {
            return invalid(format!(
                "its tokenizer uses a token ({name}) that is not in its vocabulary"
            ));
        }
    }
    Ok(())
}

fn check_token_count(count: u64) -> Result<(), Fault> {
    if count > MAX_TOKENS {
        return invalid(format!("it claims a vocabulary of {count} tokens"));
    }
    Ok(())
}

/// The length of a list of one of these types; `None` if there is no such key.
fn list_length(keys: &HeaderKeys, key: &str, types: &[u32]) -> Result<Option<u64>, Fault> {
    match keys.get(key) {
        None => Ok(None),
        Some(HeaderValue::Array(Array {
            element, length, ..
        })) if types.contains(element) => Ok(Some(*length)),
        Some(_) => invalid(format!("its {key} is not a valid list")),
    }
}

/// The byte that a token stands for: itself, or as SentencePiece (`<0x0A>`) and RWKV (`\x0a`, `\n`) write it.
fn only_byte(text: &[u8]) -> Option<u8> {
    let digit = |digit: u8| char::from(digit).to_digit(16);
    match text {
        [byte] => Some(*byte),
        [b'<', b'0', b'x', high, low, b'>'] | [b'\\', b'x', high, low] => {
            u8::try_from(digit(*high)? << 4 | digit(*low)?).ok()
        }
        [b'\\', b't'] => Some(b'\t'),
        [b'\\', b'n'] => Some(b'\n'),
        [b'\\', b'r'] => Some(b'\r'),
        [b'\\', other] => Some(*other),
        _ => None,
    }
}

/// Whether the byte stands anywhere in UTF-8.
fn in_text(byte: u8) -> bool {
    !matches!(byte, 0xC0 | 0xC1 | 0xF5..)
}

//! Headers from streams: what is read of them, and how much at most.

use crate::writer::{F32, Gguf};
use std::io::{self, BufReader, Cursor, Read};
use tierbar_core::{Code, Error};

const BUFFER: usize = 4096;

/// Counts the bytes requested and returned.
struct Counting<R> {
    inner: R,
    given: u64,
}

impl<R: Read> Read for Counting<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.given += read as u64;
        Ok(read)
    }
}

fn model() -> Gguf {
    Gguf::with_vocabulary("llama", 2, "gpt2", &["a", "longer", &"z".repeat(1000)])
        .text("tokenizer.chat_template", &"{{ messages }}".repeat(10_000))
        .text("general.license", &"words ".repeat(10_000))
        .tensor("blk.0.ffn_up.weight", &[5, 4], F32, 80)
        .tensor("output_norm.weight", &[5], F32, 20)
}

#[test]
fn a_header_is_read_without_seeking_or_excess() {
    let file = model();
    let padded = file.header();
    // The last tensor's offset, of which the writer writes small ones, is where the header ends.
    let last = b"output_norm.weight";
    let name = padded
        .windows(last.len())
        .position(|window| window == last)
        .unwrap();
    let end = name + last.len() + 4 + 8 + 4 + 8;
    assert!(
        end < padded.len(),
        "the padding must be distinguished from the header"
    );
    // One byte at a time, as slow networks give them, and behind the end nothing but failure.
    struct Slow<R>(R);
    impl<R: Read> Read for Slow<R> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let room = buffer.len().min(1);
            self.0.read(&mut buffer[..room])
        }
    }
    struct Beyond;
    impl Read for Beyond {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("read beyond the header"))
        }
    }
    let header = Cursor::new(&padded[..end]);
    let mut source = Counting {
        inner: Slow(header).chain(Beyond),
        given: 0,
    };
    let buffered = BufReader::with_capacity(1, &mut source);
    let account = tierbar_gguf::read_from(buffered, file.file_bytes(), "m.gguf").unwrap();
    assert_eq!(source.given, end as u64);
    assert_eq!(account, file.read().unwrap());
}

/// A stream of pairs without end, each with a text of this length, in a file of any size.
fn endless(text_bytes: u64) -> (Error, u64) {
    let pair = move |number: u64| {
        let key = format!("k{number:015}");
        let head = [
            &16u64.to_le_bytes()[..],
            key.as_bytes(),
            &8u32.to_le_bytes(),
            &text_bytes.to_le_bytes(),
        ];
        Cursor::new(head.concat()).chain(io::repeat(b' ').take(text_bytes))
    };
    struct Pairs<F, P> {
        pair: F,
        number: u64,
        current: P,
    }
    impl<F: Fn(u64) -> P, P: Read> Read for Pairs<F, P> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            match self.current.read(buffer)? {
                0 if !buffer.is_empty() => {
                    self.number += 1;
                    self.current = (self.pair)(self.number);
                    self.read(buffer)
                }
                read => Ok(read),
            }
        }
    }
    let preamble = [
        &b"GGUF\x03\0\0\0"[..],
        &1u64.to_le_bytes(),
        &(1u64 << 12).to_le_bytes(),
    ]
    .concat();
    let mut source = Counting {
        inner: Cursor::new(preamble).chain(Pairs {
            current: pair(0),
            pair,
            number: 0,
        }),
        given: 0,
    };
    let buffered = BufReader::with_capacity(BUFFER, &mut source);
    let error = tierbar_gguf::read_from(buffered, u64::MAX, "endless.gguf").unwrap_err();
    (error, source.given)
}

#[test]
fn an_endless_header_is_refused() {
    for text_bytes in [1 << 16, 1 << 22, 1 << 27, 1 << 30] {
        let (error, read) = endless(text_bytes);
        assert_eq!(error.code, Code::ModelInvalid);
        assert!(error.message.contains("longer than 128 MiB"), "{error}");
        assert!(read <= (128 << 20) + BUFFER as u64, "{read}");
    }
    let vocabulary = Gguf::model("llama", 1).array("tokenizer.ggml.tokens", 8, 1 << 30, &[]);
    let error = tierbar_gguf::read_from(&vocabulary.header()[..], u64::MAX, "m").unwrap_err();
    assert!(error.message.contains("longer than 128 MiB"), "{error}");
}

#[test]
fn errors_of_the_source_are_returned_unchanged() {
    struct Refusing(Error);
    impl Read for Refusing {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other(self.0.clone()))
        }
    }
    let refused = Error::new(Code::AccessDenied, "the server wants a token").hint("set one");
    let header = model().header();
    let source = header[..50].chain(BufReader::new(Refusing(refused.clone())));
    let error = tierbar_gguf::read_from(source, model().file_bytes(), "m.gguf").unwrap_err();
    assert_eq!(error, refused);
}

#[test]
fn skipping_a_vocabulary_is_independent_of_buffering() {
    let words: Vec<String> = (0..200).map(|length| "w".repeat(length)).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let file =
        Gguf::with_vocabulary("llama", 2, "gpt2", &words).texts("tokenizer.ggml.merges", &words);
    let expected = file.read().unwrap();
    let header = file.header();
    for capacity in [1, 2, 7, 8, 9, 64, 207, 208, 1000, 1 << 20] {
        let source = BufReader::with_capacity(capacity, &header[..]);
        let account = tierbar_gguf::read_from(source, file.file_bytes(), "m.gguf").unwrap();
        assert_eq!(account, expected, "{capacity}");
    }
    // A buffer may have more than belongs to the file.
    let total = header.len() as u64 / 2;
    let error = tierbar_gguf::read_from(&header[..], total, "m.gguf").unwrap_err();
    assert!(error.message.contains("the file is incomplete"), "{error}");
}

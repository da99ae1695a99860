//! What a document is, by its content; its name only tells kinds of plain text apart.

use crate::{
    charset::{self, DecodedText},
    read::zip::Archive,
    text::head,
};
use std::path::Path;
use tierbar_core::documents::DocumentKind;

/// So many bytes tell what a file is.
const HEAD: usize = 4096;
/// Servers write so much above who a mail is from.
const TRACES: usize = 64 << 10;
/// Endings of files whose text is a program, a configuration or data.
const CODE: [&str; 68] = [
    "asm", "bash", "bat", "c", "cc", "cfg", "cjs", "clj", "cmake", "conf", "cpp", "cs", "css",
    "csv", "cxx", "dart", "el", "erl", "ex", "exs", "f90", "fs", "go", "graphql", "h", "hpp", "hs",
    "ini", "java", "jl", "js", "json", "jsonl", "jsx", "kt", "lisp", "lua", "m", "mjs", "ml",
    "nix", "pas", "php", "pl", "proto", "ps1", "py", "r", "rb", "rs", "scala", "scss", "sh", "sql",
    "svelte", "swift", "tf", "toml", "ts", "tsx", "vue", "yaml", "yml", "zig", "zsh", "xml",
    "diff", "patch",
];
const MARKDOWN: [&str; 4] = ["md", "markdown", "mdown", "mkd"];
const HTML: [&str; 3] = ["html", "htm", "xhtml"];
const TEXT: [&str; 7] = ["txt", "text", "rst", "org", "adoc", "tex", "log"];
/// What Apple Mail calls the file of a mailbox that it exports.
const MAILBOX: &str = "mbox";
const OTHERS: [&str; 8] = ["pdf", "docx", "docm", "dotx", "pptx", "pptm", "eml", "mbox"];

/// Returns whether a file with this name is looked into when its folder is added. A file that is added itself always is.
pub fn is_readable(path: &Path) -> bool {
    let ending = lowercase_extension(path);
    let ending = ending.as_str();
    [&CODE[..], &MARKDOWN, &HTML, &TEXT, &OTHERS]
        .iter()
        .any(|endings| endings.contains(&ending))
        || path.file_name().is_some_and(|name| name == MAILBOX)
}

/// Returns what the bytes of a whole file are; `None` if they are no document.
pub fn kind(bytes: &[u8], name: &Path) -> Option<DocumentKind> {
    if is_pdf(bytes) {
        return Some(DocumentKind::Pdf);
    }
    if is_zip(bytes) {
        return Archive::open(bytes).ok()?.kind();
    }
    text_kind(bytes, name)
}

/// Some programs write lines above a PDF's own header.
fn is_pdf(bytes: &[u8]) -> bool {
    contains(&bytes[..bytes.len().min(1024)], b"%PDF-")
}

pub(crate) fn is_zip(bytes: &[u8]) -> bool {
    bytes.starts_with(b"PK\x03\x04") || bytes.starts_with(b"PK\x05\x06")
}

/// Returns which kind of text these bytes, or the first of them, are; `None` for what is no text.
pub fn text_kind(bytes: &[u8], name: &Path) -> Option<DocumentKind> {
    if is_pdf(bytes) || is_zip(bytes) {
        return None;
    }
    let text = charset::decode(&bytes[..bytes.len().min(HEAD)], None, false)?.text;
    let start = text.trim_start_matches(['\u{feff}', ' ', '\n', '\r', '\t']);
    let lower = head(start, HEAD).to_ascii_lowercase();
    let ending = lowercase_extension(name);
    let ending = ending.as_str();
    if lower.starts_with("<!doctype html") || lower.starts_with("<html") || HTML.contains(&ending) {
        return Some(DocumentKind::Html);
    }
    let is_code = CODE.contains(&ending);
    // Git writes patches as mails.
    if ["eml", "mbox"].contains(&ending) || !is_code && is_mail(bytes) {
        return Some(DocumentKind::Mail);
    }
    Some(if MARKDOWN.contains(&ending) {
        DocumentKind::Markdown
    } else if is_code {
        DocumentKind::Code
    } else {
        DocumentKind::Text
    })
}

/// Returns the text of a file that a model can read as it is; `None` for a document, which a reader has to read, and for what is no text.
pub fn plain_text(bytes: &[u8], name: &Path) -> Option<DecodedText> {
    match text_kind(bytes, name)? {
        DocumentKind::Html | DocumentKind::Mail => return None,
        _ => {}
    }
    charset::decode(bytes, None, false).or_else(|| {
        // Machines that lose their power leave zeros in their logs.
        let text = std::str::from_utf8(bytes).ok()?.replace('\0', "");
        Some(DecodedText { text, doubt: None })
    })
}

pub(crate) fn lowercase_extension(path: &Path) -> String {
    let ending = path.extension().unwrap_or_default();
    ending.to_string_lossy().to_ascii_lowercase()
}

/// Whether the text begins with the header of a message (RFC 5322): who it is from, and when it was sent or what it is about. In a file
/// of several (mbox), a line with `From ` stands above it.
fn is_mail(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(TRACES)]);
    let text = text.trim_start_matches(['\u{feff}', ' ', '\n', '\r', '\t']);
    let (mut from, mut other) = (false, false);
    let above = usize::from(text.starts_with("From "));
    for line in text.lines().skip(above) {
        if line.is_empty() {
            break;
        }
        if line.starts_with([' ', '\t']) {
            continue;
        }
        let Some((name, _)) = line.split_once(':') else {
            return false;
        };
        if name.is_empty() || name.contains(' ') {
            return false;
        }
        from |= name.eq_ignore_ascii_case("from");
        other |= ["date", "subject", "message-id"]
            .iter()
            .any(|known| name.eq_ignore_ascii_case(known));
    }
    from && other
}

pub(crate) fn contains(text: &[u8], word: &[u8]) -> bool {
    text.windows(word.len()).any(|part| part == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_decides_and_the_name_only_tells_text_apart() {
        let of = |bytes: &[u8], name: &str| kind(bytes, Path::new(name));
        assert_eq!(of(b"%PDF-1.4\n", "notes.txt"), Some(DocumentKind::Pdf));
        assert_eq!(of(b"# Title", "a.md"), Some(DocumentKind::Markdown));
        assert_eq!(of(b"# Title", "a"), Some(DocumentKind::Text));
        assert_eq!(
            of(b"<!DOCTYPE html><p>x", "a.txt"),
            Some(DocumentKind::Html)
        );
        assert_eq!(of(b"fn main() {}", "a.rs"), Some(DocumentKind::Code));
        let mail = b"From: a@b.c\r\nSubject: Hello\r\n\r\nText";
        assert_eq!(of(mail, "1234"), Some(DocumentKind::Mail));
        let traces = "Received: from a.example\n by b.example\n".repeat(200);
        let mail = [traces.as_bytes(), mail].concat();
        assert_eq!(of(&mail, "1234"), Some(DocumentKind::Mail));
        assert_eq!(
            of(b"From: the beginning\nto the end", "a.txt"),
            Some(DocumentKind::Text)
        );
        assert_eq!(of(b"\x7fELF\0\0\0\0", "a.txt"), None);
        assert_eq!(of(b"PK\x03\x04 and no archive", "a.docx"), None);
    }

    #[test]
    fn a_file_of_a_folder_is_known_by_its_name() {
        for name in ["a.PDF", "b/a.mjs", "Letters.mbox/mbox"] {
            assert!(is_readable(Path::new(name)), "{name}");
        }
        for name in [
            "a.png",
            "Letters.mbox/table_of_contents",
            "README",
            "mbox/a",
        ] {
            assert!(!is_readable(Path::new(name)), "{name}");
        }
    }

    #[test]
    fn a_plain_text_is_as_it_is_and_a_document_is_none() {
        let of = |bytes: &[u8], name: &str| {
            plain_text(bytes, Path::new(name)).map(|read| (read.text, read.doubt.is_some()))
        };
        let same = |text: &str| Some((text.to_owned(), false));
        let code = "\n\n  fn main() {}  \r\n\t// ü\n\n\n";
        assert_eq!(of(code.as_bytes(), "a.rs"), same(code));
        assert_eq!(of(b"", "stdin"), same(""));
        let patch = "From 4f2a Mon Sep 17\nFrom: a@b.c\nSubject: [PATCH] x\n\n \n-a\n+b\n";
        assert_eq!(of(patch.as_bytes(), "0001.patch"), same(patch));
        assert_eq!(
            of(b"Subject: Lunch\n\nAt one?", "a.txt"),
            same("Subject: Lunch\n\nAt one?")
        );
        assert_eq!(
            of(b"caf\xe9 au lait", "a.txt"),
            Some(("café au lait".to_owned(), true))
        );
        assert_eq!(of(b"\xff\xfeH\0i\0", "a.log"), same("Hi"));
        let log = [
            b"a line\n".repeat(1000),
            vec![0; 512],
            b"another\n".to_vec(),
        ]
        .concat();
        let (read, _) = of(&log, "a.log").unwrap();
        assert!(read.ends_with("a line\nanother\n"), "{}", read.len());
        let installer = [b"#!/bin/sh\n".repeat(1000), vec![0, 0xff, 0xfe, 0x80]].concat();
        for (bytes, name) in [
            (&b"%PDF-1.5\n%"[..], "a.txt"),
            (b"PK\x03\x04", "a"),
            (b"<!doctype html><p>x", ""),
            (b"<p>x", "a.html"),
            (b"From: a@b.c\nSubject: Hello\n\nText", ""),
            (b"\x7fELF\0\0\0\0", "a.txt"),
            (&installer, "a.sh"),
        ] {
            assert_eq!(of(bytes, name), None, "{name}: {bytes:?}");
        }
    }
}

//! What a document is, by its content; its name only tells kinds of plain text apart.

use crate::{charset, read::office::Package};
use std::path::Path;
use tierbar_core::documents::DocumentKind;

/// So many bytes tell what a file is.
const HEAD: usize = 4096;
/// Servers write so much above who a mail is from.
const TRACES: usize = 64 << 10;
/// Endings of files whose text is a program, a configuration or data.
const CODE: [&str; 60] = [
    "asm", "bash", "bat", "c", "cc", "cfg", "clj", "cmake", "conf", "cpp", "cs", "css", "csv",
    "cxx", "dart", "el", "erl", "ex", "exs", "f90", "fs", "go", "graphql", "h", "hpp", "hs", "ini",
    "java", "jl", "js", "json", "jsonl", "jsx", "kt", "lisp", "lua", "m", "ml", "nix", "pas",
    "php", "pl", "proto", "ps1", "py", "r", "rb", "rs", "scala", "scss", "sh", "sql", "svelte",
    "swift", "tf", "toml", "ts", "tsx", "vue", "yaml",
];
const CODE_MORE: [&str; 4] = ["yml", "zig", "zsh", "xml"];
const MARKDOWN: [&str; 4] = ["md", "markdown", "mdown", "mkd"];
const HTML: [&str; 3] = ["html", "htm", "xhtml"];
const TEXT: [&str; 7] = ["txt", "text", "rst", "org", "adoc", "tex", "log"];
const OTHERS: [&str; 8] = ["pdf", "docx", "docm", "dotx", "pptx", "pptm", "eml", "mbox"];

/// Returns whether a file with this name is looked into when its folder is added. A file that is added itself always is.
#[must_use]
pub fn is_readable(path: &Path) -> bool {
    let ending = lowercase_extension(path);
    let ending = ending.as_str();
    [&CODE[..], &CODE_MORE, &MARKDOWN, &HTML, &TEXT, &OTHERS]
        .iter()
        .any(|endings| endings.contains(&ending))
}

/// Returns what the bytes of a whole file are; `None` if they are no document.
#[must_use]
pub fn kind(bytes: &[u8], name: &Path) -> Option<DocumentKind> {
    let head = &bytes[..bytes.len().min(HEAD)];
    // Some programs write lines above a PDF's own header.
    if contains(&head[..head.len().min(1024)], b"%PDF-") {
        return Some(DocumentKind::Pdf);
    }
    if head.starts_with(b"PK\x03\x04") || head.starts_with(b"PK\x05\x06") {
        return Package::open(bytes).ok()?.kind();
    }
    let text = charset::decode(head, None, false)?.text;
    let start = text.trim_start_matches(['\u{feff}', ' ', '\n', '\r', '\t']);
    let lower: String = start
        .chars()
        .take(512)
        .collect::<String>()
        .to_ascii_lowercase();
    let ending = lowercase_extension(name);
    let ending = ending.as_str();
    if lower.starts_with("<!doctype html") || lower.starts_with("<html") || HTML.contains(&ending) {
        return Some(DocumentKind::Html);
    }
    if ["eml", "mbox"].contains(&ending) || is_mail(bytes) {
        return Some(DocumentKind::Mail);
    }
    Some(if MARKDOWN.contains(&ending) {
        DocumentKind::Markdown
    } else if CODE.contains(&ending) || CODE_MORE.contains(&ending) {
        DocumentKind::Code
    } else {
        DocumentKind::Text
    })
}

fn lowercase_extension(path: &Path) -> String {
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
}

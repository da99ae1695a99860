//! Mail (RFC 5322, MIME in RFC 2045 and 2047): who wrote what to whom, the text, and the names of what is attached.

use super::{Block, Facts, Sink, html, plain};
use crate::text;
use base64::{
    Engine as _,
    alphabet::STANDARD,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};

/// Parts within parts are read to this depth.
const DEEPEST: usize = 8;
const MOST_PARTS: usize = 200;
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

pub(super) fn read(bytes: &[u8], sink: &mut Sink<'_>) -> Facts {
    let (head, body) = split(bytes);
    let fields = fields(head);
    let subject = field(&fields, "subject").map(encoded_words);
    if let Some(subject) = &subject {
        sink.push(Block {
            heading: Some(1),
            ..Block::new(subject.as_str())
        });
    }
    let mut known = Vec::new();
    for name in ["From", "To", "Cc", "Date"] {
        if let Some(value) = field(&fields, name) {
            known.push(format!("{name}: {}", encoded_words(value)));
        }
    }
    sink.push(Block::new(known.join("\n")));
    let mut found = Found::default();
    part(&fields, body, DEEPEST, &mut found);
    match (found.plain.is_empty(), found.html.is_empty()) {
        (false, _) => {
            plain::read(&found.plain, sink);
        }
        (true, false) => {
            html::for_each_block(&found.html, &mut |block| sink.push(block), &mut None);
        }
        (true, true) => {}
    }
    if !found.attached.is_empty() {
        sink.push(Block::new(format!(
            "Attached: {}",
            found.attached.join(", ")
        )));
    }
    Facts {
        title: subject,
        ..Facts::default()
    }
}

#[derive(Default)]
struct Found {
    plain: String,
    html: String,
    attached: Vec<String>,
    parts: usize,
}

type Fields = Vec<(String, String)>;

/// Splits a message at its first empty line.
fn split(bytes: &[u8]) -> (&[u8], &[u8]) {
    let mut at = 0;
    while let Some(end) = bytes[at..].iter().position(|&byte| byte == b'\n') {
        let line = &bytes[at..at + end];
        let next = at + end + 1;
        if line.is_empty() || line == b"\r" {
            return (&bytes[..at], &bytes[next..]);
        }
        at = next;
    }
    (bytes, &[])
}

/// The fields of a header, unfolded.
fn fields(head: &[u8]) -> Fields {
    let head = text::decode(head).unwrap_or_default();
    let mut fields: Fields = Vec::new();
    for line in head.lines() {
        if line.starts_with([' ', '\t']) {
            if let Some((_, value)) = fields.last_mut() {
                value.push(' ');
                value.push_str(line.trim());
            }
        } else if let Some((name, value)) = line.split_once(':') {
            fields.push((name.trim().to_owned(), value.trim().to_owned()));
        }
    }
    fields
}

fn field<'a>(fields: &'a Fields, wanted: &str) -> Option<&'a str> {
    let found = fields
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(wanted));
    found.map(|(_, value)| value.as_str())
}

/// A parameter of a field such as `text/plain; charset="utf-8"`.
fn parameter(value: &str, wanted: &str) -> Option<String> {
    value.split(';').skip(1).find_map(|part| {
        let (name, value) = part.split_once('=')?;
        let value = value.trim().trim_matches('"');
        name.trim()
            .eq_ignore_ascii_case(wanted)
            .then(|| value.to_owned())
    })
}

fn part(fields: &Fields, body: &[u8], depth: usize, found: &mut Found) {
    found.parts += 1;
    if depth == 0 || found.parts > MOST_PARTS {
        return;
    }
    let kind = field(fields, "content-type").unwrap_or("text/plain");
    let media = kind
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    let disposition = field(fields, "content-disposition").unwrap_or_default();
    let name = parameter(disposition, "filename").or_else(|| parameter(kind, "name"));
    if let Some(name) = name
        && (disposition
            .trim_start()
            .to_ascii_lowercase()
            .starts_with("attachment")
            || !media.starts_with("text/"))
    {
        found.attached.push(encoded_words(&name));
        return;
    }
    if media.starts_with("multipart/") {
        if let Some(boundary) = parameter(kind, "boundary").filter(|boundary| !boundary.is_empty())
        {
            for piece in pieces(body, &boundary) {
                let (head, body) = split(piece);
                part(&self::fields(head), body, depth - 1, found);
            }
        }
        return;
    }
    if media == "message/rfc822" {
        let (head, body) = split(body);
        return part(&self::fields(head), body, depth - 1, found);
    }
    let is_html = media == "text/html";
    if !is_html && media != "text/plain" {
        return;
    }
    let encoding = field(fields, "content-transfer-encoding").unwrap_or_default();
    let bytes = match encoding.trim().to_ascii_lowercase().as_str() {
        "base64" => base64(body),
        "quoted-printable" => quoted_printable(body, false),
        _ => body.to_vec(),
    };
    let charset = parameter(kind, "charset").unwrap_or_default();
    let text = of_charset(&bytes, &charset);
    let all = if is_html {
        &mut found.html
    } else {
        &mut found.plain
    };
    if !all.is_empty() {
        all.push_str("\n\n");
    }
    all.push_str(&text);
}

/// The parts of a multipart body: what is between lines that begin with `--` and the boundary.
fn pieces<'a>(body: &'a [u8], boundary: &str) -> Vec<&'a [u8]> {
    let mark = format!("--{boundary}");
    let mark = mark.as_bytes();
    let (mut pieces, mut begun, mut at) = (Vec::new(), None, 0);
    while at < body.len() {
        let end = body[at..].iter().position(|&byte| byte == b'\n');
        let next = end.map_or(body.len(), |end| at + end + 1);
        if body[at..].starts_with(mark) {
            if let Some(begun) = begun {
                pieces.push(&body[begun..at]);
            }
            begun = Some(next);
            if body[at + mark.len()..].starts_with(b"--") {
                return pieces;
            }
        }
        at = next;
    }
    pieces.extend(begun.map(|begun| &body[begun..]));
    pieces
}

fn base64(body: &[u8]) -> Vec<u8> {
    let mut letters: Vec<u8> = body.to_vec();
    letters.retain(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/'));
    // One letter more than whole groups is nothing.
    if letters.len() % 4 == 1 {
        letters.pop();
    }
    LENIENT.decode(letters).unwrap_or_default()
}

/// `in_word` is the form of RFC 2047, where an underscore is a space.
fn quoted_printable(body: &[u8], in_word: bool) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(body.len());
    let mut at = 0;
    while at < body.len() {
        let rest = &body[at + 1..];
        match body[at] {
            b'=' if rest.starts_with(b"\r\n") => at += 2,
            b'=' if rest.starts_with(b"\n") => at += 1,
            b'=' => match rest.get(..2).and_then(hex) {
                Some(byte) => {
                    bytes.push(byte);
                    at += 2;
                }
                None => bytes.push(b'='),
            },
            b'_' if in_word => bytes.push(b' '),
            byte => bytes.push(byte),
        }
        at += 1;
    }
    bytes
}

fn hex(two: &[u8]) -> Option<u8> {
    u8::from_str_radix(std::str::from_utf8(two).ok()?, 16).ok()
}

fn of_charset(bytes: &[u8], charset: &str) -> String {
    let charset = charset.to_ascii_lowercase();
    if charset.starts_with("iso-8859-") || charset.starts_with("windows-125") {
        return text::windows_1252(bytes);
    }
    match text::decode(bytes) {
        Some(text) => text,
        None => String::from_utf8_lossy(bytes).into_owned(),
    }
}

/// Decodes words such as `=?utf-8?B?8J+Ziw==?=`; those that stand side by side are one.
fn encoded_words(value: &str) -> String {
    let (mut decoded, mut rest, mut behind_word) = (String::new(), value, false);
    while let Some(at) = rest.find("=?") {
        let between = &rest[..at];
        let Some((word, after)) = encoded_word(&rest[at + 2..]) else {
            decoded.push_str(&rest[..at + 2]);
            rest = &rest[at + 2..];
            behind_word = false;
            continue;
        };
        if !(behind_word && between.trim().is_empty()) {
            decoded.push_str(between);
        }
        decoded.push_str(&word);
        rest = after;
        behind_word = true;
    }
    decoded + rest
}

/// Reads the word behind `=?`; returns it, and what follows.
fn encoded_word(text: &str) -> Option<(String, &str)> {
    let (charset, rest) = text.split_once('?')?;
    let (encoding, rest) = rest.split_once('?')?;
    let (letters, rest) = rest.split_once("?=")?;
    if charset.contains(' ') || letters.contains(' ') {
        return None;
    }
    let bytes = match encoding {
        "B" | "b" => base64(letters.as_bytes()),
        "Q" | "q" => quoted_printable(letters.as_bytes(), true),
        _ => return None,
    };
    Some((of_charset(&bytes, charset), rest))
}

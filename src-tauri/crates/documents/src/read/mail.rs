//! Mail (RFC 5322, MIME in RFC 2045 to 2047) by `mail-parser`: who wrote what to whom, the text, and the names of what is attached.
//! A file of several mails (mbox, RFC 4155) is read mail by mail.

mod transfer;

use super::{Block, Facts, Sink, html, plain};
use crate::{
    charset::{self, DecodedText},
    text::squeeze,
};
use mail_parser::{
    HeaderForm, HeaderName, Message, MessageParser, MessagePart, MimeHeaders, PartType,
    decoders::charsets::map::charset_decoder, mailbox::mbox::MessageIterator,
};
use std::borrow::Cow;

/// Mails within mails are read to this depth.
const DEEPEST: usize = 8;
/// Words that tell the parser of mails within a mail. Its data would nest as deep as they do, so it gets others of the same length, and a
/// mail within is taken apart by itself.
const NESTING: [&[u8]; 3] = [b"rfc822", b"global", b"digest"];
const HEADER: [HeaderName<'static>; 4] = [
    HeaderName::From,
    HeaderName::To,
    HeaderName::Cc,
    HeaderName::Date,
];

pub(super) fn read(bytes: &[u8], sink: &mut Sink<'_>) -> Facts {
    let mut facts = Facts::default();
    let bytes = bytes.trim_ascii_start();
    if !bytes.starts_with(b"From ") {
        facts.title = read_nested(bytes, 1, sink);
        return facts;
    }
    for (before, mail) in MessageIterator::new(bytes).enumerate() {
        // Bytes in memory can always be read.
        let Ok(mail) = mail else { break };
        let subject = read_nested(mail.contents(), 1, sink);
        // Of several, none is the title of all.
        facts.title = subject.filter(|_| before == 0);
        if sink.full {
            break;
        }
    }
    facts
}

/// Reads one mail with those within it, and returns its subject.
fn read_nested(bytes: &[u8], depth: usize, sink: &mut Sink<'_>) -> Option<String> {
    // An empty line would end a header that has not begun.
    let bytes = with_readable_header(bytes.trim_ascii_start(), sink);
    let flat = without_nesting(&bytes);
    let Some(mut message) = parser()
        .parse(&flat)
        .filter(|message| has_header(message, &bytes))
    else {
        let decoded = decode_part(&bytes, None, false);
        decoded.doubt.into_iter().for_each(|doubt| sink.warn(doubt));
        plain::read(&decoded.text, sink);
        return None;
    };
    message.raw_message = Cow::Borrowed(&bytes);
    let (subject, attached) = read_message(&message, &bytes, depth, sink);
    // It may be as large as the mail.
    drop(message);
    drop(flat);
    for part in attached {
        match part {
            AttachedContent::Text(body) => body.push_to(sink),
            AttachedContent::Mail(_) if depth == DEEPEST => {
                sink.warn("Mails within mails are read to a depth of 8.");
            }
            AttachedContent::Mail(inner) => {
                read_nested(&inner, depth + 1, sink);
            }
        }
    }
    subject
}

fn parser() -> MessageParser {
    MessageParser::new()
        .with_mime_headers()
        .default_header_ignore()
}

/// Returns whether a mail begins with a field. The parser takes any line for one.
fn has_header(message: &Message<'_>, bytes: &[u8]) -> bool {
    let fields = &message.root_part().headers;
    fields.iter().any(|field| {
        let name = &bytes[field.offset_field as usize..field.offset_start as usize];
        let name = name.strip_suffix(b":").map(<[u8]>::trim_ascii);
        name.is_some_and(|name| !name.contains(&b' '))
    })
}

/// Returns a mail whose parts have no mails within them for the parser. Everything else is where it was.
fn without_nesting(bytes: &[u8]) -> Vec<u8> {
    let mut flat = bytes.to_vec();
    for (at, window) in bytes.windows(NESTING[0].len()).enumerate() {
        if NESTING.iter().any(|word| window.eq_ignore_ascii_case(word)) {
            flat[at + window.len() - 1] = b'x';
        }
    }
    flat
}

/// Returns which parts are mails: by their type, or because they have none in a digest (RFC 2046, 5.1.5).
fn mails_within(message: &Message<'_>) -> Vec<bool> {
    let is = |part: &MessagePart<'_>, of: &str, subtypes: &[&str]| {
        part.content_type().is_some_and(|kind| {
            kind.ctype() == of && subtypes.contains(&kind.subtype().unwrap_or_default())
        })
    };
    let mut mails: Vec<_> = message
        .parts
        .iter()
        .map(|part| is(part, "message", &["rfc82x", "globax"]))
        .collect();
    for part in &message.parts {
        if let PartType::Multipart(children) = &part.body
            && is(part, "multipart", &["digesx"])
        {
            for &child in children {
                let part = message.part(child);
                if part.is_some_and(|part| part.content_type().is_none()) {
                    mails[child as usize] = true;
                }
            }
        }
    }
    mails
}

/// Returns the mail with a header in UTF-8. Some programs write letters beyond ASCII into it without saying in which encoding. Lines
/// that say it are the parser's.
fn with_readable_header<'a>(bytes: &'a [u8], sink: &mut Sink<'_>) -> Cow<'a, [u8]> {
    let ends = [b"\r\n\r\n".as_slice(), b"\n\n"];
    let end = ends
        .iter()
        .filter_map(|end| bytes.windows(end.len()).position(|part| part == *end));
    let (header, body) = bytes.split_at(end.min().unwrap_or(bytes.len()));
    let is_plain = |line: &[u8]| std::str::from_utf8(line).is_ok() && !line.contains(&b'\x1b');
    let says_it = |line: &[u8]| line.windows(2).any(|two| two == b"=?");
    let lines = || header.split_inclusive(|&byte| byte == b'\n');
    let unclear: Vec<_> = lines()
        .filter(|line| !is_plain(line) && !says_it(line))
        .collect();
    if unclear.is_empty() {
        return Cow::Borrowed(bytes);
    }
    let declared = charset::declared_by(&String::from_utf8_lossy(header));
    let whole = decode_part(&unclear.concat(), declared.as_deref(), false);
    whole.doubt.into_iter().for_each(|doubt| sink.warn(doubt));
    let mut clear = whole.text.split_inclusive('\n');
    let mut readable = Vec::with_capacity(bytes.len());
    for line in lines() {
        let is_unclear = !is_plain(line) && !says_it(line);
        let read = is_unclear.then(|| clear.next()).flatten();
        readable.extend_from_slice(read.map_or(line, str::as_bytes));
    }
    readable.extend_from_slice(body);
    Cow::Owned(readable)
}

/// What is attached to a mail and has text.
enum AttachedContent<'a> {
    Text(Body),
    Mail(Cow<'a, [u8]>),
}

fn read_message<'a>(
    message: &Message<'_>,
    bytes: &'a [u8],
    depth: usize,
    sink: &mut Sink<'_>,
) -> (Option<String>, Vec<AttachedContent<'a>>) {
    let field = |name: &HeaderName<'static>| {
        let values = message.header_as(name.clone(), HeaderForm::Text);
        let values: Vec<_> = values.iter().filter_map(|value| value.as_text()).collect();
        Some(squeeze(&values.join(", "))).filter(|value| !value.is_empty())
    };
    let subject = field(&HeaderName::Subject);
    if let Some(subject) = &subject {
        sink.push(Block {
            heading: u8::try_from(depth.min(6)).ok(),
            ..Block::new(subject.as_str())
        });
    }
    let known = HEADER
        .iter()
        .filter_map(|name| Some(format!("{}: {}", name.as_str(), field(name)?)));
    sink.push(Block::new(known.collect::<Vec<_>>().join("\n")));
    let mails = mails_within(message);
    let is_mail = |number: u32| mails[number as usize];
    let own = |parts: &[u32]| {
        let parts = parts.iter().copied().filter(|&number| !is_mail(number));
        Body::new(message, bytes, parts)
    };
    // What has both is shown as its plain text, unless that is much less.
    let (text, page) = (own(&message.text_body), own(&message.html_body));
    let shown = if text.length() * 2 < page.length() {
        page
    } else {
        text
    };
    shown.push_to(sink);
    let mut attached = message.attachments.clone();
    let bodies = message.text_body.iter().chain(&message.html_body);
    attached.extend(bodies.filter(|&&number| is_mail(number)));
    attached.sort_unstable();
    attached.dedup();
    let parts = (0..).take(message.parts.len());
    let names = parts.filter_map(|number| part_name(message, bytes, number));
    let names = names.collect::<Vec<_>>().join(", ");
    if !names.is_empty() {
        sink.push(Block::new(format!("Attached: {names}")));
    }
    let take = |number: u32| {
        if is_mail(number) {
            AttachedContent::Mail(part_content(bytes, &message.parts[number as usize]))
        } else {
            AttachedContent::Text(Body::new(message, bytes, [number]))
        }
    };
    (subject, attached.into_iter().map(take).collect())
}

/// Returns the name of an attachment, as its own header has it.
fn part_name(message: &Message<'_>, bytes: &[u8], number: u32) -> Option<String> {
    let part = message.part(number)?;
    let header = part.raw_header_offset() as usize..part.raw_body_offset() as usize;
    let header = parser().parse_headers(bytes.get(header)?)?;
    header.root_part().attachment_name().map(str::to_owned)
}

#[derive(Default)]
struct Body {
    blocks: Vec<Block>,
    doubts: Vec<String>,
}

impl Body {
    fn new(message: &Message<'_>, bytes: &[u8], parts: impl IntoIterator<Item = u32>) -> Self {
        let mut body = Self::default();
        for part in parts.into_iter().filter_map(|number| message.part(number)) {
            // Reports to a sender, and the header of a mail that came back, are of the type `message`. What has no type that can be read is
            // text (RFC 2045, 5.2).
            let kind = part.content_type();
            let is_text =
                kind.is_none_or(|kind| ["text", "message", "multipart"].contains(&kind.ctype()));
            if !is_text && kind.is_some_and(|kind| kind.subtype().is_some()) {
                continue;
            }
            let content = part_content(bytes, part);
            if !is_text && content.contains(&0) {
                continue;
            }
            let is_html = kind.is_some_and(|kind| kind.subtype() == Some("html"));
            let declared = kind.and_then(|kind| kind.attribute("charset"));
            let DecodedText { text, doubt } = text_of(&content, declared, is_html);
            body.doubts.extend(doubt);
            let take = &mut |block| body.blocks.push(block);
            if is_html {
                html::for_each_block(&text, take, &mut None);
            } else {
                plain::for_each_block(&text, take);
            }
        }
        body
    }

    fn length(&self) -> usize {
        self.blocks.iter().map(|block| block.text.len()).sum()
    }

    fn push_to(self, sink: &mut Sink<'_>) {
        self.doubts.into_iter().for_each(|doubt| sink.warn(doubt));
        self.blocks.into_iter().for_each(|block| sink.push(block));
    }
}

fn part_content<'a>(bytes: &'a [u8], part: &MessagePart<'_>) -> Cow<'a, [u8]> {
    let place = part.raw_body_offset() as usize..part.raw_end_offset() as usize;
    let raw = bytes.get(place).unwrap_or_default();
    transfer::decode(raw, part.content_transfer_encoding().unwrap_or_default())
}

fn text_of(bytes: &[u8], declared: Option<&str>, is_html: bool) -> DecodedText {
    // UTF-7 is no encoding of the web's.
    let of_mail_alone = declared
        .filter(|name| !charset::is_known(name))
        .and_then(|name| charset_decoder(name.as_bytes()));
    match of_mail_alone {
        Some(decode) => DecodedText {
            text: decode(bytes),
            doubt: None,
        },
        None => decode_part(bytes, declared, is_html),
    }
}

fn decode_part(bytes: &[u8], declared: Option<&str>, is_html: bool) -> DecodedText {
    charset::decode(bytes, declared, is_html).unwrap_or_else(|| DecodedText {
        text: String::from_utf8_lossy(bytes).into_owned(),
        doubt: None,
    })
}

#[cfg(test)]
mod tests;

//! Mail (RFC 5322, MIME in RFC 2045 to 2047) by `mail-parser`: who wrote what to whom, the text, and the names of what is attached.
//! A file of several mails (mbox, RFC 4155) is read mail by mail.

use super::{Block, Facts, Sink, html, plain};
use crate::{
    charset::{self, Decoded},
    text::squeeze,
};
use mail_parser::{
    Encoding, HeaderName, Message, MessageParser, MessagePart, MimeHeaders, PartType,
    decoders::{
        base64::base64_decode, charsets::map::charset_decoder,
        quoted_printable::quoted_printable_decode,
    },
    mailbox::mbox::MessageIterator,
};
use std::borrow::Cow;

/// Mails within mails are read to this depth.
const DEEPEST: usize = 8;
/// A file with more mails within mails is not taken apart, since the parser's data nests as deep as they do.
const MOST_NESTED: usize = 1000;
const HEADER: [HeaderName<'static>; 4] = [
    HeaderName::From,
    HeaderName::To,
    HeaderName::Cc,
    HeaderName::Date,
];

pub(super) fn read(bytes: &[u8], sink: &mut Sink<'_>) -> Facts {
    let mut facts = Facts::default();
    if !bytes.starts_with(b"From ") {
        facts.title = one(bytes, sink);
        return facts;
    }
    for mail in MessageIterator::new(bytes) {
        // Bytes in memory can always be read.
        let Ok(mail) = mail else { break };
        let subject = one(mail.contents(), sink);
        facts.title = facts.title.or(subject);
        if sink.full {
            break;
        }
    }
    facts
}

/// Reads one mail, and returns its subject.
fn one(bytes: &[u8], sink: &mut Sink<'_>) -> Option<String> {
    let bytes = with_readable_header(bytes, sink);
    let mut parser = MessageParser::new()
        .with_mime_headers()
        .header_text(HeaderName::Subject)
        .default_header_ignore();
    for name in HEADER {
        parser = parser.header_text(name);
    }
    let nested = nested(&bytes);
    if nested <= MOST_NESTED
        && let Some(message) = parser.parse(&*bytes)
    {
        return read_message(&message, 1, sink);
    }
    if nested > MOST_NESTED {
        sink.warn("This mail holds more than 1,000 mails within it, and is read as plain text.");
    }
    let decoded = decoded(&bytes, None, false);
    decoded.doubt.into_iter().for_each(|doubt| sink.warn(doubt));
    plain::read(&decoded.text, sink);
    None
}

/// How many mails within mails there may be.
fn nested(bytes: &[u8]) -> usize {
    let is_one = |rest: &[u8]| {
        [b"message/".as_slice(), b"multipart/digest"]
            .iter()
            .any(|word| {
                let start = rest.get(..word.len());
                start.is_some_and(|start| start.eq_ignore_ascii_case(word))
            })
    };
    (0..bytes.len())
        .filter(|&at| bytes[at] | 0x20 == b'm' && is_one(&bytes[at..]))
        .count()
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
    let whole = decoded(&unclear.concat(), declared.as_deref(), false);
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

/// Reads a mail with those within it, and returns its subject.
fn read_message(message: &Message<'_>, depth: usize, sink: &mut Sink<'_>) -> Option<String> {
    let field = |name: &HeaderName<'static>| {
        let values = message.header_values(name.clone());
        let values: Vec<_> = values.filter_map(|value| value.as_text()).collect();
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
    // What has both is shown as its plain text, unless that is much less.
    let (text, page) = (
        Body::new(message, &message.text_body),
        Body::new(message, &message.html_body),
    );
    let shown = if text.length() * 2 < page.length() {
        page
    } else {
        text
    };
    shown.push_to(sink);
    let attached = message.attachments.iter();
    let attached: Vec<_> = attached
        .filter_map(|&number| message.part(number))
        .collect();
    let names = attached.iter().filter_map(|part| part.attachment_name());
    let names = names.collect::<Vec<_>>().join(", ");
    if !names.is_empty() {
        sink.push(Block::new(format!("Attached: {names}")));
    }
    for (part, &number) in attached.iter().zip(&message.attachments) {
        match &part.body {
            // What is no mail after all is text.
            PartType::Message(inner) if depth < DEEPEST && !inner.is_empty() => {
                read_message(inner, depth + 1, sink);
            }
            PartType::Message(inner) if !inner.is_empty() => {
                sink.warn("Mails within mails are searched to a depth of 8.");
            }
            _ => Body::new(message, &[number]).push_to(sink),
        }
    }
    subject
}

/// The text of some parts of a mail.
#[derive(Default)]
struct Body {
    blocks: Vec<Block>,
    doubts: Vec<String>,
}

impl Body {
    fn new(message: &Message<'_>, parts: &[u32]) -> Self {
        let mut body = Self::default();
        for part in parts.iter().filter_map(|&number| message.part(number)) {
            // Reports to a sender, and the header of a mail that came back.
            let kind = part.content_type().map(|kind| kind.ctype());
            let is_report = kind.is_some_and(|kind| kind.eq_ignore_ascii_case("message"));
            if !part.is_text() && !is_report {
                continue;
            }
            let Decoded { text, doubt } = text_of(message, part);
            body.doubts.extend(doubt);
            let take = &mut |block| body.blocks.push(block);
            if part.is_text_html() {
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

/// Returns a part's text in its declared encoding.
fn text_of(message: &Message<'_>, part: &MessagePart<'_>) -> Decoded {
    let raw = message
        .raw_message
        .get(part.raw_body_offset() as usize..part.raw_end_offset() as usize)
        .unwrap_or_default();
    let bytes = match part.encoding {
        Encoding::None => Some(Cow::Borrowed(raw)),
        Encoding::QuotedPrintable => quoted_printable_decode(raw).map(Cow::Owned),
        Encoding::Base64 => base64_decode(raw).map(Cow::Owned),
    };
    let kind = part.content_type();
    let declared = kind.and_then(|kind| kind.attribute("charset"));
    // UTF-7 is no encoding of the web's.
    let is_of_mail_alone = declared
        .is_some_and(|name| !charset::is_known(name) && charset_decoder(name.as_bytes()).is_some());
    match bytes {
        Some(bytes) if !is_of_mail_alone => decoded(&bytes, declared, part.is_text_html()),
        _ => Decoded {
            text: part.text_contents().unwrap_or_default().to_owned(),
            doubt: None,
        },
    }
}

fn decoded(bytes: &[u8], declared: Option<&str>, is_html: bool) -> Decoded {
    charset::decode(bytes, declared, is_html).unwrap_or_else(|| Decoded {
        text: String::from_utf8_lossy(bytes).into_owned(),
        doubt: None,
    })
}

#[cfg(test)]
mod tests;

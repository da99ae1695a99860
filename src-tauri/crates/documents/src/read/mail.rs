//! Mail (RFC 5322, MIME in RFC 2045 to 2047) by `mail-parser`: who wrote what to whom, the text, and the names of what is attached.
//! A file of several mails (mbox, RFC 4155) is read mail by mail.

use super::{Block, Facts, Sink, html, plain};
use crate::{charset, text::squeeze};
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
    plain::read(&decoded(&bytes, None, false, sink), sink);
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

/// Returns the mail with a header in UTF-8. Some programs write letters beyond ASCII into it without saying in which encoding.
fn with_readable_header<'a>(bytes: &'a [u8], sink: &mut Sink<'_>) -> Cow<'a, [u8]> {
    let ends = [b"\r\n\r\n".as_slice(), b"\n\n"];
    let end = ends
        .iter()
        .filter_map(|end| bytes.windows(end.len()).position(|part| part == *end));
    let (header, body) = bytes.split_at(end.min().unwrap_or(bytes.len()));
    if std::str::from_utf8(header).is_ok() {
        return Cow::Borrowed(bytes);
    }
    let declared = charset::named_behind(&String::from_utf8_lossy(header), "charset");
    let mut readable = decoded(header, declared.as_deref(), false, sink).into_bytes();
    readable.extend(body);
    Cow::Owned(readable)
}

/// Reads a mail with those within it, and returns its subject.
fn read_message(message: &Message<'_>, depth: usize, sink: &mut Sink<'_>) -> Option<String> {
    let field = |name: HeaderName<'static>| {
        let value = message.header(name)?.as_text()?;
        Some(squeeze(value)).filter(|value| !value.is_empty())
    };
    let subject = field(HeaderName::Subject);
    if let Some(subject) = &subject {
        sink.push(Block {
            heading: u8::try_from(depth.min(6)).ok(),
            ..Block::new(subject.as_str())
        });
    }
    let known = HEADER.into_iter().filter_map(|name| {
        let value = field(name.clone())?;
        Some(format!("{}: {value}", name.as_str()))
    });
    sink.push(Block::new(known.collect::<Vec<_>>().join("\n")));
    body(message, sink);
    let parts = message.attachments.iter();
    let parts: Vec<_> = parts.filter_map(|&number| message.part(number)).collect();
    let names: Vec<_> = parts
        .iter()
        .filter_map(|part| part.attachment_name())
        .collect();
    if !names.is_empty() {
        sink.push(Block::new(format!("Attached: {}", names.join(", "))));
    }
    for part in parts {
        if let PartType::Message(inner) = &part.body {
            if depth < DEEPEST {
                read_message(inner, depth + 1, sink);
            } else {
                sink.warn("Mails within mails are searched to a depth of 8.");
            }
        }
    }
    subject
}

/// Reads what a mail shows: its plain text, or its HTML if there is much more of it.
fn body(message: &Message<'_>, sink: &mut Sink<'_>) {
    let mut words = String::new();
    let mut pages = Vec::new();
    for part in message
        .text_body
        .iter()
        .filter_map(|&number| message.part(number))
    {
        if let PartType::Text(_) = part.body {
            words.push_str(&text_of(message, part, sink));
            words.push_str("\n\n");
        }
    }
    for part in message
        .html_body
        .iter()
        .filter_map(|&number| message.part(number))
    {
        if let PartType::Html(_) = part.body {
            let page = text_of(message, part, sink);
            html::for_each_block(&page, &mut |block| pages.push(block), &mut None);
        }
    }
    let shown: usize = pages.iter().map(|block| block.text.len()).sum();
    if words.trim().len() * 2 < shown {
        for block in pages {
            sink.push(block);
        }
    } else {
        plain::read(&words, sink);
    }
}

/// Returns a part's text in its declared encoding.
fn text_of(message: &Message<'_>, part: &MessagePart<'_>, sink: &mut Sink<'_>) -> String {
    let raw = message
        .raw_message
        .get(part.raw_body_offset() as usize..part.raw_end_offset() as usize)
        .unwrap_or_default();
    let bytes = match part.encoding {
        Encoding::None => Some(Cow::Borrowed(raw)),
        Encoding::QuotedPrintable => quoted_printable_decode(raw).map(Cow::Owned),
        Encoding::Base64 => base64_decode(raw).map(Cow::Owned),
    };
    let parsed = part.text_contents().unwrap_or_default();
    let Some(bytes) = bytes else {
        return parsed.to_owned();
    };
    let kind = part.content_type();
    let declared = kind.and_then(|kind| kind.attribute("charset"));
    // UTF-7 is no encoding of the web's.
    let is_of_mail_alone = declared
        .is_some_and(|name| !charset::is_known(name) && charset_decoder(name.as_bytes()).is_some());
    if is_of_mail_alone {
        return parsed.to_owned();
    }
    decoded(&bytes, declared, part.is_text_html(), sink)
}

/// Returns bytes as text, and notes whether its letters may be wrong.
fn decoded(bytes: &[u8], declared: Option<&str>, is_html: bool, sink: &mut Sink<'_>) -> String {
    let own = match declared {
        Some(name) => Some(name.to_owned()),
        None => charset::declared_in(bytes, is_html),
    };
    match charset::decode(bytes, own.as_deref()) {
        Some(decoded) => {
            decoded.doubt.into_iter().for_each(|doubt| sink.warn(doubt));
            decoded.text
        }
        None => String::from_utf8_lossy(bytes).into_owned(),
    }
}

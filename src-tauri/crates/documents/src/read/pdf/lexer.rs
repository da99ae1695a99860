//! Objects and operators as they are written (ISO 32000-2, 7.2 and 7.3).

use super::{
    filters::hexadecimal,
    objects::{Dictionary, Object},
};
use std::rc::Rc;

/// Arrays and dictionaries are read to this depth.
const DEEPEST: usize = 40;
const MOST_ITEMS: usize = 1 << 20;

#[derive(Debug, Clone)]
pub(super) struct Lexer<'a> {
    bytes: &'a [u8],
    pub(super) at: usize,
}

/// What a content stream is made of.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    Object(Object),
    /// An operator.
    Word(Vec<u8>),
}

pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, 0 | b'\t' | b'\n' | 0xc | b'\r' | b' ')
}

fn is_delimiter(byte: u8) -> bool {
    matches!(
        byte,
        b'(' | b')' | b'<' | b'>' | b'[' | b']' | b'{' | b'}' | b'/' | b'%'
    )
}

fn is_regular(byte: u8) -> bool {
    !is_space(byte) && !is_delimiter(byte)
}

impl<'a> Lexer<'a> {
    pub(super) fn new(bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, at }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    pub(super) fn starts_with(&self, word: &[u8]) -> bool {
        let rest = self.bytes.get(self.at..);
        rest.is_some_and(|rest| rest.starts_with(word))
    }

    pub(super) fn skip_space(&mut self) {
        while let Some(byte) = self.peek() {
            if byte == b'%' {
                while self
                    .peek()
                    .is_some_and(|byte| byte != b'\n' && byte != b'\r')
                {
                    self.at += 1;
                }
            } else if is_space(byte) {
                self.at += 1;
            } else {
                return;
            }
        }
    }

    /// Returns the next token, which takes at least one byte. `None` at the end.
    pub(super) fn token(&mut self) -> Option<Token> {
        self.skip_space();
        let byte = self.peek()?;
        if matches!(
            byte,
            b'/' | b'(' | b'<' | b'[' | b'+' | b'-' | b'.' | b'0'..=b'9'
        ) {
            return Some(Token::Object(self.object(0)));
        }
        let word = self.word();
        if word.is_empty() {
            self.at += 1;
        }
        Some(match word {
            b"true" => Token::Object(Object::Bool(true)),
            b"false" => Token::Object(Object::Bool(false)),
            b"null" => Token::Object(Object::Null),
            word => Token::Word(word.to_vec()),
        })
    }

    fn word(&mut self) -> &'a [u8] {
        let begun = self.at;
        while self.peek().is_some_and(is_regular) {
            self.at += 1;
        }
        &self.bytes[begun..self.at]
    }

    /// Reads one object; what is none is `Null`. It takes at least one byte, unless at the end.
    pub(super) fn object(&mut self, depth: usize) -> Object {
        self.skip_space();
        let Some(byte) = self.peek() else {
            return Object::Null;
        };
        if depth > DEEPEST {
            self.at += 1;
            return Object::Null;
        }
        match byte {
            b'/' => Object::Name(self.name().into()),
            b'(' => Object::Text(self.literal().into()),
            b'[' => self.array(depth),
            b'<' if self.starts_with(b"<<") => Object::Dictionary(Rc::new(self.dictionary(depth))),
            b'<' => Object::Text(self.hexadecimal().into()),
            b'+' | b'-' | b'.' | b'0'..=b'9' => self.number_or_reference(),
            _ => match self.word() {
                b"true" => Object::Bool(true),
                b"false" => Object::Bool(false),
                b"" => {
                    self.at += 1;
                    Object::Null
                }
                _ => Object::Null,
            },
        }
    }

    fn array(&mut self, depth: usize) -> Object {
        self.at += 1;
        let mut items = Vec::new();
        loop {
            self.skip_space();
            match self.peek() {
                None => break,
                Some(b']') => {
                    self.at += 1;
                    break;
                }
                // The array's end is missing.
                Some(b'>') => break,
                Some(_) => {
                    let item = self.object(depth + 1);
                    if items.len() < MOST_ITEMS {
                        items.push(item);
                    }
                }
            }
        }
        Object::Array(items.into())
    }

    /// Reads a dictionary, from its `<<`.
    fn dictionary(&mut self, depth: usize) -> Dictionary {
        self.at += 2;
        let mut entries = Dictionary::default();
        loop {
            self.skip_space();
            match self.peek() {
                None => break,
                Some(b'>') => {
                    self.at += if self.starts_with(b">>") { 2 } else { 1 };
                    break;
                }
                Some(b'/') => {
                    let name = self.name();
                    self.skip_space();
                    // A name without a value.
                    if !self.starts_with(b">>") {
                        let value = self.object(depth + 1);
                        entries.insert(name, value);
                    }
                }
                // The dictionary's end is missing.
                Some(_) if self.starts_with(b"endobj") || self.starts_with(b"stream") => break,
                Some(_) => {
                    self.object(depth + 1);
                }
            }
        }
        entries
    }

    fn name(&mut self) -> String {
        self.at += 1;
        let raw = self.word();
        let (mut name, mut at) = (Vec::with_capacity(raw.len()), 0);
        while at < raw.len() {
            let pair = raw.get(at + 1..at + 3).filter(|_| raw[at] == b'#');
            let escaped = pair.and_then(|pair| Some(digit(pair[0])? * 16 + digit(pair[1])?));
            name.push(escaped.unwrap_or(raw[at]));
            at += if escaped.is_some() { 3 } else { 1 };
        }
        String::from_utf8_lossy(&name).into_owned()
    }

    fn number(&mut self) -> f64 {
        let begun = self.at;
        self.at += 1;
        while self
            .peek()
            .is_some_and(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'-'))
        {
            self.at += 1;
        }
        let raw = std::str::from_utf8(&self.bytes[begun..self.at]).unwrap_or_default();
        let number = raw.parse().or_else(|_| {
            // `--5` and `1-2`, as some programs write.
            let digits = raw.trim_start_matches(['-', '+']);
            digits.split('-').next().unwrap_or_default().parse::<f64>()
        });
        number
            .ok()
            .filter(|number| number.is_finite())
            .unwrap_or(0.0)
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::float_cmp,
        reason = "an object's number is a whole one"
    )]
    fn number_or_reference(&mut self) -> Object {
        let number = self.number();
        if number < 0.0 || number != number.trunc() || number > f64::from(u32::MAX) {
            return Object::Number(number);
        }
        // `12 0 R`
        let mut ahead = Lexer::new(self.bytes, self.at);
        if ahead.spaces() {
            let begun = ahead.at;
            while ahead.at < begun + 5 && ahead.peek().is_some_and(|byte| byte.is_ascii_digit()) {
                ahead.at += 1;
            }
            let ends = |at: usize| self.bytes.get(at).is_none_or(|&byte| !is_regular(byte));
            if ahead.at > begun
                && ahead.spaces()
                && ahead.peek() == Some(b'R')
                && ends(ahead.at + 1)
            {
                self.at = ahead.at + 1;
                return Object::Reference(number as u32);
            }
        }
        Object::Number(number)
    }

    fn spaces(&mut self) -> bool {
        let begun = self.at;
        while self.peek().is_some_and(is_space) {
            self.at += 1;
        }
        self.at > begun
    }

    fn literal(&mut self) -> Vec<u8> {
        self.at += 1;
        let (mut text, mut depth) = (Vec::new(), 1);
        while let Some(byte) = self.peek() {
            self.at += 1;
            match byte {
                b'(' => depth += 1,
                b')' => {
                    depth -= 1;
                    if depth == 0 {
                        break;
                    }
                }
                b'\\' => {
                    self.escape(&mut text);
                    continue;
                }
                _ => {}
            }
            text.push(byte);
        }
        text
    }

    fn escape(&mut self, text: &mut Vec<u8>) {
        let Some(byte) = self.peek() else {
            return;
        };
        self.at += 1;
        match byte {
            b'n' => text.push(b'\n'),
            b'r' => text.push(b'\r'),
            b't' => text.push(b'\t'),
            b'b' => text.push(8),
            b'f' => text.push(12),
            b'\r' => {
                if self.peek() == Some(b'\n') {
                    self.at += 1;
                }
            }
            b'\n' => {}
            b'0'..=b'7' => {
                let mut code = u32::from(byte - b'0');
                for _ in 0..2 {
                    let Some(next @ b'0'..=b'7') = self.peek() else {
                        break;
                    };
                    code = code * 8 + u32::from(next - b'0');
                    self.at += 1;
                }
                text.push(u8::try_from(code & 0xff).unwrap_or_default());
            }
            other => text.push(other),
        }
    }

    fn hexadecimal(&mut self) -> Vec<u8> {
        let rest = self.bytes.get(self.at + 1..).unwrap_or_default();
        let end = rest.iter().position(|&byte| byte == b'>');
        self.at += 1 + end.map_or(rest.len(), |end| end + 1);
        hexadecimal(rest)
    }
}

pub(super) fn digit(byte: u8) -> Option<u8> {
    let digit = char::from(byte).to_digit(16)?;
    u8::try_from(digit).ok()
}

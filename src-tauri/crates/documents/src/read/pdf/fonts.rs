//! Fonts, as far as text needs them: what a code's letters are, and how wide its glyph is (9.5 to 9.10).

use super::{
    encodings::{Encoding, glyph},
    lexer::{Lexer, Token},
    objects::{Dictionary, File, Object},
};
use crate::text;
use std::{collections::HashMap, rc::Rc};

/// Letters of one code, at most.
const LONGEST_CODE: usize = 32;
const MOST_CODES: usize = 100_000;

/// A code of a text, as a font reads it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Glyph {
    /// `None` if the font does not tell.
    pub(super) letters: Option<Rc<str>>,
    /// In units of the text's size.
    pub(super) width: f64,
    /// The code 32 of one byte, to which word spacing is added.
    pub(super) is_space: bool,
}

#[derive(Debug)]
pub(super) struct Font {
    letters: HashMap<u32, Rc<str>>,
    widths: HashMap<u32, f64>,
    default_width: f64,
    /// Codes of two bytes.
    wide: bool,
    /// Codes are UTF-16 themselves.
    is_utf16: bool,
}

impl Font {
    pub(super) fn read(file: &File<'_>, font: &Dictionary) -> Self {
        let name = |of: &str| {
            file.get(font, of)
                .and_then(|found| found.name().map(str::to_owned))
        };
        let wide = name("Subtype").as_deref() == Some("Type0");
        let mut read = match wide {
            true => Self::composite(file, font, name("Encoding").as_deref()),
            false => Self::simple(file, font, name("Subtype").as_deref(), name("BaseFont")),
        };
        if let Some(Object::Stream(map)) = file.get(font, "ToUnicode") {
            read.add_map(&file.decode(&map));
        }
        read
    }

    fn simple(
        file: &File<'_>,
        font: &Dictionary,
        kind: Option<&str>,
        name: Option<String>,
    ) -> Self {
        let name = name.unwrap_or_default();
        let descriptor = file
            .get(font, "FontDescriptor")
            .and_then(|found| found.dictionary());
        let flags = descriptor
            .as_ref()
            .and_then(|all| file.whole(all, "Flags"))
            .unwrap_or_default();
        let is_symbol = name.ends_with("Symbol");
        let encoding = file.get(font, "Encoding");
        let base = match &encoding {
            Some(Object::Name(name)) => Encoding::of_name(name),
            Some(encoding) => encoding
                .dictionary()
                .and_then(|all| file.get(&all, "BaseEncoding"))
                .and_then(|base| Encoding::of_name(base.name()?)),
            None => None,
        };
        let base = base.unwrap_or(match (is_symbol, kind) {
            (true, _) => Encoding::Symbol,
            (false, Some("TrueType")) if flags & 4 == 0 => Encoding::Windows,
            (false, _) => Encoding::Standard,
        });
        let mut letters = HashMap::new();
        // The bitmaps of a Type 3 font have no usual letters.
        if kind != Some("Type3") {
            for code in 0..=255_u8 {
                if let Some(letter) = base.letter(code) {
                    letters.insert(u32::from(code), Rc::from(letter.to_string()));
                }
            }
        }
        if let Some(own) = descriptor
            .as_ref()
            .and_then(|all| file.get(all, "FontFile"))
            && let Object::Stream(program) = own
            && !matches!(encoding, Some(Object::Name(_)))
        {
            letters.extend(own_encoding(&file.decode(&program)));
        }
        if let Some(encoding) = encoding.and_then(|encoding| encoding.dictionary())
            && let Some(Object::Array(differences)) = file.get(&encoding, "Differences")
        {
            let mut code = 0;
            for item in differences.iter() {
                match file.resolve(item) {
                    Object::Name(name) => {
                        match glyph(&name) {
                            Some(found) => letters.insert(code, Rc::from(found)),
                            None => letters.remove(&code),
                        };
                        code += 1;
                    }
                    other => {
                        code = other
                            .whole()
                            .and_then(|code| u32::try_from(code).ok())
                            .unwrap_or(code)
                    }
                }
            }
        }
        // Widths of Type 3 are in units of the glyphs' own space.
        let unit = match (kind, file.get(font, "FontMatrix")) {
            (Some("Type3"), Some(Object::Array(matrix))) => matrix
                .first()
                .and_then(Object::number)
                .unwrap_or(0.001)
                .abs(),
            _ => 0.001,
        };
        let mut widths = HashMap::new();
        let first = file.whole(font, "FirstChar").unwrap_or_default();
        if let Some(Object::Array(listed)) = file.get(font, "Widths") {
            for (code, width) in (first..).zip(listed.iter().take(256)) {
                if let (Ok(code), Some(width)) = (u32::try_from(code), file.resolve(width).number())
                {
                    widths.insert(code, width * unit);
                }
            }
        }
        let missing = descriptor
            .and_then(|all| file.get(&all, "MissingWidth"))
            .and_then(|width| width.number())
            .filter(|&width| width > 0.0);
        let usual = if name.contains("Courier") {
            600.0
        } else {
            500.0
        };
        Self {
            letters,
            default_width: missing.unwrap_or(usual) * unit,
            widths,
            wide: false,
            is_utf16: false,
        }
    }

    fn composite(file: &File<'_>, font: &Dictionary, encoding: Option<&str>) -> Self {
        let descendant = match file.get(font, "DescendantFonts") {
            Some(Object::Array(fonts)) => fonts.first().map(|font| file.resolve(font)),
            other => other,
        };
        let descendant = descendant
            .and_then(|font| font.dictionary())
            .unwrap_or_default();
        let mut widths = HashMap::new();
        if let Some(Object::Array(listed)) = file.get(&descendant, "W") {
            add_widths(file, &listed, &mut widths);
        }
        let default = file.get(&descendant, "DW").and_then(|width| width.number());
        Self {
            letters: HashMap::new(),
            widths,
            default_width: default.unwrap_or(1000.0) * 0.001,
            wide: true,
            is_utf16: encoding.is_some_and(|name| name.contains("UCS2") || name.contains("UTF16")),
        }
    }

    /// Reads a map of codes to letters (9.10.3).
    fn add_map(&mut self, map: &[u8]) {
        let mut lexer = Lexer::new(map, 0);
        let mut operands: Vec<Object> = Vec::new();
        let mut codes = 0;
        while let Some(token) = lexer.token() {
            match token {
                Token::Object(object) => {
                    operands.push(object);
                    if operands.len() > 4096 {
                        operands.clear();
                    }
                    continue;
                }
                Token::Word(word) => match word.as_slice() {
                    b"endbfchar" => {
                        for pair in operands.chunks_exact(2) {
                            if let (Some(code), Object::Text(letters)) = (code(&pair[0]), &pair[1])
                            {
                                self.map(code, letters, 0);
                                codes += 1;
                            }
                        }
                    }
                    b"endbfrange" => {
                        for range in operands.chunks_exact(3) {
                            let (Some(first), Some(last)) = (code(&range[0]), code(&range[1]))
                            else {
                                continue;
                            };
                            for (code, step) in (first..=last).zip(0_u32..) {
                                match &range[2] {
                                    Object::Text(letters) => self.map(code, letters, step),
                                    Object::Array(each) => {
                                        if let Some(Object::Text(letters)) = each.get(step as usize)
                                        {
                                            self.map(code, letters, 0);
                                        }
                                    }
                                    _ => {}
                                }
                                codes += 1;
                                if codes > MOST_CODES {
                                    return;
                                }
                            }
                        }
                    }
                    _ => {}
                },
            }
            operands.clear();
            if codes > MOST_CODES {
                return;
            }
        }
    }

    fn map(&mut self, code: u32, utf16: &[u8], step: u32) {
        if utf16.is_empty() || utf16.len() > LONGEST_CODE {
            return;
        }
        let mut letters = match utf16 {
            [one] => char::from(*one).to_string(),
            utf16 => text::utf16(utf16, u16::from_be_bytes),
        };
        if step > 0
            && let Some(last) = letters.pop()
        {
            let next = (last as u32).checked_add(step).and_then(char::from_u32);
            letters.push(next.unwrap_or(char::REPLACEMENT_CHARACTER));
        }
        if letters.chars().all(|letter| letter == '\0') {
            return;
        }
        self.letters.insert(code, letters.into());
    }

    pub(super) fn glyphs<'a>(&'a self, text: &'a [u8]) -> impl Iterator<Item = Glyph> + 'a {
        let size = if self.wide { 2 } else { 1 };
        text.chunks(size).map(move |code| {
            let code = code.iter().fold(0, |sum, &byte| sum << 8 | u32::from(byte));
            let own = || match self.is_utf16 {
                true => char::from_u32(code).map(|letter| Rc::from(letter.to_string())),
                false => None,
            };
            Glyph {
                letters: self.letters.get(&code).cloned().or_else(own),
                width: self
                    .widths
                    .get(&code)
                    .copied()
                    .unwrap_or(self.default_width),
                is_space: !self.wide && code == 32,
            }
        })
    }
}

fn code(object: &Object) -> Option<u32> {
    let Object::Text(bytes) = object else {
        return None;
    };
    (bytes.len() <= 4).then(|| {
        bytes
            .iter()
            .fold(0, |sum, &byte| sum << 8 | u32::from(byte))
    })
}

/// `[ 1 [500 600] 3 7 250 ]`: codes 1 and 2, and 3 to 7.
fn add_widths(file: &File<'_>, listed: &[Object], widths: &mut HashMap<u32, f64>) {
    let mut at = 0;
    while let (Some(first), Some(second)) = (listed.get(at), listed.get(at + 1)) {
        let whole = |object: &Object| {
            let number = file.resolve(object).whole()?;
            u32::try_from(number).ok()
        };
        let Some(first) = whole(first) else {
            return;
        };
        match file.resolve(second) {
            Object::Array(each) => {
                for (code, width) in (first..).zip(each.iter()) {
                    if let Some(width) = file.resolve(width).number() {
                        widths.insert(code, width * 0.001);
                    }
                }
                at += 2;
            }
            _ => {
                let width = listed
                    .get(at + 2)
                    .and_then(|width| file.resolve(width).number());
                let (Some(last), Some(width)) = (whole(second), width) else {
                    return;
                };
                for code in first..=last.min(first.saturating_add(0xffff)) {
                    widths.insert(code, width * 0.001);
                }
                at += 3;
            }
        }
    }
}

/// The encoding within a Type 1 font, whose beginning is plain text: `dup 65 /A put`.
fn own_encoding(program: &[u8]) -> HashMap<u32, Rc<str>> {
    let mut found = HashMap::new();
    let end = program
        .windows(5)
        .position(|five| five == b"eexec")
        .unwrap_or(program.len());
    let Some(begun) = program[..end]
        .windows(9)
        .position(|nine| nine == b"/Encoding")
    else {
        return found;
    };
    let mut lexer = Lexer::new(&program[..end], begun + 9);
    let mut last: [Option<Object>; 2] = [None, None];
    while let Some(token) = lexer.token() {
        match token {
            Token::Object(object) => last = [last[1].take(), Some(object)],
            Token::Word(word) if word == b"put" => {
                if let [Some(code), Some(Object::Name(name))] = &last
                    && let Some(code) = code.whole().and_then(|code| u32::try_from(code).ok())
                    && let Some(letters) = glyph(name)
                {
                    found.insert(code, Rc::from(letters));
                }
            }
            Token::Word(word) if word == b"def" || word == b"readonly" => break,
            Token::Word(_) => {}
        }
    }
    found
}

//! A file's objects: where they are, and what they refer to.

use super::{
    filters::{self, Predictor, Undecoded},
    lexer::{Lexer, is_space},
};
use crate::text;
use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    rc::Rc,
};

/// A reference may lead to a reference.
const MOST_STEPS: usize = 16;
/// The most bytes that all streams of objects unpack to.
const MOST_OBJECT_BYTES: usize = 128 << 20;
const MOST_OBJECTS_IN_STREAM: usize = 100_000;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Object {
    Null,
    Bool(bool),
    Number(f64),
    Name(Rc<str>),
    Text(Rc<[u8]>),
    Array(Rc<[Object]>),
    Dictionary(Rc<Dictionary>),
    Stream(Rc<Stream>),
    Reference(u32),
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Dictionary(HashMap<String, Object>);

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Stream {
    pub(super) dictionary: Rc<Dictionary>,
    /// Of the file's bytes.
    start: usize,
    end: usize,
}

impl Dictionary {
    pub(super) fn insert(&mut self, name: String, value: Object) {
        self.0.insert(name, value);
    }

    /// The value as it is written.
    pub(super) fn raw(&self, name: &str) -> Option<&Object> {
        self.0.get(name)
    }

    /// The number of the object that an entry refers to.
    pub(super) fn id_of(&self, name: &str) -> Option<u32> {
        self.raw(name).and_then(Object::reference)
    }
}

impl Object {
    pub(super) fn number(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            _ => None,
        }
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked to be in range"
    )]
    pub(super) fn whole(&self) -> Option<usize> {
        let number = self.number()?;
        (0.0..=4e15).contains(&number).then_some(number as usize)
    }

    pub(super) fn name(&self) -> Option<&str> {
        match self {
            Self::Name(name) => Some(name),
            _ => None,
        }
    }

    pub(super) fn reference(&self) -> Option<u32> {
        match self {
            Self::Reference(id) => Some(*id),
            _ => None,
        }
    }

    /// A dictionary, also that of a stream.
    pub(super) fn dictionary(&self) -> Option<Rc<Dictionary>> {
        match self {
            Self::Dictionary(dictionary) => Some(Rc::clone(dictionary)),
            Self::Stream(stream) => Some(Rc::clone(&stream.dictionary)),
            _ => None,
        }
    }

    /// A text string (7.9.2.2).
    pub(super) fn text(&self) -> Option<String> {
        let Self::Text(bytes) = self else {
            return None;
        };
        if let Some(rest) = bytes.strip_prefix(b"\xfe\xff") {
            return Some(text::utf16(rest, u16::from_be_bytes));
        }
        if let Some(rest) = bytes.strip_prefix(b"\xef\xbb\xbf") {
            return Some(String::from_utf8_lossy(rest).into_owned());
        }
        Some(text::windows_1252(bytes))
    }
}

#[derive(Debug, Clone, Copy)]
enum Place {
    At(usize),
    /// The stream of objects, and the place within it.
    Within(u32, usize),
}

#[derive(Debug)]
pub(super) struct File<'a> {
    bytes: &'a [u8],
    places: HashMap<u32, Place>,
    /// Streams of objects, unpacked.
    unpacked: HashMap<u32, Vec<u8>>,
    trailers: Vec<Rc<Dictionary>>,
    read: RefCell<HashMap<u32, Object>>,
    exploded: Cell<bool>,
}

impl<'a> File<'a> {
    pub(super) fn open(bytes: &'a [u8]) -> Self {
        let mut file = Self {
            bytes,
            places: HashMap::new(),
            unpacked: HashMap::new(),
            trailers: Vec::new(),
            read: RefCell::default(),
            exploded: Cell::new(false),
        };
        let streams = file.scan();
        if !file.is_encrypted() {
            file.unpack(&streams);
        }
        file
    }

    /// Finds the objects, the later ones of a number in place of the earlier. Returns the streams of objects.
    fn scan(&mut self) -> Vec<u32> {
        let mut streams = Vec::new();
        let mut at = 0;
        while let Some(found) = find(self.bytes, at, &[b"obj", b"trailer"]) {
            if self.bytes[found..].starts_with(b"trailer") {
                let mut lexer = Lexer::new(self.bytes, found + 7);
                if let Object::Dictionary(trailer) = lexer.object(0) {
                    self.trailers.push(trailer);
                }
                at = lexer.at;
                continue;
            }
            at = found + 3;
            let Some(number) = number_before(self.bytes, found) else {
                continue;
            };
            let (object, end) = self.object_at(at);
            self.places.insert(number, Place::At(at));
            streams.retain(|stream| *stream != number);
            if let Object::Stream(stream) = &object {
                match stream.dictionary.raw("Type").and_then(Object::name) {
                    Some("ObjStm") => streams.push(number),
                    Some("XRef") => self.trailers.push(Rc::clone(&stream.dictionary)),
                    _ => {}
                }
            }
            at = end.max(at);
        }
        streams
    }

    /// Reads the directories of streams of objects (7.5.7).
    fn unpack(&mut self, streams: &[u32]) {
        let mut total = 0;
        for &id in streams {
            let Object::Stream(stream) = self.resolve(&Object::Reference(id)) else {
                continue;
            };
            let bytes = self.decode(&stream);
            total += bytes.len();
            if total > MOST_OBJECT_BYTES {
                self.exploded.set(true);
                return;
            }
            let first = self.whole(&stream.dictionary, "First").unwrap_or_default();
            let count = self.whole(&stream.dictionary, "N").unwrap_or_default();
            let mut lexer = Lexer::new(&bytes, 0);
            for _ in 0..count.min(MOST_OBJECTS_IN_STREAM) {
                let (number, at) = (lexer.object(0).whole(), lexer.object(0).whole());
                let number = number.and_then(|number| u32::try_from(number).ok());
                let (Some(number), Some(at)) = (number, at) else {
                    break;
                };
                // One that stands in the file itself is newer, or the same; so is one of a later stream.
                let place = Place::Within(id, first.saturating_add(at));
                let kept = self.places.entry(number).or_insert(place);
                if matches!(kept, Place::Within(..)) {
                    *kept = place;
                }
            }
            self.unpacked.insert(id, bytes);
        }
        self.read.borrow_mut().clear();
    }

    /// Reads the object behind `obj`. Returns where it ends.
    fn object_at(&self, start: usize) -> (Object, usize) {
        let mut lexer = Lexer::new(self.bytes, start);
        let object = lexer.object(0);
        let Object::Dictionary(dictionary) = &object else {
            return (object, lexer.at);
        };
        lexer.skip_space();
        if !lexer.starts_with(b"stream") {
            return (object, lexer.at);
        }
        let mut from = lexer.at + 6;
        if self.bytes.get(from) == Some(&b'\r') {
            from += 1;
        }
        if self.bytes.get(from) == Some(&b'\n') {
            from += 1;
        }
        let from = from.min(self.bytes.len());
        let length = dictionary.raw("Length").and_then(Object::whole);
        let ends = |end: usize| {
            let mut lexer = Lexer::new(self.bytes, end);
            lexer.skip_space();
            lexer.starts_with(b"endstream")
        };
        let declared = length.and_then(|length| from.checked_add(length));
        let declared = declared.filter(|&end| end <= self.bytes.len() && ends(end));
        let end = declared
            .or_else(|| find(self.bytes, from, &[b"endstream"]))
            .unwrap_or(self.bytes.len());
        let stream = Stream {
            dictionary: Rc::clone(dictionary),
            start: from,
            end,
        };
        (Object::Stream(Rc::new(stream)), end)
    }

    /// Follows references.
    pub(super) fn resolve(&self, object: &Object) -> Object {
        let mut object = object.clone();
        for _ in 0..MOST_STEPS {
            let Object::Reference(id) = object else {
                return object;
            };
            object = self.read(id);
        }
        Object::Null
    }

    fn read(&self, id: u32) -> Object {
        if let Some(read) = self.read.borrow().get(&id) {
            return read.clone();
        }
        let object = match self.places.get(&id) {
            None => Object::Null,
            Some(Place::At(start)) => self.object_at(*start).0,
            Some(Place::Within(stream, at)) => match self.unpacked.get(stream) {
                Some(bytes) => Lexer::new(bytes, *at).object(0),
                None => Object::Null,
            },
        };
        self.read.borrow_mut().insert(id, object.clone());
        object
    }

    /// An entry of a dictionary, with its references followed. `None` if it is missing or null.
    pub(super) fn get(&self, dictionary: &Dictionary, name: &str) -> Option<Object> {
        let found = self.resolve(dictionary.raw(name)?);
        (found != Object::Null).then_some(found)
    }

    pub(super) fn whole(&self, dictionary: &Dictionary, name: &str) -> Option<usize> {
        self.get(dictionary, name)?.whole()
    }

    pub(super) fn is_encrypted(&self) -> bool {
        let mut trailers = self.trailers.iter();
        trailers.any(|trailer| {
            trailer
                .raw("Encrypt")
                .is_some_and(|how| *how != Object::Null)
        })
    }

    pub(super) fn root(&self) -> Option<Rc<Dictionary>> {
        let of_trailers = self.trailers.iter().rev();
        let mut named = of_trailers.filter_map(|trailer| self.get(trailer, "Root")?.dictionary());
        let has_pages = |root: &Rc<Dictionary>| self.get(root, "Pages").is_some();
        named.find(has_pages).or_else(|| {
            let mut ids: Vec<_> = self.places.keys().copied().collect();
            ids.sort_unstable();
            ids.into_iter().find_map(|id| {
                let Object::Dictionary(object) = self.read(id) else {
                    return None;
                };
                let kind = self.get(&object, "Type")?;
                (kind.name() == Some("Catalog")).then_some(object)
            })
        })
    }

    pub(super) fn information(&self) -> Option<Rc<Dictionary>> {
        let mut trailers = self.trailers.iter().rev();
        trailers.find_map(|trailer| self.get(trailer, "Info")?.dictionary())
    }

    /// Some stream has unpacked to too much.
    pub(super) fn has_exploded(&self) -> bool {
        self.exploded.get()
    }

    /// The bytes of a picture that is a JPEG file with nothing packed around it.
    pub(super) fn jpeg(&self, stream: &Stream) -> Option<&'a [u8]> {
        let filter = match self.get(&stream.dictionary, "Filter")? {
            Object::Array(filters) if filters.len() == 1 => self.resolve(&filters[0]),
            other => other,
        };
        let bytes = self.bytes.get(stream.start..stream.end)?;
        let is_jpeg =
            matches!(filter.name(), Some("DCTDecode" | "DCT")) && bytes.starts_with(b"\xff\xd8");
        is_jpeg.then_some(bytes)
    }

    /// A stream's bytes, unpacked; none of a picture's.
    pub(super) fn decode(&self, stream: &Stream) -> Vec<u8> {
        let list = |name: &str| -> Vec<Object> {
            match self.get(&stream.dictionary, name) {
                Some(Object::Array(items)) => items.iter().map(|item| self.resolve(item)).collect(),
                Some(one) => vec![one],
                None => Vec::new(),
            }
        };
        let (names, parameters) = (list("Filter"), list("DecodeParms"));
        let mut bytes = self.bytes[stream.start..stream.end].to_vec();
        for (at, name) in names.iter().enumerate() {
            let parameters = parameters.get(at).and_then(Object::dictionary);
            let number = |name: &str, default: usize| {
                let found = parameters.as_ref().and_then(|all| self.whole(all, name));
                found.unwrap_or(default)
            };
            let predictor = Predictor {
                kind: number("Predictor", 1),
                colors: number("Colors", 1),
                bits: number("BitsPerComponent", 8),
                columns: number("Columns", 1),
            };
            let early = number("EarlyChange", 1) != 0;
            let name = name.name().unwrap_or_default();
            match filters::decode(name, &bytes, predictor, early) {
                Ok(decoded) => bytes = decoded,
                Err(Undecoded::TooLarge) => {
                    self.exploded.set(true);
                    return Vec::new();
                }
                Err(Undecoded::Picture) => return Vec::new(),
            }
        }
        bytes
    }
}

/// Where the first of some words begins, from `at` on.
fn find(bytes: &[u8], at: usize, words: &[&[u8]]) -> Option<usize> {
    let rest = bytes.get(at..)?;
    let found = (0..rest.len()).find(|&at| words.iter().any(|word| rest[at..].starts_with(word)));
    found.map(|found| at + found)
}

/// The object's number of `12 0 obj`, from where `obj` is.
fn number_before(bytes: &[u8], obj: usize) -> Option<u32> {
    let mut at = obj;
    spaces_before(bytes, &mut at);
    digits_before(bytes, &mut at)?;
    if !spaces_before(bytes, &mut at) {
        return None;
    }
    digits_before(bytes, &mut at)
}

fn spaces_before(bytes: &[u8], at: &mut usize) -> bool {
    let begun = *at;
    while *at > 0 && is_space(bytes[*at - 1]) {
        *at -= 1;
    }
    begun > *at
}

fn digits_before(bytes: &[u8], at: &mut usize) -> Option<u32> {
    let end = *at;
    while *at > 0 && end - *at < 10 && bytes[*at - 1].is_ascii_digit() {
        *at -= 1;
    }
    std::str::from_utf8(&bytes[*at..end]).ok()?.parse().ok()
}

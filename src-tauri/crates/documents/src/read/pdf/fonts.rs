//! Fonts, as far as text needs them: what a code's letters are, and how far its glyph moves on (9.5 to 9.10).

use hayro_cmap::{BfString, CMap, CMapName, CidFamily, load_embedded};
use hayro_font::{CMapResolverFn, FontCache, FontGlyph, FontQuery, FontResolverFn, GlyphId};
use hayro_syntax::object::{Array, Dict, Name, Object, Rect, String as Text};
use std::{
    cell::{OnceCell, RefCell},
    collections::HashMap,
    rc::Rc,
    sync::Arc,
};

/// Fonts that are kept; a file may have one of its own for each page.
const MOST_FONTS: usize = 256;

/// A code of a text, as a font reads it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Glyph {
    /// `None` if the font does not tell.
    pub(super) letters: Option<Rc<str>>,
    /// In units of the text's size.
    pub(super) advance: (f64, f64),
    /// The code 32 of one byte, to which word spacing is added.
    pub(super) is_space: bool,
}

pub(super) struct Fonts<'a> {
    /// By where a font's dictionary stands.
    read: HashMap<usize, Rc<Font<'a>>>,
    programs: FontCache<'a>,
    find_font: FontResolverFn,
    find_map: CMapResolverFn,
}

impl<'a> Fonts<'a> {
    pub(super) fn new() -> Self {
        Self {
            read: HashMap::new(),
            programs: FontCache::new(),
            find_font: Arc::new(|query| {
                let font = match query {
                    FontQuery::Standard(font) => *font,
                    FontQuery::Fallback(query) => query.pick_standard_font(),
                };
                Some(font.get_font_data())
            }),
            find_map: Arc::new(load_embedded),
        }
    }

    /// The font of a dictionary; one of the standard fonts without it.
    pub(super) fn font(&mut self, dictionary: Option<&Dict<'a>>) -> Rc<Font<'a>> {
        let missing = Dict::empty();
        let dictionary = dictionary.unwrap_or(&missing);
        let place = dictionary.data().as_ptr() as usize;
        if let Some(font) = self.read.get(&place) {
            return Rc::clone(font);
        }
        if self.read.len() >= MOST_FONTS {
            self.read.clear();
            self.programs = FontCache::new();
        }
        let font = self
            .programs
            .font(dictionary, &self.find_font, &self.find_map)
            .or_else(|| {
                let font = hayro_font::StandardFont::Helvetica;
                self.programs.standard_font(font, &self.find_font)
            });
        let font = Rc::new(Font::new(font, dictionary));
        self.read.insert(place, Rc::clone(&font));
        font
    }
}

pub(super) struct Font<'a> {
    font: Option<hayro_font::Font<'a>>,
    /// Codes may be of several bytes.
    is_composite: bool,
    /// The font says how wide its glyphs are.
    has_widths: bool,
    /// How high a line of it is, in units of the text's size.
    pub(super) height: f64,
    dictionary: Dict<'a>,
    /// What else the dictionary says of its codes, once it is needed.
    maps: OnceCell<Maps>,
    /// The letters of an embedded font's glyphs, once they are needed.
    embedded: OnceCell<HashMap<u32, char>>,
    glyphs: RefCell<HashMap<(u32, usize), Glyph>>,
}

/// What a font's dictionary says of its codes beyond what `hayro-font` reads.
struct Maps {
    unicode: Option<Map>,
    collection: Option<Collection>,
    /// What the names of glyphs such as `a65` say.
    numbered: HashMap<u32, char>,
}

impl Maps {
    fn of(font: &Dict<'_>) -> Self {
        Self {
            unicode: Map::of(font),
            collection: Collection::of(font),
            numbered: numbered_glyphs(font),
        }
    }

    fn letter(&self, code: u32, length: usize) -> Option<BfString> {
        let unicode = self.unicode.as_ref().and_then(|map| map.letter(code));
        unicode
            .or_else(|| self.collection.as_ref()?.letter(code, length))
            .or_else(|| self.numbered.get(&code).copied().map(BfString::Char))
    }
}

/// From codes to the numbers of a known collection of characters, and from these to letters (9.7.5).
struct Collection {
    codes: CMap,
    letters: CMap,
}

impl<'a> Font<'a> {
    fn new(font: Option<hayro_font::Font<'a>>, dictionary: &Dict<'a>) -> Self {
        let kind = dictionary.get::<Name<'_>>("Subtype");
        let kind = kind.as_ref().map_or("", |kind| kind.as_str());
        let is_composite = kind == "Type0";
        Self {
            height: match kind {
                "Type3" => bitmap_height(dictionary).unwrap_or(1.0),
                _ => 1.0,
            },
            is_composite,
            has_widths: is_composite || dictionary.contains_key("Widths"),
            dictionary: dictionary.clone(),
            maps: OnceCell::new(),
            font,
            embedded: OnceCell::new(),
            glyphs: RefCell::default(),
        }
    }

    pub(super) fn is_horizontal(&self) -> bool {
        self.font
            .as_ref()
            .is_none_or(hayro_font::Font::is_horizontal)
    }

    pub(super) fn glyphs(&self, text: &[u8], mut take: impl FnMut(&Glyph)) {
        let Some(font) = &self.font else {
            return;
        };
        let mut at = 0;
        let mut known = self.glyphs.borrow_mut();
        while at < text.len() {
            let (code, length) = font.read_code(text, at);
            at += length.max(1);
            take(
                known
                    .entry((code, length))
                    .or_insert_with(|| self.glyph(font, code, length)),
            );
        }
    }

    fn glyph(&self, font: &hayro_font::Font<'a>, code: u32, length: usize) -> Glyph {
        let advance = font.code_advance(code);
        let advance = match self.has_widths || advance.x != 0.0 {
            true => (advance.x / 1000.0, advance.y / 1000.0),
            false => (0.5, 0.0),
        };
        Glyph {
            letters: self.letters(font, code, length).map(Rc::from),
            advance,
            is_space: length == 1 && code == 32,
        }
    }

    fn letters(&self, font: &hayro_font::Font<'a>, code: u32, length: usize) -> Option<String> {
        let id = font.map_code(code);
        let glyph = font.glyph(id, code);
        let named = match &glyph {
            FontGlyph::Outline(glyph) => glyph.as_unicode(),
            FontGlyph::Type3(glyph) => glyph.as_unicode(),
        };
        named
            .and_then(readable)
            .or_else(|| {
                let maps = self.maps.get_or_init(|| Maps::of(&self.dictionary));
                maps.letter(code, length).and_then(readable)
            })
            .or_else(|| match &glyph {
                FontGlyph::Outline(glyph) => {
                    let letter = self.embedded(glyph, id);
                    // What has no shape is a space.
                    let is_blank = || id != GlyphId::NOTDEF && glyph.outline().is_empty();
                    letter
                        .or_else(|| is_blank().then_some(' '))
                        .map(String::from)
                }
                FontGlyph::Type3(_) => None,
            })
            .or_else(|| {
                let is_space = !self.is_composite && matches!(code, 0 | 9 | 10 | 13 | 32);
                is_space.then(|| " ".to_owned())
            })
    }

    /// The letter that the embedded font itself has for a glyph.
    fn embedded(&self, glyph: &hayro_font::OutlineGlyph, id: GlyphId) -> Option<char> {
        let letters = self.embedded.get_or_init(|| {
            let data = glyph.font_data();
            let font = data.as_ref().and_then(|data| {
                let bytes: &[u8] = data.data.as_ref().as_ref();
                skrifa::FontRef::new(bytes).ok()
            });
            let Some(font) = font else {
                return HashMap::new();
            };
            let map = skrifa::charmap::Charmap::new(&font);
            let letters = map.mappings().take(usize::from(u16::MAX));
            let letters = letters.filter_map(|(letter, glyph)| {
                let letter = char::from_u32(letter).filter(|&letter| is_letter(letter))?;
                Some((glyph.to_u32(), letter))
            });
            letters.collect()
        });
        letters.get(&id.to_u32()).copied()
    }
}

/// What a font's `ToUnicode` says (9.10.3).
enum Map {
    /// Codes are letters themselves.
    Identity,
    Listed(Box<CMap>),
}

impl Map {
    fn of(font: &Dict<'_>) -> Option<Self> {
        match font.get::<Object<'_>>("ToUnicode")? {
            Object::Name(_) => Some(Self::Identity),
            // A head that is no PostScript hides the rest.
            Object::Stream(map) => {
                let map = map.decoded_data().ok()?;
                if CMap::parse(&map, |_| None).is_some() {
                    return None;
                }
                let head = b"begincodespacerange";
                let head = map.windows(head.len()).position(|word| word == head)?;
                let rest = [b"begincmap 1 ".as_slice(), &map[head..]].concat();
                let map = CMap::parse(&rest, |_| None)?;
                Some(Self::Listed(Box::new(map)))
            }
            _ => None,
        }
    }

    fn letter(&self, code: u32) -> Option<BfString> {
        match self {
            Self::Identity => char::from_u32(code).map(BfString::Char),
            Self::Listed(map) => map.lookup_bf_string(code),
        }
    }
}

impl Collection {
    fn of(font: &Dict<'_>) -> Option<Self> {
        let parse = |bytes: &[u8]| CMap::parse(bytes, load_embedded);
        let codes = match font.get::<Object<'_>>("Encoding")? {
            Object::Name(name) => match CMapName::from_bytes(name.as_ref()) {
                CMapName::IdentityH => CMap::identity_h(),
                CMapName::IdentityV => CMap::identity_v(),
                name => parse(load_embedded(name)?)?,
            },
            Object::Stream(map) => parse(&map.decoded_data().ok()?)?,
            _ => return None,
        };
        let descendant = font
            .get::<Array<'_>>("DescendantFonts")?
            .iter::<Dict<'_>>()
            .next()?;
        let of_map = codes.metadata().character_collection.as_ref();
        let family = of_map
            .map(|collection| collection.family.clone())
            .filter(|family| family.ucs2_cmap().is_some());
        let family = family.or_else(|| {
            let about = descendant.get::<Dict<'_>>("CIDSystemInfo")?;
            let registry = about.get::<Text<'_>>("Registry")?;
            let ordering = about.get::<Text<'_>>("Ordering")?;
            Some(CidFamily::from_registry_ordering(&registry, &ordering))
        });
        let letters = parse(load_embedded(family?.ucs2_cmap()?)?)?;
        Some(Self { codes, letters })
    }

    fn letter(&self, code: u32, length: usize) -> Option<BfString> {
        let length = u8::try_from(length).ok()?;
        let number = self.codes.lookup_cid_code(code, length)?;
        let letter = self.letters.lookup_bf_string(number);
        letter.or_else(|| {
            let code = self.letters.lookup_cid_code(number, 2)?;
            char::from_u32(code).map(BfString::Char)
        })
    }
}

/// Letters that a text can hold. Private ones mean nothing outside of their font, but for the bullets that Word writes.
fn readable(letters: BfString) -> Option<String> {
    let letters = match letters {
        BfString::Char(letter) => letter.to_string(),
        BfString::String(letters) => letters,
    };
    let letters: String = letters
        .chars()
        .filter(|&letter| letter != '\0')
        .map(|letter| match letter {
            '\u{f0b7}' => '•',
            '\u{f0a7}' => '▪',
            letter if letter.is_whitespace() => ' ',
            letter => letter,
        })
        .collect();
    (!letters.is_empty() && letters.chars().all(is_letter)).then_some(letters)
}

fn is_letter(letter: char) -> bool {
    !letter.is_control() && !matches!(letter, '\u{e000}'..='\u{f8ff}' | '\u{fffd}' | '\u{ffff}')
}

/// Glyphs whose names are their codes, such as `a65`, `g065` or, in hexadecimal digits, `C41`.
fn numbered_glyphs(font: &Dict<'_>) -> HashMap<u32, char> {
    let mut letters = HashMap::new();
    let differences = font
        .get::<Dict<'_>>("Encoding")
        .and_then(|encoding| encoding.get::<Array<'_>>("Differences"));
    let mut code = 0_u32;
    for item in differences.iter().flat_map(Array::iter::<Object<'_>>) {
        match item {
            Object::Number(number) => code = u32::try_from(number.as_i64()).unwrap_or_default(),
            Object::Name(name) => {
                let name = name.as_str();
                let number = name.trim_start_matches(|letter: char| letter.is_ascii_alphabetic());
                let is_number = number.parse() == Ok(code)
                    || name.len() == 3
                        && name
                            .get(1..)
                            .and_then(|hex| u32::from_str_radix(hex, 16).ok())
                            == Some(code);
                if let Some(letter) =
                    char::from_u32(code).filter(|_| is_number && (33..127).contains(&code))
                {
                    letters.insert(code, letter);
                }
                code = code.saturating_add(1);
            }
            _ => {}
        }
    }
    letters
}

/// Fonts that are drawn (9.6.4) have units of their own.
fn bitmap_height(font: &Dict<'_>) -> Option<f64> {
    let matrix = font.get::<[f64; 6]>("FontMatrix")?;
    let bounds = font.get::<Rect>("FontBBox");
    let height = bounds.map_or(0.0, |bounds| bounds.y1 - bounds.y0);
    let height = match height > 0.0 {
        true => height * matrix[3].abs(),
        false => {
            let widths: Vec<f64> = font.get::<Array<'_>>("Widths")?.iter::<f64>().collect();
            let widths: Vec<f64> = widths.into_iter().filter(|&width| width > 0.0).collect();
            2.0 * matrix[0].abs() * widths.iter().sum::<f64>()
                / f64::from(u32::try_from(widths.len()).ok()?)
        }
    };
    (height.is_finite() && height > 0.0).then_some(height)
}

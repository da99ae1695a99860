//! What a page shows, as far as it is text: pieces of text with their places (9.4).

use super::{
    fonts::Font,
    lexer::{Lexer, Token},
    objects::{Dictionary, File, Object, Stream},
};
use std::{collections::HashMap, rc::Rc};

/// Forms within forms are drawn to this depth.
const DEEPEST_FORM: usize = 8;
/// Forms that one page draws: each may draw others twice.
const MOST_FORMS: usize = 2000;
const MOST_OPERANDS: usize = 4096;
const MOST_STATES: usize = 512;
const MOST_SPANS: usize = 400_000;

/// A piece of text on one line.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Span {
    pub(super) text: String,
    pub(super) left: f64,
    pub(super) right: f64,
    /// Upwards, as on paper.
    pub(super) y: f64,
    pub(super) size: f64,
}

#[derive(Debug, Default)]
pub(super) struct Page {
    pub(super) spans: Vec<Span>,
    pub(super) too_many: bool,
}

/// `[a b c d e f]` (8.3.4).
#[derive(Debug, Clone, Copy)]
struct Matrix([f64; 6]);

impl Matrix {
    const SAME: Self = Self([1.0, 0.0, 0.0, 1.0, 0.0, 0.0]);

    fn of(numbers: &[f64]) -> Option<Self> {
        Some(Self(numbers.get(..6)?.try_into().ok()?))
    }

    fn moved(x: f64, y: f64) -> Self {
        Self([1.0, 0.0, 0.0, 1.0, x, y])
    }

    /// `self`, and then `other`.
    fn then(self, other: Self) -> Self {
        let ([a, b, c, d, e, f], [oa, ob, oc, od, oe, of]) = (self.0, other.0);
        Self([
            a * oa + b * oc,
            a * ob + b * od,
            c * oa + d * oc,
            c * ob + d * od,
            e * oa + f * oc + oe,
            e * ob + f * od + of,
        ])
    }

    fn place(self) -> (f64, f64) {
        (self.0[4], self.0[5])
    }
}

#[derive(Debug, Clone)]
struct State {
    /// From the page's content to paper.
    page: Matrix,
    font: Option<Rc<Font>>,
    size: f64,
    letter_spacing: f64,
    word_spacing: f64,
    /// Of the width, 1 for all of it.
    scale: f64,
    leading: f64,
    rise: f64,
}

/// Reads pages, and keeps their fonts.
pub(super) struct Reader<'a> {
    file: &'a File<'a>,
    fonts: HashMap<u32, Rc<Font>>,
    pub(super) letters: u64,
    /// Those whose meaning their font does not tell.
    pub(super) unknown: u64,
    pub(super) pictures: u64,
    /// The last one that was drawn, unless it stands in the page's content.
    pub(super) picture: Option<Rc<Stream>>,
    forms: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(file: &'a File<'a>) -> Self {
        Self {
            file,
            fonts: HashMap::new(),
            letters: 0,
            unknown: 0,
            pictures: 0,
            picture: None,
            forms: 0,
        }
    }

    pub(super) fn page(
        &mut self,
        contents: &[u8],
        resources: Rc<Dictionary>,
        rotation: f64,
    ) -> Page {
        self.forms = 0;
        let turn = match rotation.rem_euclid(360.0) {
            turn if (turn - 90.0).abs() < 1.0 => [0.0, -1.0, 1.0, 0.0, 0.0, 0.0],
            turn if (turn - 180.0).abs() < 1.0 => [-1.0, 0.0, 0.0, -1.0, 0.0, 0.0],
            turn if (turn - 270.0).abs() < 1.0 => [0.0, 1.0, -1.0, 0.0, 0.0, 0.0],
            _ => Matrix::SAME.0,
        };
        let state = State {
            page: Matrix(turn),
            font: None,
            size: 0.0,
            letter_spacing: 0.0,
            word_spacing: 0.0,
            scale: 1.0,
            leading: 0.0,
            rise: 0.0,
        };
        let mut page = Page::default();
        self.draw(contents, &resources, state, &mut page, 0);
        page
    }

    fn draw(
        &mut self,
        contents: &[u8],
        resources: &Rc<Dictionary>,
        state: State,
        page: &mut Page,
        depth: usize,
    ) {
        let mut drawing = Drawing {
            reader: self,
            resources,
            state,
            states: Vec::new(),
            text: Matrix::SAME,
            line: Matrix::SAME,
            page,
            depth,
        };
        let mut lexer = Lexer::new(contents, 0);
        let mut operands = Vec::new();
        while let Some(token) = lexer.token() {
            match token {
                Token::Object(object) => {
                    if operands.len() < MOST_OPERANDS {
                        operands.push(object);
                    }
                }
                Token::Word(word) => {
                    if word == b"BI" {
                        drawing.reader.pictures += 1;
                        skip_picture(&mut lexer, contents);
                    } else {
                        drawing.operator(&word, &operands);
                    }
                    operands.clear();
                    if drawing.page.spans.len() > MOST_SPANS {
                        drawing.page.too_many = true;
                        return;
                    }
                }
            }
        }
    }

    fn font(&mut self, resources: &Dictionary, name: &str) -> Option<Rc<Font>> {
        let fonts = self.file.get(resources, "Font")?.dictionary()?;
        let id = fonts.id_of(name);
        if let Some(font) = id.and_then(|id| self.fonts.get(&id)) {
            return Some(Rc::clone(font));
        }
        let font = self.file.get(&fonts, name)?.dictionary()?;
        let font = Rc::new(Font::read(self.file, &font));
        if let Some(id) = id {
            self.fonts.insert(id, Rc::clone(&font));
        }
        Some(font)
    }
}

/// Skips the data of a picture in the content, up to an `EI` between spaces.
fn skip_picture(lexer: &mut Lexer<'_>, contents: &[u8]) {
    let rest = &contents[lexer.at..];
    let is_end = |four: &[u8]| {
        super::lexer::is_space(four[0]) && &four[1..3] == b"EI" && super::lexer::is_space(four[3])
    };
    let end = rest.windows(4).position(is_end).map(|at| at + 3);
    lexer.at += end.unwrap_or(rest.len());
}

struct Drawing<'a, 'b> {
    reader: &'b mut Reader<'a>,
    resources: &'b Rc<Dictionary>,
    state: State,
    states: Vec<State>,
    text: Matrix,
    line: Matrix,
    page: &'b mut Page,
    depth: usize,
}

impl Drawing<'_, '_> {
    fn operator(&mut self, operator: &[u8], operands: &[Object]) {
        let numbers: Vec<f64> = operands.iter().filter_map(Object::number).collect();
        let number = |at: usize| numbers.get(at).copied().unwrap_or_default();
        let text = |at: usize| match operands.get(at) {
            Some(Object::Text(text)) => Rc::clone(text),
            _ => Rc::default(),
        };
        match operator {
            b"q" if self.states.len() < MOST_STATES => self.states.push(self.state.clone()),
            b"Q" => {
                if let Some(state) = self.states.pop() {
                    self.state = state;
                }
            }
            b"cm" => {
                if let Some(matrix) = Matrix::of(&numbers) {
                    self.state.page = matrix.then(self.state.page);
                }
            }
            b"BT" => (self.text, self.line) = (Matrix::SAME, Matrix::SAME),
            b"Tf" => {
                if let Some(name) = operands.first().and_then(Object::name) {
                    self.state.font = self.reader.font(self.resources, name);
                }
                self.state.size = number(0);
            }
            b"Tc" => self.state.letter_spacing = number(0),
            b"Tw" => self.state.word_spacing = number(0),
            b"Tz" => self.state.scale = number(0) / 100.0,
            b"TL" => self.state.leading = number(0),
            b"Ts" => self.state.rise = number(0),
            b"Td" => self.next_line(number(0), number(1)),
            b"TD" => {
                self.state.leading = -number(1);
                self.next_line(number(0), number(1));
            }
            b"Tm" => {
                if let Some(matrix) = Matrix::of(&numbers) {
                    (self.text, self.line) = (matrix, matrix);
                }
            }
            b"T*" => self.next_line(0.0, -self.state.leading),
            b"Tj" => self.show(&text(0)),
            b"'" => {
                self.next_line(0.0, -self.state.leading);
                self.show(&text(0));
            }
            b"\"" => {
                self.state.word_spacing = number(0);
                self.state.letter_spacing = number(1);
                self.next_line(0.0, -self.state.leading);
                self.show(&text(2));
            }
            b"TJ" => {
                if let Some(Object::Array(items)) = operands.first() {
                    for item in items.iter() {
                        match item {
                            Object::Text(text) => self.show(text),
                            Object::Number(back) => {
                                self.advance(-back / 1000.0 * self.state.size * self.state.scale);
                            }
                            _ => {}
                        }
                    }
                }
            }
            b"Do" => {
                if let Some(name) = operands.first().and_then(Object::name) {
                    self.object(name);
                }
            }
            _ => {}
        }
    }

    fn next_line(&mut self, x: f64, y: f64) {
        self.line = Matrix::moved(x, y).then(self.line);
        self.text = self.line;
    }

    fn advance(&mut self, width: f64) {
        self.text = Matrix::moved(width, 0.0).then(self.text);
    }

    fn show(&mut self, text: &[u8]) {
        let Some(font) = self.state.font.clone() else {
            return;
        };
        let shift = Matrix::moved(0.0, self.state.rise);
        let on_paper = |text: Matrix, page: Matrix| shift.then(text).then(page);
        let begun = on_paper(self.text, self.state.page);
        let mut span = String::new();
        for glyph in font.glyphs(text) {
            self.reader.letters += 1;
            match &glyph.letters {
                Some(letters) => span.push_str(letters),
                None => {
                    self.reader.unknown += 1;
                    span.push(char::REPLACEMENT_CHARACTER);
                }
            }
            let spacing = self.state.letter_spacing
                + if glyph.is_space {
                    self.state.word_spacing
                } else {
                    0.0
                };
            self.advance((glyph.width * self.state.size + spacing) * self.state.scale);
        }
        let (left, y) = begun.place();
        let (right, _) = on_paper(self.text, self.state.page).place();
        let [a, b, c, d, ..] = begun.0;
        let size = self.state.size.abs() * (a * d - b * c).abs().sqrt();
        // Text that runs upwards, such as beside a figure, would come out letter by letter.
        if span.is_empty()
            || a.abs() < b.abs()
            || !left.is_finite()
            || !right.is_finite()
            || !y.is_finite()
        {
            return;
        }
        self.page.spans.push(Span {
            text: span,
            left: left.min(right),
            right: left.max(right),
            y,
            size,
        });
    }

    fn object(&mut self, name: &str) {
        let file = self.reader.file;
        let Some(objects) = file
            .get(self.resources, "XObject")
            .and_then(|all| all.dictionary())
        else {
            return;
        };
        let Some(Object::Stream(object)) = file.get(&objects, name) else {
            return;
        };
        let kind = file.get(&object.dictionary, "Subtype");
        match kind.as_ref().and_then(Object::name) {
            Some("Image") => {
                self.reader.pictures += 1;
                self.reader.picture = Some(object);
            }
            Some("Form") => self.form(&object),
            _ => {}
        }
    }

    fn form(&mut self, form: &Stream) {
        self.reader.forms += 1;
        if self.depth >= DEEPEST_FORM || self.reader.forms > MOST_FORMS {
            return;
        }
        let file = self.reader.file;
        let matrix = match file.get(&form.dictionary, "Matrix") {
            Some(Object::Array(numbers)) => {
                let numbers: Vec<f64> = numbers
                    .iter()
                    .filter_map(|number| file.resolve(number).number())
                    .collect();
                Matrix::of(&numbers)
            }
            _ => None,
        };
        let own = file
            .get(&form.dictionary, "Resources")
            .and_then(|all| all.dictionary());
        let resources = own.unwrap_or_else(|| Rc::clone(self.resources));
        let state = State {
            page: matrix.unwrap_or(Matrix::SAME).then(self.state.page),
            ..self.state.clone()
        };
        let contents = file.decode(form);
        self.reader
            .draw(&contents, &resources, state, self.page, self.depth + 1);
    }
}

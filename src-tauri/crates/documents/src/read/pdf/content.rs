//! What a page shows, as far as it is text: pieces of text with their places (9.4).

use super::{
    fonts::{Font, Fonts},
    streams::unpack,
    text_of,
};
use hayro_syntax::{
    content::{Instruction, UntypedIter},
    object::{Array, Dict, Name, Object, Rect, Stream},
    page::Resources,
};
use kurbo::{Affine, Vec2};
use std::rc::Rc;

/// Forms within forms are drawn to this depth.
const DEEPEST_FORM: usize = 8;
/// Forms that one page draws: each may draw others twice.
const MOST_FORMS: usize = 2000;
const MOST_STATES: usize = 512;
const MOST_SPANS: usize = 400_000;

/// A piece of text on one line. Its places are along the line and across it, upwards, whatever the line's angle is.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Span {
    pub(super) text: String,
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) y: f64,
    pub(super) size: f64,
    /// The line's angle on paper, in degrees from 0 to 359.
    pub(super) angle: u16,
    /// The text is in reading order, even if it is read from the right.
    pub(super) is_logical: bool,
}

#[derive(Debug, Default)]
pub(super) struct Content {
    pub(super) spans: Vec<Span>,
    pub(super) is_cut: bool,
    forms: usize,
}

#[derive(Clone, Default)]
struct State<'a> {
    /// From the page's content to paper.
    page: Affine,
    font: Option<Rc<Font<'a>>>,
    size: f64,
    letter_spacing: f64,
    word_spacing: f64,
    /// Of the width, 1 for all of it.
    scale: f64,
    leading: f64,
    rise: f64,
}

pub(super) struct Reader<'a> {
    fonts: Fonts<'a>,
    /// All letters but spaces.
    pub(super) letters: u64,
    /// Those whose meaning their font does not tell.
    pub(super) unknown: u64,
    pub(super) pictures: u64,
    /// The last one that was drawn, unless it stands in the page's content.
    pub(super) picture: Option<Stream<'a>>,
}

impl<'a> Reader<'a> {
    pub(super) fn new() -> Self {
        Self {
            fonts: Fonts::new(),
            letters: 0,
            unknown: 0,
            pictures: 0,
            picture: None,
        }
    }

    /// Drops what a panic may have left half done.
    pub(super) fn forget_fonts(&mut self) {
        self.fonts = Fonts::new();
    }

    /// Draws a page's content or a form onto a page.
    pub(super) fn draw(
        &mut self,
        bytes: &[u8],
        resources: &Resources<'a>,
        place: Affine,
        content: &mut Content,
    ) {
        let state = State {
            page: place,
            scale: 1.0,
            ..State::default()
        };
        self.draw_part(bytes, resources, state, content, 0);
    }

    /// Draws the appearance of an annotation into its rectangle.
    pub(super) fn draw_form(&mut self, form: &Stream<'a>, rectangle: Rect, content: &mut Content) {
        let Some(place) = fitting(form, rectangle) else {
            return;
        };
        let resources = Resources::new(form.dict().get("Resources").unwrap_or_default());
        let bytes = unpack(form, &mut content.is_cut);
        let place = place * matrix_of(form);
        self.draw(&bytes, &resources, place, content);
    }

    fn draw_part(
        &mut self,
        bytes: &[u8],
        resources: &Resources<'a>,
        state: State<'a>,
        content: &mut Content,
        depth: usize,
    ) {
        let mut drawing = Drawing {
            reader: self,
            resources,
            state,
            states: Vec::new(),
            text: Affine::IDENTITY,
            line: Affine::IDENTITY,
            replaced: Vec::new(),
            content,
            depth,
        };
        let mut instructions = UntypedIter::new(bytes);
        while let Some(instruction) = instructions.next() {
            drawing.operator(&instruction);
            if drawing.content.spans.len() > MOST_SPANS {
                drawing.content.is_cut = true;
                return;
            }
        }
    }
}

struct Drawing<'a, 'b> {
    reader: &'b mut Reader<'a>,
    resources: &'b Resources<'a>,
    state: State<'a>,
    states: Vec<State<'a>>,
    text: Affine,
    line: Affine,
    /// Marked parts of the content that are open, with what they say instead of their glyphs.
    replaced: Vec<Option<Replacement>>,
    content: &'b mut Content,
    depth: usize,
}

/// What a part of the content says, whatever its glyphs are (14.9.4).
struct Replacement {
    text: String,
    first: usize,
    unknown: u64,
}

impl<'a> Drawing<'a, '_> {
    fn operator(&mut self, instruction: &Instruction<'_, '_>) {
        let number = |at: usize| match instruction.operands().nth(at) {
            Some(Object::Number(number)) => number.as_f64(),
            _ => 0.0,
        };
        let matrix = || Affine::new(std::array::from_fn(number));
        let first = instruction.operands().next();
        match &**instruction.operator {
            b"q" if self.states.len() < MOST_STATES => self.states.push(self.state.clone()),
            b"Q" => {
                if let Some(state) = self.states.pop() {
                    self.state = state;
                }
            }
            b"cm" => self.state.page *= matrix(),
            b"BT" => (self.text, self.line) = (Affine::IDENTITY, Affine::IDENTITY),
            b"Tf" => {
                if let Some(Object::Name(name)) = first {
                    let font = self.resources.fonts.get::<Dict<'a>>(name);
                    self.state.font = Some(self.reader.fonts.font(font.as_ref()));
                }
                self.state.size = number(1);
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
            b"Tm" => (self.text, self.line) = (matrix(), matrix()),
            b"T*" => self.next_line(0.0, -self.state.leading),
            b"Tj" => self.show(first),
            b"'" => {
                self.next_line(0.0, -self.state.leading);
                self.show(first);
            }
            b"\"" => {
                self.state.word_spacing = number(0);
                self.state.letter_spacing = number(1);
                self.next_line(0.0, -self.state.leading);
                self.show(instruction.operands().nth(2));
            }
            b"TJ" => {
                if let Some(Object::Array(items)) = first {
                    self.show_all(items);
                }
            }
            b"BI" => self.reader.pictures += 1,
            b"Do" => {
                if let Some(Object::Name(name)) = first {
                    self.object(name);
                }
            }
            b"BMC" => self.mark(None),
            b"BDC" => self.mark(instruction.operands().nth(1)),
            b"EMC" => self.replace(),
            _ => {}
        }
    }

    fn next_line(&mut self, x: f64, y: f64) {
        self.line *= Affine::translate((x, y));
        self.text = self.line;
    }

    fn show_all(&mut self, items: &Array<'_>) {
        for item in items.iter::<Object<'_>>() {
            match item {
                Object::Number(back) => {
                    let back = -back.as_f64() / 1000.0 * self.state.size;
                    let font = self.state.font.as_ref();
                    let is_horizontal = font.is_none_or(|font| font.is_horizontal());
                    let (x, y) = match is_horizontal {
                        true => (back * self.state.scale, 0.0),
                        false => (0.0, back),
                    };
                    self.text *= Affine::translate((x, y));
                }
                text => self.show(Some(&text)),
            }
        }
    }

    fn show(&mut self, text: Option<&Object<'_>>) {
        let Some(Object::String(text)) = text else {
            return;
        };
        let font = match &self.state.font {
            Some(font) => Rc::clone(font),
            None => self.reader.fonts.font(None),
        };
        let state = &self.state;
        let shift = Affine::translate((0.0, state.rise));
        let on_paper = |text: Affine| state.page * text * shift;
        let begun = on_paper(self.text);
        let (mut span, mut letters, mut unknown) = (String::new(), 0, 0);
        let mut moved = self.text;
        font.glyphs(text, |glyph| {
            match &glyph.letters {
                Some(letter) => {
                    letters += u64::from(&**letter != " ");
                    push_glyph(&mut span, letter);
                }
                None => {
                    letters += 1;
                    unknown += 1;
                    span.push(char::REPLACEMENT_CHARACTER);
                }
            }
            let mut spacing = state.letter_spacing;
            if glyph.is_space {
                spacing += state.word_spacing;
            }
            let (x, y) = glyph.advance;
            let (x, y) = match font.is_horizontal() {
                true => ((x * state.size + spacing) * state.scale, 0.0),
                false => (0.0, y * state.size + spacing),
            };
            moved *= Affine::translate((x, y));
        });
        let ended = on_paper(moved).translation();
        let [a, b, c, d, ..] = begun.as_coeffs();
        let size = state.size.abs() * begun.determinant().abs().sqrt() * font.height;
        let direction = match font.is_horizontal() {
            true => (a, b),
            false => (-c, -d),
        };
        self.text = moved;
        self.reader.letters += letters;
        self.reader.unknown += unknown;
        let span = place_span(span, begun.translation(), ended, direction, size);
        self.content.spans.extend(span);
    }

    fn object(&mut self, name: &Name<'_>) {
        let Some(object) = self.resources.x_objects.get::<Stream<'a>>(name) else {
            return;
        };
        match object.dict().get::<Name<'_>>("Subtype").as_deref() {
            Some(b"Image") => {
                self.reader.pictures += 1;
                self.reader.picture = Some(object);
            }
            Some(b"Form") => self.form(&object),
            _ => {}
        }
    }

    fn form(&mut self, form: &Stream<'a>) {
        self.content.forms += 1;
        if self.depth >= DEEPEST_FORM || self.content.forms > MOST_FORMS {
            return;
        }
        let own = form.dict().get::<Dict<'a>>("Resources").map(Resources::new);
        let resources = own.as_ref().unwrap_or(self.resources);
        let state = State {
            page: self.state.page * matrix_of(form),
            ..self.state.clone()
        };
        let bytes = unpack(form, &mut self.content.is_cut);
        self.reader
            .draw_part(&bytes, resources, state, self.content, self.depth + 1);
    }

    fn mark(&mut self, properties: Option<&Object<'_>>) {
        if self.replaced.len() >= MOST_STATES {
            return;
        }
        let text = match properties {
            Some(Object::Dict(properties)) => text_of(properties, "ActualText"),
            Some(Object::Name(name)) => {
                let properties = self.resources.properties.get::<Dict<'a>>(name);
                properties.and_then(|properties| text_of(&properties, "ActualText"))
            }
            _ => None,
        };
        self.replaced.push(text.map(|text| Replacement {
            text,
            first: self.content.spans.len(),
            unknown: self.reader.unknown,
        }));
    }

    /// Puts what a marked part says in the place of its glyphs, if these are on one line.
    fn replace(&mut self) {
        let Some(Some(Replacement {
            text,
            first,
            unknown,
        })) = self.replaced.pop()
        else {
            return;
        };
        let replaced = self.content.spans.get(first..).unwrap_or_default();
        let Some(span) = replaced.first() else {
            return;
        };
        let is_line = replaced.iter().all(|other| {
            other.angle == span.angle && (other.y - span.y).abs() < 0.5 * span.size.max(1.0)
        });
        if !is_line {
            return;
        }
        let mut span = Span {
            text,
            is_logical: true,
            ..*span
        };
        for other in replaced {
            span.left = span.left.min(other.left);
            span.right = span.right.max(other.right);
        }
        self.content.spans.truncate(first);
        self.content.spans.push(span);
        self.reader.unknown = unknown;
    }
}

/// From a form's own bounds, as its matrix turns them, to a rectangle of the page (12.5.5).
fn fitting(form: &Stream<'_>, rectangle: Rect) -> Option<Affine> {
    let bounds = form.dict().get::<Rect>("BBox")?;
    let own = kurbo::Rect::new(bounds.x0, bounds.y0, bounds.x1, bounds.y1);
    let own = matrix_of(form).transform_rect_bbox(own);
    let scale = |wanted: f64, own: f64| if own > 0.0 { wanted / own } else { 1.0 };
    let x = scale(rectangle.x1 - rectangle.x0, own.width());
    let y = scale(rectangle.y1 - rectangle.y0, own.height());
    let (left, low) = (rectangle.x0 - own.x0 * x, rectangle.y0 - own.y0 * y);
    Some(Affine::new([x, 0.0, 0.0, y, left, low]))
}

fn matrix_of(form: &Stream<'_>) -> Affine {
    form.dict()
        .get("Matrix")
        .map_or(Affine::IDENTITY, Affine::new)
}

/// Several letters of one glyph are in reading order. Among glyphs that stand from left to right, those that are read from the right
/// are put backwards, so that all are in the order of their places.
fn push_glyph(text: &mut String, letters: &str) {
    match letters.chars().any(super::bidi::is_from_right) {
        true => text.extend(letters.chars().rev()),
        false => text.push_str(letters),
    }
}

/// A span with its places along its line and across it.
fn place_span(
    text: String,
    Vec2 { x, y }: Vec2,
    end: Vec2,
    (along_x, along_y): (f64, f64),
    size: f64,
) -> Option<Span> {
    let angle = along_y.atan2(along_x).to_degrees().rem_euclid(360.0);
    if text.is_empty()
        || ![x, y, end.x, end.y, size, angle]
            .iter()
            .all(|number| number.is_finite())
    {
        return None;
    }
    // Paper that lay askew in the scanner has lines nonetheless.
    let upright = (angle / 90.0).round() * 90.0;
    let angle = if (angle - upright).abs() < 3.0 {
        upright
    } else {
        angle.round()
    } % 360.0;
    let (sine, cosine) = match angle {
        0.0 => (0.0, 1.0),
        angle => angle.to_radians().sin_cos(),
    };
    let along = |x: f64, y: f64| x * cosine + y * sine;
    let (left, right) = (along(x, y), along(end.x, end.y));
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "0 to 359"
    )]
    Some(Span {
        text,
        left: left.min(right),
        right: left.max(right),
        y: y * cosine - x * sine,
        size,
        angle: angle as u16,
        is_logical: false,
    })
}

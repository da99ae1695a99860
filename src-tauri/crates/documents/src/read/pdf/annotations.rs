//! What people have written onto a page: the values of forms, and notes (12.5, 12.7).

use super::{
    content::{Content, Reader, Span},
    text_of,
};
use hayro_syntax::{
    object::{Array, Dict, Name, Object, Rect, Stream},
    page::Page,
};
use std::{iter::successors, ops::Range};

/// Annotations of one page.
const MOST: usize = 10_000;
/// Fields within fields.
const DEEPEST: usize = 32;
/// What a viewer does not show: hidden, or only on some screens.
const UNSEEN: i64 = 1 << 1 | 1 << 5;
/// A field for a password, and a button that is pushed.
const PASSWORD: i64 = 1 << 13;
const PUSHED: i64 = 1 << 16;
/// What stands for a box whose tick is drawn without letters, and how large it is, in parts of the box.
const TICK: &str = "☒";
const TICK_SIZE: f64 = 0.7;

/// A value stands in the line of its label, at most so far from it, in parts of a letter's size.
const FARTHEST: f64 = 40.0;
/// Comparisons of places on one page.
const MOST_COMPARISONS: usize = 20_000_000;

/// Draws the values and texts that stand on the page, each behind its label, and returns those that are not drawn.
pub(super) fn read<'a>(
    page: &Page<'a>,
    reader: &mut Reader<'a>,
    content: &mut Content,
) -> Vec<String> {
    let annotations = page.raw().get::<Array<'a>>("Annots");
    let annotations = annotations.iter().flat_map(Array::iter::<Dict<'a>>);
    let (mut texts, mut values) = (Vec::new(), Vec::new());
    let first = content.spans.len();
    for annotation in annotations.take(MOST) {
        if annotation.get::<i64>("F").unwrap_or_default() & UNSEEN != 0 {
            continue;
        }
        let kind = annotation.get::<Name<'_>>("Subtype");
        let start = content.spans.len();
        let is_drawn = match kind.as_deref() {
            Some(b"Widget" | b"FreeText" | b"Stamp") => draw(&annotation, reader, content),
            Some(b"Popup" | b"Link") | None => true,
            Some(_) => false,
        };
        if !is_drawn && kind.as_deref() == Some(b"Widget".as_slice()) {
            content.spans.extend(tick(&annotation));
        }
        values.push(start..content.spans.len());
        if !is_drawn {
            let text = match kind.as_deref() {
                Some(b"Widget") => value(&annotation),
                _ => text_of(&annotation, "Contents"),
            };
            texts.extend(text);
        }
    }
    move_values(content, first, values);
    texts
}

/// Moves what was drawn from span `first` on to its labels: behind one that stands before it, or before one behind it, as a box has.
fn move_values(content: &mut Content, first: usize, values: Vec<Range<usize>>) {
    let drawn = content.spans.split_off(first);
    if drawn.len().saturating_mul(first) > MOST_COMPARISONS {
        content.spans.extend(drawn);
        return;
    }
    let mut placed: Vec<(usize, &[Span])> = values
        .iter()
        .filter_map(|range| drawn.get(range.start - first..range.end - first))
        .filter_map(|value| Some((place_of(&content.spans, value.first()?), value)))
        .collect();
    placed.sort_by_key(|(place, _)| *place);
    let mut spans = Vec::with_capacity(first + drawn.len());
    let mut placed = placed.into_iter().peekable();
    for (at, span) in std::mem::take(&mut content.spans).into_iter().enumerate() {
        while let Some((_, value)) = placed.next_if(|(place, _)| *place == at) {
            spans.extend_from_slice(value);
        }
        spans.push(span);
    }
    spans.extend(placed.flat_map(|(_, value)| value).cloned());
    content.spans = spans;
}

/// The span before which a value is put: the one behind its label, or its label, whichever of the two is nearer, or one behind all.
fn place_of(spans: &[Span], value: &Span) -> usize {
    let is_near = |span: &Span, gap: f64| {
        let size = span.size.max(value.size);
        span.angle == value.angle
            && (span.y - value.y).abs() < 0.6 * size
            && (-0.6 * size..FARTHEST * size).contains(&gap)
    };
    let spans = || spans.iter().enumerate();
    let before = spans().map(|(at, span)| (at + 1, span, value.left - span.right));
    let behind = spans().map(|(at, span)| (at, span, span.left - value.right));
    before
        .chain(behind)
        .filter(|(_, span, gap)| is_near(span, *gap))
        .min_by(|(.., one), (.., other)| one.abs().total_cmp(&other.abs()))
        .map_or(usize::MAX, |(place, ..)| place)
}

/// Returns whether any letter was drawn.
fn draw<'a>(annotation: &Dict<'a>, reader: &mut Reader<'a>, content: &mut Content) -> bool {
    let appearance = annotation.get::<Dict<'a>>("AP");
    let form = appearance.and_then(|appearance| {
        appearance.get::<Stream<'a>>("N").or_else(|| {
            let states = appearance.get::<Dict<'a>>("N")?;
            states.get::<Stream<'a>>(annotation.get::<Name<'_>>("AS")?)
        })
    });
    let letters = reader.letters;
    if let (Some(form), Some(rectangle)) = (form, annotation.get::<Rect>("Rect")) {
        reader.draw_form(&form, rectangle, content);
    }
    reader.letters > letters
}

/// The value of a text or choice, which may stand in a field above.
fn value(widget: &Dict<'_>) -> Option<String> {
    let mut values = fields(widget).filter_map(|field| match field.get::<Object<'_>>("V")? {
        Object::Array(items) => {
            let items = items.iter::<hayro_syntax::object::String<'_>>();
            let items: Vec<_> = items.map(|item| super::decode_text(&item)).collect();
            Some(items.join(", "))
        }
        Object::String(text) => Some(super::decode_text(&text)),
        _ => None,
    });
    let is_text = is_of_kind(widget, &[b"Tx", b"Ch"]) && flags(widget) & PASSWORD == 0;
    values.next().filter(|_| is_text)
}

/// The mark of a box or a radio button that is ticked.
fn tick(widget: &Dict<'_>) -> Option<Span> {
    let state = widget.get::<Name<'_>>("AS")?;
    let is_ticked = *state != *b"Off";
    if !is_ticked || !is_of_kind(widget, &[b"Btn"]) || flags(widget) & PUSHED != 0 {
        return None;
    }
    let Rect { x0, y0, x1, y1 } = widget.get::<Rect>("Rect")?;
    let height = y1 - y0;
    let is_finite = [x0, y0, x1, y1, height]
        .iter()
        .all(|number| number.is_finite());
    is_finite.then(|| Span {
        text: TICK.to_owned(),
        left: x0,
        right: x1,
        y: y0 + (1.0 - TICK_SIZE) / 2.0 * height,
        size: TICK_SIZE * height,
        angle: 0,
        is_logical: false,
    })
}

/// A widget as a field, and the fields above it, whose entries it has, too.
fn fields<'a>(widget: &Dict<'a>) -> impl Iterator<Item = Dict<'a>> {
    let above = |field: &Dict<'a>| field.get::<Dict<'a>>("Parent");
    successors(Some(widget.clone()), above).take(DEEPEST)
}

fn is_of_kind(widget: &Dict<'_>, kinds: &[&[u8]]) -> bool {
    let mut known = fields(widget).filter_map(|field| field.get::<Name<'_>>("FT"));
    known
        .next()
        .is_some_and(|kind| kinds.contains(&kind.as_ref()))
}

fn flags(widget: &Dict<'_>) -> i64 {
    let mut known = fields(widget).filter_map(|field| field.get::<i64>("Ff"));
    known.next().unwrap_or_default()
}

//! What people have written onto a page: the values of forms, and notes (12.5, 12.7).

use super::{
    content::{Content, Reader, Span},
    text_of,
};
use hayro_syntax::{
    object::{Array, Dict, Name, Object, Rect, Stream},
    page::Page,
};
use std::ops::Range;

/// Annotations of one page.
const MOST: usize = 10_000;
/// Fields within fields.
const DEEPEST: usize = 32;
/// What a viewer does not show: hidden, or only on some screens.
const UNSEEN: i64 = 1 << 1 | 1 << 5;
/// A field for a password.
const PASSWORD: i64 = 1 << 13;

/// A value stands in the line of its label, at most so far behind it, in parts of a letter's size.
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

/// Moves what was drawn from span `first` on behind the labels that stand before it.
fn move_values(content: &mut Content, first: usize, values: Vec<Range<usize>>) {
    let drawn = content.spans.split_off(first);
    if drawn.len().saturating_mul(first) > MOST_COMPARISONS {
        content.spans.extend(drawn);
        return;
    }
    let mut placed: Vec<(usize, &[Span])> = values
        .iter()
        .filter_map(|range| drawn.get(range.start - first..range.end - first))
        .filter_map(|value| Some((label_before(&content.spans, value.first()?), value)))
        .collect();
    placed.sort_by_key(|(label, _)| *label);
    let mut spans = Vec::with_capacity(first + drawn.len());
    let mut placed = placed.into_iter().peekable();
    for (at, span) in std::mem::take(&mut content.spans).into_iter().enumerate() {
        spans.push(span);
        while let Some((_, value)) = placed.next_if(|(label, _)| *label == at) {
            spans.extend_from_slice(value);
        }
    }
    spans.extend(placed.flat_map(|(_, value)| value).cloned());
    content.spans = spans;
}

/// The span that stands next before a value in its line, or one behind all.
fn label_before(spans: &[Span], value: &Span) -> usize {
    let is_before = |span: &Span| {
        let size = span.size.max(value.size);
        span.angle == value.angle
            && (span.y - value.y).abs() < 0.6 * size
            && (-0.6 * size..FARTHEST * size).contains(&(value.left - span.right))
    };
    let labels = spans.iter().enumerate().filter(|(_, span)| is_before(span));
    labels
        .max_by(|(_, one), (_, other)| one.right.total_cmp(&other.right))
        .map_or(usize::MAX, |(at, _)| at)
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
    let (mut kind, mut value, mut flags) = (None, None, None);
    let mut field = Some(widget.clone());
    for _ in 0..DEEPEST {
        let Some(dictionary) = field else {
            break;
        };
        kind = kind.or_else(|| dictionary.get::<Name<'_>>("FT"));
        flags = flags.or_else(|| dictionary.get::<i64>("Ff"));
        value = value.or_else(|| match dictionary.get::<Object<'_>>("V")? {
            Object::Array(items) => {
                let items = items.iter::<hayro_syntax::object::String<'_>>();
                let items: Vec<_> = items.map(|item| super::decode_text(&item)).collect();
                Some(items.join(", "))
            }
            Object::String(text) => Some(super::decode_text(&text)),
            _ => None,
        });
        field = dictionary.get::<Dict<'_>>("Parent");
    }
    let is_text = matches!(kind.as_deref(), Some(b"Tx" | b"Ch"));
    value.filter(|_| is_text && flags.unwrap_or_default() & PASSWORD == 0)
}

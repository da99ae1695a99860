//! What people have written onto a page: the values of forms, and notes (12.5, 12.7).

use super::{
    content::{Content, Reader},
    text_of,
};
use hayro_syntax::{
    object::{Array, Dict, Name, Object, Rect, Stream},
    page::Page,
};

/// Annotations of one page.
const MOST: usize = 10_000;
/// Fields within fields.
const DEEPEST: usize = 32;
/// What a viewer does not show: hidden, or only on some screens.
const UNSEEN: i64 = 1 << 1 | 1 << 5;
/// A field for a password.
const PASSWORD: i64 = 1 << 13;

/// Draws the values and texts that stand on the page, and returns those that are not drawn.
pub(super) fn read<'a>(
    page: &Page<'a>,
    reader: &mut Reader<'a>,
    content: &mut Content,
) -> Vec<String> {
    let annotations = page.raw().get::<Array<'a>>("Annots");
    let annotations = annotations.iter().flat_map(Array::iter::<Dict<'a>>);
    let mut texts = Vec::new();
    for annotation in annotations.take(MOST) {
        if annotation.get::<i64>("F").unwrap_or_default() & UNSEEN != 0 {
            continue;
        }
        let kind = annotation.get::<Name<'_>>("Subtype");
        let is_drawn = match kind.as_deref() {
            Some(b"Widget" | b"FreeText" | b"Stamp") => draw(&annotation, reader, content),
            Some(b"Popup" | b"Link") | None => true,
            Some(_) => false,
        };
        if !is_drawn {
            let text = match kind.as_deref() {
                Some(b"Widget") => value(&annotation),
                _ => text_of(&annotation, "Contents"),
            };
            texts.extend(text);
        }
    }
    texts
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

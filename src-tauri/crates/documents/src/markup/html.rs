//! HTML as browsers split it (WHATWG, HTML, 13.2.5), by `html5gum`. Any text is read as something.

use html5gum::{
    Span, StringReader, Tokenizer,
    emitters::callback::{Callback, CallbackEmitter, CallbackEvent},
};

/// The attributes that are kept; what a page has beside them takes no memory.
const KEPT: [&str; 8] = [
    "aria-hidden",
    "charset",
    "class",
    "content",
    "hidden",
    "href",
    "http-equiv",
    "style",
];

/// Elements that begin and end a block, besides headings, `nav` and `pre`.
#[rustfmt::skip]
pub const BLOCKS: [&str; 34] = [
    "address", "article", "aside", "blockquote", "body", "br", "caption", "dd", "details", "div", "dl", "dt",
    "fieldset", "figcaption", "figure", "footer", "form", "header", "hr", "html", "legend", "li", "main", "ol",
    "option", "p", "section", "summary", "table", "tbody", "tfoot", "thead", "tr", "ul",
];

/// A piece of a page. Names are in lower case, and character references are replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    Start(Tag),
    End(String),
    /// As long as there is no tag or comment.
    Text(String),
}

/// A start tag.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tag {
    pub name: String,
    /// Whether it ends with `/>`, which means something in SVG and MathML alone.
    pub is_closed: bool,
    attributes: Vec<(&'static str, String)>,
}

impl Tag {
    /// Returns an attribute's value, the first if there are several; `None` for one that is not there or that no reader needs.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        let found = self.attributes.iter().find(|(own, _)| *own == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// Splits a page into its pieces.
#[derive(Debug)]
pub struct Pieces<'a>(Tokenizer<StringReader<'a>, CallbackEmitter<Builder, Piece>>);

impl<'a> Pieces<'a> {
    pub fn new(html: &'a str) -> Self {
        let mut emitter = CallbackEmitter::new(Builder::default());
        // The content of scripts and styles is no markup.
        emitter.naively_switch_states(true);
        Self(Tokenizer::new_with_emitter(html, emitter))
    }

    /// Skips to the end of the element that this tag begins, with the elements inside it.
    pub fn skip_element(&mut self, tag: &Tag) {
        let mut open = 1_usize;
        while open > 0 {
            match self.next() {
                Some(Piece::Start(inner)) if inner.name == tag.name => open += 1,
                Some(Piece::End(name)) if name == tag.name => open -= 1,
                Some(_) => {}
                None => return,
            }
        }
    }
}

impl Iterator for Pieces<'_> {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        let Ok(piece) = self.0.next()?;
        Some(piece)
    }
}

#[derive(Debug, Default)]
struct Builder {
    tag: Option<Tag>,
    /// The value of the last attribute belongs to the tag's last one.
    is_kept: bool,
}

impl Callback<Piece, ()> for Builder {
    fn handle_event(&mut self, event: CallbackEvent<'_>, _: Span<()>) -> Option<Piece> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match event {
            CallbackEvent::OpenStartTag { name } => {
                self.tag = Some(Tag {
                    name: text(name),
                    ..Tag::default()
                });
            }
            // An end tag may have attributes, too.
            CallbackEvent::AttributeName { name } => {
                let kept = KEPT.into_iter().find(|kept| kept.as_bytes() == name);
                self.is_kept = false;
                if let (Some(tag), Some(name)) = (&mut self.tag, kept)
                    && tag.attribute(name).is_none()
                {
                    tag.attributes.push((name, String::new()));
                    self.is_kept = true;
                }
            }
            CallbackEvent::AttributeValue { value } if self.is_kept => {
                let last = self.tag.as_mut().and_then(|tag| tag.attributes.last_mut());
                if let Some((_, last)) = last {
                    *last = text(value);
                }
            }
            CallbackEvent::CloseStartTag { self_closing } => {
                let tag = self.tag.take()?;
                return Some(Piece::Start(Tag {
                    is_closed: self_closing,
                    ..tag
                }));
            }
            CallbackEvent::EndTag { name } => {
                self.tag = None;
                return Some(Piece::End(text(name)));
            }
            CallbackEvent::String { value } => return Some(Piece::Text(text(value))),
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn tags_text_and_references_are_read() {
        let text = "<!-- no --><P Class='a b' onclick=x hidden>x &amp; y&#8211;&#x41; &nope; &<br/><script>if (a<b)</script>z</P x=y>";
        let pieces: Vec<_> = Pieces::new(text).collect();
        let start = |name: &str, is_closed, attributes: &[(&'static str, &str)]| {
            Piece::Start(Tag {
                name: name.to_owned(),
                is_closed,
                attributes: attributes
                    .iter()
                    .map(|(name, value)| (*name, (*value).to_owned()))
                    .collect(),
            })
        };
        assert_eq!(
            pieces,
            [
                start("p", false, &[("class", "a b"), ("hidden", "")]),
                Piece::Text("x & y–A &nope; &".to_owned()),
                start("br", true, &[]),
                start("script", false, &[]),
                Piece::Text("if (a<b)".to_owned()),
                Piece::End("script".to_owned()),
                Piece::Text("z".to_owned()),
                Piece::End("p".to_owned()),
            ]
        );
    }

    #[test]
    fn all_named_references_are_read() {
        let names = include_str!("../../tests/fixtures/entities.txt");
        assert_eq!(names.lines().count(), 2231);
        for line in names.lines() {
            let mut words = line.split(' ');
            let name = words.next().unwrap();
            let code = |hex| char::from_u32(u32::from_str_radix(hex, 16).unwrap()).unwrap();
            let letters: String = words.map(code).collect();
            let pieces: Vec<_> = Pieces::new(&format!("&{name} <a href='&{name}'>")).collect();
            let Piece::Text(text) = &pieces[0] else {
                panic!("{name} is no text");
            };
            assert_eq!(*text, format!("{letters} "), "{name}");
            let Piece::Start(tag) = &pieces[1] else {
                panic!("{name} is no tag");
            };
            assert_eq!(tag.attribute("href"), Some(letters.as_str()), "{name}");
        }
    }

    #[test]
    fn an_element_is_skipped_with_those_inside_it() {
        let mut pieces = Pieces::new("<nav><nav>a</nav>b</nav>c<nav>d");
        let Some(Piece::Start(tag)) = pieces.next() else {
            panic!("no tag");
        };
        pieces.skip_element(&tag);
        assert_eq!(pieces.next(), Some(Piece::Text("c".to_owned())));
        pieces.next();
        pieces.skip_element(&tag);
        assert_eq!(pieces.next(), None);
    }

    proptest! {
        #[test]
        fn any_text_is_read_to_its_end(text in "[<>/a!?&;='\" \\-ä\\[]{0,60}") {
            prop_assert!(Pieces::new(&text).count() <= text.len());
        }
    }
}

//! XML of Office's files by `quick-xml`. Elements are told apart by their local names, since prefixes are each program's own.
//! Entities that a file declares are not replaced, so that none can explode.

use quick_xml::{
    Reader,
    escape::unescape,
    events::{BytesEnd, BytesStart, Event},
};
use std::borrow::Cow;

/// A piece of XML. An empty element has a start and an end.
pub(crate) enum Piece<'a> {
    Start(BytesStart<'a>),
    End(BytesEnd<'a>),
    Text(Cow<'a, str>),
}

/// Splits XML into its pieces, up to where it is no XML any more.
pub(crate) struct Pieces<'a> {
    reader: Reader<&'a [u8]>,
    /// What follows could not be read.
    pub(crate) is_damaged: bool,
}

impl<'a> Pieces<'a> {
    pub(crate) fn new(xml: &'a str) -> Self {
        let mut reader = Reader::from_str(xml);
        let config = reader.config_mut();
        config.expand_empty_elements = true;
        config.check_end_names = false;
        config.allow_unmatched_ends = true;
        config.allow_dangling_amp = true;
        Self {
            reader,
            is_damaged: false,
        }
    }

    /// Skips to the end of the element that this start begins, with the elements inside it.
    pub(crate) fn skip_element(&mut self, start: &BytesStart<'_>) {
        self.is_damaged |= self.reader.read_to_end(start.name()).is_err();
    }
}

impl<'a> Iterator for Pieces<'a> {
    type Item = Piece<'a>;

    fn next(&mut self) -> Option<Piece<'a>> {
        while !self.is_damaged {
            match self.reader.read_event() {
                Ok(Event::Start(start) | Event::Empty(start)) => return Some(Piece::Start(start)),
                Ok(Event::End(end)) => return Some(Piece::End(end)),
                Ok(Event::Text(text)) => return Some(Piece::Text(text.into_inner())),
                Ok(Event::CData(text)) => return Some(Piece::Text(text.into_inner())),
                Ok(Event::GeneralRef(name)) => {
                    let reference = format!("&{};", &*name);
                    let replaced = unescape(&reference).map(Cow::into_owned);
                    return Some(Piece::Text(replaced.unwrap_or(reference).into()));
                }
                Ok(Event::Eof) => return None,
                Ok(_) => {}
                Err(_) => self.is_damaged = true,
            }
        }
        None
    }
}

/// Returns an attribute's value by its local name; the one with a prefix if `prefixed`.
pub(crate) fn attribute(start: &BytesStart<'_>, name: &str, prefixed: bool) -> Option<String> {
    let found = start
        .attributes()
        .with_checks(false)
        .flatten()
        .find(|own| {
            own.key.local_name().as_ref() == name && (!prefixed || own.key.prefix().is_some())
        })?;
    let value = unescape(&found.value).map(Cow::into_owned);
    Some(value.unwrap_or_else(|_| found.value.into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn words(xml: &str) -> (String, bool) {
        let (mut words, mut pieces) = (String::new(), Pieces::new(xml));
        for piece in pieces.by_ref() {
            if let Piece::Text(text) = piece {
                words.push_str(&text);
            }
        }
        (words, pieces.is_damaged)
    }

    #[test]
    fn references_are_replaced_and_declared_entities_are_not() {
        let bomb = "<!DOCTYPE a [<!ENTITY x \"xxxx\"><!ENTITY y \"&x;&x;\">]><a>&lt;&#x41;&amp;lt; &y;<![CDATA[<b>]]> & c</a>";
        assert_eq!(words(bomb), ("<A&lt; &y;<b> & c".to_owned(), false));
    }

    #[test]
    fn what_is_no_xml_any_more_is_damaged() {
        assert_eq!(words("<a>b<c"), ("b".to_owned(), true));
        assert_eq!(words("<a>b</c></a></a>"), ("b".to_owned(), false));
        let deep = "<a>".repeat(100_000) + "x";
        assert_eq!(words(&deep), ("x".to_owned(), false));
    }

    #[test]
    fn attributes_are_found_by_their_local_names() {
        let mut pieces = Pieces::new("<x:s id='1' r:id='a&amp;b' id='2'/>");
        let Some(Piece::Start(start)) = pieces.next() else {
            panic!("no element");
        };
        assert_eq!(attribute(&start, "id", false).as_deref(), Some("1"));
        assert_eq!(attribute(&start, "id", true).as_deref(), Some("a&b"));
        assert_eq!(attribute(&start, "name", false), None);
    }

    proptest! {
        #[test]
        fn any_text_is_read_to_its_end(text in "[<>/a!?&;='\" \\-ä\\[]{0,60}") {
            prop_assert!(Pieces::new(&text).count() <= 2 * text.len());
        }
    }
}

//! Tags and text of HTML and XML. Any text is read as something; nothing is nested here, so nothing can nest too deep.

/// A piece of markup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    Open {
        /// In lower case for HTML.
        name: String,
        attributes: Vec<(String, String)>,
        /// `<br/>`
        empty: bool,
    },
    Close(String),
    Text(String),
}

impl Piece {
    pub(super) fn attribute<'a>(attributes: &'a [(String, String)], name: &str) -> Option<&'a str> {
        let found = attributes.iter().find(|(own, _)| own == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// Elements of HTML whose content is no markup.
const RAW: [&str; 5] = ["script", "style", "noscript", "template", "svg"];

pub(super) struct Pieces<'a> {
    text: &'a str,
    /// Names are compared without case, and some elements are not markup.
    html: bool,
}

impl<'a> Pieces<'a> {
    pub(super) fn html(text: &'a str) -> Self {
        Self { text, html: true }
    }

    pub(super) fn xml(text: &'a str) -> Self {
        Self { text, html: false }
    }

    fn until(&mut self, end: &str) {
        self.text = match self.text.find(end) {
            Some(at) => &self.text[at + end.len()..],
            None => "",
        };
    }

    /// Skips the content of an element, up to its end tag.
    pub(super) fn skip_element(&mut self, name: &str) {
        let mut from = 0;
        while let Some(at) = self.text[from..].find("</") {
            let rest = &self.text[from + at + 2..];
            let ends = rest
                .get(..name.len())
                .is_some_and(|found| found.eq_ignore_ascii_case(name));
            if ends {
                self.text = rest;
                return self.until(">");
            }
            from += at + 2;
        }
        self.text = "";
    }

    fn tag(&mut self) -> Option<Piece> {
        let rest = &self.text[1..];
        let closing = rest.starts_with('/');
        let rest = rest.strip_prefix('/').unwrap_or(rest);
        if !rest.starts_with(|letter: char| letter.is_alphabetic() || letter == '_') {
            return None;
        }
        let end = rest
            .find(|letter: char| letter.is_whitespace() || matches!(letter, '>' | '/'))
            .unwrap_or(rest.len());
        let mut name = rest[..end].to_owned();
        if self.html {
            name.make_ascii_lowercase();
        }
        self.text = &rest[end..];
        let mut attributes = Vec::new();
        let mut empty = false;
        loop {
            self.text = self.text.trim_start();
            if self.text.is_empty() {
                break;
            }
            if let Some(rest) = self.text.strip_prefix('>') {
                self.text = rest;
                break;
            }
            if let Some(rest) = self.text.strip_prefix('/') {
                empty = true;
                self.text = rest;
                continue;
            }
            empty = false;
            attributes.push(self.attribute());
        }
        Some(match closing {
            true => Piece::Close(name),
            false => Piece::Open {
                name,
                attributes,
                empty,
            },
        })
    }

    /// One attribute, of at least one letter.
    fn attribute(&mut self) -> (String, String) {
        let first = self.text.chars().next().map_or(0, char::len_utf8);
        let end = self.text[first..]
            .find(|letter: char| letter.is_whitespace() || matches!(letter, '>' | '/' | '='))
            .map_or(self.text.len(), |at| at + first);
        let mut name = self.text[..end].to_owned();
        if self.html {
            name.make_ascii_lowercase();
        }
        let rest = self.text[end..].trim_start();
        let Some(rest) = rest.strip_prefix('=') else {
            self.text = rest;
            return (name, String::new());
        };
        let rest = rest.trim_start();
        let quote = rest
            .chars()
            .next()
            .filter(|quote| matches!(quote, '"' | '\''));
        let (value, rest) = match quote {
            Some(quote) => rest[1..].split_once(quote).unwrap_or((&rest[1..], "")),
            None => {
                let ends = |letter: char| letter.is_whitespace() || letter == '>';
                rest.split_at(rest.find(ends).unwrap_or(rest.len()))
            }
        };
        self.text = rest;
        (name, unescape(value))
    }
}

impl Iterator for Pieces<'_> {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        while !self.text.is_empty() {
            let end = self.text.find('<').unwrap_or(self.text.len());
            if end > 0 {
                let text = unescape(&self.text[..end]);
                self.text = &self.text[end..];
                return Some(Piece::Text(text));
            }
            if self.text.starts_with("<!--") {
                self.until("-->");
            } else if let Some(rest) = self.text.strip_prefix("<![CDATA[") {
                let (text, rest) = rest.split_once("]]>").unwrap_or((rest, ""));
                self.text = rest;
                return Some(Piece::Text(text.to_owned()));
            } else if self.text.starts_with("<!") || self.text.starts_with("<?") {
                self.until(">");
            } else if let Some(tag) = self.tag() {
                if let Piece::Open {
                    name, empty: false, ..
                } = &tag
                    && self.html
                    && RAW.contains(&name.as_str())
                {
                    let name = name.clone();
                    self.skip_element(&name);
                    continue;
                }
                return Some(tag);
            } else {
                self.text = &self.text[1..];
                return Some(Piece::Text("<".to_owned()));
            }
        }
        None
    }
}

/// Entities with a name that texts use; others stay as they are.
const NAMED: [(&str, &str); 40] = [
    ("amp", "&"),
    ("lt", "<"),
    ("gt", ">"),
    ("quot", "\""),
    ("apos", "'"),
    ("nbsp", " "),
    ("ndash", "–"),
    ("mdash", "—"),
    ("hellip", "…"),
    ("lsquo", "‘"),
    ("rsquo", "’"),
    ("ldquo", "“"),
    ("rdquo", "”"),
    ("laquo", "«"),
    ("raquo", "»"),
    ("copy", "©"),
    ("reg", "®"),
    ("trade", "™"),
    ("euro", "€"),
    ("pound", "£"),
    ("deg", "°"),
    ("middot", "·"),
    ("bull", "•"),
    ("times", "×"),
    ("plusmn", "±"),
    ("auml", "ä"),
    ("ouml", "ö"),
    ("uuml", "ü"),
    ("Auml", "Ä"),
    ("Ouml", "Ö"),
    ("Uuml", "Ü"),
    ("szlig", "ß"),
    ("eacute", "é"),
    ("egrave", "è"),
    ("ecirc", "ê"),
    ("agrave", "à"),
    ("ccedil", "ç"),
    ("ntilde", "ñ"),
    ("shy", ""),
    ("zwnj", ""),
];

fn unescape(text: &str) -> String {
    let Some(first) = text.find('&') else {
        return text.to_owned();
    };
    let mut unescaped = text[..first].to_owned();
    let mut rest = &text[first..];
    while let Some(at) = rest.find('&') {
        unescaped.push_str(&rest[..at]);
        rest = &rest[at..];
        let end = rest.bytes().take(12).position(|byte| byte == b';');
        let replaced = end.and_then(|end| entity(&rest[1..end]).map(|letters| (end, letters)));
        match replaced {
            Some((end, letters)) => {
                unescaped.push_str(&letters);
                rest = &rest[end + 1..];
            }
            None => {
                unescaped.push('&');
                rest = &rest[1..];
            }
        }
    }
    unescaped + rest
}

fn entity(name: &str) -> Option<String> {
    if let Some(number) = name.strip_prefix('#') {
        let code = match number.strip_prefix(['x', 'X']) {
            Some(hex) => u32::from_str_radix(hex, 16).ok()?,
            None => number.parse().ok()?,
        };
        return char::from_u32(code).map(String::from);
    }
    let found = NAMED.iter().find(|(known, _)| *known == name)?;
    Some(found.1.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn tags_text_and_entities_are_read() {
        let text = "<!-- no --><P Class='a b' hidden>x &amp; y&#8211;&#x41; &nope; &<br/><script>if (a<b)</script>z</P>";
        let pieces: Vec<_> = Pieces::html(text).collect();
        let open = |name: &str, attributes: &[(&str, &str)], empty| Piece::Open {
            name: name.to_owned(),
            attributes: attributes
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
            empty,
        };
        assert_eq!(
            pieces,
            [
                open("p", &[("class", "a b"), ("hidden", "")], false),
                Piece::Text("x & y–A &nope; &".to_owned()),
                open("br", &[], true),
                Piece::Text("z".to_owned()),
                Piece::Close("p".to_owned()),
            ]
        );
    }

    proptest! {
        #[test]
        fn any_text_is_read_to_its_end(text in "[<>/a!?&;='\" \\-ä\\[]{0,60}") {
            prop_assert!(Pieces::html(&text).count() <= text.len());
            prop_assert!(Pieces::xml(&text).count() <= text.len());
        }
    }
}

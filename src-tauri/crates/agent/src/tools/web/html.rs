//! The text of a page. Pages are read as they come: unclosed, nested wrongly, and hostile.

use std::collections::VecDeque;
use url::Url;

/// What is read of a page.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Page {
    pub title: String,
    /// Blocks are lines; a link's text is followed by nothing.
    pub text: String,
    /// In their order, each once.
    pub links: Vec<Link>,
}

/// A link to elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    pub text: String,
    pub url: Url,
}

/// How many links are kept of a page.
const LINKS: usize = 200;
/// The longest text of a page, in bytes.
const TEXT_BYTES: usize = 1024 * 1024;

/// Elements whose content is no text of the page.
const SKIPPED: [&str; 11] = [
    "script", "style", "noscript", "template", "svg", "iframe", "object", "head", "select",
    "textarea", "canvas",
];
/// Elements whose content is no markup until their end tag.
const RAW: [&str; 6] = ["script", "style", "textarea", "title", "noscript", "iframe"];
const BLOCKS: [&str; 32] = [
    "address",
    "article",
    "aside",
    "blockquote",
    "br",
    "dd",
    "div",
    "dl",
    "dt",
    "fieldset",
    "figcaption",
    "figure",
    "footer",
    "form",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "header",
    "hr",
    "li",
    "main",
    "nav",
    "ol",
    "p",
    "pre",
    "section",
    "table",
    "tr",
    "ul",
];

/// One piece of a page.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece {
    Text(String),
    /// With its attributes of interest: `class`, `href`, and whether it is hidden.
    Start {
        name: String,
        class: String,
        href: Option<String>,
        hidden: bool,
    },
    End(String),
}

/// Reads a page that came from this address.
#[must_use]
pub fn read_page(html: &str, url: &Url) -> Page {
    let mut page = Page::default();
    let (mut in_title, mut in_pre) = (false, false);
    // The elements that are skipped and still open, from the outermost.
    let mut skipped: Vec<String> = Vec::new();
    let mut link: Option<(Url, String)> = None;
    let mut base = url.clone();
    for piece in pieces(html) {
        match piece {
            Piece::Start {
                name, href, hidden, ..
            } => {
                if name == "title" && page.title.is_empty() {
                    in_title = true;
                    continue;
                }
                if name == "base"
                    && let Some(href) = &href
                {
                    base = url.join(href).unwrap_or(base);
                }
                if name == "body" {
                    skipped.clear();
                }
                let is_void = ["br", "hr", "img", "input", "meta", "link", "base"];
                if (SKIPPED.contains(&name.as_str()) || hidden || !skipped.is_empty())
                    && !is_void.contains(&name.as_str())
                {
                    let counts = skipped.first().is_none_or(|outermost| *outermost == name);
                    if counts {
                        skipped.push(name);
                    }
                    continue;
                }
                if BLOCKS.contains(&name.as_str()) {
                    break_line(&mut page.text);
                } else if name == "td" || name == "th" {
                    page.text.push_str("  ");
                }
                in_pre |= name == "pre";
                if name == "a" {
                    finish_link(&mut page, link.take());
                    let target = href.and_then(|href| base.join(href.trim()).ok());
                    let target = target.filter(|url| matches!(url.scheme(), "http" | "https"));
                    link = target.map(|url| (url, String::new()));
                }
            }
            Piece::End(name) => {
                if name == "title" {
                    in_title = false;
                }
                if skipped.last() == Some(&name) {
                    skipped.pop();
                    continue;
                }
                if !skipped.is_empty() {
                    continue;
                }
                in_pre &= name != "pre";
                if name == "a" {
                    finish_link(&mut page, link.take());
                } else if BLOCKS.contains(&name.as_str()) {
                    break_line(&mut page.text);
                }
            }
            Piece::Text(text) if in_title => push_words(&mut page.title, &text),
            Piece::Text(text) if skipped.is_empty() => {
                if page.text.len() + text.len() <= TEXT_BYTES {
                    if in_pre {
                        page.text.push_str(&text);
                    } else {
                        push_words(&mut page.text, &text);
                    }
                }
                if let Some((_, words)) = &mut link {
                    push_words(words, &text);
                }
            }
            Piece::Text(_) => {}
        }
    }
    finish_link(&mut page, link);
    page.title = page.title.trim().to_owned();
    page.text = page.text.trim().to_owned();
    page
}

fn finish_link(page: &mut Page, link: Option<(Url, String)>) {
    let Some((mut url, text)) = link else { return };
    url.set_fragment(None);
    let text = text.trim().to_owned();
    let is_known = page.links.iter().any(|link| link.url == url);
    if !text.is_empty() && !is_known && page.links.len() < LINKS {
        page.links.push(Link { text, url });
    }
}

fn break_line(text: &mut String) {
    while text.ends_with(' ') {
        text.pop();
    }
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
}

/// Appends text with its blanks as single spaces.
fn push_words(to: &mut String, text: &str) {
    for letter in text.chars() {
        if !letter.is_whitespace() {
            to.push(letter);
        } else if !to.is_empty() && !to.ends_with([' ', '\n']) {
            to.push(' ');
        }
    }
}

/// Splits a page into its pieces.
pub(super) fn pieces(html: &str) -> impl Iterator<Item = Piece> + '_ {
    let mut rest = html;
    let mut ready = VecDeque::new();
    std::iter::from_fn(move || {
        loop {
            if let Some(piece) = ready.pop_front() {
                return Some(piece);
            }
            if rest.is_empty() {
                return None;
            }
            rest = next(rest, &mut ready);
        }
    })
}

/// Reads the piece at the beginning of a text that is not empty, and returns what follows it, which is shorter.
fn next<'a>(html: &'a str, ready: &mut VecDeque<Piece>) -> &'a str {
    let Some(inside) = html.strip_prefix('<') else {
        let end = html.find('<').unwrap_or(html.len());
        ready.push_back(Piece::Text(decode(&html[..end])));
        return &html[end..];
    };
    if let Some(comment) = inside.strip_prefix("!--") {
        return comment.find("-->").map_or("", |end| &comment[end + 3..]);
    }
    if inside.starts_with(['!', '?']) {
        return inside.find('>').map_or("", |end| &inside[end + 1..]);
    }
    let (is_end, tag) = match inside.strip_prefix('/') {
        Some(tag) => (true, tag),
        None => (false, inside),
    };
    if !tag.starts_with(|letter: char| letter.is_ascii_alphabetic()) {
        // A lone sign.
        ready.push_back(Piece::Text("<".to_owned()));
        return inside;
    }
    let end = tag
        .find(|letter: char| letter.is_ascii_whitespace() || letter == '/' || letter == '>')
        .unwrap_or(tag.len());
    let name = tag[..end].to_ascii_lowercase();
    let (attributes, rest) = attributes(&tag[end..]);
    if is_end {
        ready.push_back(Piece::End(name));
        return rest;
    }
    let value = |wanted: &str| {
        let found = attributes.iter().find(|(name, _)| name == wanted);
        found.map(|(_, value)| value.clone())
    };
    let style = value("style").unwrap_or_default();
    let style: String = style
        .chars()
        .filter(|letter| !letter.is_whitespace())
        .collect();
    let style = style.to_ascii_lowercase();
    let hidden = value("hidden").is_some()
        || value("aria-hidden").is_some_and(|value| value == "true")
        || [
            "display:none",
            "visibility:hidden",
            "font-size:0",
            "opacity:0",
        ]
        .iter()
        .any(|unseen| style.contains(unseen) && !style.contains("opacity:0."));
    let is_raw = RAW.contains(&name.as_str());
    ready.push_back(Piece::Start {
        class: value("class").unwrap_or_default(),
        href: value("href"),
        hidden,
        name: name.clone(),
    });
    if !is_raw {
        return rest;
    }
    let end = find_end(rest, &name);
    ready.push_back(Piece::Text(decode(&rest[..end])));
    &rest[end..]
}

/// Where the end tag of an element begins, or the text's end.
fn find_end(text: &str, name: &str) -> usize {
    let mut from = 0;
    while let Some(at) = text[from..].find("</") {
        let start = from + at;
        let tag = &text.as_bytes()[start + 2..];
        if tag.len() >= name.len() && tag[..name.len()].eq_ignore_ascii_case(name.as_bytes()) {
            return start;
        }
        from = start + 2;
    }
    text.len()
}

/// Reads attributes up to the end of their tag.
fn attributes(text: &str) -> (Vec<(String, String)>, &str) {
    let mut attributes = Vec::new();
    let mut rest = text;
    loop {
        rest =
            rest.trim_start_matches(|letter: char| letter.is_ascii_whitespace() || letter == '/');
        if let Some(after) = rest.strip_prefix('>') {
            return (attributes, after);
        }
        if rest.is_empty() {
            return (attributes, "");
        }
        let ends = |letter: char| letter.is_ascii_whitespace() || "/>=".contains(letter);
        // At least one character, so that it ends.
        let first = rest.chars().next().map_or(1, char::len_utf8);
        let end = rest[first..]
            .find(ends)
            .map_or(rest.len(), |end| end + first);
        let name = rest[..end].to_ascii_lowercase();
        rest = rest[end..].trim_start();
        let mut value = String::new();
        if let Some(after) = rest.strip_prefix('=') {
            let after = after.trim_start();
            (value, rest) = match after.chars().next() {
                Some(quote @ ('"' | '\'')) => {
                    let inner = &after[1..];
                    match inner.find(quote) {
                        Some(end) => (decode(&inner[..end]), &inner[end + 1..]),
                        None => (decode(inner), ""),
                    }
                }
                _ => {
                    let ends = |letter: char| letter.is_ascii_whitespace() || letter == '>';
                    let end = after.find(ends).unwrap_or(after.len());
                    (decode(&after[..end]), &after[end..])
                }
            };
        }
        attributes.push((name, value));
    }
}

/// Replaces the character references that pages use.
pub(super) fn decode(text: &str) -> String {
    /// The longest one that is known, without its `&`.
    const LONGEST: usize = 10;
    let mut decoded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        decoded.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let end = rest.bytes().take(LONGEST).position(|byte| byte == b';');
        let letter = end.and_then(|end| reference(&rest[..end]).map(|letter| (letter, end)));
        match letter {
            Some((letter, end)) => {
                decoded.push(letter);
                rest = &rest[end + 1..];
            }
            None => decoded.push('&'),
        }
    }
    decoded.push_str(rest);
    decoded
}

fn reference(name: &str) -> Option<char> {
    if let Some(number) = name.strip_prefix('#') {
        let number = match number.strip_prefix(['x', 'X']) {
            Some(digits) => u32::from_str_radix(digits, 16).ok()?,
            None => number.parse().ok()?,
        };
        return char::from_u32(number).filter(|letter| *letter != '\0');
    }
    Some(match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        "nbsp" => ' ',
        "ndash" => '–',
        "mdash" => '—',
        "hellip" => '…',
        "lsquo" => '‘',
        "rsquo" => '’',
        "ldquo" => '“',
        "rdquo" => '”',
        "bull" => '•',
        "middot" => '·',
        "copy" => '©',
        "reg" => '®',
        "euro" => '€',
        "pound" => '£',
        "deg" => '°',
        "times" => '×',
        "auml" => 'ä',
        "ouml" => 'ö',
        "uuml" => 'ü',
        "Auml" => 'Ä',
        "Ouml" => 'Ö',
        "Uuml" => 'Ü',
        "szlig" => 'ß',
        "eacute" => 'é',
        "egrave" => 'è',
        "agrave" => 'à',
        "ccedil" => 'ç',
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(html: &str) -> Page {
        read_page(html, &Url::parse("https://example.com/a/b").unwrap())
    }

    #[test]
    fn a_page_is_read_as_its_text() {
        let page = page(
            "<!DOCTYPE html><html><head><title> A &amp; B </title><style>p {}</style></head>\
             <body><!-- no --><h1>Head</h1><p>One\n two <b>bold</b>text.<p>Next&nbsp;one\
             <script>if (a < b) { alert('</p>') }</script><ul><li>a<li>b</ul>\
             <a href='/c?d=1&amp;e=2#f'>Link <i>text</i></a> 1 < 2 &unknown; &#228;&#xDF;</body>",
        );
        assert_eq!(page.title, "A & B");
        assert_eq!(
            page.text,
            "Head\nOne two boldtext.\nNext one\na\nb\nLink text 1 < 2 &unknown; äß"
        );
        assert_eq!(page.links.len(), 1);
        assert_eq!(page.links[0].text, "Link text");
        assert_eq!(page.links[0].url.as_str(), "https://example.com/c?d=1&e=2");
    }

    #[test]
    fn what_people_do_not_see_is_not_read() {
        for hidden in [
            "<div hidden>evil</div>",
            "<div style='display: none'>evil <div>evil</div> evil</div>",
            "<span style=\"DISPLAY:NONE\">evil</span>",
            "<p style='font-size:0'>evil</p>",
            "<p style='visibility: hidden'>evil</p>",
            "<p style='opacity:0'>evil</p>",
            "<i aria-hidden=true>evil</i>",
            "<template>evil</template>",
            "<noscript>evil</noscript>",
            "<svg><text>evil</text></svg>",
            "<!-- evil -->",
            "<!-- evil",
            "<script>evil",
            "<textarea>evil</textarea>",
            "<img alt='evil' title=evil>",
        ] {
            let page = page(&format!("<p>good</p>{hidden}"));
            assert_eq!(page.text, "good", "{hidden}");
        }
        let seen = page("<p style='opacity:0.9'>good</p><div hidden>x</div><p>more</p>");
        assert_eq!(seen.text, "good\nmore");
    }

    #[test]
    fn code_keeps_its_lines() {
        let page = page("<p>x</p><pre>a\n  <b>b</b>\n</pre>c  d");
        assert_eq!(page.text, "x\na\n  b\nc d");
    }

    #[test]
    fn links_lead_to_the_web() {
        let page = page(
            "<base href='https://base.example/x/'><a href='y'>y</a><a href='javascript:alert(1)'>j</a>\
             <a href='data:text/html,x'>d</a><a href='mailto:x@y'>m</a><a>n</a><a href='y#z'>again</a><a href=//other.example>o</a>",
        );
        let links: Vec<_> = page.links.iter().map(|link| link.url.as_str()).collect();
        assert_eq!(
            links,
            ["https://base.example/x/y", "https://other.example/"]
        );
    }

    #[test]
    fn broken_pages_end() {
        for html in [
            "",
            "<",
            "</",
            "<a",
            "<a ",
            "<a href",
            "<a href=",
            "<a href='",
            "<!",
            "<!--",
            "<!-->",
            "<?",
            "&",
            "&#",
            "&#x",
            "&#x110000;",
            "&;",
            "<p/ / =>",
            "<p =a='b'>x",
            "<ä>x</ä>",
            "<title>",
            "<title>x",
            "</p></p>x",
            "<script></scriptx>",
            "<p a=ä>ö",
        ] {
            page(html);
        }
        let deep = "<div>".repeat(20_000) + "x";
        assert_eq!(page(&deep).text, "x");
        let open = "<a href='/x'>".repeat(2_000);
        assert!(page(&open).links.is_empty());
        let signs = "&".repeat(100_000) + &"<".repeat(100_000);
        assert!(page(&signs).text.len() >= 200_000);
        let large = "x ".repeat(TEXT_BYTES);
        assert!(page(&format!("<p>{large}</p><p>end</p>")).text.len() <= TEXT_BYTES);
    }
}

//! The text of a page. Pages are read as they come: unclosed, nested wrongly, and hostile.

use tierbar_documents::markup::html::{BLOCKS, Piece, Pieces, Tag};
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
/// The longest address of a link, in bytes. A relative one repeats the page's base, which may be as long as the page.
const ADDRESS_BYTES: usize = 4096;
/// The longest text of a page, in bytes.
const TEXT_BYTES: usize = 1024 * 1024;

/// Elements whose content is no text of the page.
const SKIPPED: [&str; 11] = [
    "script", "style", "noscript", "template", "svg", "iframe", "object", "head", "select",
    "textarea", "canvas",
];
/// Blocks that are read in another way where a page is a document.
const OTHER_BLOCKS: [&str; 8] = ["h1", "h2", "h3", "h4", "h5", "h6", "nav", "pre"];

/// Reads a page that came from this address.
pub fn read_page(html: &str, url: &Url) -> Page {
    let mut page = Page::default();
    let (mut in_title, mut in_pre) = (false, false);
    // The outermost element that is skipped, and how many of its name are open.
    let mut skipped: Option<(String, usize)> = None;
    let mut link: Option<(Url, String)> = None;
    let mut base = url.clone();
    for piece in Pieces::new(html) {
        match piece {
            Piece::Start(tag) => {
                let (name, href) = (tag.name.as_str(), tag.attribute("href"));
                if name == "title" && page.title.is_empty() {
                    in_title = true;
                    continue;
                }
                if name == "base"
                    && let Some(href) = href
                {
                    let joined = url.join(href).ok().filter(is_short);
                    base = joined.unwrap_or(base);
                }
                if name == "body" {
                    skipped = None;
                }
                let is_void = ["br", "hr", "img", "input", "meta", "link", "base"];
                let is_skipped = SKIPPED.contains(&name) || is_hidden(&tag);
                if (is_skipped || skipped.is_some()) && !is_void.contains(&name) {
                    let (outermost, open) = skipped.get_or_insert_with(|| (name.to_owned(), 0));
                    *open += usize::from(*outermost == name);
                    continue;
                }
                if is_block(name) {
                    break_line(&mut page.text);
                } else if name == "td" || name == "th" {
                    page.text.push_str("  ");
                }
                in_pre |= name == "pre";
                if name == "a" {
                    finish_link(&mut page, link.take());
                    let target = href.and_then(|href| base.join(href.trim()).ok());
                    let target = target.filter(is_short);
                    let target = target.filter(|url| matches!(url.scheme(), "http" | "https"));
                    link = target.map(|url| (url, String::new()));
                }
            }
            Piece::End(name) => {
                if name == "title" {
                    in_title = false;
                }
                if let Some((outermost, open)) = &mut skipped {
                    *open -= usize::from(*outermost == name);
                    if *open == 0 {
                        skipped = None;
                    }
                    continue;
                }
                in_pre &= name != "pre";
                if name == "a" {
                    finish_link(&mut page, link.take());
                } else if is_block(&name) {
                    break_line(&mut page.text);
                }
            }
            Piece::Text(text) if in_title => push_words(&mut page.title, &text),
            Piece::Text(text) if skipped.is_none() => {
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

fn is_short(url: &Url) -> bool {
    url.as_str().len() <= ADDRESS_BYTES
}

fn is_block(name: &str) -> bool {
    BLOCKS.contains(&name) || OTHER_BLOCKS.contains(&name)
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

/// Whether people do not see what an element holds.
fn is_hidden(tag: &Tag) -> bool {
    let style = tag.attribute("style").unwrap_or_default();
    let mut style: String = style.split_whitespace().collect();
    style.make_ascii_lowercase();
    tag.attribute("hidden").is_some()
        || tag.attribute("aria-hidden") == Some("true")
        || [
            "display:none",
            "visibility:hidden",
            "font-size:0",
            "opacity:0",
        ]
        .iter()
        .any(|unseen| style.contains(unseen) && !style.contains("opacity:0."))
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
    fn no_link_repeats_a_long_base() {
        let long = "x/".repeat(ADDRESS_BYTES);
        for base in ["/", &format!("/{long}")] {
            let page = page(&format!(
                "<base href='{base}'><a href='a'>a</a><a href='/b'>b</a><a href='/{long}'>c</a>"
            ));
            let links: Vec<_> = page.links.iter().map(|link| link.text.as_str()).collect();
            assert_eq!(links, ["a", "b"], "{base:.9}");
        }
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

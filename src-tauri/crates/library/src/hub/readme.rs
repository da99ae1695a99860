//! The readme of a repository, as plain Markdown.

use super::Hub;
use crate::reference::Repository;
use serde_json::Value;
use tierbar_core::{Code, Error, catalog::HubReadme};
use tierbar_fetch::Get;

/// Model cards have some ten kilobytes; the longest, with all benchmarks, some hundred.
const MAX_README_BYTES: usize = 512 << 10;
/// What a repository's main branch has at this place.
const BRANCH: &str = "main";
const README: &str = "README.md";
/// Longer tags and code spans are shown as they are.
const LONGEST_MARKUP: usize = 4 << 10;

impl Hub {
    /// Returns what the maker or publisher wrote about a repository's models.
    ///
    /// # Errors
    /// [`Code::NotFound`] without a readme, [`Code::Corrupt`] for one that is too long, else those of [`Hub::repository`].
    pub async fn readme(&self, repository: &Repository) -> Result<HubReadme, Error> {
        let mut get = Get::new(self.file_url(repository, BRANCH, README));
        get.token = (self.tokens)(&get.url);
        let answer = self.web.get(get).await.map_err(|error| {
            let status = error.details.get("status").and_then(Value::as_u64);
            if status == Some(404) {
                // One that does not exist is refused with 401, as a private one is.
                let message = format!("{repository} has no readme");
                return Error::new(Code::NotFound, message)
                    .hint(format!("its page is {}", self.page(repository)));
            }
            self.explain(error, repository, None)
        })?;
        let bytes = answer.bytes(MAX_README_BYTES).await?;
        Ok(HubReadme {
            repository: repository.to_string(),
            url: self.page(repository),
            text: plain_markdown(&String::from_utf8_lossy(&bytes)),
        })
    }

    pub(super) fn page(&self, repository: &Repository) -> String {
        self.url(&[repository.owner(), repository.name()])
            .to_string()
    }
}

/// Returns a model card without its metadata, HTML tags, comments and pictures. Code blocks stay as they are.
fn plain_markdown(card: &str) -> String {
    let card = card.strip_prefix('\u{feff}').unwrap_or(card);
    let card = card.replace("\r\n", "\n").replace('\r', "\n");
    let mut text = String::with_capacity(card.len());
    // Of what is outside code blocks: tags and comments may span lines.
    let mut prose = String::new();
    let mut fence: Option<&str> = None;
    for line in without_metadata(&card).split_inclusive('\n') {
        let start = line.trim_start();
        if let Some(open) = fence {
            text.push_str(line);
            let end = start.trim_end();
            if end.starts_with(open) && end.trim_start_matches(&open[..1]).is_empty() {
                fence = None;
            }
        } else if let Some(open) = ["```", "~~~"]
            .into_iter()
            .find(|open| start.starts_with(open))
        {
            text.push_str(&squeeze(&without_markup(&std::mem::take(&mut prose))));
            text.push_str(line);
            fence = Some(open);
        } else {
            prose.push_str(line);
        }
    }
    text.push_str(&squeeze(&without_markup(&prose)));
    text.trim().to_owned()
}

/// Returns what comes after the YAML between two lines of `---` at the start.
fn without_metadata(card: &str) -> &str {
    let Some(rest) = card.strip_prefix("---\n") else {
        return card;
    };
    match rest.find("\n---\n") {
        Some(end) => &rest[end + "\n---\n".len()..],
        None if rest.ends_with("\n---") => "",
        None => card,
    }
}

/// Drops tags, comments and pictures; a tag that ends a line of text becomes the end of one.
fn without_markup(prose: &str) -> String {
    let mut text = String::with_capacity(prose.len());
    let mut rest = prose;
    while let Some(at) = rest.find(['<', '!', '[', '`']) {
        text.push_str(&rest[..at]);
        rest = &rest[at..];
        if let Some(after) = code(rest) {
            text.push_str(&rest[..rest.len() - after.len()]);
            rest = after;
        } else if let Some(after) = comment(rest)
            .or_else(|| linked_picture(rest))
            .or_else(|| picture(rest))
        {
            rest = after;
        } else if let Some((name, after)) = tag(rest) {
            if ["br", "p", "div", "tr", "li", "h1", "h2", "h3", "h4"].contains(&name.as_str()) {
                text.push('\n');
            } else if ["td", "th"].contains(&name.as_str()) {
                text.push(' ');
            }
            rest = after;
        } else {
            let mut letters = rest.chars();
            text.extend(letters.next());
            rest = letters.as_str();
        }
    }
    text.push_str(rest);
    text
}

/// Returns what comes after the code span that the text starts with.
fn code(text: &str) -> Option<&str> {
    let ticks = text.len() - text.trim_start_matches('`').len();
    if ticks == 0 {
        return None;
    }
    let (mark, rest) = text.split_at(ticks);
    let near = nearby_text(rest);
    let paragraph = near.find("\n\n").unwrap_or(near.len());
    // Without an end, the marks are text.
    let end = near[..paragraph].find(mark);
    Some(end.map_or(rest, |end| &rest[end + ticks..]))
}

fn comment(text: &str) -> Option<&str> {
    let rest = text.strip_prefix("<!--")?;
    Some(rest.split_once("-->").map_or("", |(_, after)| after))
}

/// `![alt](address)`.
fn picture(text: &str) -> Option<&str> {
    let rest = text.strip_prefix("![")?;
    let (alt, rest) = split_at_mark(rest, "](")?;
    let (address, after) = split_at_mark(rest, ")")?;
    (!alt.contains('\n') && !address.contains('\n')).then_some(after)
}

/// A picture that is a link: `[![alt](address)](address)`.
fn linked_picture(text: &str) -> Option<&str> {
    let rest = picture(text.strip_prefix('[')?)?;
    let (address, after) = split_at_mark(rest.strip_prefix("](")?, ")")?;
    (!address.contains('\n')).then_some(after)
}

/// Returns the lower-case name of the tag that the text starts with, and what comes after it. Of a script or style sheet, nothing
/// is kept.
fn tag(text: &str) -> Option<(String, &str)> {
    let inner = text.strip_prefix('<')?;
    let name = inner.strip_prefix('/').unwrap_or(inner);
    let end = name.find(|letter: char| !letter.is_ascii_alphanumeric());
    let (name, rest) = name.split_at(end.unwrap_or(name.len()));
    let first = rest.chars().next()?;
    // `<https://…>` is a link, and `a <b` is text.
    let is_name = name.starts_with(|letter: char| letter.is_ascii_alphabetic());
    if !is_name || !(first.is_whitespace() || first == '>' || first == '/') {
        return None;
    }
    let (attributes, after) = split_at_mark(rest, ">")?;
    if attributes.contains("\n\n") {
        return None;
    }
    let name = name.to_ascii_lowercase();
    if !inner.starts_with('/') && ["script", "style"].contains(&name.as_str()) {
        let mark = format!("</{name}>");
        let mut places = after.as_bytes().windows(mark.len());
        let end = places.position(|place| place.eq_ignore_ascii_case(mark.as_bytes()));
        let after = end.map_or("", |end| &after[end + mark.len()..]);
        return Some((name, after));
    }
    Some((name, after))
}

/// Returns what comes before a mark that is near, and after it.
fn split_at_mark<'a>(text: &'a str, mark: &str) -> Option<(&'a str, &'a str)> {
    let at = nearby_text(text).find(mark)?;
    Some((&text[..at], &text[at + mark.len()..]))
}

/// Returns the beginning in which the end of a tag, picture or code span is looked for, so that a card of openings takes no longer.
fn nearby_text(text: &str) -> &str {
    &text[..text.floor_char_boundary(LONGEST_MARKUP)]
}

/// Leaves one blank line where there were several.
fn squeeze(text: &str) -> String {
    let mut squeezed = String::with_capacity(text.len());
    let mut blank = 0;
    for line in text.lines() {
        let line = line.trim_end();
        blank = if line.is_empty() { blank + 1 } else { 0 };
        if blank < 2 {
            squeezed.push_str(line);
            squeezed.push('\n');
        }
    }
    squeezed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_becomes_plain_markdown() {
        for (card, text) in [
            (
                "---\nlicense: mit\n---\n# Big 9B\n\nGood.",
                "# Big 9B\n\nGood.",
            ),
            ("---\nlicense: mit\n---", ""),
            ("---\nno end", "---\nno end"),
            ("\u{feff}---\r\na: b\r\n---\r\nText\r\n", "Text"),
            (
                "<div align=\"center\">\n<img src=\"https://x/a.png\">\n</div>\nText",
                "Text",
            ),
            ("a<br>b", "a\nb"),
            ("Use <b>bold</b> words", "Use bold words"),
            ("one <!-- two\n\nthree --> four", "one  four"),
            ("one <!-- never ends", "one"),
            ("[![Chat](https://x/b.svg)](https://x) Hello", "Hello"),
            ("See ![a chart](c.png) here", "See  here"),
            ("[link](https://x) stays", "[link](https://x) stays"),
            (
                "<https://x.example>, a < b, 3 <5 or 6>",
                "<https://x.example>, a < b, 3 <5 or 6>",
            ),
            ("`<|im_start|>` and `<b>`", "`<|im_start|>` and `<b>`"),
            ("<script>alert(1)</script>Text", "Text"),
            ("<STYLE>p{}</style>Text", "Text"),
            ("<script>never ends", ""),
            ("a\n\n\n\nb", "a\n\nb"),
        ] {
            assert_eq!(plain_markdown(card), text, "{card:?}");
        }
    }

    #[test]
    fn code_blocks_stay_as_they_are() {
        let card = "Run <i>it</i>:\n\n```html\n<b>![x](y)</b>\n\n<!-- z -->\n```\nDone <br>.";
        assert_eq!(
            plain_markdown(card),
            "Run it:\n\n```html\n<b>![x](y)</b>\n\n<!-- z -->\n```\nDone\n."
        );
        // One that does not end is code to the end.
        assert_eq!(plain_markdown("~~~\n<b>"), "~~~\n<b>");
    }

    proptest::proptest! {
        #[test]
        fn any_card_can_be_read(card in "[<>!\\[\\]()`~\n a-b/é-]{0,60}") {
            let _ = plain_markdown(&card);
        }
    }
}

//! Word's documents (ECMA-376, part 1, 17): paragraphs with the levels of their styles, rows of tables, footnotes.

use super::{
    Block, Facts, Refusal, Sink,
    markup::{Piece, Pieces},
    zip::Archive,
};
use std::collections::HashMap;

pub(super) fn read(bytes: &[u8], sink: &mut Sink<'_>) -> Result<Facts, Refusal> {
    let archive = Archive::open(bytes)?;
    let levels = levels(&archive.text("word/styles.xml")?);
    let pages = paragraphs(&archive.text("word/document.xml")?, &levels, sink);
    paragraphs(&archive.text("word/footnotes.xml")?, &levels, sink);
    Ok(Facts {
        title: element(&archive.text("docProps/core.xml")?, "dc:title"),
        // Only where Word has written down where its pages break.
        pages: (pages > 1).then_some(pages),
        ..Facts::default()
    })
}

/// Returns the text of the first element with this name.
pub(super) fn element(xml: &str, wanted: &str) -> Option<String> {
    let mut text = None;
    for piece in Pieces::xml(xml) {
        match piece {
            Piece::Open {
                name, empty: false, ..
            } if name == wanted => text = Some(String::new()),
            Piece::Text(words) => {
                if let Some(text) = &mut text {
                    text.push_str(&words);
                }
            }
            Piece::Close(name) if name == wanted => break,
            _ => {}
        }
    }
    text
}

/// The levels of the styles that are headings. Their names are English whatever Word's language; their ids are not.
fn levels(styles: &str) -> HashMap<String, u8> {
    let mut levels = HashMap::new();
    let mut style = String::new();
    for piece in Pieces::xml(styles) {
        let Piece::Open {
            name, attributes, ..
        } = piece
        else {
            continue;
        };
        let value = |name| Piece::attribute(&attributes, name).unwrap_or_default();
        match name.as_str() {
            "w:style" => value("w:styleId").clone_into(&mut style),
            "w:name" => {
                let name = value("w:val").to_ascii_lowercase();
                let level = name
                    .strip_prefix("heading ")
                    .and_then(|level| level.parse().ok());
                let level = level.or_else(|| (name == "title").then_some(1));
                levels.extend(level.map(|level: u8| (style.clone(), level.min(6))));
            }
            _ => {}
        }
    }
    levels
}

/// Returns the number of pages, as far as it is known.
fn paragraphs(xml: &str, levels: &HashMap<String, u8>, sink: &mut Sink<'_>) -> u32 {
    let has_pages = xml.contains("w:lastRenderedPageBreak");
    let (mut page, mut text, mut heading) = (1_u32, String::new(), None);
    let (mut in_text, mut cells) = (false, 0_u32);
    let mut flush = |text: &mut String, heading: Option<u8>, page: u32| {
        sink.push(Block {
            heading,
            page: has_pages.then_some(page),
            ..Block::new(std::mem::take(text).trim())
        });
    };
    for piece in Pieces::xml(xml) {
        match piece {
            Piece::Text(words) if in_text => text.push_str(&words),
            Piece::Text(_) => {}
            Piece::Open {
                name,
                attributes,
                empty,
            } => match name.as_str() {
                "w:t" => in_text = !empty,
                "w:tab" => text.push('\t'),
                "w:br" | "w:cr" => text.push('\n'),
                "w:lastRenderedPageBreak" => {
                    // A paragraph that goes on is of the page where it began.
                    if cells == 0 && text.trim().is_empty() {
                        text.clear();
                    }
                    page += 1;
                }
                "w:p" if cells == 0 => heading = None,
                "w:pStyle" => {
                    let style = Piece::attribute(&attributes, "w:val").unwrap_or_default();
                    heading = levels.get(style).copied();
                }
                "w:tc" => {
                    if !text.trim().is_empty() {
                        text.push_str(" | ");
                    }
                    cells += 1;
                }
                _ => {}
            },
            Piece::Close(name) => match name.as_str() {
                "w:t" => in_text = false,
                "w:tc" => cells = cells.saturating_sub(1),
                "w:p" if cells > 0 => text.push(' '),
                "w:p" => flush(&mut text, heading.take(), page),
                "w:tr" if cells == 0 => flush(&mut text, None, page),
                _ => {}
            },
        }
    }
    flush(&mut text, None, page);
    if has_pages { page } else { 0 }
}

//! Word's documents (ECMA-376, part 1, 17): paragraphs with the levels of their styles, rows of tables, and the notes around them.

use super::{
    Facts, Refusal, Sink,
    office::{Styles, paragraphs},
    zip::Archive,
};
use crate::markup::xml::{Piece, Pieces, attribute};
use std::collections::HashMap;

/// What stands around a document's text, in the order in which it is read.
const AROUND: [&str; 7] = [
    "footnotes",
    "endnotes",
    "comments",
    "header",
    "footer",
    "chart",
    "diagramData",
];

pub(super) fn read(bytes: &[u8], sink: &mut Sink<'_>) -> Result<Facts, Refusal> {
    let package = Archive::open(bytes)?;
    let main = package.main().unwrap_or_default();
    let relations = package.relations(&main)?;
    let mut styles = Styles::default();
    for part in package.parts(&main, &relations, "styles") {
        styles.levels = heading_levels(&package.text(&part)?);
    }
    let document = package.text(&main)?;
    // Only where Word has written down where its pages break.
    styles.counts_pages = document.contains("lastRenderedPageBreak");
    let pages = paragraphs(&document, &styles, sink);
    styles.counts_pages = false;
    package.around(&main, &relations, &AROUND, &styles, sink);
    Ok(Facts {
        title: package.title(),
        pages: (pages > 1).then_some(pages),
        ..Facts::default()
    })
}

/// The levels of the styles that are headings. Their names are English whatever Word's language; their ids are not.
fn heading_levels(styles: &str) -> HashMap<String, u8> {
    let mut levels = HashMap::new();
    let mut style = String::new();
    for piece in Pieces::new(styles) {
        let Piece::Start(start) = piece else { continue };
        let value = |name| attribute(&start, name, false).unwrap_or_default();
        match start.local_name().as_ref() {
            "style" => style = value("styleId"),
            "name" => {
                let name = value("val").to_ascii_lowercase();
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

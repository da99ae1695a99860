//! PowerPoint's presentations (ECMA-376, part 1, 19): each slide's paragraphs under its title, with its notes, in the order of the
//! slides.

use super::{
    Facts, Refusal, Sink,
    office::{Styles, paragraphs, target},
    zip::Archive,
};
use crate::markup::xml::{Piece, Pieces, attribute};

/// What belongs to a slide, in the order in which it is read.
const AROUND: [&str; 4] = ["chart", "diagramData", "notesSlide", "comments"];

pub(super) fn read(bytes: &[u8], sink: &mut Sink<'_>) -> Result<Facts, Refusal> {
    let package = Archive::open(bytes)?;
    let main = package.main().unwrap_or_default();
    let relations = package.relations(&main)?;
    let mut slides = 0;
    for piece in Pieces::new(&package.text(&main)?) {
        let Piece::Start(start) = piece else { continue };
        if start.local_name().as_ref() != "sldId" {
            continue;
        }
        slides += 1;
        let id = attribute(&start, "id", true).unwrap_or_default();
        let Some(slide) = target(&relations, &id) else {
            continue;
        };
        let styles = Styles {
            slide: Some(slides),
            ..Styles::default()
        };
        paragraphs(&package.text(slide)?, &styles, sink);
        let relations = package.relations(slide)?;
        package.around(slide, &relations, &AROUND, &styles, sink);
    }
    Ok(Facts {
        title: package.title(),
        pages: Some(slides),
        ..Facts::default()
    })
}

//! PowerPoint's presentations (ECMA-376, part 1, 19): the paragraphs of each slide in its order, under the slide's title.

use super::{
    Block, Facts, Refusal, Sink,
    docx::element,
    markup::{Piece, Pieces},
    zip::Archive,
};
use std::collections::HashMap;

pub(super) fn read(bytes: &[u8], sink: &mut Sink<'_>) -> Result<Facts, Refusal> {
    let archive = Archive::open(bytes)?;
    let targets = targets(&archive.text("ppt/_rels/presentation.xml.rels")?);
    let mut slides = 0;
    for piece in Pieces::xml(&archive.text("ppt/presentation.xml")?) {
        let Piece::Open {
            name, attributes, ..
        } = piece
        else {
            continue;
        };
        if name != "p:sldId" {
            continue;
        }
        slides += 1;
        let id = Piece::attribute(&attributes, "r:id").unwrap_or_default();
        if let Some(target) = targets.get(id) {
            let name = match target.strip_prefix('/') {
                Some(whole) => whole.to_owned(),
                None => format!("ppt/{target}"),
            };
            slide(&archive.text(&name)?, slides, sink);
        }
    }
    Ok(Facts {
        title: element(&archive.text("docProps/core.xml")?, "dc:title"),
        pages: Some(slides),
        ..Facts::default()
    })
}

fn targets(relations: &str) -> HashMap<String, String> {
    let mut targets = HashMap::new();
    for piece in Pieces::xml(relations) {
        if let Piece::Open { attributes, .. } = piece
            && let Some(id) = Piece::attribute(&attributes, "Id")
            && let Some(target) = Piece::attribute(&attributes, "Target")
        {
            targets.insert(id.to_owned(), target.to_owned());
        }
    }
    targets
}

fn slide(xml: &str, number: u32, sink: &mut Sink<'_>) {
    let (mut text, mut in_text, mut is_title) = (String::new(), false, false);
    for piece in Pieces::xml(xml) {
        match piece {
            Piece::Text(words) if in_text => text.push_str(&words),
            Piece::Text(_) => {}
            Piece::Open {
                name,
                attributes,
                empty,
            } => match name.as_str() {
                "a:t" => in_text = !empty,
                "a:br" => text.push(' '),
                "p:sp" => is_title = false,
                "p:ph" => {
                    let kind = Piece::attribute(&attributes, "type").unwrap_or_default();
                    is_title = matches!(kind, "title" | "ctrTitle");
                }
                _ => {}
            },
            Piece::Close(name) => match name.as_str() {
                "a:t" => in_text = false,
                "a:p" => sink.push(Block {
                    heading: is_title.then_some(2),
                    page: Some(number),
                    ..Block::new(std::mem::take(&mut text).trim())
                }),
                _ => {}
            },
        }
    }
}

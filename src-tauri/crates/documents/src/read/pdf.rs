//! The text of PDFs (ISO 32000-2), page by page. Only text is computed; pictures, colors and paths are passed over.
//!
//! Objects are found by reading the file from its start rather than by its table of positions, so that a damaged table costs nothing.

mod content;
mod encodings;
mod filters;
mod fonts;
mod layout;
mod lexer;
mod objects;

use super::{Block, Facts, Refusal, Sink};
use crate::pictured::unread;
use content::Reader;
use layout::Sizes;
use objects::{Dictionary, File, Object};
use std::{collections::HashSet, rc::Rc};

/// Levels of the tree of pages.
const DEEPEST: usize = 40;
const MOST_PAGES: u32 = 50_000;
/// From this share of letters without a meaning on, a PDF's text cannot be read.
const UNREADABLE: f64 = 0.3;

pub(super) fn read(bytes: &[u8], sink: &mut Sink<'_>) -> Result<Facts, Refusal> {
    let file = File::open(bytes);
    if file.is_encrypted() {
        return Err(Refusal::new(
            "This PDF is encrypted. Save a copy without a password to have it searched.",
        ));
    }
    let root = file.root();
    let Some(root) = root else {
        return Err(Refusal::new(
            "This PDF is damaged: it has no list of pages.",
        ));
    };
    let title = file
        .information()
        .and_then(|information| file.get(&information, "Title"))
        .and_then(|title| title.text());
    let mut reading = Reading {
        reader: Reader::new(&file),
        file: &file,
        sizes: Sizes::default(),
        seen: HashSet::new(),
        page: 0,
        pictured: Vec::new(),
        sink: &mut *sink,
        too_much: false,
    };
    if let Some(pages) = file.get(&root, "Pages") {
        let inherited = Inherited::default();
        reading.pages(&pages, &inherited, 0, root.id_of("Pages"));
    }
    let pictured = std::mem::take(&mut reading.pictured);
    let (pages, letters, unknown, pictures, too_much) = (
        reading.page,
        reading.reader.letters,
        reading.reader.unknown,
        reading.reader.pictures,
        reading.too_much || file.has_exploded(),
    );
    if pages == 0 {
        return Err(Refusal::new("This PDF is damaged: it has no pages."));
    }
    if too_much && letters == 0 && sink.pictures == 0 {
        return Err(Refusal::new(
            "This PDF unpacks to more than a document can hold, and is not read.",
        ));
    }
    let taken = sink.pictures > 0;
    if letters == 0 && pictures > 0 && !taken {
        return Err(Refusal::new(
            "This PDF holds pictures of pages, no text. Have its text recognized, and save it again.",
        ));
    }
    if letters == 0 && !taken {
        return Err(Refusal::new("This PDF holds no text."));
    }
    #[expect(clippy::cast_precision_loss, reason = "a share")]
    if unknown as f64 > UNREADABLE * letters as f64 {
        return Err(Refusal::new(
            "This PDF does not say which letters its text is made of. Have its text recognized, and save it again.",
        ));
    }
    let large = "Parts of this PDF are too large and are not searched.";
    let notices: Vec<_> = too_much
        .then(|| large.to_owned())
        .into_iter()
        .chain(unread(&pictured, pages).filter(|_| !sink.wants_pictures))
        .collect();
    Ok(Facts {
        title,
        pages: Some(pages),
        notice: (!notices.is_empty()).then(|| notices.join(" ")),
        pictured: if sink.wants_pictures {
            pictured
        } else {
            Vec::new()
        },
        ..Facts::default()
    })
}

/// What pages take over from the nodes above them.
#[derive(Debug, Clone, Default)]
struct Inherited {
    resources: Option<Object>,
    rotation: Option<f64>,
}

struct Reading<'a, 'b, 'c> {
    file: &'a File<'a>,
    reader: Reader<'a>,
    sizes: Sizes,
    /// Nodes of the tree, which is no circle.
    seen: HashSet<u32>,
    page: u32,
    /// Pages with a picture and no letter.
    pictured: Vec<u32>,
    sink: &'b mut Sink<'c>,
    too_much: bool,
}

impl Reading<'_, '_, '_> {
    fn pages(&mut self, node: &Object, above: &Inherited, depth: usize, id: Option<u32>) {
        let Some(node) = node.dictionary() else {
            return;
        };
        if depth > DEEPEST || id.is_some_and(|id| !self.seen.insert(id)) || self.page >= MOST_PAGES
        {
            return;
        }
        let inherited = Inherited {
            resources: self
                .file
                .get(&node, "Resources")
                .or_else(|| above.resources.clone()),
            rotation: self
                .file
                .get(&node, "Rotate")
                .and_then(|turn| turn.number())
                .or(above.rotation),
        };
        if let Some(Object::Array(kids)) = self.file.get(&node, "Kids") {
            for kid in kids.iter() {
                let id = kid.reference();
                self.pages(&self.file.resolve(kid), &inherited, depth + 1, id);
            }
            return;
        }
        self.page += 1;
        self.one_page(&node, &inherited);
    }

    fn one_page(&mut self, page: &Rc<Dictionary>, inherited: &Inherited) {
        let contents = self.contents(page);
        let resources = inherited.resources.as_ref().and_then(Object::dictionary);
        let (letters, pictures) = (self.reader.letters, self.reader.pictures);
        self.reader.picture = None;
        let spans = self.reader.page(
            &contents,
            resources.unwrap_or_default(),
            inherited.rotation.unwrap_or(0.0),
        );
        if self.reader.letters == letters && self.reader.pictures > pictures {
            self.pictured.push(self.page);
            // Of several, none is the page.
            let only = self.reader.picture.take();
            let only = only.filter(|_| self.reader.pictures == pictures + 1);
            if let Some(jpeg) = only.and_then(|picture| self.file.jpeg(&picture)) {
                self.sink.picture(self.page, jpeg);
            }
        }
        self.too_much |= spans.too_many;
        for line in layout::paragraphs(&spans.spans, &mut self.sizes) {
            self.sink.push(Block {
                heading: line.heading,
                page: Some(self.page),
                ..Block::new(line.text)
            });
        }
    }

    /// The streams of a page, as one.
    fn contents(&self, page: &Rc<Dictionary>) -> Vec<u8> {
        let mut whole = Vec::new();
        let streams = match self.file.get(page, "Contents") {
            Some(Object::Array(streams)) => {
                streams.iter().map(|one| self.file.resolve(one)).collect()
            }
            Some(stream) => vec![stream],
            None => Vec::new(),
        };
        for stream in streams {
            if let Object::Stream(stream) = stream {
                whole.extend(self.file.decode(&stream));
                whole.push(b'\n');
            }
        }
        whole
    }
}

//! What Word's and PowerPoint's files have in common (ECMA-376, parts 1 and 2): parts that name each other by relationships, and
//! paragraphs with runs of text, breaks, tables and equations.

use super::{Block, Refusal, Sink, zip::Archive};
use crate::markup::xml::{Piece, Pieces, attribute};
use quick_xml::events::BytesStart;
use std::collections::HashMap;
use tierbar_core::documents::DocumentKind;

/// Where the main part usually is, if no relationship names it.
const USUAL: [&str; 2] = ["word/document.xml", "ppt/presentation.xml"];
/// Elements whose text is shown elsewhere, or is not there any more.
const SKIPPED: [&str; 7] = [
    "Fallback",
    "del",
    "moveFrom",
    "pPrChange",
    "rPrChange",
    "tabLst",
    "tabs",
];
/// Elements of a chart whose values name its series and categories.
const NAMES: [&str; 3] = ["cat", "strCache", "tx"];

const DAMAGED: &str = "Part of this file is damaged and is not read.";

/// What one part says of another.
pub(super) struct Relation {
    id: String,
    /// The last word of its type, such as `footnotes`.
    kind: String,
    /// The part's name in the archive.
    pub(super) target: String,
}

impl Archive<'_> {
    /// Returns what the package is, by its main part.
    pub(crate) fn kind(&self) -> Option<DocumentKind> {
        let main = self.main()?;
        let root = Pieces::new(&self.head(&main)).find_map(|piece| match piece {
            Piece::Start(start) => Some(start.local_name().as_ref().to_owned()),
            _ => None,
        });
        if main.starts_with("word/") || root.as_deref() == Some("document") {
            Some(DocumentKind::Docx)
        } else if main.starts_with("ppt/") || root.as_deref() == Some("presentation") {
            Some(DocumentKind::Pptx)
        } else {
            None
        }
    }

    /// Returns the name of the part that is the document.
    pub(super) fn main(&self) -> Option<String> {
        let relations = self.relations("").unwrap_or_default();
        let named = (relations.into_iter()).find(|one| one.kind == "officeDocument");
        (named.map(|one| one.target).into_iter())
            .chain(USUAL.map(str::to_owned))
            .find(|name| self.has(name))
    }

    pub(super) fn title(&self) -> Option<String> {
        let relations = self.relations("").ok()?;
        let named = relations.iter().find(|one| one.kind == "core-properties");
        let name = named.map_or("docProps/core.xml", |one| one.target.as_str());
        let (xml, mut title) = (self.text(name).ok()?, None);
        for piece in Pieces::new(&xml) {
            match piece {
                Piece::Start(start) if start.local_name().as_ref() == "title" => {
                    title = Some(String::new());
                }
                Piece::Text(words) => {
                    if let Some(title) = &mut title {
                        title.push_str(&words);
                    }
                }
                Piece::End(end) if end.local_name().as_ref() == "title" => break,
                _ => {}
            }
        }
        title
    }

    /// Returns a part's relationships to other parts of the package.
    pub(super) fn relations(&self, part: &str) -> Result<Vec<Relation>, Refusal> {
        let (folder, name) = part.rsplit_once('/').unwrap_or(("", part));
        let xml = self.text(&resolve(folder, &format!("_rels/{name}.rels")))?;
        let mut relations = Vec::new();
        for piece in Pieces::new(&xml) {
            let Piece::Start(start) = piece else { continue };
            let value = |name| attribute(&start, name, false).unwrap_or_default();
            if value("TargetMode") != "External" && !value("Target").is_empty() {
                let kind = value("Type");
                relations.push(Relation {
                    id: value("Id"),
                    kind: kind.rsplit('/').next().unwrap_or_default().to_owned(),
                    target: resolve(folder, &value("Target")),
                });
            }
        }
        Ok(relations)
    }

    /// Returns the names of a part's own parts of this kind, each once; the usual name if the part has no relationships.
    pub(super) fn parts(&self, part: &str, relations: &[Relation], kind: &str) -> Vec<String> {
        let named = relations.iter().filter(|one| one.kind == kind);
        let mut parts: Vec<String> = named.map(|one| one.target.clone()).collect();
        parts.sort();
        parts.dedup();
        if relations.is_empty() {
            let folder = part.rsplit_once('/').map_or("", |(folder, _)| folder);
            parts.push(resolve(folder, &format!("{kind}.xml")));
        }
        parts
    }

    /// Reads the paragraphs of a part's own parts of these kinds. One that is damaged does not cost the document.
    pub(super) fn around(
        &self,
        part: &str,
        relations: &[Relation],
        kinds: &[&str],
        styles: &Styles,
        sink: &mut Sink<'_>,
    ) {
        for kind in kinds {
            for part in self.parts(part, relations, kind) {
                match self.text(&part) {
                    Ok(xml) => {
                        paragraphs(&xml, styles, sink);
                    }
                    Err(_) => sink.warn(DAMAGED),
                }
            }
        }
    }
}

/// Returns the part that a relationship's identifier stands for.
pub(super) fn target<'r>(relations: &'r [Relation], id: &str) -> Option<&'r str> {
    let found = relations.iter().find(|one| one.id == id);
    found.map(|one| one.target.as_str())
}

/// Returns a target as a name in the archive.
fn resolve(folder: &str, target: &str) -> String {
    let from = if target.starts_with('/') { "" } else { folder };
    let mut names: Vec<&str> = Vec::new();
    for name in from.split('/').chain(target.split('/')) {
        match name {
            "" | "." => {}
            ".." => {
                names.pop();
            }
            name => names.push(name),
        }
    }
    names.join("/")
}

/// What a paragraph is, beside its text.
#[derive(Default)]
pub(super) struct Styles {
    /// The levels of the styles that are headings, by their ids.
    pub(super) levels: HashMap<String, u8>,
    pub(super) slide: Option<u32>,
    /// Page breaks are counted.
    pub(super) counts_pages: bool,
}

/// Reads the paragraphs of a part, and returns the page where it ends. Tables become a block a row.
pub(super) fn paragraphs(xml: &str, styles: &Styles, sink: &mut Sink<'_>) -> u32 {
    let mut pieces = Pieces::new(xml);
    let mut open = OpenParagraph {
        page: 1,
        ..OpenParagraph::default()
    };
    while let Some(piece) = pieces.next() {
        match piece {
            Piece::Text(words) if open.in_text && !open.is_muted => open.text.push_str(&words),
            Piece::Text(_) => {}
            Piece::Start(start) if SKIPPED.contains(&start.local_name().as_ref()) => {
                pieces.skip_element(&start);
            }
            Piece::Start(start) if start.local_name().as_ref() == "formatCode" => {
                let texts = pieces.by_ref().map_while(|piece| match piece {
                    Piece::Text(text) => Some(text),
                    _ => None,
                });
                open.is_of_dates = is_of_dates(&texts.collect::<String>());
            }
            Piece::Start(start) => open.start(&start, styles),
            Piece::End(end) => match end.local_name().as_ref() {
                "t" => open.in_text = false,
                "v" if open.names > 0 => {
                    open.in_text = false;
                    open.text.push('\n');
                }
                name if NAMES.contains(&name) => {
                    open.names = open.names.saturating_sub(1);
                    if open.names == 0 {
                        open.flush(None, styles, sink);
                    }
                }
                "tc" => open.cells = open.cells.saturating_sub(1),
                "sp" => (open.is_title, open.is_muted) = (false, false),
                "p" if open.cells > 0 => open.text.push(' '),
                "p" => {
                    let heading = open.heading.take();
                    open.flush(heading, styles, sink);
                }
                "tr" if open.cells == 0 => open.flush(None, styles, sink),
                _ => {}
            },
        }
    }
    open.flush(None, styles, sink);
    if pieces.is_damaged {
        sink.warn(DAMAGED);
    }
    open.page
}

/// Whether a number's format shows dates or times (ECMA-376, part 1, 18.8.31). In quotation marks and behind a backslash is text; in
/// brackets is a color, a condition, a locale, or a time that has passed, such as `[h]`.
fn is_of_dates(format: &str) -> bool {
    let is_part = |letter: char| matches!(letter, 'd' | 'h' | 'm' | 's' | 'y');
    let mut rest = format.chars().flat_map(char::to_lowercase);
    while let Some(letter) = rest.next() {
        let is_found = match letter {
            '"' => {
                rest.find(|end| *end == '"');
                false
            }
            // A fill and the width of a space are letters too.
            '\\' | '*' | '_' => {
                rest.next();
                false
            }
            '[' => {
                let inside: String = rest.by_ref().take_while(|end| *end != ']').collect();
                !inside.is_empty() && inside.chars().all(is_part)
            }
            letter => is_part(letter),
        };
        if is_found {
            return true;
        }
    }
    false
}

#[derive(Default)]
struct OpenParagraph {
    text: String,
    heading: Option<u8>,
    page: u32,
    in_text: bool,
    /// How many of [`NAMES`] are open.
    names: u32,
    /// The chart's numbers count days, which name nothing.
    is_of_dates: bool,
    cells: u32,
    is_title: bool,
    /// The shape has nothing to be read, such as the slide's number.
    is_muted: bool,
}

impl OpenParagraph {
    fn start(&mut self, start: &BytesStart<'_>, styles: &Styles) {
        match start.local_name().as_ref() {
            "t" => self.in_text = true,
            name if NAMES.contains(&name) => {
                self.names += 1;
                self.is_of_dates = false;
            }
            "v" => self.in_text = self.names > 0 && !self.is_of_dates,
            "tab" | "ptab" => self.text.push('\t'),
            "br" | "cr" => self.text.push('\n'),
            "noBreakHyphen" => self.text.push('-'),
            "den" => self.text.push('/'),
            "sup" => self.text.push('^'),
            "sub" => self.text.push('_'),
            "lastRenderedPageBreak" if styles.counts_pages => {
                // A paragraph that goes on is of the page where it began.
                if self.cells == 0 && self.text.trim().is_empty() {
                    self.text.clear();
                }
                self.page += 1;
            }
            "p" if self.cells == 0 => self.heading = self.is_title.then_some(2),
            "pStyle" => {
                let style = attribute(start, "val", false).unwrap_or_default();
                self.heading = styles.levels.get(&style).copied();
            }
            "ph" => {
                let kind = attribute(start, "type", false).unwrap_or_default();
                self.is_title = matches!(kind.as_str(), "title" | "ctrTitle");
                self.is_muted = kind == "sldNum";
            }
            "tc" => {
                if !self.text.trim().is_empty() {
                    self.text.push_str(" | ");
                }
                self.cells += 1;
            }
            _ => {}
        }
    }

    fn flush(&mut self, heading: Option<u8>, styles: &Styles, sink: &mut Sink<'_>) {
        let text = std::mem::take(&mut self.text);
        sink.push(Block {
            heading,
            page: styles.slide.or(styles.counts_pages.then_some(self.page)),
            ..Block::new(text.trim())
        });
    }
}

#[cfg(test)]
mod tests;

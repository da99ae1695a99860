//! HTML: what is shown of a page, by its headings and paragraphs.

use super::{Block, Facts, Sink};
use crate::{
    markup::html::{BLOCKS, Piece, Pieces},
    text::squeeze,
};

/// Elements that are not the page's text.
const LEFT_OUT: [&str; 9] = [
    "button", "iframe", "nav", "noscript", "script", "select", "style", "svg", "template",
];

pub(super) fn read(text: &str, sink: &mut Sink<'_>) -> Facts {
    let mut title = None;
    for_each_block(text, &mut |block| sink.push(block), &mut title);
    Facts {
        title,
        ..Facts::default()
    }
}

pub(super) fn for_each_block(text: &str, take: &mut dyn FnMut(Block), title: &mut Option<String>) {
    let mut pieces = Pieces::new(text);
    let mut state = State {
        take,
        words: String::new(),
        heading: None,
        preformatted: 0,
    };
    while let Some(piece) = pieces.next() {
        match piece {
            Piece::Text(text) => state.words.push_str(&text),
            Piece::Start(tag) => match tag.name.as_str() {
                "title" => {
                    // It has no markup inside. The one in an SVG is skipped with it.
                    if let Some(Piece::Text(words)) = pieces.next() {
                        title.get_or_insert(squeeze(&words));
                    }
                }
                "td" | "th" if !state.words.trim().is_empty() => state.words.push_str(" | "),
                "pre" => {
                    state.end();
                    state.preformatted += 1;
                }
                "svg" if tag.is_closed => {}
                left_out if LEFT_OUT.contains(&left_out) => pieces.skip_element(&tag),
                heading if heading_level(heading).is_some() => {
                    state.end();
                    state.heading = heading_level(heading);
                }
                block if BLOCKS.contains(&block) => state.end_line(block == "br"),
                _ => {}
            },
            Piece::End(name) => {
                if name == "pre" {
                    state.end();
                    state.preformatted = state.preformatted.saturating_sub(1);
                } else if heading_level(&name).is_some() {
                    state.end();
                    state.heading = None;
                } else if BLOCKS.contains(&name.as_str()) {
                    state.end_line(false);
                }
            }
        }
    }
    state.end();
}

fn heading_level(name: &str) -> Option<u8> {
    match name.as_bytes() {
        [b'h', level @ b'1'..=b'6'] => Some(level - b'0'),
        _ => None,
    }
}

struct State<'a> {
    take: &'a mut dyn FnMut(Block),
    words: String,
    heading: Option<u8>,
    preformatted: usize,
}

impl State<'_> {
    fn end_line(&mut self, is_break: bool) {
        if is_break && self.preformatted > 0 {
            self.words.push('\n');
        } else {
            self.end();
        }
    }

    fn end(&mut self) {
        let text = match self.preformatted {
            0 => squeeze(&self.words),
            _ => self.words.trim_matches('\n').to_owned(),
        };
        self.words.clear();
        if !text.trim().is_empty() {
            (self.take)(Block {
                heading: self.heading,
                ..Block::new(text)
            });
        }
    }
}

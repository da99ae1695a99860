//! Plain text: paragraphs between empty lines. A form feed begins a page.

use super::{Block, Facts, OpenBlock, Sink};

pub(super) fn read(text: &str, sink: &mut Sink<'_>) -> Facts {
    for_each_block(text, &mut |block| sink.push(block))
}

pub(super) fn for_each_block(text: &str, take: &mut dyn FnMut(Block)) -> Facts {
    let has_pages = text.contains('\u{c}');
    let (mut page, mut paragraph) = (1_u32, OpenBlock::default());
    let mut end = |paragraph: &mut OpenBlock, page: u32| {
        take(Block {
            page: has_pages.then_some(page),
            ..paragraph.take()
        });
    };
    for (line, number) in text.lines().zip(1_u32..) {
        let new_page = line.starts_with('\u{c}');
        if new_page || line.trim().is_empty() {
            end(&mut paragraph, page);
        }
        page += u32::from(new_page);
        let line = line.trim_start_matches('\u{c}');
        if !line.trim().is_empty() {
            paragraph.add("\n", line, number);
        }
    }
    end(&mut paragraph, page);
    Facts {
        pages: has_pages.then_some(page),
        ..Facts::default()
    }
}

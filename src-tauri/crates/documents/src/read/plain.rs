//! Plain text: paragraphs between empty lines. A form feed begins a page.

use super::{Block, Facts, Sink};

pub(super) fn read(text: &str, sink: &mut Sink<'_>) -> Facts {
    for_each_block(text, &mut |block| sink.push(block))
}

pub(super) fn for_each_block(text: &str, take: &mut dyn FnMut(Block)) -> Facts {
    let has_pages = text.contains('\u{c}');
    let (mut page, mut paragraph, mut begun) = (1_u32, String::new(), 1_u32);
    let mut end = |paragraph: &mut String, line: u32, page: u32| {
        take(Block {
            page: has_pages.then_some(page),
            line: Some(line),
            ..Block::new(std::mem::take(paragraph))
        });
    };
    for (line, number) in text.lines().zip(1_u32..) {
        let new_page = line.starts_with('\u{c}');
        if new_page || line.trim().is_empty() {
            end(&mut paragraph, begun, page);
        }
        page += u32::from(new_page);
        let line = line.trim_start_matches('\u{c}').trim_end();
        if line.trim().is_empty() {
            continue;
        }
        if paragraph.is_empty() {
            begun = number;
        } else {
            paragraph.push('\n');
        }
        paragraph.push_str(line);
    }
    end(&mut paragraph, begun, page);
    Facts {
        pages: has_pages.then_some(page),
        ..Facts::default()
    }
}

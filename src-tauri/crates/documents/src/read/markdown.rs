//! Markdown: headings, paragraphs, and code in one piece.

use super::{Block, Facts, OpenBlock, Sink};

pub(super) fn read(text: &str, sink: &mut Sink<'_>) -> Facts {
    let mut facts = Facts::default();
    let mut open = OpenBlock::default();
    let mut lines = text.lines().zip(1_u32..).peekable();
    if lines
        .peek()
        .is_some_and(|(line, _)| line.trim_end() == "---")
        && front_matter(text)
    {
        lines.next();
        for (line, _) in lines.by_ref() {
            if line.trim_end() == "---" {
                break;
            }
            if let Some(title) = line.strip_prefix("title:") {
                facts.title = Some(title.trim().trim_matches(['"', '\'']).to_owned());
            }
        }
    }
    let mut fence: Option<&str> = None;
    while let Some((line, number)) = lines.next() {
        let trimmed = line.trim();
        if let Some(mark) = fence {
            open.add("\n", line, number);
            if trimmed.starts_with(mark) {
                fence = None;
                sink.push(open.take());
            }
            continue;
        }
        if let Some(mark) = ["```", "~~~"]
            .into_iter()
            .find(|mark| trimmed.starts_with(mark))
        {
            sink.push(open.take());
            open.add("\n", line, number);
            fence = Some(mark);
            continue;
        }
        if trimmed.is_empty() {
            sink.push(open.take());
            continue;
        }
        let hashes = line.bytes().take_while(|&byte| byte == b'#').count();
        if (1..=6).contains(&hashes) && line[hashes..].starts_with([' ', '\t']) {
            sink.push(open.take());
            let title = line[hashes..].trim().trim_end_matches('#').trim_end();
            open.add("\n", title, number);
            if hashes == 1 {
                facts.title.get_or_insert_with(|| title.to_owned());
            }
            sink.push(Block {
                heading: u8::try_from(hashes).ok(),
                ..open.take()
            });
            continue;
        }
        open.add("\n", line, number);
        // A line of `=` or `-` makes a heading of the one line above it.
        if let Some((below, _)) = lines.peek() {
            let mark = below.trim();
            let is_line =
                |mark_of: char| mark.len() >= 2 && mark.chars().all(|letter| letter == mark_of);
            let level = [('=', 1), ('-', 2)]
                .into_iter()
                .find(|(mark_of, _)| is_line(*mark_of))
                .map(|(_, level)| level);
            if level.is_some() && !open.text.contains('\n') {
                lines.next();
                if level == Some(1) {
                    facts.title.get_or_insert_with(|| trimmed.to_owned());
                }
                sink.push(Block {
                    heading: level,
                    ..open.take()
                });
            }
        }
    }
    sink.push(open.take());
    facts
}

fn front_matter(text: &str) -> bool {
    text.lines()
        .skip(1)
        .take(200)
        .any(|line| line.trim_end() == "---")
}

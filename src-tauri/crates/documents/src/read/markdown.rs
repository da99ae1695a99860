//! Markdown: headings, paragraphs, and code in one piece.

use super::{Block, Facts, Sink};

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
            open.add(line, number);
            if trimmed.starts_with(mark) {
                fence = None;
                open.end(None, sink);
            }
            continue;
        }
        if let Some(mark) = ["```", "~~~"]
            .into_iter()
            .find(|mark| trimmed.starts_with(mark))
        {
            open.end(None, sink);
            open.add(line, number);
            fence = Some(mark);
            continue;
        }
        if trimmed.is_empty() {
            open.end(None, sink);
            continue;
        }
        let hashes = line.bytes().take_while(|&byte| byte == b'#').count();
        if (1..=6).contains(&hashes) && line[hashes..].starts_with([' ', '\t']) {
            open.end(None, sink);
            let title = line[hashes..].trim().trim_end_matches('#').trim_end();
            open.add(title, number);
            if hashes == 1 {
                facts.title.get_or_insert_with(|| title.to_owned());
            }
            open.end(u8::try_from(hashes).ok(), sink);
            continue;
        }
        open.add(line, number);
        // A line of `=` or `-` makes a heading of the one line above it.
        if let Some((below, _)) = lines.peek() {
            let mark = below.trim();
            let is_line =
                |mark_of: char| mark.len() >= 2 && mark.chars().all(|letter| letter == mark_of);
            let level = [('=', 1), ('-', 2)]
                .into_iter()
                .find(|(mark_of, _)| is_line(*mark_of))
                .map(|(_, level)| level);
            if level.is_some() && open.lines == 1 {
                lines.next();
                if level == Some(1) {
                    facts.title.get_or_insert_with(|| trimmed.to_owned());
                }
                open.end(level, sink);
            }
        }
    }
    open.end(None, sink);
    facts
}

fn front_matter(text: &str) -> bool {
    text.lines()
        .skip(1)
        .take(200)
        .any(|line| line.trim_end() == "---")
}

#[derive(Default)]
struct OpenBlock {
    text: String,
    line: u32,
    lines: usize,
}

impl OpenBlock {
    fn add(&mut self, line: &str, number: u32) {
        if self.lines == 0 {
            self.line = number;
        } else {
            self.text.push('\n');
        }
        self.text.push_str(line.trim_end());
        self.lines += 1;
    }

    fn end(&mut self, heading: Option<u8>, sink: &mut Sink<'_>) {
        if self.lines > 0 {
            sink.push(Block {
                heading,
                line: Some(self.line),
                ..Block::new(std::mem::take(&mut self.text))
            });
        }
        self.lines = 0;
    }
}

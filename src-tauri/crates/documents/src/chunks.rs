//! Where a document is cut into passages: at headings and pages if it can be, between sentences if it must be.

use crate::{Block, text::one_line};

/// The memory of a document's passages: the most text that is read of it, with what passages repeat and are placed by.
const MOST_MEMORY: usize = crate::LONGEST_TEXT + crate::LONGEST_TEXT / 2;
/// What a passage takes besides its texts, and each of these.
const AROUND_PASSAGE: usize = 192;
const AROUND: usize = 40;

/// How large passages are, in tokens as [`tokens`] guesses them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    pub most: usize,
    /// What a passage repeats of the one before it, unless a heading is between them.
    pub overlap: usize,
}

impl Default for Size {
    /// Small models of sentences were trained with 256 tokens, and a reader finds a citation in a paragraph at once.
    fn default() -> Self {
        Self {
            most: 220,
            overlap: 36,
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Chunk {
    pub text: String,
    /// The headings that it begins under or with, the highest first.
    pub trail: Vec<String>,
    pub page: Option<u32>,
    pub line: Option<u32>,
    /// Where what the passage before it does not have begins, in bytes.
    pub fresh: usize,
}

/// Guesses a text's tokens without a tokenizer, rather too many than too few.
pub fn tokens(text: &str) -> usize {
    cost(text).div_ceil(100)
}

/// In hundredths of a token.
fn cost(text: &str) -> usize {
    text.chars().map(token_cost).sum()
}

fn token_cost(letter: char) -> usize {
    match letter {
        'a'..='z' => 23,
        'A'..='Z' => 34,
        '0'..='9' => 55,
        ' ' | '\n' | '\t' => 5,
        '!'..='~' => 80,
        '\u{80}'..='\u{52f}' => 50,
        _ => 110,
    }
}

/// Cuts a document into passages.
pub fn chunks(blocks: &[Block], size: Size) -> Vec<Chunk> {
    let mut cutting = Chunker {
        size,
        ..Chunker::default()
    };
    blocks.iter().for_each(|block| cutting.add(block));
    cutting.finish()
}

/// Cuts a document into passages while it is read, up to [`MOST_MEMORY`]. A document may be all headings or pages of one letter, whose
/// passages take many times the memory of their text.
#[derive(Debug, Default)]
pub(crate) struct Chunker {
    size: Size,
    chunks: Vec<Chunk>,
    /// What the passages take.
    memory: usize,
    open: Chunk,
    /// The cost of the open passage's text.
    cost: usize,
    trail: Vec<(u8, String)>,
}

impl Chunker {
    /// Adds a block, unless the passages before it have taken all the memory. Returns whether it was added.
    pub(crate) fn take(&mut self, block: &Block) -> bool {
        let has_room = self.memory <= MOST_MEMORY;
        if has_room {
            self.add(block);
        }
        has_room
    }

    pub(crate) fn finish(mut self) -> Vec<Chunk> {
        self.end();
        self.chunks
    }

    fn tokens(&self) -> usize {
        self.cost.div_ceil(100)
    }

    fn add(&mut self, block: &Block) {
        let is_new_page = self.open.page.is_some() && block.page != self.open.page;
        if block.heading.is_some() && self.tokens() > self.size.most / 4
            || is_new_page && !self.is_title()
        {
            self.end();
        } else if is_new_page {
            // A title alone is found with what follows it, on the page of that.
            self.open.page = block.page;
        }
        if let Some(level) = block.heading {
            self.trail.retain(|(above, _)| *above < level);
            self.trail.push((level, one_line(&block.text, 160)));
            self.append(&block.text, block.page, block.line);
            return;
        }
        let needs = tokens(&block.text);
        if self.tokens() + needs <= self.size.most {
            return self.append(&block.text, block.page, block.line);
        }
        if needs <= self.size.most {
            self.end_with_overlap();
            return self.append(&block.text, block.page, block.line);
        }
        let (mut rest, mut line) = (block.text.as_str(), block.line);
        while !rest.is_empty() {
            // A title stays with what follows it.
            if self.tokens() > self.size.most / 2 {
                self.end_with_overlap();
            }
            let (part, next) = rest.split_at(first_part(rest, self.size.most - self.tokens()));
            self.append(part, block.page, line);
            let lines = part.bytes().filter(|byte| *byte == b'\n').count();
            line = line.map(|line| line.saturating_add(u32::try_from(lines).unwrap_or(u32::MAX)));
            rest = next;
        }
    }

    /// Whether a page has no more than a title so far: a few words in a line, without the end of a sentence.
    fn is_title(&self) -> bool {
        let text = self.open.text.trim_end();
        let is_sentence = text.ends_with(['.', '!', '?', '。', '！', '？']);
        self.tokens() <= self.size.most / 8 && !text.contains('\n') && !is_sentence
    }

    fn append(&mut self, text: &str, page: Option<u32>, line: Option<u32>) {
        if self.open.text.len() == self.open.fresh {
            // It begins here: it has no text of its own yet.
            let trail = self.trail.iter().map(|(_, heading)| heading.clone());
            self.open.trail = trail.collect();
            (self.open.page, self.open.line) = (page, line);
        } else {
            self.push_str("\n");
        }
        self.push_str(text.trim_end());
    }

    fn push_str(&mut self, text: &str) {
        self.open.text.push_str(text);
        // Of the new text alone: a passage may be made of hundreds of blocks.
        self.cost += cost(text);
    }

    fn end(&mut self) {
        let mut ended = std::mem::take(&mut self.open);
        self.cost = 0;
        if ended.text.len() > ended.fresh {
            ended.text.shrink_to_fit();
            let trail = ended.trail.iter().map(|heading| AROUND + heading.len());
            self.memory += AROUND_PASSAGE + ended.text.len() + trail.sum::<usize>();
            self.chunks.push(ended);
        }
    }

    fn end_with_overlap(&mut self) {
        let has_own = self.open.text.len() > self.open.fresh;
        let tail = last_sentences(&self.open.text, self.size.overlap).to_owned();
        self.end();
        if has_own && !tail.is_empty() && tail.len() < 2000 {
            // It is placed by what follows: what is said over a page's end is found on the page where it goes on.
            self.push_str(&tail);
            self.push_str("\n");
            self.open.fresh = self.open.text.len();
        }
    }
}

/// The last whole sentences of a text, as many as so many tokens hold.
fn last_sentences(text: &str, most: usize) -> &str {
    let ends: Vec<usize> = sentence_ends(text).collect();
    let mut begun = text.len();
    for end in ends.into_iter().rev() {
        if tokens(&text[end..]) > most {
            break;
        }
        begun = end;
    }
    text[begun..].trim()
}

/// Where sentences end: behind the space or the line break that follows.
fn sentence_ends(text: &str) -> impl Iterator<Item = usize> + '_ {
    let mut last = ' ';
    text.char_indices().filter_map(move |(at, letter)| {
        let before = std::mem::replace(&mut last, letter);
        let is_end = match letter {
            ' ' | '\n' => matches!(before, '.' | '!' | '?' | ';' | ':'),
            '。' | '！' | '？' => true,
            _ => false,
        };
        is_end.then_some(at + letter.len_utf8())
    })
}

/// How many bytes of a long text to cut off, with so many tokens at most: between sentences, else between lines, such as those of code,
/// else between words, else anywhere.
fn first_part(text: &str, most: usize) -> usize {
    let fits = fitting_length(text, most);
    if fits == text.len() {
        return fits;
    }
    let room = &text[..fits];
    let line = || room.rfind('\n').map(|at| at + 1);
    let word = || {
        let (at, space) = room
            .char_indices()
            .rfind(|(_, letter)| letter.is_whitespace())?;
        Some(at + space.len_utf8())
    };
    let enough = |at: &usize| *at > fits / 3;
    let cut = sentence_ends(room).last().filter(enough);
    cut.or_else(|| line().filter(enough))
        .or_else(word)
        .unwrap_or(fits)
}

/// How many bytes of a text so many tokens hold; at least one letter.
fn fitting_length(text: &str, most: usize) -> usize {
    let mut hundredths = 0;
    for (at, letter) in text.char_indices() {
        hundredths += token_cost(letter);
        if hundredths > most * 100 && at > 0 {
            return at;
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SMALL: Size = Size {
        most: 30,
        overlap: 8,
    };

    /// The text of a document, or of a part of it, from its passages in order.
    fn join_passages<'a>(passages: impl IntoIterator<Item = (&'a str, usize)>) -> String {
        let mut whole = String::new();
        for (text, fresh) in passages {
            if !whole.is_empty() {
                whole.push('\n');
            }
            whole.push_str(text.get(fresh..).unwrap_or(text));
        }
        whole
    }

    fn block(text: &str, heading: Option<u8>, page: Option<u32>) -> Block {
        Block {
            text: text.to_owned(),
            heading,
            page,
            line: None,
        }
    }

    #[test]
    fn headings_begin_passages_and_stand_above_them() {
        let long = "These are some words of a paragraph that has about fifteen tokens in it.";
        let blocks = [
            block("Methods", Some(1), Some(1)),
            block(long, None, Some(1)),
            block("Data", Some(2), Some(2)),
            block(long, None, Some(2)),
            block("Results", Some(1), Some(3)),
            block(long, None, Some(3)),
        ];
        let chunks = chunks(&blocks, SMALL);
        let found: Vec<_> = chunks
            .iter()
            .map(|chunk| {
                (
                    chunk.trail.join(" › "),
                    chunk.page,
                    chunk.text.lines().next().unwrap(),
                )
            })
            .collect();
        assert_eq!(
            found,
            [
                ("Methods".to_owned(), Some(1), "Methods"),
                ("Methods › Data".to_owned(), Some(2), "Data"),
                ("Results".to_owned(), Some(3), "Results"),
            ]
        );
    }

    #[test]
    fn a_passage_is_on_the_page_that_it_names() {
        let owls = "The barn owl was counted in eleven barns. It hunts voles at dusk.";
        let blocks = [
            block("Owls", None, Some(1)),
            block(owls, None, Some(2)),
            block("The tawny owl nests in the oak.", None, Some(3)),
        ];
        let found: Vec<_> = chunks(&blocks, SMALL)
            .into_iter()
            .map(|chunk| (chunk.page, chunk.text))
            .collect();
        let first = format!("Owls\n{owls}");
        let last = "The tawny owl nests in the oak.".to_owned();
        assert_eq!(found, [(Some(2), first), (Some(3), last)]);
    }

    #[test]
    fn short_pages_are_passages_of_their_own() {
        let pages = ["Rent: 420.", "Sales\n4.2 M", "The mill is old."];
        let blocks: Vec<_> = (1..)
            .zip(pages)
            .map(|(page, text)| block(text, None, Some(page)))
            .collect();
        let found: Vec<_> = chunks(&blocks, Size::default())
            .into_iter()
            .map(|chunk| (chunk.page, chunk.text))
            .collect();
        let expected: Vec<_> = (1_u32..).map(Some).zip(pages.map(str::to_owned)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_passage_repeats_the_end_of_the_one_before() {
        let text = "One is first. Two is second. Three is third. Four is the fourth one. Five is the fifth. Six follows then. \
                    Seven is another one. Eight comes behind it. Nine is the last one of them.";
        let chunks = chunks(&[block(text, None, None)], SMALL);
        assert!(chunks.len() > 1);
        for pair in chunks.windows(2) {
            let repeated = pair[1].text[..pair[1].fresh].trim();
            assert!(
                !repeated.is_empty() && pair[0].text.ends_with(repeated),
                "{pair:?}"
            );
        }
        let whole = join_passages(
            chunks
                .iter()
                .map(|chunk| (chunk.text.as_str(), chunk.fresh)),
        );
        assert_eq!(whole.replace('\n', " "), text);
    }

    #[test]
    fn each_passage_of_a_long_paragraph_has_its_own_line() {
        let lines = [
            "The light of the",
            "moon is that of the sun.",
            "It has no heat that a",
            "hand could feel. Owls",
            "hunt by it. So do",
            "foxes and people.",
        ];
        let block = Block {
            text: lines.join("\n"),
            line: Some(7),
            ..Block::default()
        };
        let title = Block {
            text: "Moonlight".to_owned(),
            heading: Some(1),
            line: Some(5),
            ..Block::default()
        };
        let size = Size {
            most: 15,
            overlap: 3,
        };
        let chunks = chunks(&[title, block], size);
        let found: Vec<_> = chunks
            .iter()
            .map(|chunk| (chunk.line.unwrap(), chunk.text[chunk.fresh..].to_owned()))
            .collect();
        // With its title, and up to the end of a sentence.
        assert_eq!(
            found[0],
            (
                5,
                "Moonlight\nThe light of the\nmoon is that of the sun.".to_owned()
            )
        );
        let (line, text) = &found[1];
        assert_eq!(
            text.lines().next(),
            Some(lines[*line as usize - 7]),
            "{found:?}"
        );
    }

    #[test]
    fn passages_end_where_their_memory_does() {
        let mut cutting = Chunker::default();
        let heading = block(&"h".repeat(160), Some(6), Some(1));
        let pages = (1..).map(|page| block(&format!("The end of {page}."), None, Some(page)));
        cutting.add(&heading);
        let taken = pages.take_while(|page| cutting.take(page)).count();
        assert!((60_000..200_000).contains(&taken), "{taken}");
        assert_eq!(cutting.finish().len(), taken);
    }

    proptest! {
        #[test]
        fn no_passage_is_too_large_and_no_word_is_lost(
            texts in prop::collection::vec(("[a-z漢ü. ]{0,200}", prop::option::weighted(0.2, 1..4_u8)), 0..12)
        ) {
            let blocks: Vec<_> = texts.iter().map(|(text, heading)| block(text, *heading, None)).collect();
            let chunks = chunks(&blocks, SMALL);
            for chunk in &chunks {
                // A heading may be longer than that; it is never cut.
                let longest = blocks.iter().filter(|block| block.heading.is_some()).map(|block| tokens(&block.text));
                let most = SMALL.most + SMALL.overlap + longest.max().unwrap_or(0);
                prop_assert!(tokens(&chunk.text) <= most + 2, "{chunk:?}");
            }
            let whole = join_passages(chunks.iter().map(|chunk| (chunk.text.as_str(), chunk.fresh)));
            let squeezed = |text: &str| text.split_whitespace().collect::<String>();
            let given: String = blocks.iter().map(|block| squeezed(&block.text)).collect();
            prop_assert_eq!(squeezed(&whole), given);
        }
    }
}

//! Measures searches by words and by meaning in many passages: `cargo run --release -p tierbar-store --example passages [PASSAGES]`.
//!
//! The text has the proportions of English: its most frequent words are as frequent as they are, and the others follow Zipf's law.

use std::{env, error::Error, fmt::Write, time::Instant};
use tierbar_core::documents::vectors::{normalized, pack};
use tierbar_store::{NewDocument, NewPassage, Place, SeenFile, Store};

const PASSAGES: usize = 60_000;
const PASSAGES_A_FILE: usize = 1000;
const WORDS_A_PASSAGE: usize = 150;
/// Words besides the frequent ones.
const VOCABULARY: usize = 60_000;
const QUESTIONS: usize = 100;
const RESULTS: usize = 50;
const MODEL: &str = "embedder";
/// Numbers of a vector.
const NUMBERS: usize = 384;
/// The most frequent words of English,
const FREQUENT: [&str; 40] = [
    "the", "of", "and", "to", "a", "in", "is", "that", "for", "it", "as", "was", "with", "be",
    "by", "on", "not", "he", "this", "are", "or", "his", "from", "at", "which", "but", "have",
    "an", "had", "they", "you", "were", "their", "one", "all", "we", "can", "her", "has", "when",
];
/// and how many of a thousand words each is.
const SHARES: [usize; 40] = [
    62, 31, 28, 26, 23, 20, 11, 11, 9, 9, 8, 8, 7, 7, 6, 6, 5, 5, 5, 5, 4, 4, 4, 4, 4, 4, 4, 4, 3,
    3, 3, 3, 3, 3, 3, 3, 2, 2, 2, 2,
];

/// xorshift64*: the same text each time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % end
    }

    fn word(&mut self) -> String {
        let mut at = self.below(1000);
        for (word, share) in FREQUENT.into_iter().zip(SHARES) {
            if at < share {
                return word.to_owned();
            }
            at -= share;
        }
        self.content_word()
    }

    fn vector(&mut self) -> Vec<f32> {
        (0..NUMBERS)
            .map(|_| self.below(2001) as f32 / 1000.0 - 1.0)
            .collect()
    }

    /// Of rank r with a probability of about 1 / r.
    fn content_word(&mut self) -> String {
        let uniform = self.below(1 << 30) as f64 / f64::from(1 << 30);
        name((VOCABULARY as f64).powf(uniform) as usize)
    }
}

/// A word of syllables for a number.
fn name(mut number: usize) -> String {
    let mut word = String::new();
    loop {
        word.push(char::from(b"bdfgklmnprstvz"[number % 14]));
        number /= 14;
        word.push(char::from(b"aeiou"[number % 5]));
        number /= 5;
        if number == 0 {
            return word + "x";
        }
    }
}

async fn fill(store: &Store, passages: usize) -> Result<(), tierbar_core::Error> {
    let mut dice = Dice(1);
    let source = store.add_document_source("/d", "Documents", true).await?;
    let files = (0..passages.div_ceil(PASSAGES_A_FILE)).map(|number| SeenFile {
        path: format!("/d/{number}.md"),
        size: 1,
        modified: 1,
    });
    store.sync_documents(source.id, files.collect()).await?;
    while let Some(file) = store.next_document().await? {
        let passages = (0..PASSAGES_A_FILE).map(|_| NewPassage {
            text: (0..WORDS_A_PASSAGE).map(|_| dice.word() + " ").collect(),
            headings: vec![dice.content_word()],
            vector: Some(pack(&dice.vector())),
            ..NewPassage::default()
        });
        let document = NewDocument {
            passages: passages.collect(),
            embedder: Some(MODEL.to_owned()),
            ..NewDocument::default()
        };
        store.put_document(file, document).await?;
    }
    Ok(())
}

fn summary(mut times: Vec<f64>) -> String {
    times.sort_by(f64::total_cmp);
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    let (half, most, all) = (at(0.5), at(0.95), at(1.0));
    format!("p50 {half:.0} ms, p95 {most:.0} ms, most {all:.0} ms")
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let passages = env::args()
        .nth(1)
        .map_or(Ok(PASSAGES), |text| text.parse())?;
    let folder = tempfile::tempdir()?;
    let store = Store::open(&folder.path().join("tierbar.db"))?;
    let began = Instant::now();
    fill(&store, passages).await?;
    let mut report = format!(
        "{passages} passages in {:.0} s\n",
        began.elapsed().as_secs_f64()
    );
    let mut dice = Dice(2);
    let frequent = |dice: &mut Dice, count| -> Vec<String> {
        let words = (0..count).map(|_| FREQUENT[dice.below(FREQUENT.len())].to_owned());
        words.collect()
    };
    for (kind, common, content, rank) in [
        ("frequent words alone", 8, 0, 1),
        ("two usual words among frequent ones", 6, 2, 10),
        ("two rare words among frequent ones", 6, 2, 5_000),
        ("sixty frequent and usual words", 30, 30, 1),
        ("two rare words alone", 0, 2, 5_000),
    ] {
        let mut times = Vec::new();
        for _ in 0..QUESTIONS {
            let mut words = frequent(&mut dice, common);
            words.extend((0..content).map(|_| name(rank + dice.below(rank * 9))));
            let question = words.join(" ");
            let began = Instant::now();
            store
                .passages_with_words(&question, Place::default(), RESULTS)
                .await?;
            times.push(began.elapsed().as_secs_f64() * 1000.0);
        }
        writeln!(report, "{kind}: {}", summary(times))?;
    }
    let mut times = Vec::new();
    for _ in 0..QUESTIONS {
        let vector = normalized(dice.vector());
        let began = Instant::now();
        store
            .passages_like(MODEL, vector, Place::default(), RESULTS)
            .await?;
        times.push(began.elapsed().as_secs_f64() * 1000.0);
    }
    writeln!(report, "by meaning: {}", summary(times))?;
    std::io::Write::write_all(&mut std::io::stdout(), report.as_bytes())?;
    Ok(())
}
